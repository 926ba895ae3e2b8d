"""From words on a command line to settings, and back."""

import shlex
from pathlib import Path

from swapcal.errors import InvalidInput
from swapcal_benchmarks.rivals.fixtures import Settings
from swapcal_benchmarks.rivals.table_file import TableFile

__all__ = ["command_line", "settings_from"]


def settings_from(
    *,
    only: str | None = None,
    streams: str | None = None,
    boards: str | None = None,
    horizons: str | None = None,
    seeds: int | None = None,
    full: bool = False,
    csv: str | None = None,
    y: str | None = None,
    hint: str | None = None,
    groups: str | None = None,
    kind: str | None = None,
    level: float | None = None,
) -> Settings:
    """Lists are separated by commas; what belongs to a CSV file is refused without one.

    Examples
    --------
    >>> settings_from(only="swapcal, garg", horizons="200,800").horizons
    (200, 800)
    """
    return Settings(
        only=_words(only),
        streams=_words(streams),
        boards=_words(boards),
        horizons=_sizes(horizons),
        seeds=seeds,
        full=full,
        file=_file(csv, y, hint, groups, kind, level, streams, boards, horizons),
    )


def _words(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(word.strip() for word in text.split(",") if word.strip())


def _sizes(text: str | None) -> tuple[int, ...] | None:
    try:
        return None if text is None else tuple(int(word) for word in _words(text) or ())
    except ValueError:
        raise InvalidInput(f"--horizons takes whole numbers, such as 200,800,3200; got {text!r}") from None


def _file(
    csv: str | None,
    y: str | None,
    hint: str | None,
    groups: str | None,
    kind: str | None,
    level: float | None,
    *others: str | None,
) -> TableFile | None:
    if csv is None:
        if any(each is not None for each in (y, hint, groups, kind, level)):
            raise InvalidInput("--y, --hint, --groups, --property and --level belong to --csv FILE; give it too")
        return None
    if y is None:
        raise InvalidInput("--csv needs --y, the name of the column with the labels")
    if any(each is not None for each in others):
        raise InvalidInput("--csv plays on all rows of the file; leave out --streams, --boards and --horizons")
    return TableFile(csv, y, hint, _words(groups) or (), kind, level)


def command_line(settings: Settings, docs: Path | None) -> str:
    """The command that plays with these settings.

    Examples
    --------
    >>> command_line(Settings(only=("Garg 2024",), seeds=2), None)
    "swapcal bench rivals --only 'Garg 2024' --seeds 2"
    """
    words = ["swapcal", "bench", "rivals"]
    for name in ("only", "streams", "boards", "horizons"):
        given = getattr(settings, name)
        words += [] if given is None else [f"--{name}", ",".join(map(str, given))]
    words += [] if settings.seeds is None else ["--seeds", str(settings.seeds)]
    words += ["--full"] if settings.full else []
    file = settings.file
    if file is not None:
        words += ["--csv", file.path, "--y", file.y]
        words += [] if file.hint is None else ["--hint", file.hint]
        words += ["--groups", ",".join(file.groups)] if file.groups else []
        words += [] if file.kind is None else ["--property", file.kind]
        words += [] if file.level is None else ["--level", f"{file.level:g}"]
    words += [] if docs is None else ["--docs", str(docs)]
    return shlex.join(words)

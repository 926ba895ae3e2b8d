"""All streams with their delays, recorded and simulated."""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from swapcal.errors import InvalidInput
from swapcal_benchmarks.late.late_cache import LateCache
from swapcal_benchmarks.late.late_delays import delays
from swapcal_benchmarks.late.late_files import FILES, file_sources
from swapcal_benchmarks.late.late_simulations import N_ROUNDS, simulated_streams
from swapcal_benchmarks.late.late_stream import LateStream

__all__ = ["CACHE", "streams"]

CACHE = Path("build/late-cache")


def streams(
    directory: Path | None,
    rows: Sequence[str] = (),
    *,
    cache: Path | None = CACHE,
    n_rounds: int = N_ROUNDS,
) -> Iterator[LateStream]:
    """Streams one after the other: those of the files in `directory`, if it is given, and then the simulated ones.

    Parameters
    ----------
    directory : path or None
        With adult.csv and the others; files that are not there are left out.
    rows : sequence of str
        Only streams whose label ("no_shows, real") contains one of these.
    cache : path or None
        Where models' forecasts are kept.
    n_rounds : int
        Rounds of most simulated streams.
    """
    if directory is not None and not any((directory / f"{name}.csv").is_file() for name in FILES):
        raise InvalidInput(f"{directory} has none of {', '.join(f'{name}.csv' for name in FILES)}")
    recorded = iter(()) if directory is None else _recorded(directory, rows, LateCache(cache))
    for stream in chain(recorded, simulated_streams(n_rounds)):
        if not rows or any(each in stream.label for each in rows):
            yield stream


def _recorded(directory: Path, rows: Sequence[str], cache: LateCache) -> Iterator[LateStream]:
    some = [each for each in rows if each.startswith(tuple(FILES))]
    for name in FILES:
        # Texts that begin like a file's name spare the reading of the others.
        wanted = len(some) < len(rows) or not rows or any(each.startswith(name) for each in some)
        if wanted and (directory / f"{name}.csv").is_file():
            for source in file_sources(directory, name, cache):
                yield from delays(source)

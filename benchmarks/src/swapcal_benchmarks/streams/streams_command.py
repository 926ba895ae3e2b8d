"""The command `swapcal bench streams`: read, forecast, score, show."""

from collections.abc import Sequence
from pathlib import Path

from swapcal.errors import InvalidInput
from swapcal_benchmarks.report import Report, progress
from swapcal_benchmarks.streams.recorded import STREAMS
from swapcal_benchmarks.streams.stream_scores import measure
from swapcal_benchmarks.streams.streams_page import misses, page, summary, tables

__all__ = ["chosen", "streams_report"]


def chosen(only: str | None) -> list[str]:
    """The names in a list such as "adult,elec2"; all five if there is none."""
    if only is None:
        return list(STREAMS)
    names = [name.strip() for name in only.split(",") if name.strip()]
    unknown = [name for name in names if name not in STREAMS]
    if unknown or not names:
        what = f"there is no stream {unknown[0]!r}" if unknown else "--only names no stream"
        raise InvalidInput(f"{what}; there are {', '.join(STREAMS)}")
    return list(dict.fromkeys(names))


def streams_report(directory: Path, names: Sequence[str]) -> Report:
    """Measure the streams."""
    with progress("forecasting", len(names)) as done:
        rows = measure(directory, names, done=lambda name: done(1))
    only = "" if list(names) == list(STREAMS) else f" --only {','.join(names)}"
    parts = [table.text() for table in tables(rows)[:-2]]
    parts += ["\n".join([*summary(rows), *(f"MISSED {each}" for each in misses(rows))])]
    return Report(
        "\n\n".join([*parts, "More of every row: --json, or --docs DIR for a page."]),
        {"rows": [row.data() for row in rows], "summary": summary(rows)},
        {"streams.md": page(rows, f"swapcal bench streams DIR{only} --docs docs")},
    )

"""The command `swapcal bench streams`: read, forecast, score, show."""

import json as json_format
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from swapcal.errors import InvalidInput
from swapcal_benchmarks.streams.recorded import STREAMS
from swapcal_benchmarks.streams.stream_row import StreamRow
from swapcal_benchmarks.streams.stream_scores import measure
from swapcal_benchmarks.streams.streams_page import misses, page, summary, tables

__all__ = ["chosen", "show"]


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


def show(directory: Path, names: Sequence[str], *, docs: Path | None, json: bool, echo: Callable[[str], None]) -> None:
    """Measure the streams and show the rows; with `docs`, write streams.md there."""
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("forecasting", total=len(names))
        rows = measure(directory, names, done=lambda name: progress.advance(bar))
    if docs is not None:
        docs.mkdir(parents=True, exist_ok=True)
        only = "" if list(names) == list(STREAMS) else f" --only {','.join(names)}"
        text = page(rows, f"swapcal bench streams DIR{only} --docs docs")
        (docs / "streams.md").write_text(text, encoding="utf-8")
    echo(_json(rows) if json else _text(rows))


def _json(rows: Sequence[StreamRow]) -> str:
    return json_format.dumps({"rows": [row.data() for row in rows], "summary": summary(rows)}, indent=1)


def _text(rows: Sequence[StreamRow]) -> str:
    parts = [table.text() for table in tables(rows)[:-2]]
    parts += ["\n".join([*summary(rows), *(f"MISSED {each}" for each in misses(rows))])]
    return "\n\n".join([*parts, "More of every row: --json, or --docs DIR for a page."])

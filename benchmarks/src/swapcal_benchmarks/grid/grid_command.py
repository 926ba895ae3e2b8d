"""The command `swapcal bench grid`: play, judge, show, write."""

import json as json_format
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from swapcal.errors import InvalidInput
from swapcal_benchmarks.grid.grid_page import page, text
from swapcal_benchmarks.grid.grid_verdicts import verdicts
from swapcal_benchmarks.grid.measuring import GridResult, measure
from swapcal_benchmarks.streams.recorded import STREAMS

__all__ = ["show"]


def show(
    directory: Path | None,
    *,
    full: bool,
    workers: int | None,
    docs: Path | None,
    json: bool,
    echo: Callable[[str], None],
) -> None:
    """Measure and show; with `docs`, write grid.md there."""
    if directory is not None:
        missing = [f"{name}.csv" for name in STREAMS if not (directory / f"{name}.csv").is_file()]
        if missing:
            raise InvalidInput(f"{directory} has no {missing[0]}; leave the directory out to play without the files")
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("playing", total=None)
        result = measure(
            directory,
            full=full,
            workers=workers,
            begin=lambda cost: progress.update(bar, total=cost),
            done=lambda cost: progress.advance(bar, cost),
        )
    if docs is not None:
        docs.mkdir(parents=True, exist_ok=True)
        command = f"swapcal bench grid{'' if directory is None else ' DIR'}{' --full' if full else ''} --docs docs"
        (docs / "grid.md").write_text(page(result, command), encoding="utf-8")
    echo(_json(result) if json else text(result))


def _json(result: GridResult) -> str:
    data = {
        "verdicts": [asdict(each) for each in verdicts(result)],
        "rows": [row.data() for row in result.rows],
        "games": [asdict(game) for game in result.games],
    }
    return json_format.dumps(data, indent=1)

"""The command `swapcal bench grid`: play, judge, show, write."""

from dataclasses import asdict
from pathlib import Path

from swapcal.errors import InvalidInput
from swapcal_benchmarks.grid.grid_page import page, text
from swapcal_benchmarks.grid.grid_verdicts import verdicts
from swapcal_benchmarks.grid.measuring import measure
from swapcal_benchmarks.report import Report, progress
from swapcal_benchmarks.streams.recorded import STREAMS

__all__ = ["grid_report"]


def grid_report(directory: Path | None, *, full: bool, workers: int | None, before: Path | None = None) -> Report:
    """Play and judge everything."""
    if directory is not None:
        missing = [f"{name}.csv" for name in STREAMS if not (directory / f"{name}.csv").is_file()]
        if missing:
            raise InvalidInput(f"{directory} has no {missing[0]}; leave the directory out to play without the files")
    with progress("playing") as done:
        result = measure(
            directory, full=full, workers=workers, before=before, begin=lambda cost: done(total=cost), done=done
        )
    data = {
        "verdicts": [asdict(each) for each in verdicts(result)],
        "rows": [row.data() for row in result.rows],
        "fresh": [asdict(row) for row in result.fresh],
        "games": [asdict(game) for game in result.games],
    }
    command = f"swapcal bench grid{'' if directory is None else ' DIR'}{' --full' if full else ''} --docs docs"
    return Report(text(result), data, {"grid.md": page(result, command)})

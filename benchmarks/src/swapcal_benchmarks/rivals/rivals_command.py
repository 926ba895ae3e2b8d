"""The command `swapcal bench rivals`: play, show, write; and an interruption that loses nothing."""

import io
import json as json_format
import os
from collections.abc import Callable
from pathlib import Path

from PIL import Image

from swapcal_benchmarks.report import Report, progress
from swapcal_benchmarks.rivals import board_tables, curves_figure, frontier_figure, run_files
from swapcal_benchmarks.rivals.command_line import command_line
from swapcal_benchmarks.rivals.contest import Contest, prepare
from swapcal_benchmarks.rivals.fixtures import Settings
from swapcal_benchmarks.rivals.match import Result
from swapcal_benchmarks.rivals.results import LOG, finished
from swapcal_benchmarks.rivals.rivals_page import page
from swapcal_benchmarks.rivals.standings import Summary

__all__ = ["compare", "report"]

_DPI, _DPI_DOCS = 150, 100
_COLORS = 128


def compare(
    settings: Settings,
    out: Path,
    *,
    workers: int | None = None,
    docs: Path | None = None,
    fresh: bool = False,
    json: bool = False,
    echo: Callable[[str], None],
) -> int:
    """Play a contest and write what came out; the exit code.

    0: all went well. 1: a method failed, and the others are reported. 130: interrupted; the same command goes on.
    """
    # A method's own processor time is not to depend on how many threads a matrix product takes.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    log = out / LOG
    if fresh:
        log.unlink(missing_ok=True)
    contest = prepare(settings, out)
    try:
        summary, results = _play(contest, workers)
    except KeyboardInterrupt:
        kept = len(finished(log))
        echo(f"interrupted; {kept:,} finished runs are kept in {log}, and the same command goes on from there")
        return 130
    made = report(summary, results, command=command_line(settings, docs), pages=docs is not None)
    made.publish(echo, json=json, docs=docs, out=out)
    return 1 if summary.failures else 0


def _play(contest: Contest, workers: int | None) -> tuple[Summary, list[Result]]:
    with progress("playing", sum(match.cost for match in contest.remaining)) as done:
        return contest.play(workers=workers, done=done)


def report(
    summary: Summary,
    results: list[Result],
    *,
    command: str = "swapcal bench rivals",
    pages: bool = False,
) -> Report:
    """Tables, JSON, CSV and figures, and with `pages` the page."""
    shown = []
    for board in summary.plan.boards:
        name = board.name
        made = (
            board_tables.streams_table(summary, name),
            board_tables.scores_table(summary, name),
            board_tables.claims_table(summary, name),
        )
        shown += [table.text() for table in made]
    shown.append(board_tables.cards_table(summary).text())
    shown += [
        f"FAILED {each['key']['method']} on {each['key']['stream']}: {each['failed']}" for each in summary.failures
    ]
    shown.append("rivals.json has the reasons for every -.")
    text = "\n\n".join(shown)
    data = run_files.to_data(summary, results)
    files: dict[str, str | bytes] = {
        "rivals.json": json_format.dumps(data, indent=1, allow_nan=False) + "\n",
        "rivals.csv": run_files.to_csv(results),
        "tables.txt": text + "\n",
        **_draw(summary, "", _DPI),
    }
    written: dict[str, str | bytes] = {}
    if pages:
        n_seeds = len({each["key"]["seed"] for each in results})
        written = {"benchmark.md": page(summary, len(results), n_seeds, command)}
        written |= _draw(summary, "figures/rivals_", _DPI_DOCS)
    return Report(text, data, written, files)


def _draw(summary: Summary, prefix: str, dpi: int) -> dict[str, str | bytes]:
    figures = {"growth": curves_figure.growth_figure(summary), "cost": curves_figure.cost_figure(summary)}
    for board in summary.plan.boards:
        figures[f"frontier_{board.name}"] = frontier_figure.frontier_figure(summary, board.name)
    files: dict[str, str | bytes] = {}
    for name, figure in figures.items():
        drawn, small = io.BytesIO(), io.BytesIO()
        figure.savefig(drawn, dpi=dpi)
        # A palette makes the files a third as large, and these figures have few colors.
        with Image.open(drawn) as image:
            image.convert("RGB").quantize(_COLORS, method=Image.Quantize.MAXCOVERAGE).save(small, "png", optimize=True)
        files[f"{prefix}{name}.png"] = small.getvalue()
    return files

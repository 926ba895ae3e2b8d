"""The command `swapcal bench rivals`: play, show, write; and an interruption that loses nothing."""

import io
import os
from collections.abc import Callable
from pathlib import Path

from PIL import Image
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from swapcal.errors import InvalidInput
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
    text = report(summary, results, out, docs=docs, command=command_line(settings, docs))
    echo(run_files.to_json(summary, results).rstrip() if json else text)
    return 1 if summary.failures else 0


def _play(contest: Contest, workers: int | None) -> tuple[Summary, list[Result]]:
    columns = TextColumn("playing"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("playing", total=sum(match.cost for match in contest.remaining))
        return contest.play(workers=workers, done=lambda cost: progress.advance(bar, cost))


def report(
    summary: Summary,
    results: list[Result],
    out: Path,
    *,
    docs: Path | None = None,
    command: str = "swapcal bench rivals",
) -> str:
    """Write tables, JSON, CSV and figures into `out`, and the page into `docs`; what the terminal shows."""
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
    shown.append(f"Written to {out}: rivals.json (with the reasons for every -), rivals.csv, tables.txt and figures.")
    text = "\n\n".join(shown)
    try:
        (out / "rivals.json").write_text(run_files.to_json(summary, results), encoding="utf-8")
        (out / "rivals.csv").write_text(run_files.to_csv(results), encoding="utf-8")
        (out / "tables.txt").write_text(text + "\n", encoding="utf-8")
        _draw(summary, out, "", _DPI)
        if docs is not None:
            (docs / "figures").mkdir(parents=True, exist_ok=True)
            _draw(summary, docs / "figures", "rivals_", _DPI_DOCS)
            n_seeds = len({each["key"]["seed"] for each in results})
            (docs / "benchmark.md").write_text(page(summary, len(results), n_seeds, command), encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"the results cannot be written: {error}; finished runs are kept in {out / LOG}") from error
    return text


def _draw(summary: Summary, folder: Path, prefix: str, dpi: int) -> None:
    figures = {"growth": curves_figure.growth_figure(summary), "cost": curves_figure.cost_figure(summary)}
    for board in summary.plan.boards:
        figures[f"frontier_{board.name}"] = frontier_figure.frontier_figure(summary, board.name)
    for name, figure in figures.items():
        buffer = io.BytesIO()
        figure.savefig(buffer, dpi=dpi)
        # A palette makes the files a third as large, and these figures have few colors.
        with Image.open(buffer) as image:
            image.convert("RGB").quantize(_COLORS, method=Image.Quantize.MAXCOVERAGE).save(
                folder / f"{prefix}{name}.png", optimize=True
            )

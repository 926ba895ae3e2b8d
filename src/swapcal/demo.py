"""`make demo`: a drifting stream with overlapping groups, a biased model as the hint, errors before and after."""

import sys
from dataclasses import dataclass

import numpy as np

import swapcal as sc
from swapcal.roles import Elicitable
from swapcal.streams.synthetic import Stream, drifting
from swapcal.typing import Float64Array

try:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.table import Table
except ImportError:
    sys.exit("the demo draws its tables with rich: install it with  pip install 'swapcal[demo]'")

N_ROUNDS = 20_000
CHUNK = 500


@dataclass(frozen=True, slots=True)
class Task:
    """One property of one stream, and the forecasts that nobody can beat."""

    name: str
    property: Elicitable
    stream: Stream
    truth: Float64Array


def tasks() -> list[Task]:
    """A probability, a quantile and an expectile, of the same drifting world."""
    binary, real = drifting(N_ROUNDS, seed=7, binary=True), drifting(N_ROUNDS, seed=7)
    return [
        Task("probability", sc.Probability(), binary, binary.truth_mean),
        Task("0.9 quantile", sc.Quantile(0.9), real, real.truth_quantile(0.9)),
        Task("0.8 expectile", sc.Expectile(0.8), real, real.truth_expectile(0.8)),
    ]


def forecast(task: Task, learning: bool, progress: Progress) -> tuple[Float64Array, sc.Forecaster]:
    """Run the engine over the stream, on top of the model or of a regression that learns."""
    hint = sc.OnlineRegression(n_features=10) if learning else None
    forecaster = sc.Forecaster(task.property, sc.Finite(20), horizon=N_ROUNDS, seed=1, hint=hint)
    label = f"{task.name}, {'learning' if learning else 'swapcal'}"
    bar = progress.add_task(label, total=N_ROUNDS)
    parts = []
    for start in range(0, N_ROUNDS, CHUNK):
        rows = slice(start, start + CHUNK)
        extra = task.stream.features[rows] if learning else None
        parts.append(forecaster.run(task.stream.x[rows], task.stream.y[rows], task.stream.hint[rows], features=extra))
        progress.advance(bar, CHUNK)
    return np.concatenate(parts), forecaster


def scores(task: Task, p: Float64Array, promised: float | None = None) -> list[str]:
    """Swap multicalibration error beside its bound, the worst group's bias, and the loss."""
    error = sc.swap_multicalibration_error(task.stream.y, p, task.stream.x, property=task.property)
    v = np.asarray(task.property.identification(p, task.stream.y))
    bias = np.abs(task.stream.x.T @ v) / np.maximum(task.stream.x.sum(axis=0), 1.0)
    loss = float(np.mean(task.property.loss(p, task.stream.y)))
    bound = "" if promised is None else f"{promised:.0f}"
    return [f"{error:.1f}", bound, f"{float(bias.max()):.3f}", f"{loss:.4f}"]


def main() -> None:
    """Print one table: who forecasts, and how wrong it is."""
    console = Console()
    console.print(
        f"\n{N_ROUNDS:,} rounds of a drifting world with 20 overlapping groups,\n"
        "and a frozen model that is biased for some of them.\n\n"
        "[bold]model[/bold]     the frozen model, rounded to the engine's grid\n"
        "[bold]swapcal[/bold]   the engine, with the model as its hint\n"
        "[bold]learning[/bold]  the engine, with a hint that learns\n"
        "[bold]truth[/bold]     what the world knows, rounded to the same grid\n"
    )
    table = Table(title="Before and after", title_style="bold")
    for column in ("forecast", "by", "swap error", "at most", "worst bias", "loss"):
        table.add_column(column, justify="left" if column in ("forecast", "by") else "right", no_wrap=True)
    columns = (TextColumn("{task.description:>24}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        for task in tasks():
            runs = {by: forecast(task, by == "learning", progress) for by in ("swapcal", "learning")}
            grid = runs["swapcal"][1].grid
            table.add_row(task.name, "model", *scores(task, grid.round(task.stream.hint)))
            for by, (p, forecaster) in runs.items():
                table.add_row("", by, *scores(task, p, forecaster.guarantee(0.05)))
            table.add_row("", "truth", *scores(task, grid.round(task.truth)), end_section=True)
    console.print(table)
    console.print(
        "\nswap error: the paper's SMCal_2 over the groups, a total over all rounds\n"
        "at most: what the theorem promises of it with probability 95 %\n"
        "worst bias: mean identification of the worst group\n"
        "loss: Brier score, pinball loss, asymmetric squares\n"
    )


if __name__ == "__main__":
    main()

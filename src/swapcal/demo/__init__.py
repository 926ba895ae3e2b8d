"""`swapcal demo`: a year of flights, a plain model, and what calibration for every group changes.

The stream, the model and the words are here; everything else is what `swapcal run` and `swapcal report` do.
"""

import json as json_format
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from swapcal import backend, datasets
from swapcal.demo import flights
from swapcal.demo.flights import MODEL, Scene, Task
from swapcal.errors import AtomsWarning, InvalidInput, MissingExtra
from swapcal.report import page
from swapcal.tasks import runner
from swapcal.tasks.columns import RangeWarning
from swapcal.tasks.result import Result, to_json
from swapcal.typing import Float64Array

__all__ = ["main"]

NEEDED = ("rich", "pyarrow", "matplotlib", "jinja2")
WIDTH = 80


def main(out: Path, view: Callable[[Result], RenderableType], *, rows: int | None = None, json: bool = False) -> None:
    """Play the demo: results on standard output, progress on standard error, one page for each question in `out`.

    `view` is how `swapcal run` shows a result. `rows` makes it shorter: the first so many flights of the year.
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
        console.print(_shown(answer, view))
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
        config = replace(task.question, learn=learn, seed=SEED)
        result = runner.run({**scene.columns, MODEL: model}, config, progress=done)
    return replace(result, source=f"{scene.source}: {task.subject}", details=dict(scene.about))


def _shown(answer: Answer, view: Callable[[Result], RenderableType]) -> RenderableType:
    """All that the terminal shows of one question: what `swapcal run` does, and what it comes to without learning."""
    notes = (Text(note, style="dim") for note in answer.task.notes)
    other = f"Without a hint that learns (--no-learn): {answer.result.verdict.headline}"
    title = Text(answer.task.title, style="bold")
    return Group(title, *notes, Text(), view(answer.learning), Text(), Text(other), Text())


# --------
# The demo in the terminal: steps as they go on standard error, then results, or JSON, on standard output.

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
    shorter = rows is None and backend() == "python"
    with steps("reading the flights", 1):
        scene = flights.scene(datasets.locate(), IN_PYTHON if shorter else rows)
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

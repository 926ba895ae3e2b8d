"""`swapcal demo`: a year of flights, a frozen model, and what calibration for every group changes.

The flights and the model are those of `swapcal.datasets`; everything else is what `swapcal run` and its page do.
"""

import json as json_format
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from swapcal import backend, datasets
from swapcal.errors import InvalidInput, MissingExtra
from swapcal.report import page
from swapcal.tasks import runner
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.result import Result, to_json

__all__ = ["QUESTIONS", "Answer", "main", "play"]

NEEDED = ("rich", "pandas", "pyarrow", "matplotlib", "jinja2")
WIDTH = 80
SOURCE = "flights from New York in 2013"

GROUPS = ("carrier", "origin", ("carrier", "origin"), "hour")
# Both learn of a flight when it has landed. The seed is that of all draws, so that everybody sees the same numbers.
_COMMON: dict[str, Any] = {"groups": GROUPS, "time": "scheduled", "known": "landed", "seed": 1}
# What is asked, by the name of the page: how the terminal calls it, and the task.
QUESTIONS: dict[str, tuple[str, TaskConfig]] = {
    "late": (
        f"Late arrivals: the chance to be more than {datasets.LATE:g} minutes late",
        TaskConfig("late", "score", **_COMMON),
    ),
    "delay": (
        "Arrival delay in minutes: an interval that holds for 9 of 10 flights of every group",
        TaskConfig("delay", "expected", interval=0.9, **_COMMON),
    ),
}

# So many flights take about a minute without compiled kernels.
IN_PYTHON = 40_000

# Begins a step that has a name and a number of rows; within it, call with the number of rows done.
Steps = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]


def main(out: Path, view: Callable[[Result], RenderableType], *, rows: int | None = None, json: bool = False) -> None:
    """Play the demo: results on standard output, progress on standard error, one page for each question in `out`.

    `view` is how `swapcal run` shows a result. `rows` makes it shorter: the first so many flights of March.
    """
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise MissingExtra(f"the demo needs {', '.join(missing)}: install with  pip install 'swapcal[demo]'")
    start = time.perf_counter()
    console = Console(highlight=False)
    console = Console(highlight=False, width=min(console.width, WIDTH))
    shorter = rows is None and backend() == "python"
    with _progress() as steps:
        with steps("reading the flights", 1):
            flights = datasets.flights()[: IN_PYTHON if shorter else rows]
        if not json:
            console.print(f"\n{_opening(len(flights), shorter)}\n", markup=False)
        answers = list(play(flights, out, steps))
    if json:
        console.out(_json(len(flights), answers), highlight=False)
        return
    for answer in answers:
        console.print(f"[bold]{answer.title}[/bold]\n", view(answer.result), "", sep="\n")
    took = time.perf_counter() - start
    console.print(f"All of it took {took:.0f} seconds. The pages, for your browser:")
    for answer in answers:
        console.out(f"  {answer.page}", highlight=False)


def _opening(n_rows: int, shorter: bool) -> str:
    note = "The compiled kernels are not there, so that only the first flights are played; --rows takes more.\n\n"
    return (note if shorter else "") + (
        f"{n_rows:,} flights that left New York from March 2013 on, by their time in the timetable. A model was fitted "
        "on January and February and frozen; it knows hour, carrier, airport and distance. swapcal corrects it by "
        "carrier, origin, both together, and hour. It learns of a flight when it has landed."
    )


@dataclass(frozen=True, slots=True)
class Answer:
    """What came out for one question, and its page."""

    name: str
    title: str
    result: Result
    page: Path


def play(flights: Any, out: Path, steps: Steps) -> Iterator[Answer]:
    """The answers, one after the other; pages are written to the directory `out`."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"the pages go to a directory, and {out} cannot be one: {error.strerror}") from error
    for name, (title, config) in QUESTIONS.items():
        with steps(f"{name}: swapcal", len(flights)) as done:
            result = replace(runner.run(flights, config, progress=done), source=SOURCE)
        with steps(f"{name}: the page", 1):
            yield Answer(name, title, result, page.write(result, out / f"{name}.html"))


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


def _json(n_rows: int, answers: list[Answer]) -> str:
    """Results as `swapcal run --json` prints them, by question, with the paths of their pages."""
    questions = {
        answer.name: {"page": str(answer.page), "result": json_format.loads(to_json(answer.result))}
        for answer in answers
    }
    return json_format.dumps({"source": SOURCE, "rows": n_rows, "questions": questions}, ensure_ascii=False)

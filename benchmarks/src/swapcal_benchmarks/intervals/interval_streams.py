"""Three recorded streams with a model that saw the first fifth only, and the groups that intervals must hold for."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

from swapcal.typing import Float64Array, IntArray

__all__ = ["STREAMS", "IntervalStream", "recorded"]

STREAMS = ("elec2", "bike_hour", "fte_games")


@dataclass(frozen=True)
class IntervalStream:
    """Outcomes with a model's forecasts, and who is in which group."""

    name: str
    outcome: str
    y: Float64Array
    hints: Float64Array
    groups: dict[str, IntArray]
    earlier: tuple[Float64Array, Float64Array]
    """Outcomes, and forecasts of a model that had not seen them, from before the stream: for methods that need some."""
    binary: bool = False

    @property
    def members(self) -> Float64Array:
        """Everybody, and one column for each value of each column."""
        columns = [np.ones(len(self.y))]
        columns += [(codes == value).astype(float) for codes in self.groups.values() for value in np.unique(codes)]
        return np.column_stack(columns)

    @property
    def names(self) -> list[str]:
        """Names of the columns of `members`."""
        return ["all", *(f"{name}={v}" for name, codes in self.groups.items() for v in np.unique(codes))]


def recorded(directory: Path, name: str) -> IntervalStream:
    """One of the three."""
    if name == "fte_games":
        return _games(pd.read_csv(directory / "fte_games.csv"))
    frame = pd.read_csv(directory / f"{name}.csv")
    return _prices(frame) if name == "elec2" else _rentals(frame)


def _games(frame: pd.DataFrame) -> IntervalStream:
    frame = frame[frame["prob1_outcome"].isin([0.0, 1.0])].sort_values("date", kind="stable")
    y, hints = frame["prob1_outcome"].to_numpy(float), frame["prob1"].to_numpy(float)
    levels = np.minimum((10 * hints).astype(int), 9)
    groups = {"league": _codes(frame["league"]), "season": _codes(frame["season"]), "forecast": levels}
    return _stream("fte_games", "home team wins", y, hints, hints, groups, binary=True)


def _prices(frame: pd.DataFrame) -> IntervalStream:
    y, half_hour = frame["nswprice"].to_numpy(float), np.arange(len(frame)) % 48
    weekday, demand = (np.arange(len(frame)) // 48) % 7, frame["nswdemand"].to_numpy(float)
    quartile = np.searchsorted(np.quantile(demand[: len(frame) // 5], [0.25, 0.5, 0.75]), demand)
    names = ["period", "nswdemand", "vicprice", "vicdemand", "transfer"]
    features = np.column_stack([frame[names].to_numpy(float), weekday, _past(y, 1), _past(y, 48)])
    groups = {"half-hour": half_hour, "weekday": weekday, "demand": quartile}
    return _modeled("elec2", "price", y, features, groups)


def _rentals(frame: pd.DataFrame) -> IntervalStream:
    y = frame["cnt"].to_numpy(float)
    names = ["season", "mnth", "hr", "holiday", "weekday", "workingday", "weathersit"]
    names += ["temp", "atemp", "hum", "windspeed"]
    features = np.column_stack([frame[names].to_numpy(float), _past(y, 1), _past(y, 24)])
    columns = ("hr", "weekday", "season", "weathersit", "workingday")
    return _modeled("bike_hour", "rentals", y, features, {column: _codes(frame[column]) for column in columns})


def _modeled(name: str, outcome: str, y: Float64Array, X: Float64Array, groups: dict[str, IntArray]) -> IntervalStream:
    n, half = len(y) // 5, len(y) // 10
    hints = HistGradientBoostingRegressor(random_state=0).fit(X[:n], y[:n]).predict(X)
    fresh = HistGradientBoostingRegressor(random_state=0).fit(X[:half], y[:half]).predict(X)
    return _stream(name, outcome, y, hints, np.where(np.arange(len(y)) < half, np.nan, fresh), groups)


def _stream(
    name: str,
    outcome: str,
    y: Float64Array,
    hints: Float64Array,
    fresh: Float64Array,
    groups: dict[str, IntArray],
    *,
    binary: bool = False,
) -> IntervalStream:
    n = len(y) // 5
    known = np.flatnonzero(~np.isnan(fresh[:n]))
    later = {column: codes[n:] for column, codes in groups.items()}
    return IntervalStream(name, outcome, y[n:], hints[n:], later, (y[known], fresh[known]), binary)


def _past(y: Float64Array, lag: int) -> Float64Array:
    return np.concatenate([np.full(lag, np.nan), y[:-lag]])


def _codes(column: "pd.Series[int]") -> IntArray:
    return np.asarray(pd.factorize(column, sort=True)[0], dtype=np.int64)

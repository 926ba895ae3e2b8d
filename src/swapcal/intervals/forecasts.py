"""What is forecast: several quantiles, or an interval, with all that the update will need."""

import json
import math
from dataclasses import dataclass
from typing import Any

from swapcal.errors import UnknownForecast
from swapcal.forecast import Forecast
from swapcal.intervals.predictive import Predictive

__all__ = ["IntervalForecast", "QuantilesForecast"]


@dataclass(frozen=True, slots=True)
class QuantilesForecast:
    """Quantiles at several levels, in increasing order.

    Attributes
    ----------
    levels, values : tuple of float
        `values[k]` is the quantile at `levels[k]`; infinite while nothing is known of the outcomes' size.
    center, scale : float
        The map to (0, 1) that was in force: see `squash.unit`.
    parts : tuple of Forecast
        What the forecasters of the tree played, in the order of the levels; empty at the very start.
    size : Forecast or None
        What the forecaster of the scale played.
    unit : float
        What the scale is a multiple of, where `predict` was given one; else 1.
    """

    levels: tuple[float, ...]
    values: tuple[float, ...]
    center: float | None
    scale: float
    parts: tuple[Forecast, ...]
    size: Forecast | None
    unit: float = 1.0

    @property
    def predictive(self) -> Predictive:
        """The distribution through these quantiles."""
        return Predictive(self.levels, self.values)

    def to_dict(self) -> dict[str, Any]:
        """Plain data; an infinite value is None."""
        return {
            "levels": list(self.levels),
            "values": [value if math.isfinite(value) else None for value in self.values],
            "center": self.center,
            "scale": self.scale,
            "parts": [part.to_dict() for part in self.parts],
            "size": None if self.size is None else self.size.to_dict(),
            "unit": self.unit,
        }

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_dict(cls, data: Any) -> "QuantilesForecast":
        """The forecast that `to_dict` wrote down."""
        try:
            levels = tuple(float(level) for level in data["levels"])
            ends = (-math.inf if level < 0.5 else math.inf for level in levels)
            values = tuple(end if v is None else float(v) for v, end in zip(data["values"], ends, strict=True))
            parts = tuple(Forecast.from_dict(part) for part in data["parts"])
            size = None if data["size"] is None else Forecast.from_dict(data["size"])
            center = None if data["center"] is None else float(data["center"])
            return cls(levels, values, center, float(data["scale"]), parts, size, float(data.get("unit", 1.0)))
        except (KeyError, TypeError, ValueError) as error:
            raise UnknownForecast(f"this is not a stored forecast of quantiles ({error})") from None

    @classmethod
    def from_json(cls, text: str | bytes) -> "QuantilesForecast":
        """The forecast that `to_json` wrote down."""
        try:
            data = json.loads(text)
        except (TypeError, ValueError, RecursionError):
            raise UnknownForecast("this is not a stored forecast: it is not JSON") from None
        return cls.from_dict(data)


@dataclass(frozen=True, slots=True)
class IntervalForecast:
    """An interval that is to cover the outcome: `lower <= y <= upper`.

    Attributes
    ----------
    lower, upper : float
        The ends; infinite while nothing is known of the outcomes' size.
    coverage : float
        The share of outcomes that is to be covered.
    quantiles : QuantilesForecast
        The two quantiles, with all that the update will need.
    """

    lower: float
    upper: float
    coverage: float
    quantiles: QuantilesForecast

    @property
    def width(self) -> float:
        """How far the ends lie apart."""
        return self.upper - self.lower

    def __contains__(self, y: object) -> bool:
        return isinstance(y, (int, float)) and self.lower <= y <= self.upper

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        ends = {"lower": self.lower, "upper": self.upper}
        finite = {name: end if math.isfinite(end) else None for name, end in ends.items()}
        return {**finite, "coverage": self.coverage, "quantiles": self.quantiles.to_dict()}

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_dict(cls, data: Any) -> "IntervalForecast":
        """The forecast that `to_dict` wrote down."""
        try:
            lower = -math.inf if data["lower"] is None else float(data["lower"])
            upper = math.inf if data["upper"] is None else float(data["upper"])
            return cls(lower, upper, float(data["coverage"]), QuantilesForecast.from_dict(data["quantiles"]))
        except (KeyError, TypeError, ValueError) as error:
            raise UnknownForecast(f"this is not a stored interval ({error})") from None

    @classmethod
    def from_json(cls, text: str | bytes) -> "IntervalForecast":
        """The forecast that `to_json` wrote down."""
        try:
            data = json.loads(text)
        except (TypeError, ValueError, RecursionError):
            raise UnknownForecast("this is not a stored interval: it is not JSON") from None
        return cls.from_dict(data)

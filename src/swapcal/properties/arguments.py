"""Constructor arguments: what they may be, how they are printed, how they are saved."""

import dataclasses
import math
from numbers import Integral, Real
from typing import Any

from swapcal.errors import InvalidInput
from swapcal.typing import Spec

__all__ = ["call", "data", "label_range", "level_between", "number", "whole_number"]


def number(value: object, name: str) -> float:
    """`value` as a float, if it is a finite number; truth values are refused because they hide a swapped argument."""
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise InvalidInput(f"{name} must be a finite number; got {value!r}")
    return float(value)


def whole_number(value: object, name: str, *, least: int) -> int:
    """`value` as an int of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InvalidInput(f"{name} must be a whole number, {least} or more; got {value!r}")
    return int(value)


def level_between(value: object) -> float:
    """`value` as a level: strictly between 0 and 1, as the ends identify nothing inside the label range."""
    level = number(value, "level")
    if not 0.0 < level < 1.0:
        raise InvalidInput(f"level must lie strictly between 0 and 1; got {value!r} (for 90 % give 0.9)")
    return level


def label_range(low: object, high: object) -> tuple[float, float]:
    """The ends of the label range as floats."""
    ends = number(low, "low"), number(high, "high")
    if not ends[0] < ends[1] or not math.isfinite(ends[1] - ends[0]):
        raise InvalidInput(f"the label range needs low < high and a finite width; got low={low!r}, high={high!r}")
    return ends


def _arguments(obj: Any) -> list[tuple[dataclasses.Field[Any], Any]]:
    return [(field, getattr(obj, field.name)) for field in dataclasses.fields(obj) if field.init]


def call(obj: Any) -> str:
    """The constructor call that makes the dataclass `obj`, without arguments that have their default value."""
    given = [(field, value) for field, value in _arguments(obj) if value != field.default]
    return f"{type(obj).__name__}({', '.join(f'{f.name}={v!r}' if f.kw_only else repr(v) for f, v in given)})"


def data(obj: Any) -> Spec:
    """The arguments of the dataclass `obj` as plain data, with its class under "kind"."""
    return {"kind": type(obj).__name__} | {field.name: value for field, value in _arguments(obj)}

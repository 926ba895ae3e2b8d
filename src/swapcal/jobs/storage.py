"""Results as JSON text: what `--json` prints, and what `swapcal report` reads."""

import json
import math
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from swapcal.audit import Cell
from swapcal.audit.binary_scores import BinaryScores
from swapcal.audit.curves import Curve
from swapcal.audit.group_bias import GroupBias
from swapcal.audit.paired import Paired
from swapcal.audit.summary import ColumnSummary
from swapcal.audit.timeline import GroupHistory
from swapcal.errors import DataError, StateFileError
from swapcal.jobs.group_rows import group_rows
from swapcal.jobs.result import History, Result
from swapcal.properties import from_spec
from swapcal.roles import Elicitable
from swapcal.typing import Float64Array
from swapcal.words.property_words import NamedProperty, property_words
from swapcal.words.verdicts import Verdict

__all__ = ["dumped", "from_json", "plain_data", "plain_result", "read_result", "to_json"]

FORMAT = "swapcal.result"
VERSION = 3

_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that JSON allows as they are, and that steer a terminal or are no text; only strings can hold them."""


def to_json(result: Result) -> str:
    """The result as JSON text, all numbers as they are; what is not a number (empty cells) becomes null."""
    return dumped({"format": FORMAT, "version": VERSION, "result": plain_result(result)})


def plain_result(result: Result) -> dict[str, Any]:
    """The result as plain data.

    The table of groups comes second, in the units that people read; the rest is what it was made from.
    """
    return {
        "verdict": plain_data(result.verdict),
        "group_table": plain_data(group_rows(result)),
        **plain_data(result),
        "property": plain_data(_described(result.property)),
    }


def dumped(data: dict[str, Any]) -> str:
    """Plain data as JSON text that no terminal can be steered with."""
    return _UNSAFE.sub(_escaped, json.dumps(data, allow_nan=False, ensure_ascii=False))


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def from_json(text: str | bytes, name: str = "the text") -> Result:
    """Rebuild what `to_json` wrote; `name` stands for it in messages."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise DataError(f"{name} is not JSON; give what swapcal audit or swapcal run printed with --json") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT or not isinstance(data.get("result"), dict):
        raise DataError(f"{name} is no result of swapcal; give what swapcal audit or swapcal run printed with --json")
    if data.get("version") != VERSION:
        raise DataError(
            f"{name} has version {data.get('version')!r}, and this swapcal reads version {VERSION}; "
            "print the result again, or upgrade"
        )
    try:
        return _result(data["result"])
    except (AttributeError, KeyError, StateFileError, TypeError, ValueError, OverflowError):
        raise DataError(
            f"{name} is damaged: a part of the result is missing or of the wrong kind; print it again"
        ) from None


def read_result(path: str | Path) -> Result:
    """The result in a file, or on standard input if the path is "-"."""
    if str(path) == "-":
        return from_json(sys.stdin.buffer.read(), "standard input")
    try:
        return from_json(Path(path).read_bytes(), str(path))
    except FileNotFoundError:
        raise DataError(
            f"there is no file {path}; give what swapcal audit or swapcal run printed with --json"
        ) from None


def plain_data(value: Any) -> Any:
    """JSON types only, null for what is not a number; a property is described by `_described`."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain_data(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {str(key): plain_data(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_data(each) for each in value]
    if isinstance(value, np.ndarray):
        return plain_data(value.tolist())
    if isinstance(value, np.generic):
        return plain_data(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (str, int, float)):
        return value
    return str(value)


def _described(property: Elicitable | NamedProperty) -> dict[str, Any]:
    """A property as plain data: its spec, or its name and how it prints if it cannot be rebuilt from that."""
    if not isinstance(property, NamedProperty):
        with suppress(StateFileError):
            spec = dict(property.spec())
            return spec if from_spec(spec) == property else _named(property)
    return _named(property)


def _named(property: Elicitable | NamedProperty) -> dict[str, Any]:
    return {"name": property_words(property).name, "repr": repr(property)}


def _property(data: Any) -> Elicitable | NamedProperty:
    """The property that `_described` has written."""
    return NamedProperty(str(data["name"]), str(data["repr"])) if "repr" in data else from_spec(data)


def _array(value: Any) -> Float64Array:
    array = np.array(value, dtype=object)
    floats: Float64Array = np.where(array == None, np.nan, array).astype(np.float64)  # noqa: E711
    return floats


def _float(value: Any) -> float:
    return math.nan if value is None else float(value)


def _optional(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else make(value)


def _build(kind: Any, data: Any, **makers: Callable[[Any], Any]) -> Any:
    """An object of the dataclass `kind`; fields that newer versions added may be absent."""
    if not isinstance(data, dict):
        raise TypeError
    values = {}
    for field in fields(kind):
        if field.name not in data and field.default is not MISSING:
            continue
        values[field.name] = makers.get(field.name, lambda value: value)(data[field.name])
    return kind(**values)


def _curve(data: Any) -> Curve:
    curve: Curve = _build(Curve, data, forecast=_array, outcome=_array, low=_array, high=_array, count=_array)
    return curve


def _column(data: Any) -> ColumnSummary:
    numbers = dict.fromkeys(("swap_error", "group_error", "overall_error", "loss"), _float)
    arrays = dict.fromkeys(("edges", "bias", "counts", "histogram"), _array)
    column: ColumnSummary = _build(
        ColumnSummary,
        data,
        **numbers,
        **arrays,
        curves=lambda curves: {str(name): _curve(curve) for name, curve in curves.items()},
        groups=_optional(_groups),
        scores=_optional(lambda found: BinaryScores(**found)),
        histories=_optional(lambda found: {str(name): _group_history(one) for name, one in found.items()}),
        times=tuple,
        worst=lambda rows: tuple(
            _build(Cell, row, **dict.fromkeys(("value", "weight", "mean", "low", "high", "contribution"), _float))
            for row in rows
        ),
    )
    if column.bias.ndim != 2 or column.bias.shape != column.counts.shape or len(column.edges) != len(column.bias) + 1:
        raise ValueError
    return column


def _groups(data: Any) -> GroupBias:
    names = ("rows", "weight", "mean", "low", "high", "evidence", "off", "error")
    groups: GroupBias = _build(GroupBias, data, name=tuple, **dict.fromkeys(names, _array))
    if any(getattr(groups, name).shape != (len(groups.name),) for name in names):
        raise ValueError
    return groups


def _group_history(data: Any) -> GroupHistory:
    history: GroupHistory = _build(GroupHistory, data, start=_array, weight=_array, total=_array)
    return history


def _history(data: Any) -> History:
    series = dict.fromkeys(("before", "after", "guarantee"), _optional(_array))
    history: History = _build(History, data, rounds=_array, **series)
    return history


def _result(data: Any) -> Result:
    numbers = dict.fromkeys(("low", "high"), _float)
    result: Result = _build(
        Result,
        data,
        **numbers,
        groups=lambda names: tuple(str(name) for name in names),
        before=_optional(_column),
        after=_optional(_column),
        history=_optional(_history),
        paired=_optional(lambda pair: _build(Paired, pair, **dict.fromkeys([f.name for f in fields(Paired)], _float))),
        property=_property,
        verdict=lambda said: _build(Verdict, said, sentences=lambda each: tuple(str(text) for text in each)),
        n_rounds=int,
        n_missing=int,
        n_clipped=int,
        settings=dict,
        versions=dict,
    )
    if result.kind not in ("audit", "run") or result.verdict.kind not in ("fine", "recalibrate", "refit"):
        raise ValueError
    return result

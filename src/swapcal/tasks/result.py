"""What an audit or a run has found: plain data, from which the terminal, the page and the JSON file are made."""

import builtins
import json
import math
import platform
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from swapcal.audits import Cell
from swapcal.audits.groups import GroupBias
from swapcal.audits.histograms import Curve
from swapcal.audits.scores import BinaryScores, Paired
from swapcal.audits.summary import ColumnSummary
from swapcal.audits.timeline import GroupHistory
from swapcal.errors import DataError, InvalidInput, StateFileError
from swapcal.properties import Quantile, from_spec
from swapcal.protocols import Elicitable
from swapcal.text.numbers import counted, group_name, number
from swapcal.text.property_words import NamedProperty, property_words
from swapcal.text.sentences import since_text
from swapcal.text.verdict import Verdict, per_round
from swapcal.typing import Float64Array, IntArray
from swapcal.version import __version__


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """Error as the stream went by: rounds so far, swap error before and after, and the guarantee for that many rounds.

    `before` or `guarantee` is None where there is none.
    """

    rounds: Float64Array
    before: Float64Array | None
    after: Float64Array | None
    guarantee: Float64Array | None


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """Everything that a page shows. `before` is None for a run without a hint, `after` for an audit.

    property: what was forecast; of a property of the user's own, a stored result keeps the name only. loss_name: how
    people call its loss. groups: names in the order of the columns of `ColumnSummary.bias`. n_rounds: rows with an
    outcome; n_missing: rows without; n_clipped: labels outside the range that were moved to its end. settings and
    versions: what it takes to reproduce the result. discovery: subgroups that nobody listed, if they were searched for.
    """

    kind: Literal["audit", "run"]
    source: str
    property: Elicitable | NamedProperty
    loss_name: str
    low: float
    high: float
    groups: tuple[str, ...]
    n_rounds: int
    n_missing: int
    n_clipped: int
    before: ColumnSummary | None
    after: ColumnSummary | None
    history: History | None
    paired: Paired | None
    verdict: Verdict
    guarantee: float | None
    settings: dict[str, Any]
    versions: dict[str, str]
    discovery: dict[str, Any] | None = None

    @builtins.property  # `property` is a field here
    def r(self) -> float:
        """The power of the errors, 2 unless the settings say otherwise."""
        value = self.settings.get("r", 2.0)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else 2.0

    @builtins.property
    def columns(self) -> dict[str, ColumnSummary]:
        """The columns of forecasts there are, by "before" and "after"."""
        given = {"before": self.before, "after": self.after}
        return {which: column for which, column in given.items() if column is not None}


# --------
# The table of groups as rows, in the units that people read: for the terminal, for JSON and for the page.


def group_order(result: Result) -> IntArray | None:
    """Positions of all groups with rows besides everybody, the worst of the model first; None without groups."""
    side = result.before if result.before is not None else result.after
    if side is None or side.groups is None:
        return None
    order: IntArray = side.groups.ranked()
    return order


def group_rows(result: Result) -> list[dict[str, Any]]:
    """One row for each group, everybody first, then by the evidence against the model.

    bias, low, high are in `unit`: points for probabilities and quantiles, else the unit of the outcome. For quantiles
    there is `coverage`, the share of outcomes at or below their forecasts.
    """
    order = group_order(result)
    if order is None:
        return []
    words = property_words(result.property)
    level = result.property.level if isinstance(result.property, Quantile) else None
    rows = []
    for j in [0, *order.tolist()]:
        row: dict[str, Any] = {"unit": words.unit or "outcome"}
        for which, side in result.columns.items():
            groups = side.groups
            if groups is None or j >= len(groups.name) or not groups.rows[j] > 0:
                continue
            row = {"group": groups.name[j], "rows": int(groups.rows[j]), **row}
            row[which] = _side(groups, j, words.scale, level)
            since = since_text(side, groups.name[j])
            if since:
                row[which]["since"] = since.removeprefix("since ")
        if "group" in row:
            rows.append(row)
    return rows


def _side(groups: GroupBias, j: int, scale: float, level: float | None) -> dict[str, Any]:
    row = {
        "bias": scale * float(groups.mean[j]),
        "low": scale * float(groups.low[j]),
        "high": scale * float(groups.high[j]),
        "off": bool(groups.off[j]),
    }
    return row if level is None else {"coverage": level + float(groups.mean[j]), **row}


# --------
# Results as JSON text: what `--json` prints, and what `swapcal report` reads.

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


# --------
# What a run of classes has found: plain data, from which the terminal, the page and the JSON text are made.

CLASS_FORMAT, CLASS_VERSION = "swapcal.classes", 1
TOP = "top"
"""How the likeliest class is called in tables."""


@dataclass(frozen=True, slots=True, eq=False)
class ClassResult:
    """Probabilities of classes before and after.

    top: the audit of the probability of the likeliest class, which may be another one before and after. classes: the
    audit of each class. means: for "before" and "after", the means of each group, by name: right (how often the
    likeliest class came up), confidence (its mean probability), brier, log_loss. brier, log: losses before and after on
    the same rows. n_rows: all rows; n_strange: those whose outcome is none of the classes.
    """

    top: Result
    classes: dict[str, Result]
    means: dict[str, dict[str, Float64Array]]
    brier: Paired | None
    log: Paired | None
    verdict: Verdict
    n_rows: int
    n_strange: int


def class_lines(result: ClassResult) -> list[dict[str, Any]]:
    """One row for the likeliest class and one for each class: share of rows, bias of everybody, groups off, the worst.

    bias, low, high are in points.
    """
    lines = []
    for name, one in {TOP: result.top, **result.classes}.items():
        line: dict[str, Any] = {"class": name}
        for which, side in one.columns.items():
            groups = side.known_groups
            ranked = groups.ranked()
            worst = int(ranked[0]) if len(ranked) else None
            line[which] = {
                "came": None if side.scores is None else side.scores.base_rate,
                "bias": 100.0 * float(groups.mean[0]),
                "low": 100.0 * float(groups.low[0]),
                "high": 100.0 * float(groups.high[0]),
                "off": bool(groups.off[0]),
                "groups_off": groups.n_off,
                "groups": groups.n_used,
                "worst_group": None if worst is None else groups.name[worst],
                "worst_bias": None if worst is None else 100.0 * float(groups.mean[worst]),
                "swap_error": side.swap_error,
                "brier": side.loss,
                "auc": None if side.scores is None else side.scores.auc,
            }
        lines.append(line)
    return lines


def class_rows(result: ClassResult) -> list[dict[str, Any]]:
    """One row for each group: for the likeliest class and every class the bias in points with its interval.

    Everybody first, then by the evidence against the model's probability of its likeliest class.
    """
    rows = []
    tables = {name: {row["group"]: row for row in group_rows(one)} for name, one in result.classes.items()}
    for row in group_rows(result.top):
        place = {which: side.known_groups.name.index(row["group"]) for which, side in result.top.columns.items()}
        line: dict[str, Any] = {"group": row["group"], "rows": row["rows"], "unit": row["unit"]}
        for which in result.top.columns:
            if which in row:
                means = {name: float(values[place[which]]) for name, values in result.means[which].items()}
                of = {name: tables[name].get(row["group"], {}).get(which) for name in result.classes}
                line[which] = {TOP: row[which], "classes": of, **means}
        rows.append(line)
    return rows


def class_json(result: ClassResult) -> str:
    """The result as JSON text, all numbers as they are."""
    data = {
        "format": CLASS_FORMAT,
        "version": CLASS_VERSION,
        "verdict": result.verdict,
        "classes": class_lines(result),
        "group_table": class_rows(result),
        "brier_change": result.brier,
        "log_loss_change": result.log,
        "source": result.top.source,
        "rows_scored": result.top.n_rounds,
        "rows_without_outcome": result.top.n_missing,
        "rows_of_no_class": result.n_strange,
        "settings": result.top.settings,
        "versions": result.top.versions,
    }
    plain: dict[str, Any] = plain_data(data)
    return dumped(plain)


# --------
# What a run of intervals has found: plain data, from which the terminal, the page and the JSON text are made.

INTERVAL_FORMAT, INTERVAL_VERSION = "swapcal.intervals", 1


@dataclass(frozen=True, slots=True, eq=False)
class IntervalResult:
    """Intervals before and after.

    covered: the audit of coverage, as a `Result` whose property is a quantile at the level that was asked for and whose
    loss is the interval score. coverage: that level. widths, scores: for "before" and "after", the mean width and the
    mean interval score of each group, in the order of the groups.
    """

    covered: Result
    coverage: float
    widths: dict[str, Float64Array]
    scores: dict[str, Float64Array]


def interval_rows(result: IntervalResult) -> list[dict[str, Any]]:
    """One row for each group, everybody first, then by the evidence against the model: coverage, width, score.

    bias, low, high: coverage beyond what was asked for and its interval, in points.
    """
    rows = group_rows(result.covered)
    place = {
        which: {name: j for j, name in enumerate(side.known_groups.name)}
        for which, side in result.covered.columns.items()
    }
    for row in rows:
        for which in result.covered.columns:
            if which in row:
                j = place[which][row["group"]]
                row[which] |= {"width": float(result.widths[which][j]), "score": float(result.scores[which][j])}
    return rows


def interval_json(result: IntervalResult) -> str:
    """The result as JSON text, all numbers as they are."""
    covered, rows = result.covered, interval_rows(result)
    everybody = rows[0] if rows else {}
    data = {
        "format": INTERVAL_FORMAT,
        "version": INTERVAL_VERSION,
        "verdict": plain_data(covered.verdict),
        "coverage": result.coverage,
        "everybody": {which: everybody[which] for which in covered.columns if which in everybody},
        "groups_off": {which: side.known_groups.n_off for which, side in covered.columns.items()},
        "group_table": rows,
        "score_change": covered.paired,
        "source": covered.source,
        "rows_scored": covered.n_rounds,
        "rows_without_outcome": covered.n_missing,
        "settings": covered.settings,
        "versions": covered.versions,
    }
    plain: dict[str, Any] = plain_data(data)
    return dumped(plain)


# --------
# A threshold for a pipeline: what of a result may not be larger than what.


class Threshold(NamedTuple):
    """What is compared, and with what.

    bias: the largest bias of a group beyond doubt, which is the end of its interval nearest to 0; points for
    probabilities and quantiles, else units of the outcome. groups: how many groups are off. rms: the root mean square
    bias over all cells, in the units of a bias.
    """

    what: Literal["bias", "groups", "rms"]
    most: float


def parse_threshold(text: str) -> Threshold:
    """The threshold that `text` spells: 2, bias:2, groups:0 or rms:1.5.

    Examples
    --------
    >>> parse_threshold("2"), parse_threshold("groups:3")
    (Threshold(what='bias', most=2.0), Threshold(what='groups', most=3.0))
    """
    what, most = text.split(":", 1) if ":" in text else ("bias", text)
    try:
        value = float(most)
    except ValueError:
        value = -1.0
    known: dict[str, Literal["bias", "groups", "rms"]] = {"bias": "bias", "groups": "groups", "rms": "rms"}
    if not value >= 0.0 or what.strip() not in known:
        raise InvalidInput(
            f"--fail-above must be a number of points (or units of the outcome), such as 2, or groups:0, or rms:1.5; "
            f"got {text!r}"
        )
    return Threshold(known[what.strip()], value)


def above(result: Result, threshold: Threshold) -> str | None:
    """The sentence that says how the last column of forecasts is above the threshold; None if it is not."""
    side = result.after or result.before
    if side is None or side.groups is None:
        return None
    words, groups, limit = property_words(result.property), side.groups, f"above --fail-above {threshold.most:g}"
    if threshold.what == "groups":
        if groups.n_off <= threshold.most:
            return None
        verb = "is" if groups.n_off == 1 else "are"
        return f"{groups.n_off:,} of {counted(groups.n_used, 'group')} of {side.label} {verb} off beyond doubt, {limit}"
    if threshold.what == "rms":
        error = words.scale * per_round(side.swap_error, side, result.r)
        unit = f" {words.unit}" if words.unit else ""
        return (
            f"the root mean square bias of {side.label} is {number(error)}{unit}, {limit}"
            if error > threshold.most
            else None
        )
    near = np.abs(groups.near) * words.scale
    worst = int(np.argmax(near))
    if near[worst] <= threshold.most:
        return None
    said, least = words.bias(float(groups.mean[worst])), words.size(float(groups.near[worst]))
    return f"{side.label}, {group_name(groups.name[worst])}: {said}, by {least} at least, {limit}"


def versions() -> dict[str, str]:
    """Versions of what took part."""
    loaded = {"swapcal": __version__, "python": platform.python_version(), "numpy": np.__version__}
    for name in ("pyarrow", "narwhals"):
        if name in sys.modules:
            loaded[name] = str(getattr(sys.modules[name], "__version__", ""))
    return loaded

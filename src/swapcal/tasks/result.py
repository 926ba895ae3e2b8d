"""What an audit, a run or a comparison comes to: plain data, from which the terminal, the page and JSON are made."""

import builtins
import html
import json
import math
import platform
import re
import sys
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np

from swapcal.audits.discovery import Discovery
from swapcal.audits.groups import GroupBias
from swapcal.audits.scores import Paired
from swapcal.audits.summary import ColumnSummary
from swapcal.engine.lateness import Lateness
from swapcal.errors import DataError, InvalidInput, StateFileError
from swapcal.inputs import one_of
from swapcal.properties.base import Wording
from swapcal.protocols import Elicitable
from swapcal.tables.sources import frame_of
from swapcal.tasks.config import TaskConfig
from swapcal.text.numbers import counted, group_name, number
from swapcal.text.sentences import since_text
from swapcal.text.summary import summary
from swapcal.text.verdict import Verdict, per_round
from swapcal.typing import Float64Array
from swapcal.version import __version__


@dataclass(frozen=True, slots=True)
class Counts:
    """How many rows were scored, how many there are, and how many were left out or changed, for which reason.

    bad_rows: with a cell that is no number, or an outcome known before its row, where these are passed over. crossed:
    intervals of the model with the lower end above the upper. rescaled: rows whose probabilities did not add
    up to 1. keys: forecasters, where every key has its own.
    """

    scored: int
    rows: int
    without_outcome: int = 0
    without_forecast: int = 0
    without_hint: int = 0
    without_interval: int = 0
    bad_rows: int = 0
    of_no_class: int = 0
    outcomes_outside: int = 0
    forecasts_outside: int = 0
    weights_outside: int = 0
    crossed: int = 0
    rescaled: int = 0
    keys: int = 0


@dataclass(frozen=True, slots=True)
class Range:
    """The range of the outcomes, and in a clause where it comes from."""

    low: float
    high: float
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Clusters:
    """Rows that count together: those of one value of a column, or of one day of it."""

    column: str
    by_day: bool
    count: int


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What is promised: of the swap error, or of the rows by which the coverage of a group is off; and in words why.

    bound is None where nothing is promised.
    """

    bound: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Costs:
    """What those who act on the forecasts lose, in a sentence, and a row on average where both columns are there."""

    sentence: str
    before: float | None = None
    after: float | None = None


@dataclass(frozen=True, slots=True)
class LossDifference:
    """By group, the loss of a model less that of the first, on rows for which all models have a forecast.

    The intervals hold for all groups of this model together with 95 %, in the limit of many rows (or clusters of them);
    infinite for few.
    """

    mean: dict[str, float]
    low: dict[str, float]
    high: dict[str, float]

    def sure(self, group: str) -> int:
        """-1 if the model is significantly better than the first for this group, 1 if worse, else 0."""
        low, high = self.low.get(group, -np.inf), self.high.get(group, np.inf)
        return -1 if high < 0.0 else 1 if low > 0.0 else 0


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
class Section:
    """Forecasts of one thing: the one that a run or an audit is about, a class among others, or a model among others.

    title: the class or the model. before, after: a model's forecasts and swapcal's; either may be None. groups: names
    in the order of the columns of `ColumnSummary.bias`. binning: which forecasts were taken together, in a clause.
    means: for "before" and "after", further means of each group by name: width and score of intervals; right,
    confidence, brier and log_loss of the likeliest class. verdict, counts, difference: of a model that is compared.
    """

    title: str
    before: ColumnSummary | None
    after: ColumnSummary | None
    groups: tuple[str, ...]
    binning: str = ""
    history: History | None = None
    means: dict[str, dict[str, Float64Array]] = field(default_factory=dict)
    verdict: Verdict | None = None
    counts: Counts | None = None
    difference: LossDifference | None = None

    @property
    def columns(self) -> dict[str, ColumnSummary]:
        """The columns of forecasts there are, by "before" and "after"."""
        columns = {"before": self.before, "after": self.after}
        return {which: column for which, column in columns.items() if column is not None}

    @property
    def leading(self) -> ColumnSummary:
        """The model's own forecasts, by which groups are ordered; swapcal's where there is no model."""
        return next(iter(self.columns.values()))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Result:
    """Everything that is told of an audit, a run or of several models. It prints as the command does.

    Attributes
    ----------
    kind, task : str
        "audit", "run" or "comparison"; of one number ("scalar"), an "interval" or "classes".
    verdict : Verdict
        `kind` in a word, `headline` in a sentence, and `sentences` with what is behind it.
    source, y : str
        Where the rows come from, and the column of outcomes.
    property, wording : str, Wording
        What was forecast, as it prints, and how to speak of it.
    counts : Counts
        Rows that were scored, and those that were left out, for which reason.
    sections : tuple
        One; for classes the likeliest one ("top"), then each of them; one for each model that is compared.
    paired, against : dict
        Losses before and after on the same rows, by the name of the loss; in a comparison those of the first model and
        of another one, by its name. And those of a refit and of whatever else was asked about.
    lateness, guarantee : Lateness, Guarantee, optional
        How late outcomes were and what of a correction was shown; what is promised. Of a run.
    discovery, costs : Discovery, Costs, optional
        Subgroups that were found; what acting on the forecasts loses.
    r, range, bands, clusters, seed, jitter, stretches
        The power of the errors; the range of outcomes; where columns of numbers were cut into groups; which rows count
        together; the seed of the draws; over how much outcomes were spread; losses over time.
    config, versions, details
        What it takes to get the result again.
    data : frame
        The table with the new columns, of `sc.recalibrate`; `frame` gives it.

    Examples
    --------
    >>> import swapcal as sc
    >>> table = {"late": [0, 1, 1, 0] * 100, "score": [0.5, 0.8, 0.8, 0.5] * 100, "day": ["Mon", "Tue"] * 200}
    >>> result = sc.audit(table, "late", "score", "day")
    >>> result.verdict.kind, result.verdict.headline[:48]
    ('BIASED', 'Forecasts are too high by 15.0 points on average')
    >>> result.overall["rows"], list(result.by_group["group"])
    (400, ['all', 'day=Mon', 'day=Tue'])
    """

    kind: Literal["audit", "run", "comparison"]
    task: Literal["scalar", "interval", "classes"]
    source: str
    y: str
    property: str
    wording: Wording
    counts: Counts
    verdict: Verdict
    sections: tuple[Section, ...]
    config: TaskConfig
    versions: dict[str, str]
    r: float = 2.0
    range: Range | None = None
    bands: dict[str, tuple[float, ...]] = field(default_factory=dict)
    clusters: Clusters | None = None
    lateness: Lateness | None = None
    guarantee: Guarantee | None = None
    seed: int | None = None
    jitter: float = 0.0
    paired: dict[str, Paired] = field(default_factory=dict)
    costs: Costs | None = None
    discovery: Discovery | None = None
    against: dict[str, Paired] = field(default_factory=dict)
    stretches: dict[str, tuple[float, ...]] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    data: Any = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        return "\n".join(summary(self, fresh=False))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The summary, for a notebook."""
        return f"<pre>{html.escape(str(self))}</pre>"

    @classmethod
    def of(cls, config: TaskConfig, source: str, property: Elicitable, **own: Any) -> "Result":
        """A result of a run, with what follows from the question and the property; `own` goes before that."""
        usual: dict[str, Any] = {"kind": "run", "task": config.task, "y": config.y, "r": config.r, "config": config}
        usual |= {"property": repr(property), "wording": property.wording, "versions": versions()}
        return cls(source=source, **{**usual, **own})

    @builtins.property  # `property` is a field here
    def first(self) -> Section:
        """The section that comes first: the only one, the likeliest class, or the first model."""
        return self.sections[0]

    @builtins.property
    def before(self) -> ColumnSummary | None:
        """The model's forecasts in the first section."""
        return self.first.before

    @builtins.property
    def after(self) -> ColumnSummary | None:
        """The forecasts of swapcal in the first section."""
        return self.first.after

    @builtins.property
    def columns(self) -> dict[str, ColumnSummary]:
        """Those of the first section, by "before" and "after"."""
        return self.first.columns

    @builtins.property
    def change(self) -> Paired | None:
        """The loss before and after, where there are both."""
        return None if self.kind == "comparison" else next(iter(self.paired.values()), None)

    @builtins.property
    def settings(self) -> dict[str, Any]:
        """What was asked, as plain data."""
        return {**self.config.settings(), **self.details}

    @builtins.property
    def n_groups(self) -> int:
        """How many groups there are, besides that of all rows."""
        return len(self.first.groups) - 1

    @builtins.property
    def frame(self) -> Any:
        """The table with the new columns, of `sc.recalibrate`; else the groups, as `by_group`."""
        return self.by_group if self.data is None else self.data

    @builtins.property
    def by_group(self) -> Any:
        """A frame with a row for each group, all rows first and then the worst first."""
        rows = [_flat(row) for row in group_rows(self)]
        names = dict.fromkeys(name for row in rows for name in row)
        return frame_of({name: [row.get(name) for row in rows] for name in names})

    @builtins.property
    def overall(self) -> dict[str, Any]:
        """The row of all rows, by the names of the columns."""
        return _flat(group_rows(self)[0])

    def plot(self, kind: str = "groups", ax: Any = None, **options: Any) -> Any:
        """Draw a figure on `ax` or on new axes, and return them.

        Parameters
        ----------
        kind : str
            "groups": bias by group, before and after. "reliability": predicted and observed, of all rows and the worst
            groups, or of `group=` alone. "time": bias or coverage over time. "loss": loss of the model, of swapcal and
            of a refit over time.
        ax : matplotlib.axes.Axes, optional
            Where to draw.
        **options
            Whatever else the figure takes, such as `group=` or `most=`.

        Returns
        -------
        matplotlib.axes.Axes
            A notebook shows new ones as a picture.
        """
        import swapcal.report.figures as figures

        diagrams = figures.reliability if "group" in options else figures.reliability_of_groups
        kinds: dict[str, Any] = {"groups": figures.bias_by_group, "reliability": diagrams}
        kinds |= {"time": figures.bias_over_time, "loss": figures.loss_over_time}
        one_of(kind, "kind", tuple(kinds))
        return kinds[kind](self, **options)(ax)

    def to_html(self, path: str | Path) -> Path:
        """Write the page, which opens without a network, and return its path."""
        import swapcal.report.page as page

        return page.write(self, Path(path))


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """Nested columns beside each other; of a single side without its name."""
    nested = [name for name, value in row.items() if isinstance(value, dict)]
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if not isinstance(value, dict):
            flat[name] = value
            continue
        lead = "" if len(nested) == 1 and name != "sections" else f"{name}_"
        flat |= {f"{lead}{key}".removeprefix("sections_"): each for key, each in _flat(value).items()}
    return flat


def versions() -> dict[str, str]:
    """Versions of what took part."""
    loaded = {"swapcal": __version__, "python": platform.python_version(), "numpy": np.__version__}
    for name in ("pyarrow", "narwhals"):
        if name in sys.modules:
            loaded[name] = str(getattr(sys.modules[name], "__version__", ""))
    return loaded


# --------
# Tables in the units that people read, for the terminal, the page and JSON: a row a group, and a row a section.


def group_rows(result: Result) -> list[dict[str, Any]]:
    """One row for each group with rows: all rows first, then the worst first.

    "before" and "after" hold bias, low and high in `unit`: points for probabilities and quantiles, else the unit of the
    outcome; `off`, whether it is biased; `since` when, if not from the start; and the further means of the
    section. Of quantiles and intervals there is `coverage`. Where there are several sections, a row has these under
    "sections" by their titles; those of further models hold the difference of the loss from the first model's.
    """
    sections = {section.title: section for section in result.sections}
    tables = {title: _groups_of(section, result.wording) for title, section in sections.items()}
    names = _by_worst(result) if result.kind == "comparison" else list(next(iter(tables.values())))
    rows = []
    for name in names:
        sides = {title: table[name] for title, table in tables.items() if name in table}
        n_rows = next(iter(sides.values())).pop("rows")
        for each in sides.values():
            each.pop("rows", None)
        own = {"sections": sides} if len(sections) > 1 else sides[result.first.title]
        rows.append({"group": name, "rows": n_rows, "unit": result.wording.unit or "outcome", **own})
    return rows


def _groups_of(section: Section, wording: Wording) -> dict[str, dict[str, Any]]:
    """Of each group with rows, by name, the worst of the leading column first: rows, and the numbers of each side."""
    table: dict[str, dict[str, Any]] = {}
    for j in [0, *section.leading.groups.ranked().tolist()]:
        for which, side in section.columns.items():
            groups = side.groups
            if j >= len(groups.name) or not groups.rows[j] > 0:
                continue
            name = groups.name[j]
            row = table.setdefault(name, {"rows": int(groups.rows[j])})
            row[which] = _bias(groups, j, wording)
            since = since_text(side, name)
            if since:
                row[which]["since"] = since.removeprefix("since ")
            row[which] |= {each: float(values[j]) for each, values in section.means.get(which, {}).items()}
            difference = section.difference
            if difference is not None and name in difference.mean:
                parts = {"loss": difference.mean, "loss_low": difference.low, "loss_high": difference.high}
                row[which] |= {each: values[name] for each, values in parts.items()}
    return table


def _bias(groups: GroupBias, j: int, wording: Wording) -> dict[str, Any]:
    numbers = {each: wording.scale * float(getattr(groups, each)[j]) for each in ("mean", "low", "high")}
    bias = {"bias": numbers.pop("mean"), **numbers, "off": bool(groups.biased[j])}
    return bias if wording.coverage is None else {"coverage": wording.coverage + float(groups.mean[j]), **bias}


def _by_worst(result: Result) -> list[str]:
    """Names of groups, all rows first, then those where some model is biased most."""
    rank: dict[str, tuple[float, float, float]] = {}
    for section in result.sections:
        groups = section.leading.groups
        for j in np.flatnonzero(groups.rows > 0).tolist():
            old = rank.get(groups.name[j], (0.0, 0.0, -np.inf))
            new = float(groups.biased[j]), float(abs(groups.near[j])), float(groups.evidence[j])
            rank[groups.name[j]] = (max(old[0], new[0]), max(old[1], new[1]), max(old[2], new[2]))
    rest = sorted((name for name in rank if name != "all"), key=lambda name: rank[name], reverse=True)
    return [name for name in ("all", *rest) if name in rank]


def section_rows(result: Result) -> list[dict[str, Any]]:
    """One row for each section: of every side the bias of all rows, groups off, the worst group, errors and scores."""
    scale, rows = result.wording.scale, []
    for section in result.sections:
        row: dict[str, Any] = {"title": section.title}
        if section.verdict is not None:
            row |= {"verdict": section.verdict.kind, "headline": section.verdict.headline}
        for which, side in section.columns.items():
            groups, scores, ranked = side.groups, side.scores, side.groups.ranked()
            worst = int(ranked[0]) if len(ranked) else None
            row[which] = {
                **_bias(groups, 0, result.wording),
                "groups_off": groups.n_biased,
                "groups": groups.n_used,
                "worst_group": None if worst is None else groups.name[worst],
                "worst_bias": None if worst is None else scale * float(groups.mean[worst]),
                "swap_error": side.swap_error,
                "loss": side.loss,
                "base_rate": None if scores is None else scores.base_rate,
                "log_loss": None if scores is None else scores.log_loss,
                "auc": None if scores is None else scores.auc,
            }
        rows.append(row)
    return rows


# --------
# Results as JSON text: what `--json` prints, and what `swapcal report` reads.

FORMAT = "swapcal.result"
VERSION = 4
_PRINTED = "give what swapcal audit or swapcal run printed with --json"

# Characters that JSON allows as they are, and that steer a terminal or are no text; only strings can hold them.
_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def to_json(result: Result) -> str:
    """The result as JSON text, all numbers as they are; what is not a number (empty cells) becomes null.

    First the verdict and the tables in the units that people read, then what they were made from.
    """
    tables = {"verdict": result.verdict, "group_table": group_rows(result), "section_table": section_rows(result)}
    parts = _plain(replace(result, data=None)) | {"config": _plain(result.settings)}
    del parts["details"], parts["data"]
    data = {"format": FORMAT, "version": VERSION, "result": {**_plain(tables), **parts}}
    text = json.dumps(data, allow_nan=False, ensure_ascii=False)
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _plain(value: Any) -> Any:
    """JSON types only, null for what is not a number."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (str, int, float)) else str(value)


def from_json(text: str | bytes, name: str = "the text") -> Result:
    """Rebuild what `to_json` wrote; `name` stands for it in messages."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise DataError(f"{name} is not JSON; {_PRINTED}") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT or not isinstance(data.get("result"), dict):
        raise DataError(f"{name} is no result of swapcal; {_PRINTED}")
    if data.get("version") != VERSION:
        versions = f"{name} has version {data.get('version')!r}, and this swapcal reads version {VERSION}"
        raise DataError(f"{versions}; print the result again, or upgrade")
    try:
        asked = {each.name for each in fields(TaskConfig)}
        config = data["result"]["config"]
        details = {name: value for name, value in config.items() if name not in asked}
        result: Result = _built(Result, {**data["result"], "details": details})
        _check(result)
        return result
    except (AttributeError, KeyError, StateFileError, TypeError, ValueError, OverflowError):
        what = f"{name} is damaged: a part of the result is missing or of the wrong kind"
        raise DataError(f"{what}; print it again") from None


def read_result(path: str | Path) -> Result:
    """The result in a file, or on standard input if the path is "-"."""
    if str(path) == "-":
        return from_json(sys.stdin.buffer.read(), "standard input")
    try:
        return from_json(Path(path).read_bytes(), str(path))
    except FileNotFoundError:
        raise DataError(f"there is no file {path}; {_PRINTED}") from None


def _built(kind: Any, data: Any) -> Any:
    """An object of the annotated type `kind` from plain data; a null among numbers is one that is not known (NaN)."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is TaskConfig:
        return TaskConfig.from_settings(_expected(data, isinstance(data, dict)))
    if origin in (Union, UnionType):
        return None if data is None else _built(next(each for each in arguments if each is not NoneType), data)
    if origin is Literal:
        return _expected(data, data in arguments)
    if origin is np.ndarray:
        array = np.array(_expected(data, isinstance(data, list)), dtype=object)
        return np.where(array == None, np.nan, array).astype(np.float64)  # noqa: E711
    if origin is tuple:
        parts = _expected(data, isinstance(data, list))
        if arguments[1:] == (...,):
            return tuple(_built(arguments[0], each) for each in parts)
        return tuple(_built(each, part) for each, part in zip(arguments, parts, strict=True))
    if origin is dict:
        return {name: _built(arguments[1], each) for name, each in _expected(data, isinstance(data, dict)).items()}
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        return _object(kind, _expected(data, isinstance(data, dict)))
    if kind is float:
        return math.nan if data is None else float(_expected(data, isinstance(data, int | float)))
    return data if kind is Any else _expected(data, isinstance(data, kind))


def _object(kind: Any, data: Mapping[str, Any]) -> Any:
    """A dataclass or named tuple; fields with a default may be absent."""
    hints = get_type_hints(kind)
    optional = set(kind._field_defaults) if hasattr(kind, "_fields") else set()
    if not hasattr(kind, "_fields"):
        optional = {e.name for e in fields(kind) if e.default is not MISSING or e.default_factory is not MISSING}
    names = [name for name in hints if name in data or name not in optional]
    return kind(**{name: _built(hints[name], data[name]) for name in names})


def _expected(data: Any, fits: bool) -> Any:
    if not fits:
        raise TypeError
    return data


def _check(result: Result) -> None:
    """Refuse shapes that do not fit each other."""
    for column in (side for section in result.sections for side in section.columns.values()):
        shape = column.bias.shape
        if len(shape) != 2 or shape != column.counts.shape or len(column.edges) != shape[0] + 1:
            raise ValueError
        for name in ("rows", "weight", "mean", "low", "high", "error"):
            groups = column.groups
            if groups is not None and getattr(groups, name).shape != (len(groups.name),):
                raise ValueError
    if not result.sections or not all(section.columns for section in result.sections):
        raise ValueError


# --------
# A threshold for a pipeline: what of a result may not be larger than what.


class Threshold(NamedTuple):
    """What is compared, and with what.

    bias: the largest significant bias of a group, which is the end of its interval nearest to 0; points for
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
        forms = "a number of points (or units of the outcome), such as 2, or groups:0, or rms:1.5"
        raise InvalidInput(f"--fail-above must be {forms}; got {text!r}")
    return Threshold(known[what.strip()], value)


def above(result: Result, threshold: Threshold, section: Section | None = None) -> str | None:
    """How the last column of a section, the first unless given, is above the threshold; None if it is not."""
    side, words = list((section or result.first).columns.values())[-1], result.wording
    groups, limit = side.groups, f"above --fail-above {threshold.most:g}"
    if threshold.what == "groups":
        n = groups.n_biased
        if n <= threshold.most:
            return None
        verb = "is" if n == 1 else "are"
        return f"{n:,} of {counted(groups.n_used, 'group')} of {side.label} {verb} biased, {limit}"
    if threshold.what == "rms":
        error = words.scale * per_round(side.swap_error, side, result.r)
        unit = f" {words.unit}" if words.unit else ""
        sentence = f"the root mean square bias of {side.label} is {number(error)}{unit}, {limit}"
        return sentence if error > threshold.most else None
    near = np.abs(groups.near) * words.scale
    worst = int(np.argmax(near))
    if near[worst] <= threshold.most:
        return None
    bias, least = words.bias(float(groups.mean[worst])), words.size(float(groups.near[worst]))
    return f"{side.label}, {group_name(groups.name[worst])}: {bias}, by {least} at least, {limit}"

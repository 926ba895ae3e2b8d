"""The worst groups: a dot and an interval each, before and after."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from swapcal.audits.audit import MEAN
from swapcal.audits.groups import GroupBias
from swapcal.audits.histograms import Curve
from swapcal.audits.scores import Paired
from swapcal.audits.summary import ColumnSummary
from swapcal.audits.timeline import GroupHistory
from swapcal.errors import InvalidInput, MissingExtra
from swapcal.protocols import Elicitable
from swapcal.report.drawing import (
    LIGHT,
    N_STEPS,
    SMALL,
    axes_or_new,
    bin_places,
    dress,
    legend,
    note,
    plain_text,
    side_label,
    step,
    step_role,
    thousands,
)
from swapcal.tasks.result import History, Result
from swapcal.text.numbers import (
    MINUS,
    capitalized,
    count,
    counted,
    group_name,
    number,
    percent,
    precise,
    readable,
    relative,
)
from swapcal.text.property_words import NamedProperty, property_words
from swapcal.text.sentences import since_text
from swapcal.typing import Float64Array, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# --------
# The numbers behind a figure as a data frame of whichever library is there.

BACKENDS = ("pandas", "polars", "pyarrow")
"""Libraries that can hold a frame, in the order in which they are looked for."""


def frame(columns: Mapping[str, Sequence[Any]], backend: str | None = None) -> Any:
    """`columns` as a frame of `backend`: "pandas", "polars" or "pyarrow"; None takes the first that is installed."""
    if backend is not None and backend not in BACKENDS:
        raise InvalidInput(
            f"backend must be one of {', '.join(BACKENDS)}, or None for whichever is there; got {backend!r}"
        )
    if find_spec("narwhals") is None:
        raise MissingExtra("frames need narwhals: install with  pip install 'swapcal[report]'")
    installed = [name for name in BACKENDS if find_spec(name) is not None]
    chosen = backend if backend is not None else next(iter(installed), None)
    if chosen is None:
        raise MissingExtra(f"frames need one of {', '.join(BACKENDS)}: install with  pip install pandas")
    if chosen not in installed:
        raise MissingExtra(f"{chosen} is not installed: install with  pip install {chosen}, or give another backend")
    import narwhals as nw

    return nw.from_dict(dict(columns), backend=cast(Literal["pandas", "polars", "pyarrow"], chosen)).to_native()


# --------
# Bias of everybody and of the worst groups as the stream went by.

N_POINTS = 12
N_GROUPS = 2
_STYLES = ("-", (0, (5, 2)), (0, (1, 1.5)))


@dataclass(frozen=True, slots=True, eq=False)
class BiasOverTime:
    """Mean bias of everybody and of the two worst groups in about twelve stretches of the stream, one after the other.

    Parameters
    ----------
    side
        One column of forecasts.
    property
        What is forecast.
    """

    side: ColumnSummary
    property: Elicitable | NamedProperty = MEAN

    @classmethod
    def of(cls, result: Result) -> "BiasOverTime":
        """Of the model's own forecasts, or swapcal's where there is no model."""
        side = result.before if result.before is not None else result.after
        assert side is not None
        return cls(side, result.property)

    def lines(self) -> dict[str, tuple[Float64Array, Float64Array]]:
        """Rows so far at the middle of each stretch, and the bias there in units that people read, by group."""
        words = property_words(self.property)
        found = {}
        for name, history in list((self.side.histories or {}).items())[: N_GROUPS + 1]:
            at, mean = _stretches(history)
            found[name] = (at, words.scale * mean)
        return found

    def frame(self, backend: str | None = None) -> Any:
        """One row for each group and stretch: group, rows so far at its middle, bias."""
        columns: dict[str, list[Any]] = {"group": [], "rows": [], "bias": []}
        for name, (at, mean) in self.lines().items():
            columns["group"] += [name] * len(at)
            columns["rows"] += at.tolist()
            columns["bias"] += mean.tolist()
        return frame(columns, backend)

    def finding(self) -> str:
        """What the figure shows, in a sentence."""
        told = []
        words = property_words(self.property)
        for name, (_, mean) in self.lines().items():
            known = mean[np.isfinite(mean)] / words.scale
            if len(known):
                since = since_text(self.side, name)
                told.append(
                    f"{readable(group_name(name))} from {words.bias(float(known[0]))} to {words.bias(float(known[-1]))}"
                    + (f", off {since}" if since else "")
                )
        return f"Bias from the first rows to the last: {'; '.join(told)}." if told else "Nothing was recorded."

    def __call__(self, ax: "Axes | None" = None) -> "Axes":
        """Draw on `ax`, or on new axes, and return them."""
        ax = axes_or_new(ax, height=3.6)
        words, lines = property_words(self.property), self.lines()
        dress(ax, "time" if any(self.side.times) else "rows", words.axis(), grid="y", pad=56.0)
        if not lines:
            note(ax, "nothing was recorded")
            return ax
        ax.axhline(0.0, color=LIGHT["reference"], linewidth=1.2)
        for (name, (at, mean)), style in zip(lines.items(), _STYLES, strict=False):
            color = LIGHT["muted"] if name == "all" else LIGHT["before"]
            label = plain_text(group_name(name), 30)
            ax.plot(at, mean, color=color, linewidth=1.8, linestyle=style, marker="o", markersize=3.2, label=label)
        legend(ax, "lower left", bbox_to_anchor=(-0.03, 1.0), ncols=1, borderaxespad=0.0)
        self._ticks(ax)
        ax.yaxis.set_major_formatter(thousands)
        return ax

    def _ticks(self, ax: "Axes") -> None:
        """Times where they are known, else numbers of rows."""
        history = next(iter((self.side.histories or {}).values()))
        if not any(self.side.times):
            ax.xaxis.set_major_formatter(thousands)
            ax.locator_params(axis="x", nbins=4)
            return
        n = min(len(self.side.times), len(history.start))
        chosen = np.unique(np.linspace(0, n - 1, 3).round().astype(int))
        texts = [plain_text(self.side.times[k] or count(float(history.start[k])), 12) for k in chosen]
        ax.set_xticks(history.start[chosen], texts)


def _stretches(history: GroupHistory) -> tuple[Float64Array, Float64Array]:
    """The blocks taken together, up to about twelve that hold rows."""
    n = len(history.start)
    step = max(1, -(-n // N_POINTS))
    cuts = np.arange(0, n, step)
    weight, total = np.add.reduceat(history.weight, cuts), np.add.reduceat(history.total, cuts)
    width = history.start[1] - history.start[0] if n > 1 else 1.0
    at = history.start[cuts] + width * np.minimum(step, n - cuts) / 2
    mean = np.divide(total, weight, out=np.full(len(cuts), np.nan), where=weight > 0)
    return at, mean


# --------
# The reliability diagram: what was forecast against what came.

_MARKERS = {"before": "s", "after": "o"}
FEW = 30
"""Cells with fewer rows than this are drawn faint or small: their bias is mostly chance."""

_FLOOR = 0.16
"""Share of the diagram's height, at the bottom, for the bars of counts."""


@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """What was forecast against the property of what came, by bins of forecasts, for one group.

    On the diagonal forecasts are right on average; below it they were too high. Vertical lines are intervals that hold
    for all bins together; bars at the bottom are rows.

    Parameters
    ----------
    before, after
        The model's own forecasts, and swapcal's; either may be None.
    group
        Name of the group; "all" is everybody.
    property
        What is forecast.

    Examples
    --------
    >>> Reliability(None, None)
    Traceback (most recent call last):
    ...
    swapcal.errors.InvalidInput: a reliability diagram needs forecasts before or after; both are None
    """

    before: ColumnSummary | None
    after: ColumnSummary | None
    group: str = "all"
    property: Elicitable | NamedProperty = MEAN

    def __post_init__(self) -> None:
        if self.before is None and self.after is None:
            raise InvalidInput("a reliability diagram needs forecasts before or after; both are None")
        if not any(self.group in side.curves for side in (self.before, self.after) if side is not None):
            known = next(side for side in (self.before, self.after) if side is not None).curves
            some = ", ".join(repr(name) for name in list(known)[:5])
            raise InvalidInput(f"there is no curve for the group {self.group!r}; some that have one: {some}")

    @classmethod
    def of(cls, result: Result, group: str = "all") -> "Reliability":
        """The diagram of one group of a result."""
        return cls(result.before, result.after, group, result.property)

    def curves(self) -> list[tuple[str, str, Curve]]:
        """("before" or "after", the side's label, its curve), where there is one."""
        sides = (("before", self.before), ("after", self.after))
        return [(w, s.label, s.curves[self.group]) for w, s in sides if s is not None and self.group in s.curves]

    def frame(self, backend: str | None = None) -> Any:
        """The points: side, group, forecast, outcome, low, high, count."""
        columns: dict[str, list[Any]] = {
            k: [] for k in ("side", "group", "forecast", "outcome", "low", "high", "count")
        }
        for which, _, curve in self.curves():
            n = len(curve.forecast)
            columns["side"] += [which] * n
            columns["group"] += [self.group] * n
            for name in ("forecast", "outcome", "low", "high", "count"):
                columns[name] += np.asarray(getattr(curve, name), dtype=np.float64).tolist()
        return frame(columns, backend)

    def finding(self) -> str:
        """What the diagram shows, in a sentence."""
        words = property_words(self.property)
        parts = []
        drawn = self.curves()
        for side, label, curve in drawn:
            which = side if len(drawn) > 1 else label or side
            far = np.abs(curve.forecast - curve.outcome)
            if not np.isfinite(far).any():
                parts.append(f"{which}: no forecasts")
                continue
            at = int(np.nanargmax(np.where(curve.count >= min(float(FEW), float(curve.count.max())), far, np.nan)))
            off = int(np.sum((curve.forecast < curve.low) | (curve.forecast > curve.high)))
            n = int(np.isfinite(far).sum())
            verb = "bin is" if n == 1 else "bins are"
            parts.append(
                f"{which}: {off} of {n} {verb} off the diagonal beyond chance; farthest where "
                f"{number(float(curve.forecast[at]))} was forecast and {number(float(curve.outcome[at]))} came "
                f"({counted(float(curve.count[at]))})"
            )
        return (
            f"Reliability of the {words.name} for {group_name(self.group)}. "
            + ". ".join(p[0].upper() + p[1:] for p in parts)
            + "."
        )

    def __call__(self, ax: "Axes | None" = None) -> "Axes":
        """Draw on `ax`, or on new axes, and return them."""
        ax = axes_or_new(ax, height=4.3)
        words = property_words(self.property)
        drawn = self.curves()
        finite = [(which, label, _finite(curve)) for which, label, curve in drawn]
        values = [v for _, _, c in finite for v in (c.forecast, c.outcome)]
        everything = np.concatenate(values) if values else np.zeros(0)
        dress(ax, f"forecast: {words.name}", words.outcome)
        if not len(everything):
            note(ax, "nothing was forecast for this group")
            return ax
        low, high = _limits(everything, words.domain)
        shape = _shape(finite, low, high)
        floor = shape.inverse(-_FLOOR)
        shape.apply(ax)
        ax.plot(
            [low, high], [low, high], color=LIGHT["reference"], linewidth=1.0, linestyle=(0, (4, 3)), gid="diagonal"
        )
        self._bars(ax, finite, shape)
        for which, label, curve in finite:
            _points(ax, which, side_label(which, label, len(finite) == 1, 22), curve, low, high)
        margin = 0.02 * (high - low)
        ax.set_xlim(shape.inverse(-0.02), high + margin)
        ax.set_ylim(floor, high + margin)
        if shape.bent:
            ax.set_xticks(shape.ticks())
            ax.set_yticks(shape.ticks())
        else:
            ax.set_yticks([tick for tick in ax.get_yticks() if low - margin <= tick <= high + margin])
        ax.xaxis.set_major_formatter(thousands)
        ax.yaxis.set_major_formatter(thousands)
        legend(ax, "upper left")
        return ax

    def _bars(self, ax: "Axes", curves: list[tuple[str, str, Curve]], shape: "_Shape") -> None:
        """Rows by forecast, along the bottom: before a little to the left of the bin's mean, after to the right."""
        most = max(float(curve.count.max()) for _, _, curve in curves if len(curve.count))
        floor, width = shape.inverse(-_FLOOR), 0.0 if shape.bent else 0.008 * (shape.high - shape.low)
        for which, _, curve in curves:
            shift = (-0.6 if which == "before" else 0.6) * width if len(curves) > 1 else 0.0
            tops = [shape.inverse(-_FLOOR + 0.8 * _FLOOR * rows / most) for rows in curve.count.tolist()]
            ax.vlines(curve.forecast + shift, floor, tops, color=LIGHT[which], linewidth=2.6, alpha=0.6, gid=which)
        ax.annotate(
            f"bars: rows, at most {count(most)} in a bin",
            (0.5, 0.0),
            xycoords="axes fraction",
            xytext=(0.0, -37.0),
            textcoords="offset points",
            ha="center",
            va="top",
            fontsize=SMALL - 0.5,
            color=LIGHT["muted"],
        )


@dataclass(frozen=True, slots=True)
class _Shape:
    """The scale of both axes: straight, or the square root of the distance from `low` where most forecasts are small.

    Below `low`, where the bars stand, it goes on with the same shape downward.
    """

    low: float
    high: float
    bent: bool

    def forward(self, values: Any) -> Any:
        """Values as shares of the way from low to high, on the page."""
        share = (np.asarray(values, dtype=np.float64) - self.low) / (self.high - self.low)
        return np.sign(share) * np.sqrt(np.abs(share)) if self.bent else share

    def backward(self, places: Any) -> Any:
        """The values at these shares of the way."""
        share = np.asarray(places, dtype=np.float64)
        return self.low + (self.high - self.low) * (np.sign(share) * share**2 if self.bent else share)

    def inverse(self, place: float) -> float:
        """The value at one share of the way."""
        return float(self.backward(place))

    def apply(self, ax: "Axes") -> None:
        if self.bent:
            for axis in (ax.set_xscale, ax.set_yscale):
                axis("function", functions=(self.forward, self.backward))

    def ticks(self) -> list[float]:
        """Round numbers from low to high, denser where they are small."""
        width = self.high - self.low
        unit = 10.0 ** np.floor(np.log10(width))
        steps = [s * unit / f for f in (1000.0, 100.0, 10.0, 1.0) for s in (1.0, 2.0, 5.0)]
        kept = [self.low]
        for size in [s for s in steps if s <= 1.0001 * width]:
            if float(self.forward(self.low + size) - self.forward(kept[-1])) > 0.14:
                kept.append(self.low + size)
        return kept


def _shape(curves: list[tuple[str, str, Curve]], low: float, high: float) -> _Shape:
    """Bent where half of the rows lie in the lowest eighth of the diagram."""
    forecast = np.concatenate([curve.forecast for _, _, curve in curves])
    count = np.concatenate([curve.count for _, _, curve in curves])
    small = float(count[forecast < low + (high - low) / 8].sum())
    return _Shape(low, high, bool(high > low and 2.0 * small > float(count.sum())))


def _points(ax: "Axes", which: str, label: str, curve: Curve, low: float, high: float) -> None:
    """Points, joined where rows are enough to say something; the others are faint, as they are mostly chance."""
    enough = curve.count >= FEW
    common: dict[str, Any] = {"color": LIGHT[which], "marker": _MARKERS[which], "markersize": 4.6, "gid": which}
    common |= {"markerfacecolor": LIGHT["paper"] if which == "before" else LIGHT[which], "markeredgewidth": 1.3}
    for keep, strength in ((~enough, 0.3), (enough, 1.0)):
        x, bottom, top = curve.forecast[keep], np.clip(curve.low[keep], low, high), np.clip(curve.high[keep], low, high)
        if len(x):
            ax.vlines(x, bottom, top, color=LIGHT[which], linewidth=1.2, alpha=0.55 * strength, gid=which)
    ax.plot(curve.forecast[enough], curve.outcome[enough], linewidth=1.3, label=label, **common)
    if not enough.all():
        ax.plot(curve.forecast[~enough], curve.outcome[~enough], linestyle="none", alpha=0.4, **common)


def _finite(curve: Curve) -> Curve:
    keep = np.isfinite(curve.forecast) & np.isfinite(curve.outcome)
    low, high = (np.where(np.isfinite(v), v, curve.outcome) for v in (curve.low, curve.high))
    return Curve(*(np.asarray(v)[keep] for v in (curve.forecast, curve.outcome, low, high, curve.count)))


def _limits(values: Any, domain: tuple[float, float] | None) -> tuple[float, float]:
    """The part of the domain that forecasts and outcomes fill, and a little more; never empty."""
    low, high = float(values.min()), float(values.max())
    if domain is None:
        domain = (low - 0.5, high + 0.5) if low == high else (low, high)
    width = domain[1] - domain[0]
    if high - low > 0.6 * width:
        return domain
    room = max(0.08 * (high - low), 0.03 * width)
    return max(domain[0], low - room), min(domain[1], high + room)


# --------
# The heat map of cells: bias by bins of forecasts and groups, to see at a glance where it is.


@dataclass(frozen=True, slots=True, eq=False)
class CellMap:
    """The mean identification of every cell (bin of forecasts, group) of one column of forecasts.

    Green: forecasts were too high; purple: too low; no square: nothing was forecast there; a small square: fewer than
    30 rows. Groups with the largest error come first, after "all".

    Parameters
    ----------
    side
        The column of forecasts.
    groups
        Names in the order of the columns of `side.bias`.
    property
        What is forecast.
    limit
        At most this many groups are drawn; `frame` holds all of them.
    """

    side: ColumnSummary
    groups: tuple[str, ...]
    property: Elicitable | NamedProperty = MEAN
    limit: int = 30

    @classmethod
    def of(cls, result: Result, which: str = "after", limit: int = 30) -> "CellMap":
        """The map of one side of a result: "before" or "after"."""
        side = result.columns.get(which)
        if side is None:
            raise InvalidInput(f"this result has no forecasts {which!r}; a map can be of 'before' or 'after'")
        return cls(side, result.groups, result.property, limit)

    def order(self) -> IntArray:
        """Positions of the groups that are drawn: "all" first, then the worst first, then linear functions."""
        groups = self.side.known_groups
        linear = range(len(groups.name), len(self.groups))
        return np.array([0, *groups.ranked().tolist(), *linear], dtype=np.int64)[: self.limit]

    def scale(self) -> float:
        """The bias at which colors end: the 0.98 quantile over cells with enough rows, as one cell must not decide."""
        size = np.abs(self.side.bias[np.isfinite(self.side.bias) & (self.side.counts >= FEW)])
        if not len(size):
            size = np.abs(self.side.bias[np.isfinite(self.side.bias)])
        return max(float(np.quantile(size, 0.98)), 1e-9) if len(size) else 1.0

    def frame(self, backend: str | None = None) -> Any:
        """The cells that hold rows: group, low and high end of the bin, bias (mean identification), count."""
        bins, groups = np.nonzero(np.isfinite(self.side.bias) & (self.side.counts > 0))
        columns = {
            "group": [self.groups[j] for j in groups],
            "low": self.side.edges[bins].tolist(),
            "high": self.side.edges[bins + 1].tolist(),
            "bias": self.side.bias[bins, groups].tolist(),
            "count": self.side.counts[bins, groups].tolist(),
        }
        return frame(columns, backend)

    def finding(self) -> str:
        """What the map shows, in a sentence."""
        words, side = property_words(self.property), self.side
        enough = np.isfinite(side.bias) & (side.counts >= FEW)
        if not enough.any():
            return f"Bias by forecast and group, {side.label}: no cell has {FEW} rows or more."
        at = np.unravel_index(int(np.argmax(np.where(enough, np.abs(side.bias), -1.0))), side.bias.shape)
        low, high = number(float(side.edges[at[0]])), number(float(side.edges[at[0] + 1]))
        where = (
            f"{group_name(self.groups[at[1]])} where {low} to {high} was forecast: {words.bias(float(side.bias[at]))}"
        )
        return (
            f"Bias by forecast and group, {side.label}: among cells with {FEW} rows or more "
            f"({count(float(enough.sum()))}), the largest bias is for {where}."
        )

    def __call__(self, ax: "Axes | None" = None) -> "Axes":
        """Draw on `ax`, or on new axes, and return them."""
        order = self.order()
        ax = axes_or_new(ax, height=1.5 + 0.24 * max(4, len(order)))
        words, side, scale = property_words(self.property), self.side, self.scale()
        dress(ax, f"forecast: {words.name}", "group", grid="none", pad=24.0)
        if not len(order):
            note(ax, "there are no groups")
            return ax
        from matplotlib.collections import PolyCollection

        squares, colors = [], []
        places, write_places = bin_places(side.edges)
        for row, j in enumerate(order):
            for i in np.nonzero(np.isfinite(side.bias[:, j]) & (side.counts[:, j] > 0))[0]:
                left, right = float(places[i]), float(places[i + 1])
                # A small square keeps its center.
                gap, inset = (0.46, 0.27) if side.counts[i, j] < FEW else (0.04, 0.46)
                pad = 0.5 * gap * (right - left)
                x, y = (left + pad, right - pad), (row - inset, row + inset)
                squares.append([(x[0], y[0]), (x[1], y[0]), (x[1], y[1]), (x[0], y[1])])
                colors.append(LIGHT[step_role(step(float(side.bias[i, j]), scale))])
        ax.add_collection(PolyCollection(squares, facecolors=colors, edgecolors="none"), autolim=False)
        ax.set_xlim(float(places[0]), float(places[-1]))
        ax.set_ylim(len(order) - 0.5, -0.5)
        ax.set_yticks(range(len(order)), [plain_text(group_name(self.groups[j])) for j in order], fontsize=SMALL)
        write_places(ax)
        self._key(ax, scale)
        return ax

    def _key(self, ax: "Axes", scale: float) -> None:
        """Shades and what they stand for, above the map."""
        words = property_words(self.property)
        end = f"{number(scale * words.scale, 2)} {words.unit}".strip()
        shades = range(-N_STEPS, N_STEPS + 1)
        marks = [(0.35, f"{MINUS}{end}", "right", LIGHT["muted"]), (0.69, f"+{end}", "left", LIGHT["muted"])]
        marks += [(0.52 + 0.15 * k / N_STEPS, "■", "center", LIGHT[step_role(k)]) for k in shades]
        for place, text, align, color in marks:
            ax.annotate(
                text,
                (place, 1.0),
                xycoords="axes fraction",
                xytext=(0, 8),
                textcoords="offset points",
                ha=align,
                fontsize=SMALL,
                color=color,
            )


# --------
# Error as the stream went by, against the guarantee and T^(1/3).


@dataclass(frozen=True, slots=True, eq=False)
class ErrorOverTime:
    """Swap error against rows so far, both on logarithmic scales, with the guarantee and the rate T^(1/3) beside it.

    Parameters
    ----------
    history
        The errors by rows so far.
    """

    history: History

    @classmethod
    def of(cls, result: Result) -> "ErrorOverTime":
        """The history of a result that has one."""
        if result.history is None:
            raise InvalidInput("this result has no history; errors over time come from a run, or an audit that kept it")
        return cls(result.history)

    def lines(self) -> dict[str, Float64Array]:
        """Errors by name: before, after, guarantee (where there is one) and rate, which is T^(1/3)."""
        known = {name: getattr(self.history, name) for name in ("before", "after", "guarantee")}
        rate = np.cbrt(np.asarray(self.history.rounds, dtype=np.float64))
        return {name: np.asarray(v, dtype=np.float64) for name, v in known.items() if v is not None} | {"rate": rate}

    def frame(self, backend: str | None = None) -> Any:
        """One row for each number of rows so far: rounds, before, after, guarantee, rate."""
        columns = {"rounds": np.asarray(self.history.rounds, dtype=np.float64).tolist()}
        return frame(columns | {name: values.tolist() for name, values in self.lines().items()}, backend)

    def finding(self) -> str:
        """What the figure shows, in a sentence."""
        if not len(self.history.rounds):
            return "Swap error over time: nothing was recorded."
        names = {"before": "before", "after": "after", "guarantee": "guaranteed at most", "rate": "T^(1/3)"}
        if self.history.before is None or self.history.after is None:
            names |= {"before": "observed", "after": "observed"}
        parts = [f"{names[name]} {number(float(values[-1]))}" for name, values in self.lines().items()]
        return f"Swap error after {counted(float(self.history.rounds[-1]))}: {', '.join(parts)}."

    def __call__(self, ax: "Axes | None" = None) -> "Axes":
        """Draw on `ax`, or on new axes, and return them."""
        ax = axes_or_new(ax, height=3.7)
        dress(ax, "rows so far", "swap error", pad=24.0)
        rounds = np.asarray(self.history.rounds, dtype=np.float64)
        styles: dict[str, dict[str, Any]] = {
            "before": {"color": LIGHT["before"], "linewidth": 1.8, "linestyle": (0, (6, 1.5)), "label": "before"},
            "after": {"color": LIGHT["after"], "linewidth": 2.2, "label": "after"},
            "guarantee": {"color": LIGHT["ink"], "linewidth": 1.2, "linestyle": (0, (5, 3)), "label": "guarantee"},
            "rate": {"color": LIGHT["reference"], "linewidth": 1.2, "linestyle": (0, (1, 2)), "label": "T^(1/3)"},
        }
        shown, alone = False, self.history.before is None or self.history.after is None
        for name, values in self.lines().items():
            # Logarithms have no place for zero; a line starts with the first error.
            keep = np.isfinite(values) & (values > 0.0) & (rounds > 0.0)
            if keep.any():
                if alone and name in ("before", "after"):
                    styles[name]["label"] = "observed"
                dot: dict[str, Any] = {"marker": "o", "markersize": 4.0} if keep.sum() == 1 else {}
                ax.plot(rounds[keep], values[keep], gid=name, **styles[name], **dot)
                shown = shown or name in ("before", "after")
        if not shown:
            note(ax, "no error was recorded")
            return ax
        ax.set_xscale("log")
        ax.set_yscale("log")
        from matplotlib.ticker import LogLocator, NullFormatter

        for axis, limits in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
            wide = np.log10(limits[1] / limits[0]) > (1.8 if axis is ax.xaxis else 2.5)
            axis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
            axis.set_major_formatter(thousands)
            axis.set_minor_formatter(NullFormatter())
        legend(
            ax,
            "lower left",
            bbox_to_anchor=(-0.03, 1.0),
            ncols=4,
            handlelength=1.6,
            columnspacing=0.9,
            borderaxespad=0.0,
        )
        return ax


# --------
# How forecasts are spread, before and after.


@dataclass(frozen=True, slots=True, eq=False)
class ForecastHistogram:
    """Rows by bins of forecasts: whether forecasts kept their spread.

    Parameters
    ----------
    before, after
        The model's own forecasts, and swapcal's; either may be None.
    property
        What is forecast.
    """

    before: ColumnSummary | None
    after: ColumnSummary | None
    property: Elicitable | NamedProperty = MEAN

    @classmethod
    def of(cls, result: Result) -> "ForecastHistogram":
        """The histogram of a result."""
        return cls(result.before, result.after, result.property)

    def sides(self) -> dict[str, ColumnSummary]:
        """The sides there are, by "before" and "after"."""
        return {w: side for w, side in (("before", self.before), ("after", self.after)) if side is not None}

    def frame(self, backend: str | None = None) -> Any:
        """The bins: side, low, high, count."""
        columns: dict[str, list[Any]] = {name: [] for name in ("side", "low", "high", "count")}
        for which, side in self.sides().items():
            columns["side"] += [which] * len(side.histogram)
            columns["low"] += side.edges[:-1].tolist()
            columns["high"] += side.edges[1:].tolist()
            columns["count"] += np.asarray(side.histogram, dtype=np.float64).tolist()
        return frame(columns, backend)

    def finding(self) -> str:
        """What the histogram shows, in a sentence."""
        parts = []
        for kind, side in self.sides().items():
            which = kind if len(self.sides()) > 1 else side.label or kind
            total = float(side.histogram.sum())
            if total <= 0.0:
                parts.append(f"{which}: no forecasts")
                continue
            at, used = int(np.argmax(side.histogram)), int(np.sum(side.histogram > 0))
            share = number(100.0 * float(side.histogram[at]) / total)
            ends = f"{number(float(side.edges[at]))} to {number(float(side.edges[at + 1]))}"
            parts.append(
                f"{which}: {used} of {len(side.histogram)} bins are used, most often {ends} ({share} % of the rows)"
            )
        return f"Spread of forecasts. {'. '.join(part[0].upper() + part[1:] for part in parts)}."

    def __call__(self, ax: "Axes | None" = None) -> "Axes":
        """Draw on `ax`, or on new axes, and return them."""
        ax = axes_or_new(ax, height=3.0)
        words = property_words(self.property)
        dress(ax, f"forecast: {words.name}", "rows", grid="y", pad=24.0)
        sides = {which: side for which, side in self.sides().items() if side.histogram.sum() > 0}
        if not sides:
            note(ax, "nothing was forecast")
            return ax
        alone = len(sides) == 1
        edges = next(iter(sides.values())).edges
        together = all(np.array_equal(side.edges, edges) for side in sides.values())
        places, write_places = bin_places(edges)
        for which, side in sides.items():
            borders = places if together else side.edges
            filled = which == "after" or alone
            ax.stairs(
                side.histogram,
                borders,
                color=LIGHT[which],
                fill=filled,
                alpha=0.3 if filled else 1.0,
                linewidth=1.8,
                label=side_label(which, side.label, alone, 16),
                gid=which,
            )
            if filled:
                ax.stairs(side.histogram, borders, color=LIGHT[which], linewidth=1.8, gid=which)
        if together:
            at = np.nonzero(np.any([side.histogram > 0 for side in sides.values()], axis=0))[0]
            few = len(at) < 0.5 * len(places)
            first, last = (max(0, at[0] - 2), min(len(places) - 1, at[-1] + 3)) if few else (0, len(places) - 1)
            ax.set_xlim(float(places[first]), float(places[last]))
            write_places(ax)
        else:
            ax.xaxis.set_major_formatter(thousands)
        ax.set_ylim(bottom=0.0)
        ax.yaxis.set_major_formatter(thousands)
        ax.locator_params(axis="y", nbins=5)
        legend(ax, "lower left", bbox_to_anchor=(-0.03, 1.0), ncols=2, handlelength=1.6, borderaxespad=0.0)
        return ax


# --------
# The loss before and after, with the interval of the difference.


@dataclass(frozen=True, slots=True, eq=False)
class LossChange:
    """Mean loss before and after. The interval at "after" is that of the paired difference, laid off from "before".

    Both columns meet the same outcomes, so the difference is known much better than either loss.

    Parameters
    ----------
    paired
        The two losses and the interval of their difference.
    loss_name
        How people call the mean of the loss.
    """

    paired: Paired
    loss_name: str = "loss"

    @classmethod
    def of(cls, result: Result) -> "LossChange":
        """The losses of a result that has both columns."""
        if result.paired is None:
            raise InvalidInput("this result has forecasts of one kind only; a change of loss needs before and after")
        return cls(result.paired, result.loss_name)

    def frame(self, backend: str | None = None) -> Any:
        """One row: loss_name, before, after, difference, low, high, confidence."""
        names = ("before", "after", "difference", "low", "high", "confidence")
        columns: dict[str, list[Any]] = {name: [float(getattr(self.paired, name))] for name in names}
        return frame({"loss_name": [self.loss_name]} | columns, backend)

    def finding(self) -> str:
        """What the figure shows, in a sentence."""
        paired = self.paired
        if not self._known():
            beyond = "too few rows for an interval"
        elif paired.low > 0.0:
            beyond = "worse beyond chance"
        elif paired.high < 0.0:
            beyond = "better beyond chance"
        else:
            beyond = "no difference beyond chance"
        low, change, high = (relative(v, paired.before) for v in (paired.low, paired.difference, paired.high))
        interval = f"{percent(paired.confidence)} interval {low} to {high}"
        return (
            f"{capitalized(self.loss_name)}: {precise(paired.before)} before, "
            f"{precise(paired.after)} after, a change of {change} ({interval}): {beyond}."
        )

    def _known(self) -> bool:
        """Whether there were rows enough for an interval."""
        return math.isfinite(self.paired.low) and math.isfinite(self.paired.high)

    def __call__(self, ax: "Axes | None" = None) -> "Axes":
        """Draw on `ax`, or on new axes, and return them."""
        ax = axes_or_new(ax, height=2.3)
        paired = self.paired
        dress(ax, f"{self.loss_name} (lower is better)", "", grid="x")
        ax.plot([paired.before] * 2, [0.0, 1.5], color=LIGHT["before"], linewidth=1.0, linestyle=(0, (4, 3)))
        ends = [paired.before + paired.low, paired.before + paired.high] if self._known() else []
        if ends:
            ax.hlines([1.0], ends[:1], ends[1:], color=LIGHT["after"], linewidth=3.0, alpha=0.5)
        common: dict[str, Any] = {"linestyle": "none", "markersize": 7.0, "markeredgewidth": 1.6}
        ax.plot([paired.before], [0.0], marker="s", color=LIGHT["before"], markerfacecolor=LIGHT["paper"], **common)
        ax.plot([paired.after], [1.0], marker="o", color=LIGHT["after"], **common)
        for value, row, text in (
            (paired.before, 0.0, precise(paired.before)),
            (paired.after, 1.0, f"{precise(paired.after)}  ({relative(paired.difference, paired.before)})"),
        ):
            ax.annotate(
                text,
                (value, row),
                xytext=(0, 8),
                textcoords="offset points",
                ha="center",
                fontsize=SMALL,
                color=LIGHT["ink"],
            )
        ax.set_yticks([0.0, 1.0], ["before", "after"], fontsize=SMALL)
        ax.set_ylim(1.5, -0.75)
        low, high = min(paired.before, paired.after, *ends), max(paired.before, paired.after, *ends)
        # Room for the numbers; and a difference that is nothing must not fill the picture.
        room = max(0.35 * (high - low), 0.01 * abs(paired.before), 1e-12)
        ax.set_xlim(low - room, high + room)
        ax.locator_params(axis="x", nbins=5)
        ax.xaxis.set_major_formatter(thousands)
        return ax


@dataclass(frozen=True, slots=True, eq=False)
class WorstGroups:
    """Mean bias of "all" and of the worst groups, with intervals that hold for all groups together.

    Parameters
    ----------
    before, after
        The model's own forecasts, and swapcal's; either may be None. Groups are ordered by how far they are off before,
        or after if there is no before: those off beyond doubt first.
    groups
        Names in the order of the columns of `ColumnSummary.bias`.
    property
        What is forecast.
    limit
        At most this many groups besides "all"; `frame` holds every group.
    """

    before: ColumnSummary | None
    after: ColumnSummary | None
    groups: tuple[str, ...]
    property: Elicitable | NamedProperty = MEAN
    limit: int = 12

    @classmethod
    def of(cls, result: Result, limit: int = 12) -> "WorstGroups":
        """The worst groups of a result."""
        return cls(result.before, result.after, result.groups, result.property, limit)

    def sides(self) -> dict[str, GroupBias]:
        """Biases of all groups, by "before" and "after"."""
        given = {"before": self.before, "after": self.after}
        return {which: side.known_groups for which, side in given.items() if side is not None}

    def order(self) -> IntArray:
        """Positions of the groups that are drawn: "all" first, then the worst first; none without rows."""
        sides = self.sides()
        leading = sides.get("before", sides.get("after"))
        if leading is None:
            return np.zeros(0, dtype=np.int64)
        everybody = [0] if len(leading.rows) and leading.rows[0] > 0 else []
        return np.array([*everybody, *leading.ranked()[: self.limit].tolist()], dtype=np.int64)

    def frame(self, backend: str | None = None) -> Any:
        """Every group and side: side, group, count, bias (mean identification), low, high, off (1 or 0), error."""
        names = {"count": "rows", "bias": "mean", "low": "low", "high": "high", "off": "off", "error": "error"}
        columns: dict[str, list[Any]] = {k: [] for k in ("side", "group", *names)}
        for which, found in self.sides().items():
            columns["side"] += [which] * len(found.name)
            columns["group"] += list(found.name)
            for name, field in names.items():
                columns[name] += getattr(found, field).tolist()
        return frame(columns, backend)

    def finding(self) -> str:
        """What the figure shows, in a sentence."""
        words, parts = property_words(self.property), []
        for which, found in self.sides().items():
            start = f"{which}, " if len(self.sides()) > 1 else ""
            verb = "is" if found.n_off == 1 else "are"
            parts.append(f"{start}{found.n_off} of {counted(found.n_used, 'group')} {verb} off beyond doubt")
            some = [j for j in self.order() if j > 0 and found.rows[j] > 0]
            if some:
                parts[-1] += f"; {readable(self.groups[some[0]])}: {words.bias(float(found.mean[some[0]]))}"
        return f"Worst groups: {'. '.join(parts)}."

    def __call__(self, ax: "Axes | None" = None) -> "Axes":
        """Draw on `ax`, or on new axes, and return them."""
        order, sides, words = self.order(), self.sides(), property_words(self.property)
        ax = axes_or_new(ax, height=1.4 + 0.33 * max(3, len(order)))
        dress(ax, f"{words.axis()}, with intervals", "group", grid="x", pad=24.0)
        if not len(order):
            note(ax, "no group has rows")
            return ax
        ax.axvline(0.0, color=LIGHT["reference"], linewidth=1.2)
        rows = np.arange(len(order), dtype=np.float64)
        for which, found in sides.items():
            shift = (-0.16 if which == "before" else 0.16) if len(sides) > 1 else 0.0
            mean, low, high = (words.scale * v[order] for v in (found.mean, found.low, found.high))
            ax.hlines(rows + shift, low, high, color=LIGHT[which], linewidth=2.2, alpha=0.5, gid=which)
            ax.plot(
                mean,
                rows + shift,
                linestyle="none",
                marker="s" if which == "before" else "o",
                markersize=5.0,
                color=LIGHT[which],
                markerfacecolor=LIGHT["paper"] if which == "before" else LIGHT[which],
                markeredgewidth=1.3,
                label=which,
                gid=which,
            )
        ax.set_yticks(rows, [plain_text(group_name(self.groups[j])) for j in order], fontsize=SMALL)
        ax.set_ylim(len(order) - 0.4, -0.6)
        ax.xaxis.set_major_formatter(thousands)
        legend(ax, "lower left", bbox_to_anchor=(-0.03, 1.0), ncols=2, borderaxespad=0.0)
        return ax

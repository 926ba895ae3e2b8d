"""The reliability diagram: what was forecast against what came."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from swapcal.audit.audit import MEAN
from swapcal.audit.curves import Curve
from swapcal.audit.summary import ColumnSummary
from swapcal.errors import InvalidInput
from swapcal.jobs.result import Result
from swapcal.report.drawing import SMALL, axes_or_new, dress, legend, note, side_label, thousands
from swapcal.report.figure_frame import frame
from swapcal.report.palette import LIGHT
from swapcal.roles import Elicitable
from swapcal.words.names import group_name
from swapcal.words.numbers import count, counted, number
from swapcal.words.property_words import NamedProperty, property_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["FEW", "Reliability"]

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
        for step in [s for s in steps if s <= 1.0001 * width]:
            if float(self.forward(self.low + step) - self.forward(kept[-1])) > 0.14:
                kept.append(self.low + step)
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

"""The figures of a result: each is a function that gives a drawing, the numbers behind it, and a sentence about it."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from swapcal.audits.histograms import Curve
from swapcal.audits.scores import GroupHistory
from swapcal.audits.summary import ColumnSummary
from swapcal.errors import InvalidInput
from swapcal.losses import Omniprediction
from swapcal.report.drawing import (
    LIGHT,
    SMALL,
    axes_or_new,
    bin_places,
    dress,
    legend,
    note,
    plain_text,
    side_label,
    thousands,
)
from swapcal.tables.sources import frame_of
from swapcal.tasks.result import Result, Section
from swapcal.text.numbers import QUANTITIES, capitalized, count, counted, group_name, number, precise, readable
from swapcal.text.sentences import since_text
from swapcal.typing import Float64Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Cells with fewer rows than this are drawn faint or small: their bias is mostly chance.
FEW = 30

_MARKERS = {"before": "s", "after": "o"}


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """A drawing. Call it to draw on given or new axes, which it returns.

    Parameters
    ----------
    columns : mapping
        The numbers behind it, by name.
    finding : str
        What is to be seen, in a sentence.
    height : float
        Of new axes, in inches.
    axes : mapping
        What `dress` is given: names of both axes, and so on.
    draw : callable
        Draws on axes that are dressed.
    nothing : str
        What is said instead where there is nothing to draw.

    Examples
    --------
    >>> import swapcal as sc
    >>> table = {"late": [0, 1, 1, 0] * 100, "score": [0.5] * 400, "day": ["Mon", "Tue"] * 200}
    >>> figure = bias_by_group(sc.audit(table, "late", "score", "day"))
    >>> axes = figure()                       # or figure(ax), on axes of your own
    >>> axes.get_xlabel(), list(figure.frame("pandas").columns)
    ('predicted - observed, points', ['side', 'group', 'bias', 'low', 'high'])
    """

    columns: Mapping[str, Sequence[Any]]
    finding: str
    height: float
    axes: Mapping[str, Any]
    draw: "Callable[[Axes], None]"
    nothing: str = ""

    def __call__(self, ax: "Axes | None" = None) -> "Axes":
        """Draw on `ax`, or on new axes, and return them."""
        ax = axes_or_new(ax, height=self.height)
        dress(ax, **self.axes)
        if self.nothing:
            note(ax, self.nothing)
        else:
            self.draw(ax)
        return ax

    def frame(self, backend: str | None = None) -> Any:
        """The numbers as a data frame: "pandas", "polars" or "pyarrow"; None takes the first that is installed."""
        return frame_of(self.columns, backend)


def _sides(
    columns: Mapping[str, Any], values: Callable[[Any], Mapping[str, Any]], kind: str = "side"
) -> dict[str, list[Any]]:
    """Columns of numbers of each side below each other, with its name beside them."""
    table: dict[str, list[Any]] = {}
    for which, side in columns.items():
        lists = {name: list(each) for name, each in values(side).items()}
        n = len(next(iter(lists.values())))
        for name, each in ({kind: [which] * n} | lists).items():
            table.setdefault(name, []).extend(each)
    return table


def _style(which: str, size: float) -> dict[str, Any]:
    """Markers of a side: hollow squares before, dots after."""
    color = LIGHT[which]
    face = LIGHT["paper"] if which == "before" else color
    common = {"marker": _MARKERS[which], "markersize": size, "markerfacecolor": face, "markeredgewidth": 1.3}
    return {"color": color, "gid": which, **common}


# --------
# Bias by group.


def bias_by_group(result: Result, most: int = 12) -> Figure:
    """Bias of all rows and of the worst groups, with 95 % confidence intervals that hold for all groups together.

    Parameters
    ----------
    result : Result
        Of an audit or a run.
    most : int
        How many groups.

    Returns
    -------
    Figure
        A dot and an interval for each group, before and after.

    Examples
    --------
    >>> import swapcal as sc
    >>> table = {"late": [0, 1, 1, 0] * 100, "score": [0.5] * 400, "day": ["Mon", "Tue"] * 200}
    >>> result = sc.audit(table, "late", "score", "day")
    >>> bias_by_group(result).finding
    'Biased groups: 0, of 2 groups.'
    """
    words, side = result.wording, result.first.leading
    chosen = [0, *side.groups.ranked().tolist()][:most]
    names = [side.groups.name[j] for j in chosen]
    found: dict[str, dict[str, list[Any]]] = {}
    for which, each in result.columns.items():
        at = {name: j for j, name in enumerate(each.groups.name)}
        rows = [at[name] for name in names]
        ends = {end: (words.scale * getattr(each.groups, end)[rows]).tolist() for end in ("mean", "low", "high")}
        found[which] = {"group": list(names), "bias": ends.pop("mean"), **ends}
    numbers = {which: side.groups.n_biased for which, side in result.columns.items()}
    counts = " and ".join(f"{n} {which}" if len(numbers) > 1 else f"{n}" for which, n in numbers.items())
    finding = f"Biased groups: {counts}, of {counted(side.groups.n_used, 'group')}."

    def draw(ax: "Axes") -> None:
        ax.axvline(0.0, color=LIGHT["reference"], linewidth=1.2)
        for k, (which, table) in enumerate(found.items()):
            places = np.arange(len(names)) + (0.0 if len(found) == 1 else 0.34 * k - 0.17)
            label = side_label(which, result.columns[which].label, alone=len(found) == 1)
            style = {**_style(which, 5.5), "linestyle": "none", "label": label}
            ax.hlines(places, table["low"], table["high"], color=LIGHT[which], linewidth=3.0, alpha=0.4)
            ax.plot(table["bias"], places, **style)
        ax.set_yticks(range(len(names)), [plain_text(group_name(name), 30) for name in names], fontsize=SMALL)
        ax.set_ylim(len(names) - 0.4, -0.6)
        legend(ax, above=1)

    unit = f", {words.unit}" if words.unit else ""
    axes = {"x": f"predicted - observed{unit}", "y": "", "grid": "x"}
    return Figure(_sides(found, lambda table: table), finding, 1.4 + 0.36 * len(names), axes, draw)


# --------
# Loss over time.


def loss_over_time(result: Result) -> Figure:
    """Mean loss of the model, of swapcal and of a refit in stretches of a run, one after the other.

    Parameters
    ----------
    result : Result
        Of a run.

    Returns
    -------
    Figure
        A line for each of them.

    Examples
    --------
    >>> import swapcal as sc
    >>> table = {"late": [0, 1, 1, 0] * 100, "score": [0.5] * 400, "day": ["Mon", "Tue"] * 200}
    >>> result = sc.recalibrate(table, "late", "score", "day", seed=1)
    >>> loss_over_time(result).finding
    'Mean loss: model 0.25, swapcal 0.25, refit 0.25.'
    """
    if not result.stretches:
        raise InvalidInput("this result has no losses over time; they come from a run of one number with a model")
    lines, rows = dict(result.stretches), list(result.stretches["row"])
    del lines["row"]
    means = {name: float(np.mean(line)) for name, line in lines.items()}
    finding = f"Mean loss: {', '.join(f'{name} {precise(mean)}' for name, mean in means.items())}."

    def draw(ax: "Axes") -> None:
        colors = {"model": LIGHT["before"], "swapcal": LIGHT["after"]}
        for (name, line), style in zip(
            lines.items(), ("-", "-", *[(0, (5, 2)), (0, (1, 1.5))] * len(lines)), strict=False
        ):
            ax.plot(rows, line, color=colors.get(name, LIGHT["muted"]), linestyle=style, linewidth=1.8, label=name)
        legend(ax, above=len(lines))

    columns = {"row": rows, **{name: list(line) for name, line in lines.items()}}
    axes = {"x": "row", "y": f"{next(iter(result.paired), 'loss')}, lower is better", "grid": "y", "pad": 24.0}
    return Figure(columns, finding, 3.0, axes, draw)


# --------
# Bias over time.

N_POINTS, N_LINES = 12, 3
_LINES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)))


def bias_over_time(result: Result, which: str | None = None) -> Figure:
    """Mean bias, or coverage, in about twelve stretches of the stream, one after the other.

    Parameters
    ----------
    result : Result
        Of an audit or a run.
    which : str, optional
        "before" or "after": this side alone, with the two worst groups.

    Returns
    -------
    Figure
        A line for all rows and for the worst group, before and after.

    Examples
    --------
    >>> import swapcal as sc
    >>> table = {"late": [0, 1, 1, 0] * 100, "score": [0.5] * 400, "day": ["Mon", "Tue"] * 200}
    >>> result = sc.audit(table, "late", "score", "day")
    >>> bias_over_time(result)().get_title(loc="left")
    'bias, points'
    """
    sides = {name: side for name, side in result.columns.items() if which in (None, name) and side.histories}
    words, both = result.wording, len(sides) > 1
    kept = [side.histories or {} for side in sides.values()]
    told = [name for name in next(iter(kept), ()) if all(name in each for each in kept)][: N_LINES - both]
    times = next((side.times for side in sides.values() if any(side.times)), ())
    what, middle = ("bias", 0.0) if words.coverage is None else ("coverage", 100.0 * words.coverage)
    columns: dict[str, list[Any]] = {each: [] for each in ("side", "group", "rows", what)}
    lines, sentences = {}, []
    for (kind, side), name in product(sides.items(), told):
        at, mean = _stretches((side.histories or {})[name])
        known, since, lead = mean[np.isfinite(mean)], since_text(side, name), f"{kind}, " if both else ""
        if len(known):
            off = f", off {since}" if since else ""
            ends = f"from {words.bias(float(known[0]))} to {words.bias(float(known[-1]))}"
            sentences.append(f"{lead}{readable(group_name(name))} {ends}{off}")
        lines[kind, name] = at, middle + words.scale * mean
        parts = [kind] * len(at), [name] * len(at), at.tolist(), lines[kind, name][1].tolist()
        for column, values in zip(columns.values(), parts, strict=True):
            column += values

    def draw(ax: "Axes") -> None:
        ax.axhline(middle, color=LIGHT["reference"], linewidth=1.2)
        for (kind, name), (at, values) in lines.items():
            color = LIGHT["muted" if name == "all" and not both else kind]
            label, style = plain_text(group_name(name), 30), _LINES[told.index(name)]
            label = f"{kind}: {label}" if both else label
            drawn: dict[str, Any] = {
                "color": color,
                "markersize": 3.2,
                "marker": _MARKERS[kind],
                "gid": kind if both else None,
            }
            ax.plot(at, values, linewidth=1.8, linestyle=style, label=label, **drawn)
        legend(ax, above=1)
        if not times:
            ax.locator_params(axis="x", nbins=4)
            return
        start = kept[0][told[0]].start
        chosen = np.unique(np.linspace(0, min(len(times), len(start)) - 1, 3).round().astype(int))
        ax.set_xticks(start[chosen], [plain_text(times[k] or count(float(start[k])), 12) for k in chosen])

    finding = f"Bias from the first rows to the last: {'; '.join(sentences)}." if sentences else "Nothing was recorded."
    named = words.axis() if what == "bias" else "coverage, %"
    axes = {"x": "time" if times else "rows", "y": named, "grid": "y", "pad": 14.0 + 14.0 * len(lines)}
    return Figure(columns, finding, 3.6, axes, draw, "" if lines else "nothing was recorded")


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

# Share of the diagram's height, at the bottom, for the bars of counts.
_FLOOR = 0.16

Curves = list[tuple[str, str, Curve]]


def reliability(result: Result, group: str = "all", section: Section | None = None, small: bool = False) -> Figure:
    """What was forecast against the property of what came, by bins of forecasts, for one group.

    On the diagonal forecasts are right on average; below it they were too high.

    Parameters
    ----------
    result : Result
        Of an audit or a run.
    group : str
        Its name, such as "day=Tue"; "all" is all rows.
    section : Section, optional
        Of a result with several: the class or the model; else the first.
    small : bool
        Without a legend, for a place among others.

    Returns
    -------
    Figure
        Points with intervals that hold for all bins together, and bars of rows.

    Examples
    --------
    >>> import swapcal as sc
    >>> table = {"late": [0, 1, 1, 0] * 100, "score": [0.5] * 400, "day": ["Mon", "Tue"] * 200}
    >>> result = sc.audit(table, "late", "score", "day")
    >>> print(reliability(result, "day=Tue").finding)   # doctest: +NORMALIZE_WHITESPACE
    Reliability of the mean for day=Tue. The model: 0 of 1 bin is off the diagonal beyond its interval;
    most where 0.5 was forecast and 0.5 came (200 rows).
    """
    sides, words = (section or result.first).columns, result.wording
    curves = [(which, side.label, side.curves[group]) for which, side in sides.items() if group in side.curves]
    if not curves:
        some = ", ".join(repr(name) for name in list(next(iter(sides.values())).curves)[:5])
        raise InvalidInput(f"there is no curve for the group {group!r}; some that have one: {some}")
    fields = ("forecast", "outcome", "low", "high", "count")
    columns = _sides(
        {which: curve for which, _, curve in curves},
        lambda curve: (
            {"group": [group] * len(curve.forecast)} | {name: getattr(curve, name).tolist() for name in fields}
        ),
    )
    parts = [_farthest(which if len(curves) > 1 else label or which, curve) for which, label, curve in curves]
    finding = f"Reliability of the {words.name} for {group_name(group)}. {'. '.join(map(capitalized, parts))}."

    finite = [(which, label, _finite(curve)) for which, label, curve in curves]
    # One scale for all groups: that of all rows, widened where a group needs it.
    whole = [
        (which, "", _finite(side.curves["all"])) for which, side in sides.items() if "all" in side.curves
    ] or finite
    everything = np.concatenate([v for _, _, curve in (*finite, *whole) for v in (curve.forecast, curve.outcome)])

    def draw(ax: "Axes") -> None:
        low, high = _limits(everything, words.domain)
        shape = _shape(whole, low, high)
        shape.apply(ax)
        _diagonal(ax, low, high)
        _bars(ax, finite, shape, small)
        for which, label, curve in finite:
            _points(ax, which, side_label(which, label, len(finite) == 1, 22), curve, low, high)
        margin = 0.02 * (high - low)
        ax.set_xlim(shape.inverse(-0.02), high + margin)
        ax.set_ylim(shape.inverse(-_FLOOR), high + margin)
        if shape.bent:
            ax.set_xticks(shape.ticks())
            ax.set_yticks(shape.ticks())
        else:
            ax.set_yticks([tick for tick in ax.get_yticks() if low - margin <= tick <= high + margin])
        ax.xaxis.set_major_formatter(thousands)
        ax.yaxis.set_major_formatter(thousands)
        if not small:
            legend(ax)

    axes = {"x": f"forecast: {words.name}", "y": words.outcome}
    return Figure(columns, finding, 4.3, axes, draw, "" if len(everything) else "nothing was forecast for this group")


def reliability_of_groups(result: Result, most: int = 6) -> Figure:
    """Reliability of all rows and of the worst groups, in small diagrams beside each other.

    Parameters
    ----------
    result : Result
        Of an audit or a run.
    most : int
        How many diagrams.

    Returns
    -------
    Figure
        Of several models, their curves of all rows on the same axes.

    Examples
    --------
    >>> import swapcal as sc
    >>> table = {"late": [0, 1, 1, 0] * 100, "score": [0.5] * 400, "day": ["Mon", "Tue"] * 200}
    >>> result = sc.audit(table, "late", "score", "day")
    >>> len(reliability_of_groups(result)().child_axes)   # all rows, Monday, Tuesday
    3
    """
    if result.kind == "comparison":
        return reliability_of_models(result)
    if result.task == "interval":
        raise InvalidInput("intervals have no reliability diagram; draw their coverage: plot('groups') or plot('time')")
    sides, leading, words = result.columns, result.first.leading, result.wording
    ranked = ["all", *(leading.groups.name[j] for j in leading.groups.ranked())]
    single = {name: reliability(result, name, small=True) for name in ranked if name in leading.curves}
    single = dict(list(single.items())[:most])
    columns = {key: [each for one in single.values() for each in one.columns[key]] for key in single["all"].columns}
    n_lines = -(-len(single) // 2)

    def draw(ax: "Axes") -> None:
        ax.set(xticks=[], yticks=[])
        for each in ax.spines.values():
            each.set_visible(False)
        for which, side in sides.items():
            ax.plot([], [], label=side_label(which, side.label, len(sides) == 1, 22), **_style(which, 4.6))
        legend(ax, above=2)
        for k, (name, figure) in enumerate(single.items()):
            bottom = 1.0 - (k // 2 + 0.86) / n_lines
            part = ax.inset_axes((0.06 + 0.52 * (k % 2), bottom, 0.42, 0.70 / n_lines))
            dress(part, "", plain_text(group_name(name), 26), pad=3.0)
            figure.draw(part)

    axes = {"x": f"forecast: {words.name}", "y": words.outcome, "pad": 24.0}
    return Figure(columns, single["all"].finding, 0.8 + 2.0 * n_lines, axes, draw)


# Colors and markers of models; so many are drawn.
ROLES, SHAPES = ("before", "after", "high7", "low7", "muted"), "soD^v"


def reliability_of_models(result: Result, group: str = "all") -> Figure:
    """What was forecast against what came, the curve of every section on the same axes; at most five are drawn."""
    words = result.wording
    curves = {one.title: one.leading.curves[group] for one in result.sections if group in one.leading.curves}
    columns = _sides(curves, lambda curve: {"forecast": curve.forecast.tolist(), "outcome": curve.outcome.tolist()})

    def draw(ax: "Axes") -> None:
        ends = []
        for (model, curve), role, marker in zip(curves.items(), ROLES, SHAPES, strict=False):
            order = np.argsort(curve.forecast)
            x, y = curve.forecast[order], curve.outcome[order]
            used = np.isfinite(x) & np.isfinite(y)
            ends += [*x[used].tolist(), *y[used].tolist()]
            label = plain_text(model, 22)
            ax.plot(x[used], y[used], color=LIGHT[role], marker=marker, markersize=4.0, linewidth=1.2, label=label)
        _diagonal(ax, *((min(ends), max(ends)) if ends else (0.0, 1.0)))
        legend(ax)

    axes = {"x": f"forecast: {words.name}", "y": words.outcome}
    return Figure(columns, "Reliability curves of the models.", 4.3, axes, draw)


def _farthest(which: str, curve: Curve) -> str:
    """How many bins are off the diagonal, and which is farthest away."""
    far = np.abs(curve.forecast - curve.outcome)
    if not np.isfinite(far).any():
        return f"{which}: no forecasts"
    at = int(np.nanargmax(np.where(curve.count >= min(float(FEW), float(curve.count.max())), far, np.nan)))
    off = int(np.sum((curve.forecast < curve.low) | (curve.forecast > curve.high)))
    n = int(np.isfinite(far).sum())
    return (
        f"{which}: {off} of {n} {'bin is' if n == 1 else 'bins are'} off the diagonal beyond its interval; most where "
        f"{number(float(curve.forecast[at]))} was forecast and {number(float(curve.outcome[at]))} came "
        f"({counted(float(curve.count[at]))})"
    )


def _diagonal(ax: "Axes", low: float, high: float) -> None:
    ax.plot([low, high], [low, high], color=LIGHT["reference"], linewidth=1.0, linestyle=(0, (4, 3)), gid="diagonal")


def _bars(ax: "Axes", curves: Curves, shape: "_Shape", small: bool) -> None:
    """Rows by forecast, along the bottom: before a little to the left of the bin's mean, after to the right."""
    most = max(float(curve.count.max()) for _, _, curve in curves if len(curve.count))
    floor, width = shape.inverse(-_FLOOR), 0.0 if shape.bent else 0.008 * (shape.high - shape.low)
    for which, _, curve in curves:
        shift = (-0.6 if which == "before" else 0.6) * width if len(curves) > 1 else 0.0
        tops = [shape.inverse(-_FLOOR + 0.8 * _FLOOR * rows / most) for rows in curve.count.tolist()]
        ax.vlines(curve.forecast + shift, floor, tops, color=LIGHT[which], linewidth=2.6, alpha=0.6, gid=which)
    if small:
        return
    text, style = f"bars: rows, at most {count(most)} in a bin", {"fontsize": SMALL - 0.5, "color": LIGHT["muted"]}
    below: dict[str, Any] = {
        "xycoords": "axes fraction",
        "xytext": (0.0, -37.0),
        "textcoords": "offset points",
        **style,
    }
    ax.annotate(text, (0.5, 0.0), ha="center", va="top", **below)


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
        ticks = [self.low]
        for size in [s for s in steps if s <= 1.0001 * width]:
            if float(self.forward(self.low + size) - self.forward(ticks[-1])) > 0.14:
                ticks.append(self.low + size)
        return ticks


def _shape(curves: Curves, low: float, high: float) -> _Shape:
    """Bent where half of the rows lie in the lowest eighth of the diagram."""
    forecast = np.concatenate([curve.forecast for _, _, curve in curves])
    count = np.concatenate([curve.count for _, _, curve in curves])
    small = float(count[forecast < low + (high - low) / 8].sum())
    return _Shape(low, high, bool(high > low and 2.0 * small > float(count.sum())))


def _points(ax: "Axes", which: str, label: str, curve: Curve, low: float, high: float) -> None:
    """Points, joined where rows are enough to say something; the others are faint, as they are mostly chance."""
    enough = curve.count >= FEW
    common = _style(which, 4.6)
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
# Error as the stream went by, against the guarantee and T^(1/3).


def error_over_time(result: Result) -> Figure:
    """Swap error against rows so far, both on logarithmic scales, with the guarantee and the rate T^(1/3) beside it.

    Parameters
    ----------
    result : Result
        Of a run.

    Returns
    -------
    Figure
        A line for each.

    Examples
    --------
    >>> import swapcal as sc
    >>> table = {"late": [0, 1, 1, 0] * 100, "score": [0.5] * 400, "day": ["Mon", "Tue"] * 200}
    >>> result = sc.recalibrate(table, "late", "score", "day", seed=1)
    >>> error_over_time(result)().get_xscale()
    'log'
    """
    history = result.first.history
    if history is None:
        raise InvalidInput("this result has no history; errors over time come from a run, or an audit that kept it")
    rounds, alone = np.asarray(history.rounds, dtype=np.float64), history.before is None or history.after is None
    lines = {name: getattr(history, name) for name in ("before", "after", "guarantee")}
    lines = {name: np.asarray(v, dtype=np.float64) for name, v in lines.items() if v is not None}
    lines["rate"] = np.cbrt(rounds)
    observed = {"before": "observed", "after": "observed"} if alone else {"before": "before", "after": "after"}
    names = observed | {"guarantee": QUANTITIES["guarantee"], "rate": "T^(1/3)"}
    finding = "Swap error over time: nothing was recorded."
    if len(rounds):
        parts = [f"{names[name]} {number(float(values[-1]))}" for name, values in lines.items()]
        finding = f"Swap error after {counted(float(rounds[-1]))}: {', '.join(parts)}."

    def draw(ax: "Axes") -> None:
        styles: dict[str, dict[str, Any]] = {
            "before": {"color": LIGHT["before"], "linewidth": 1.8, "linestyle": (0, (6, 1.5))},
            "after": {"color": LIGHT["after"], "linewidth": 2.2},
            "guarantee": {"color": LIGHT["ink"], "linewidth": 1.2, "linestyle": (0, (5, 3))},
            "rate": {"color": LIGHT["reference"], "linewidth": 1.2, "linestyle": (0, (1, 2))},
        }
        labels = names | {"guarantee": "guarantee"}
        for name, values in lines.items():
            # Logarithms have no place for zero; a line starts with the first error.
            keep = np.isfinite(values) & (values > 0.0) & (rounds > 0.0)
            if keep.any():
                dot: dict[str, Any] = {"marker": "o", "markersize": 4.0} if keep.sum() == 1 else {}
                ax.plot(rounds[keep], values[keep], gid=name, label=labels[name], **styles[name], **dot)
        if not {line.get_gid() for line in ax.lines} & {"before", "after"}:
            note(ax, "no error was recorded")
            return
        ax.set_xscale("log")
        ax.set_yscale("log")
        from matplotlib.ticker import LogLocator, NullFormatter

        for axis, limits in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
            wide = np.log10(limits[1] / limits[0]) > (1.8 if axis is ax.xaxis else 2.5)
            axis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
            axis.set_major_formatter(thousands)
            axis.set_minor_formatter(NullFormatter())
        legend(ax, above=4, handlelength=1.6, columnspacing=0.9)

    columns = {"rounds": rounds.tolist()} | {k: v.tolist() for k, v in lines.items()}
    return Figure(columns, finding, 3.7, {"x": "rows so far", "y": "swap error", "pad": 24.0}, draw)


# --------
# How forecasts are spread, before and after.


def forecast_histogram(result: Result) -> Figure:
    """Rows by bins of forecasts: whether forecasts kept their spread.

    Parameters
    ----------
    result : Result
        Of an audit or a run.

    Returns
    -------
    Figure
        Steps, before and after.

    Examples
    --------
    >>> import swapcal as sc
    >>> table = {"late": [0, 1, 1, 0] * 100, "score": [0.5] * 400, "day": ["Mon", "Tue"] * 200}
    >>> result = sc.audit(table, "late", "score", "day")
    >>> forecast_histogram(result).finding
    'Spread of forecasts. The model: 1 of 1 bins are used, most often 0 to 1 (100 % of the rows).'
    """
    sides, words, parts = result.columns, result.wording, []
    for kind, side in sides.items():
        which, total = kind if len(sides) > 1 else side.label or kind, float(side.histogram.sum())
        if total <= 0.0:
            parts.append(f"{which}: no forecasts")
            continue
        at, used = int(np.argmax(side.histogram)), int(np.sum(side.histogram > 0))
        share = number(100.0 * float(side.histogram[at]) / total)
        ends = f"{number(float(side.edges[at]))} to {number(float(side.edges[at + 1]))}"
        bins = f"{used} of {len(side.histogram)} bins are used"
        parts.append(f"{which}: {bins}, most often {ends} ({share} % of the rows)")
    drawn = {which: side for which, side in sides.items() if side.histogram.sum() > 0}

    def draw(ax: "Axes") -> None:
        alone = len(drawn) == 1
        edges = next(iter(drawn.values())).edges
        together = all(np.array_equal(side.edges, edges) for side in drawn.values())
        places, write_places = bin_places(edges)
        for which, side in drawn.items():
            filled = which == "after" or alone
            line: dict[str, Any] = {"color": LIGHT[which], "linewidth": 1.8, "gid": which}
            line["edges"] = places if together else side.edges
            label = side_label(which, side.label, alone, 16)
            ax.stairs(side.histogram, fill=filled, alpha=0.3 if filled else 1.0, label=label, **line)
            if filled:
                ax.stairs(side.histogram, **line)
        if together:
            at = np.nonzero(np.any([side.histogram > 0 for side in drawn.values()], axis=0))[0]
            few = len(at) < 0.5 * len(places)
            first, last = (max(0, at[0] - 2), min(len(places) - 1, at[-1] + 3)) if few else (0, len(places) - 1)
            ax.set_xlim(float(places[first]), float(places[last]))
            write_places(ax)
        ax.set_ylim(bottom=0.0)
        ax.locator_params(axis="y", nbins=5)
        legend(ax, above=2, handlelength=1.6)

    def values(side: ColumnSummary) -> dict[str, Any]:
        return {"low": side.edges[:-1].tolist(), "high": side.edges[1:].tolist(), "count": side.histogram.tolist()}

    axes = {"x": f"forecast: {words.name}", "y": "rows", "grid": "y", "pad": 24.0}
    finding = f"Spread of forecasts. {'. '.join(map(capitalized, parts))}."
    return Figure(_sides(sides, values), finding, 3.0, axes, draw, "" if drawn else "nothing was forecast")


# --------
# The loss before and after, with the interval of the difference.


def loss_change(result: Result) -> Figure:
    """Mean loss before and after; the interval at "after" is that of the paired difference, laid off from "before".

    Both columns meet the same outcomes, so the difference is known much better than either loss.

    Parameters
    ----------
    result : Result
        Of a run.

    Returns
    -------
    Figure
        Two points and an interval.

    Examples
    --------
    >>> import swapcal as sc
    >>> table = {"late": [0, 1, 1, 0] * 100, "score": [0.5] * 400, "day": ["Mon", "Tue"] * 200}
    >>> result = sc.recalibrate(table, "late", "score", "day", seed=1)
    >>> print(loss_change(result).finding)   # doctest: +NORMALIZE_WHITESPACE
    Brier score: 0.25 before, 0.25 after, a change of 0 % (95 % interval 0 % to 0 %):
    no significant difference.
    """
    paired, name = result.change, next(iter(result.paired), "")
    if paired is None:
        raise InvalidInput("this result has forecasts of one kind only; a change of loss needs before and after")
    fields = ("before", "after", "difference", "low", "high", "confidence")
    known = math.isfinite(paired.low) and math.isfinite(paired.high)
    beyond = "no significant difference" if known else "too few rows for an interval"
    if known and (paired.low > 0.0 or paired.high < 0.0):
        beyond = f"{'worse' if paired.low > 0.0 else 'better'}, significantly"
    finding = (
        f"{capitalized(name)}: {precise(paired.before)} before, {precise(paired.after)} after, a change of "
        f"{paired.change}: {beyond}."
    )

    def draw(ax: "Axes") -> None:
        ax.plot([paired.before] * 2, [0.0, 1.5], color=LIGHT["before"], linewidth=1.0, linestyle=(0, (4, 3)))
        ends = [paired.before + paired.low, paired.before + paired.high] if known else []
        if ends:
            ax.hlines([1.0], ends[:1], ends[1:], color=LIGHT["after"], linewidth=3.0, alpha=0.5)
        for which, value, row, text in (
            ("before", paired.before, 0.0, precise(paired.before)),
            ("after", paired.after, 1.0, f"{precise(paired.after)}  ({paired.relative[1]})"),
        ):
            style = _style(which, 7.0) | {"markeredgewidth": 1.6, "gid": None, "linestyle": "none"}
            ax.plot([value], [row], **style)
            near: dict[str, Any] = {"xytext": (0, 8), "textcoords": "offset points", "ha": "center"}
            ax.annotate(text, (value, row), fontsize=SMALL, color=LIGHT["ink"], **near)
        ax.set_yticks([0.0, 1.0], ["before", "after"], fontsize=SMALL)
        ax.set_ylim(1.5, -0.75)
        least, most = min(paired.before, paired.after, *ends), max(paired.before, paired.after, *ends)
        # Room for the numbers; and a difference that is nothing must not fill the picture.
        room = max(0.35 * (most - least), 0.01 * abs(paired.before), 1e-12)
        ax.set_xlim(least - room, most + room)
        ax.locator_params(axis="x", nbins=5)

    columns = {"loss_name": [name]} | {each: [float(getattr(paired, each))] for each in fields}
    return Figure(columns, finding, 2.3, {"x": f"{name} (lower is better)", "y": "", "grid": "x"}, draw)


# --------
# Regret of every loss beside what bounds it.


def regrets(found: Omniprediction) -> Figure:
    """Swap regret of every loss, with the most that the theorem allows: totals, on a scale of powers of ten.

    Parameters
    ----------
    found : Omniprediction
        What `omniprediction` gave.

    Returns
    -------
    Figure
        Two points for each loss.

    Examples
    --------
    >>> import swapcal as sc
    >>> x, y = np.ones((400, 1)), np.tile([0.0, 1.0], 200)
    >>> regrets(sc.omniprediction(np.full(400, 0.5), y, x, sc.Finite(1), ["squared"])).finding
    'Swap regret of 1 loss, and the most that the swap error allows.'
    """
    columns, n = found.columns, len(found.losses)
    finding = f"Swap regret of {counted(n, 'loss', 'losses')}, and the most that the swap error allows."

    def draw(ax: "Axes") -> None:
        least = max(min([*columns["at_most"], 1.0]) / 100.0, 1e-2)
        for k, each in enumerate(found.losses):
            ends = [max(each.swap_regret, least), max(each.at_most, least)]
            ax.hlines([k], ends[:1], ends[1:], color=LIGHT["before"], linewidth=2.0, alpha=0.5)
            for which, value in zip(("after", "before"), ends, strict=True):
                ax.plot([value], [k], **(_style(which, 7.0) | {"linestyle": "none", "gid": None}))
            text, near = f"{number(each.swap_regret)} of at most {number(each.at_most)}", (0, 8)
            ax.annotate(text, (ends[0], k), xytext=near, textcoords="offset points", fontsize=SMALL, color=LIGHT["ink"])
        ax.set_xscale("log")
        ax.set_yticks(range(n), columns["loss"], fontsize=SMALL)
        ax.set_ylim(n - 0.5, -0.8)
        ax.set_xlim(0.5 * least, 20.0 * max([*columns["at_most"], 1.0]))

    axes = {"x": f"total over {count(found.n_rows)} rows", "y": "", "grid": "x"}
    return Figure(columns, finding, 1.2 + 0.5 * n, axes, draw, "" if n else "no loss was asked about")

"""How forecasts are scored: in which bins, for whom, and before and after beside each other, with losses in pairs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from swapcal.audits import Audit
from swapcal.audits.column import Column
from swapcal.audits.scores import ErrorHistory, Paired, PairedLosses
from swapcal.audits.summary import ColumnSummary
from swapcal.audits.sums import Times
from swapcal.decisions import Decisions
from swapcal.hypotheses.numeric import Numeric
from swapcal.inputs import inside
from swapcal.protocols import Elicitable, Rows
from swapcal.sparse import sliced, stacked, taken
from swapcal.state import joined, take_over
from swapcal.tasks.columns import ClusterNumbers, head_columns
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.result import Clusters, History, Section
from swapcal.typing import Float64Array, IntArray

if TYPE_CHECKING:
    from swapcal.tables.batch import Batch

# --------
# Which forecasts are taken together: bins for the totals, and coarser ones for the pictures.

MOST_BIN_VALUES = 200
N_BINS = 48
N_SHOWN = 20
# So many of 20 equal bins must hold a hundredth of the forecasts each, or the pictures get bins between quantiles.
FEW = 6


class Binning(NamedTuple):
    """Bins as `Audit` takes them, edges of the bins of the pictures, and a clause that says what was done."""

    audit_bins: int | Float64Array
    shown: Float64Array
    stated: str


def binning(property: Elicitable, p: Float64Array, n_bins: int | None, distinct: Float64Array | None = None) -> Binning:
    """How to bin a column of forecasts of which `p` is a sample, and `distinct` are all values, if that is known.

    With `n_bins`: in that many equal bins of the domain. Otherwise, if `p` has at most 200 different values, each is a
    bin of its own, and a value that comes up later joins the nearest. Else there are about 48 bins: 20 of the pictures,
    cut further at quantiles of `p` so that dense parts get more. Each forecast is judged at its own value: nothing is
    rounded.
    """
    low, high = property.domain
    even = np.linspace(low, high, N_SHOWN + 1)
    if n_bins is not None:
        edges = np.linspace(low, high, n_bins + 1)
        stated = f"forecasts were taken together in {n_bins} equal bins of [{low:g}, {high:g}]"
        return Binning(edges, _snapped(even, edges), stated)
    distinct = np.unique(p if distinct is None else distinct)
    shown = even if _balanced(p, even) or len(distinct) < 2 else _quantile_edges(p, N_SHOWN, low, high)
    if len(distinct) <= MOST_BIN_VALUES:
        # Neighbors that differ in the last bit have no number between them, and share a bin.
        edges = np.unique(np.concatenate([[low], (distinct[1:] + distinct[:-1]) / 2, [high]]))
        edges = edges if len(distinct) > 1 else np.array([low, high])
        stated = f"every one of the {len(distinct)} forecast values was judged by itself"
        if len(distinct) == 1:
            stated = f"the forecasts are all {distinct[0]:g}, and were judged together"
        return Binning(edges, _snapped(shown, edges), stated)
    edges = np.unique(np.concatenate([shown, _quantile_edges(p, N_BINS - N_SHOWN + 1, low, high)]))
    return Binning(edges, shown, f"forecasts were taken together in {len(edges) - 1} bins, denser where they are dense")


def binning_by_outcomes(property: Elicitable, y: Float64Array) -> Binning:
    """How to bin forecasts of which nothing is known but the first outcomes: densely where these are, or evenly."""
    low, high = property.domain
    if len(np.unique(y)) > MOST_BIN_VALUES:
        return binning(property, np.clip(y, low, high), None)
    edges = np.linspace(low, high, 2 * N_SHOWN + 1)
    return Binning(edges, edges[::2], f"forecasts were taken together in {2 * N_SHOWN} equal bins")


def _balanced(p: Float64Array, edges: Float64Array) -> bool:
    counts = np.bincount(np.searchsorted(edges[1:-1], p, side="right"), minlength=len(edges) - 1)
    return bool(np.count_nonzero(counts >= 0.01 * max(len(p), 1)) >= FEW)


def _quantile_edges(p: Float64Array, n_bins: int, low: float, high: float) -> Float64Array:
    inner = np.quantile(p, np.arange(1, n_bins) / n_bins)
    edges: Float64Array = np.unique(np.concatenate([[low], inner, [high]]))
    return edges


def _snapped(wanted: Float64Array, edges: Float64Array) -> Float64Array:
    """The edges nearest to those that are wanted, both ends included: bins that are unions of the finer ones."""
    if len(edges) <= len(wanted):
        return edges
    nearest = np.abs(edges[None, :] - wanted[:, None]).argmin(axis=1)
    snapped: Float64Array = edges[np.unique(np.concatenate([[0], nearest, [len(edges) - 1]]))]
    return snapped


# --------
# For whom: groups, and linear functions of columns of numbers beside them.

ROOM = 64


class ContextRows(NamedTuple):
    """The functions' values in some rows of a table: of the groups, of the linear class, of the forecaster's own one.

    None for one that there is not.
    """

    groups: Rows
    linear: Rows | None = None
    own: Rows | None = None

    def part(self, part: slice) -> "ContextRows":
        """A run of these rows."""
        if part.start == 0 and part.stop == len(self.groups.indptr) - 1:
            return self
        return self._each(lambda rows: sliced(rows, part.start, part.stop))

    def taken(self, rows: IntArray) -> "ContextRows":
        """The rows with these numbers."""
        return self._each(lambda one: taken(one, rows))

    def _each(self, change: Callable[[Rows], Rows]) -> "ContextRows":
        linear, own = (None if one is None else change(one) for one in self[1:])
        return ContextRows(change(self.groups), linear, own)

    @classmethod
    def joined(cls, parts: Sequence["ContextRows"]) -> "ContextRows":
        """Several in one; of the groups alone where one has no linear class."""
        linear = [part.linear for part in parts if part.linear is not None]
        return cls(stacked([part.groups for part in parts]), stacked(linear) if len(linear) == len(parts) else None)


class ContextColumns:
    """The groups of a question, "all" first, and beside them its linear class, if there is one."""

    def __init__(self, groups: Any, numeric: Numeric | None = None) -> None:
        self.groups = groups
        self.numeric = numeric
        # The forecaster's class where it is neither of them, and the columns that it must not see.
        self.own: Any = None
        self.told: frozenset[str] = frozenset()
        # What else every column keeps: which parts, and whether its intervals hold at any time.
        self.options: dict[str, Any] = {}

    @property
    def edges(self) -> dict[str, tuple[float, ...]]:
        """The inner edges of bands and bins, by column."""
        return {name: cut for one in getattr(self.groups, "parts", (self.groups,)) for name, cut in one.edges.items()}

    @classmethod
    def fitted(cls, question: TaskConfig, batches: Sequence["Batch"]) -> "ContextColumns":
        """Those whom a question asks about, as far as the first rows show them."""
        return cls.seen(question, lambda names: head_columns(batches, names, question.prefix))

    @classmethod
    def seen(cls, question: TaskConfig, columns: Callable[[tuple[str, ...]], Mapping[str, Any]]) -> "ContextColumns":
        """Those whom a question asks about, as far as a sample of the columns that groups are made from shows them."""
        groups = question.grouping()
        groups.fit(columns(question.group_columns))
        return cls(groups, Numeric(list(question.linear)) if question.linear else None)

    @classmethod
    def resumed(cls, question: TaskConfig, spec: Mapping[str, Any]) -> "ContextColumns":
        """Those of a question, with all that `spec` had seen."""
        if question.hypotheses is None:
            question = replace(question, limit=int(spec["groups"]["limit"]))
        groups = question.grouping().resumed(spec["groups"])
        numeric = Numeric(list(question.linear)).resumed(spec["numeric"]) if question.linear else None
        return cls(groups, numeric)

    def with_room(self, question: TaskConfig) -> "ContextColumns":
        """The same with room for values that first come up late: as many groups again as there are, and `ROOM`."""
        if question.hypotheses is not None:
            return self
        return self.limited(question, min(question.limit, 2 * (len(self.groups.names) - 1) + ROOM))

    def limited(self, question: TaskConfig, limit: int) -> "ContextColumns":
        """The same with room for no more than `limit` groups, which must not be fewer than have come up."""
        spec = self.spec()
        n = replace(question, limit=limit).grouping().n
        return ContextColumns.resumed(question, {**spec, "groups": {**spec["groups"], "limit": limit, "n": n}})

    def spec(self) -> dict[str, Any]:
        """Plain data: all that has been seen."""
        return {"groups": self.groups.spec(), "numeric": None if self.numeric is None else self.numeric.spec()}

    def rows(self, batch: "Batch") -> ContextRows:
        """The functions' values in each row of the batch."""
        linear = None if self.numeric is None else self.numeric.rows(batch, batch.n)
        own = None if self.own is None else self.own.rows(batch.without(self.told), batch.n)
        return ContextRows(self.groups.rows(batch, batch.n), linear, own)

    def column(
        self, property: Elicitable, binning: Binning | None, label: str, shown: Float64Array | int, **options: Any
    ) -> Column:
        """What audits a column of forecasts for them; without `binning` each distinct forecast is judged by itself.

        `options` says what else `Column` is to keep.
        """
        bins = None if binning is None else binning.audit_bins
        linear = None
        if self.numeric is not None:
            names = ("constant", *self.numeric.columns)
            linear = Audit(property, self.numeric, bins=bins, names=names)
        return Column(
            Audit(property, self.groups, bins=bins), linear, label=label, shown=shown, **self.options, **options
        )


# --------
# Before and after.

# Means that are kept of each group: `Evaluation.score` says of what.
TOLD = ("predicted", "observed")

# The guarantee holds with probability 1 - DELTA.
DELTA = 0.05


class Evaluation:
    """Forecasts of a model ("before") and of swapcal ("after"): their columns, losses in pairs, errors over time.

    Memory is bounded, and it can be resumed.

    Parameters
    ----------
    sides : mapping
        Of "before" and "after", one or both, in this order: columns by the name of what they are about, the one that
        decides what is scored first.
    losses : sequence of str
        Names of what `score` returns of each row.
    r : float
        Power of the error.
    costs : str, optional
        Of those who act on the forecasts, as `Decisions.parsed` takes them.
    brief : bool
        Leave out of summaries what no verdict needs.
    """

    def __init__(
        self,
        sides: Mapping[str, Mapping[str, Column]],
        losses: Sequence[str],
        r: float = 2.0,
        costs: str | None = None,
        *,
        brief: bool = False,
    ) -> None:
        self.sides, self.r, self.brief = sides, r, brief
        self.losses = {name: PairedLosses() for name in losses}
        self.acted = {} if costs is None else {which: Decisions.parsed(costs) for which in sides}
        self._history = ErrorHistory()
        # Rows with an outcome and without a forecast of swapcal; rows whose forecast is not the model's own.
        self.n_early = self.n_changed = 0

    @property
    def leading(self) -> Column:
        """The column that says what was scored: of swapcal's forecasts, or of the model's where there is no other."""
        return next(iter([*self.sides.values()][-1].values()))

    def score(
        self,
        columns: Mapping[str, Column],
        y: Float64Array,
        p: Float64Array,
        rows: ContextRows,
        weights: Float64Array | None,
        **more: Any,
    ) -> tuple[Float64Array, ...]:
        """Add rows to the columns of a side, nothing missing; their losses."""
        return (columns[""].add(y, p, rows.groups, rows.linear, weights, **more),)

    def add(
        self,
        y: Float64Array,
        before: Float64Array | None,
        after: Float64Array | None,
        rows: ContextRows,
        weights: Float64Array | None = None,
        *,
        clusters: IntArray | None = None,
        time: Times | None = None,
    ) -> None:
        """Add rows; NaN is a missing outcome or forecast. `clusters` and `time` are as `Column.add` takes them."""
        given = {"before": before, "after": after}
        shown = {which: p for which, p in given.items() if which in self.sides and p is not None}
        there = {which: ~(np.isnan(y) | missing(p)) for which, p in shown.items()}
        if "after" in there:
            self.n_early += int(np.count_nonzero(~np.isnan(y) & ~there["after"]))
        losses = {}
        for which, p in shown.items():
            at = np.flatnonzero(there[which])
            some = rows if len(at) == len(y) else rows.taken(at)
            more: dict[str, Any] = {} if clusters is None else {"clusters": clusters[at]}
            more |= {} if time is None else {"time": _times_at(time, at)}
            w = None if weights is None else weights[at]
            losses[which] = self.score(self.sides[which], y[at], p[at], some, w, **more)
        both = np.logical_and.reduce([*there.values()])
        w = None if weights is None else weights[both]
        for which in shown if self.acted else ():
            self.acted[which].update_many(*inside(self.leading.property, y[both], shown[which][both]), w)
        if len(shown) == 2:
            differs = shown["before"][both] != shown["after"][both]
            self.n_changed += int(np.count_nonzero(differs if differs.ndim == 1 else differs.any(axis=1)))
            for k, pairs in enumerate(self.losses.values()):
                model, ours = (losses[which][k][both[there[which]]] for which in ("before", "after"))
                pairs.add(model, ours, w)

    def paired(self) -> dict[str, Paired]:
        """Losses before and after on the same rows, by name; those of which there are both."""
        pairs = {name: losses.paired() for name, losses in self.losses.items()}
        return {name: pair for name, pair in pairs.items() if pair is not None}

    def summary(self, column: Column) -> ColumnSummary:
        """All that is shown of a column."""
        return column.summary(self.r, brief=self.brief)

    def section(self, name: str = "", title: str = "", **more: Any) -> Section:
        """What is told of the columns of this name."""
        used = {which: side[name] for which, side in self.sides.items() if side[name].weight > 0}
        return section_of(used, self.summary, title, **more)

    # --------
    # Errors as the stream goes by.

    def parts(self, known: npt.NDArray[np.bool_]) -> Iterator[slice]:
        """Parts of the next rows, cut where errors are to be noted; `known` says which of them are scored."""
        return self._history.parts(self.leading.n_rounds, known)

    def note(self, guarantee: Callable[[], float] | None = None) -> None:
        """Note the errors, and the guarantee beside them, if that is due."""
        if self._history.due(self.leading.n_rounds):
            self._history.note(self.leading.n_rounds, *self._errors(guarantee).values())

    def history(self, guarantee: Callable[[], float] | None = None) -> History:
        """What was noted, and how it is now."""
        errors = self._errors(guarantee)
        rounds, *series = self._history.series(self.leading.n_rounds, *errors.values())
        by_name = dict(zip(errors, series, strict=True))
        return History(rounds, *(by_name.get(name) for name in ("before", "after", "guarantee")))

    def _errors(self, guarantee: Callable[[], float] | None) -> dict[str, float]:
        columns = {which: next(iter(side.values())) for which, side in self.sides.items()}
        errors = {which: each.swap_error(self.r) if each.n_rounds else 0.0 for which, each in columns.items()}
        return errors if guarantee is None else {**errors, "guarantee": guarantee()}

    # --------
    # The state.

    def arrays(self) -> dict[str, Float64Array]:
        """The whole state."""
        return joined(self._kept())

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Go on from what `arrays` held."""
        take_over(self._kept(), arrays)

    def _kept(self) -> dict[str, Any]:
        columns = {f"{which}.{name}": each for which, side in self.sides.items() for name, each in side.items()}
        losses = {f"losses.{name}": losses for name, losses in self.losses.items()}
        acted = {f"acted.{which}": decisions for which, decisions in self.acted.items()}
        return {**columns, **losses, **acted, "history": self._history}


def section_of(
    columns: Mapping[str, Column], summary: Callable[[Column], ColumnSummary], title: str = "", **more: Any
) -> Section:
    """What is told of columns with rounds, the model's "before" and swapcal's "after"."""
    sides = {which: summary(column) for which, column in columns.items()}
    kept = {which: column.means for which, column in columns.items() if column.means is not None}
    means = {which: {each: some.of(each) for each in some.names} for which, some in kept.items()}
    names = list(columns.values())[-1].names
    return Section(title, sides.get("before"), sides.get("after"), names, means=means, **more)


def told_clusters(numbers: ClusterNumbers | None, column: Column) -> Clusters | None:
    """Which rows were taken together, and how many such clusters there were."""
    if numbers is None or column.clusters is None:
        return None
    return Clusters(numbers.name, numbers.by_day, column.clusters.count)


def missing(forecasts: Float64Array) -> npt.NDArray[np.bool_]:
    """Which rows have no forecast, or not all of it."""
    nowhere: npt.NDArray[np.bool_] = np.isnan(forecasts)
    return nowhere if nowhere.ndim == 1 else np.asarray(nowhere.any(axis=1))


def _times_at(time: Times, rows: IntArray) -> Times:
    """The times of some rows, by their numbers among these."""
    return lambda t: time(int(rows[t]))

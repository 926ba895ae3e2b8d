"""For whom forecasts are audited, and before and after beside each other: both audits, losses in pairs, the history."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from swapcal.audits import Audit
from swapcal.audits.column import Column
from swapcal.audits.scores import ErrorHistory, PairedLosses, fine_edges
from swapcal.decisions import Decisions
from swapcal.forecaster import Forecaster
from swapcal.hypotheses import Groups
from swapcal.hypotheses.numeric import Numeric
from swapcal.protocols import Elicitable, Rows
from swapcal.sparse import sliced, stacked, taken
from swapcal.state import joined, take_over
from swapcal.tasks.columns import head_columns
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.result import History
from swapcal.tasks.survey import Binning
from swapcal.typing import Float64Array, IntArray

if TYPE_CHECKING:
    from swapcal.tables.batch import Batch

# --------
# For whom: groups, and linear functions of columns of numbers beside them.

ROOM = 64


class ContextRows(NamedTuple):
    """The functions' values in some rows of a table: of the groups, and of the linear class if there is one."""

    groups: Rows
    linear: Rows | None

    def part(self, part: slice) -> "ContextRows":
        """A run of these rows."""
        if part.start == 0 and part.stop == len(self.groups.indptr) - 1:
            return self
        linear = None if self.linear is None else sliced(self.linear, part.start, part.stop)
        return ContextRows(sliced(self.groups, part.start, part.stop), linear)

    def taken(self, rows: IntArray) -> "ContextRows":
        """The rows with these numbers."""
        return ContextRows(taken(self.groups, rows), None if self.linear is None else taken(self.linear, rows))

    @classmethod
    def joined(cls, parts: Sequence["ContextRows"]) -> "ContextRows":
        """Several in one; of the groups alone where one has no linear class."""
        linear = [part.linear for part in parts if part.linear is not None]
        return cls(stacked([part.groups for part in parts]), stacked(linear) if len(linear) == len(parts) else None)


class ContextColumns:
    """The groups of a question, "all" first, and beside them its linear class, if there is one."""

    def __init__(self, groups: Groups, numeric: Numeric | None = None) -> None:
        self.groups = groups
        self.numeric = numeric

    @classmethod
    def fitted(cls, question: TaskConfig, batches: Sequence["Batch"]) -> "ContextColumns":
        """Those whom a question asks about, as far as the first rows show them."""
        return cls.seen(question, lambda names: head_columns(batches, names, question.prefix))

    @classmethod
    def seen(cls, question: TaskConfig, columns: Callable[[tuple[str, ...]], Mapping[str, Any]]) -> "ContextColumns":
        """Those whom a question asks about, as far as a sample of the columns that groups are made from shows them."""
        groups = question.grouping()
        groups.fit(columns(groups.columns))
        return cls(groups, Numeric(list(question.linear)) if question.linear else None)

    @classmethod
    def resumed(cls, question: TaskConfig, spec: Mapping[str, Any]) -> "ContextColumns":
        """Those of a question, with all that `spec` had seen."""
        groups = replace(question, limit=int(spec["groups"]["limit"])).grouping().resumed(spec["groups"])
        numeric = Numeric(list(question.linear)).resumed(spec["numeric"]) if question.linear else None
        return cls(groups, numeric)

    def with_room(self, question: TaskConfig) -> "ContextColumns":
        """The same with room for values that first come up late: as many groups again as there are, and `ROOM`."""
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
        return ContextRows(self.groups.rows(batch, batch.n), linear)

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
        return Column(Audit(property, self.groups, bins=bins), linear, label=label, shown=shown, **options)


# --------
# Before and after.

# The guarantee holds with probability 1 - DELTA.
DELTA = 0.05

# Fine bins of forecasts that are on a grid, for AUC.
N_EVEN = 2000


class Evaluation:
    """Audits of swapcal's forecasts and, with a hint, of the hint's own. Memory is bounded, and it can be resumed.

    Parameters
    ----------
    property : Elicitable
        What is forecast.
    audience : ContextColumns
        For whom.
    binning : Binning, optional
        How the hint's forecasts are taken together; None without a hint. Those of swapcal are on a grid already.
    first : array
        The first outcomes, which settle the bins of the outcomes' histograms.
    hints : array, optional
        The first forecasts of the hint, none missing, from which fine bins for AUC are made.
    r : float
        Power of the error.
    late : bool
        Where outcomes come late, swapcal may show numbers of the hint, which are on no grid: both have the same bins.
    costs : str, optional
        Of those who act on the forecasts, as `Decisions.parsed` takes them.
    """

    def __init__(
        self,
        property: Elicitable,
        audience: ContextColumns,
        binning: Binning | None,
        first: Float64Array,
        r: float,
        hints: Float64Array | None = None,
        costs: str | None = None,
        *,
        late: bool = False,
    ) -> None:
        self.r = r
        shown = 20 if binning is None else binning.shown
        even = np.linspace(*property.domain, N_EVEN + 1)[1:-1]
        self.after = audience.column(property, binning if late else None, "swapcal", shown, first=first, fine=even)
        self.before = None
        if binning is not None:
            fine = even if hints is None else fine_edges(hints)
            self.before = audience.column(property, binning, "the model", shown, first=first, fine=fine)
        self.losses = PairedLosses()
        self._history = ErrorHistory()
        self.acted = {} if costs is None else {name: Decisions.parsed(costs) for name in ("before", "after")}

    def parts(self, known: npt.NDArray[np.bool_]) -> Iterator[slice]:
        """Parts of the next rows, cut where errors are to be noted; `known` says which of them have an outcome."""
        return self._history.parts(self.after.n_rounds, known)

    def add(
        self,
        y: Float64Array,
        before: Float64Array | None,
        after: Float64Array,
        rows: ContextRows,
        weights: Float64Array | None,
    ) -> None:
        """Add rows; NaN is a missing outcome or hint."""
        known = ~np.isnan(y)
        if not known.all():
            scored = np.flatnonzero(known)
            y, after, rows = y[scored], after[scored], rows.taken(scored)
            before = None if before is None else before[scored]
            weights = None if weights is None else weights[scored]
        losses = self.after.add(y, after, *rows, weights)
        if before is None or self.before is None:
            if self.acted:
                self.acted["after"].update_many(y, after, weights)
            return
        hinted = ~np.isnan(before)
        if not hinted.all():
            scored = np.flatnonzero(hinted)
            y, before, losses, rows = y[scored], before[scored], losses[scored], rows.taken(scored)
            after = after[scored]
            weights = None if weights is None else weights[scored]
        for name, decisions in self.acted.items():
            decisions.update_many(y, before if name == "before" else after, weights)
        self.losses.add(self.before.add(y, before, *rows, weights), losses, weights)

    def note(self, forecaster: Forecaster) -> None:
        """Note the errors and the guarantee, if that is due."""
        if self._history.due(self.after.n_rounds):
            self._history.note(self.after.n_rounds, *self._now(forecaster))

    def history(self, forecaster: Forecaster) -> History:
        """What was noted, and how it is now."""
        rounds, before, after, guarantee = self._history.series(self.after.n_rounds, *self._now(forecaster))
        return History(rounds, None if self.before is None else before, after, guarantee)

    def _now(self, forecaster: Forecaster) -> tuple[float, float, float]:
        before = 0.0 if self.before is None or not self.before.n_rounds else self.before.swap_error(self.r)
        return before, self.after.swap_error(self.r), float(forecaster.guarantee(DELTA))

    def arrays(self) -> dict[str, Float64Array]:
        """The whole state."""
        return joined(self._kept())

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Go on from what `arrays` held."""
        take_over(self._kept(), arrays)

    def _kept(self) -> dict[str, Column | PairedLosses | ErrorHistory | Decisions]:
        before: dict[str, Any] = {} if self.before is None else {"before": self.before}
        return {"after": self.after, **before, "losses": self.losses, "history": self._history} | {
            f"acted_{name}": decisions for name, decisions in self.acted.items()
        }

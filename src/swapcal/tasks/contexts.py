"""For whom forecasts are audited: groups, and linear functions of columns of numbers beside them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from swapcal.audits import Audit
from swapcal.audits.column import Column
from swapcal.hypotheses import Groups
from swapcal.hypotheses.numeric import Numeric
from swapcal.protocols import Elicitable, Rows
from swapcal.sparse import sliced, stacked, taken
from swapcal.tasks.columns import head_columns
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.survey import Binning
from swapcal.typing import Float64Array, IntArray

if TYPE_CHECKING:
    from swapcal.tables.batch import Batch

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

    def taken(self, kept: IntArray) -> "ContextRows":
        """The rows with these numbers."""
        return ContextRows(taken(self.groups, kept), None if self.linear is None else taken(self.linear, kept))

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
        self, property: Elicitable, binning: Binning | None, label: str, shown: Float64Array | int, **kept: Any
    ) -> Column:
        """What audits a column of forecasts for them; without `binning` each distinct forecast is judged by itself.

        `kept` says what else `Column` is to keep.
        """
        bins = None if binning is None else binning.audit_bins
        linear = None
        if self.numeric is not None:
            names = ("constant", *self.numeric.columns)
            linear = Audit(property, self.numeric, bins=bins, names=names)
        return Column(Audit(property, self.groups, bins=bins), linear, label=label, shown=shown, **kept)

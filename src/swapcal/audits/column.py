"""One column of forecasts: its audits and what is kept beside them, as parts that add rounds, merge and are saved."""

from collections.abc import Collection
from typing import Any

import numpy as np

from swapcal.audits.audit import Audit
from swapcal.audits.chance import StratifiedSample
from swapcal.audits.groups import ClusterSums, GroupBias, bias_of_group, group_sums
from swapcal.audits.histograms import Histograms
from swapcal.audits.scores import GroupMeans, ScoreSums, Timeline
from swapcal.audits.summary import ColumnSummary, summarize
from swapcal.audits.sums import PER_CELL, Part, Positions, Scored, SumTable, Times, added, counted, grown
from swapcal.errors import InvalidInput
from swapcal.inputs import inside
from swapcal.protocols import Elicitable, Hypotheses, Rows
from swapcal.state import Packed, Saved, Shape, Stateful, joined, part_of, take_over
from swapcal.typing import Float64Array, IntArray

# What a column may keep beside the sums of its audits.
PARTS = ("histograms", "timeline", "sample", "scores", "clusters", "forecasts", "means")

USUAL = ("histograms", "timeline", "sample")
# What of it adds up to that of the whole: all but what needs the order of the rounds; clusters where there are any.
MERGED = ("histograms", "clusters")


class Column(Stateful):
    """The audits of one column of forecasts, with its losses and all that is shown. Add batches, merge, ask any time.

    Parameters
    ----------
    audit : Audit
        Over the groups; not begun. Every error of the column is what this audit gives.
    linear : Audit, optional
        Over a linear class beside them, of the same property and with the same bins. The worst function is then that
        of either audit.
    label : str
        Whose forecasts they are: "the model", "swapcal".
    shown : int or array
        Bins of the pictures: that many equal ones of the property's domain, or their edges.
    first : array, optional
        Outcomes that settle the bins of the outcomes' histograms; default those of the first batch.
    constant : float, optional
        A constant forecast whose loss is kept beside that of the column; the best one, as far as is known.
    fine : array, optional
        Inner edges of the fine bins of forecasts from which AUC is read, while outcomes are 0 or 1.
    means : tuple of str
        Names of more numbers of each round, whose means over groups are kept.
    parts : collection of str
        What to keep beside the sums, of "histograms", without which there is no summary; "timeline", bias over time;
        "sample", from which chance is drawn for all groups together; and "clusters", where rows form clusters in
        clusters whose numbers come with them.
    anytime : bool
        Whether intervals hold at any time, as for a stream that is looked at again and again; else for one look.
    adaptive : bool
        Whether forecasts react to outcomes, so that who is in a range of forecasts does, too: intervals of these then
        hold at any time.

    Notes
    -----
    Memory: 40 bytes per forecast value and function that came up, 1 kB a group, and 16 kB for each of the first 400
    groups, whatever the number of rounds.

    Examples
    --------
    >>> from swapcal.hypotheses import Finite
    >>> column = Column(Audit(hypotheses=Finite(2)), label="the model")
    >>> rows = Finite(2).rows([[1, 0], [1, 1], [1, 1], [1, 0]], 4)
    >>> losses = column.add(np.array([1.0, 0, 0, 1]), np.full(4, 0.5), rows)
    >>> column.overall_error(), column.group_error(), column.swap_error(r=1.0)
    (0.0, 0.25, 1.0)
    """

    kind = "column"

    def __init__(
        self,
        audit: Audit,
        linear: Audit | None = None,
        *,
        label: str,
        shown: int | Float64Array = 20,
        first: Float64Array | None = None,
        constant: float | None = None,
        fine: Float64Array | None = None,
        means: tuple[str, ...] = (),
        parts: Collection[str] = USUAL,
        anytime: bool = False,
        adaptive: bool = False,
    ) -> None:
        self.audit, self.linear, self.property = audit, linear, audit.property
        self.label, self.constant, self.anytime, self.adaptive = label, constant, anytime, adaptive
        self.slot_edges = audit.bins if isinstance(audit.bins, np.ndarray) else None
        edges = (
            np.linspace(*self.property.domain, shown + 1)
            if isinstance(shown, int)
            else np.array(shown, dtype=np.float64)
        )
        # Forecasts of events, if the outcomes turn out to be 0 or 1; and V that has two values whatever they are.
        events = self.property.domain == (0.0, 1.0) and self.property.outcome(0.0, 0.0) is not None
        self._steps = not events and self.property.binary_p(0.0) is not None
        n = audit._functions().n
        self.histograms = Histograms(self.property, edges, self.slot_edges) if "histograms" in parts else None
        if self.histograms is not None and first is not None:
            self.histograms.settle(first)
        self.timeline = Timeline() if "timeline" in parts else None
        self.sample = StratifiedSample(n) if "sample" in parts else None
        self.scores = ScoreSums(fine) if events and fine is not None else None
        self.clusters = ClusterSums(n) if "clusters" in parts else None
        self.forecasts = CellForecasts() if events and self.slot_edges is not None else None
        self.means = GroupMeans(n, tuple(means)) if means else None
        self._binary = events or self._steps
        # Weight, loss, V squared, y, y squared, and the constant's loss, summed.
        self._totals = np.zeros(6)

    def add(
        self,
        y: Float64Array,
        p: Float64Array,
        rows: Rows,
        linear: Rows | None = None,
        weights: Float64Array | None = None,
        clusters: IntArray | None = None,
        time: Times | None = None,
        numbers: tuple[Float64Array, ...] = (),
    ) -> Float64Array:
        """Add rounds, and return their losses.

        Parameters
        ----------
        y, p : array
            Outcomes and forecasts, none missing, which may be outside the range: all is of these numbers as they are.
            A property of your own is asked inside its range alone, so there the end of the range is taken.
        rows, linear : Rows
            Values of the groups and of the coordinates of the linear class, one row a round.
        weights : array, optional
            In [0, 1].
        clusters : array, optional
            The number of each row's cluster, where the column was made with clusters.
        time : callable, optional
            What is known of the time of a row, by its number among these, for `timeline`.
        numbers : tuple of arrays
            One for each name in `means`; without any, forecasts and outcomes.
        """
        if not len(y):
            return np.zeros(0)
        if len(y) != len(p) or np.isnan(y).any() or np.isnan(p).any():
            raise InvalidInput(
                f"y and p must be finite, one entry per round; got {len(y)} outcomes, {len(p)} forecasts"
            )
        if not self.property.kernel["property"]:
            y, p = inside(self.property, y, p)
        judged = p if isinstance(self.audit.bins, np.ndarray) else self.audit.rounded(np.clip(p, *self.property.domain))
        losses = np.asarray(self.property.loss(p, y), dtype=np.float64)
        v = np.asarray(self.property.identification(judged, y), dtype=np.float64)
        for audit, some in ((self.audit, rows), (self.linear, linear)):
            if audit is not None:
                audit._count(judged, v, some, weights)
        w = np.ones(len(y)) if weights is None else weights
        still = np.zeros(len(y)) if self.constant is None else w * np.asarray(self.property.loss(self.constant, y))
        terms = np.column_stack([w, w * losses, w * v * v, w * y, w * y * y, still])
        # From left to right, so that the last digit depends neither on threads nor on where rounds are cut into calls.
        self._totals = np.cumsum(np.vstack([self._totals, terms]), axis=0)[-1]
        numbers = numbers or ((p, y) if self.means is not None else ())
        scored = Scored(y, p, v, self.audit.slots(judged), rows, linear, weights, clusters, time, numbers)
        events = self._steps or bool(((y == 0.0) | (y == 1.0)).all())
        self._binary = self._binary and events and scored.once
        self.scores = self.scores if events else None
        for name, part in self._parts().items():
            if name != "forecasts" or self._binary:
                part.add(scored)
        return losses

    def merge(self, other: "Column") -> tuple[str, ...]:
        """Add the rounds of another column, of the same property, bins and groups, which are matched by name.

        Parameters
        ----------
        other : Column
            Stays as it is.

        Returns
        -------
        tuple of str
            Names of the parts that fell away, as they cannot be merged: what needs the order of all rounds.
        """
        if (self.linear is None) != (other.linear is None) or self.constant != other.constant:
            raise InvalidInput("columns can be merged only if they have the same linear class and constant")
        at = self.audit._merge(other.audit)
        if self.linear is not None and other.linear is not None:
            self.linear.merge(other.linear)
        self._totals = self._totals + other._totals
        self._binary = self._binary and other._binary
        gone = []
        for name, part in self._parts().items():
            theirs = getattr(other, name)
            if theirs is None or not part.merge(theirs, at):
                setattr(self, name, None)
                gone.append(name)
        return tuple(gone)

    def emptied(self) -> "Column":
        """A column with the same settings and bins, without rounds."""
        audits = (audit.emptied() for audit in self._audits().values())
        copy = Column(*audits, **self._settings(), fine=None if self.scores is None else self.scores.edges)
        if copy.histograms is not None and self.histograms is not None:
            copy.histograms.settle_as(self.histograms)
        return copy

    def summary(self, r: float = 2.0, *, brief: bool = False) -> ColumnSummary:
        """Everything that is shown of the column; if `brief`, what a verdict is made from, without its pictures."""
        return summarize(self, r, brief=brief)

    def groups(self) -> GroupBias:
        """Every group over all its rows: bias, interval, and whether it is called off."""
        table = self.audit.table()
        sums = group_sums(table, self.cell_forecasts(table), self._centers(table), self.clusters)
        error = table.count @ (table.xv / table.count[:, None]) ** 2
        return bias_of_group(sums, self.audit.function_names, error, anytime=self.anytime)

    @property
    def functions(self) -> Hypotheses:
        """The groups, as far as they have come up."""
        return self.audit._functions()

    @property
    def binary(self) -> bool:
        """Whether V has had two values only, groups were 0 or 1, and every row counted once: exact intervals hold."""
        return self._binary

    @property
    def n_rounds(self) -> int:
        """Rounds so far."""
        return self.audit.n_rounds

    @property
    def weight(self) -> float:
        """Sum of their weights."""
        return float(self._totals[0])

    @property
    def loss(self) -> float:
        """Mean loss so far, at the forecasts themselves; NaN before the first round."""
        return float(self._totals[1] / self._totals[0]) if self._totals[0] > 0 else float("nan")

    @property
    def typical(self) -> float:
        """Root mean square of V: how far off a single round usually is, in the units of a cell's mean."""
        return float(np.sqrt(self._totals[2] / self._totals[0])) if self._totals[0] > 0 else float("nan")

    @property
    def outcome_sums(self) -> tuple[float, float, float]:
        """Sums of w, w y and w y^2."""
        return float(self._totals[0]), float(self._totals[3]), float(self._totals[4])

    @property
    def constant_loss(self) -> float | None:
        """Mean loss of the constant that the column was made with."""
        return None if self.constant is None else float(self._totals[5] / self._totals[0])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the groups, "all" first, then those of the coordinates of the linear class."""
        return (*self.audit.function_names, *(() if self.linear is None else self.linear.function_names))

    def overall_error(self, r: float = 2.0) -> float:
        """Cal_r: every forecast value, over all its rounds."""
        return self.audit.calibration(r)

    def group_error(self, r: float = 2.0) -> float:
        """MCal_r: the worst single function; over a linear class at r other than 2, the worst that was found."""
        return max(audit.multicalibration(r) for audit in self._audits().values())

    def swap_error(self, r: float = 2.0) -> float:
        """SMCal_r: every forecast value against its own worst function."""
        return float(np.sum(np.max([audit.contributions(r) for audit in self._audits().values()], axis=0)))

    def table(self) -> SumTable:
        """The sums of the audits beside each other, a column for each of `names`."""
        tables = [audit.table() for audit in self._audits().values()]
        cells = {name: np.concatenate([getattr(table, name) for table in tables], axis=1) for name in PER_CELL}
        first = tables[0]
        return SumTable(first.value, first.slot, first.rounds, first.count, first.v, first.vv, **cells)

    def cell_forecasts(self, table: SumTable) -> Float64Array | None:
        """For binary V = p - y, the sums of p in the cells of the groups; None where V has more values."""
        if not self._binary:
            return None
        if self._steps:
            return np.asarray(self.property.binary_p(table.value))[:, None] * table.active
        if self.forecasts is not None:
            return self.forecasts.table(table.slot, table.xv.shape[1])
        return table.value[:, None] * table.active

    def _centers(self, table: SumTable) -> Float64Array:
        """A p that stands for each place of the table, fixed before any outcome."""
        if self._steps:
            return np.asarray(self.property.binary_p(table.value))
        if self.slot_edges is None:
            return table.value
        return (self.slot_edges[table.slot] + self.slot_edges[table.slot + 1]) / 2

    def _audits(self) -> dict[str, Audit]:
        return {"audit": self.audit} if self.linear is None else {"audit": self.audit, "linear": self.linear}

    def arrays(self) -> dict[str, Float64Array]:
        """All that has been added up, by part; `restore` goes on from it in a column with the same settings."""
        flags = np.array([float(self._binary), float(self.scores is not None)])
        return {**joined({**self._audits(), **self._parts()}), "totals": self._totals, "binary": flags}

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Go on from what `arrays` held."""
        self._binary, scored = (bool(flag) for flag in arrays["binary"])
        self.scores = self.scores if scored else None
        take_over({**self._audits(), **self._parts()}, arrays)
        self._totals = arrays["totals"].copy()

    def to_state(self) -> Saved:
        """Settings, all that has been added up, and the audits without it."""
        arrays = self.arrays()
        plain = {"settings": self._settings(), "shapes": {name: array.shape for name, array in arrays.items()}}
        return Saved(plain, arrays, {name: audit.emptied().to_bytes() for name, audit in self._audits().items()})

    @classmethod
    def from_state(
        cls, packed: Packed, *, property: Elicitable | None = None, hypotheses: Hypotheses | None = None
    ) -> "Column":
        """The column again; a property, or functions beside `Groups`, of your own making are given again."""
        plain, parts = packed.plain, packed.parts
        audits = [Audit.from_bytes(parts["audit"], property=property, hypotheses=hypotheses)]
        audits += [Audit.from_bytes(parts["linear"], property=property)] if "linear" in parts else []
        settings = plain["settings"] | {"shown": np.array(plain["settings"]["shown"], dtype=np.float64)}
        column = cls(*audits, **settings, fine=np.zeros(0))
        for name in PARTS:
            if name not in settings["parts"]:
                setattr(column, name, None)
        loose = (".least", ".most", "clusters.id")
        shapes = {name: Shape(tuple(dims), finite=not name.endswith(loose)) for name, dims in plain["shapes"].items()}
        arrays = packed.arrays(shapes)
        if column.sample is not None:
            n_functions = [audit._functions().n for audit in audits]
            column.sample.check(part_of(arrays, "sample."), len(arrays["audit.count"]), *n_functions)
        column.restore(arrays)
        return column

    def _settings(self) -> dict[str, Any]:
        """What it was made with beside its audits, as plain data."""
        return {
            "label": self.label,
            "constant": self.constant,
            "shown": [] if self.histograms is None else self.histograms.edges.tolist(),
            "means": () if self.means is None else self.means.names,
            "parts": list(self._parts()),
            "anytime": self.anytime,
            "adaptive": self.adaptive,
        }

    def _parts(self) -> dict[str, Any]:
        parts = {name: getattr(self, name) for name in PARTS}
        return {name: part for name, part in parts.items() if part is not None}


class CellForecasts(Part):
    """P = sum of p over the rows of each cell, for groups of 0 and 1 and rows that count once.

    Memory: 8 bytes a cell; a batch costs one count over its entries.

    Examples
    --------
    >>> sums, p = CellForecasts(), np.array([0.1, 0.6])
    >>> sums.add(Scored(p, p, p, np.array([0, 1]), Rows(np.array([0, 1, 3]), np.array([0, 0, 2]), np.ones(3))))
    >>> sums.table(np.array([1]), 3)
    array([[0.6, 0. , 0.6]])
    """

    saved = ("_sums",)

    def __init__(self) -> None:
        self._sums = np.zeros((0, 0))

    def add(self, scored: Scored) -> None:
        """Add rows."""
        wanted = (int(scored.slots.max(initial=-1)) + 1, int(scored.rows.indices.max(initial=-1)) + 1)
        self._sums = grown(self._sums, wanted)
        keys = scored.cells(scored.slots, self._sums.shape[1])
        self._sums += counted(keys, np.repeat(scored.p, scored.lengths), self._sums.shape)

    def merge(self, other: "CellForecasts", at: Positions) -> bool:
        """Add another part of the stream."""
        self._sums = added(self._sums, other._sums, at.slots, at.groups)
        return True

    def table(self, slots: IntArray, n: int) -> Float64Array:
        """The sums at some places, for the first `n` groups."""
        return grown(self._sums[slots, :n], (0, n))

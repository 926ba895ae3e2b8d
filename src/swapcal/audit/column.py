"""One column of forecasts: its audits, and what is kept beside them for losses and pictures, in bounded memory."""

import numpy as np

from swapcal.audit.audit import Audit
from swapcal.audit.histograms import Histograms
from swapcal.audit.sums import PER_CELL, SumTable
from swapcal.roles import Rows
from swapcal.typing import Float64Array

__all__ = ["ColumnAudit"]


class ColumnAudit:
    """The audits of one column of forecasts, with its losses and histograms. Add batches, ask at any time.

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

    Notes
    -----
    Memory: 32 bytes per forecast value and function that came up, and 16 kB for each of the first 400 groups, whatever
    the number of rounds.

    Examples
    --------
    >>> from swapcal.hypotheses import Finite
    >>> column = ColumnAudit(Audit(hypotheses=Finite(2)), label="the model")
    >>> rows = Finite(2).rows([[1, 0], [1, 1], [1, 1], [1, 0]], 4)
    >>> losses = column.add(np.array([1.0, 0, 0, 1]), np.full(4, 0.5), rows)
    >>> column.overall_error(), column.group_error(), column.swap_error(r=1.0)
    (0.0, 0.25, 1.0)
    """

    def __init__(
        self, audit: Audit, linear: Audit | None = None, *, label: str, shown: int | Float64Array = 20
    ) -> None:
        self.audit = audit
        self.linear = linear
        self.property = audit.property
        self.label = label
        edges = (
            np.linspace(*self.property.domain, shown + 1) if isinstance(shown, int) else np.array(shown, dtype=float)
        )
        slot_edges = audit.bins if isinstance(audit.bins, np.ndarray) else None
        self.histograms = Histograms(self.property, edges, slot_edges)
        self._totals = np.zeros(3)
        """Weight, loss, and V squared, summed."""

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
    def names(self) -> tuple[str, ...]:
        """Names of the groups, "all" first, then those of the coordinates of the linear class."""
        return (*self.audit.function_names, *(() if self.linear is None else self.linear.function_names))

    def add(
        self,
        y: Float64Array,
        p: Float64Array,
        rows: Rows,
        linear: Rows | None = None,
        weights: Float64Array | None = None,
    ) -> Float64Array:
        """Add rounds, and return their losses.

        Parameters
        ----------
        y, p : array
            Outcomes and forecasts, in the property's range and domain, none missing.
        rows, linear : Rows
            Values of the groups and of the coordinates of the linear class, one row a round.
        weights : array, optional
            In [0, 1].
        """
        if not len(y):
            return np.zeros(0)
        self.audit.update_many(y, p, rows, weights=weights)
        if self.linear is not None:
            self.linear.update_many(y, p, linear, weights=weights)
        self.histograms.add(y, p, self.audit.slots(p), rows, weights)
        losses = np.asarray(self.property.loss(p, y), dtype=np.float64)
        v = np.asarray(self.property.identification(self.audit.rounded(p), y), dtype=np.float64)
        w = 1.0 if weights is None else weights
        total = float(len(y)) if weights is None else weights.sum()
        # Sums and no dot products, whose last digit depends on the number of threads.
        self._totals += np.array([total, np.sum(w * losses), np.sum(w * v * v)])
        return losses

    def overall_error(self, r: float = 2.0) -> float:
        """Cal_r: every forecast value, over all its rounds."""
        return self.audit.calibration(r)

    def group_error(self, r: float = 2.0) -> float:
        """MCal_r: the worst single function; over a linear class at r other than 2, the worst that was found."""
        return max(audit.multicalibration(r) for audit in self._audits())

    def swap_error(self, r: float = 2.0) -> float:
        """SMCal_r: every forecast value against its own worst function."""
        return float(np.sum(np.max([audit.contributions(r) for audit in self._audits()], axis=0)))

    def table(self) -> SumTable:
        """The sums of the audits beside each other, a column for each of `names`."""
        tables = [audit.table() for audit in self._audits()]
        cells = {name: np.concatenate([getattr(table, name) for table in tables], axis=1) for name in PER_CELL}
        first = tables[0]
        return SumTable(first.value, first.slot, first.rounds, first.count, first.v, first.vv, **cells)

    def _audits(self) -> list[Audit]:
        return [self.audit] if self.linear is None else [self.audit, self.linear]

    def arrays(self) -> dict[str, Float64Array]:
        """The whole state, as arrays that may be saved; `restore` goes on from it."""
        linear = {} if self.linear is None else self.linear.arrays()
        return {
            **{f"audit.{name}": array for name, array in self.audit.arrays().items()},
            **{f"linear.{name}": array for name, array in linear.items()},
            **{f"histograms.{name}": array for name, array in self.histograms.arrays().items()},
            "totals": self._totals,
        }

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Take the state of `arrays` over; the settings must be those of the column that had it."""
        self.audit.restore(part_of(arrays, "audit."))
        if self.linear is not None:
            self.linear.restore(part_of(arrays, "linear."))
        self.histograms.restore(part_of(arrays, "histograms."))
        self._totals = arrays["totals"].copy()


def part_of(arrays: dict[str, Float64Array], prefix: str) -> dict[str, Float64Array]:
    """The arrays whose names begin with `prefix`, under the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}

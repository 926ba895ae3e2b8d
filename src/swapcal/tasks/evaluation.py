"""Before and after beside each other: the audits of both columns of forecasts, their losses in pairs, the history."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from swapcal.audits.column import Column
from swapcal.audits.scores import ErrorHistory, PairedLosses, fine_edges
from swapcal.decisions import Decisions
from swapcal.forecaster import Forecaster
from swapcal.protocols import Elicitable
from swapcal.state import joined, take_over
from swapcal.tasks.contexts import ContextColumns, ContextRows
from swapcal.tasks.result import History
from swapcal.tasks.survey import Binning
from swapcal.typing import Float64Array

DELTA = 0.05
"""The guarantee holds with probability 1 - DELTA."""

N_EVEN = 2000
"""Fine bins of forecasts that are on a grid, for AUC."""


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
            kept = np.flatnonzero(known)
            y, after, rows = y[kept], after[kept], rows.taken(kept)
            before = None if before is None else before[kept]
            weights = None if weights is None else weights[kept]
        losses = self.after.add(y, after, *rows, weights)
        if before is None or self.before is None:
            if self.acted:
                self.acted["after"].update_many(y, after, weights)
            return
        hinted = ~np.isnan(before)
        if not hinted.all():
            kept = np.flatnonzero(hinted)
            y, before, losses, rows = y[kept], before[kept], losses[kept], rows.taken(kept)
            after = after[kept]
            weights = None if weights is None else weights[kept]
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

"""Before and after beside each other: the tallies of both columns of forecasts, their losses in pairs, the course."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from swapcal.forecaster import Forecaster
from swapcal.jobs.binning import Binning
from swapcal.jobs.looks import FIRST, PACE
from swapcal.jobs.outcomes import OutcomeBins
from swapcal.jobs.paired import Blocks
from swapcal.jobs.result import History
from swapcal.jobs.rowcuts import taken
from swapcal.jobs.tally import Tally
from swapcal.roles import Elicitable, Rows
from swapcal.typing import Float64Array

__all__ = ["DELTA", "Comparison"]

DELTA = 0.05
"""The guarantee holds with probability 1 - DELTA."""


class Comparison:
    """Sums over swapcal's forecasts and, with a hint, over the hint's own: bounded memory, and it can be gone on with.

    Parameters
    ----------
    property : Elicitable
        What is forecast.
    n, n_linear : int
        Positions in the rows, and how many of them, the last ones, belong to a linear class.
    binning : Binning, optional
        How the hint's forecasts are taken together; None without a hint. Those of swapcal are on a grid already.
    first : array
        The first outcomes, which settle the bins of the outcomes' histograms.
    r : float
        Power of the error.
    """

    def __init__(
        self,
        property: Elicitable,
        n: int,
        n_linear: int,
        binning: Binning | None,
        first: Float64Array,
        r: float,
    ) -> None:
        self.r = r
        bins = 20 if binning is None else binning.bins
        self.after = Tally(property, n, label="swapcal", bins=bins, n_linear=n_linear)
        self.before: Tally | None = None
        if binning is not None:
            cells = binning.audit_bins
            self.before = Tally(property, n, label="the model", bins=bins, audit_bins=cells, n_linear=n_linear)
        for tally in (self.before, self.after):
            if tally is not None and len(first):
                tally.outcomes = OutcomeBins(first, property.low, property.high)
        self.losses = Blocks()
        self._due = FIRST
        self._noted: list[tuple[float, float, float, float]] = []

    def cuts(self, known: npt.NDArray[np.bool_]) -> Iterator[slice]:
        """Parts of the next rows, cut where a look is due; `known` says which of them have an outcome."""
        rounds, start = self.after.n_rounds + np.cumsum(known), 0
        while start < len(known):
            end = int(np.searchsorted(rounds, self._due)) + 1 if rounds[-1] >= self._due else len(known)
            yield slice(start, end)
            start = end

    def add(
        self,
        y: Float64Array,
        before: Float64Array | None,
        after: Float64Array,
        rows: Rows,
        weights: Float64Array | None,
    ) -> None:
        """Add rows; NaN is a missing outcome or hint."""
        known = ~np.isnan(y)
        if not known.all():
            kept = np.flatnonzero(known)
            y, after, rows = y[kept], after[kept], taken(rows, kept)
            before = None if before is None else before[kept]
            weights = None if weights is None else weights[kept]
        losses = self.after.add(y, after, rows, weights)
        if before is None or self.before is None:
            return
        hinted = ~np.isnan(before)
        if not hinted.all():
            kept = np.flatnonzero(hinted)
            y, before, losses, rows = y[kept], before[kept], losses[kept], taken(rows, kept)
            weights = None if weights is None else weights[kept]
        self.losses.add(self.before.add(y, before, rows, weights), losses, weights)

    def look(self, forecaster: Forecaster) -> None:
        """Note the errors and the guarantee, if that is due."""
        if self.after.n_rounds >= self._due:
            self._noted.append(self._now(forecaster))
            self._due = int(self._due * PACE)

    def history(self, forecaster: Forecaster) -> History:
        """What was noted, and how it is now."""
        noted = self._noted
        if not noted or noted[-1][0] < self.after.n_rounds:
            noted = [*noted, self._now(forecaster)]
        rounds, before, after, guarantee = np.array(noted, dtype=np.float64).T
        return History(rounds, None if self.before is None else before, after, guarantee)

    def _now(self, forecaster: Forecaster) -> tuple[float, float, float, float]:
        before = 0.0 if self.before is None or not self.before.n_rounds else self.before.swap_error(self.r)
        rounds = float(self.after.n_rounds)
        return rounds, before, self.after.swap_error(self.r), float(forecaster.guarantee(DELTA))

    def arrays(self) -> dict[str, Float64Array]:
        """The whole state."""
        arrays = {f"after.{name}": array for name, array in self.after.arrays().items()}
        if self.before is not None:
            arrays |= {f"before.{name}": array for name, array in self.before.arrays().items()}
        arrays |= {f"losses.{name}": array for name, array in self.losses.arrays().items()}
        noted = np.array(self._noted, dtype=np.float64).reshape(len(self._noted), 4)
        return {**arrays, "looks": noted, "due": np.array([float(self._due)])}

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Go on from what `arrays` held."""
        self.after.restore(_part(arrays, "after."))
        if self.before is not None:
            self.before.restore(_part(arrays, "before."))
        self.losses.restore(_part(arrays, "losses."))
        self._noted = [(row[0], row[1], row[2], row[3]) for row in arrays["looks"].tolist()]
        self._due = int(arrays["due"][0])


def _part(arrays: dict[str, Float64Array], prefix: str) -> dict[str, Float64Array]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}

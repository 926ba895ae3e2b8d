"""Foster and Hart (2023): calibeating a given forecast, the hint."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from swapcal import inputs
from swapcal.paper.method import Plan
from swapcal.protocols import Row
from swapcal.rivals.card import BinnedRival, Card
from swapcal.typing import Float64Array


@dataclass(eq=False, repr=False, kw_only=True)
class FosterHart2023(BinnedRival):
    r"""Forecast the mean outcome of past rounds with the same hint: as sharp as the hint, without its bias.

    Guarantee, `calibrated=False`: for hints that take values in a finite set B,

    .. math:: \mathrm{Brier} \le \mathrm{refinement}(B) + \frac1T \sum_{b \in B} (1 + \ln n_b)

    pathwise, where the refinement is the mean variance of outcomes among rounds with the same hint and n_b their
    number. Guarantee, `calibrated=True`: in addition it is calibrated itself, E[Cal_2] <= T / N^2 + O(|B| N ln T), of
    the order T^(1/3) for a fixed |B|. Groups are not known to it.

    Parameters
    ----------
    property : Elicitable
        A mean: `Mean`, `Probability` or `Moment`.
    hypotheses : Hypotheses
        Any; not used.
    horizon : int
        T.
    seed : int
        Of the draws.
    levels : int
        |B|: the domain is cut into this many equal parts, and hints in one part are the same hint. Without a hint a
        round belongs to a level of its own.
    calibrated : bool
        Whether to be calibrated too, at the price of rounding and of a draw.
    bins : int, optional
        N of the calibrated version, instead of ceil((T / levels)^(1/3)).

    Notes
    -----
    Calibrated: for the hint's level, let S_i be the sum of z_i - u over rounds in which z_i = i/N was forecast, u the
    outcome in [0, 1], and n_i their number. S_0 <= 0 <= S_N always, so that either some S_i is zero and z_i is
    forecast, or S_i < 0 < S_{i+1} for neighbors, which are drawn with probabilities that make the mean of S_i / n_i
    zero. Of all such places the one nearest the level's mean outcome is taken.
    Time per round O(1), calibrated O(N); memory O(levels N).

    Examples
    --------
    >>> from swapcal.hypotheses import Finite
    >>> from swapcal.properties import Mean
    >>> method = FosterHart2023(Mean(), Finite(1), horizon=100, calibrated=False)
    >>> method.run([[1]] * 4, [0, 0, 1, 1], hints=[0.1, 0.9, 0.9, 0.9]).round(3)
    array([0.1, 0.9, 0. , 0.5])

    References
    ----------
    Foster and Hart (2023), "Calibeating": beating forecasters at their own game, Theoretical Economics 18.
    """

    card: ClassVar[Card] = Card(
        name="Foster-Hart 2023",
        reference='Foster and Hart (2023), "Calibeating": beating forecasters at their own game',
        assumes="a hint with finitely many values; no groups; T known (calibrated version)",
        classes=("none",),
        exponent=1.0 / 3.0,
        error="Cal_2",
        cost="O(N), N = (T / levels)^(1/3)",
        reconstructed="levels of a continuous hint, the calibrated version's grid and which of several crossings",
    )

    levels: int = 10
    calibrated: bool = True

    def start(self) -> None:
        """Check the options, and start with nothing learned."""
        self.levels = inputs.integer(self.levels, "levels", 1)
        self.calibrated = inputs.flag(self.calibrated, "calibrated")
        super().start()
        self.totals = np.zeros(self.levels + 1)
        self.visits = np.zeros(self.levels + 1)
        self.sums = np.zeros((self.levels + 1, self.bins + 1))
        self.counts = np.zeros((self.levels + 1, self.bins + 1))

    def default_bins(self) -> int:
        """As the theory has it."""
        return max(2, math.ceil(math.pow(self.horizon / self.levels, 1.0 / 3.0)))

    def level(self, hint: float | None) -> int:
        """Which of the levels the hint belongs to; the last one is for rounds without a hint."""
        if hint is None:
            return self.levels
        low, high = self.property.domain
        return min(int((hint - low) / (high - low) * self.levels), self.levels - 1)

    def plan(self, row: Row, hint: float | None) -> Plan:
        """The running mean of the level, or the place nearest to it where the level's errors cancel."""
        low, high = self.property.domain
        level = self.level(hint)
        if self.visits[level]:
            center = float(self.totals[level] / self.visits[level])
        else:
            center = 0.5 if hint is None else (hint - low) / (high - low)
        if not self.calibrated:
            return Plan((min(low + (high - low) * center, high),), (1.0,), (level,))
        chosen, chances = self._hedged(level, center)
        return Plan(tuple(low + (high - low) * (i / self.bins) for i in chosen), chances, (level, *chosen))

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """Add the outcome to its level, and the error to the forecast's place there."""
        level, *chosen = plan.notes
        target = self.target(y)
        self.totals[level] += target
        self.visits[level] += 1.0
        if chosen:
            self.sums[level, chosen[drawn]] += chosen[drawn] / self.bins - target
            self.counts[level, chosen[drawn]] += 1.0

    def _hedged(self, level: int, center: float) -> tuple[tuple[int, ...], tuple[float, ...]]:
        errors: Float64Array = self.sums[level] / np.maximum(self.counts[level], 1.0)
        zeros = np.flatnonzero(errors == 0.0)
        crossings = np.flatnonzero((errors[:-1] < 0.0) & (errors[1:] > 0.0))
        places = np.concatenate([zeros, crossings + 0.5])
        best = int(np.argmin(np.abs(places - center * self.bins)))
        if best < len(zeros):
            return (int(zeros[best]),), (1.0,)
        i = int(crossings[best - len(zeros)])
        below, above = -float(errors[i]), float(errors[i + 1])
        return (i, i + 1), (above / (below + above), below / (below + above))

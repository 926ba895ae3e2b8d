"""Garg, Jung, Reingold, Roth (2024): swap multicalibration from copies of a regression oracle, for means."""

import math
from typing import ClassVar

import numpy as np

from swapcal import checked
from swapcal.engine.grid import Grid
from swapcal.engine.published import Plan, PublishedMethod
from swapcal.rivals.shared.card import Card
from swapcal.rivals.shared.regression_chain import affine, play_cycle, rounded
from swapcal.roles import Elicitable, Hypotheses, Row
from swapcal.typing import Float64Array

__all__ = ["Garg2024"]


class Garg2024(PublishedMethod):
    r"""m copies of an online squared-loss regression, one for each value that may be forecast.

    Guarantee: with regret r(n) of the regression after n rounds, contextual swap regret of at most
    m r(T/m) + O(T/m) + O~(m sqrt T), which bounds the swap multicalibration error SMCal_2 over the class; at
    m = T^(1/4) this is O~(T^(3/4)). The copies compete with all affine functions of the context, so that finite and
    linear classes are both covered.

    Parameters
    ----------
    property : Elicitable
        A mean: `Mean`, `Probability` or `Moment`.
    hypotheses : Hypotheses
        A finite or a linear class.
    horizon : int
        T.
    seed : int
        Of the draws.
    bins : int, optional
        m, instead of ceil(T^(1/4)).
    ridge : float
        The lambda of the regression oracle.

    Notes
    -----
    Notation: z = (x, 1), targets u in [0, 1]. Copy i has seen S_i and is a Vovk-Azoury-Warmuth forecaster:

    .. math:: h_i(x) = z^T \Big(\lambda I + z z^T + \sum_{s \in S_i} z_s z_s^T\Big)^{-1} \sum_{s \in S_i} u_s z_s,

    whose regret to any w is at most lambda |w|^2 + d ln(1 + sum |z|^2 / (lambda d)). Each h_i is rounded to the grid,
    the round is drawn from the uniform distribution on a cycle of i -> bin of h_i(x), and only the copy whose value was
    drawn learns the outcome. Time per round O(m d k + d^2) with k active entries, memory O(m d^2).

    Examples
    --------
    >>> from swapcal.hypotheses import Finite
    >>> from swapcal.properties import Mean
    >>> method = Garg2024(Mean(), Finite(2), horizon=256)
    >>> set(method.run([[1, 0]] * 40, [0.6] * 40)[-5:].tolist())
    {0.625}

    References
    ----------
    Garg, Jung, Reingold, Roth (2024), Oracle efficient online multicalibration and omniprediction, SODA. Ito (2020), A
    tight lower bound and efficient reduction for swap regret. Vovk (2001), Competitive on-line statistics. Azoury and
    Warmuth (2001), Relative loss bounds for on-line density estimation.
    """

    card: ClassVar[Card] = Card(
        name="Garg 2024",
        reference="Garg, Jung, Reingold, Roth (2024), Oracle efficient online multicalibration and omniprediction",
        assumes="an online squared-loss regression oracle (here Vovk-Azoury-Warmuth on affine functions); T known",
        properties=("mean",),
        classes=("finite", "linear"),
        exponent=0.75,
        error="SMCal_2",
        cost="O(m d k + d^2), m = T^(1/4)",
        reconstructed="the regression oracle and its ridge, mid-points as grid, and the cycle reached from the middle",
    )

    def __init__(
        self,
        property: Elicitable,
        hypotheses: Hypotheses,
        *,
        horizon: int,
        seed: int = 0,
        bins: int | None = None,
        ridge: float = 1.0,
    ) -> None:
        self.card.check(property, hypotheses)
        super().__init__(property, hypotheses, seed=seed)
        self.horizon = checked.whole(horizon, "horizon", 1)
        self.bins = math.ceil(self.horizon**0.25 - 1e-9) if bins is None else checked.whole(bins, "bins", 1)
        self.ridge = checked.number(ridge, "ridge", 1e-9, 1e9)
        self.grid = Grid(*property.domain, self.bins)
        d = hypotheses.n + 1
        self.inverses = np.tile(np.eye(d) / self.ridge, (self.bins, 1, 1))
        self.sums = np.zeros((self.bins, d))

    def regressions(self, row: Row) -> Float64Array:
        """What each copy would forecast, in widths of the domain; not clipped."""
        indices, values = affine(row, self.hypotheses.n)
        solved = self.inverses[:, indices, :].transpose(0, 2, 1) @ values
        # Sherman and Morrison: the present context enters the matrix by a division.
        forecasts: Float64Array = np.sum(solved * self.sums, axis=1) / (1.0 + solved[:, indices] @ values)
        return forecasts

    def successors(self, row: Row) -> list[int]:
        """The grid value to which each copy's forecast is rounded: row i of the chain is a point mass there."""
        return rounded(self.regressions(row), self.bins)

    def plan(self, row: Row, hint: float | None) -> Plan:
        """The uniform distribution on a cycle of the chain. A hint is not used."""
        return play_cycle(self.successors(row), self.grid)

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """The copy of the value that was drawn takes the outcome."""
        i = plan.notes[drawn]
        indices, values = affine(row, self.hypotheses.n)
        # V(p, y) = p - u in widths of the domain, so that the target u is -V at the domain's lower end.
        target = -checked.identified(self.property, self.grid.low, y)
        solved = self.inverses[i][:, indices] @ values
        solved /= math.sqrt(1.0 + float(solved[indices] @ values))
        self.inverses[i] -= solved[:, None] * solved
        self.sums[i, indices] += target * values

"""Garg, Jung, Reingold, Roth (2024): swap multicalibration from copies of a regression oracle, for quantiles."""

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

__all__ = ["Garg2024Quantile"]

_RADIUS = math.sqrt(2.0)
"""Competitors are p + a f(x) with p and |a| in [0, 1]: at most this long, as coefficients of (x, 1)."""


class Garg2024Quantile(PublishedMethod):
    r"""m copies of an online pinball-loss regression, one for each value that may be forecast.

    Guarantee: contextual swap regret of the pinball loss as in `Garg2024`; where labels have a bounded density it
    bounds the quantile's swap multicalibration error, SMCal_2 = O~(T^(3/4)) at m = T^(1/4).

    Parameters
    ----------
    property : Elicitable
        A quantile.
    hypotheses : Hypotheses
        A finite or a linear class.
    horizon : int
        T.
    seed : int
        Of the draws.
    bins : int, optional
        m, instead of ceil(T^(1/4)).

    Notes
    -----
    Notation: z = (x, 1), labels in widths of the domain. Copy i is projected gradient descent on the pinball loss of
    <w, z> over the ball |w| <= R = sqrt 2, from the constant function at its own grid value:

    .. math:: w_i \leftarrow \Pi\Big(w_i - \frac{\sqrt 2 R}{\sqrt{\sum |g|^2}} g\Big), \qquad
              g = (1\{y \le \langle w_i, z\rangle\} - q)\, z,

    with regret of at most 2 sqrt(2) R sqrt(sum |g|^2). Rounding, cycle and draw are those of `Garg2024`, and only the
    copy whose value was drawn learns. Time per round O(m k + d) with k active entries, memory O(m d).

    Examples
    --------
    >>> from swapcal.hypotheses import Finite
    >>> from swapcal.properties import Quantile
    >>> method = Garg2024Quantile(Quantile(0.9), Finite(1), horizon=256)
    >>> method.run([[1]] * 40, [0.8] * 40)[[0, -1]].tolist()
    [0.625, 0.875]

    References
    ----------
    Garg, Jung, Reingold, Roth (2024), Oracle efficient online multicalibration and omniprediction, SODA. Zinkevich
    (2003), Online convex programming and generalized infinitesimal gradient ascent.
    """

    card: ClassVar[Card] = Card(
        name="Garg 2024 quantile",
        reference="Garg, Jung, Reingold, Roth (2024), Oracle efficient online multicalibration and omniprediction",
        assumes="an online pinball-loss regression oracle (here gradient descent); bounded label density; T known",
        properties=("quantile",),
        classes=("finite", "linear"),
        exponent=0.75,
        error="SMCal_2",
        cost="O(m k + d), m = T^(1/4)",
        reconstructed="the pinball oracle and its rate, mid-points as grid, and the cycle reached from the middle",
    )

    def __init__(
        self, property: Elicitable, hypotheses: Hypotheses, *, horizon: int, seed: int = 0, bins: int | None = None
    ) -> None:
        self.card.check(property, hypotheses)
        super().__init__(property, hypotheses, seed=seed)
        self.horizon = checked.whole(horizon, "horizon", 1)
        self.bins = math.ceil(self.horizon**0.25 - 1e-9) if bins is None else checked.whole(bins, "bins", 1)
        self.grid = Grid(*property.domain, self.bins)
        self.coefficients = np.zeros((self.bins, hypotheses.n + 1))
        self.coefficients[:, -1] = (2 * np.arange(self.bins) + 1) / (2 * self.bins)
        self.squares = np.zeros(self.bins)

    def regressions(self, row: Row) -> Float64Array:
        """What each copy would forecast, in widths of the domain; not clipped."""
        indices, values = affine(row, self.hypotheses.n)
        forecasts: Float64Array = self.coefficients[:, indices] @ values
        return forecasts

    def successors(self, row: Row) -> list[int]:
        """The grid value to which each copy's forecast is rounded: row i of the chain is a point mass there."""
        return rounded(self.regressions(row), self.bins)

    def plan(self, row: Row, hint: float | None) -> Plan:
        """The uniform distribution on a cycle of the chain. A hint is not used."""
        return play_cycle(self.successors(row), self.grid)

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """The copy of the value that was drawn takes a gradient step."""
        i = plan.notes[drawn]
        indices, values = affine(row, self.hypotheses.n)
        low, high = self.property.domain
        forecast = low + (high - low) * float(self.coefficients[i, indices] @ values)
        gradient = checked.identified(self.property, forecast, y) * values
        self.squares[i] += float(gradient @ gradient)
        if self.squares[i] == 0.0:
            return
        self.coefficients[i, indices] -= math.sqrt(2.0 / self.squares[i]) * _RADIUS * gradient
        length = float(np.linalg.norm(self.coefficients[i]))
        if length > _RADIUS:
            self.coefficients[i] *= _RADIUS / length

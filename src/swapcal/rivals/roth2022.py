"""Roth (2022): the lecture notes' online quantile multicalibration, for a finite class of groups."""

from typing import ClassVar

from swapcal import checked
from swapcal.engine.published import Plan, PublishedMethod
from swapcal.rivals.shared.card import Card
from swapcal.rivals.shared.quadratics import Quadratics, grid_points
from swapcal.rivals.shared.sign_change import first_change, play_points
from swapcal.roles import Elicitable, Hypotheses, Row

__all__ = ["Roth2022"]


class Roth2022(PublishedMethod):
    r"""The quadratic error of each group, for quantiles.

    Guarantee: sum_g R_{f,g}^2 / n_{f,g} = O~(sqrt(T)) in expectation for each group f, with R the sum of 1{y_t <= g} -
    q over its n rounds with forecast g, if labels have a bounded density.

    Parameters
    ----------
    property : Elicitable
        A quantile.
    hypotheses : Hypotheses
        A finite class of groups.
    horizon : int
        T.
    bins : int, optional
        m: forecasts are 1/m, 2/m, ..., 1. Default ceil(sqrt(T)), at most T/3.
    seed : int
        Of the draws.

    Notes
    -----
    The game is that of `Quadratics`, with the quantile's own bound C = max(q, 1 - q) in the rate. Time O(m active
    functions) a round, memory O(m |F|).

    Examples
    --------
    >>> import numpy as np
    >>> from swapcal import Finite, Quantile
    >>> y = np.random.default_rng(0).random(2000)
    >>> forecasts = Roth2022(Quantile(0.8), Finite(1), horizon=2000, seed=1).run(np.ones((2000, 1)), y)
    >>> round(float((y <= forecasts).mean()), 1)
    0.8

    References
    ----------
    Roth (2022), Uncertain: modern topics in uncertainty estimation, lecture notes.
    """

    card: ClassVar[Card] = Card(
        name="Roth 2022",
        reference="Roth (2022), Uncertain: modern topics in uncertainty estimation (lecture notes)",
        assumes="group indicators (other values in [-1, 1] weigh the sums); labels with a density; horizon known",
        properties=("quantile",),
        classes=("finite",),
        exponent=0.5,
        error="MCal_2",
        cost="O(bins * active functions)",
        reconstructed="the algorithm as a whole, as the quantile case of Noarov and Roth (2023); the notes were not "
        "available",
    )

    def __init__(
        self, property: Elicitable, hypotheses: Hypotheses, *, horizon: int, seed: int = 0, bins: int | None = None
    ) -> None:
        self.card.check(property, hypotheses)
        super().__init__(property, hypotheses, seed=seed)
        self.horizon = checked.whole(horizon, "horizon", 1)
        self.points = grid_points(property, self.horizon, bins)
        self.bins = len(self.points)
        low, high = property.domain
        # V is -q below the label and 1 - q from it on.
        bound = max(-float(property.identification(low, high)), float(property.identification(high, low)))
        self.game = Quadratics(hypotheses.n, self.bins, horizon=self.horizon, bound=bound, own_counts=True)

    def plan(self, row: Row, hint: float | None) -> Plan:
        """Neighboring points of the grid where the weighted evidence changes sign; hints are not used."""
        return play_points(self.points, first_change(self.game.evidence(row)))

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """Add the miscoverage at the forecast to the sums, and the gains to the weights."""
        self.game.record(row, plan.notes[drawn], checked.identified(self.property, plan.values[drawn], y))

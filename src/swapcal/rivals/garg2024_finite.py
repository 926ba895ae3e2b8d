"""Garg, Jung, Reingold, Roth (2024): the algorithm that enumerates a finite class of functions."""

from typing import ClassVar

from swapcal import checked
from swapcal.engine.published import Plan, PublishedMethod
from swapcal.rivals.shared.card import Card
from swapcal.rivals.shared.quadratics import Quadratics, grid_points
from swapcal.rivals.shared.sign_change import first_change, play_points
from swapcal.roles import Elicitable, Hypotheses, Row

__all__ = ["Garg2024Finite"]


class Garg2024Finite(PublishedMethod):
    r"""sqrt(T) for real-valued functions, at the price of enumerating them: the oracle versions measure by it.

    Guarantee: E max_f sum_g R_{f,g}^2 / n_g = O~(sqrt(T)), with R the sum of f(x_t) V(g, y_t) over the n_g rounds with
    forecast g: the MCal_2 of the paper. Not its swap version.

    Parameters
    ----------
    property : Elicitable
        A mean or a quantile.
    hypotheses : Hypotheses
        A finite class, with values in [-1, 1].
    horizon : int
        T.
    bins : int, optional
        m: forecasts are 1/m, 2/m, ..., 1. Default ceil(sqrt(T)), at most T/3.
    seed : int
        Of the draws.

    Notes
    -----
    The game of `Quadratics` with one coordinate for each function and the visits of a point, whoever they are from, as
    its counts. Time O(m active functions) a round, memory O(m |F|).

    Examples
    --------
    >>> from swapcal import Finite, Mean
    >>> method = Garg2024Finite(Mean(), Finite(2), horizon=900, seed=1)
    >>> for t in range(900):
    ...     method.update(method.predict([1.0, (t % 3) - 1.0]), float(t % 3 == 1))
    >>> bool(method.game.errors().max() < 0.05 * 900)
    True

    References
    ----------
    Garg, Jung, Reingold, Roth (2024), Oracle efficient online multicalibration and omniprediction, SODA,
    arXiv:2307.08999.
    """

    card: ClassVar[Card] = Card(
        name="Garg et al. 2024, finite",
        reference="Garg, Jung, Reingold, Roth (2024), Oracle efficient online multicalibration and omniprediction",
        assumes="values in [-1, 1]; for quantiles, labels with a bounded density; horizon known",
        properties=("mean", "quantile"),
        classes=("finite",),
        exponent=0.5,
        error="MCal_2",
        cost="O(bins * active functions)",
        reconstructed="the algorithm as a whole, from the claimed rate and the framework of Lee et al. (2022) that it "
        "builds on",
    )

    def __init__(
        self, property: Elicitable, hypotheses: Hypotheses, *, horizon: int, seed: int = 0, bins: int | None = None
    ) -> None:
        self.card.check(property, hypotheses)
        super().__init__(property, hypotheses, seed=seed)
        self.horizon = checked.whole(horizon, "horizon", 1)
        self.points = grid_points(property, self.horizon, bins)
        self.bins = len(self.points)
        self.game = Quadratics(hypotheses.n, self.bins, horizon=self.horizon, bound=1.0, own_counts=False)

    def plan(self, row: Row, hint: float | None) -> Plan:
        """Neighboring points of the grid where the weighted evidence changes sign; hints are not used."""
        return play_points(self.points, first_change(self.game.evidence(row)))

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """Add the identification at the forecast to the sums, and the gains to the weights."""
        self.game.record(row, plan.notes[drawn], checked.identified(self.property, plan.values[drawn], y))

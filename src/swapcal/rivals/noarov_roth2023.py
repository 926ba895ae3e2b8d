"""Noarov and Roth (2023): online multicalibration of any elicitable property, for a finite class of groups."""

from typing import ClassVar

from swapcal import checked
from swapcal.engine.published import Plan, PublishedMethod
from swapcal.rivals.shared.card import Card
from swapcal.rivals.shared.quadratics import Quadratics, grid_points
from swapcal.rivals.shared.sign_change import first_change, play_points
from swapcal.roles import Elicitable, Hypotheses, Row

__all__ = ["NoarovRoth2023"]


class NoarovRoth2023(PublishedMethod):
    r"""The paper's closest relative: the same class of properties, the l2 error of the worst group, and sqrt(T).

    Guarantee (theorem F.10), with R the sum of f(x_t) V(g, y_t) over the n rounds of group f with forecast g, |V| <= C
    and E V(., y) L-Lipschitz (on average over the rounds suffices):

        E max_f (1/T) sum_g R_{f,g}^2 / n_{f,g} <= 2 C L / m + 2 m C^2 ln(T/m) / T + 12 C^2 sqrt(ln |F| / T).

    Parameters
    ----------
    property : Elicitable
        Any; this package scales V so that C = 1.
    hypotheses : Hypotheses
        A finite class; the source has groups, f(x) in {0, 1}.
    horizon : int
        T; the theorem asks for T >= max(ln |F|, 3 m).
    bins : int, optional
        m: forecasts are 1/m, 2/m, ..., 1. Default ceil(sqrt(T)), at most T/3.
    seed : int
        Of the draws.

    Notes
    -----
    See `Quadratics` for the game; rate sqrt(ln |F| / (4 T)) / 3. Time O(m active functions) a round, memory O(m |F|).

    Examples
    --------
    >>> from swapcal import Expectile, Finite
    >>> method = NoarovRoth2023(Expectile(0.9), Finite(2), horizon=900, seed=1)
    >>> for t in range(900):
    ...     method.update(method.predict([1.0, t % 2]), (t * 0.618) % 1.0)
    >>> bool(method.game.errors().max() < 0.05 * 900)
    True

    References
    ----------
    Noarov, Roth (2023), The statistical scope of multicalibration, ICML, PMLR 202; appendix F, algorithm 5.
    """

    card: ClassVar[Card] = Card(
        name="Noarov-Roth 2023",
        reference="Noarov, Roth (2023), The statistical scope of multicalibration, algorithm 5, theorem F.10",
        assumes="group indicators (other values in [-1, 1] weigh the sums); V Lipschitz in expectation; horizon known",
        properties=("elicitable",),
        classes=("finite",),
        exponent=0.5,
        error="MCal_2",
        cost="O(bins * active functions)",
        reconstructed="n = 0 counts as 1; the linear program over the labels is solved by the two-point rule, without "
        "the term V^2/n",
    )

    def __init__(
        self, property: Elicitable, hypotheses: Hypotheses, *, horizon: int, seed: int = 0, bins: int | None = None
    ) -> None:
        self.card.check(property, hypotheses)
        super().__init__(property, hypotheses, seed=seed)
        self.horizon = checked.whole(horizon, "horizon", 1)
        self.points = grid_points(property, self.horizon, bins)
        self.bins = len(self.points)
        self.game = Quadratics(hypotheses.n, self.bins, horizon=self.horizon, bound=1.0, own_counts=True)

    def plan(self, row: Row, hint: float | None) -> Plan:
        """Neighboring points of the grid where the weighted evidence changes sign; hints are not used."""
        return play_points(self.points, first_change(self.game.evidence(row)))

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """Add the identification at the forecast to the sums, and the gains to the weights."""
        self.game.record(row, plan.notes[drawn], checked.identified(self.property, plan.values[drawn], y))

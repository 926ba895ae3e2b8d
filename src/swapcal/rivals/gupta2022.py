"""Gupta, Jung, Noarov, Pai, Roth (2022): online multicalibration of means by exponential weights."""

import math
from typing import ClassVar

import numpy as np

from swapcal import inputs
from swapcal.engine.values import Grid
from swapcal.paper.method import Plan, PublishedMethod
from swapcal.protocols import Elicitable, Hypotheses, Row
from swapcal.rivals.card import Card
from swapcal.rivals.games import first_change, play_borders, sinh_sums


class Gupta2022(PublishedMethod):
    r"""The first online multicalibration algorithm: a sum of exponentials, kept small by two-point forecasts.

    Guarantee, with S_{f,i} the sum of f(x_t) (p_t - y_t) over the rounds with p_t in bin i, for any labels in [0, 1]:

        E max_{f,i} |S_{f,i}| <= T / (r n) + 4 sqrt(T ln(2 |F| n)).

    It bounds the largest cell in absolute terms, however seldom the cell is visited.

    Parameters
    ----------
    property : Elicitable
        A mean.
    hypotheses : Hypotheses
        A finite class; the source has groups, f(x) in {0, 1}.
    horizon : int
        T.
    bins : int, optional
        n, at most T. The bound leaves it open; T^(1/4), the default, makes the l1 error that follows from it smallest.
    rate : float, optional
        eta; sqrt(ln(2 |F| n) / (4 T)) by default.
    fineness : int
        r: the two forecasts lie 1/(r n) apart.
    forecasts : {"point", "middle"}
        The point itself, as in the source, or its bin's mid-point, for audits that tell forecasts apart by value.
    seed : int
        Of the draws.

    Notes
    -----
    C_i = sum_f f(x) (exp(eta S_{f,i}) - exp(-eta S_{f,i})), and the two-point rule at the first change of sign of C.
    Time O(n active functions) a round, memory O(n |F|).

    Examples
    --------
    >>> from swapcal import Finite, Mean
    >>> method = Gupta2022(Mean(), Finite(2), horizon=400, bins=4, seed=1)
    >>> for t in range(400):
    ...     method.update(method.predict([1.0, t % 2]), 0.8 if t % 2 else 0.4)
    >>> bool(np.abs(method.sums).max() < 0.1 * 400)
    True

    References
    ----------
    Gupta, Jung, Noarov, Pai, Roth (2022), Online multivalid learning: means, moments, and prediction intervals, ITCS;
    constants from Lee, Noarov, Pai, Roth (2022), Online minimax multiobjective optimization, theorem 3.1.
    """

    card: ClassVar[Card] = Card(
        name="Gupta et al. 2022",
        reference="Gupta, Jung, Noarov, Pai, Roth (2022), Online multivalid learning; Lee et al. (2022), theorem 3.1",
        assumes="group indicators (other values in [-1, 1] weigh the sums); horizon known",
        properties=("mean",),
        classes=("finite",),
        exponent=0.5,
        error="max over (f, bin) of |sum|",
        cost="O(bins * active functions)",
        reconstructed="the number of bins (T^(1/4)) and r (1000), which the bound leaves open; 0/0 takes the lower bin",
    )

    def __init__(
        self,
        property: Elicitable,
        hypotheses: Hypotheses,
        *,
        horizon: int,
        seed: int = 0,
        bins: int | None = None,
        rate: float | None = None,
        fineness: int = 1000,
        forecasts: str = "point",
    ) -> None:
        self.card.check(property, hypotheses)
        super().__init__(property, hypotheses, seed=seed)
        self.horizon = inputs.integer(horizon, "horizon", 1)
        self.bins = math.ceil(self.horizon**0.25) if bins is None else inputs.integer(bins, "bins", 1)
        theory = math.sqrt(math.log(2 * hypotheses.n * self.bins) / (4 * self.horizon))
        self.rate = theory if rate is None else inputs.number(rate, "rate", 0.0, 1e3)
        self.fineness = inputs.integer(fineness, "fineness", 2)
        self.forecasts = inputs.one_of(forecasts, "forecasts", ("point", "middle"))
        self.grid = Grid(*property.domain, self.bins)
        self.sums = np.zeros((hypotheses.n, self.bins))

    def plan(self, row: Row, hint: float | None) -> Plan:
        """Two points around a border; hints are not used."""
        evidence, logs = sinh_sums(self.rate * self.sums[row.indices], row.values[:, None])
        return play_borders(self.grid, first_change(evidence, logs), self.fineness, self.forecasts == "middle")

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """Add the error to the sums of the bin that was played."""
        i, point = plan.notes[drawn]
        self.sums[row.indices, i] += row.values * inputs.identified(self.property, point, y)

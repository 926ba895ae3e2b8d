"""Bastani et al. (2022): multivalid prediction, MVP, the practical method for quantiles and conformal sets."""

import math
from typing import ClassVar

import numpy as np

from swapcal import checked
from swapcal.engine.grid import Grid
from swapcal.engine.published import Plan, PublishedMethod
from swapcal.rivals.shared.card import Card
from swapcal.rivals.shared.sign_change import first_change, play_borders, sinh_sums
from swapcal.roles import Elicitable, Hypotheses, Row

__all__ = ["MVP"]

_SQUARES = 1.6276
"""sum over n >= 0 of 1 / ((n + 1) log2(n + 2)^2): twenty million terms, and an integral for the rest."""


class MVP(PublishedMethod):
    r"""Thresholds whose coverage is right in every group and at every value of the threshold.

    Guarantee, with S_{f,i} the sum of f(x_t) (1{y_t <= p_t} - q) over the n_{f,i} rounds of bin i with f(x_t) not 0:

        E |S_{f,i}| <= c(n_{f,i}) O(sqrt(|F| m ln(|F| m))),   c(n)^2 = (n + 1) log2(n + 2)^2,

    so the error of a cell grows with the square root of its own visits; about sqrt(T) in MCal_2 for m = T^(1/4) bins.

    Parameters
    ----------
    property : Elicitable
        A quantile; its level is the target coverage.
    hypotheses : Hypotheses
        A finite class of groups.
    horizon : int
        T; nothing depends on it, as in the authors' code.
    bins : int
        m, 50 in the authors' code.
    rate : float or "theory"
        eta, 0.5 in the authors' code, which says to set it from outside; "theory" is sqrt(ln(|F| m) / (2 K |F| m))
        with K = sum over n of 1 / c(n)^2.
    fineness : int
        r, 1000 in the authors' code: the two forecasts lie 1/(r m) apart.
    forecasts : {"point", "middle"}
        The point itself, as in the source, or its bin's mid-point, for audits that tell forecasts apart by value.
    seed : int
        Of the draws.

    Notes
    -----
    C_i = sum_f f(x) (exp(a_{f,i}) - exp(-a_{f,i})) / c(n_{f,i}) with a = eta S / c, and the two-point rule at the first
    change of sign. A context in no group gets the lowest forecast and teaches nothing. Time O(m active groups) a round,
    memory O(m |F|).

    Examples
    --------
    >>> from swapcal import Finite, Quantile
    >>> rng = np.random.default_rng(0)
    >>> method = MVP(Quantile(0.9), Finite(1), horizon=2000, seed=1)
    >>> y = rng.random(2000)
    >>> covered = y <= method.run(np.ones((2000, 1)), y)
    >>> round(float(covered.mean()), 1)
    0.9

    References
    ----------
    Bastani, Gupta, Jung, Noarov, Ramalingam, Roth (2022), Practical adversarial multivalid conformal prediction,
    NeurIPS, arXiv:2206.01067; their code, MultiValidPrediction.
    """

    card: ClassVar[Card] = Card(
        name="MVP",
        reference="Bastani, Gupta, Jung, Noarov, Ramalingam, Roth (2022), Practical adversarial multivalid conformal "
        "prediction; the authors' code",
        assumes="group indicators (other values in [-1, 1] weigh the sums); labels with a density",
        properties=("quantile",),
        classes=("finite",),
        exponent=0.5,
        error="MCal_2 (with bins = T^(1/4) and rate = 'theory')",
        cost="O(bins * active functions)",
        reconstructed="the theory's rate; the algorithm and its defaults are the authors' code",
    )

    def __init__(
        self,
        property: Elicitable,
        hypotheses: Hypotheses,
        *,
        horizon: int,
        seed: int = 0,
        bins: int = 50,
        rate: float | str = 0.5,
        fineness: int = 1000,
        forecasts: str = "point",
    ) -> None:
        self.card.check(property, hypotheses)
        super().__init__(property, hypotheses, seed=seed)
        self.horizon = checked.whole(horizon, "horizon", 1)
        self.bins = checked.whole(bins, "bins", 1)
        cells = hypotheses.n * self.bins
        if isinstance(rate, str):
            checked.one_of(rate, "rate", ("theory",))
            self.rate = math.sqrt(math.log(max(cells, 2)) / (2.0 * _SQUARES * cells))
        else:
            self.rate = checked.number(rate, "rate", 0.0, 1e3)
        self.fineness = checked.whole(fineness, "fineness", 2)
        self.forecasts = checked.one_of(forecasts, "forecasts", ("point", "middle"))
        self.grid = Grid(*property.domain, self.bins)
        self.sums = np.zeros((hypotheses.n, self.bins))
        self.counts = np.zeros((hypotheses.n, self.bins))

    def plan(self, row: Row, hint: float | None) -> Plan:
        """Two points around a border; hints are not used."""
        if not row.indices.size:
            return Plan((self.grid.low,), (1.0,), ((0, self.grid.low),))
        counts = self.counts[row.indices]
        inverse = 1.0 / (np.sqrt(counts + 1.0) * np.log2(counts + 2.0))
        evidence, logs = sinh_sums(self.rate * self.sums[row.indices] * inverse, row.values[:, None] * inverse)
        return play_borders(self.grid, first_change(evidence, logs), self.fineness, self.forecasts == "middle")

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """Add the miscoverage to the sums of the bin that was played, and count the visit."""
        i, point = plan.notes[drawn]
        self.sums[row.indices, i] += row.values * checked.identified(self.property, point, y)
        self.counts[row.indices, i] += 1.0

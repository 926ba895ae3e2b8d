"""Haghtalab, Jordan, Zhao (2023): multicalibration as a game between a no-regret adversary and a best response."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from swapcal import inputs
from swapcal.paper.method import Plan
from swapcal.protocols import Row
from swapcal.rivals.card import Card
from swapcal.rivals.games import BorderRival, sinh_sums
from swapcal.typing import Float64Array


@dataclass(eq=False, repr=False, kw_only=True)
class Haghtalab2023(BorderRival):
    r"""An adversary learns which (function, bin, sign) is worst; the learner answers its mixture with two points.

    Guarantee, with S_{f,i} the sum of f(x_t) (p_t - y_t) over the rounds with p_t in bin i of n: with high probability

        max_{f,i} |S_{f,i}| = O(sqrt(T ln(|F| n))).

    Parameters
    ----------
    property : Elicitable
        A mean.
    hypotheses : Hypotheses
        A finite class.
    horizon : int
        T.
    bins : int, optional
        n; T^(1/4) by default, as the bound leaves it open.
    adversary : {"hedge", "prod"}
        Hedge with rate sqrt(2 ln(d) / T), d = 2 |F| n; or ML-Prod with a rate of its own for each of the d, whose
        regret is small against those that gain little (the source's small-loss remark).
    fineness : int
        The two forecasts lie 1/(fineness n) apart.
    forecasts : {"point", "middle"}
        The point itself, or its bin's mid-point, for audits that tell forecasts apart by value.
    seed : int
        Of the draws.

    Notes
    -----
    The players' moves are distributions, so that the adversary is fed expected gains, P_t(p) f(x_t) (p - y_t) for the
    bins of both points. ML-Prod: weights eta_k w_k, w_k <- (w_k (1 + eta_k r_k))^(eta'_k / eta_k) for half the regret
    r_k of the round, eta_k = min(1/2, sqrt(ln d / (1 + sum r_k^2))). Time O(n active functions) a round with Hedge,
    O(n |F|) with ML-Prod; memory O(n |F|).

    Examples
    --------
    >>> from swapcal import Finite, Mean
    >>> method = Haghtalab2023(Mean(), Finite(2), horizon=400, bins=4, adversary="prod", seed=1)
    >>> for t in range(400):
    ...     method.update(method.predict([1.0, t % 2]), 0.8 if t % 2 else 0.4)
    >>> bool(np.abs(method.gains).max() < 0.1 * 400)
    True

    References
    ----------
    Haghtalab, Jordan, Zhao (2023), A unifying perspective on multi-calibration: game dynamics for multi-objective
    learning, NeurIPS, arXiv:2302.10863. ML-Prod: Gaillard, Stoltz, van Erven (2014), COLT, algorithm 2.
    """

    card: ClassVar[Card] = Card(
        name="Haghtalab et al. 2023",
        reference="Haghtalab, Jordan, Zhao (2023), A unifying perspective on multi-calibration",
        assumes="values in [-1, 1]; horizon known",
        exponent=0.5,
        error="max over (f, bin) of |sum|",
        cost="O(bins * active functions)",
        reconstructed="rates, the two points around a border and the number of bins (T^(1/4)); the text was not "
        "available, and its code is for batches",
    )

    adversary: str = "hedge"

    def start(self) -> None:
        """Check the options, and start with nothing learned."""
        super().start()
        self.adversary = inputs.one_of(self.adversary, "adversary", ("hedge", "prod"))
        cells = (self.hypotheses.n, self.bins)
        self.rate = math.sqrt(2.0 * math.log(2 * self.hypotheses.n * self.bins) / self.horizon)
        self.gains = np.zeros(cells)
        self.logs = np.zeros((2, *cells))
        self.squares = np.zeros((2, *cells))

    def plan(self, row: Row, hint: float | None) -> Plan:
        """The best response to the adversary's mixture; hints are not used."""
        values = row.values[:, None]
        if self.adversary == "hedge":
            evidence, logs = sinh_sums(self.rate * self.gains[row.indices], values)
        else:
            exponents = self.logs[:, row.indices] + np.log(self._rates()[:, row.indices])
            logs = exponents.max(axis=(0, 1), initial=-np.inf) if row.indices.size else np.zeros(self.bins)
            plus, minus = np.exp(exponents - logs)
            evidence = (values * (plus - minus)).sum(axis=0)
        return self.play_borders(evidence, logs)

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """Feed the adversary what its objectives gained on average over the draw."""
        round_gains = np.zeros_like(self.gains)
        for (i, point), probability in zip(plan.notes, plan.probabilities, strict=True):
            round_gains[row.indices, i] += probability * row.values * inputs.identified(self.property, point, y)
        self.gains += round_gains
        if self.adversary == "prod":
            self._prod(round_gains)

    def _rates(self) -> Float64Array:
        return np.asarray(np.minimum(0.5, np.sqrt(math.log(self.squares.size) / (1.0 + self.squares))))

    def _prod(self, gains: Float64Array) -> None:
        rates = self._rates()
        exponents = self.logs + np.log(rates)
        weights = np.exp(exponents - exponents.max())
        weights /= weights.sum()
        signed = np.stack([gains, -gains])
        regrets = (signed - float((weights * signed).sum())) / 2.0
        self.squares += regrets**2
        self.logs = (self.logs + np.log1p(rates * regrets)) * (self._rates() / rates)

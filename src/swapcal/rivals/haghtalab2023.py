"""Haghtalab, Jordan, Zhao (2023): multicalibration as a game between a no-regret adversary and a best response."""

import math
from typing import ClassVar

import numpy as np

from swapcal import inputs
from swapcal.paper.method import Plan
from swapcal.protocols import Row
from swapcal.rivals.card import Card
from swapcal.rivals.games import BorderRival, sinh_sums


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
    fineness : int
        The two forecasts lie 1/(fineness n) apart.
    forecasts : {"point", "middle"}
        The point itself, or its bin's mid-point, for audits that tell forecasts apart by value.
    seed : int
        Of the draws.

    Notes
    -----
    The players' moves are distributions, so that the adversary is fed expected gains, P_t(p) f(x_t) (p - y_t) for the
    bins of both points. It is Hedge over the d = 2 |F| n triples with rate sqrt(2 ln(d) / T). Time O(n active
    functions) a round, memory O(n |F|).

    Examples
    --------
    >>> from swapcal import Finite, Mean
    >>> method = Haghtalab2023(Mean(), Finite(2), horizon=400, bins=4, seed=1)
    >>> for t in range(400):
    ...     method.update(method.predict([1.0, t % 2]), 0.8 if t % 2 else 0.4)
    >>> bool(np.abs(method.gains).max() < 0.1 * 400)
    True

    References
    ----------
    Haghtalab, Jordan, Zhao (2023), A unifying perspective on multi-calibration: game dynamics for multi-objective
    learning, NeurIPS, arXiv:2302.10863.
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

    def start(self) -> None:
        """Check the options, and start with nothing learned."""
        super().start()
        self.rate = math.sqrt(2.0 * math.log(2 * self.hypotheses.n * self.bins) / self.horizon)
        self.gains = np.zeros((self.hypotheses.n, self.bins))

    def plan(self, row: Row, hint: float | None) -> Plan:
        """The best response to the adversary's mixture; hints are not used."""
        return self.play_borders(*sinh_sums(self.rate * self.gains[row.indices], row.values[:, None]))

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """Feed the adversary what its objectives gained on average over the draw."""
        for (i, point), probability in zip(plan.notes, plan.probabilities, strict=True):
            self.gains[row.indices, i] += probability * row.values * inputs.identified(self.property, point, y)

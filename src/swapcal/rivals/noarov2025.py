"""Noarov, Ramalingam, Roth, Xie (2025): unbiased on every event, here every function in every bin."""

import math
from typing import ClassVar

import numpy as np

from swapcal import checked
from swapcal.engine.published import Plan, PublishedMethod
from swapcal.paper.msmwc import MsMwC
from swapcal.rivals.shared.card import Card
from swapcal.rivals.shared.inner_game import simulated, two_spots
from swapcal.roles import Elicitable, Hypotheses, Row
from swapcal.typing import Float64Array

__all__ = ["Noarov2025"]


class Noarov2025(PublishedMethod):
    r"""Forecasts whose bias on an event grows with the square root of how often the event happens.

    Guarantee (theorem 2.4 of the source), with S_{f,i} the sum of f(x_t) (p_t - y_t) over the n_i rounds with p_t in
    bin i: for every f and i, in expectation,

        |S_{f,i}| = O(ln(|F| N T) + sqrt(n_{f,i} ln(|F| N T))),

    so that MCal_1 over the bins is O~(T^(2/3)) for N = T^(1/3).

    Parameters
    ----------
    property : Elicitable
        A mean.
    hypotheses : Hypotheses
        A finite class; each (function, bin) is an event.
    horizon : int
        T.
    bins : int, optional
        N, default ceil(T^(1/3)).
    inner : {"two_points", "simulated"}
        The closed form for one dimension, or the source's simulated game of t^2 steps in round t.
    max_steps : int
        Most steps of a simulated game; t^2 of them would take O(T^3) time.
    forecasts : {"point", "middle"}
        The point itself, as in the source, or its bin's mid-point, for audits that tell forecasts apart by value.
    seed : int
        Of the draws.

    Notes
    -----
    MsMwC over the 2 N |F| experts (f, i, sigma) is fed what was realized, sigma 1{p in bin i} f(x) (p - y). With two
    points this is the paper's Algorithm 1 but for realized gains. Time O(N |F|) a round for each of the projection's
    iterations, and the steps of the game; memory O(N |F|).

    Examples
    --------
    >>> from swapcal import Finite, Mean
    >>> method = Noarov2025(Mean(), Finite(1), horizon=200, bins=4, seed=1)
    >>> for t in range(200):
    ...     method.update(method.predict([1.0]), float(t % 2))
    >>> bool(np.abs(method.sums).max() < 0.2 * 200)
    True

    References
    ----------
    Noarov, Ramalingam, Roth, Xie (2025), High-dimensional prediction for sequential decision making, ICML,
    arXiv:2310.17651, algorithm 1, theorems 2.3 and 2.4.
    """

    card: ClassVar[Card] = Card(
        name="Noarov et al. 2025",
        reference="Noarov, Ramalingam, Roth, Xie (2025), High-dimensional prediction for sequential decision making, "
        "theorem 2.4",
        assumes="values in [-1, 1]; horizon known",
        properties=("mean",),
        classes=("finite",),
        exponent=2.0 / 3.0,
        error="MCal_1 (forecasts in N bins)",
        cost="O(bins * functions) times the projection's iterations, and t^2 (capped) for the simulated game",
        reconstructed="the simulated game's steps are capped, and by default replaced by its closed form; its learner "
        "is gradient ascent, one of those allowed",
    )

    def __init__(
        self,
        property: Elicitable,
        hypotheses: Hypotheses,
        *,
        horizon: int,
        seed: int = 0,
        bins: int | None = None,
        inner: str = "two_points",
        max_steps: int = 400,
        forecasts: str = "point",
    ) -> None:
        self.card.check(property, hypotheses)
        super().__init__(property, hypotheses, seed=seed)
        self.horizon = checked.whole(horizon, "horizon", 1)
        default = max(1, math.ceil(math.cbrt(self.horizon) - 1e-9))
        self.bins = min(default if bins is None else checked.whole(bins, "bins", 1), self.horizon)
        self.inner = checked.one_of(inner, "inner", ("two_points", "simulated"))
        self.max_steps = checked.whole(max_steps, "max_steps", 1)
        self.forecasts = checked.one_of(forecasts, "forecasts", ("point", "middle"))
        self.experts = MsMwC(2 * self.bins * hypotheses.n, horizon=self.horizon)
        self.sums = np.zeros((self.bins, hypotheses.n))
        self.n_rounds = 0

    def phi(self, row: Row) -> Float64Array:
        """The weighted functions of each bin, with their signs."""
        plus, minus = self.experts.weights.reshape(2, self.bins, self.hypotheses.n)
        return np.asarray((plus - minus)[:, row.indices] @ row.values)

    def plan(self, row: Row, hint: float | None) -> Plan:
        """A distribution that no label can exploit; hints are not used."""
        if self.inner == "simulated":
            spots = simulated(self.phi(row), min((self.n_rounds + 1) ** 2, self.max_steps))
        else:
            spots = two_spots(self.phi(row), self.horizon)
        low, high = self.property.domain
        points = [min(low + (high - low) * point, high) for point in spots.points]
        middle = self.forecasts == "middle"
        values = [low + (high - low) * ((i + 0.5) / self.bins) for i in spots.bins] if middle else points
        return Plan(tuple(values), tuple(spots.probabilities), (spots.bins, points))

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """Feed the experts their realized gains."""
        i, point = plan.notes[0][drawn], plan.notes[1][drawn]
        gain = row.values * checked.identified(self.property, point, y)
        gains = np.zeros((2, self.bins, self.hypotheses.n))
        gains[0, i, row.indices] = gain
        gains[1, i, row.indices] = -gain
        self.experts.update(gains.ravel())
        self.sums[i, row.indices] += gain
        self.n_rounds += 1

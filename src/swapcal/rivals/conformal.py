"""Conformal prediction online: one tracked level, offsets by group, and MVP, whose thresholds are multivalid."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from swapcal import inputs
from swapcal.paper.method import Plan
from swapcal.protocols import Row
from swapcal.rivals.card import Card, Rival
from swapcal.rivals.games import BorderRival, sinh_sums


@dataclass(eq=False, repr=False, kw_only=True)
class AdaptiveConformal(Rival):
    r"""A quantile of past residuals to the hint, at a level that moves against the errors of coverage.

    Guarantee: for any labels above the lower end of the domain,

    .. math:: \Big|\frac1T \sum_t 1\{y_t \le p_t\} - q\Big| \le \frac{\max(q, 1 - q) + \gamma}{\gamma T},

    over all rounds together: neither for a group nor for rounds with the same forecast, so no exponent is declared.

    Parameters
    ----------
    property : Elicitable
        A quantile, with level q.
    hypotheses : Hypotheses
        Any; not used.
    horizon : int
        T; not used.
    seed : int
        Not used: nothing is drawn.
    rate : float
        The source's gamma, with its default 0.005.
    window : int
        How many of the last residuals are kept.

    Notes
    -----
    With l the tracked level, started at q, and n residuals y - hint (to the middle of the domain without a hint) in the
    window, p is the hint plus the k-th smallest residual, k = ceil(l (n + 1)), cut to the domain; the upper end for
    k > n and the lower end for k < 1. Then l <- l - rate V(p, y), V = 1{y <= p} - q.
    Time per round O(window), memory O(window).

    Examples
    --------
    >>> from swapcal.hypotheses import Finite
    >>> from swapcal.properties import Quantile
    >>> method = AdaptiveConformal(Quantile(0.5), Finite(1), horizon=4)
    >>> method.run([[1]] * 4, [0.2, 0.4, 0.3, 0.9]).round(3)
    array([1. , 0.2, 0.4, 0.3])

    References
    ----------
    Gibbs and Candes (2021), Adaptive conformal inference under distribution shift, NeurIPS, Proposition 4.1.
    """

    card: ClassVar[Card] = Card(
        name="adaptive conformal",
        reference="Gibbs and Candes (2021), Adaptive conformal inference under distribution shift",
        assumes="nothing; coverage over all rounds together only",
        properties=("quantile",),
        classes=("none",),
        cost="O(window)",
        reconstructed="the window of residuals",
    )

    rate: float = 0.005
    window: int = 1000

    def start(self) -> None:
        """Check the options, and start with nothing learned."""
        self.rate = inputs.number(self.rate, "rate", 0.0, 1e3)
        self.window = inputs.integer(self.window, "window", 1)
        self.level = float(self.property.spec()["level"])
        self.seen = 0
        self.residuals = np.zeros(self.window)

    def plan(self, row: Row, hint: float | None) -> Plan:
        """The hint plus a quantile of past residuals."""
        base, n = self.middle_or(hint), min(self.seen, self.window)
        k = math.ceil(self.level * (n + 1))
        if not 1 <= k <= n:
            return self.sure(math.inf if k > n else -math.inf, base)
        return self.sure(base + float(np.partition(self.residuals[:n], k - 1)[k - 1]), base)

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """Move the level against the error, and keep the residual."""
        self.level -= self.rate * inputs.identified(self.property, plan.values[drawn], y)
        self.residuals[self.seen % self.window] = y - plan.notes
        self.seen += 1


@dataclass(eq=False, repr=False, kw_only=True)
class GroupConformal(Rival):
    r"""The hint plus the sum of the active groups' offsets, each of which moves against the errors of coverage.

    Guarantee: for labels above the lower end of the domain, coverage in every group, whatever the labels do:

    .. math:: \Big|\sum_t x_{t, j} V(p_t, y_t)\Big| \le \sqrt{T \big(2 c / \eta + c^2 \kappa\big)},
              \qquad c = \max(q, 1 - q), \quad \kappa = \max_t |x_t|^2,

    as the left side is |w_j| / eta and a round lengthens |w|^2 by 2 c eta + c^2 eta^2 kappa at most. Groups have it,
    rounds with the same forecast do not: it is multiaccuracy, so no exponent is declared for multicalibration.

    Parameters
    ----------
    property : Elicitable
        A quantile, with level q.
    hypotheses : Hypotheses
        A finite class, for groups.
    horizon : int
        T; not used.
    seed : int
        Not used: nothing is drawn.
    rate : float
        eta, in widths of the domain.

    Notes
    -----
    With offsets w in widths of the domain, started at zero: p = hint + width <w, x>, cut to the domain, and
    w <- w - eta V(p, y) x, V = 1{y <= p} - q. Without a hint offsets count from the middle of the domain, and a context
    without groups gets the hint as it is. Time per round O(k) with k active entries, memory O(n).

    Examples
    --------
    >>> from swapcal.hypotheses import Finite
    >>> from swapcal.properties import Quantile
    >>> method = GroupConformal(Quantile(0.5), Finite(2), horizon=3, rate=0.25)
    >>> method.run([[1, 0], [1, 1], [0, 1]], [0.9, 0.1, 0.2])
    array([0.5  , 0.625, 0.375])

    References
    ----------
    Ramalingam, Kiyani, Roth (2025), The relationship between no-regret learning and online conformal prediction, ICML,
    arXiv:2502.10947.
    """

    card: ClassVar[Card] = Card(
        name="group conformal",
        reference="Ramalingam, Kiyani, Roth (2025), The relationship between no-regret learning and online conformal "
        "prediction",
        assumes="nothing; coverage for groups, not for rounds with the same forecast",
        properties=("quantile",),
        cost="O(k)",
        reconstructed="the rate; thresholds cut to the domain; the hint as base",
    )

    rate: float = 0.02

    def start(self) -> None:
        """Check the options, and start with nothing learned."""
        self.rate = inputs.number(self.rate, "rate", 0.0, 1e3)
        self.offsets = np.zeros(self.hypotheses.n)

    def plan(self, row: Row, hint: float | None) -> Plan:
        """The hint plus the active groups' offsets."""
        low, high = self.property.domain
        return self.sure(self.middle_or(hint) + (high - low) * float(self.offsets[row.indices] @ row.values))

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """Move the offsets of the active groups against the error."""
        v = inputs.identified(self.property, plan.values[drawn], y)
        self.offsets[row.indices] -= self.rate * v * row.values


# sum over n >= 0 of 1 / ((n + 1) log2(n + 2)^2): twenty million terms, and an integral for the rest.
_SQUARES = 1.6276


@dataclass(eq=False, repr=False, kw_only=True)
class MVP(BorderRival):
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
    change of sign. A context in no group gets the lowest forecast; nothing is learned. Time O(m active groups) a round,
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
        exponent=0.5,
        error="MCal_2 (with bins = T^(1/4) and rate = 'theory')",
        cost="O(bins * active functions)",
        reconstructed="the theory's rate; the algorithm and its defaults are the authors' code",
    )

    bins: int = 50
    rate: float | str = 0.5

    def start(self) -> None:
        """Check the options, and start with nothing learned."""
        super().start()
        cells = self.hypotheses.n * self.bins
        if isinstance(self.rate, str):
            inputs.one_of(self.rate, "rate", ("theory",))
            self.eta = math.sqrt(math.log(max(cells, 2)) / (2.0 * _SQUARES * cells))
        else:
            self.eta = inputs.number(self.rate, "rate", 0.0, 1e3)
        self.sums = np.zeros((self.hypotheses.n, self.bins))
        self.counts = np.zeros((self.hypotheses.n, self.bins))

    def plan(self, row: Row, hint: float | None) -> Plan:
        """Two points around a border; hints are not used."""
        if not row.indices.size:
            return Plan((self.grid.low,), (1.0,), ((0, self.grid.low),))
        counts = self.counts[row.indices]
        inverse = 1.0 / (np.sqrt(counts + 1.0) * np.log2(counts + 2.0))
        return self.play_borders(*sinh_sums(self.eta * self.sums[row.indices] * inverse, row.values[:, None] * inverse))

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """Add the miscoverage to the sums of the bin that was played, and count the visit."""
        i, point = plan.notes[drawn]
        self.sums[row.indices, i] += row.values * inputs.identified(self.property, point, y)
        self.counts[row.indices, i] += 1.0

"""Roth (2022), Noarov and Roth (2023), Noarov et al. (2025): from quantiles to any property, and to any event."""

from typing import ClassVar

from swapcal.rivals.card import Card
from swapcal.rivals.games import ExpertsRival, QuadraticRival


class Noarov2025(ExpertsRival):
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
    forecasts : {"point", "middle"}
        The point itself, as in the source, or its bin's mid-point, for audits that tell forecasts apart by value.
    seed : int
        Of the draws.

    Notes
    -----
    MsMwC over the 2 N |F| experts (f, i, sigma) is fed what was realized, sigma 1{p in bin i} f(x) (p - y). In place of
    the source's simulated game of t^2 steps in round t stands its closed form for one dimension, two points; so this is
    the paper's Algorithm 1 but for realized gains. Time O(N |F|) a round for each of the projection's iterations,
    memory O(N |F|).

    Examples
    --------
    >>> import numpy as np
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
        exponent=2.0 / 3.0,
        error="MCal_1 (forecasts in N bins)",
        cost="O(bins * functions) times the projection's iterations",
        reconstructed="the simulated game is replaced by its closed form",
    )

    exponent_of_bins: ClassVar[float] = 1.0 / 3.0


class NoarovRoth2023(QuadraticRival):
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
    See `QuadraticRival` for the game; rate sqrt(ln |F| / (4 T)) / 3. Time O(m active functions) a round, memory
    O(m |F|).

    Examples
    --------
    >>> from swapcal import Expectile, Finite
    >>> method = NoarovRoth2023(Expectile(0.9), Finite(2), horizon=900, seed=1)
    >>> for t in range(900):
    ...     method.update(method.predict([1.0, t % 2]), (t * 0.618) % 1.0)
    >>> bool(method.errors().max() < 0.05 * 900)
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
        exponent=0.5,
        error="MCal_2",
        cost="O(bins * active functions)",
        reconstructed="n = 0 counts as 1; the linear program over the labels is solved by the two-point rule, without "
        "the term V^2/n",
    )


class Roth2022(QuadraticRival):
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
    The game is that of `QuadraticRival`, with the quantile's own bound C = max(q, 1 - q) in the rate. Time O(m active
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
        exponent=0.5,
        error="MCal_2",
        cost="O(bins * active functions)",
        reconstructed="the algorithm as a whole, as the quantile case of Noarov and Roth (2023); the notes were not "
        "available",
    )

    def bound(self) -> float:
        """The larger of q and 1 - q: V is -q below the label and 1 - q from it on."""
        low, high = self.property.domain
        v = self.property.identification
        return max(-float(v(low, high)), float(v(high, low)))

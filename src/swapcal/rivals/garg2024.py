"""Garg, Jung, Reingold, Roth (2024): copies of a regression oracle, for means and quantiles; enumeration, for both."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from swapcal import inputs
from swapcal.paper.method import Plan
from swapcal.protocols import Row
from swapcal.rivals.card import Card
from swapcal.rivals.games import CycleRival, QuadraticRival, affine
from swapcal.typing import Float64Array


@dataclass(eq=False, repr=False, kw_only=True)
class Garg2024(CycleRival):
    r"""m copies of an online squared-loss regression, one for each value that may be forecast.

    Guarantee: with regret r(n) of the regression after n rounds, contextual swap regret of at most
    m r(T/m) + O(T/m) + O~(m sqrt T), which bounds the swap multicalibration error SMCal_2 over the class; at
    m = T^(1/4) this is O~(T^(3/4)). The copies compete with all affine functions of the context, so that finite and
    linear classes are both covered.

    Parameters
    ----------
    property : Elicitable
        A mean: `Mean`, `Probability` or `Moment`.
    hypotheses : Hypotheses
        A finite or a linear class.
    horizon : int
        T.
    seed : int
        Of the draws.
    bins : int, optional
        m, instead of ceil(T^(1/4)).
    ridge : float
        The lambda of the regression oracle.

    Notes
    -----
    Notation: z = (x, 1), targets u in [0, 1]. Copy i has seen S_i and is a Vovk-Azoury-Warmuth forecaster:

    .. math:: h_i(x) = z^T \Big(\lambda I + z z^T + \sum_{s \in S_i} z_s z_s^T\Big)^{-1} \sum_{s \in S_i} u_s z_s,

    whose regret to any w is at most lambda |w|^2 + d ln(1 + sum |z|^2 / (lambda d)). Each h_i is rounded to the grid,
    the round is drawn from the uniform distribution on a cycle of i -> bin of h_i(x), and only the copy whose value was
    drawn learns the outcome. Time per round O(m d k + d^2) with k active entries, memory O(m d^2).

    Examples
    --------
    >>> from swapcal.hypotheses import Finite
    >>> from swapcal.properties import Mean
    >>> method = Garg2024(Mean(), Finite(2), horizon=256)
    >>> set(method.run([[1, 0]] * 40, [0.6] * 40)[-5:].tolist())
    {0.625}

    References
    ----------
    Garg, Jung, Reingold, Roth (2024), Oracle efficient online multicalibration and omniprediction, SODA. Ito (2020), A
    tight lower bound and efficient reduction for swap regret. Vovk (2001), Competitive on-line statistics. Azoury and
    Warmuth (2001), Relative loss bounds for on-line density estimation.
    """

    card: ClassVar[Card] = Card(
        name="Garg 2024",
        reference="Garg, Jung, Reingold, Roth (2024), Oracle efficient online multicalibration and omniprediction",
        assumes="an online squared-loss regression oracle (here Vovk-Azoury-Warmuth on affine functions); T known",
        classes=("finite", "linear"),
        exponent=0.75,
        error="SMCal_2",
        cost="O(m d k + d^2), m = T^(1/4)",
        reconstructed="the regression oracle and its ridge, mid-points as grid, and the cycle reached from the middle",
    )

    ridge: float = 1.0

    def start(self) -> None:
        """Check the options, and start with nothing learned."""
        super().start()
        self.ridge = inputs.number(self.ridge, "ridge", 1e-9, 1e9)
        d = self.hypotheses.n + 1
        self.inverses = np.tile(np.eye(d) / self.ridge, (self.bins, 1, 1))
        self.sums = np.zeros((self.bins, d))

    def regressions(self, row: Row) -> Float64Array:
        """What each copy would forecast, in widths of the domain; not clipped."""
        indices, values = affine(row, self.hypotheses.n)
        solved = self.inverses[:, indices, :].transpose(0, 2, 1) @ values
        # Sherman and Morrison: the present context enters the matrix by a division.
        forecasts: Float64Array = np.sum(solved * self.sums, axis=1) / (1.0 + solved[:, indices] @ values)
        return forecasts

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """The copy of the value that was drawn takes the outcome."""
        i = plan.notes[drawn]
        indices, values = affine(row, self.hypotheses.n)
        solved = self.inverses[i][:, indices] @ values
        solved /= math.sqrt(1.0 + float(solved[indices] @ values))
        self.inverses[i] -= solved[:, None] * solved
        self.sums[i, indices] += self.target(y) * values


class Garg2024Finite(QuadraticRival):
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
    The game of `QuadraticRival` with one coordinate for each function and the visits of a point, whoever they are from,
    as its counts. Time O(m active functions) a round, memory O(m |F|).

    Examples
    --------
    >>> from swapcal import Finite, Mean
    >>> method = Garg2024Finite(Mean(), Finite(2), horizon=900, seed=1)
    >>> for t in range(900):
    ...     method.update(method.predict([1.0, (t % 3) - 1.0]), float(t % 3 == 1))
    >>> bool(method.errors().max() < 0.05 * 900)
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
        exponent=0.5,
        error="MCal_2",
        cost="O(bins * active functions)",
        reconstructed="the algorithm as a whole, from the claimed rate and the framework of Lee et al. (2022) that it "
        "builds on",
    )

    own_counts: ClassVar[bool] = False


# Competitors are p + a f(x) with p and |a| in [0, 1]: at most this long, as coefficients of (x, 1).
_RADIUS = math.sqrt(2.0)


class Garg2024Quantile(CycleRival):
    r"""m copies of an online pinball-loss regression, one for each value that may be forecast.

    Guarantee: contextual swap regret of the pinball loss as in `Garg2024`; where labels have a bounded density it
    bounds the quantile's swap multicalibration error, SMCal_2 = O~(T^(3/4)) at m = T^(1/4).

    Parameters
    ----------
    property : Elicitable
        A quantile.
    hypotheses : Hypotheses
        A finite or a linear class.
    horizon : int
        T.
    seed : int
        Of the draws.
    bins : int, optional
        m, instead of ceil(T^(1/4)).

    Notes
    -----
    Notation: z = (x, 1), labels in widths of the domain. Copy i is projected gradient descent on the pinball loss of
    <w, z> over the ball |w| <= R = sqrt 2, from the constant function at its own grid value:

    .. math:: w_i \leftarrow \Pi\Big(w_i - \frac{\sqrt 2 R}{\sqrt{\sum |g|^2}} g\Big), \qquad
              g = (1\{y \le \langle w_i, z\rangle\} - q)\, z,

    with regret of at most 2 sqrt(2) R sqrt(sum |g|^2). Rounding, cycle and draw are those of `Garg2024`, and only the
    copy whose value was drawn learns. Time per round O(m k + d) with k active entries, memory O(m d).

    Examples
    --------
    >>> from swapcal.hypotheses import Finite
    >>> from swapcal.properties import Quantile
    >>> method = Garg2024Quantile(Quantile(0.9), Finite(1), horizon=256)
    >>> method.run([[1]] * 40, [0.8] * 40)[[0, -1]].tolist()
    [0.625, 0.875]

    References
    ----------
    Garg, Jung, Reingold, Roth (2024), Oracle efficient online multicalibration and omniprediction, SODA. Zinkevich
    (2003), Online convex programming and generalized infinitesimal gradient ascent.
    """

    card: ClassVar[Card] = Card(
        name="Garg 2024 quantile",
        reference="Garg, Jung, Reingold, Roth (2024), Oracle efficient online multicalibration and omniprediction",
        assumes="an online pinball-loss regression oracle (here gradient descent); bounded label density; T known",
        properties=("quantile",),
        classes=("finite", "linear"),
        exponent=0.75,
        error="SMCal_2",
        cost="O(m k + d), m = T^(1/4)",
        reconstructed="the pinball oracle and its rate, mid-points as grid, and the cycle reached from the middle",
    )

    def start(self) -> None:
        """Check the options, and start with nothing learned."""
        super().start()
        self.coefficients = np.zeros((self.bins, self.hypotheses.n + 1))
        self.coefficients[:, -1] = (2 * np.arange(self.bins) + 1) / (2 * self.bins)
        self.squares = np.zeros(self.bins)

    def regressions(self, row: Row) -> Float64Array:
        """What each copy would forecast, in widths of the domain; not clipped."""
        indices, values = affine(row, self.hypotheses.n)
        forecasts: Float64Array = self.coefficients[:, indices] @ values
        return forecasts

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """The copy of the value that was drawn takes a gradient step."""
        i = plan.notes[drawn]
        indices, values = affine(row, self.hypotheses.n)
        forecast = self.scaled(float(self.coefficients[i, indices] @ values))
        gradient = inputs.identified(self.property, forecast, y) * values
        self.squares[i] += float(gradient @ gradient)
        if self.squares[i] == 0.0:
            return
        self.coefficients[i, indices] -= math.sqrt(2.0 / self.squares[i]) * _RADIUS * gradient
        length = float(np.linalg.norm(self.coefficients[i]))
        if length > _RADIUS:
            self.coefficients[i] *= _RADIUS / length

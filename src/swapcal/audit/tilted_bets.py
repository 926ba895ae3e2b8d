"""Bets at several tilts at once: the evidence that a mean exceeds b, and the smallest b that the evidence leaves.

Notation: tilt j bets on numbers X_1, ..., X_n at a rate lambda_j > 0 that is fixed in advance, as is its weight w_j
(weights add up to 1). mu_t = E[X_t | everything before] are the conditional means; their average is b + d_j, where b is
what one wants to know and the shift d_j is known by then. The gain g_j = sum_t log(1 + lambda_j X_t) is the caller's.
"""

import numpy as np

from swapcal.typing import Float64Array

__all__ = ["log_wealth", "smallest_mean"]

N_STEPS = 4
"""Newton's steps. Every iterate is valid, so this number concerns widths only; the tests see 1e-6 of the limit."""


def log_wealth(
    count: Float64Array,
    gains: Float64Array,
    rates: Float64Array,
    shifts: Float64Array,
    log_weights: Float64Array,
    mean: Float64Array,
) -> Float64Array:
    r"""Logarithm of the wealth of somebody who bets that b, the mean in question, exceeds `mean`.

    .. math:: W(b) = \sum_j w_j \exp(g_j - n \log(1 + \lambda_j (b + d_j)))

    Guarantee: W at the true b, and so at every larger one, is at most a nonnegative martingale that starts at 1. Taken
    at any stopping time it is an e-value for "the mean in question is at most `mean`".

    Notes
    -----
    prod_t (1 + lambda X_t) / (1 + lambda mu_t) is a martingale, since lambda is fixed in advance. The logarithm is
    concave, so sum_t log(1 + lambda mu_t) <= n log(1 + lambda (b + d)): dividing by the right-hand side instead gives
    at most the martingale, though b is random and known to nobody. W decreases in b.

    Parameters
    ----------
    count : array, shape (cells,)
        n.
    gains : array, shape (tilts, cells)
        g_j.
    rates, log_weights : array, shape (tilts, 1)
        lambda_j and log w_j.
    shifts : array, shape (tilts, cells) or (tilts, 1)
        d_j.
    mean : array, shape (cells,)
        b; where 1 + lambda_j (b + d_j) is not positive, the wealth counts as infinite.
    """
    stakes = rates * (mean + shifts)
    with np.errstate(divide="ignore", invalid="ignore"):
        exponents = log_weights + gains - count * np.log1p(np.maximum(stakes, -1.0))
    return _log_sum(np.where(count > 0, exponents, log_weights + 0.0 * gains))


def smallest_mean(
    count: Float64Array,
    gains: Float64Array,
    rates: Float64Array,
    shifts: Float64Array,
    log_weights: Float64Array,
    log_level: Float64Array | float,
) -> Float64Array:
    """The b at which the wealth W(b) of `log_wealth` comes down to e^log_level; -inf for cells without rows.

    Guarantee: with probability at least 1 - e^-log_level, the mean in question exceeds what is returned, at all times
    at once (Ville's inequality). This holds for every iterate, not only for the limit.

    Notes
    -----
    Each tilt on its own reaches the level at a b that is known in closed form; the largest of these is below the root,
    and Newton starts there. Each exponent is convex in b, hence so is the logarithm of their sum (log-convex functions
    add up to a log-convex one), and it decreases; the tangent of a convex decreasing function meets the level to the
    left of the root. So iterates increase towards the root and never pass it.
    """
    rows = np.maximum(count, 1.0)
    mean = np.max(np.expm1((gains + log_weights - log_level) / rows) / rates - shifts, axis=0)
    for _ in range(N_STEPS):
        stakes = rates * (mean + shifts)
        exponents = log_weights + gains - rows * np.log1p(stakes)
        largest = exponents.max(axis=0)
        terms = np.exp(exponents - largest)
        total = terms.sum(axis=0)
        slope = rows * (terms * (rates / (1.0 + stakes))).sum(axis=0) / total
        # At the root the excess is 0 up to rounding; a step back would be valid, too, but would never end.
        mean = mean + np.maximum(largest + np.log(total) - log_level, 0.0) / slope
    return np.where(count > 0, mean, -np.inf)


def _log_sum(exponents: Float64Array) -> Float64Array:
    largest: Float64Array = exponents.max(axis=0)
    # Infinite wealth stays infinite; inf - inf would not be a number.
    at = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(over="ignore"):
        total: Float64Array = np.exp(exponents - at).sum(axis=0)
    return at + np.log(total)

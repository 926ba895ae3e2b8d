"""Confidence radii for sums of bounded numbers, from their count, sum and sum of squares alone.

Notation: z_1, z_2, ... in [-1, 1] are the terms f(x_t) V(p_t, y_t) of one cell, m their number, s their sum, q the
sum of their squares; a radius R says |s - sum of the expected terms| <= R.
"""

import math

import numpy as np

from swapcal.typing import Float64Array

__all__ = ["adaptive_radius", "independent_radius"]

# The mixture over tilts lambda. The best tilt is near sqrt(2 log(1/delta) / q), so halving from 0.95 down to 1e-4
# serves every q up to about 1e9.
TILTS = 0.95 * 2.0 ** -np.arange(14)
CURVATURES = -np.log1p(-TILTS) - TILTS


def adaptive_radius(squares: Float64Array, delta: float) -> Float64Array:
    """Radius that holds with probability 1 - delta at all times at once, for any adaptive sequence in [-1, 1].

    Guarantee: let mu_t = E[z_t | everything before z_t is drawn]. With probability at least 1 - delta, for every
    number of terms, |sum_t (z_t - mu_t)| <= adaptive_radius(q, delta). Nothing else is assumed: terms need not be
    independent, their number may depend on them, and one may look after every term.

    Notes
    -----
    For z >= -1 and 0 <= lambda < 1, exp(lambda z - psi(lambda) z^2) <= 1 + lambda z with psi(lambda) = -log(1 -
    lambda) - lambda (Fan, Grama and Liu 2015, Lemma 4.1). Taking means and using 1 + u <= exp(u), the process
    exp(lambda sum(z_t - mu_t) - psi(lambda) sum z_t^2) is a supermartingale that starts at 1 (Howard et al. 2021,
    Theorem 4, with the prediction 0, which is what a calibrated cell has). So is its average over a fixed set of
    lambdas, and Ville's inequality keeps that below 2 / delta; the radius is the deviation at which it gets there.
    The other side is the same for -z.

    The average is convex and increasing in the deviation, so Newton's steps from above stay above: every iterate is
    valid. Cost: O(number of cells) with a constant near 200.

    References
    ----------
    Fan, Grama, Liu (2015), Exponential inequalities for martingales with applications, EJP 20. Howard, Ramdas,
    McAuliffe, Sekhon (2021), Time-uniform, nonparametric, nonasymptotic confidence sequences, Annals of Statistics
    49(2), Theorem 4.

    Examples
    --------
    >>> adaptive_radius(np.array([25.0]), 0.05).round(1)
    array([21.8])
    """
    level = math.log(2 / delta)
    # Each tilt on its own, at its share of delta, is a valid radius; the least of them is where Newton starts.
    radius: Float64Array = np.full(squares.shape, np.inf)
    for tilt, curvature in zip(TILTS, CURVATURES, strict=True):
        radius = np.minimum(radius, (level + math.log(len(TILTS)) + curvature * squares) / tilt)
    for _ in range(6):
        # log of the sum over tilts of exp(tilt * radius - curvature * q), and of its derivative in the radius.
        total, slope = np.full(squares.shape, -np.inf), np.full(squares.shape, -np.inf)
        for tilt, curvature in zip(TILTS, CURVATURES, strict=True):
            exponent = tilt * radius - curvature * squares
            total, slope = np.logaddexp(total, exponent), np.logaddexp(slope, exponent + math.log(tilt))
        excess = total - math.log(len(TILTS)) - level
        radius = radius - np.maximum(excess, 0.0) * np.exp(total - slope)
    return radius


def independent_radius(count: Float64Array, total: Float64Array, squares: Float64Array, delta: float) -> Float64Array:
    r"""Radius that holds with probability 1 - delta for `count` independent terms in [-1, 1]; infinite for one term.

    Guarantee: if the terms are independent and their number is fixed, |sum_t (z_t - E z_t)| <= R with probability at
    least 1 - delta, where

    .. math:: R = \sqrt{2 m \hat\sigma^2 \ln(4/\delta)} + \frac{14\, m \ln(4/\delta)}{3 (m - 1)}

    and sigma-hat^2 is the sample variance with m - 1 below the line.

    Notes
    -----
    Maurer and Pontil (2009) bound one side at delta by sqrt(2 var ln(2/delta) / m) + 7 ln(2/delta) / (3 (m - 1)) for
    numbers in [0, 1] (Theorem 4 for equal, Theorem 11 for different distributions). The range here is 2, which
    doubles the second term; two sides at delta/2 each turn ln(2/delta) into ln(4/delta).

    Examples
    --------
    >>> independent_radius(np.array([100.0]), np.array([0.0]), np.array([25.0]), 0.05).round(1)
    array([35.5])
    """
    level = math.log(4 / delta)
    several = np.maximum(count, 2.0)
    variance = np.maximum(squares - total**2 / several, 0.0) / (several - 1)
    radius = np.sqrt(2 * several * variance * level) + 14 * several * level / (3 * (several - 1))
    return np.where(count >= 2, radius, np.inf)

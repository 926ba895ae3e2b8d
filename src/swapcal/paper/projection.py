"""One step of mirror descent with an entropy whose every coordinate has a rate of its own.

Results have the same bits on every processor, because they are made of single operations of IEEE arithmetic in a fixed
order: the sums are `_total`, the exponentials `_expm1` and `_exp`. NumPy's own differ from one processor to the next.
Only the logarithms of two single numbers come from the C library.
"""

import math
from typing import NamedTuple

import numpy as np

from swapcal.typing import Float64Array

# More than Newton's method has ever used here (2 to 5), and enough for bisection alone.
MAX_ITERATIONS = 60
_ROUNDING = 2.0**-53
# A step of Newton's method that moves no logarithm by more leaves an error of half its square, so 2^-53.
_LAST_STEP = 2.0**-26
_AT_FLOOR = 2.0**-24
_IN_ORDER = 256
# Exponents up to this, less than (ln 2) / 2, need no reduction.
_NEAR = 0.34
_LAST = 4.13813679705723846039e-08
_TERMS = (
    -1.65339022054652515390e-06,
    6.61375632143793436117e-05,
    -2.77777777770155933842e-03,
    1.66666666666666019037e-01,
)
_LN2_HIGH, _LN2_LOW, _PER_LN2 = 6.93147180369123816490e-01, 1.90821492927058770002e-10, 1.44269504088896338700e00


class Step(NamedTuple):
    """A minimizer: `weights`, their logarithms, the `multiplier` of the sum, and how many `iterations` it took."""

    weights: Float64Array
    log_weights: Float64Array
    multiplier: float
    iterations: int


def project(
    weights: Float64Array, log_weights: Float64Array, gradient: Float64Array, rates: Float64Array, floor: float
) -> Step:
    r"""Minimize <u, b> + sum_i (u_i ln(u_i / w_i) - u_i + w_i) / eta_i over u >= floor with sum u = 1.

    The solution is u_i = max(floor, w_i exp(-eta_i (b_i + lam))), where lam, the multiplier of the sum, makes the sum
    1. With w itself feasible, lam lies in [-max b, -min b], where

        F(lam) = sum_i max(floor - w_i, w_i expm1(-eta_i (b_i + lam)))

    is convex and decreasing and has the root sought. So Newton's method lands on the left of the root after at most one
    step and then climbs to it without passing it; the bracket is there for rounding. Written with expm1, F has no
    cancellation: lam is good to about the last place even if the rates differ by a factor 10^8. An expert with b_i = 0
    moves too, through lam.

    As |F''| <= max(eta) |F'| where no weight meets the floor, a step of size s leaves an error of max(eta) s^2 / 2 at
    most. So the step with max(eta) s <= 2^-26 is the last one, unless a weight is within a factor 1 + 2^-24 of the
    floor.

    Parameters
    ----------
    weights, log_weights : array of shape (n,)
        The point w of the last step, at least `floor` and with sum 1, and its logarithm. With floor 0 a weight may
        underflow to 0 while its logarithm stays finite, so that it can come back; so the new weights are exponentials
        of the new logarithms then. With a positive floor they follow from the old weights, which is quicker.
    gradient : array of shape (n,)
        b. The products eta_i (max b - min b) must be moderate (here at most 1/4), else the exponential may overflow.
    rates : array of shape (n,)
        eta, positive.
    floor : float
        Least weight, from 0 to 1/n.

    Notes
    -----
    Time O(n) an iteration, a handful of iterations; memory O(n).

    Examples
    --------
    >>> w = np.array([0.5, 0.25, 0.25])
    >>> step = project(w, np.log(w), np.array([-1.0, 0.0, 0.0]), np.array([0.5, 0.5, 0.1]), 0.01)
    >>> step.weights.round(4), round(float(step.weights.sum()), 12)
    (array([0.588 , 0.1783, 0.2337]), 1.0)
    """
    low, high, fastest = 0.0 - float(gradient.max()), 0.0 - float(gradient.min()), float(rates.max())
    near = fastest * (high - low) <= _NEAR
    lowest, slowing = floor - weights, -rates
    # Room for what every iteration needs: new arrays cost more than the work where vectors are long.
    moved, change, slopes, exponents = np.empty((4, len(weights)))
    np.multiply(weights, rates, slopes)
    np.multiply(slopes, gradient, change)
    multiplier = -_total(change) / _total(slopes)
    step, iterations = 0.0, 0
    while iterations < MAX_ITERATIONS:
        iterations += 1
        np.add(gradient, multiplier, exponents)
        np.multiply(exponents, slowing, exponents)
        if near:
            _expm1_near(exponents, change, slopes)
        else:
            _expm1(exponents, change, slopes)
        np.multiply(change, weights, change)
        np.add(weights, change, moved)
        np.multiply(moved, rates, slopes)
        free = change > lowest
        if not free.all():
            np.maximum(change, lowest, out=change)
            np.multiply(slopes, free, slopes)
        # A zero may have either sign here; adding 0.0 settles it.
        excess, slope = _total(change) + 0.0, _total(slopes)
        if excess >= 0.0:
            low = max(low, multiplier)
        else:
            high = min(high, multiplier)
        proposal = multiplier + excess / slope if slope > 0.0 else high
        inside = low <= proposal <= high
        if not inside:
            proposal = 0.5 * (low + high)
        step, multiplier = proposal - multiplier, proposal
        size = abs(step) * fastest
        if size <= _ROUNDING:
            break
        if inside and slope > 0.0 and size <= _LAST_STEP and not _at_floor(moved, floor):
            break
    np.add(gradient, multiplier, exponents)
    np.multiply(exponents, rates, exponents)
    log_moved = log_weights - exponents
    if floor > 0.0 and abs(step) * fastest <= _LAST_STEP:
        # exp(-eta step) is 1 - eta step to the last place.
        np.multiply(rates, step, slopes)
        np.subtract(1.0, slopes, slopes)
        np.multiply(moved, slopes, moved)
    else:
        moved = _exp(log_moved)
    return _renormalized(moved, log_moved, floor, multiplier, iterations)


def _at_floor(moved: Float64Array, floor: float) -> bool:
    """Whether a weight is so near the floor that the last step may take it there, or away."""
    return floor > 0.0 and bool((np.abs(moved - floor) <= _AT_FLOOR * floor).any())


def _renormalized(
    moved: Float64Array, log_moved: Float64Array, floor: float, multiplier: float, iterations: int
) -> Step:
    """The step with the last rounding error spread over the free weights, so that none adds up over the rounds."""
    free = moved > floor
    n_free = int(np.count_nonzero(free))
    weights = moved.copy() if n_free == len(free) else np.where(free, moved, 0.0)
    total = _total(weights.copy())
    if total > 0.0:
        ratio = (1.0 - floor * (len(free) - n_free)) / total
        weights *= ratio
        log_moved = log_moved + math.log(ratio)
    np.maximum(weights, floor, out=weights)
    if floor > 0.0:
        # Not np.maximum: of two zeros it may take either.
        log_floor = math.log(floor)
        log_moved = np.where(free & (log_moved > log_floor), log_moved, log_floor)
    return Step(weights, log_moved, multiplier, iterations)


def _total(terms: Float64Array) -> float:
    """The sum of the terms, which are overwritten: long vectors are folded in half first, short ones added in order.

    Folding is as quick as `sum`, and its order is known; `@` is not used because the threads that BLAS starts for a
    long vector cost ten times the work on busy cores.
    """
    n = len(terms)
    while n > _IN_ORDER:
        half = n // 2
        np.add(terms[:half], terms[n - half : n], terms[:half])
        n -= half
    return float(terms[:n].cumsum()[-1])


def _expm1_near(r: Float64Array, out: Float64Array, c: Float64Array) -> Float64Array:
    r"""Compute exp(r) - 1 for |r| up to (ln 2) / 2 in `out`, within one unit in the last place; `c` is room.

    With c = r - r^2 (1/6 - r^2/360 + ...), the bracket being a minimax polynomial, exp(r) = 1 + r + r c / (2 - c). The
    constants are those of FreeBSD's e_exp.c.
    """
    np.multiply(r, r, out)
    np.multiply(out, _LAST, c)
    for term in _TERMS:
        np.add(c, term, c)
        np.multiply(c, out, c)
    np.subtract(r, c, c)
    np.multiply(r, c, out)
    np.subtract(2.0, c, c)
    np.divide(out, c, out)
    return np.add(out, r, out)


def _reduced(x: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return r and whole k with x = k ln 2 + r."""
    k = np.rint(x * _PER_LN2)
    return (x - k * _LN2_HIGH) - k * _LN2_LOW, k


def _powers_of_two(k: Float64Array) -> Float64Array:
    powers: Float64Array = np.ldexp(1.0, k.astype(np.int32))
    return powers


def _expm1(x: Float64Array, out: Float64Array, room: Float64Array) -> None:
    """Compute exp(x) - 1 in `out`, for x up to 700; from there on it stays as it is."""
    r, k = _reduced(np.clip(x, -700.0, 700.0))
    powers = _powers_of_two(k)
    _expm1_near(r, out, room)
    np.multiply(out, powers, out)
    np.add(out, powers - 1.0, out)


def _exp(x: Float64Array) -> Float64Array:
    """Compute exp(x), for x up to 700."""
    r, k = _reduced(np.clip(x, -800.0, 700.0))
    # In two steps, as the power may lie below the normal numbers; only the second one rounds.
    half = np.floor(0.5 * k)
    return (_expm1_near(r, np.empty_like(r), np.empty_like(r)) + 1.0) * _powers_of_two(half) * _powers_of_two(k - half)

"""One step of mirror descent with an entropy whose every coordinate has a rate of its own."""

from typing import NamedTuple

import numpy as np

from swapcal.typing import Float64Array

__all__ = ["MAX_ITERATIONS", "Step", "kkt_residual", "project"]

MAX_ITERATIONS = 60
"""More than Newton's method has ever used here (3 to 5), and enough for bisection alone."""
_ROUNDING = 2.0**-53


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

    Parameters
    ----------
    weights, log_weights : array of shape (n,)
        The point w of the last step, at least `floor` and with sum 1, and its logarithm. With floor 0 a weight may
        underflow to 0 while its logarithm stays finite, so that it can come back.
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
    lowest = floor - weights
    low, high = -float(gradient.max()), -float(gradient.min())
    mass = weights * rates
    # Sums rather than `@`: the threads that BLAS starts for a long vector cost ten times the work on busy cores.
    multiplier = -float((mass * gradient).sum()) / float(mass.sum())
    fastest = float(rates.max())
    iterations = 0
    while iterations < MAX_ITERATIONS:
        iterations += 1
        change = weights * np.expm1(-rates * (gradient + multiplier))
        free = change > lowest
        excess = float(np.maximum(change, lowest).sum())
        slope = float((rates * (weights + change)).sum(where=free))
        if excess >= 0.0:
            low = max(low, multiplier)
        else:
            high = min(high, multiplier)
        proposal = multiplier + excess / slope if slope > 0.0 else high
        if not low <= proposal <= high:
            proposal = 0.5 * (low + high)
        step, multiplier = proposal - multiplier, proposal
        if abs(step) * fastest <= _ROUNDING:
            break
    return _renormalized(log_weights - rates * (gradient + multiplier), floor, multiplier, iterations)


def _renormalized(log_weights: Float64Array, floor: float, multiplier: float, iterations: int) -> Step:
    """The step with the last rounding error spread over the free weights, so that none adds up over the rounds."""
    log_floor = float(np.log(floor)) if floor > 0.0 else -np.inf
    free = log_weights > log_floor
    result = np.where(free, np.exp(log_weights), floor)
    total = float(result.sum(where=free))
    if total > 0.0:
        ratio = (1.0 - floor * (len(free) - np.count_nonzero(free))) / total
        result = np.where(free, np.maximum(result * ratio, floor), floor)
        log_weights = log_weights + np.log(ratio)
    return Step(result, np.maximum(log_weights, log_floor), multiplier, iterations)


def kkt_residual(
    log_weights: Float64Array, gradient: Float64Array, rates: Float64Array, floor: float, step: Step
) -> float:
    """By how much `step`, taken from exp(log_weights), misses the conditions of a minimizer: the largest of the misses.

    They are ln(u_i / w_i) + eta_i (b_i + lam) = 0 for weights above the floor and >= 0 at it, sum u = 1, u >= floor.
    The derivative is multiplied by eta_i, so that a miss is a relative error of a weight.
    """
    derivative = step.log_weights - log_weights + rates * (gradient + step.multiplier)
    misses = np.where(step.weights > floor, np.abs(derivative), np.maximum(-derivative, 0.0))
    outside = max(floor - float(step.weights.min()), 0.0)
    return max(float(misses.max()), abs(float(step.weights.sum()) - 1.0), outside)

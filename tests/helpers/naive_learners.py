"""Algorithms 2 to 4 of the paper read aloud: every number computed from the list of all past rounds.

Notation: a past is a list of rounds, each the list of x_j kappa for all functions j; theta or w is what the learner
multiplies x with; S the sum of what its answers were worth.
"""

import math
from collections.abc import Callable

from naive import Quadratic, Weights, total

Past = list[list[float]]
Algorithm = Callable[[Past, int], list[float]]
"""From a past and the number of functions to the factor of each x_j in q."""


def multiplicative_weights(past: Past, n: int) -> list[float]:
    """Algorithm 3: w_{1,f} = 1/|F|, then w_{t+1,f} proportional to exp(eta_t times the cumulative correlation)."""
    t = len(past)
    if t == 0:
        return [1.0 / n] * n
    eta = math.sqrt(math.log(n) / t)
    raw = [math.exp(eta * total([gains[f] for gains in past])) for f in range(n)]
    return [w / total(raw) for w in raw]


def gradient_descent(past: Past, n: int) -> list[float]:
    """Algorithm 4 from theta_1 = 0: theta_{t+1} is the projection of theta_t + (2 / sqrt t) kappa_t x_t."""
    theta = [0.0] * n
    for t, gains in enumerate(past, start=1):
        theta = [a + 2.0 / math.sqrt(t) * g for a, g in zip(theta, gains, strict=True)]
        length = math.sqrt(total([a * a for a in theta]))
        theta = [a / max(length, 1.0) for a in theta]
    return theta


def fed(gains: list[list[float]], sigma: float) -> Past:
    """What the copy that learns sigma v has been taught, from the gains of each function."""
    return [[sigma * g for g in each] for each in zip(*gains, strict=True)]


def worth(algorithm: Algorithm, past: Past, n: int) -> float:
    """What a copy's answers were worth: sigma q v of a round is its factors on sigma x v."""
    answers = [total([a * g for a, g in zip(algorithm(past[:t], n), past[t], strict=True)]) for t in range(len(past))]
    return max(total(answers), 0.0)


def oracle(algorithm: Algorithm, *, halved: bool) -> Weights:
    """The factors of x_j in Phi: two learners, one fed v and one fed -v; `halved` where one copy stands for both."""

    def weights(gains: list[list[float]], n: int) -> list[float]:
        factors = [0.0] * len(gains)
        for sigma in (1.0, -1.0):
            past = fed(gains, sigma)
            S = worth(algorithm, past, len(gains))
            for j, a in enumerate(algorithm(past, len(gains))):
                factors[j] += S * sigma * a / (n + 1)
        return [factor / 2.0 if halved else factor for factor in factors]

    return weights


def oracle_quadratic(algorithm: Algorithm, *, copies: int) -> Quadratic:
    """The potential of the copies that are kept, for its drift."""

    def norm(gains: list[list[float]]) -> float:
        return math.hypot(*(worth(algorithm, fed(gains, sigma), len(gains)) for sigma in (1.0, -1.0)[:copies]))

    return Quadratic(float(copies), norm)

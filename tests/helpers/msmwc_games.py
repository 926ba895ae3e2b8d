"""Adversaries of an expert algorithm, and the game in which its regret is counted."""

from collections.abc import Callable

import numpy as np

from swapcal.paper import MsMwC, MsMwCMaster
from swapcal.typing import Float64Array

__all__ = ["ADVERSARIES", "MAKERS", "Adversary", "Algorithm", "greedy", "lured", "noise", "one_good", "play"]

Algorithm = MsMwC | MsMwCMaster
Make = Callable[[int, int], Algorithm]
Adversary = Callable[[int, int, Float64Array, np.random.Generator], Float64Array]

MAKERS: dict[str, Make] = {
    "theorem 2": lambda d, T: MsMwC(d, horizon=T),
    "fast rates": lambda d, T: MsMwC(d, horizon=T, rate_cap=1.0 / 16.0, correction=8.0),
    "master": lambda d, T: MsMwCMaster(d, horizon=T),
}


def one_good(t: int, n: int, w: Float64Array, rng: np.random.Generator) -> Float64Array:
    return np.where(np.arange(len(w)) == 0, 1.0, -1.0)


def one_active(t: int, n: int, w: Float64Array, rng: np.random.Generator) -> Float64Array:
    return np.where(np.arange(len(w)) == len(w) - 1, 1.0, 0.0)


def greedy(t: int, n: int, w: Float64Array, rng: np.random.Generator) -> Float64Array:
    """Whoever has more than a fair share loses, the others win."""
    return np.where(w > 1.0 / len(w), -1.0, 1.0)


def greedy_sparse(t: int, n: int, w: Float64Array, rng: np.random.Generator) -> Float64Array:
    """The heaviest loses; expert 0 wins whenever it is not the heaviest."""
    gains = np.zeros(len(w))
    gains[0] = 1.0
    gains[int(np.argmax(w))] = -1.0
    return gains


def alternating(t: int, n: int, w: Float64Array, rng: np.random.Generator) -> Float64Array:
    return np.where(np.arange(len(w)) % 2 == t % 2, 1.0, -1.0)


def in_turn(t: int, n: int, w: Float64Array, rng: np.random.Generator) -> Float64Array:
    return np.where(np.arange(len(w)) == t % len(w), 1.0 if t // len(w) % 3 else -1.0, 0.0)


def noise(t: int, n: int, w: Float64Array, rng: np.random.Generator) -> Float64Array:
    return rng.uniform(-1.0, 1.0, len(w))


def lured(t: int, n: int, w: Float64Array, rng: np.random.Generator) -> Float64Array:
    """Expert 0 is the best for half the time, and the worst after it."""
    return np.where(np.arange(len(w)) == 0, 1.0 if 2 * t < n else -1.0, 0.0)


def faint(t: int, n: int, w: Float64Array, rng: np.random.Generator) -> Float64Array:
    return np.where(np.arange(len(w)) == 0, 0.05, rng.uniform(-1.0, 1.0, len(w)))


ADVERSARIES: list[Adversary] = [
    one_good,
    one_active,
    greedy,
    greedy_sparse,
    alternating,
    in_turn,
    noise,
    lured,
    faint,
]


def play(experts: Algorithm, adversary: Adversary, n: int) -> tuple[Float64Array, Float64Array]:
    """Regret against every expert, and its sum of squares, after `n` rounds."""
    rng = np.random.default_rng(7)
    regret, squares = np.zeros(experts.n_experts), np.zeros(experts.n_experts)
    for t in range(n):
        weights = experts.weights
        gains = adversary(t, n, weights, rng)
        regret += gains - float(weights @ gains)
        squares += gains**2
        experts.update(gains)
    return regret, squares

"""Streams with a known truth, and a model that is biased: probabilities, rare events, quiet means, narrow quantiles."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from swapcal.hypotheses import Finite
from swapcal.properties import Expectile, Mean, Probability, Quantile
from swapcal.protocols import Elicitable, Rows
from swapcal.simulate import streams
from swapcal.typing import Float64Array

__all__ = ["KINDS", "GridStream", "Recipe"]

_LEVEL, _EXPECTILE = 0.9, 0.8
_FIT_STEPS = 60


@dataclass(frozen=True, slots=True, eq=False)
class GridStream:
    """Rows of `n` functions, outcomes, a frozen model and, where it is known, the truth; all within [0, 1]."""

    property: Elicitable
    n: int
    rows: Rows
    y: Float64Array
    frozen: Float64Array
    truth: Float64Array | None = None


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a stream is made of: its kind, the kind's parameter, the number of rounds, and a seed.

    Examples
    --------
    >>> recipe = Recipe("rare", 0.01, 1_000, 0)
    >>> recipe.name, recipe.stream().rows.indptr.shape
    ('rare 0.01, T = 1,000', (1001,))
    """

    kind: str
    parameter: float
    n_rounds: int
    seed: int

    @property
    def name(self) -> str:
        """As it is called in tables."""
        parameter = f" {self.parameter:g}" if self.parameter else ""
        return f"{self.kind}{parameter}, T = {self.n_rounds:,}"

    def stream(self) -> GridStream:
        """The stream itself."""
        return KINDS[self.kind](self.parameter, self.n_rounds, self.seed)


def _sigmoid(a: Float64Array) -> Float64Array:
    return np.asarray(1.0 / (1.0 + np.exp(-a)), dtype=np.float64)


def _dense(
    property: Elicitable, x: Float64Array, y: Float64Array, frozen: Float64Array, truth: Float64Array
) -> GridStream:
    n = x.shape[1]
    return GridStream(property, n, Finite(n).rows(x, len(y)), y, frozen, truth)


def _drifting(property: Elicitable) -> Callable[[float, int, int], GridStream]:
    def made(_: float, n_rounds: int, seed: int) -> GridStream:
        s = streams.drifting(n_rounds, seed)
        truth = s.truth_mean
        if isinstance(property, Quantile):
            truth = s.truth_quantile(property.level)
        elif isinstance(property, Expectile):
            truth = s.truth_expectile(property.level)
        return _dense(property, s.x, s.y, s.hint, truth)

    return made


def _probability(_: float, n_rounds: int, seed: int) -> GridStream:
    s = streams.drifting(n_rounds, seed, binary=True)
    return _dense(Probability(), s.x, s.y, s.hint, s.truth_mean)


def _rare(rate: float, n_rounds: int, seed: int) -> GridStream:
    """Events of a rate; the model is overconfident, too high, and wrong by group."""
    rng, f, x = streams.context(n_rounds, seed, 20)
    score = f @ rng.normal(0, 0.3, 10) + x @ rng.normal(0, 0.25, x.shape[1])
    score -= score.mean()
    low, high = -20.0, 5.0
    for _ in range(_FIT_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _sigmoid(score + middle).mean() < rate else (low, middle)
    truth = _sigmoid(score + low)
    frozen = _sigmoid(1.4 * score + low + 0.5 + x @ rng.normal(0, 0.2, x.shape[1]))
    return _dense(Probability(), x, (rng.random(n_rounds) < truth).astype(np.float64), frozen, truth)


def _noise(share: float, n_rounds: int, seed: int) -> GridStream:
    """A mean with noise of that share of the range; the model is off by about as much, by group."""
    rng, f, x = streams.context(n_rounds, seed, 20)
    truth = 0.15 + 0.7 * _sigmoid(f @ rng.normal(0, 0.4, 10) + x @ rng.normal(0, 0.2, x.shape[1]))
    y = np.clip(truth + share * rng.standard_normal(n_rounds), 0.0, 1.0)
    frozen = np.clip(truth + share * (x @ rng.normal(0, 0.3, x.shape[1])) + 0.3 * share, 0.0, 1.0)
    return _dense(Mean(), x, y, frozen, truth)


def _density(rho: float, n_rounds: int, seed: int) -> GridStream:
    """A quantile of labels that are uniform on an interval of length 1 / rho."""
    rng, f, x = streams.context(n_rounds, seed, 20)
    center = np.full(n_rounds, 0.5)
    if rho > 1.0:
        inner = 0.1 + 0.8 * _sigmoid(f @ rng.normal(0, 0.4, 10) + x @ rng.normal(0, 0.2, x.shape[1]))
        center = 0.5 / rho + (1 - 1 / rho) * inner
    y = np.clip(center + (rng.random(n_rounds) - 0.5) / rho, 0.0, 1.0)
    truth = center + 0.4 / rho
    frozen = np.clip(truth + (x @ rng.normal(0, 0.1, x.shape[1]) - 0.1) / rho, 0.0, 1.0)
    return _dense(Quantile(_LEVEL), x, y, frozen, truth)


def _heaped(quantile: bool) -> Callable[[float, int, int], GridStream]:
    """Eight tenths of the forecasts are one number."""

    def made(_: float, n_rounds: int, seed: int) -> GridStream:
        rng, f, x = streams.context(n_rounds, seed, 20)
        heap = rng.random(n_rounds) < 0.8
        truth = np.where(heap, 0.3, 0.1 + 0.8 * _sigmoid(f @ rng.normal(0, 0.4, 10)))
        frozen = np.clip(truth * 0.8 + 0.05, 0.0, 1.0)
        draws = rng.random(n_rounds)
        if quantile:
            y = np.clip(truth - _LEVEL * 0.3 + 0.3 * draws, 0.0, 1.0)
            return _dense(Quantile(_LEVEL), x, y, frozen, truth)
        return _dense(Probability(), x, (draws < truth).astype(np.float64), frozen, truth)

    return made


KINDS: dict[str, Callable[[float, int, int], GridStream]] = {
    "probability": _probability,
    "quantile": _drifting(Quantile(_LEVEL)),
    "expectile": _drifting(Expectile(_EXPECTILE)),
    "mean": _drifting(Mean()),
    "rare": _rare,
    "noise": _noise,
    "density": _density,
    "heaped": _heaped(quantile=False),
    "heaped quantile": _heaped(quantile=True),
}
"""How each kind is made of its parameter, the number of rounds and a seed."""

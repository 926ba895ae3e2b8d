"""The streams on which the paper is measured: the law of every label is known, and every bin is visited."""

from dataclasses import dataclass

import numpy as np

from swapcal.protocols import Elicitable
from swapcal.typing import Float64Array

__all__ = ["KnownLaws", "binary_scene", "narrow_scene", "wide_scene"]

_CYCLES = 2.0
_GROUP_SHARE = 0.2
_MARGIN = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class KnownLaws:
    """Contexts, labels, and the law of each label.

    A location sweeps twice from 0 to 1 and back, and a fifth of it is the context's: 0.8 wave(t) + 0.2 times the share
    of +1 among the first three signs of x. It is the chance of a binary label. A real label lies, with probability
    `level`, uniformly in [low, middle], and otherwise uniformly in [middle, high]: so `middle` is its quantile at
    `level`, it has a bounded density, and no atoms.

    Parameters
    ----------
    x : array of shape (T, n)
        Contexts: a constant, then random signs.
    y : array of shape (T,)
        Labels.
    knots : array of shape (T, 3)
        low, middle, high of real labels; 0, the chance of a 1, and 1 for binary ones.
    level : float, or None
        Probability of [low, middle]; None for binary labels.
    """

    x: Float64Array
    y: Float64Array
    knots: Float64Array
    level: float | None

    @property
    def density(self) -> float:
        """The largest density of a real label, the rho of quantiles; 1 for binary labels, whose V is Lipschitz."""
        if self.level is None:
            return 1.0
        low, middle, high = self.knots.T
        return float(max(np.max(self.level / (middle - low)), np.max((1.0 - self.level) / (high - middle))))

    def mean_identification(self, property: Elicitable, t: int, p: float) -> float:
        """E V(p, y_t) given everything before round t.

        V(p, .) of the properties measured here is linear on either side of p, so the midpoint rule on the parts of each
        interval below and above p is exact.
        """
        low, middle, high = self.knots[t].tolist()
        if self.level is None:
            at = [float(property.identification(p, label)) for label in (0.0, 1.0)]
            return float((1.0 - middle) * at[0] + middle * at[1])
        total = 0.0
        for a, b, mass in ((low, middle, self.level), (middle, high, 1.0 - self.level)):
            cut = min(max(p, a), b)
            for left, right in ((a, cut), (cut, b)):
                if right > left:
                    v = float(property.identification(p, 0.5 * (left + right)))
                    total += mass * (right - left) / (b - a) * v
        return total


def binary_scene(n_rounds: int, *, n: int, seed: int, linear: bool = False) -> KnownLaws:
    """Labels 0 and 1.

    Examples
    --------
    >>> stage = binary_scene(1000, n=4, seed=0)
    >>> stage.x.shape, sorted(set(stage.y.tolist()))
    ((1000, 4), [0.0, 1.0])
    """
    rng, x, location = _contexts(n_rounds, n, seed)
    y = (rng.random(n_rounds) < location).astype(np.float64)
    knots = np.column_stack([np.zeros(n_rounds), location, np.ones(n_rounds)])
    return KnownLaws(_scaled(x, linear), y, knots, None)


def wide_scene(n_rounds: int, *, n: int, seed: int, level: float, linear: bool = False) -> KnownLaws:
    """Labels all over [0, 1], whose quantile at `level` sweeps over [0.1, 0.9].

    A wide label is what short horizons need: the paper's bound speaks of rho / N, and says nothing while that is not
    small against 1.

    Examples
    --------
    >>> import swapcal as sc
    >>> stage = wide_scene(100, n=3, seed=0, level=0.7)
    >>> round(abs(stage.mean_identification(sc.Quantile(0.7), 5, float(stage.knots[5, 1]))), 9)
    0.0
    """
    rng, x, location = _contexts(n_rounds, n, seed)
    middle = _MARGIN + (1.0 - 2.0 * _MARGIN) * location
    knots = np.column_stack([np.zeros(n_rounds), middle, np.ones(n_rounds)])
    return KnownLaws(_scaled(x, linear), _drawn(rng, knots, level), knots, level)


def narrow_scene(n_rounds: int, *, n: int, seed: int, level: float, density: float, linear: bool = False) -> KnownLaws:
    """Labels uniform on an interval of length 1 / density, which sweeps over [0, 1]."""
    rng, x, location = _contexts(n_rounds, n, seed)
    width = 1.0 / density
    low = (1.0 - width) * location
    knots = np.column_stack([low, low + level * width, low + width])
    return KnownLaws(_scaled(x, linear), _drawn(rng, knots, level), knots, level)


def _contexts(n_rounds: int, n: int, seed: int) -> tuple[np.random.Generator, Float64Array, Float64Array]:
    rng = np.random.default_rng([seed, n_rounds, n])
    x = np.ones((n_rounds, n))
    x[:, 1:] = rng.choice([-1.0, 1.0], (n_rounds, n - 1))
    phase = (np.arange(n_rounds) + 0.5) / n_rounds * _CYCLES
    wave = 1.0 - np.abs(2.0 * (phase % 1.0) - 1.0)
    share = (x[:, 1:4] > 0.0).mean(axis=1) if n > 1 else np.full(n_rounds, 0.5)
    return rng, x, (1.0 - _GROUP_SHARE) * wave + _GROUP_SHARE * share


def _scaled(x: Float64Array, linear: bool) -> Float64Array:
    """Unit vectors, for the linear class."""
    return x / np.sqrt(x.shape[1]) if linear else x


def _drawn(rng: np.random.Generator, knots: Float64Array, level: float) -> Float64Array:
    low, middle, high = knots.T
    u = rng.random(len(knots))
    below = low + u / level * (middle - low)
    above = middle + (u - level) / (1.0 - level) * (high - middle)
    return np.asarray(np.clip(np.where(u < level, below, above), 0.0, 1.0))

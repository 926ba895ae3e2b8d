"""The streams on which the paper is measured: the truth of each label is known, and every bin is visited."""

from dataclasses import dataclass

import numpy as np

from swapcal.roles import Elicitable
from swapcal.typing import Float64Array

__all__ = ["Scene", "scene"]

_CYCLES = 2.0
_GROUP_SHARE = 0.2


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """Contexts, labels and what the labels were drawn from.

    The location of round t sweeps twice from 0 to 1 and back, and a fifth of it is the context's: loc = 0.8 wave(t) +
    0.2 share of x's signs that are +1. A binary label is 1 with probability loc. A real label is uniform on an interval
    of length `width` whose lower end is (1 - width) loc: it has density 1 / width, stays in [0, 1], and has no atoms.

    Parameters
    ----------
    x : array of shape (T, n)
        Contexts, a constant first.
    y : array of shape (T,)
        Labels.
    location : array of shape (T,)
        loc.
    width : float, or None
        Length of the labels' interval; None for binary labels.

    Examples
    --------
    >>> import swapcal as sc
    >>> stage = scene(4, n=3, seed=0, width=0.25)
    >>> bool(np.isclose(stage.mean_identification(sc.Quantile(0.9), 2, stage.low(2) + 0.9 * 0.25), 0.0))
    True
    """

    x: Float64Array
    y: Float64Array
    location: Float64Array
    width: float | None

    @property
    def n_rounds(self) -> int:
        """T."""
        return len(self.y)

    @property
    def density(self) -> float | None:
        """Of a real label, where it is not zero."""
        return None if self.width is None else 1.0 / self.width

    def low(self, t: int) -> float:
        """Lower end of the interval of label t."""
        return 0.0 if self.width is None else (1.0 - self.width) * float(self.location[t])

    def mean_identification(self, property: Elicitable, t: int, p: float) -> float:
        """E V(p, y_t) given everything before round t.

        V(p, .) is, for the properties measured here, linear on either side of p, so that the mean over an interval is
        the midpoint rule on the two parts.
        """
        if self.width is None:
            chance = float(self.location[t])
            at = [float(property.identification(p, label)) for label in (0.0, 1.0)]
            return (1.0 - chance) * at[0] + chance * at[1]
        low, high = self.low(t), self.low(t) + self.width
        cut = min(max(p, low), high)
        parts = ((low, cut), (cut, high))
        return sum((b - a) * float(property.identification(p, 0.5 * (a + b))) for a, b in parts if b > a) / self.width


def scene(n_rounds: int, *, n: int, seed: int, width: float | None = None, linear: bool = False) -> Scene:
    """A stream of `n_rounds` with contexts of length `n`: (1, signs), divided by sqrt(n) for the linear class.

    `width=None` makes binary labels. Divided, the contexts are unit vectors.
    """
    rng = np.random.default_rng([seed, n_rounds, n])
    x = np.ones((n_rounds, n))
    x[:, 1:] = rng.choice([-1.0, 1.0], (n_rounds, n - 1))
    phase = (np.arange(n_rounds) + 0.5) / n_rounds * _CYCLES
    wave = 1.0 - np.abs(2.0 * (phase % 1.0) - 1.0)
    share = (x[:, 1:4] > 0.0).mean(axis=1) if n > 1 else np.full(n_rounds, 0.5)
    location = (1.0 - _GROUP_SHARE) * wave + _GROUP_SHARE * share
    u = rng.random(n_rounds)
    y = (u < location).astype(np.float64) if width is None else (1.0 - width) * location + width * u
    return Scene(x / np.sqrt(n) if linear else x, y, location, width)

"""Within which limits an adversary plays: a pool of contexts, a kind of label, a kind of hint."""

import math
from dataclasses import dataclass, field

import numpy as np

from swapcal.errors import InvalidInput
from swapcal.typing import Float64Array

__all__ = ["HINTS", "Arena", "ball", "groups", "signed"]

HINTS = ("constant", "alternating", "random")


@dataclass(frozen=True, slots=True, eq=False)
class Arena:
    """What the adversary may choose from; strategies differ only in how they choose.

    A strategy names a *location* in the label range, and the arena turns it into a label. Binary: the larger label with
    the probability at which the location divides the range, so that the ends are labels for sure. Otherwise: uniform
    on a window around the location, moved inward at the ends; its density is 1 / `width` of the range, which is the
    assumption that a quantile needs.

    Parameters
    ----------
    contexts : array of shape (n_rows, n)
        The pool of contexts, such as `groups(20, seed=0)`; each in the scale of the class, so that ||x|| <= 1 for
        `Linear`.
    width : float, optional
        Width of the window as a share of the label range; None for binary labels.
    hints : {"constant", "alternating", "random"}, optional
        Hostile hints: always the same value, one end of the domain and then the other, or uniform. None for none.
    seed : int
        Of all that the adversary draws.

    Examples
    --------
    >>> arena = Arena(groups(3, seed=0), width=0.2)
    >>> round(arena.label(0.0, 0.5, 0.0, 1.0), 3), Arena(groups(3, seed=0)).label(0.0, 0.5, 0.0, 1.0)
    (0.1, 0.0)
    """

    contexts: Float64Array
    width: float | None = field(default=None, kw_only=True)
    hints: str | None = field(default=None, kw_only=True)
    seed: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        pool = np.asarray(self.contexts)
        if pool.ndim != 2 or not pool.size or pool.dtype.kind not in "fiub":
            raise InvalidInput(f"contexts must be rows of numbers, at least one; got an array of shape {pool.shape}")
        pool = pool.astype(np.float64)
        if not np.isfinite(pool).all():
            raise InvalidInput("contexts hold an entry that is not finite; fill or drop such rows first")
        if self.width is not None and not (math.isfinite(self.width) and 0.0 < self.width <= 1.0):
            raise InvalidInput(f"width is a share of the label range above 0 and up to 1, or None; got {self.width!r}")
        if self.hints not in (None, *HINTS):
            raise InvalidInput(f"hints must be None or one of {', '.join(HINTS)}; got {self.hints!r}")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise InvalidInput(f"seed must be a whole number, 0 or more; got {self.seed!r}")
        object.__setattr__(self, "contexts", pool)

    def row(self, u: float) -> int:
        """A row of the pool; `u` is uniform in [0, 1)."""
        return int(u * len(self.contexts))

    def hint(self, t: int, u: float, domain: tuple[float, float]) -> float | None:
        """The hint of round `t`."""
        low, high = domain
        if self.hints is None:
            return None
        share = {"constant": 0.7, "alternating": float(t % 2), "random": u}[self.hints]
        return low + share * (high - low)

    def label(self, location: float, u: float, low: float, high: float) -> float:
        """The label at `location`; `u` is uniform in [0, 1)."""
        if self.width is None:
            return high if u * (high - low) < location - low else low
        half = 0.5 * self.width * (high - low)
        center = min(max(location, low + half), high - half)
        return min(max(center + half * (2.0 * u - 1.0), low), high)

    def nodes(self, location: float, low: float, high: float) -> list[float]:
        """Labels that stand for what `location` may give, all equally likely."""
        if self.width is None:
            return [low if location - low < high - location else high]
        return [self.label(location, u, low, high) for u in (0.125, 0.375, 0.625, 0.875)]


def groups(n: int, seed: int, n_rows: int = 256) -> Float64Array:
    """A pool of memberships in `n` overlapping groups of different sizes; the first group holds everybody.

    Parameters
    ----------
    n : int
        Length of a context.
    seed : int
        Of the draws.
    n_rows : int
        Size of the pool.

    Returns
    -------
    array of shape (n_rows, n)
        For `Arena`.

    Examples
    --------
    >>> groups(4, seed=0, n_rows=2)
    array([[1., 1., 1., 1.],
           [1., 0., 0., 0.]])
    """
    rng = np.random.default_rng(seed)
    pool = (rng.random((n_rows, n)) < rng.uniform(0.1, 0.7, n)).astype(np.float64)
    pool[:, 0] = 1.0
    return pool


def signed(n: int, seed: int, n_rows: int = 256) -> Float64Array:
    """A pool of values of `n` functions in [-1, 1]: random signs for the first half of them, uniform for the others.

    Parameters
    ----------
    n, seed, n_rows : int
        As in `groups`.

    Returns
    -------
    array of shape (n_rows, n)
        Values in [-1, 1], for `Finite`.

    Examples
    --------
    >>> signed(3, seed=0, n_rows=2).round(2)
    array([[ 1.  , -1.  , -0.92],
           [-1.  ,  1.  ,  0.83]])
    """
    rng = np.random.default_rng(seed)
    pool = rng.uniform(-1.0, 1.0, (n_rows, n))
    half = (n + 1) // 2
    pool[:, :half] = np.where(pool[:, :half] < 0.0, -1.0, 1.0)
    return pool


def ball(n: int, seed: int, n_rows: int = 256) -> Float64Array:
    """A pool of points spread uniformly over the unit ball of dimension `n`.

    Parameters
    ----------
    n : int
        The dimension.
    seed, n_rows : int
        As in `groups`.

    Returns
    -------
    array of shape (n_rows, n)
        Points of norm below 1, for `Linear`.

    Examples
    --------
    >>> bool((np.linalg.norm(ball(3, seed=0), axis=1) < 1.0).all())
    True
    """
    rng = np.random.default_rng(seed)
    pool = rng.standard_normal((n_rows, n))
    pool /= np.sqrt(np.sum(pool**2, axis=1, keepdims=True))
    # A hair inside, so that rounding puts no point outside and the class leaves every one as it is.
    return pool * (rng.random((n_rows, 1)) ** (1.0 / n) * (1.0 - 1e-12))

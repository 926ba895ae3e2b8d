"""The streams on which everything is timed: fixed seeds, made in blocks, so that long ones take no memory twice."""

from dataclasses import dataclass

import numpy as np

from swapcal.typing import Float64Array, IntArray

__all__ = ["Compressed", "dense", "groups", "sparse"]

_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True)
class Compressed:
    """Compressed sparse rows: the names of their parts, and what a slice of rows is, are SciPy's."""

    indptr: IntArray
    indices: IntArray
    data: Float64Array
    shape: tuple[int, int]

    def __getitem__(self, rows: slice) -> "Compressed":
        start, stop, _ = rows.indices(self.shape[0])
        ends = self.indptr[start : stop + 1]
        part = slice(ends[0], ends[-1])
        return Compressed(ends - ends[0], self.indices[part], self.data[part], (stop - start, self.shape[1]))


def dense(n_rounds: int, n: int, *, seed: int = 0) -> tuple[Float64Array, Float64Array]:
    """Contexts of `n` numbers with length at most 1, and outcomes 0 or 1 that depend on the second number."""
    X, y = np.empty((n_rounds, n)), np.empty(n_rounds)
    rng = np.random.default_rng(seed)
    for start in range(0, n_rounds, _BLOCK):
        block = X[start : start + _BLOCK]
        rng.random(out=block)
        block *= 2.0
        block -= 1.0
        block[:, 0] = 1.0
        y[start : start + _BLOCK] = rng.random(len(block)) < 0.3 + 0.4 * (block[:, 1] > 0.0)
        block /= np.sqrt(n)
    return X, y


def groups(n_rounds: int, n: int, *, seed: int = 0) -> tuple[Float64Array, Float64Array]:
    """Contexts of `n` overlapping groups: everybody is in the first, three in ten in each of the others."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n_rounds, n)) < 0.3).astype(np.float64)
    X[:, 0] = 1.0
    return X, (rng.random(n_rounds) < 0.3 + 0.4 * X[:, 1]).astype(np.float64)


def sparse(n_rounds: int, n: int, active: int, *, seed: int = 0) -> tuple[Compressed, Float64Array]:
    """Contexts with `active` ones among `n` entries, one in each of as many equal parts."""
    rng = np.random.default_rng(seed)
    indices = np.empty((n_rounds, active), dtype=np.int64)
    y = np.empty(n_rounds)
    for start in range(0, n_rounds, _BLOCK):
        block = indices[start : start + _BLOCK]
        block[:] = rng.integers(0, n // active, block.shape) + n // active * np.arange(active)
        y[start : start + _BLOCK] = rng.random(len(block)) < 0.3 + 0.4 * (block[:, 0] % 2)
    indptr = np.arange(n_rounds + 1) * active
    return Compressed(indptr, indices.reshape(-1), np.ones(n_rounds * active), (n_rounds, n)), y

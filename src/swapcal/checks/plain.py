"""Plain data and arrays: whether they are, and whether two of them are the same."""

import json
from collections.abc import Mapping

import numpy as np

from swapcal.checks.check_rules import expect
from swapcal.roles import Row
from swapcal.typing import Float64Array, Spec

__all__ = ["copied", "dense", "expect_plain", "expect_state", "same", "sample_rows"]


def expect_plain(spec: Spec) -> None:
    """A spec is a mapping of JSON types with the class under "kind", and JSON gives it back unchanged."""
    expect(isinstance(spec, Mapping), f"spec() gave {type(spec).__name__}, not a mapping")
    expect(isinstance(spec.get("kind"), str), 'spec() has no string under "kind"')
    text = json.dumps(dict(spec), allow_nan=False)
    expect(json.loads(text) == dict(spec), f"JSON changes spec(): {text}")


def expect_state(arrays: dict[str, Float64Array]) -> None:
    """A state is a dictionary of finite float64 arrays, as a state file holds them."""
    expect(isinstance(arrays, dict) and arrays, f"arrays() gave {type(arrays).__name__}, or nothing in it")
    for name, array in arrays.items():
        expect(isinstance(array, np.ndarray) and array.dtype == np.float64, f"arrays()[{name!r}] is not float64")
        expect(np.isfinite(array).all(), f"arrays()[{name!r}] is not finite")


def copied(arrays: dict[str, Float64Array]) -> dict[str, Float64Array]:
    """The arrays as they are now."""
    return {name: array.copy() for name, array in arrays.items()}


def same(one: dict[str, Float64Array], two: dict[str, Float64Array]) -> bool:
    """Whether two states are equal to the last bit."""
    return one.keys() == two.keys() and all(one[k].tobytes() == two[k].tobytes() for k in one)


def sample_rows(n: int, n_rows: int, seed: int) -> list[Row]:
    """Contexts inside the unit ball, as rows: of full length, sparse, and one empty."""
    rng = np.random.default_rng(seed)
    rows = [Row(np.zeros(0, dtype=np.int64), np.zeros(0))]
    while len(rows) < n_rows:
        size = int(rng.integers(1, min(n, 6) + 1))
        indices = np.sort(rng.choice(n, size, replace=False)).astype(np.int64)
        values = rng.uniform(0.1, 1.0, size) * rng.choice([-1.0, 1.0], size)
        rows.append(Row(indices, values / max(1.0, float(np.linalg.norm(values)))))
    return rows


def dense(row: Row, n: int) -> Float64Array:
    """A row as a vector with its zeros."""
    x = np.zeros(n)
    x[row.indices] = row.values
    return x

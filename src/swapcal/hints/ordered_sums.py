"""Sums in a stated order, so that another language can give the same bits."""

import numpy as np

from swapcal.typing import Float64Array

__all__ = ["in_order", "rows_in_order"]

# `np.sum`, `dot` and Python's own `sum` choose their order, or compensate, by version and machine. `accumulate` keeps
# every partial sum, which leaves it only one order: from left to right.


def in_order(terms: Float64Array) -> float:
    """The sum of a vector from left to right; 0 for none."""
    return float(np.add.accumulate(terms)[-1]) if len(terms) else 0.0


def rows_in_order(terms: Float64Array) -> Float64Array:
    """The sum of the rows of a matrix, at least one, from the first to the last."""
    total: Float64Array = np.add.accumulate(terms, axis=0)[-1]
    return total

"""Bins between edges: the one place that turns forecasts and outcomes into numbers of bins."""

import numpy as np

from swapcal.engine import kernels
from swapcal.typing import Float64Array, IntArray

__all__ = ["bins_between", "plain"]


def plain(array: Float64Array) -> Float64Array:
    """The array as kernels take it: doubles that lie one behind the other."""
    return np.require(array, np.float64, ["C", "A"])


def bins_between(inner: Float64Array, values: Float64Array, *, upper: bool = True) -> IntArray:
    """The bin of each value, with the edges `inner` between bins; an edge itself belongs to the `upper` bin or not.

    Examples
    --------
    >>> bins_between(np.array([0.2, 0.5]), np.array([0.1, 0.2, 0.9])).tolist()
    [0, 1, 2]
    """
    if kernels.native is not None:
        found: IntArray = kernels.native.audit_bins(plain(inner), plain(values), upper)
        return found
    return np.searchsorted(inner, values, side="right" if upper else "left")

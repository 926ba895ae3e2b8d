"""What a finer grid inherits from a coarser one."""

import numpy as np

from swapcal.typing import Float64Array

__all__ = ["refined"]


def refined(old: Float64Array, factor: int) -> Float64Array:
    """Each row followed by `factor - 1` empty ones around it: the middle part of a bin keeps what its parent had.

    Examples
    --------
    >>> refined(np.array([1.0, 2.0]), 3)
    array([0., 1., 0., 0., 2., 0.])
    """
    new = np.zeros((len(old) * factor, *old.shape[1:]))
    new[factor // 2 :: factor] = old
    return new

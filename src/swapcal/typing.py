"""Shared type aliases."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Float64Array = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
FloatLike = float | Float64Array
"""A number or an array of numbers; arithmetic on it works for both."""

Spec = Mapping[str, Any]
"""Plain data from which an object can be rebuilt: JSON types only."""

"""Shared type aliases."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Float64Array = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
# A number or an array of numbers; arithmetic on it works for both.
FloatLike = float | Float64Array

# Plain data from which an object can be rebuilt: JSON types only.
Spec = Mapping[str, Any]

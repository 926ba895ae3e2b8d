"""A user's function of numbers, made to work on arrays too."""

from collections.abc import Callable
from typing import Any

import numpy as np

from swapcal.errors import InvalidInput
from swapcal.typing import Float64Array, FloatLike

__all__ = ["Vectorized"]


class Vectorized:
    """A function that may know numbers only, or arrays as well, called either way.

    Parameters
    ----------
    function
        Takes as many numbers as there are probes and returns one.
    name
        What to call it in error messages.
    probes
        Equally long arrays of allowed arguments. If `function` gives the same for the arrays as for their elements
        one by one, it is trusted with arrays; otherwise arrays are cut into numbers, which is slow and always right.

    Examples
    --------
    >>> ramp = Vectorized(lambda p: p if p > 0.5 else 0.0, "ramp", np.array([0.2, 0.9]))
    >>> ramp.arrays, ramp(0.7), ramp(np.array([0.4, 0.6]))
    (False, 0.7, array([0. , 0.6]))
    """

    __slots__ = ("arrays", "function", "name")

    def __init__(self, function: Callable[..., Any], name: str, *probes: Float64Array) -> None:
        if not callable(function):
            raise InvalidInput(f"{name} must be a function; got {function!r}")
        self.function = function
        self.name = name
        self.arrays = False
        one_by_one = self._each(probes)
        try:
            with np.errstate(all="ignore"):
                together = np.asarray(function(*probes), dtype=np.float64)
        except Exception:
            # Numbers went well, so whatever happened is a function of numbers meeting arrays: it gets none.
            return
        self.arrays = bool(together.shape == one_by_one.shape and np.allclose(together, one_by_one, equal_nan=True))

    def __call__(self, *values: FloatLike) -> FloatLike:
        """The function at numbers, or at arrays that broadcast."""
        for value in values:
            if isinstance(value, np.ndarray):
                break
        else:
            return self._one(values)
        arrays = np.broadcast_arrays(*values)
        if not self.arrays:
            return self._each(arrays)
        with np.errstate(all="ignore"):
            return np.asarray(self.function(*arrays), dtype=np.float64)

    def _one(self, values: tuple[Any, ...]) -> float:
        try:
            return float(self.function(*values))
        except (ArithmeticError, TypeError, ValueError) as error:
            at = ", ".join(map(repr, values))
            raise InvalidInput(
                f"{self.name} at ({at}) raised {type(error).__name__}: {error}; it must return a number there"
            ) from error

    def _each(self, arrays: tuple[Float64Array, ...]) -> Float64Array:
        numbers = zip(*(array.ravel().tolist() for array in arrays), strict=True)
        return np.array([self._one(values) for values in numbers]).reshape(arrays[0].shape)

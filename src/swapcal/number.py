"""What makes a value that carries a number usable as that number: order, arithmetic, rounding, formatting, arrays."""

import math
import numbers
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["Number"]

Operation = Callable[[Any, Any], Any]


def _other(value: Any) -> Any:
    """The other side of an operation as a plain number; NotImplemented for what is not one."""
    if isinstance(value, Number):
        return value.value
    return value if isinstance(value, numbers.Number) else NotImplemented


def _forward(operation: Operation) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        right = _other(other)
        return NotImplemented if right is NotImplemented else operation(self.value, right)

    return method


def _backward(operation: Operation) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        left = _other(other)
        return NotImplemented if left is NotImplemented else operation(left, self.value)

    return method


class Number:
    """A mixin for a value with a float in `value`: everything that a float can do except `==` and `hash`.

    Order is by value, against numbers and against each other; arithmetic gives plain floats. Equality stays that of the
    class: two forecasts of 0.3 are two rounds, each with its own outcome to come, so they are equal only if everything
    in them is, and none is equal to the number 0.3. Were `forecast == 0.3` true, equal objects would need equal hashes,
    and a set or dict of the forecasts that wait for outcomes, which share a few dozen values, would be slow. Where
    equality of numbers is meant: `float(forecast) == 0.3` or `math.isclose(forecast, 0.3)`.

    Examples
    --------
    >>> class Price(Number):
    ...     value = 2.5
    >>> Price() < 3, 2 * Price() + 1, round(Price()), f"{Price():.2f}", max(Price(), 4), math.floor(Price())
    (True, 6.0, 2, '2.50', 4, 2)
    >>> np.array([Price(), 1.0]).sum()
    np.float64(3.5)
    """

    __slots__ = ()
    value: float

    def __float__(self) -> float:
        return self.value

    def __int__(self) -> int:
        return int(self.value)

    def __complex__(self) -> complex:
        return complex(self.value)

    def __bool__(self) -> bool:
        return self.value != 0.0

    def __lt__(self, other: Any) -> bool:
        return _LESS(self, other)  # type: ignore[no-any-return]

    def __le__(self, other: Any) -> bool:
        return _AT_MOST(self, other)  # type: ignore[no-any-return]

    def __gt__(self, other: Any) -> bool:
        return _MORE(self, other)  # type: ignore[no-any-return]

    def __ge__(self, other: Any) -> bool:
        return _AT_LEAST(self, other)  # type: ignore[no-any-return]

    __add__, __radd__ = _forward(operator.add), _backward(operator.add)
    __sub__, __rsub__ = _forward(operator.sub), _backward(operator.sub)
    __mul__, __rmul__ = _forward(operator.mul), _backward(operator.mul)
    __truediv__, __rtruediv__ = _forward(operator.truediv), _backward(operator.truediv)
    __floordiv__, __rfloordiv__ = _forward(operator.floordiv), _backward(operator.floordiv)
    __mod__, __rmod__ = _forward(operator.mod), _backward(operator.mod)
    __divmod__, __rdivmod__ = _forward(divmod), _backward(divmod)
    __pow__, __rpow__ = _forward(operator.pow), _backward(operator.pow)

    def __neg__(self) -> float:
        return -self.value

    def __pos__(self) -> float:
        return +self.value

    def __abs__(self) -> float:
        return abs(self.value)

    def __round__(self, ndigits: int | None = None) -> Any:
        return round(self.value) if ndigits is None else round(self.value, ndigits)

    def __trunc__(self) -> int:
        return math.trunc(self.value)

    def __floor__(self) -> int:
        return math.floor(self.value)

    def __ceil__(self) -> int:
        return math.ceil(self.value)

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else str(self)

    @property
    def real(self) -> float:
        """The number itself."""
        return self.value

    @property
    def imag(self) -> float:
        """0.0."""
        return 0.0

    def conjugate(self) -> float:
        """The number itself."""
        return self.value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self.value, dtype=dtype)


_LESS, _AT_MOST = _forward(operator.lt), _forward(operator.le)
_MORE, _AT_LEAST = _forward(operator.gt), _forward(operator.ge)
numbers.Real.register(Number)

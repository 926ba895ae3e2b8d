"""Logistic, linear and quantile regression with a small ridge, refitted from where the last fit ended."""

from typing import Any

import numpy as np

from swapcal.typing import Float64Array
from swapcal_benchmarks.late.late_stream import EVENT, QUANTILE

__all__ = ["Regression"]

_RIDGE = 1.0
_STEPS = 30
_FRESH = 10
"""Refits with one Hessian, at most."""


class Regression:
    """Weights of columns on top of an offset, by Newton's steps whose Hessian is taken anew now and then.

    A quantile's loss is smoothed by a narrow logistic kernel: beside the exact solution of the linear program its
    pinball loss on fresh rows was at most 0.2 % higher, and lower where rows were few. Outcomes are expected in units
    of their usual distance from the offset.

    Examples
    --------
    >>> fit, ones = Regression("mean", 0.5, 1), np.ones((1000, 1))
    >>> fit.refit(ones, np.full(1000, 3.0), np.zeros(1000))
    >>> fit.weights.round(2)
    array([3.])
    """

    def __init__(self, kind: str, level: float, n_columns: int) -> None:
        self.kind, self.level = kind, level
        self.weights = np.zeros(n_columns)
        self._hessian = np.zeros((n_columns, n_columns))
        self._rows, self._uses = 0, _FRESH

    def predicted(self, columns: Any, offset: Float64Array) -> Float64Array:
        """The mean, probability or quantile of each row."""
        z = offset + columns @ self.weights
        return _sigmoid(z) if self.kind == EVENT else z

    def refit(self, columns: Any, y: Float64Array, offset: Float64Array) -> None:
        """Fit to these rows, from the present weights on."""
        n, width = len(y), self._width(len(y))
        self._uses += 1
        if self._uses > _FRESH or n > 1.2 * self._rows:
            self._take_hessian(columns, y, offset, width)
        value = self._value(self.weights, columns, y, offset, width)
        for _ in range(_STEPS):
            slopes = columns.T @ self._slopes(columns, y, offset, width) + _RIDGE * self.weights
            hessian = self._hessian * (n / self._rows) + _RIDGE * np.eye(len(slopes))
            step = np.linalg.solve(hessian, slopes)
            gain = float(slopes @ step)
            if gain < 1e-7 * n:
                return
            size = 1.0
            while (found := self._value(self.weights - size * step, columns, y, offset, width)) > value and size > 1e-3:
                size *= 0.5
            if found > value:
                return
            self.weights, value = self.weights - size * step, found
            if size < 1.0:
                self._take_hessian(columns, y, offset, width)

    def _width(self, n: int) -> float:
        d = len(self.weights)
        return float(max(0.02, 0.3 * min(((d + np.log(n)) / n) ** 0.4, 0.5)))

    def _value(self, weights: Float64Array, columns: Any, y: Float64Array, offset: Float64Array, width: float) -> float:
        z = offset + columns @ weights
        ridge = 0.5 * _RIDGE * float(weights @ weights)
        if self.kind == EVENT:
            return float(np.sum(np.logaddexp(0.0, z) - y * z)) + ridge
        if self.kind == QUANTILE:
            return float(np.sum(width * np.logaddexp(0.0, (z - y) / width) - self.level * (z - y))) + ridge
        return 0.5 * float(np.sum((z - y) ** 2)) + ridge

    def _slopes(self, columns: Any, y: Float64Array, offset: Float64Array, width: float) -> Float64Array:
        z = offset + columns @ self.weights
        if self.kind == EVENT:
            return _sigmoid(z) - y
        return _sigmoid((z - y) / width) - self.level if self.kind == QUANTILE else z - y

    def _take_hessian(self, columns: Any, y: Float64Array, offset: Float64Array, width: float) -> None:
        z = offset + columns @ self.weights
        if self.kind == EVENT:
            p = _sigmoid(z)
            curvature = p * (1.0 - p)
        elif self.kind == QUANTILE:
            p = _sigmoid((z - y) / width)
            curvature = np.maximum(p * (1.0 - p) / width, 1e-3)
        else:
            curvature = np.ones(len(y))
        scaled = columns.multiply(curvature[:, None]) if hasattr(columns, "multiply") else columns * curvature[:, None]
        product = columns.T @ scaled
        self._hessian = product.toarray() if hasattr(product, "toarray") else product
        self._rows, self._uses = len(y), 0


def _sigmoid(z: Float64Array) -> Float64Array:
    half: Float64Array = np.tanh(0.5 * z)
    return 0.5 + 0.5 * half

"""What is given to an estimator, checked: targets, rows of them, and columns by name."""

from typing import Any

import numpy as np
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import (
    _num_samples,
    column_or_1d,
)

from swapcal.errors import InvalidInput
from swapcal.typing import Float64Array

__all__ = ["columns_of", "named", "numbers", "range_of", "same_length", "taken_rows", "targets"]


def targets(y: Any, X: Any) -> Any:
    """Classes, one for each row."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    y = column_or_1d(y, warn=True)
    if type_of_target(y) in ("continuous", "continuous-multioutput"):
        raise ValueError(f"Unknown label type: {type_of_target(y)}; a classifier needs classes, a regressor numbers")
    same_length(y, X)
    return y


def numbers(y: Any, X: Any) -> Float64Array:
    """Finite numbers, one for each row."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    numbers = np.asarray(column_or_1d(y, warn=True), dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError("Input y contains NaN or infinity")
    same_length(numbers, X)
    return numbers


def same_length(y: Any, X: Any) -> None:
    """Refuse targets of another number of rows."""
    if len(y) != _num_samples(X):
        raise ValueError(f"X has {_num_samples(X)} rows and y has {len(y)}; they must be equally many")


def range_of(y: Float64Array) -> tuple[float, float]:
    """Smallest and largest outcome, apart also where all are equal."""
    low, high = float(y.min()), float(y.max())
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def taken_rows(values: Any, rows: Any, of: int | None = None) -> Any:
    """Some rows of an array, frame or list; what has another length goes on as it is."""
    if of is not None and (not hasattr(values, "__len__") or len(values) != of):
        return values
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    return values[rows] if hasattr(values, "shape") else [values[i] for i in rows]


def named(groups: Any) -> Any:
    """Numbers of columns as the names x0, x1, ... that scikit-learn gives them."""
    if not isinstance(groups, (list, tuple)):
        return groups
    name = lambda part: f"x{part}" if isinstance(part, (int, np.integer)) else part  # noqa: E731
    return [tuple(map(name, each)) if isinstance(each, tuple) else name(each) for each in groups]


def columns_of(X: Any, names: Any) -> Any:
    """The columns that groups are made from: of a frame by name, or by number where it has no such name."""
    if hasattr(X, "columns"):
        own = [str(name) for name in X.columns]
        if all(name in own for name in names):
            return X
        X = {f"x{j}": X[name] for j, name in enumerate(X.columns)} | {str(name): X[name] for name in X.columns}
    else:
        X = {f"x{j}": X[:, j] for j in range(X.shape[1])}
    missing = [name for name in names if name not in X]
    if missing:
        raise InvalidInput(f"there is no column {missing[0]!r} for a group; there are {', '.join(map(repr, X))}")
    return {name: np.asarray(X[name]) for name in names}

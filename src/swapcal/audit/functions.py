"""What an audit asks of a class of functions, and the class that it takes where none is named."""

from typing import Any, Protocol

import numpy as np

from swapcal.checked import matrix, vector
from swapcal.errors import InvalidInput
from swapcal.roles import Row, Rows
from swapcal.typing import Float64Array, Spec

__all__ = ["Constant", "Functions", "width"]


class Functions(Protocol):
    """The part of `swapcal.roles.Hypotheses` that concerns recorded streams; every forecaster's class will do."""

    @property
    def n(self) -> int:
        """Length of the context vector."""

    @property
    def dual(self) -> str:
        """The norm of sums of x V that gives the supremum: "max" (finite class) or "euclidean" (linear class)."""

    def row(self, x: Any) -> Row:
        """One context, checked and in the class's own scale."""

    def rows(self, X: Any, n_rows: int) -> Rows:
        """Many contexts at once."""

    def supremum(self, sums: Float64Array) -> Float64Array:
        """Largest |sum of f V| over the class, from sums of x V along the last axis."""

    def spec(self) -> Spec:
        """Plain data that tells classes apart."""


class Constant:
    """The class F = {1}: plain calibration. The context must be left out."""

    dual = "max"
    n = 1

    def row(self, x: Any) -> Row:
        """Return the one entry 1."""
        self._refuse(x)
        return Row(np.zeros(1, dtype=np.int64), np.ones(1))

    def rows(self, X: Any, n_rows: int) -> Rows:
        """Return a column of ones."""
        self._refuse(X)
        return Rows(np.arange(n_rows + 1), np.zeros(n_rows, dtype=np.int64), np.ones(n_rows))

    def supremum(self, sums: Float64Array) -> Float64Array:
        """Absolute value of the one entry."""
        return np.asarray(np.abs(sums[..., 0]))

    def spec(self) -> Spec:
        """Plain data."""
        return {"kind": "constant"}

    def _refuse(self, x: Any) -> None:
        if x is not None:
            raise InvalidInput(
                "this audit began without x, so it must go on without; start a new audit to look at functions of x"
            )


def width(x: Any, *, many: bool) -> int:
    """How many functions these contexts hold, before any class is known."""
    shape = getattr(x, "shape", None) if hasattr(x, "tocsr") or hasattr(x, "indptr") else None
    if shape is not None:
        if not isinstance(shape, tuple) or len(shape) != 2 or not isinstance(shape[1], int) or shape[1] < 1:
            raise InvalidInput(f"sparse contexts must have two dimensions and a column or more; got shape {shape!r}")
        return shape[1]
    found = matrix(x, "x").shape[1] if many else len(vector(x, "x"))
    if not found:
        raise InvalidInput("x has no columns; leave it out to audit calibration alone")
    return int(found)

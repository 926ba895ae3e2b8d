"""What an audit looks at when no class is named: the constant function, or as many functions as x has columns."""

from typing import Any

import numpy as np

from swapcal.checked import matrix, vector
from swapcal.errors import InvalidInput
from swapcal.roles import Row, Rows
from swapcal.typing import Float64Array, Spec

__all__ = ["Constant", "width"]


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

"""Rounds in: labels, forecasts and contexts, checked together, become identification values and sparse rows."""

from typing import Any, NamedTuple

import numpy as np

from swapcal import checked
from swapcal.audit.constant import Constant, width
from swapcal.audit.functions import Functions
from swapcal.engine import kernels
from swapcal.engine.grid import Grid
from swapcal.errors import InvalidInput
from swapcal.hypotheses import Finite
from swapcal.roles import Elicitable, Row, Rows
from swapcal.typing import Float64Array

__all__ = ["Reader", "Round", "Rounds", "first_bad"]

_AT_ONCE = 1 << 18
"""Entries of an array that are looked at together, where they must be copied for it."""


class Round(NamedTuple):
    """One round, ready to be added: the class it belongs to, the (rounded) forecast, V, and the context."""

    functions: Functions
    value: float
    v: float
    row: Row


class Rounds(NamedTuple):
    """Many rounds, ready to be added; contexts as sparse rows, or dense as they came, which saves a copy of them."""

    functions: Functions
    values: Float64Array
    v: Float64Array
    contexts: Rows | Float64Array


class Reader:
    """Checks rounds and takes V. It changes nothing, so whoever calls it can fail without a trace.

    `functions` is None until the first context tells how many columns there are.
    """

    def __init__(self, property: Elicitable, functions: Functions | None, bins: int | None) -> None:
        if not all(hasattr(property, name) for name in ("identification", "invalid_labels", "domain", "spec")):
            raise InvalidInput(f"property must be an elicitable property such as Mean(); got {property!r}")
        if functions is not None and not all(
            hasattr(functions, name) for name in ("n", "row", "rows", "supremum", "dual")
        ):
            raise InvalidInput(f"hypotheses must be a class of functions such as Finite(n), or None; got {functions!r}")
        self.property = property
        self.functions = functions
        self.grid = None if bins is None else Grid(*property.domain, bins)

    def one(self, y: Any, p: Any, x: Any) -> Round:
        """One round."""
        label, forecast = checked.real(y, "y"), checked.real(p, "p")
        checked.labels(self.property, np.array([label]))
        checked.forecasts(self.property, np.array([forecast]))
        functions = self._functions(x, many=False)
        row = functions.row(x)
        value = forecast if self.grid is None else self.grid.midpoint(self.grid.bin(forecast))
        return Round(functions, value, float(self.property.identification(value, label)), row)

    def many(self, y: Any, p: Any, x: Any) -> Rounds:
        """Many rounds."""
        labels, forecasts = checked.vector(y, "y"), checked.vector(p, "p")
        if len(labels) != len(forecasts):
            raise InvalidInput(
                f"y and p must have one entry per round; got {len(labels)} labels, {len(forecasts)} forecasts"
            )
        checked.labels(self.property, labels)
        checked.forecasts(self.property, forecasts)
        functions, contexts = self._contexts(x, len(labels))
        values = forecasts if self.grid is None else self.grid.round(forecasts)
        v = np.asarray(self.property.identification(values, labels), dtype=np.float64)
        return Rounds(functions, values, v, contexts)

    def _contexts(self, x: Any, n_rounds: int) -> tuple[Functions, Rows | Float64Array]:
        """The functions and their values; the array itself where it holds the values of a finite class."""
        dense = type(x) is np.ndarray and x.dtype == np.float64 and x.ndim == 2 and len(x) == n_rounds and x.size > 0
        if dense and (self.functions is None or type(self.functions) is Finite):
            finite = Finite(x.shape[1]) if self.functions is None else self.functions
            if x.shape[1] == finite.n and first_bad(x, 1.0) < 0:
                return finite, x
        # Whatever is wrong with a dense array is said here too.
        functions = self._functions(x, many=True)
        return functions, functions.rows(x, n_rounds)

    def _functions(self, x: Any, *, many: bool) -> Functions:
        if self.functions is None:
            return Constant() if x is None else Finite(width(x, many=many))
        if x is None and not isinstance(self.functions, Constant):
            raise InvalidInput(
                f"this audit looks at {self.functions.n} functions of x, so x must be given in every round"
            )
        return self.functions


def first_bad(X: Float64Array, limit: float) -> int:
    """Index, counted row by row, of the first entry that is not finite or outside [-limit, limit]; -1 if none is.

    Unlike `np.isfinite(X).all()` it makes no array of the size of `X`.
    """
    whole = kernels.native is not None and X.flags.c_contiguous and X.flags.aligned
    step = len(X) if whole else max(1, _AT_ONCE // X[:1].size)
    largest = min(limit, float(np.finfo(np.float64).max))
    for start in range(0, len(X), step):
        part = np.require(X[start : start + step], np.float64, ["C", "A"])
        if kernels.native is not None:
            found = int(kernels.native.first_bad(part, largest))
        elif -largest <= part.min() and part.max() <= largest:
            found = -1
        else:
            found = int(np.flatnonzero(~(np.abs(part) <= largest))[0])
        if found >= 0:
            return start * X[:1].size + found
    return -1

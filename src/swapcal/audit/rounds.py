"""Rounds in: labels, forecasts and contexts, checked together, become identification values and sparse rows."""

from typing import Any, NamedTuple

import numpy as np

from swapcal import checked
from swapcal.audit.functions import Constant, Functions, width
from swapcal.engine import kernels
from swapcal.engine.grid import Grid
from swapcal.errors import InvalidInput
from swapcal.hypotheses import Finite
from swapcal.hypotheses.rows import check_rows
from swapcal.roles import Elicitable, Row, Rows
from swapcal.typing import Float64Array

__all__ = ["AuditedRound", "AuditedRounds", "RoundReader", "first_bad"]

_AT_ONCE = 1 << 18
"""Entries of an array that are looked at together, where they must be copied for it."""


class AuditedRound(NamedTuple):
    """One round, ready to be added: the class it belongs to, the (rounded) forecast, V, the context, and the weight."""

    functions: Functions
    value: float
    v: float
    row: Row
    weight: float


class AuditedRounds(NamedTuple):
    """Many rounds, ready to be added; contexts as sparse rows, or dense as they came, which saves a copy of them."""

    functions: Functions
    values: Float64Array
    v: Float64Array
    contexts: Rows | Float64Array
    weights: Float64Array | None


class RoundReader:
    """Checks rounds and takes V. It changes nothing, so whoever calls it can fail without a trace.

    `functions` is None until the first context tells how many columns there are. `edges` are those of the bins that
    forecasts share, if there are such bins; a whole number of `bins` rounds forecasts to their mid-points instead.
    """

    def __init__(self, property: Elicitable, functions: Functions | None, bins: Any = None) -> None:
        if not all(hasattr(property, name) for name in ("identification", "invalid_labels", "domain", "spec")):
            raise InvalidInput(f"property must be an elicitable property such as Mean(); got {property!r}")
        if functions is not None and not all(
            hasattr(functions, name) for name in ("n", "row", "rows", "supremum", "dual")
        ):
            raise InvalidInput(f"hypotheses must be a class of functions such as Finite(n), or None; got {functions!r}")
        self.property = property
        self.functions = functions
        several = isinstance(bins, list | tuple | np.ndarray)
        self.edges = _checked_edges(bins) if several else None
        self.grid = None if bins is None or several else Grid(*property.domain, bins)

    @property
    def n_bins(self) -> int | None:
        """How many bins there are, or None where every distinct forecast is one."""
        return len(self.edges) - 1 if self.edges is not None else None if self.grid is None else self.grid.n

    def one(self, y: Any, p: Any, x: Any, weight: Any = None) -> AuditedRound:
        """One round."""
        label, forecast = checked.real(y, "y"), checked.real(p, "p")
        checked.labels(self.property, np.array([label]))
        checked.forecasts(self.property, np.array([forecast]))
        functions = self._functions(x, many=False)
        w = 1.0 if weight is None else checked.real(weight, "weight")
        if not 0.0 <= w <= 1.0:
            raise InvalidInput(f"a weight must be in [0, 1]; got {w!r}: divide all weights by the largest")
        row = functions.row(x)
        value = forecast if self.grid is None else self.grid.midpoint(self.grid.bin(forecast))
        return AuditedRound(functions, value, float(self.property.identification(value, label)), row, w)

    def many(self, y: Any, p: Any, x: Any, weights: Any = None) -> AuditedRounds:
        """Many rounds."""
        labels, forecasts = checked.vector(y, "y"), checked.vector(p, "p")
        if len(labels) != len(forecasts):
            raise InvalidInput(
                f"y and p must have one entry per round; got {len(labels)} labels, {len(forecasts)} forecasts"
            )
        checked.labels(self.property, labels)
        checked.forecasts(self.property, forecasts)
        w = None if weights is None else checked.vector(weights, "weights", len(labels))
        if w is not None and len(w) and not 0.0 <= w.min() <= w.max() <= 1.0:
            raise InvalidInput(
                f"weights must be in [0, 1]; they go from {w.min():g} to {w.max():g}: divide them by the largest"
            )
        functions, contexts = self._contexts(x, len(labels))
        values = forecasts if self.grid is None else self.grid.round(forecasts)
        v = np.asarray(self.property.identification(values, labels), dtype=np.float64)
        return AuditedRounds(functions, values, v, contexts, w)

    def _contexts(self, x: Any, n_rounds: int) -> tuple[Functions, Rows | Float64Array]:
        """The functions and their values; the array itself where it holds the values of a finite class."""
        if isinstance(x, Rows) and self.functions is not None:
            if len(x.indptr) != n_rounds + 1:
                raise InvalidInput(f"these are {len(x.indptr) - 1} rows of contexts and must be {n_rounds}")
            check_rows(x, self.functions.n)
            return self.functions, x
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


def _checked_edges(bins: Any) -> Float64Array:
    edges = checked.vector(bins, "bins")
    if len(edges) < 2 or not (np.diff(edges) > 0).all():
        raise InvalidInput(f"bins must be a whole number, or 2 or more edges that increase; got {checked.shown(bins)}")
    return edges.copy()


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

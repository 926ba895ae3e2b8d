"""Rounds in: labels, forecasts and contexts, checked together, become identification values and sparse rows."""

from typing import Any, NamedTuple

import numpy as np

from swapcal.audit.constant import Constant, width
from swapcal.audit.functions import Functions
from swapcal.audit.reading import check_forecasts, check_labels, number, vector
from swapcal.errors import InvalidInput
from swapcal.grid import Grid
from swapcal.hypotheses import Finite
from swapcal.roles import Elicitable, Row, Rows
from swapcal.typing import Float64Array

__all__ = ["Reader", "Round", "Rounds"]


class Round(NamedTuple):
    """One round, ready to be added: the class it belongs to, the (rounded) forecast, V, and the context."""

    functions: Functions
    value: float
    v: float
    row: Row


class Rounds(NamedTuple):
    """Many rounds, ready to be added."""

    functions: Functions
    values: Float64Array
    v: Float64Array
    rows: Rows


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
        label, forecast = number("y", y), number("p", p)
        check_labels(self.property, np.array([label]))
        check_forecasts(self.property, np.array([forecast]))
        functions = self._functions(x, many=False)
        row = functions.row(x)
        value = forecast if self.grid is None else self.grid.midpoint(self.grid.bin(forecast))
        return Round(functions, value, float(self.property.identification(value, label)), row)

    def many(self, y: Any, p: Any, x: Any) -> Rounds:
        """Many rounds."""
        labels, forecasts = vector("y", y), vector("p", p)
        if len(labels) != len(forecasts):
            raise InvalidInput(
                f"y and p must have one entry per round; got {len(labels)} labels, {len(forecasts)} forecasts"
            )
        check_labels(self.property, labels)
        check_forecasts(self.property, forecasts)
        functions = self._functions(x, many=True)
        rows = functions.rows(x, len(labels))
        values = forecasts if self.grid is None else self.grid.round(forecasts)
        v = np.asarray(self.property.identification(values, labels), dtype=np.float64)
        return Rounds(functions, values, v, rows)

    def _functions(self, x: Any, *, many: bool) -> Functions:
        if self.functions is None:
            return Constant() if x is None else Finite(width(x, many=many))
        if x is None and not isinstance(self.functions, Constant):
            raise InvalidInput(
                f"this audit looks at {self.functions.n} functions of x, so x must be given in every round"
            )
        return self.functions

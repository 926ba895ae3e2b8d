"""What an audit asks of a class of functions: less than a forecaster does, so that every forecaster's class will do."""

from typing import Any, Protocol

from swapcal.roles import Row, Rows
from swapcal.typing import Float64Array, Spec

__all__ = ["Functions"]


class Functions(Protocol):
    """The part of `swapcal.roles.Hypotheses` that concerns recorded streams."""

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

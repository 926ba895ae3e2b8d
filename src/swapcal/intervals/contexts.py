"""Contexts with the level set of the hint behind the class's own functions."""

from collections.abc import Callable
from typing import Any

import numpy as np

from swapcal.roles import Hypotheses, Row
from swapcal.typing import Spec

__all__ = ["Contexts"]

_FIRST = 256
"""So many hints settle the edges."""


class Contexts:
    """Reads contexts by a class of functions and adds ten level sets of the hint, which has no range of its own.

    The edges are the deciles of the first 256 hints; until then, and without hints, no level set is active. Classes
    that are not finite stay as they are.
    """

    __slots__ = ("edges", "finite", "functions", "hints", "hypotheses", "n_bands")

    def __init__(self, hypotheses: Hypotheses, n_bands: int = 10) -> None:
        self.hypotheses, self.n_bands = hypotheses, n_bands
        extended: Callable[[int], Hypotheses] | None = getattr(hypotheses, "extended", None)
        self.finite = extended is not None
        self.functions = hypotheses if extended is None else extended(n_bands)
        self.hints: list[float] = []
        self.edges: tuple[float, ...] = ()

    def read(self, x: Any, hint: float | None, *, learn: bool = True) -> Any:
        """The context for the forecasters; with `learn`, hints and values of columns are noticed."""
        if not self.finite:
            return x
        look = self.hypotheses.row if learn else getattr(self.hypotheses, "peek", self.hypotheses.row)
        row = look(x)
        if hint is None or not self.n_bands:
            return row
        if learn and len(self.hints) < _FIRST:
            self.hints.append(hint)
            if len(self.hints) == _FIRST:
                cuts = np.quantile(self.hints, np.arange(1, self.n_bands) / self.n_bands)
                self.edges = tuple(np.unique(cuts).tolist())
        if not self.edges:
            return row
        band = self.hypotheses.n + int(np.searchsorted(self.edges, hint))
        return Row(np.append(row.indices, band), np.append(row.values, 1.0))

    def plain(self) -> Spec:
        """What was learned, and the class."""
        return {
            "hypotheses": dict(self.hypotheses.spec()),
            "n_bands": self.n_bands,
            "hints": self.hints,
            "edges": list(self.edges),
        }

    @classmethod
    def from_plain(cls, plain: Spec, hypotheses: Hypotheses) -> "Contexts":
        """What `plain` wrote down."""
        contexts = cls(hypotheses, int(plain["n_bands"]))
        contexts.hints, contexts.edges = [float(h) for h in plain["hints"]], tuple(map(float, plain["edges"]))
        return contexts

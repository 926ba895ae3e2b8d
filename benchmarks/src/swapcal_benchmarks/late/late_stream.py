"""A stream with its delay: what a model said, what came, and the first row that knows it."""

import hashlib
from dataclasses import dataclass, replace

import numpy as np

from swapcal.properties import Mean, Quantile
from swapcal.protocols import Rows
from swapcal.typing import Float64Array, IntArray

__all__ = ["EVENT", "MEAN", "QUANTILE", "REPORTED", "TUNING", "LateSource", "LateStream"]

EVENT, MEAN, QUANTILE = "event", "mean", "quantile"
TUNING, REPORTED = "tuning", "reported"


@dataclass(frozen=True, slots=True, eq=False)
class LateSource:
    """Outcomes and a model's forecasts, before anything is said of delays; row t of everything is round t.

    kind: event, mean or quantile. y: outcomes, none missing. p: the model's own forecasts, as they are. groups: sparse
    rows, with the group of everybody first. segments: one code a row, for the rival that recalibrates each of them and
    for the worst bias. days: not falling, where rows have a time; None: 200 rows are a day. real: the first row that
    knows each outcome, where it is recorded, and real_depends whether that depends on the outcome. right: the model is
    the truth. jitter: see `Forecaster`. half: tuning or reported.
    """

    name: str
    kind: str
    property: Mean | Quantile
    y: Float64Array
    p: Float64Array
    groups: Rows
    n_groups: int
    segments: IntArray
    half: str
    days: IntArray | None = None
    real: Float64Array | None = None
    real_depends: bool = False
    right: bool = False
    recorded: bool = False
    jitter: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class LateStream:
    """A source with one delay.

    known: the first row whose forecast may use each outcome, at least the next one; infinite: never, or after the last.
    depends: whether the delay depends on the outcome.

    Examples
    --------
    >>> rows = Rows(np.arange(4), np.zeros(3, dtype=np.int64), np.ones(3))
    >>> none = np.zeros(3, dtype=np.int64)
    >>> source = LateSource("coins", EVENT, Mean(), np.ones(3), np.full(3, 0.5), rows, 1, none, TUNING)
    >>> LateStream(source, "at once", np.array([1.0, 2.0, 3.0])).label
    'coins, at once'
    """

    source: LateSource
    delay: str
    known: Float64Array
    depends: bool = False

    @property
    def label(self) -> str:
        """Stream and delay."""
        return f"{self.source.name}, {self.delay}"

    @property
    def y(self) -> Float64Array:
        """Outcomes."""
        return self.source.y

    @property
    def p(self) -> Float64Array:
        """The model's forecasts."""
        return self.source.p

    @property
    def kind(self) -> str:
        """Event, mean or quantile."""
        return self.source.kind

    @property
    def level(self) -> float:
        """Of a quantile; one half for a mean."""
        asked = self.source.property
        return asked.level if isinstance(asked, Quantile) else 0.5

    @property
    def arrivals(self) -> tuple[IntArray, Float64Array]:
        """Rows whose outcome is known in time for some forecast, in order of arrival; and the first row that knows."""
        order = np.argsort(self.known, kind="stable")
        order = order[self.known[order] < len(self.y)]
        return order, self.known[order]

    def dense(self) -> Float64Array:
        """The groups as a matrix of 0 and 1."""
        groups = self.source.groups
        x = np.zeros((len(self.y), self.source.n_groups))
        x[np.repeat(np.arange(len(self.y)), np.diff(groups.indptr)), groups.indices] = groups.values
        return x

    def digest(self) -> str:
        """Of everything that a rival sees."""
        source = self.source
        found = hashlib.sha256(f"{source.kind} {source.property!r}".encode())
        for array in (source.y, source.p, self.known, *source.groups, source.segments):
            found.update(np.ascontiguousarray(array).tobytes())
        return found.hexdigest()[:16]

    def delayed(self, delay: str, known: Float64Array, *, depends: bool = False) -> "LateStream":
        """The same stream with another delay."""
        return replace(self, delay=delay, known=known, depends=depends)

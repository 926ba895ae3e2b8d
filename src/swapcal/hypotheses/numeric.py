"""The linear class over columns of numbers, standardized while the stream goes by."""

import math
from typing import Any

import numpy as np

from swapcal import potentials
from swapcal.errors import InvalidInput, StateFileError
from swapcal.hypotheses.linear import Linear, OverVectors
from swapcal.inputs import real, short_repr
from swapcal.potentials import AdaNormalHedge, Potential
from swapcal.protocols import Row, Rows
from swapcal.sparse import checked_rows
from swapcal.tables.batch import Coded, as_number, text
from swapcal.tables.vocabulary import complete, fetch
from swapcal.typing import Float64Array, Spec

# Distances from the first value are cut here, so that no sum of squares overflows.
_LARGEST = 1e140


class Numeric(OverVectors):
    """Every bounded linear function of some columns of numbers, and of the constant 1.

    A number x becomes z = (x - mean) / sd, with the mean and the standard deviation of the rows before this one, cut
    to [-cut, cut]; z is 0 while the column has not varied, and where the number is missing or infinite (so it is
    imputed by the mean). The context is (1, z_1, ..., z_d) / sqrt(1 + d cut^2), of length at most 1.

    Parameters
    ----------
    columns : sequence of str
        Names of the columns.
    cut : float
        How many standard deviations a value may lie off.
    potential : Potential
        How evidence is weighed, as for `Linear`.

    Notes
    -----
    State per column: the first value, the number of values, and the sums of their distances from the first and of the
    squares of these. The guarantee is that of `Linear`, for the contexts as they were made.

    Examples
    --------
    >>> numeric = Numeric(["age"])
    >>> for age in (30, 50, 60, None, 900):
    ...     print((numeric.row({"age": age}).values * math.sqrt(10.0)).round(3))
    [1.]
    [1.]
    [1. 2.]
    [1.]
    [1. 3.]
    """

    __slots__ = ("_counts", "_firsts", "_squares", "_sums", "_vectors", "columns", "cut")

    def __init__(self, columns: Any, *, cut: float = 3.0, potential: Potential | None = None) -> None:
        named = not isinstance(columns, str) and hasattr(columns, "__iter__")
        self.columns = tuple(columns) if named else ()
        if not self.columns or not all(isinstance(name, str) and name for name in self.columns):
            raise InvalidInput(f"Numeric needs a list of column names, ['age', 'income']; got {short_repr(columns)}")
        if len(set(self.columns)) < len(self.columns):
            raise InvalidInput(f"Numeric needs each column once; got {list(self.columns)!r}")
        self.cut = real(cut, "cut")
        if self.cut <= 0.0:
            raise InvalidInput(f"cut must be a positive number of standard deviations; got {cut!r}")
        d = len(self.columns)
        self._vectors: Linear = Linear(1 + d, potential=AdaNormalHedge() if potential is None else potential)
        self._firsts, self._counts, self._sums, self._squares = (np.zeros(d) for _ in range(4))

    def __repr__(self) -> str:
        return f"Numeric({list(self.columns)!r}{'' if self.cut == 3.0 else f', cut={self.cut:g}'})"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coordinates."""
        return ("all", *self.columns)

    def row(self, x: Any) -> Row:
        """One case, a mapping from column to number; afterward its numbers count for the mean and the deviation."""
        if isinstance(x, Row):
            return self._vectors.row(x)
        values = self._pass(self._numbers(x))[0]
        indices = np.flatnonzero(values)
        return Row(indices, values[indices])

    def peek(self, x: Any) -> Row:
        """What `row` would give, without learning anything."""
        before = self.snapshot()
        row = self.row(x)
        self.restore(before)
        return row

    def rows(self, X: Any, n_rows: int) -> Rows:
        """Many cases: a mapping from column to array, a frame, a batch of records, a list of mappings, or `Rows`."""
        if isinstance(X, Rows):
            return checked_rows(X, self.n, n_rows)
        parse = getattr(X, "numbers", None)
        if callable(parse):
            read = {name: parse(name) for name in self.columns}
        else:
            columns, _ = fetch(X, self.columns, n_rows)
            read = {name: _floats(name, column) for name, column in columns.items()}
        numbers = np.empty((n_rows, len(self.columns)))
        for j, name in enumerate(self.columns):
            numbers[:, j] = read[name]
        values = self._pass(numbers)
        nonzero = values != 0.0
        indptr = np.concatenate([[0], np.cumsum(nonzero.sum(axis=1))]).astype(np.int64)
        return Rows(indptr, np.nonzero(nonzero)[1].astype(np.int64), values[nonzero])

    def _numbers(self, x: Any) -> Float64Array:
        case = complete(x, self.columns)
        return np.array([[_number(name, case[name]) for name in self.columns]])

    def _pass(self, numbers: Float64Array) -> Float64Array:
        """Contexts of shape (rows, n), dense; the sums move on to behind the last row.

        Running sums by cumsum, which adds from the first row to the last: the same bits however rows are batched.
        """
        n_rows = len(numbers)
        numbers = numbers + 0.0  # minus zero is zero; readers of columns do not agree on it
        contexts = np.ones((n_rows, self.n))
        for j in range(len(self.columns)):
            there = np.isfinite(numbers[:, j])
            if self._counts[j] == 0.0 and there.any():
                self._firsts[j] = numbers[np.argmax(there), j]
            with np.errstate(over="ignore"):
                distance = np.where(there, numbers[:, j], self._firsts[j]) - self._firsts[j]
            distance = np.clip(distance, -_LARGEST, _LARGEST)
            counts = np.cumsum(np.concatenate([self._counts[j : j + 1], there]))
            sums = np.cumsum(np.concatenate([self._sums[j : j + 1], distance]))
            squares = np.cumsum(np.concatenate([self._squares[j : j + 1], distance * distance]))
            n = np.maximum(counts[:-1], 1.0)
            mean = sums[:-1] / n
            variance = squares[:-1] / n - mean * mean
            varied = there & (variance > 0.0)
            z = (distance - mean) / np.sqrt(np.where(varied, variance, 1.0))
            contexts[:, 1 + j] = np.where(varied, np.clip(z, -self.cut, self.cut), 0.0)
            self._counts[j], self._sums[j], self._squares[j] = counts[-1], sums[-1], squares[-1]
        return contexts / math.sqrt(1.0 + len(self.columns) * self.cut * self.cut)

    def snapshot(self) -> tuple[Float64Array, ...]:
        """What has been learned so far, for `restore`."""
        return tuple(array.copy() for array in (self._firsts, self._counts, self._sums, self._squares))

    def restore(self, snapshot: tuple[Float64Array, ...]) -> None:
        """Go back to a snapshot."""
        self._firsts, self._counts, self._sums, self._squares = (array.copy() for array in snapshot)

    def spec(self) -> Spec:
        """Plain data: the columns and the running sums."""
        sums = dict(
            zip(("firsts", "counts", "sums", "squares"), (one.tolist() for one in self.snapshot()), strict=True)
        )
        more = {"cut": self.cut, "potential": dict(self.potential.spec())}
        return {"kind": "Numeric", "n": self.n, "columns": list(self.columns), **more, "running": sums}

    def resumed(self, spec: Spec) -> "Numeric":
        """The class with these columns that knows what `spec` knows."""
        if {**self.spec(), "running": None} != {**spec, "running": None}:
            raise StateFileError(f"the class passed in, {self!r}, is not the one in the file: {spec.get('columns')}")
        return Numeric.from_spec(spec)

    @classmethod
    def from_spec(cls, spec: Spec) -> "Numeric":
        """The class that `spec` describes."""
        numeric = cls(spec["columns"], cut=spec["cut"], potential=potentials.from_spec(spec["potential"]))
        sums = tuple(
            np.array(spec["running"][name], dtype=np.float64) for name in ("firsts", "counts", "sums", "squares")
        )
        if any(one.shape != (len(numeric.columns),) or not np.isfinite(one).all() for one in sums):
            raise StateFileError("this state file is damaged: the running sums of a class do not fit its columns")
        numeric.restore(sums)
        return numeric


def _number(name: str, value: Any) -> float:
    """One number, NaN if it is missing; text that spells none is refused."""
    if text(value) is None:
        return math.nan
    read = as_number(value)
    if math.isnan(read):
        raise InvalidInput(
            f"column {name!r} must hold numbers; got {short_repr(value)}: correct it, or give None if it is missing"
        )
    return read


def _floats(name: str, column: Coded | Float64Array) -> Float64Array:
    if not isinstance(column, Coded):
        return column
    return np.array([*(_number(name, value) for value in column.values), math.nan])[column.codes]

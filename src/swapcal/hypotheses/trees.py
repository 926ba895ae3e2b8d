"""Boxes of the columns of a table: what the leaves of small trees are made of."""

import math
import warnings
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np

from swapcal import potentials
from swapcal.errors import GroupsWarning, InvalidInput, StateFileError
from swapcal.hypotheses.finite import Finite
from swapcal.hypotheses.linear import OverVectors
from swapcal.inputs import column_names, integer, short_repr
from swapcal.potentials import AdaNormalHedge, Potential
from swapcal.protocols import Row, Rows
from swapcal.sparse import checked_rows
from swapcal.tables.batch import Coded, as_number, entries, taken, text
from swapcal.tables.grouping import Cuts, band_of, column_cuts, value_label
from swapcal.tables.vocabulary import KeyedColumn, complete, fetch, floats_of, frequent, quantities, texts_of
from swapcal.typing import Float64Array, IntArray, Spec


class Trees(OverVectors):
    """A finite class of boxes: who is in which bin of one column, of two, up to `depth` columns at once.

    A column of numbers is cut into `bins` bins that hold about as many rows each; a box of two columns takes half as
    many bins of each, one of three a quarter. A value that has more than its share of the rows is a bin by itself, and
    what is left is cut by its own quantiles. Other columns have a bin for each value. Missing values (None, NaN, no
    entry) have a bin, and so have all values that were not among the first rows. Position 0 is "all", for all rows.

    Parameters
    ----------
    columns : sequence of str
        Names of the columns.
    depth : int
        How many columns a box may have.
    bins : int
        Number of bins of a column of numbers.
    categories : sequence of str
        Columns whose numbers are names, such as hours or stores. A column with 31 different numbers or fewer is one.
    first : int
        So many rows decide where bins end; they are in "all" alone. `fit` decides before the first row.
    limit : int
        Number of positions besides "all"; where the boxes are more, rare values share the bin "other".
    potential : Potential
        How evidence is weighed, as for `Finite`.

    Notes
    -----
    Bins never move: what is promised is promised of these boxes. For thresholds in between, the sums below one differ
    from those below the next edge by no more than the spread of one bin. A function that is constant in each leaf of a
    tree of this depth, cut at these edges, is a sum of boxes with coefficients in [-1, 1]. Memory: that of
    `Finite(1 + limit)`, and the first rows until bins are known.

    Examples
    --------
    >>> trees = Trees(["age", "sex"], bins=4)
    >>> trees.fit({"age": range(20, 60), "sex": ["f", "m"] * 20})
    >>> row = trees.row({"age": 43, "sex": "f"})
    >>> [trees.names[j] for j in row.indices]
    ['all', 'age in [39, 49)', 'sex=f', 'age >= 39 & sex=f']
    """

    __slots__ = (
        "_bins",
        "_boxes",
        "_first",
        "_vectors",
        "bins",
        "categories",
        "columns",
        "depth",
        "first",
        "limit",
    )

    _vectors: Finite

    def __init__(
        self,
        columns: Sequence[str],
        depth: int = 2,
        bins: int = 8,
        *,
        categories: Sequence[str] = (),
        first: int = 1000,
        limit: int = 4000,
        potential: Potential | None = None,
    ) -> None:
        self.columns = column_names(columns, "columns")
        if not self.columns or len(set(self.columns)) < len(self.columns):
            raise InvalidInput(f"Trees needs a list of column names, each once; got {short_repr(columns)}")
        self.categories = column_names(categories, "categories")
        strange = [name for name in self.categories if name not in self.columns]
        if strange:
            raise InvalidInput(f"categories must be columns of the boxes; {strange[0]!r} is none of them")
        self.depth = min(integer(depth, "depth", 1), len(self.columns))
        self.bins, self.first = integer(bins, "bins", 2), integer(first, "first", 1)
        self.limit = integer(limit, "limit", 1)
        largest = [[n + 1] * len(self.columns) for n in self._widths()]
        needed = sum(math.prod(one) for one in _subsets(largest))
        if needed > self.limit:
            raise InvalidInput(f"boxes of {len(self.columns)} columns may need limit={needed} or more; got {limit}")
        self._vectors = Finite(1 + self.limit, potential=AdaNormalHedge() if potential is None else potential)
        # The cells of the first rows, by column, until the bins are known.
        self._first: list[list[str | None]] = [[] for _ in self.columns]
        self._bins: dict[str, _Column] = {}
        self._boxes: _Boxes | None = None

    def __repr__(self) -> str:
        known = "no boxes yet" if self._boxes is None else f"{len(self.names)} boxes"
        return f"Trees({list(self.columns)!r}, depth={self.depth}, bins={self.bins}): {known}"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the positions in use: `names[j]` belongs to position j."""
        return ("all",) if self._boxes is None else self._boxes.names

    @property
    def edges(self) -> dict[str, tuple[float, ...]]:
        """The inner edges of the bins of single columns of numbers, by column."""
        return {name: one.cuts[0].edges for name, one in self._bins.items() if one.cuts}

    def fit(self, X: Any) -> None:
        """Find the bins in a first part of the stream, before the first row.

        Parameters
        ----------
        X : mapping, frame, Batch or list of mappings
            The first rows.
        """
        if self._boxes is not None or self._first[0]:
            raise InvalidInput("fit comes before the first row: these boxes have seen rows, and bins never move")
        self._settle(fetch(X, self.columns)[0])

    def _settle(self, columns: Mapping[str, Coded | Float64Array]) -> None:
        cut: dict[str, tuple[Cuts, ...]] = {}
        found: dict[str, list[str]] = {}
        for name, column in columns.items():
            values = None if name in self.categories else quantities(column)
            if values is not None:
                cut[name] = tuple(column_cuts(values, n) for n in self._widths())
            else:
                codes, texts = texts_of(column, None)
                found[name] = [
                    str(one.token[0]) for one in frequent([KeyedColumn(codes, [(one,) for one in texts])], 1)
                ]
        longest = most = max(map(len, found.values()), default=0)
        while True:
            bins = {name: _Column(cut.get(name, ()), tuple(found.get(name, ())[:most])) for name in self.columns}
            if self._needed(bins) <= self.limit:
                break
            most -= 1
        self._take(bins)
        if most < longest:
            crowded = next(name for name, values in found.items() if len(values) > most)
            warnings.warn(
                f"{crowded!r} has more values than there is room for in {self.limit} boxes; the others share "
                f"'{crowded}=other': raise limit, or leave out a column of many values",
                GroupsWarning,
                stacklevel=4,
            )

    def _widths(self) -> list[int]:
        """Bins of a column of numbers in boxes of 1, 2, ... columns."""
        return [max(self.bins >> k, 2) for k in range(self.depth)]

    def _needed(self, bins: "dict[str, _Column]") -> int:
        return sum(math.prod(one) for one in _subsets([[c.size(k) for c in bins.values()] for k in range(self.depth)]))

    def _take(self, bins: "dict[str, _Column]") -> None:
        self._bins, self._boxes = bins, _Boxes.of(bins, self.depth)
        self._first = [[] for _ in self.columns]

    def row(self, x: Any) -> Row:
        """One case, a mapping from column to value, or a row of a frame; the first ones are remembered for the bins."""
        row = self.peek(x)
        if self._boxes is None and not isinstance(x, Row):
            self._remember({name: [value] for name, value in self._case(x).items()}, 1)
        return row

    def peek(self, x: Any) -> Row:
        """What `row` would give, without learning anything."""
        if isinstance(x, Row):
            return self._vectors.row(x)
        case = self._case(x)
        if self._boxes is None:
            return Row(np.zeros(1, dtype=np.int64), np.ones(1))
        codes = [code for name, one in self._bins.items() for code in one.code(case[name], self.depth)]
        indices = self._boxes.positions(np.array([codes], dtype=np.int64))[0]
        return Row(indices, np.ones(len(indices)))

    def _case(self, x: Any) -> dict[str, Any]:
        case = complete(x, self.columns)
        return {name: case[name] for name in self.columns}

    def rows(self, X: Any, n_rows: int) -> Rows:
        """Many cases: a mapping from column to array, a frame, a batch of records, a list of mappings, or `Rows`.

        The same rows, and the same bins found, as `row` for each.
        """
        if isinstance(X, Rows):
            return checked_rows(X, self.n, n_rows)
        columns, _ = fetch(X, self.columns, n_rows)
        begin = 0
        if self._boxes is None:
            begin = min(n_rows, self.first - len(self._first[0]))
            self._remember({name: entries(taken(one, np.arange(begin))) for name, one in columns.items()}, begin)
        if self._boxes is None or begin == n_rows:
            return Rows(np.arange(n_rows + 1), np.zeros(n_rows, dtype=np.int64), np.ones(n_rows))
        later = {name: taken(one, np.arange(begin, n_rows)) if begin else one for name, one in columns.items()}
        codes = [code for name, one in later.items() for code in self._bins[name].codes(one, self.depth)]
        positions = self._boxes.positions(np.stack(codes, axis=1))
        width = positions.shape[1]
        starts = np.concatenate([np.arange(begin), begin + width * np.arange(n_rows - begin + 1)])
        indices = np.concatenate([np.zeros(begin, dtype=np.int64), positions.ravel()])
        return Rows(starts, indices, np.ones(len(indices)))

    def _remember(self, columns: Mapping[str, list[Any]], n_rows: int) -> None:
        for kept, values in zip(self._first, columns.values(), strict=True):
            kept += map(text, values)
        if len(self._first[0]) == self.first and n_rows:
            self._settle(fetch(dict(zip(self.columns, self._first, strict=True)), self.columns)[0])

    def complexity(self, n_rounds: float) -> float:
        """That of a finite class with so many functions as there are boxes, or as there is room for before `fit`."""
        return (
            self._vectors.complexity(n_rounds) if self._boxes is None else Finite(len(self.names)).complexity(n_rounds)
        )

    def snapshot(self) -> "tuple[list[list[str | None]], dict[str, _Column], _Boxes | None]":
        """What has been learned so far, for `restore`."""
        return [list(one) for one in self._first], self._bins, self._boxes

    def restore(self, snapshot: "tuple[list[list[str | None]], dict[str, _Column], _Boxes | None]") -> None:
        """Go back to a snapshot."""
        first, self._bins, self._boxes = snapshot
        self._first = [list(one) for one in first]

    def spec(self) -> Spec:
        """Plain data: the columns and the bins, or the first rows as long as there are none."""
        bins = {
            name: {"cuts": [[[*cut.edges], [*cut.atoms]] for cut in one.cuts], "values": [*one.values]}
            for name, one in self._bins.items()
        }
        return {
            "kind": "Trees",
            "n": self.n,
            **self._settings(),
            "potential": dict(self._vectors.potential.spec()),
            "learned": {"bins": bins, "first": [list(one) for one in self._first]},
        }

    def _settings(self) -> dict[str, Any]:
        plain = {name: getattr(self, name) for name in ("depth", "bins", "first", "limit")}
        return {"columns": list(self.columns), "categories": list(self.categories), **plain}

    def resumed(self, spec: Spec) -> "Trees":
        """The class with these columns that knows what `spec` knows."""
        if {**self.spec(), "learned": None} != {**spec, "learned": None}:
            raise StateFileError(f"the class passed in, {self!r}, is not the one in the file: {spec.get('columns')}")
        return Trees.from_spec(spec)

    @classmethod
    def from_spec(cls, spec: Spec) -> "Trees":
        """The class that `spec` describes."""
        names = ("columns", "categories", "depth", "bins", "first", "limit")
        trees = cls(**{name: spec[name] for name in names}, potential=potentials.from_spec(spec["potential"]))
        bins, first = spec["learned"]["bins"], [list(one) for one in spec["learned"]["first"]]
        sound = len(first) == len(trees.columns) and len({*map(len, first)}) == 1 and len(first[0]) < trees.first
        sound = sound and all(cell is None or isinstance(cell, str) for one in first for cell in one)
        trees._first = first
        if bins:
            read = {name: _column(one) for name, one in bins.items()}
            sound = sound and tuple(read) == trees.columns and not first[0]
            sound = (
                sound and all(one.sound(trees.depth) for one in read.values()) and trees._needed(read) <= trees.limit
            )
            if sound:
                trees._take(read)
        if not sound:
            raise StateFileError("this state file is damaged: the bins of its boxes contradict each other")
        return trees


def _column(spec: Any) -> "_Column":
    return _Column(tuple(Cuts(*(tuple(map(float, part)) for part in cut)) for cut in spec["cuts"]), (*spec["values"],))


def _subsets(sizes: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """The sizes of the columns of every set of k + 1 columns, by `sizes[k]`."""
    return [chosen for k, row in enumerate(sizes) for chosen in combinations(row, k + 1)]


@dataclass(frozen=True, slots=True)
class _Column:
    """The bins of a column: cuts for boxes of 1, 2, ... columns if it holds numbers, else its values."""

    cuts: tuple[Cuts, ...]
    values: tuple[str, ...]

    def size(self, k: int) -> int:
        """Number of its bins in boxes of k + 1 columns; the last is of missing values."""
        return (len(self.cuts[k].edges) if self.cuts else len(self.values)) + 2

    def codes(self, column: Coded | Float64Array, depth: int) -> list[IntArray]:
        """The bin of each value, for boxes of 1, 2, ... columns."""
        if self.cuts:
            numbers = floats_of(column)
            bands = [band_of(numbers, cut.edges) for cut in self.cuts]
            return [np.where(band < 0, len(cut.edges) + 1, band) for band, cut in zip(bands, self.cuts, strict=True)]
        places = {value: code for code, value in enumerate(self.values)}
        codes, texts = texts_of(column, None)
        n = len(places)
        return depth * [np.array([*(places.get(one, n) for one in texts), n + 1], dtype=np.int64)[codes]]

    def code(self, value: Any, depth: int) -> list[int]:
        """The bins of one value."""
        if not self.cuts:
            written = text(value)
            n = len(self.values)
            return depth * [n + 1 if written is None else self.values.index(written) if written in self.values else n]
        read = as_number(value)
        return [len(cut.edges) + 1 if read != read else bisect_right(cut.edges, read) for cut in self.cuts]

    def labels(self, name: str, k: int) -> list[str]:
        """What the bins are called in boxes of k + 1 columns."""
        known = [f"{name} {label}" for label in self.cuts[k].labels()] if self.cuts else []
        known += [value_label(name, value) for value in self.values]
        return [*known, *([] if self.cuts else [f"{name}=other"]), f"{name}=missing"]

    def sound(self, depth: int) -> bool:
        """Whether `fit` can have made it."""
        cuts = not self.cuts or (len(self.cuts) == depth and not self.values and all(c.sound() for c in self.cuts))
        texts = all(isinstance(one, str) and one for one in self.values)
        return cuts and texts and len(set(self.values)) == len(self.values)


class _Boxes(NamedTuple):
    """Where the boxes stand: those of the same columns side by side, from `offset` on, by the codes of their units.

    A unit is a column in boxes of so many columns, column by column; a box of fewer columns has units of stride 0.
    """

    units: IntArray
    strides: IntArray
    offsets: IntArray
    names: tuple[str, ...]

    @classmethod
    def of(cls, bins: dict[str, _Column], depth: int) -> "_Boxes":
        """All boxes of up to `depth` columns."""
        units, strides, offsets, names = [], [], list[int](), ["all"]
        columns = list(bins.items())
        for k in range(depth):
            for chosen in combinations(range(len(columns)), k + 1):
                sizes = [columns[j][1].size(k) for j in chosen]
                padding = [0] * (depth - 1 - k)
                units.append([*(j * depth + k for j in chosen), *padding])
                strides.append([*(math.prod(sizes[i + 1 :]) for i in range(k + 1)), *padding])
                offsets.append(len(names))
                labels = [columns[j][1].labels(columns[j][0], k) for j in chosen]
                names += map(" & ".join, product(*labels))
        return cls(np.array(units), np.array(strides), np.array(offsets), tuple(names))

    def positions(self, codes: IntArray) -> IntArray:
        """Of rows with these codes, one column for each unit: "all", then one box of each set of columns."""
        positions = np.zeros((len(codes), 1 + len(self.offsets)), dtype=np.int64)
        positions[:, 1:] = self.offsets
        for units, strides in zip(self.units.T, self.strides.T, strict=True):
            positions[:, 1:] += codes[:, units] * strides
        return positions

"""Groups from the columns of a table, found while the stream goes by."""

import contextlib
import math
import warnings
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from swapcal import potentials
from swapcal.errors import GroupsWarning, InvalidInput, StateFileError
from swapcal.hypotheses.finite import Finite
from swapcal.hypotheses.linear import OverVectors
from swapcal.inputs import column_names, integer, one_of, real
from swapcal.potentials import AdaNormalHedge, Potential
from swapcal.protocols import Row, Rows
from swapcal.sparse import CaseColumns, assembled, checked_rows
from swapcal.tables.batch import Coded, as_number, text
from swapcal.tables.grouping import (
    ColumnComparison,
    Function,
    band_edges,
    definitions,
    groups_from_spec,
    listed_groups,
    value_label,
)
from swapcal.tables.vocabulary import (
    KeyedColumn,
    RowView,
    Token,
    Vocabulary,
    combined,
    complete,
    fetch,
    frequent,
    listed,
    quantities,
    texts_of,
)
from swapcal.typing import Float64Array, IntArray, Spec

_SETTINGS = ("limit", "rare", "bands", "categories", "absent")
# So many cases are remembered with their rows.
_REMEMBERED = 10_000


class _Memory(dict[tuple[Any, ...], Row]):
    """Rows of cases that came before. A copy starts without them: they only save time."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        super().__init__()
        self.cells = CaseColumns(columns)

    def __deepcopy__(self, memo: Any) -> "_Memory":
        return _Memory(self.cells.columns)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Memory, (self.cells.columns,)


class Groups(OverVectors):
    """A finite class whose functions are groups: who has which value in which column.

    Position 0 is "all", all rows. Every value of a column is a group, a column of many numbers is cut into bands, and
    a tuple of columns has one group for each combination. Values first seen late get their own group while there is
    room; rare ones share the group "<column>=other", and missing ones (None, NaN) "<column>=missing". A case that has
    no entry for a column is refused: the column may be misspelled.

    Parameters
    ----------
    groups : str or sequence
        Column names ("sex"), intersections ("sex*race" or a tuple of names), comparisons ("age >= 60",
        "city == 'Paris'"; a missing value satisfies none), or pairs (name, function of a row with values in [-1, 1]).
        One text names several: "sex,race,sex*race". A mapping from name to function stands for its pairs.
    limit : int
        Number of positions besides "all".
    rare : int
        A value gets its own group when it is seen this many times.
    bands : int
        Number of bands of a column of numbers; `fit` finds the edges.
    categories : sequence of str
        Columns whose numbers are names, such as those of stores: every value is a group, however many there are.
    absent : str
        What a case without one of the columns is: an "error", or one whose value is "missing".
    potential : Potential
        How evidence is weighed, as for `Finite`.

    Notes
    -----
    A number is the same value however it is stored: 1, 1.0 and the "1" of a CSV file are "1". Memory: O(limit), and
    while values wait to be frequent (`rare` above 1) at most 50 counts per position and column.

    Examples
    --------
    >>> groups = Groups(["sex", ("sex", "smoker"), "age >= 60"])
    >>> groups.row({"sex": "f", "smoker": True, "age": 71}).indices
    array([0, 1, 2, 3])
    >>> groups.rows({"sex": ["m", "f"], "smoker": [None, True], "age": [18, 80]}, 2).indices
    array([0, 4, 5, 0, 1, 2, 3])
    >>> groups.names
    ('all', 'age >= 60', 'sex=f', 'sex=f & smoker=True', 'sex=m', 'sex=m & smoker=missing')
    """

    __slots__ = (
        "_definitions",
        "_edges",
        "_vectors",
        "_vocabulary",
        "_warned",
        "absent",
        "bands",
        "categories",
        "columns",
        "groups",
        "limit",
        "memory",
        "rare",
    )

    def __init__(
        self,
        groups: Any,
        *,
        limit: int = 1000,
        rare: int = 1,
        bands: int = 5,
        categories: Sequence[str] = (),
        absent: str = "error",
        potential: Potential | None = None,
    ) -> None:
        self.limit, self.rare = integer(limit, "limit", 1), integer(rare, "rare", 1)
        self.absent = one_of(absent, "absent", ("error", "missing"))
        self.bands = integer(bands, "bands", 2)
        self.groups = groups if isinstance(groups, Mapping) else listed_groups(groups)
        self._definitions, self._warned = definitions(self.groups), False
        self.categories = column_names(categories, "categories")
        strange = [name for name in self.categories if name not in self._definitions.columns]
        if strange:
            raise InvalidInput(f"categories must be columns of the groups; {strange[0]!r} is none of them")
        self._edges: dict[str, tuple[float, ...]] = {}
        # Those that the groups are made from; functions of your own may read others.
        self.columns = self._definitions.columns
        # A function of somebody's own may look at anything, so nothing is known of a case by its columns.
        own = any(isinstance(one, Function) for one in self._definitions.fixed)
        self.memory: _Memory | None = None if own else _Memory(self.columns)
        self._vectors: Finite = Finite(1 + self.limit, potential=AdaNormalHedge() if potential is None else potential)
        self._vocabulary = self._empty()
        if self._vocabulary.free < 0:
            needed = self.limit - self._vocabulary.free
            raise InvalidInput(f"these groups need limit={needed} or more before any value is seen; got {self.limit}")

    def __repr__(self) -> str:
        listed = [str(key.columns[0]) if len(key.columns) == 1 else key.columns for key in self._definitions.keys]
        shown = ", ".join(map(repr, [*(one.name for one in self._definitions.fixed), *listed]))
        return f"Groups([{shown}], limit={self.limit}): {len(self.names)} groups so far"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the positions in use: `names[j]` belongs to position j."""
        return tuple(self._vocabulary.names)

    @property
    def families(self) -> list[IntArray]:
        """For each column or combination, the positions of its values: groups that have no row in common."""
        known = self._vocabulary
        places = zip(known.known, known.other, known.missing, strict=True)
        rest = [([*of.values()], [at for at in (other, missing) if at > 0]) for of, other, missing in places]
        return [np.array(sorted({*named, *others}), dtype=np.int64) for named, others in rest]

    @property
    def edges(self) -> dict[str, tuple[float, ...]]:
        """The inner edges of the bands, by column."""
        return dict(self._edges)

    def fit(self, X: Any) -> None:
        """Learn from a first part of the stream, before the first row: bands, and the values that are there.

        Columns with more than 31 distinct numbers become bands with about equally many rows, but for `categories` and
        whole numbers that look like codes: up to 300, neighbors being no more alike in how common they are than any
        two. Hours, days of a month and numbers of stores stay values; age and income are cut. Values seen `rare` times
        get their positions; where there are more than `limit`, the most frequent do.

        Parameters
        ----------
        X : mapping, frame, Batch or list of mappings
            The first rows.
        """
        if len(self.names) > 1 + len(self._definitions.fixed) or self._edges:
            raise InvalidInput("fit comes before the first row: these groups have positions already, which cannot move")
        keys = self._definitions.keys
        columns, _ = fetch(X, [column for key in keys for column in key.columns])
        for name, column in columns.items():
            values = quantities(column)
            if values is not None and name not in self.categories:
                self._edges[name] = band_edges(values, self.bands)
        candidates, free = frequent(self._keyed(columns), self.rare), self._vocabulary.free
        for one in listed(candidates[:free], keys, self._edges):
            self._vocabulary.add(one.key, one.token)
        if len(candidates) > free:
            self._vocabulary.refused = keys[candidates[free].key].title
        self._warn()

    def row(self, x: Any) -> Row:
        """One case, a mapping from column to value; learns values that it has not seen.

        Parameters
        ----------
        x : mapping
            From column to value; or a row of a pandas or polars frame.

        Returns
        -------
        Row
            Positions of the groups that the case is in, with their values.
        """
        row = self._row(x, self._vocabulary)
        self._warn()
        self._keep(x, row)
        return row

    def remembered(self, x: Any) -> Row | None:
        """The row of a case like one that was seen before, if every value of it has its position; learns nothing.

        Parameters
        ----------
        x : mapping
            From column to value; or a row of a frame.

        Returns
        -------
        Row or None
            What `row` would give; None where it must look.
        """
        if self.memory is None:
            return None
        values = self.memory.cells.of(x)
        if values is None:
            return None
        try:
            return self.memory.get((*values, *map(type, values)))
        except TypeError:  # a value that cannot be looked up
            return None

    def _keep(self, x: Any, row: Row) -> None:
        """Remember a row that no later value can change: all its positions are those of values that have one."""
        if self.memory is None or set(row.indices.tolist()) & set(self._vocabulary.other):
            return
        values = self.memory.cells.of(x)
        if values is None:
            return
        if len(self.memory) >= _REMEMBERED:
            self.memory.clear()
        with contextlib.suppress(TypeError):
            self.memory[(*values, *map(type, values))] = row

    def peek(self, x: Any) -> Row:
        """What `row` would give, without learning anything.

        Parameters
        ----------
        x : mapping
            From column to value.

        Returns
        -------
        Row
            As of `row`.
        """
        known = self.remembered(x)
        return self._row(x, self._vocabulary.copy()) if known is None else known

    def _row(self, x: Any, vocabulary: Vocabulary) -> Row:
        if isinstance(x, Row):
            return self._vectors.row(x)
        case = self.checked(x)
        fixed = [_value(one, case) for one in self._definitions.fixed]
        texts = {name: self._text(name, case.get(name)) for name in self.columns}
        placed = []
        for key, definition in enumerate(self._definitions.keys):
            token = tuple(texts[column] for column in definition.columns)
            placed.append(vocabulary.place(key, None if token == (None,) else token))
        indices = [0, *(1 + j for j, value in enumerate(fixed) if value != 0.0), *sorted(placed)]
        values = [1.0, *(value for value in fixed if value != 0.0), *(1.0 for _ in placed)]
        return Row(np.array(indices, dtype=np.int64), np.array(values))

    def checked(self, x: Any) -> Mapping[str, Any]:
        """The same case as a mapping; an `InvalidInput` where it lacks a column and may not.

        Parameters
        ----------
        x : mapping
            From column to value; or a row of a frame.

        Returns
        -------
        mapping
            From column to value.
        """
        return complete(x, self.columns if self.absent == "error" else ())

    def _text(self, name: str, value: Any) -> str | None:
        edges = self._edges.get(name)
        if edges is None:
            return text(value)
        codes, labels = texts_of(np.array([as_number(value)]), edges)
        return None if codes[0] < 0 else labels[codes[0]]

    def rows(self, X: Any, n_rows: int) -> Rows:
        """Many cases: a mapping from column to array, a frame, a batch of records, a list of mappings, or `Rows`.

        The same rows, and the same groups learned, as `row` for each.

        Parameters
        ----------
        X : mapping, frame, Batch, list of mappings or Rows
            The cases.
        n_rows : int
            How many there are.

        Returns
        -------
        Rows
            The row of each.
        """
        if isinstance(X, Rows):
            return checked_rows(X, self.n, n_rows)
        columns, length = fetch(X, self.columns, n_rows, absent=self.absent)
        fixed = [self._fixed(one, X, columns, length) for one in self._definitions.fixed]
        placed = self._vocabulary.place_many(self._keyed(columns))
        self._warn()
        return assembled(length, fixed, placed)

    def _keyed(self, columns: Mapping[str, Coded | Float64Array]) -> list[KeyedColumn]:
        needed = {column for key in self._definitions.keys for column in key.columns}
        texts = {name: texts_of(columns[name], self._edges.get(name)) for name in needed}
        return [combined([texts[column] for column in key.columns]) for key in self._definitions.keys]

    def _fixed(
        self, one: ColumnComparison | Function, X: Any, columns: Mapping[str, Coded | Float64Array], n_rows: int
    ) -> Float64Array:
        if isinstance(one, ColumnComparison):
            return one.holds_many(columns[one.column]).astype(np.float64)
        if isinstance(X, (list, tuple)):
            return np.array([_value(one, x) for x in X], dtype=np.float64)
        lists: dict[str, list[Any]] = {}
        return np.array([_value(one, RowView(X, t, lists)) for t in range(n_rows)], dtype=np.float64)

    def _name(self, key: int, token: Token) -> str:
        columns = self._definitions.keys[key].columns
        return " & ".join(self._label(column, part) for column, part in zip(columns, token, strict=True))

    def _label(self, column: str, part: str | None) -> str:
        if part is None:
            return f"{column}=missing"
        if column in self._edges:
            return f"{column} {part}"
        return value_label(column, part)

    def _warn(self) -> None:
        """Last of all, as the warning may be an error to the caller."""
        if self._vocabulary.refused is not None and not self._warned:
            self._warned = True
            refused = self._vocabulary.refused
            warnings.warn(
                f"{refused!r} has more values than there is room for in {self.limit} groups; the others share "
                f"'{refused}=other': raise limit or rare, or leave out a column of many values",
                GroupsWarning,
                stacklevel=3,
            )

    def snapshot(self) -> tuple[Vocabulary, dict[str, tuple[float, ...]]]:
        """What has been learned so far, for `restore`."""
        return self._vocabulary.copy(), dict(self._edges)

    def restore(self, snapshot: tuple[Vocabulary, dict[str, tuple[float, ...]]]) -> None:
        """Go back to a snapshot."""
        self._vocabulary, self._edges = snapshot[0].copy(), dict(snapshot[1])
        if self.memory is not None:
            self.memory.clear()

    def united(self, other: "Groups") -> tuple["Groups", IntArray]:
        """Groups of the same definitions that know the values of both; and where the other's positions are there.

        Own positions stay. Where `limit` is too small for all, it is raised. Bands must have the same edges: `fit` once
        and copy.

        Parameters
        ----------
        other : Groups
            Stays as it is.

        Returns
        -------
        tuple of Groups and array
            The new groups, and the position there of each of the other's names.
        """
        if self._edges != other._edges:
            raise InvalidInput(
                f"these groups have other bands, {other.edges} instead of {self.edges}: fit groups once, on one part, "
                "and give copies of them to all parts"
            )
        vocabulary = self._vocabulary.copy()
        positions = vocabulary.unite(other._vocabulary)
        twin = Groups(
            self.groups,
            limit=vocabulary.n - 1,
            rare=self.rare,
            bands=self.bands,
            potential=self._vectors.potential,
            categories=self.categories,
            absent=self.absent,
        )
        twin._edges, twin._warned = dict(self._edges), self._warned
        vocabulary.label = twin._name
        twin._vocabulary = vocabulary
        return twin, positions

    def spec(self) -> Spec:
        """Plain data: the definitions and all that was learned. Functions of your own are in it by name only."""
        settings = {name: getattr(self, name) for name in _SETTINGS}
        settings["categories"] = list(self.categories)
        return {
            "kind": "Groups",
            "n": self.n,
            "groups": self._definitions.spec(),
            **settings,
            "potential": dict(self._vectors.potential.spec()),
            "edges": {name: list(edges) for name, edges in self._edges.items()},
            "vocabulary": self._vocabulary.spec(),
        }

    def resumed(self, spec: Spec) -> "Groups":
        """These definitions, with what `spec` has learned; for those that hold functions of your own."""
        own = {**self.spec(), "edges": None, "vocabulary": None}
        if own != {**spec, "edges": None, "vocabulary": None}:
            raise StateFileError(f"the groups passed in, {self!r}, are not the ones in the file: {spec.get('groups')}")
        return self.taught(spec)

    def taught(self, spec: Spec) -> "Groups":
        """These definitions, which must be those of `spec`, with what that has learned; nothing learned if it has not.

        Definitions are shared with the twin, and not read again: that takes longer than all that was learned.

        Parameters
        ----------
        spec : Spec
            As `spec` gives it.

        Returns
        -------
        Groups
            A new one.
        """
        twin = self._untaught()
        if spec["vocabulary"] is not None:
            twin._learn(spec)
        return twin

    def twin(self) -> "Groups":
        """These definitions with all that they have learned; the two go on apart."""
        twin = self._untaught()
        twin._edges = dict(self._edges)
        self._vocabulary.copied_to(twin._vocabulary)
        return twin

    def _untaught(self) -> "Groups":
        twin = object.__new__(Groups)
        for name in ("columns", "_definitions", "_vectors", *_SETTINGS, "groups"):
            setattr(twin, name, getattr(self, name))
        twin._edges, twin._warned = {}, False
        twin.memory = None if self.memory is None else _Memory(self.columns)
        twin._vocabulary = twin._empty()
        return twin

    def settled_rows(self, X: Any, n_rows: int) -> tuple[Rows, npt.NDArray[np.bool_]]:
        """What `rows` would give with nothing learned; and for which rows whatever they hold has its position.

        Such rows are those of every twin, whatever that has learned since.

        Parameters
        ----------
        X : mapping, frame, Batch, list of mappings or Rows
            The cases.
        n_rows : int
            How many there are.

        Returns
        -------
        Rows, array of bool
            The row of each, and which of them may be used.
        """
        other = self.twin()
        other._warned = True
        rows, others = other.rows(X, n_rows), [at for at in self._vocabulary.other if at > 0]
        new = (rows.indices >= len(self.names)) | np.isin(rows.indices, others)
        settled = np.ones(n_rows, dtype=np.bool_)
        settled[rows.numbers[new]] = False
        return rows, settled

    def _empty(self) -> Vocabulary:
        names = ["all", *(one.name for one in self._definitions.fixed)]
        return Vocabulary(names, self.n, self.rare, self._definitions.keys, self._name)

    def _learn(self, spec: Spec) -> None:
        edges = {str(name): tuple(map(float, values)) for name, values in spec["edges"].items()}
        for name, cuts in edges.items():
            rising = all(low < high for low, high in pairwise(cuts)) and all(map(math.isfinite, cuts))
            if name not in self.columns or not cuts or not rising:
                raise StateFileError(f"this state file is damaged: {list(cuts)!r} are no edges of bands of {name!r}")
        self._edges = edges
        self._vocabulary.restore(spec["vocabulary"])

    @classmethod
    def from_spec(cls, spec: Spec) -> "Groups":
        """The groups that `spec` describes; not possible with functions of your own, see `resumed`."""
        settings = {name: spec[name] for name in _SETTINGS}
        groups = cls(groups_from_spec(spec["groups"]), potential=potentials.from_spec(spec["potential"]), **settings)
        if spec["vocabulary"] is not None:
            groups._learn(spec)
        return groups


def _value(one: ColumnComparison | Function, x: Mapping[str, Any]) -> float:
    """A comparison's or a user's function's value for one row."""
    if isinstance(one, ColumnComparison):
        return float(one.holds(x.get(one.column)))
    value = real(one.call(x), f"the value of the group {one.name!r}")
    if not -1.0 <= value <= 1.0:
        raise InvalidInput(f"the group {one.name!r} gave {value:g}; a function of a row must stay in [-1, 1]")
    return value


def for_whom(given: Any) -> Any:
    """The class of functions that is meant: groups, where they are given as a text, a list or a mapping.

    Examples
    --------
    >>> for_whom("carrier,carrier*origin"), for_whom(Finite(3))
    (Groups(['carrier', ('carrier', 'origin')], limit=1000): 1 groups so far, Finite(3))
    """
    return Groups(given) if isinstance(given, (str, list, tuple, Mapping)) else given

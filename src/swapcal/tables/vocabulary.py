"""Which value of which key has which position: handed out in the order of the stream, never taken back."""

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from swapcal.errors import InvalidInput, StateFileError
from swapcal.inputs import short_repr
from swapcal.sparse import as_case
from swapcal.tables.batch import Coded, as_number, by_value, coded, entries, spelled, text
from swapcal.tables.grouping import Key, band_labels, band_of
from swapcal.tables.sources import nearest
from swapcal.typing import Float64Array, IntArray

# The texts of a key's columns; None where one is missing.
Token = tuple[str | None, ...]

_OTHER, _MISSING = -2, -1
# Values of a key that are counted before they are frequent enough, per position: what lies beyond is never frequent,
# and a column of identifiers must not fill the memory.
_CANDIDATES = 50


class KeyedColumn(NamedTuple):
    """A key's column: row t has `tokens[codes[t]]`, and code -1 is missing. Tokens are distinct; some may not occur."""

    codes: IntArray
    tokens: Sequence[Token]


@dataclass(slots=True, eq=False)
class Vocabulary:
    """Positions of values, shared by all keys.

    A value gets the next position when it is seen for the `rare`-th time, while there are free ones; before that, and
    for good if there are none left, it is its key's "other". Room for every key's "other" and "missing" is reserved
    from the start, so that they are always there when they are needed.
    """

    names: list[str]
    n: int
    rare: int
    keys: Sequence[Key]
    label: Callable[[int, Token], str]
    known: list[dict[Token, int]] = field(init=False)
    counts: list[dict[Token, int]] = field(init=False)
    other: list[int] = field(init=False)
    missing: list[int] = field(init=False)
    # Title of the first key that had a value and no position for it.
    refused: str | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.known, self.counts = [{} for _ in self.keys], [{} for _ in self.keys]
        # An intersection has no "missing" of its own: a missing part is a value like others. 0 says that none is due.
        self.other, self.missing = [-1 for _ in self.keys], [-1 if len(key.columns) == 1 else 0 for key in self.keys]

    @property
    def free(self) -> int:
        """How many positions new values may still take."""
        return self.n - len(self.names) - self.other.count(-1) - self.missing.count(-1)

    def add(self, key: int, token: Token) -> int:
        """The next position, for a value; there must be a free one."""
        position = self.known[key][token] = len(self.names)
        self.names.append(self.label(key, token))
        self.counts[key].pop(token, None)
        if not self.free:
            self.counts = [{} for _ in self.keys]
        return position

    def place(self, key: int, token: Token | None) -> int:
        """The position of one value of a key, None if it is missing; learns it."""
        if token is None:
            return self._missing(key)
        position = self.known[key].get(token)
        if position is not None:
            return position
        if self.free > 0:
            counts = self.counts[key]
            count = counts.get(token, 0) + 1
            if count >= self.rare:
                return self.add(key, token)
            if token in counts or self._room(key) > 0:
                counts[token] = count
        elif self.refused is None:
            self.refused = self.keys[key].title
        return self._other(key)

    def place_many(self, columns: Sequence[KeyedColumn]) -> list[IntArray]:
        """Positions of many rows, key by key; what `place` gives row by row, and learns what it learns.

        Positions are handed out in the order of rows and, within a row, of keys; only the rows at which something gets
        one are looked at one by one.
        """
        tables = [self._table(key, column) for key, column in enumerate(columns)]
        starts: list[dict[int, int]] = [{} for _ in columns]
        events: list[tuple[int, int, int]] = []
        pending: list[list[tuple[Token, int]]] = []
        for key, (column, table) in enumerate(zip(columns, tables, strict=True)):
            new_tokens, waiting = self._events(key, column, table)
            events += new_tokens
            pending.append(waiting)
        for row, key, what in sorted(events):
            if what == _MISSING:
                tables[key][-1] = self._missing(key)
            elif what == _OTHER:
                self._other(key)
            elif self.free > 0:
                tables[key][what] = self.add(key, columns[key].tokens[what])
                starts[key][what] = row
            else:
                self.refused = self.refused or self.keys[key].title
                self._other(key)
        if self.free > 0:
            for key, waiting in enumerate(pending):
                for token, count in waiting:
                    self.counts[key][token] = self.counts[key].get(token, 0) + count
        return [self._placed(key, *parts) for key, parts in enumerate(zip(columns, tables, starts, strict=True))]

    def _table(self, key: int, column: KeyedColumn) -> IntArray:
        """Position of each token, -1 where it has none; the last entry is that of a missing value, whose code is -1."""
        get = self.known[key].get
        return np.array([*(get(token, -1) for token in column.tokens), self.missing[key]], dtype=np.int64)

    def _events(
        self, key: int, column: KeyedColumn, table: IntArray
    ) -> tuple[list[tuple[int, int, int]], list[tuple[Token, int]]]:
        """(row, key, what) wherever a position may be needed, and the counts of values that stay too rare for one."""
        events: list[tuple[int, int, int]] = []
        waiting: list[tuple[Token, int]] = []
        if (table >= 0).all():
            return events, waiting
        if table[-1] < 0:
            gone = np.flatnonzero(column.codes < 0)
            events += [(int(gone[0]), key, _MISSING)] if gone.size else []
        unknown = table < 0
        unknown[-1] = False
        rows = np.flatnonzero(unknown[column.codes])
        if not rows.size:
            return events, waiting
        if self.free <= 0:
            self.refused = self.refused or self.keys[key].title
            return [*events, (int(rows[0]), key, _OTHER)], waiting
        order = np.argsort(column.codes[rows], kind="stable")
        rows, codes = rows[order], column.codes[rows[order]]
        begin = np.flatnonzero(np.diff(codes, prepend=-1))
        entries = sorted(
            zip(rows[begin].tolist(), begin.tolist(), np.diff(begin, append=len(rows)).tolist(), strict=True)
        )
        room, counts = self._room(key), self.counts[key]
        for first, at, count in entries:
            token = column.tokens[codes[at]]
            if self.rare > 1 and token not in counts:
                room -= 1
                if room < 0:
                    events.append((first, key, _OTHER))
                    continue
            need = self.rare - counts.get(token, 0)
            if count >= need:
                events.append((int(rows[at + need - 1]), key, int(codes[at])))
            else:
                waiting.append((token, count))
            if need > 1:
                events.append((first, key, _OTHER))
        return events, waiting

    def _placed(self, key: int, column: KeyedColumn, table: IntArray, starts: dict[int, int]) -> IntArray:
        """The positions of a column's rows; a value that got its position in these rows had none before."""
        positions = np.where(table < 0, self.other[key], table)[column.codes]
        if self.rare > 1 and starts:
            since = np.zeros(len(table), dtype=np.int64)
            since[list(starts)] = list(starts.values())
            positions[np.arange(len(positions)) < since[column.codes]] = self.other[key]
        return positions

    def _room(self, key: int) -> int:
        """How many further values of a key may be counted."""
        return _CANDIDATES * self.n - len(self.known[key]) - len(self.counts[key])

    def _other(self, key: int) -> int:
        if self.other[key] < 0:
            self.other[key] = len(self.names)
            self.names.append(f"{self.keys[key].title}=other")
        return self.other[key]

    def _missing(self, key: int) -> int:
        if self.missing[key] < 0:
            self.missing[key] = len(self.names)
            self.names.append(f"{self.keys[key].title}=missing")
        return self.missing[key]

    def copy(self) -> "Vocabulary":
        """An independent copy."""
        twin = Vocabulary([], self.n, self.rare, self.keys, self.label)
        self.copied_to(twin)
        twin.refused = self.refused
        return twin

    def copied_to(self, twin: "Vocabulary") -> None:
        """Hand everything that was learned to one of the same keys."""
        twin.names, twin.other, twin.missing = list(self.names), list(self.other), list(self.missing)
        twin.known, twin.counts = [dict(one) for one in self.known], [dict(one) for one in self.counts]

    def unite(self, other: "Vocabulary") -> IntArray:
        """Take in the values that another one of the same keys has found; where each of its positions is here.

        Its own positions stay; room is made for all. Values that were too rare in both stay so until they are seen.
        """
        owners = [(at, key, token) for key, one in enumerate(other.known) for token, at in one.items()]
        self.n += max(0, sum(token not in self.known[key] for _, key, token in owners) - self.free)
        positions = np.arange(len(other.names), dtype=np.int64)
        entries: list[tuple[int, int, Token | str]] = list(owners)
        entries += [(at, key, "other") for key, at in enumerate(other.other) if at > 0]
        entries += [(at, key, "missing") for key, at in enumerate(other.missing) if at > 0]
        for at, key, what in sorted(entries, key=lambda one: one[0]):
            if isinstance(what, str):
                positions[at] = self._other(key) if what == "other" else self._missing(key)
            else:
                positions[at] = self.known[key][what] if what in self.known[key] else self.add(key, what)
        for mine, theirs, known in zip(self.counts, other.counts, self.known, strict=True):
            for token, count in theirs.items():
                if token not in known and self.free > 0:
                    mine[token] = min(mine.get(token, 0) + count, self.rare - 1)
        self.refused = self.refused or other.refused
        return positions

    def spec(self) -> dict[str, Any]:
        """Plain data."""
        listed = [[[[*token], at] for token, at in one.items()] for one in self.known]
        counted = [[[[*token], count] for token, count in one.items()] for one in self.counts]
        specials = {"other": list(self.other), "missing": list(self.missing)}
        return {"names": list(self.names), "known": listed, "counts": counted, **specials}

    def restore(self, spec: Any) -> None:
        """Take over what `spec` wrote, if that is what a vocabulary of these keys can have learned."""
        names, other, missing = list(spec["names"]), list(spec["other"]), list(spec["missing"])
        known = [{tuple(token): at for token, at in one} for one in spec["known"]]
        counts = [{tuple(token): count for token, count in one} for one in spec["counts"]]
        lengths = {len(part) for part in (other, missing, known, counts)}
        if lengths != {len(self.keys)} or not self._sound(names, other, missing, known, counts):
            raise StateFileError("this state file is damaged: the positions of its groups contradict each other")
        self.names, self.other, self.missing, self.known, self.counts = names, other, missing, known, counts

    def _sound(self, names: list[Any], other: list[Any], missing: list[Any], known: Any, counts: Any) -> bool:
        """Whether every position has one owner, and the name of that."""
        owners: dict[int, str] = {}
        claims = 0
        for key, definition in enumerate(self.keys):
            single = len(definition.columns) == 1
            for token, count in counts[key].items():
                if not _is_token(token, definition) or type(count) is not int or not 0 < count < self.rare:
                    return False
            for token, at in known[key].items():
                if type(at) is not int or not _is_token(token, definition):
                    return False
                owners[at], claims = self.label(key, token), claims + 1
            for at, what in ((other[key], "other"), (missing[key], "missing")):
                if type(at) is not int or (what == "missing" and not single and at != 0):
                    return False
                if at != -1 and (what == "other" or single):
                    owners[at], claims = f"{definition.title}={what}", claims + 1
        first = len(self.names)
        free = self.n - len(names) - other.count(-1) - missing.count(-1)
        everywhere = claims == len(owners) and sorted(owners) == list(range(first, len(names)))
        return everywhere and free >= 0 and names == [*self.names, *(owners[at] for at in sorted(owners))]


def _is_token(token: Token, key: Key) -> bool:
    """Whether it may be a value of the key: texts, and None for a part of several that is missing."""
    texts = all(part is None or (type(part) is str and part != "") for part in token)
    return texts and len(token) == len(key.columns) and token != (None,)


# --------
# Columns of a table by name, whatever holds them, and the codes of their values and of combinations of them.

# Up to so many possible combinations, the ones that occur are marked in a table; beyond, they are sorted.
_DENSE = 1 << 20


def complete(x: Any, columns: Sequence[str]) -> Mapping[str, Any]:
    """A case as a mapping; an `InvalidInput` where it is none, or has no entry for one of the columns."""
    case = x if type(x) is dict else as_case(x)
    if case is None:
        raise InvalidInput(f"a case is a mapping from column to value, {{'sex': 'f'}}; got {short_repr(x)}")
    for name in columns:
        if name not in case:
            others = [one for one in map(str, case) if one not in columns]
            near = difflib.get_close_matches(name, others, 1, cutoff=0.5)
            listed = ", ".join(map(short_repr, others[:12]))
            there = f" but {near[0]!r}; did you mean {name!r}?" if near else f"{listed and ' but '}{listed}."
            raise InvalidInput(f"the case has no column {name!r}{there} Give None (null) where a value is missing")
    return case


def fetch(
    X: Any, names: Sequence[str], n_rows: int | None = None, *, absent: str = "error"
) -> tuple[dict[str, Coded | Float64Array], int]:
    """The named columns of `X` (a mapping, a frame, a batch of records, or a list of mappings), and their length."""
    if isinstance(X, (list, tuple)) and all(isinstance(one, Mapping) for one in X):
        for one in X if absent == "error" else ():
            complete(one, names)
        columns = {name: coded([one.get(name) for one in X], name) for name in names}
        return columns, _length(columns, len(X), n_rows)
    columns = {}
    for name in names:
        try:
            columns[name] = coded(X[name], name)
        except (KeyError, IndexError, TypeError) as error:
            raise InvalidInput(_no_column(X, name)) from error
    return columns, _length(columns, n_rows, n_rows)


def _length(columns: Mapping[str, Coded | Float64Array], known: int | None, wanted: int | None) -> int:
    lengths = {name: len(one.codes) if isinstance(one, Coded) else len(one) for name, one in columns.items()}
    expected = known if wanted is None else wanted
    if expected is None:
        expected = next(iter(lengths.values()), 0)
    for name, length in [*lengths.items(), *([("the records", known)] if known is not None else [])]:
        if length != expected:
            raise InvalidInput(f"column {name!r} has {length} rows and must have {expected}, as many as the others")
    return expected


def _no_column(X: Any, name: str) -> str:
    for member in ("column_names", "columns", "keys"):
        there = getattr(X, member, None)
        there = there() if member == "keys" and callable(there) else there
        if there is not None and not callable(there):
            return f"there is no column {name!r}; {nearest(name, [str(one) for one in there])}"
    return f"groups are made from a table with a column {name!r}; got {type(X).__name__}"


def texts_of(column: Coded | Float64Array, edges: tuple[float, ...] | None) -> tuple[IntArray, list[str]]:
    """Codes and the distinct texts behind them; with edges these are bands, and what is no number is missing."""
    if edges is not None:
        return band_of(floats_of(column), edges), list(band_labels(edges))
    column = by_value(column)
    texts = [text(value) for value in column.values]
    places: dict[str | None, int] = {None: -1}
    table = [places.setdefault(one, len(places) - 1) for one in texts]
    if len(places) == len(table) + 1:
        return column.codes, texts  # type: ignore[return-value]
    return np.array([*table, -1])[column.codes], [one for one in places if one is not None]


def floats_of(column: Coded | Float64Array) -> Float64Array:
    """The numbers that a column holds or spells; NaN where there is none."""
    if not isinstance(column, Coded):
        return column
    try:
        values = [spelled(value) for value in column.values]
    except (TypeError, ValueError, OverflowError):
        values = [as_number(value) for value in column.values]
    return np.array([*values, np.nan])[column.codes]


def combined(parts: Sequence[tuple[IntArray, list[str]]]) -> KeyedColumn:
    """The combinations of several columns' texts; a missing part is None, and a single column's code stays -1."""
    if len(parts) == 1:
        return KeyedColumn(parts[0][0], [(one,) for one in parts[0][1]])
    mixed, tokens = parts[0][0] + 1, [None, *parts[0][1]]
    combinations: list[Token] = [(token,) for token in tokens]
    for codes, texts in parts[1:]:
        options = [None, *texts]
        mixed = mixed * len(options) + (codes + 1)
        size = len(combinations) * len(options)
        if size <= _DENSE:
            occurs = np.zeros(size, dtype=np.bool_)
            occurs[mixed] = True
            codes_in_use = np.flatnonzero(occurs)
            mixed = (np.cumsum(occurs) - 1)[mixed]
        else:
            codes_in_use, mixed = np.unique(mixed, return_inverse=True)
        combinations = [(*combinations[at // len(options)], options[at % len(options)]) for at in codes_in_use.tolist()]
    return KeyedColumn(mixed, combinations)


class RowView(Mapping[str, Any]):
    """One row of a table as a mapping from column to plain value, for functions of a user's own; CSV gives texts."""

    __slots__ = ("_lists", "_row", "_table")

    def __init__(self, table: Any, row: int, lists: dict[str, list[Any]]) -> None:
        self._table, self._row, self._lists = table, row, lists

    def __getitem__(self, name: str) -> Any:
        if name not in self._lists:
            try:
                self._lists[name] = entries(self._table[name])
            except (IndexError, TypeError) as error:
                raise KeyError(name) from error
        return self._lists[name][self._row]

    def __iter__(self) -> Iterator[str]:
        names = getattr(self._table, "column_names", None) or getattr(self._table, "columns", None)
        return iter(self._table.keys() if names is None or callable(names) else list(names))

    def __len__(self) -> int:
        return sum(1 for _ in self)


# --------
# What groups learn from a first part of the stream: which columns are quantities, and which values come first.

# A column of numbers with more distinct ones than this is cut into bands.
FEW = 31
# Whole numbers with more different values are quantities; with fewer, codes if neighbors are as unlike as so.
MOST_CODES, UNLIKE = 300, 0.6

# Text that spells a number. A leading zero makes it a label: post codes and flight numbers are not quantities.
_NUMERAL = re.compile(r"[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|[+-]?inf")


class Found(NamedTuple):
    """A value of a key, and how many rows have it."""

    key: int
    token: Token
    n_rows: int

    @property
    def shown(self) -> tuple[str, ...]:
        """Its texts, to be sorted by."""
        return tuple(part or "" for part in self.token)


def quantities(column: Coded | Float64Array) -> Float64Array | None:
    """The finite numbers of a column, row by row, if they are many quantities: more than `FEW`, and no codes."""
    if isinstance(column, Coded):
        used = np.unique(column.codes[column.codes >= 0]).tolist()
        texts = [text(column.values[code]) for code in used]
        if len(used) <= FEW or not all(one is None or _NUMERAL.fullmatch(one) for one in texts):
            return None
    values = floats_of(column)
    values = values[np.isfinite(values)]
    distinct, counts = np.unique(values, return_counts=True)
    return None if len(distinct) <= FEW or _codes(distinct, counts.astype(np.float64)) else values


def _codes(distinct: Float64Array, counts: Float64Array) -> bool:
    """Whether whole numbers look like names, such as those of stores: neighbors are no more alike than any two.

    Of a quantity, such as age, neighboring values are about as common; of codes, one says nothing of the next.

    Examples
    --------
    >>> ages, stores = 400 * np.exp(-(((np.arange(60.0) - 20) / 20) ** 2)), np.tile([90.0, 110.0, 100.0], 20)
    >>> _codes(np.arange(60.0), ages), _codes(np.arange(60.0), stores), _codes(np.arange(60.0) / 2, stores)
    (False, True, False)
    """
    if len(distinct) > MOST_CODES or (distinct != np.floor(distinct)).any():
        return False
    between = np.abs(counts[:, None] - counts).mean() * len(counts) / (len(counts) - 1)
    return bool(np.abs(np.diff(counts)).mean() > UNLIKE * between)


def frequent(columns: Sequence[KeyedColumn], rare: int) -> list[Found]:
    """All values with at least `rare` rows, the most frequent first, whatever order a source lists them in."""
    candidates = []
    for key, keyed in enumerate(columns):
        counts = np.bincount(keyed.codes[keyed.codes >= 0], minlength=len(keyed.tokens)).tolist()
        pairs = zip(keyed.tokens, counts, strict=True)
        candidates += [Found(key, token, count) for token, count in pairs if count >= rare]
    return sorted(candidates, key=lambda one: (-one.n_rows, one.key, one.shown))


def listed(candidates: Sequence[Found], keys: Sequence[Key], edges: Mapping[str, tuple[float, ...]]) -> list[Found]:
    """In the order of names: by key; numbers and bands as they follow each other, other values the frequent first."""

    def rank(one: Found) -> tuple[int, int, float, tuple[str, ...]]:
        columns, part = keys[one.key].columns, one.token[0]
        if len(columns) == 1 and part is not None:
            own = edges.get(columns[0])
            place = as_number(part) if own is None else float(band_labels(own).index(part))
            if place == place:
                return one.key, 0, place, one.shown
        return one.key, 1, -float(one.n_rows), one.shown

    return sorted(candidates, key=rank)

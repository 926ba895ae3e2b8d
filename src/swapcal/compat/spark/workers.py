"""What runs on the workers: Arrow tables in, Arrow tables out, no Spark in sight."""

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

import numpy as np

from swapcal.audits.column import Column
from swapcal.cases import Events
from swapcal.errors import InvalidInput
from swapcal.forecaster import Forecaster
from swapcal.keyed.bucket import KeyBucket
from swapcal.keyed.keyed import forecaster_for_key, key_text
from swapcal.tables.sources import package
from swapcal.typing import Float64Array

pa = package("pyarrow", "swapcal.compat.spark", extra="spark")
pc = package("pyarrow.compute", "swapcal.compat.spark", extra="spark")

# --------
# Which column is what: checked against a DataFrame's schema before anything runs.

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "decimal")
_TIMES = (*_NUMBERS, "timestamp", "timestamp_ntz", "date")
KEYS = ("string", "tinyint", "smallint", "int", "bigint")


@dataclass(frozen=True, slots=True)
class SparkColumns:
    """The names of the columns that are read, and the one that is made."""

    key: str
    y: str
    hint: str | None
    groups: tuple[str, ...]
    time: tuple[str, ...]
    known: str | None = None
    id: str | None = None
    output: str = "forecast"
    weight: str | None = None
    never: str | None = None
    # Columns of times that a stream hands over as microseconds since 1970 in UTC: local times come twice in autumn.
    micros: tuple[str, ...] = ()
    # Keys, ids and columns of groups that a stream hands over as text.
    texts: tuple[str, ...] = ()

    @property
    def read(self) -> list[str]:
        """All that are read, each once."""
        single = (self.key, self.y, self.hint, self.known, self.id, self.weight, self.never)
        return list(dict.fromkeys(name for name in (*single, *self.time, *self.groups) if name is not None))

    def check(self, types: Sequence[tuple[str, str]]) -> None:
        """One sentence about the first column that is missing or of the wrong type; `types` is `DataFrame.dtypes`."""
        there = dict(types)
        check_names(self.read, there)
        wanted: list[tuple[str | None, str, tuple[str, ...], str]] = [
            (self.key, "key", KEYS, "a string or a whole number"),
            (self.y, "y", _NUMBERS, "a number"),
            (self.hint, "hint", _NUMBERS, "a number"),
            (self.known, "known", _TIMES, "a time or a number"),
            (self.id, "id", KEYS, "a string or a whole number"),
            (self.weight, "weight", _NUMBERS, "a number"),
            (self.never, "never", ("boolean",), "true or false"),
            *((name, "time", (*_TIMES, "string"), "a time, a number or a string") for name in self.time[1:]),
            *((name, "time", _TIMES, "a time or a number") for name in self.time[:1]),
        ]
        for column, what, allowed, words in wanted:
            if column is not None and there[column].partition("(")[0] not in allowed:
                raise InvalidInput(
                    f"{what}={column!r} is a column of type {there[column]}; it must be {words}: cast it first"
                )
        for name in self.groups:
            if there[name].partition("<")[0] in ("array", "map", "struct", "binary", "variant"):
                raise InvalidInput(f"groups are made from plain columns; {name!r} is of type {there[name]}")
        if self.output in there:
            raise InvalidInput(f"there is a column {self.output!r} already; name the new one with output=")


def check_names(names: Iterable[str], there: dict[str, str]) -> None:
    """One sentence about the first name that is not there."""
    for name in names:
        if name not in there:
            near = difflib.get_close_matches(name, list(there), 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(map(repr, list(there)[:20]))}"
            raise InvalidInput(f"there is no column {name!r}; {hint}")


def named(value: Any, what: str) -> tuple[str, ...]:
    """A name or several as a tuple."""
    names = (value,) if isinstance(value, str) else tuple(value)
    if not all(isinstance(name, str) for name in names):
        raise InvalidInput(f"{what} takes names of columns; got {value!r}")
    return names


# Rows that leave a worker together, at least.
_OUT = 10_000


def recalibrated(table: Any, columns: SparkColumns, template: bytes, most_rows: int, order: str = "arrival") -> Any:
    """All rows of one key, in the order of time, with their forecasts."""
    key = _key(table, columns)
    _check_size(key, table.num_rows, most_rows)
    table = in_order(table, key, columns)
    known = None if columns.known is None else moments(table, columns.known)
    forecasts = forecaster_for_key(_template(template), "key", key_text(str(key))).run(
        contexts(table, columns.groups),
        floats(table, columns.y),
        None if columns.hint is None else floats(table, columns.hint),
        missing="skip",
        known=known,
        times=None if known is None else moments(table, columns.time[0]),
        weights=None if columns.weight is None else floats(table, columns.weight),
        order=order,
    )
    return table.append_column(columns.output, pa.array(forecasts))


def recalibrated_keys(
    parts: Iterator[Any], columns: SparkColumns, template: bytes, most_rows: int, order: str = "arrival"
) -> Iterator[Any]:
    """Record batches of a partition whose rows are sorted by key, with forecasts: key after key, one in memory.

    Many keys share a batch on their way in and out: a batch for each would cost more than its forecasts.
    """
    done: list[Any] = []
    seen: set[Any] = set()
    for key, pieces in groupby(_pieces(parts, columns), itemgetter(0)):
        if key in seen:
            raise InvalidInput(f"rows of key {key!r} are not beside each other: they must be sorted by key")
        seen.add(key)
        held: list[Any] = []
        for _, rows in pieces:
            held.append(rows)
            _check_size(key, sum(each.num_rows for each in held), most_rows)
        done.append(recalibrated(pa.concat_tables(held), columns, template, most_rows, order))
        if sum(each.num_rows for each in done) >= _OUT:
            yield from pa.concat_tables(done).combine_chunks().to_batches()
            done = []
    if done:
        yield from pa.concat_tables(done).combine_chunks().to_batches()


def _pieces(parts: Iterator[Any], columns: SparkColumns) -> Iterator[tuple[Any, Any]]:
    """Runs of rows of one key, with the key."""
    for table in batches(parts):
        _key(table, columns)
        keys = table[columns.key].combine_chunks()
        changed = pc.not_equal(keys[1:], keys[:-1]).to_numpy(zero_copy_only=False)
        for first, last in pairwise([0, *(1 + np.flatnonzero(changed)).tolist(), table.num_rows]):
            yield keys[first].as_py(), table.slice(first, last - first)


def _check_size(key: Any, n_rows: int, most_rows: int) -> None:
    if n_rows > most_rows:
        raise InvalidInput(
            f"key {key!r} has {n_rows:,} rows or more, beyond most_rows={most_rows:,}: a key is one sequence, which "
            "one worker plays in its memory. Give a finer key, or raise most_rows and the worker's memory"
        )


def typed(table: Any, texts: Iterable[str]) -> Any:
    """The table with these columns as text, also where every value is missing and they have lost their type."""
    for name in texts:
        table = table.set_column(table.column_names.index(name), name, table[name].cast(pa.string()))
    return table


def play_bucket(bucket: KeyBucket, table: Any, columns: SparkColumns) -> Any:
    """The events of some keys: cases, whose y is null, and outcomes, or that none will come. One row for each event.

    An event without key, id or time, or that the forecaster refuses, is a row with the status "invalid" and a reason.
    """
    assert columns.id is not None
    for name in columns.micros:
        at = table.column_names.index(name)
        table = table.set_column(at, name, table[name].cast(pa.int64()).cast(pa.timestamp("us")))
    needed = (columns.key, columns.id, *columns.time)
    without: dict[str, Any] = {name: pc.is_null(table[name], nan_is_null=True).to_numpy() for name in needed}
    without[columns.time[0]] = without[columns.time[0]] | np.isinf(moments(table, columns.time[0]))
    refused = np.logical_or.reduce(list(without.values()))
    nameless, table = table.filter(pa.array(refused)), table.filter(pa.array(~refused))
    missing = [", ".join(repr(name) for name in without if without[name][t]) for t in np.flatnonzero(refused)]
    reasons: list[str | None] = [f"the event has no {names}" for names in missing]
    never = pa.nulls(table.num_rows, pa.bool_()) if columns.never is None else table[columns.never]
    table = table.append_column("__never", pc.fill_null(never.cast(pa.bool_()), False))
    table = table.append_column("__outcome", pc.or_(pc.is_valid(table[columns.y]), table["__never"]))
    order = [(name, "ascending") for name in (columns.key, *columns.time, "__outcome", columns.id)]
    table = table.sort_by(order).combine_chunks()
    keys, ids = table[columns.key].to_pylist(), table[columns.id].to_pylist()
    y, clock = floats(table, columns.y), moments(table, columns.time[0])
    never, is_case = (table[name].to_numpy() == value for name, value in (("__never", True), ("__outcome", False)))
    hints, weights = (None if name is None else floats(table, name) for name in (columns.hint, columns.weight))
    known = None if columns.known is None else moments(table, columns.known)
    starts = [0, *(t for t in range(1, len(keys)) if keys[t] != keys[t - 1]), len(keys)]
    parts = []
    for first, last in pairwise(starts):
        if first == last:
            continue

        def events(some: slice, first: int = first) -> Events:
            inside = slice(first + some.start, first + some.stop)
            cases = inside.start + np.flatnonzero(is_case[inside])
            return Events(
                ids[inside],
                y[inside],
                contexts(table.take(cases), columns.groups),
                None if hints is None else hints[cases],
                weights=None if weights is None else weights[cases],
                times=None if known is None else clock[inside],
                known=None if known is None else known[inside],
                never=never[inside],
            )

        parts.append(bucket.play(keys[first], clock[first:last], last - first, events))
        reasons += [bucket.reasons.get(t) for t in range(last - first)]
    status = ["invalid"] * nameless.num_rows + [word for played in parts for word in played.status]
    forecast = np.concatenate([np.full(nameless.num_rows, np.nan), *(played.forecast for played in parts)])
    table = pa.concat_tables([nameless.select(columns.read), table.select(columns.read)])
    out = {name: table[name] for name in (columns.key, columns.id, columns.time[0], columns.y)}
    if columns.time[0] in columns.micros:
        out[columns.time[0]] = out[columns.time[0]].cast(pa.int64())
    out |= {columns.output: pa.array(forecast, mask=np.isnan(forecast)), "status": pa.array(status, pa.string())}
    # Spark takes columns of one piece only.
    return pa.table({**out, "reason": pa.array(reasons, pa.string())}).combine_chunks()


def left(keys: list[Any], columns: SparkColumns) -> Any:
    """A row for each key whose state has left: its status is "idle", and nothing else is known of it."""
    pandas = package("pandas", "swapcal.compat.spark", extra="spark")

    assert columns.id is not None
    nothing = dict.fromkeys((columns.id, columns.time[0], columns.y, columns.output))
    return pandas.DataFrame([{columns.key: key, **nothing, "status": "idle", "reason": None} for key in keys])


def partial_audit(tables: Iterable[Any], empty: bytes, forecast: str, y: str, groups: tuple[str, ...]) -> bytes:
    """The column of some rows, those without an outcome or a forecast left out."""
    column = Column.from_bytes(empty)
    for table in tables:
        whole = table.filter(pc.and_(pc.is_valid(table[y]), pc.is_valid(table[forecast])))
        if whole.num_rows:
            rows = column.functions.rows(contexts(whole, groups) if groups else {}, whole.num_rows)
            column.add(floats(whole, y), floats(whole, forecast), rows)
    return column.to_bytes()


def merged_audits(parts: Iterable[bytes]) -> bytes | None:
    """The column of all parts together; None of none."""
    total = None
    for data in parts:
        part = Column.from_bytes(data)
        if total is None:
            total = part
        else:
            total.merge(part)
    return None if total is None else total.to_bytes()


def in_order(table: Any, key: Any, columns: SparkColumns) -> Any:
    """The rows in the order of time, which must be a total one: that in which a shuffle leaves them is not defined."""
    for name in columns.time:
        if table[name].null_count:
            raise InvalidInput(
                f"{table[name].null_count} rows of key {key!r} have no {name!r}: fill it, or leave them out"
            )
    table = table.sort_by([(name, "ascending") for name in columns.time]).combine_chunks()
    if table.num_rows > 1:
        same = np.ones(table.num_rows - 1, dtype=np.bool_)
        for name in columns.time:
            values = table[name].combine_chunks()
            same &= pc.equal(values[1:], values[:-1]).to_numpy(zero_copy_only=False)
        if same.any():
            at = [table[name][int(np.argmax(same))].as_py() for name in columns.time]
            raise InvalidInput(
                f"two rows of key {key!r} have the same {', '.join(map(repr, columns.time))}, {at}: their order is not "
                "defined after a shuffle; give time= a further column that tells them apart, as in time=['day', 'id']"
            )
    return table


def contexts(table: Any, groups: tuple[str, ...]) -> Any:
    """Columns for `Groups`; one constant column where there are none."""
    if not groups:
        return np.ones((table.num_rows, 1))
    return {name: table[name].combine_chunks() for name in groups}


def floats(table: Any, name: str) -> Float64Array:
    """A column of numbers; NaN where it is null."""
    column = table[name].combine_chunks()
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)


def moments(table: Any, name: str) -> Float64Array:
    """A column of times in seconds, or of numbers; NaN where it is null."""
    column = table[name].combine_chunks()
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("us"))
    if pa.types.is_timestamp(column.type):
        micros = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
        return np.asarray(micros.cast(pa.float64()).to_numpy(zero_copy_only=False)) / 1e6
    return floats(table, name)


def batches(parts: Iterator[Any]) -> Iterator[Any]:
    """Record batches as tables."""
    return (pa.Table.from_batches([part]) for part in parts if part.num_rows)


def _key(table: Any, columns: SparkColumns) -> Any:
    missing = table[columns.key].null_count
    if missing:
        raise InvalidInput(
            f"{missing:,} rows have no key: the column {columns.key!r} is null. Leave them out with "
            f"df.where('{columns.key} is not null'), or give them a key of their own with fillna"
        )
    return table[columns.key][0].as_py() if table.num_rows else None


@lru_cache(maxsize=8)
def _template(data: bytes) -> Forecaster:
    return Forecaster.from_bytes(data)

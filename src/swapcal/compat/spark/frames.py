"""One audit over all rows of a DataFrame: parts on the workers, added up by tree."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from swapcal import inputs
from swapcal.audits.column import Column
from swapcal.compat.spark import workers
from swapcal.compat.spark.workers import SparkColumns, pa
from swapcal.errors import InvalidInput
from swapcal.forecaster import Forecaster
from swapcal.hints import OnlineRegression
from swapcal.hypotheses import Finite, Groups
from swapcal.keyed.bucket import KeyBucket
from swapcal.properties import Probability
from swapcal.protocols import Elicitable
from swapcal.tables.sources import package
from swapcal.tasks.audit import mergeable_column, merged_result
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.result import Result

# --------
# A key in Spark's own state store.


class KeyProcessor:
    """A `StatefulProcessor` of Spark by its methods; its base class would make pyspark a need of this module."""

    def __init__(self, columns: SparkColumns, template: bytes, rules: dict[str, Any], leaves: bool) -> None:
        self.columns, self.template, self.rules, self.leaves = columns, template, rules, leaves

    def init(self, handle: Any) -> None:
        """Spark calls it first."""
        self._handle = handle
        self._state = handle.getValueState("key", "state binary")
        self._made = Forecaster.from_bytes(self.template)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802
        """The events of a key in a micro-batch."""
        tables = [pa.Table.from_pandas(frame, preserve_index=False) for frame in rows]
        table = workers.typed(pa.concat_tables(tables, promote_options="permissive"), self.columns.texts)
        bucket = self._bucket()
        played = workers.play_bucket(bucket, table, self.columns)
        self._keep(bucket)
        yield played.to_pandas()

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802
        """A key whose next event would find it idle leaves, with a row that says so."""
        if self._state.exists():
            bucket = self._bucket()
            gone = bucket.forget(timerValues.getCurrentWatermarkInMs() / 1e3 - bucket.idle)
            self._keep(bucket)
            if gone:
                yield workers.left(gone, self.columns)

    def _bucket(self) -> KeyBucket:
        bucket = KeyBucket(self._made, **self.rules)
        return bucket.filled(bytes(self._state.get()[0])) if self._state.exists() else bucket

    def _keep(self, bucket: KeyBucket) -> None:
        """Store the key, with one timer."""
        if bucket.states:
            self._state.update((bucket.to_bytes(),))
        else:
            self._state.clear()
        if self.leaves:
            for moment in list(self._handle.listTimers()):
                self._handle.deleteTimer(moment)
            # A time far ahead has no timer: the watermark never gets there.
            for used, _ in bucket.states.values():
                if abs(used + self.rules["idle"]) < LAST:
                    self._handle.registerTimer(int(1e3 * (used + self.rules["idle"])) + 1)

    def close(self) -> None:
        """Nothing is held open."""


# --------
# One forecaster a key, over a DataFrame: all rows at once, or event after event.

PROBABILITY = Probability()


def recalibrate(
    df: Any,
    *,
    key: str,
    y: str,
    time: str | Sequence[str],
    seed: int,
    property: Elicitable = PROBABILITY,
    hint: str | None = None,
    groups: Sequence[Any] | Groups = (),
    weight: str | None = None,
    known: str | None = None,
    order: str = "arrival",
    id: str | None = None,
    never: str | None = None,
    output: str = "forecast",
    limit: int = 100,
    most_rows: int = 50_000_000,
    idle: float | None = None,
    watermark: str | None = None,
    remember: int = 256,
    learn: bool = False,
    **settings: Any,
) -> Any:
    """Calibrated forecasts for every key of a DataFrame, from one forecaster a key, in the order of time.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        Rows of a batch; or a stream of events, in which a row without `y` is a case, whose forecast is wanted, and one
        with `y` is the outcome of the case with the same `id`.
    key, y : str
        The columns that say whose row it is, and the outcome. In a batch an outcome may be null: it is forecast and not
        learned from.
    time : str or sequence of str
        The order of a key's rows. It must be a total order in a batch, so add a column that tells ties apart. Events of
        a micro-batch with the same time are played cases first, in the order of ids.
    seed : int
        From it and the key follow the draws of a key's forecaster: keep it secret where somebody plays against you.
    property : Elicitable
        What is forecast. Default `Probability()`.
    hint : str, optional
        The column of your model's forecasts.
    groups : sequence or Groups
        Columns and tuples of columns, as for `Groups`; or `Groups` that were fitted. None: all rows.
    weight : str, optional
        The share in [0, 1] for which a case counts.
    known : str, optional
        When a row's outcome is known, in the unit of `time`; in a stream, where it may not be learned when its event
        comes. Default: before the next row, or now.
    order : {"arrival", "forecast"}
        Late outcomes are learned as they come, or once those of all earlier cases of the key are known.
    id : str, optional
        The id of a case; for a stream.
    never : str, optional
        For a stream: true in an event that says that the outcome of a case will never come, whose `y` is null.
    output : str
        The name of the new column.
    limit : int
        Groups of a key, where `groups` are columns.
    most_rows : int
        Rows of a key beyond which a batch stops with a sentence, before the worker's memory does.
    idle : float, optional
        A key of a stream without an event for so long, in the unit of `time` (seconds), starts anew.
    watermark : str, optional
        For a stream with `idle`: by how much events may come later than others, such as "2 hours". The state of a key
        leaves Spark's store, with a row whose status is "idle", once Spark's watermark has passed the key's last event
        by `idle`. `time` is then a timestamp or a number of seconds since 1970. Times ahead of the clock do not move
        the watermark, and an event that is later is played like any other: it may find that its key has left. None: no
        key leaves.
    remember : int
        How many cases of a key that no longer wait are remembered, to tell repeated outcomes from unknown ones.
    learn : bool
        Whether an `OnlineRegression` on the groups learns between the hint and the engine, as with `run --by --learn`.
    **settings
        Of the `Forecaster`, such as `protect`, `budget`, `outside="clip"` and `max_pending`, which is 4,096 in a stream
        unless given.

    Returns
    -------
    pyspark.sql.DataFrame
        Of a batch: all columns and the forecasts. Of a stream: key, id, time, y, forecast, `status` and `reason`, one
        row for each event; an event that cannot be played is "invalid", with the reason, and stops nothing. Filter by
        status ("repeated", "unknown", "expired", "invalid", "forgotten") for what was not learned from, and "idle" for
        keys that have left.

    Notes
    -----
    The numbers are those of the loop over keys, bit for bit, and a stream that is started again from its checkpoint
    goes on with the same forecasts; with another property, seed, groups or settings it is refused. Rows of a key are in
    one worker's memory at a time. A stream keeps one state for each key; it needs RocksDB as its state store, which you
    set, and the package protobuf.

    Examples
    --------
    >>> from swapcal.compat import spark
    >>> df = session.read.parquet("sales.parquet")                                  # doctest: +SKIP
    >>> better = spark.recalibrate(df, key="store", y="sold", time="day",
    ...                            hint="forecast", groups="weekday", seed=1)       # doctest: +SKIP
    """
    columns = SparkColumns(
        key, y, hint, _group_columns(groups), workers.named(time, "time"), known, id, output, weight, never
    )
    columns.check(df.dtypes)
    everybody = Finite(1, names=["all"])
    hypotheses = groups if isinstance(groups, Groups) else Groups(groups, limit=limit) if groups else everybody
    if df.isStreaming:
        settings = {"max_pending": 4096, **settings}
    template = Forecaster(property, hypotheses, seed=seed, hint=OnlineRegression() if learn else None, **settings)
    inputs.one_of(order, "order", ("arrival", "forecast"))
    if not df.isStreaming:
        if never is not None:
            raise InvalidInput("never= is for a stream; in a batch nothing is learned from an outcome that is null")
        return _batch(df, columns, template.to_bytes(), inputs.integer(most_rows, "most_rows", 1), order)
    if id is None:
        raise InvalidInput("a stream needs id=, the column by which an outcome finds its case")
    idle = None if idle is None else inputs.number(idle, "idle", 0.0, LAST)
    if watermark is not None and idle is None:
        raise InvalidInput("watermark= is for keys that leave: give idle=, after how long without an event they do")
    rules = {"idle": idle, "remember": inputs.integer(remember, "remember", 0), "order": order}
    micros = tuple(name for name, kind in df.dtypes if kind == "timestamp" and name in (*columns.time, known))
    # pandas, by which Spark hands events over, would make decimals of whole numbers where one is missing.
    names = {columns.key, id, *columns.groups}
    texts = tuple(name for name, kind in df.dtypes if name in names and kind in workers.KEYS)
    columns = replace(columns, micros=micros, texts=texts)
    processor = KeyProcessor(columns, template.to_bytes(), rules, watermark is not None)
    return _stream(df, columns, processor, watermark)


def _group_columns(groups: Any) -> tuple[str, ...]:
    return groups.columns if isinstance(groups, Groups) else Groups(groups).columns if groups else ()


def _batch(df: Any, columns: SparkColumns, template: bytes, most_rows: int, order: str) -> Any:
    types = package("pyspark.sql.types", "recalibrate", extra="spark")
    schema = types.StructType([*df.schema.fields, types.StructField(columns.output, types.DoubleType(), True)])

    def play(parts: Iterator[Any]) -> Iterator[Any]:
        return workers.recalibrated_keys(parts, columns, template, most_rows, order)

    return df.repartition(columns.key).sortWithinPartitions(columns.key).mapInArrow(play, schema)


def _stream(df: Any, columns: SparkColumns, processor: KeyProcessor, watermark: str | None) -> Any:
    functions = package("pyspark.sql.functions", "recalibrate", extra="spark")
    types = package("pyspark.sql.types", "recalibrate", extra="spark")
    package("google.protobuf", "recalibrate on a stream", extra="spark")
    name = "spark.sql.streaming.stateStore.providerClass"
    if "RocksDB" not in df.sparkSession.conf.get(name):
        line = f'spark.conf.set("{name}", "{ROCKS}")'
        raise InvalidInput(f"a stream keeps its keys in RocksDB, which the session does not use; add the line {line}")
    known = {field.name: field.dataType for field in df.schema.fields}
    kinds = {name: known[name] for name in (columns.key, columns.id, columns.time[0], columns.y)}
    kinds |= dict.fromkeys((columns.key, columns.id), types.StringType())
    kinds |= dict.fromkeys((columns.time[0],) if columns.time[0] in columns.micros else (), types.LongType())
    kinds |= {columns.output: types.DoubleType(), "status": types.StringType(), "reason": types.StringType()}
    fields = [types.StructField(name, kind, True) for name, kind in kinds.items()]
    moment = columns.time[0]
    if watermark is not None:
        if known[moment].typeName() not in ("timestamp", *_SECONDS):
            raise InvalidInput(f"with watermark= the time is a timestamp or a number; {moment!r} is {known[moment]}")
        # What is late is played too: Spark would drop it, had it the watermark's column.
        df = df.withColumn(_AT, _at(functions, moment)).withWatermark(_AT, watermark)
    narrow = df.select(*columns.read)
    for name in columns.micros:
        narrow = narrow.withColumn(name, functions.unix_micros(name))
    for name in columns.texts:
        narrow = narrow.withColumn(name, functions.col(name).cast("string"))
    played = narrow.groupBy(columns.key).transformWithStateInPandas(
        statefulProcessor=processor,
        outputStructType=types.StructType(fields),
        outputMode="Append",
        timeMode="None" if watermark is None else "EventTime",
    )
    for text in (columns.key, columns.id):
        played = played.withColumn(text, functions.col(text).cast(known[text]))
    return played.withColumn(moment, functions.timestamp_micros(moment)) if moment in columns.micros else played


# The last second that Spark's clocks know, and the column of the watermark.
LAST, _AT = 2.0**53 / 1e3, "__at"
_SECONDS = ("byte", "short", "integer", "long", "float", "double")


def _at(functions: Any, name: str) -> Any:
    """The times of events for the watermark; of those that are missing or ahead of the clock, the beginning."""
    seconds = functions.col(name).cast("double")
    there = (seconds >= 0) & (seconds <= functions.unix_timestamp())
    return functions.timestamp_seconds(functions.when(there, seconds).otherwise(0.0))


ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_BRANCHES = 16


def judged(total: Column, *, source: str = "a DataFrame", y: str = "the outcome", r: float = 2.0) -> Result:
    """The verdict in words, the groups with intervals, and all else that a page shows, from an `audit`.

    Parameters
    ----------
    total : Column
        What `audit` gave; `bins=64` keeps its cells few.
    source, y : str
        What the page calls the rows and the outcome.
    r : float
        Power of the error.

    Returns
    -------
    Result
        `result.verdict`; `swapcal.report.page.write(result, "audit.html")`; `swapcal.tasks.result.to_json(result)`.
        What a sum does not tell is left out, and a sentence of the verdict says what that is.

    Examples
    --------
    >>> from swapcal.compat import spark
    >>> spark.judged(spark.audit(df, forecast="forecast", y="sold")).verdict.headline   # doctest: +SKIP
    """
    return merged_result(total, source=source, config=TaskConfig(y, r=r))


def audit(
    df: Any,
    *,
    forecast: str,
    y: str,
    property: Elicitable = PROBABILITY,
    groups: Sequence[Any] | Groups = (),
    bins: int | Sequence[float] | None = None,
    limit: int = 1000,
) -> Column:
    """The audit of all rows that have a forecast and an outcome; equal to the one on a single machine.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        A batch.
    forecast, y : str
        The columns of the forecasts and of the outcomes.
    property : Elicitable
        What was forecast. Default `Probability()`.
    groups : sequence or Groups
        Columns and tuples of columns; every value is a group, matched by name over all parts. For bands of numbers give
        `Groups` that were fitted, on a sample. None: all rows.
    bins : int or sequence of float, optional
        As for `Audit`; None: each forecast by itself.
    limit : int
        Groups that a part may find, where `groups` are columns.

    Returns
    -------
    Column
        On the driver, for `judged`; its `audit` is the `Audit` of all rows, with errors, cells and witness. Counts are
        exact, sums are so where they are exact in any order, and to about 1e-12 elsewhere.

    Examples
    --------
    >>> from swapcal.compat import spark
    >>> total = spark.audit(df, forecast="forecast", y="sold", groups="store,weekday", bins=64)   # doctest: +SKIP
    >>> spark.judged(total).to_html("audit.html")                                                 # doctest: +SKIP
    """
    if df.isStreaming:
        raise InvalidInput("an audit is of a batch: read the stream's sink, or audit each batch and merge the audits")
    hypotheses = groups if isinstance(groups, Groups) else Groups(groups, limit=limit if groups else 1)
    columns = hypotheses.columns
    workers.check_names((forecast, y, *columns), dict(df.dtypes))
    empty = mergeable_column(property, hypotheses, bins).to_bytes()
    functions = package("pyspark.sql.functions", "audit", extra="spark")

    def part(parts: Iterator[Any]) -> Iterator[Any]:
        yield pa.RecordBatch.from_pydict(
            {"audit": [workers.partial_audit(workers.batches(parts), empty, forecast, y, columns)]}
        )

    def merge(table: Any) -> Any:
        return pa.table({"audit": [workers.merged_audits(table["audit"].to_pylist())]})

    parts = df.select(*dict.fromkeys((forecast, y, *columns))).mapInArrow(part, "audit binary")
    n_parts = df.rdd.getNumPartitions() if hasattr(df, "rdd") else _BRANCHES
    if n_parts > _BRANCHES:
        branch = functions.pmod(functions.spark_partition_id(), functions.lit(max(n_parts // _BRANCHES, 2)))
        parts = parts.withColumn("branch", branch).groupBy("branch").applyInArrow(merge, "audit binary")
    total = workers.merged_audits(bytes(row[0]) for row in parts.collect())
    return Column.from_bytes(empty if total is None else total)

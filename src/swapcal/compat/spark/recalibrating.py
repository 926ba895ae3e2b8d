"""One forecaster a key, over a DataFrame: all rows at once, or event after event."""

from collections.abc import Iterator, Sequence
from typing import Any

from swapcal import checked
from swapcal.compat.spark.on_workers import constant, recalibrated_keys
from swapcal.compat.spark.processor import BucketProcessor
from swapcal.compat.spark.spark_columns import SparkColumns, named
from swapcal.errors import InvalidInput
from swapcal.forecaster import Forecaster
from swapcal.hypotheses import Groups
from swapcal.properties import Probability
from swapcal.roles import Elicitable
from swapcal.tables.extras import package

__all__ = ["recalibrate"]

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
    known: str | None = None,
    id: str | None = None,
    output: str = "forecast",
    limit: int = 100,
    most_rows: int = 50_000_000,
    buckets: int = 64,
    idle: float | None = None,
    forget_after: float | None = None,
    remember: int = 256,
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
        Columns and tuples of columns, as for `Groups`; or `Groups` that were fitted. None: everybody.
    known : str, optional
        When a row's outcome is known, in the unit of `time`; for a batch. Default: before the next row.
    id : str, optional
        The id of a case; for a stream.
    output : str
        The name of the new column.
    limit : int
        Groups of a key, where `groups` are columns.
    most_rows : int
        Rows of a key beyond which a batch stops with a sentence, before the worker's memory does.
    buckets : int
        Pieces of state in which a stream keeps its keys; about one for a hundred keys. It must stay the same for a
        checkpoint.
    idle : float, optional
        A key of a stream without an event for so long, in the unit of `time` (seconds), starts anew.
    forget_after : float, optional
        The state of a key of a stream for which nothing has come for so many seconds of the clock leaves the store,
        with a row whose status is "idle"; a timer sees to it, also where no event comes to its bucket any more. Give
        what no live key ever waits, and no restart takes. None: an idle key leaves when its bucket is next played.
    remember : int
        How many cases of a key that no longer wait are remembered, to tell repeated outcomes from unknown ones.
    **settings
        Of the `Forecaster`, such as `outside="clip"` and `max_pending`, which is 4,096 in a stream unless given.

    Returns
    -------
    pyspark.sql.DataFrame
        Of a batch: all columns and the forecasts. Of a stream: key, id, time, y, forecast and `status`, one row for
        each event; filter by status ("repeated", "unknown", "expired", "invalid") for what was not learned from, and
        "idle" for keys that have left.

    Notes
    -----
    The numbers are those of the loop over keys, bit for bit, and a stream that is started again from its checkpoint
    goes on with the same forecasts. Rows of a key are in one worker's memory at a time, and in one bucket of the state
    store. A stream needs RocksDB as its state store, which is set here if nothing else was, and the package protobuf.
    """
    columns = SparkColumns(key, y, hint, _group_columns(groups), named(time, "time"), known, id, output)
    columns.check(df.dtypes)
    hypotheses = groups if isinstance(groups, Groups) else Groups(groups, limit=limit) if groups else constant()
    if df.isStreaming:
        settings = {"max_pending": 4096, **settings}
    template = Forecaster(property, hypotheses, seed=seed, **settings)
    if not df.isStreaming:
        return _batch(df, columns, template.to_bytes(), checked.whole(most_rows, "most_rows", 1))
    if id is None:
        raise InvalidInput("a stream needs id=, the column by which an outcome finds its case")
    if known is not None:
        raise InvalidInput("known= is for a batch; in a stream an outcome is known when its event comes")
    forget = None if forget_after is None else checked.number(forget_after, "forget_after", 1e-3, 1e10)
    whole = checked.whole(remember, "remember", 0)
    processor = BucketProcessor(columns, template.to_bytes(), idle, whole, forget)
    return _stream(df, columns, processor, checked.whole(buckets, "buckets", 1))


def _group_columns(groups: Any) -> tuple[str, ...]:
    if isinstance(groups, str):
        raise InvalidInput(f"groups is a list of columns, as in groups=[{groups!r}]; got {groups!r}")
    return groups.columns if isinstance(groups, Groups) else Groups(groups).columns if groups else ()


def _batch(df: Any, columns: SparkColumns, template: bytes, most_rows: int) -> Any:
    types = package("pyspark.sql.types", "recalibrate", extra="spark")
    schema = types.StructType([*df.schema.fields, types.StructField(columns.output, types.DoubleType(), True)])

    def play(parts: Iterator[Any]) -> Iterator[Any]:
        return recalibrated_keys(parts, columns, template, most_rows)

    return df.repartition(columns.key).sortWithinPartitions(columns.key).mapInArrow(play, schema)


def _stream(df: Any, columns: SparkColumns, processor: BucketProcessor, buckets: int) -> Any:
    functions = package("pyspark.sql.functions", "recalibrate", extra="spark")
    types = package("pyspark.sql.types", "recalibrate", extra="spark")
    package("google.protobuf", "recalibrate on a stream", extra="spark")
    session, name = df.sparkSession, "spark.sql.streaming.stateStore.providerClass"
    if "RocksDB" not in session.conf.get(name):
        session.conf.set(name, "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
    known = {field.name: field.dataType for field in df.schema.fields}
    fields = [types.StructField(each, known[each], True) for each in (columns.key, columns.id, columns.time[0])]
    fields += [types.StructField(columns.y, known[columns.y], True)]
    fields += [types.StructField(columns.output, types.DoubleType(), True)]
    fields += [types.StructField("status", types.StringType(), True)]
    bucket = functions.pmod(functions.xxhash64(columns.key), functions.lit(buckets))
    narrow = df.select(*columns.read, bucket.alias("__bucket"))
    return narrow.groupBy("__bucket").transformWithStateInPandas(
        statefulProcessor=processor,
        outputStructType=types.StructType(fields),
        outputMode="Append",
        timeMode="None" if processor.forget is None else "ProcessingTime",
    )

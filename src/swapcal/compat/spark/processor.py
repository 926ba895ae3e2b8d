"""A bucket of keys in Spark's own state store."""

from collections.abc import Iterator
from typing import Any

from swapcal.compat.spark.on_workers import play_bucket
from swapcal.compat.spark.spark_columns import SparkColumns
from swapcal.forecaster import Forecaster
from swapcal.keyed.bucket import KeyBucket
from swapcal.tables.extras import package

__all__ = ["BucketProcessor"]


class BucketProcessor:
    """A `StatefulProcessor` of Spark by its methods; its base class would make pyspark a need of this module."""

    def __init__(self, columns: SparkColumns, template: bytes, idle: float | None, remember: int) -> None:
        self.columns, self.template, self.idle, self.remember = columns, template, idle, remember

    def init(self, handle: Any) -> None:
        """Spark calls it first."""
        self._state = handle.getValueState("bucket", "state binary")
        self._made = Forecaster.from_bytes(self.template)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802
        """The events of a bucket in a micro-batch."""
        pa = package("pyarrow", "swapcal.compat.spark", extra="spark")

        tables = [pa.Table.from_pandas(frame, preserve_index=False) for frame in rows]
        table = pa.concat_tables(tables, promote_options="permissive")
        bucket = KeyBucket(self._made, idle=self.idle, remember=self.remember)
        if self._state.exists():
            bucket.filled(bytes(self._state.get()[0]))
        played = play_bucket(bucket, table, self.columns)
        self._state.update((bucket.to_bytes(),))
        yield played.to_pandas()

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802
        """There are no timers: idle keys are forgotten when their bucket is next played."""
        return iter(())

    def close(self) -> None:
        """Nothing is held open."""

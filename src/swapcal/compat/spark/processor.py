"""A bucket of keys in Spark's own state store."""

from collections.abc import Iterator
from typing import Any

from swapcal.compat.spark.on_workers import left, play_bucket
from swapcal.compat.spark.spark_columns import SparkColumns
from swapcal.forecaster import Forecaster
from swapcal.keyed.bucket import KeyBucket
from swapcal.tables.extras import package

__all__ = ["BucketProcessor"]


class BucketProcessor:
    """A `StatefulProcessor` of Spark by its methods; its base class would make pyspark a need of this module."""

    def __init__(
        self, columns: SparkColumns, template: bytes, idle: float | None, remember: int, forget: float | None = None
    ) -> None:
        self.columns, self.template, self.idle, self.remember = columns, template, idle, remember
        self.forget = forget

    def init(self, handle: Any) -> None:
        """Spark calls it first."""
        self._handle = handle
        self._state = handle.getValueState("bucket", "state binary")
        self._made = Forecaster.from_bytes(self.template)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802
        """The events of a bucket in a micro-batch."""
        pa = package("pyarrow", "swapcal.compat.spark", extra="spark")

        tables = [pa.Table.from_pandas(frame, preserve_index=False) for frame in rows]
        table = pa.concat_tables(tables, promote_options="permissive")
        bucket = self._bucket()
        bucket.clock = timerValues.getCurrentProcessingTimeInMs() / 1e3
        played = play_bucket(bucket, table, self.columns)
        self._keep(bucket)
        yield played.to_pandas()

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802
        """Keys of a bucket for which nothing has come for too long leave, each with a row that says so."""
        if self.forget is not None and self._state.exists():
            bucket = self._bucket()
            gone = bucket.forget(timerValues.getCurrentProcessingTimeInMs() / 1e3 - self.forget)
            self._keep(bucket)
            if gone:
                yield left(gone, self.columns)

    def _bucket(self) -> KeyBucket:
        bucket = KeyBucket(self._made, idle=self.idle, remember=self.remember)
        return bucket.filled(bytes(self._state.get()[0])) if self._state.exists() else bucket

    def _keep(self, bucket: KeyBucket) -> None:
        """Store the bucket, with one timer, for the key of which nothing was heard for longest."""
        if bucket.states:
            self._state.update((bucket.to_bytes(),))
        else:
            self._state.clear()
        if self.forget is not None:
            for moment in list(self._handle.listTimers()):
                self._handle.deleteTimer(moment)
            if bucket.states:
                first = min(seen for _, seen, _ in bucket.states.values())
                self._handle.registerTimer(int(1e3 * (first + self.forget)) + 1)

    def close(self) -> None:
        """Nothing is held open."""

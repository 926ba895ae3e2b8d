"""What Spark adds: processor time of all its processes, beside that of the same core without it, in the same run."""

import os
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from swapcal.forecast import Forecast
from swapcal.forecaster import Forecaster
from swapcal.hypotheses import Groups
from swapcal.keyed import forecaster_for_key, key_text
from swapcal.properties import Probability
from swapcal.tables.sources import package

__all__ = ["SparkCost", "spark_cost"]

_SETTINGS: dict[str, Any] = {"key": "store", "y": "y", "hint": "p", "groups": ["sex", "age"], "time": "t", "seed": 1}
_FILES = 5


class SparkCost(NamedTuple):
    """Processor seconds of the core alone, and of Spark once a small job of the same kind has started it."""

    what: str
    rows: int
    alone: float
    spark: float
    target: float


def spark_cost(kind: str, n_keys: int, n_rows: int) -> SparkCost:
    """Of a "batch" of `n_keys` times `n_rows`; or of such rows as a "stream" of events in 5 micro-batches.

    Needs pyspark, Java, and a system whose processes are files under /proc.
    """
    alone, target = (_batch_alone, 8.0) if kind == "batch" else (_stream_alone, 6.0)
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "small", Path(folder) / "large"
        _write(small, 10, 10, kind)
        _write(large, n_keys, n_rows, kind)
        begun = time.process_time()
        alone(large)
        own = time.process_time() - begun
        return SparkCost(kind, n_keys * n_rows, own, _processor_seconds(kind, small, large), target)


def _write(folder: Path, n_keys: int, n_rows: int, kind: str) -> None:
    pa, parquet = (package(name, "swapcal bench scale", extra="spark") for name in ("pyarrow", "pyarrow.parquet"))
    rng, total = np.random.default_rng(0), n_keys * n_rows
    t = np.repeat(np.arange(n_rows), n_keys)
    store = np.tile(np.arange(n_keys), n_rows)
    columns: dict[str, Any] = {"store": store, "t": t.astype(np.float64), "p": rng.random(total)}
    columns["y"] = (rng.random(total) < 0.4).astype(np.float64)
    columns |= {"sex": rng.choice(["f", "m"], total), "age": rng.choice(["old", "young"], total)}
    table = pa.table(columns | {"case": t * n_keys + store})
    if kind == "stream":
        none = table.set_column(3, "y", pa.nulls(total, pa.float64()))
        late = table.set_column(1, "t", pa.array(table["t"].to_numpy() + 1.5))
        table = pa.concat_tables([none, late]).sort_by("t")
    folder.mkdir()
    size = -(-table.num_rows // _FILES)
    for k in range(_FILES):
        parquet.write_table(table.slice(k * size, size), folder / f"{k}.parquet")
        os.utime(folder / f"{k}.parquet", (1_700_000_000 + k, 1_700_000_000 + k))


def _template() -> Forecaster:
    return Forecaster(Probability(), Groups(_SETTINGS["groups"], limit=20), seed=1, max_pending=4096)


def _batch_alone(folder: Path) -> None:
    """`run` for each key, over a table that is sorted by key."""
    parquet = package("pyarrow.parquet", "swapcal bench scale", extra="spark")
    table = parquet.read_table(folder).sort_by([("store", "ascending"), ("t", "ascending")]).combine_chunks()
    stores = table["store"].to_numpy()
    ends = [*np.flatnonzero(np.diff(stores, prepend=-1)).tolist(), len(stores)]
    made = _template()
    for start, stop in pairwise(ends):
        part = table.slice(start, stop - start)
        x = {name: part[name].combine_chunks() for name in _SETTINGS["groups"]}
        own = forecaster_for_key(made, "key", key_text(int(stores[start])))
        own.run(x, part["y"].to_numpy(), part["p"].to_numpy())


def _stream_alone(folder: Path) -> None:
    """`predict` and `update` for each event, with every key's state as bytes between micro-batches."""
    parquet = package("pyarrow.parquet", "swapcal bench scale", extra="spark")
    made = _template()
    states: dict[int, bytes] = {}
    waiting: dict[int, bytes] = {}
    for path in sorted(folder.iterdir()):
        live: dict[int, Forecaster] = {}
        for row in parquet.read_table(path).to_pylist():
            store = row["store"]
            if store not in live:
                known = store in states
                live[store] = (
                    Forecaster.from_bytes(states[store]) if known else forecaster_for_key(made, "key", key_text(store))
                )
            if row["y"] is None:
                waiting[row["case"]] = (
                    live[store].predict({"sex": row["sex"], "age": row["age"]}, hint=row["p"]).to_bytes()
                )
            else:
                live[store].update(Forecast.from_bytes(waiting.pop(row["case"])), row["y"])
        states |= {store: forecaster.to_bytes() for store, forecaster in live.items()}


def _processor_seconds(kind: str, small: Path, large: Path) -> float:
    """Of Spark, its JVM and its workers, for the large job, after the small one has started them all."""
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "swapcal_benchmarks.scale.spark_costs",
        kind,
        str(small),
        str(large),
    ]
    done = subprocess.run(command, start_new_session=True, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError("Spark failed: " + done.stderr[-2000:])
    return float(done.stdout.splitlines()[-1])


def _used() -> float:
    """Processor seconds of this session's processes, and of those that have ended."""
    total, own = 0, os.getsid(0)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == own:
                total += sum(map(int, fields[11:15]))
    return total / os.sysconf("SC_CLK_TCK")


def _on_spark(kind: str, small: str, large: str) -> float:
    """Processor seconds of the large job."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    sql = package("pyspark.sql", "swapcal bench scale", extra="spark")
    builder = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    for name, value in {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    _job(session, kind, small)
    before = _used()
    _job(session, kind, large)
    return _used() - before


def _job(session: Any, kind: str, folder: str) -> None:
    from swapcal.compat import spark as on_spark

    if kind == "batch":
        played = on_spark.recalibrate(session.read.parquet(folder), limit=20, **_SETTINGS)
        played.write.format("noop").mode("overwrite").save()
        return
    schema = session.read.parquet(folder).schema
    found = session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(folder)
    played = on_spark.recalibrate(found, id="case", limit=20, **_SETTINGS)
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = played.writeStream.format("noop").option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    sys.stdout.write(f"\n{_on_spark(*sys.argv[1:4])}\n")

"""A small Spark on this machine, and a stream of events in files for it."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["SCHEMA", "events", "session", "stream"]

SCHEMA = "store string, t double, p double, y double, sex string, case string, w double, never boolean"


def session(master: str = "local[2]") -> Any:
    """A session without a page, bound to the loopback."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("swapcal tests")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    }.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


def events(folder: Path, n_files: int, n_keys: int = 20, n: int = 60, seed: int = 0) -> None:
    """Cases and outcomes in `n_files` files of JSON lines: outcomes late, repeated, of no case, never to come."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for k in range(n_keys):
        for t in range(n):
            row: dict[str, Any] = {"store": f"store {k}", "t": float(t), "case": f"{k}/{t}"}
            case: dict[str, Any] = {**row, "sex": str(rng.choice(["f", "m"])), "y": None, "never": None}
            rows.append({**case, "p": round(float(rng.random()), 3), "w": (1.0, 0.5)[t % 2]})
            y = float(rng.random() < 0.3)
            late: dict[str, Any] = {
                **row,
                "t": float(t) + float(rng.choice([0.5, 3.25, 9.75])),
                "y": y,
                "p": None,
                "sex": None,
                "never": None,
            }
            if rng.random() < 0.1:
                late |= {"y": None, "never": True}
            rows.append(late)
            if rng.random() < 0.05:
                rows.append({**late, "t": late["t"] + 1.0})
            if rng.random() < 0.02:
                rows.append({**late, "case": f"none {k}/{t}"})
    rows.sort(key=lambda row: (row["t"], row["store"], row["case"]))
    size = -(-len(rows) // n_files)
    folder.mkdir(parents=True, exist_ok=True)
    for k in range(n_files):
        text = "\n".join(json.dumps(row) for row in rows[k * size : (k + 1) * size])
        path = folder / f"{k:03}.json"
        path.write_text(text + "\n")
        os.utime(path, (1_700_000_000 + k, 1_700_000_000 + k))  # files are read in the order of their times


def stream(
    spark: Any,
    source: Path,
    sink: Path,
    checkpoint: Path,
    *,
    forget_after: float | None = None,
    trigger: str | None = None,
) -> Any:
    """The query over the files, one file for each micro-batch, into Parquet; started, for all that is there or ever."""
    from swapcal.compat import spark as on_spark

    found = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(source))
    settings: dict[str, Any] = {"key": "store", "y": "y", "hint": "p", "groups": ["sex"], "time": "t", "id": "case"}
    settings |= {"weight": "w", "never": "never"}
    played = on_spark.recalibrate(found, **settings, seed=7, buckets=4, limit=10, forget_after=forget_after)
    writer = played.writeStream.format("parquet").option("path", str(sink))
    writer = writer.option("checkpointLocation", str(checkpoint))
    when: dict[str, Any] = {"availableNow": True} if trigger is None else {"processingTime": trigger}
    return writer.trigger(**when).start()


if __name__ == "__main__":
    source, sink, checkpoint = map(Path, sys.argv[1:4])
    stream(session(), source, sink, checkpoint).awaitTermination()

"""Spark in local mode, with Java: the loop's numbers in batch and in streams, also when the driver is killed."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import numpy as np
import pytest

import swapcal as sc
from effort import part
from swapcal.compat.spark import frames
from swapcal.errors import InvalidInput
from swapcal.keyed import forecaster_for_key, key_text
from swapcal.protocols import Row
from swapcal.report import page
from swapcal.tasks.audit import mergeable_column

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java 17, which is not installed here"),
    pytest.mark.filterwarnings("ignore"),
]
pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'swapcal[spark]'")


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
        "spark.sql.streaming.stateStore.providerClass": frames.ROCKS,
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
    seed: int = 7,
    idle: float | None = None,
    watermark: str | None = None,
) -> Any:
    """The query over the files, one file for each micro-batch, into Parquet; started, for all that is there."""
    from swapcal.compat import spark as on_spark

    found = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(source))
    settings: dict[str, Any] = {"key": "store", "y": "y", "hint": "p", "groups": ["sex"], "time": "t", "id": "case"}
    settings |= {"weight": "w", "never": "never"}
    played = on_spark.recalibrate(found, **settings, seed=seed, limit=10, idle=idle, watermark=watermark)
    writer = played.writeStream.format("parquet").option("path", str(sink))
    return writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    own = session()
    yield own
    own.stop()


def template(**settings: Any) -> sc.Forecaster:
    return sc.Forecaster(sc.Probability(), sc.Groups(["sex", "age"], limit=20), seed=7, **settings)


def rows(n_keys: int, n: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    total = n_keys * n
    return {
        "store": np.repeat(np.arange(n_keys), n),
        "t": np.tile(np.arange(n), n_keys),
        "p": rng.random(total),
        "y": (rng.random(total) < 0.4).astype(float),
        "sex": rng.choice(["f", "m"], total),
        "age": rng.choice(["old", "young", "none"], total),
    }


def test_a_learning_hint_late_outcomes_and_what_is_protected_are_those_of_a_forecaster(
    spark: Any, tmp_path: Path
) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    from swapcal.compat import spark as on_spark

    n = 1_500
    data = {name: column[:n] for name, column in rows(1, n).items()}
    data |= {"y": (data["sex"] == "f") * 1.0, "known": data["t"] + 30}
    parquet.write_table(pa.table(data), tmp_path / "rows.parquet")
    df = spark.read.parquet(str(tmp_path / "rows.parquet"))
    asked: dict[str, Any] = {"key": "store", "y": "y", "hint": "p", "groups": ["sex", "age"], "time": "t", "seed": 7}
    rules: dict[str, Any] = {"protect": "calibration", "budget": 0.01}
    found = on_spark.recalibrate(df, **asked, known="known", limit=20, learn=True, **rules).orderBy("t").toArrow()
    one = forecaster_for_key(template(hint=sc.OnlineRegression(), **rules), "key", key_text("0"))
    x = {name: data[name] for name in ("sex", "age")}
    expected = one.run(x, data["y"], data["p"], times=data["t"], known=data["known"])
    assert (found["forecast"].to_numpy() == expected).all()
    assert one.lateness().share > 0.9
    assert np.abs(expected[-200:] - data["y"][-200:]).mean() < 0.1


@pytest.mark.parametrize(("n_keys", "n"), [(7, 60), (part(1000, 150), part(1000, 100))], ids=["few", "many"])
def test_keys_are_the_loop_over_keys_and_the_audit_is_that_of_one_machine(
    spark: Any, tmp_path: Path, n_keys: int, n: int
) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    from swapcal.compat import spark as on_spark

    data = rows(n_keys, n)
    order = np.random.default_rng(1).permutation(len(data["y"]))
    parquet.write_table(pa.table({name: column[order] for name, column in data.items()}), tmp_path / "rows.parquet")
    df = spark.read.parquet(str(tmp_path / "rows.parquet"))
    found = on_spark.recalibrate(df, key="store", y="y", hint="p", groups=["sex", "age"], time="t", seed=7, limit=20)
    assert found.columns == ["store", "t", "p", "y", "sex", "age", "forecast"]
    table = found.select("store", "t", "forecast").toArrow().sort_by([("store", "ascending"), ("t", "ascending")])
    expected = np.empty(len(data["y"]))
    for k in range(n_keys):
        part = slice(k * n, (k + 1) * n)
        x = {name: data[name][part] for name in ("sex", "age")}
        expected[part] = forecaster_for_key(template(), "key", key_text(str(k))).run(
            x, data["y"][part], data["p"][part]
        )
    assert (table["forecast"].to_numpy() == expected).all()

    n_parts = 3 if n_keys == 7 else 40
    judged = on_spark.audit(found.repartition(n_parts), forecast="forecast", y="y", groups=["sex", "age"], bins=20)
    alone = mergeable_column(sc.Probability(), sc.Groups(["sex", "age"]), 20)
    groups = alone.functions.rows({name: data[name] for name in ("sex", "age")}, len(expected))
    alone.add(data["y"], alone.audit.rounded(expected), groups)
    total, whole = judged.audit, alone.audit
    assert total.n_rounds == whole.n_rounds == n_keys * n
    assert set(total.function_names) == set(whole.function_names)
    columns = [total.function_names.index(name) for name in whole.function_names]
    for name in ("xv", "weight", "xvxv"):
        mine, theirs = getattr(total.table(), name)[:, columns], getattr(whole.table(), name)
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)
    assert (total.table().active[:, columns] == whole.table().active).all()
    said, told = (on_spark.judged(each, y="y") for each in (judged, alone))
    assert said.verdict.headline == told.verdict.headline
    assert "the outcome" not in page.html(said)
    assert said.verdict.headline.removeprefix("Recalibrate: ")[1:] in page.html(said)


def test_empty_tables_null_keys_and_wrong_schemas_get_sentences(spark: Any) -> None:
    from swapcal.compat import spark as on_spark

    schema = "store string, t int, y double, p double"
    settings: dict[str, Any] = {"key": "store", "y": "y", "hint": "p", "time": "t", "seed": 1}
    empty = spark.createDataFrame([], schema)
    assert on_spark.recalibrate(empty, **settings).count() == 0
    assert on_spark.audit(empty, forecast="p", y="y").n_rounds == 0
    broken = spark.createDataFrame([(None, 1, 1.0, 0.5), ("a", 1, 1.0, 0.5)], schema)
    with pytest.raises(Exception, match="rows have no key"):
        on_spark.recalibrate(broken, **settings).collect()
    with pytest.raises(InvalidInput, match="there is no column 'stor'; did you mean 'store'"):
        on_spark.recalibrate(empty, **{**settings, "key": "stor"})
    with pytest.raises(InvalidInput, match="must be a number: cast it first"):
        on_spark.recalibrate(empty, **{**settings, "y": "store"})


def played(sink: Path) -> list[tuple[Any, ...]]:
    """What Spark says that it has written; files that a killed attempt has left are not among it."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    paths = set()
    for log in (sink / "_spark_metadata").glob("[0-9]*"):
        if log.name.partition(".")[0].isdigit():
            listed = (json.loads(line) for line in log.read_text().splitlines()[1:])
            paths |= {unquote(urlparse(each["path"]).path) for each in listed if each["action"] == "add"}
    if not paths:
        return []
    table = pa.concat_tables([parquet.read_table(path) for path in sorted(paths)])
    names = ("store", "case", "t", "status", "forecast")
    return sorted(zip(*(table[name].to_pylist() for name in names), strict=True), key=repr)


def expected(source: Path) -> dict[str, float]:
    """The forecasts of a plain loop in Python over all events."""
    events = [json.loads(line) for path in sorted(source.iterdir()) for line in path.read_text().splitlines()]
    events.sort(key=lambda row: (row["t"], row["y"] is not None or bool(row["never"]), row["case"]))
    keys: dict[str, sc.Forecaster] = {}
    waiting: dict[str, Any] = {}
    out: dict[str, float] = {}
    for row in events:
        if row["store"] not in keys:
            own = sc.Forecaster(sc.Probability(), sc.Groups(["sex"], limit=10), seed=7, max_pending=4096)
            keys[row["store"]] = forecaster_for_key(own, "key", key_text(row["store"]))
        if row["never"] and row["case"] in waiting:
            keys[row["store"]].forget(waiting.pop(row["case"]))
        elif row["y"] is None and not row["never"]:
            whole = keys[row["store"]].hypotheses.row({"sex": row["sex"]})
            weighted = Row(whole.indices, row["w"] * whole.values)
            waiting[row["case"]] = keys[row["store"]].predict(weighted, hint=row["p"])
            out[row["case"]] = float(waiting[row["case"]])
        elif row["case"] in waiting:
            keys[row["store"]].update(waiting.pop(row["case"]), row["y"])
    return out


def killed(tmp_path: Path, commits: int, *, wait: float = 0.0) -> bool:
    """Start the stream in a process of its own; kill it, its JVM and its workers after so many commits, if not done."""
    command = [sys.executable, __file__, *(str(tmp_path / n) for n in ("events", "wild", "wild check"))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(command, env=environment, start_new_session=True, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 1200
    while process.poll() is None and time.monotonic() < deadline:
        if len(list((tmp_path / "wild check" / "commits").glob("[0-9]*"))) >= commits:
            time.sleep(wait)
            break
        time.sleep(0.05)
    alive = process.poll() is None
    if alive:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert alive or process.returncode == 0
    return alive


def write_events(folder: Path, *files: list[tuple[str | None, float | None, str, float | None]]) -> None:
    """Files of events: store, time, case, outcome."""
    folder.mkdir(exist_ok=True)
    for k, rows in enumerate(files, start=len(list(folder.iterdir()))):
        named = (dict(zip(("store", "t", "case", "y"), row, strict=True)) for row in rows)
        path, more = folder / f"{k:03}.json", {"p": 0.5, "sex": "f", "w": 1.0}
        path.write_text("".join(json.dumps({**row, **more}) + "\n" for row in named))
        os.utime(path, (1_700_000_000 + k, 1_700_000_000 + k))


def test_keys_leave_by_the_time_of_events(spark: Any, tmp_path: Path) -> None:
    source, far = tmp_path / "events", 1e18
    write_events(
        source,
        [("a", 1.0, "a1", None), ("b", 2.0, "b1", None), ("far", far, "f1", None)],
        # A time ahead of the clock moves no watermark: nobody has left.
        [("a", 40.0, "a1", 1.0), ("b", 60.0, "b2", None)],
        [("c", 200.0, "c1", None)],
        [("c", 201.0, "c2", None)],
        # Later than the watermark: played like any other, by a key that has left and begins anew.
        [("a", 45.0, "a1", 0.0), ("a", 46.0, "a2", None), ("c", 202.0, "c1", 1.0)],
    )
    out = tmp_path / "out"
    query = stream(spark, source, out, tmp_path / "check", idle=100.0, watermark="10 seconds")
    query.awaitTermination()
    rows = {(row[0], row[1]): [each[3] for each in played(out) if each[:2] == row[:2]] for row in played(out)}
    assert rows["a", "a1"] == ["forecast", "learned", "unknown"]
    assert rows["a", None] == ["idle", "idle"]
    assert rows["b", None] == ["idle"]
    assert ("c", None) not in rows
    assert rows["c", "c1"] == ["forecast", "learned"]
    assert rows["far", "f1"] == rows["a", "a2"] == ["forecast"]


def test_bad_events_stop_no_stream_and_other_settings_do(spark: Any, tmp_path: Path) -> None:
    source, out, check = tmp_path / "events", tmp_path / "out", tmp_path / "check"
    write_events(
        source,
        [("a", 1.0, "1", None), (None, 2.0, "2", None), ("a", None, "3", None), ("a", 3.0, "1", 7.0)],
        [("a", 4.0, "1", 1.0), ("b", 5.0, "4", None)],
    )
    stream(spark, source, out, check).awaitTermination()
    statuses = {(row[1], row[3]) for row in played(out)}
    assert {("2", "invalid"), ("3", "invalid"), ("1", "invalid"), ("1", "learned"), ("4", "forecast")} <= statuses
    write_events(source, [("b", 6.0, "4", 1.0)])
    with pytest.raises(Exception, match="another property, seed, groups or settings"):
        stream(spark, source, out, check, seed=8).awaitTermination()
    stream(spark, source, out, check).awaitTermination()
    assert ("b", "4", 6.0, "learned") in {row[:4] for row in played(out)}


def test_whole_numbers_are_keys_ids_and_groups_beside_missing_ones(spark: Any, tmp_path: Path) -> None:
    """pandas, by which Spark hands over events, would make decimals of them; keys are those of a loop."""
    from swapcal.compat import spark as on_spark

    big, source = 2**60, tmp_path / "events"
    source.mkdir()
    rows: list[tuple[Any, ...]] = [
        (7, big + 1, 1.0, None, 3),
        (7, None, 2.0, None, None),
        (7, big + 2, 3.0, None, None),
        (None, 5, 4.0, None, 3),
    ]
    rows += [(-8, 5, 5.0, None, 4), (7, big + 1, 6.0, 1.0, 3)]
    for k, some in enumerate((rows, [(7, big + 2, 7.0, 0.0, None), (7, big + 3, 8.0, None, 3)])):
        named = (dict(zip(("k", "i", "t", "y", "g"), row, strict=True)) for row in some)
        (source / f"{k}.json").write_text("".join(json.dumps(row) + "\n" for row in named))
        os.utime(source / f"{k}.json", (1_700_000_000 + k, 1_700_000_000 + k))
    found = spark.readStream.schema("k bigint, i bigint, t double, y double, g int").option("maxFilesPerTrigger", 1)
    played = on_spark.recalibrate(found.json(str(source)), key="k", y="y", time="t", id="i", groups=["g"], seed=3)
    assert dict(played.dtypes) | {"k": "bigint", "i": "bigint"} == dict(played.dtypes)
    query = played.writeStream.format("memory").queryName("numbers").trigger(availableNow=True)
    query.option("checkpointLocation", str(tmp_path / "check")).start().awaitTermination()
    table = {(row["k"], row["i"], row["y"]): row for row in spark.sql("select * from numbers").collect()}
    statuses = {name: row["status"] for name, row in table.items()}
    assert statuses == {
        (7, big + 1, None): "forecast", (7, None, None): "invalid", (7, big + 2, None): "forecast",
        (None, 5, None): "invalid", (-8, 5, None): "forecast", (7, big + 1, 1.0): "learned",
        (7, big + 2, 0.0): "learned", (7, big + 3, None): "forecast",
    }  # fmt: skip
    own = forecaster_for_key(
        sc.Forecaster(sc.Probability(), sc.Groups(["g"], limit=100), seed=3, max_pending=4096), "key", key_text("7")
    )
    made = [own.predict({"g": g}) for g in (3, None)]
    own.update(made[0], 1.0)
    own.update(made[1], 0.0)
    expected = [*map(float, made), float(own.predict({"g": 3}))]
    assert [table[7, big + k, None]["forecast"] for k in (1, 2, 3)] == expected


def test_a_stream_without_its_store_is_told_which_line_to_add(spark: Any) -> None:
    from swapcal.compat import spark as on_spark

    name = "spark.sql.streaming.stateStore.providerClass"
    spark.conf.unset(name)
    try:
        found = spark.readStream.format("rate").load().selectExpr("value", "1.0 y", "value t")
        with pytest.raises(InvalidInput) as refused:
            on_spark.recalibrate(found, key="value", y="y", time="t", id="value", seed=1)
        line = re.search(r"spark\.conf\.set\(.*\)", str(refused.value))
        assert line is not None
        exec(line[0], {"spark": spark})
        assert on_spark.recalibrate(found, key="value", y="y", time="t", id="value", seed=1).isStreaming
    finally:
        spark.conf.set(name, frames.ROCKS)


def test_a_stream_is_the_loop_also_when_the_driver_is_killed(spark: Any, tmp_path: Path) -> None:
    source = tmp_path / "events"
    events(source, part(12, 7))
    query = stream(spark, source, tmp_path / "calm", tmp_path / "calm checkpoint")
    query.awaitTermination()
    calm = played(tmp_path / "calm")
    statuses = {row[3] for row in calm}
    assert statuses == {"forecast", "learned", "repeated", "unknown", "forgotten"}
    assert {row[1]: row[4] for row in calm if row[3] == "forecast"} == expected(source)

    draw, kills, done = random.Random(0), 0, False
    while not done and kills < 8:
        commits = len(list((tmp_path / "wild check" / "commits").glob("[0-9]*")))
        done = not killed(tmp_path, commits + draw.randint(2, part(4, 3)), wait=draw.random() * 0.3)
        kills += not done
    assert done
    assert kills >= 2
    assert played(tmp_path / "wild") == calm


if __name__ == "__main__":
    source, sink, checkpoint = map(Path, sys.argv[1:4])
    stream(session(), source, sink, checkpoint).awaitTermination()

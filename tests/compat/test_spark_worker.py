"""What Spark's workers run, without Spark: the loop over keys, however events are cut; and sentences."""

import datetime as dt
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import swapcal as sc
from swapcal.audits.column import Column
from swapcal.cases import Cases, Events
from swapcal.compat.spark.workers import (
    SparkColumns,
    left,
    merged_audits,
    partial_audit,
    play_bucket,
    recalibrated,
    recalibrated_keys,
)
from swapcal.errors import InvalidInput, StateFileError
from swapcal.forecaster import Forecaster
from swapcal.keyed import KeyBucket, forecaster_for_key, key_text
from swapcal.keyed.store import StateStore
from swapcal.tasks.audit import mergeable_column
from swapcal.tasks.by_key import run_by_key
from swapcal.tasks.config import TaskConfig

pa: Any = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.compute")
COLUMNS = SparkColumns("store", "y", "p", ("sex", "age"), ("t",), None, "case", never="gone")


def template(**settings: Any) -> sc.Forecaster:
    groups = sc.Groups(["sex", ("sex", "age")], limit=30)
    return sc.Forecaster(sc.Probability(), groups, seed=11, **{"max_pending": 256, **settings})


def rows(n_keys: int, n: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    total = n_keys * n
    return pa.table(
        {
            "store": np.repeat([f"store {k}" for k in range(n_keys)], n),
            "t": np.tile(np.arange(n), n_keys),
            "p": rng.random(total),
            "y": (rng.random(total) < 0.4).astype(float),
            "sex": rng.choice(["f", "m"], total),
            "age": pa.array([("old", "young", None)[k] for k in rng.integers(0, 3, total).tolist()]),
        }
    )


def loop(table: Any, name: str) -> np.ndarray[Any, Any]:
    part = table.filter(pa.compute.equal(table["store"], name)).sort_by("t")
    forecaster, out = forecaster_for_key(template(), "key", key_text(name)), []
    for row in part.to_pylist():
        forecast = forecaster.predict({"sex": row["sex"], "age": row["age"]}, hint=row["p"])
        out.append(float(forecast))
        forecaster.update(forecast, row["y"])
    return np.array(out)


@pytest.mark.parametrize("kind", [pa.string(), pa.int64(), pa.int8()], ids=str)
def test_keys_of_every_type_have_the_forecasts_of_a_run_by_key(tmp_path: Path, kind: Any) -> None:
    names = pa.array(["5", "-3", "12"]).cast(kind)
    table = rows(3, 300).set_column(0, "store", names.take(np.repeat(np.arange(3), 300)))
    table = table.set_column(2, "p", pa.array(0.8 + 0.1 * table["p"].to_numpy()))  # far off: corrections are drawn
    pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "rows.parquet")
    question = TaskConfig(
        "y", "p", ["sex", "age"], low=0.0, high=1.0, by="store", seed=5, learn=False, protect="nothing"
    )
    run_by_key(
        tmp_path / "rows.parquet", question, out=tmp_path / "out.parquet", state=tmp_path / "states.db", processes=1
    )
    expected = pa.parquet.read_table(tmp_path / "out.parquet")["forecast"].to_numpy()
    with closing(StateStore(tmp_path / "states.db")) as store:
        begun = store.begun()
    assert begun is not None
    made = bytes.fromhex(begun["models"]["template"])
    found = pa.Table.from_batches(list(recalibrated_keys(iter(table.to_batches()), COLUMNS, made, 10**6)))
    assert (found["forecast"].to_numpy() == expected).all()
    # And as a stream in which every outcome comes at once.
    cases = table.append_column("case", pa.array(np.arange(900))).append_column("gone", pa.nulls(900, pa.bool_()))
    waiting = cases.set_column(cases.column_names.index("y"), "y", pa.nulls(900, pa.float64()))
    played = play_bucket(KeyBucket(Forecaster.from_bytes(made)), pa.concat_tables([waiting, cases]), COLUMNS)
    forecasts = played.filter(pa.compute.is_null(played["y"])).sort_by("case")["forecast"]
    assert (forecasts.to_numpy() == expected).all()


def test_bad_events_are_rows_with_a_reason_and_stop_nothing() -> None:
    nan = float("nan")
    events = {"store": ["a", None, "a", "a", "a", "a", "a"], "t": [1.0, 2.0, 3.0, None, 5.0, 6.0, -float("inf")]}
    events |= {"case": ["1", "2", "3", "4", None, "1", "5"], "p": [0.5, 0.5, 1.5, 0.5, 0.5, None, 0.5]}
    events["y"] = [nan, nan, nan, nan, nan, 1.0, nan]
    columns = SparkColumns("store", "y", "p", (), ("t",), None, "case")
    own = sc.Forecaster(sc.Probability(), sc.Finite(1), seed=1, max_pending=8)
    table = play_bucket(KeyBucket(own), pa.Table.from_pandas(pd.DataFrame(events)), columns)
    assert {column.num_chunks for column in table.columns} == {1}  # Spark takes no others
    played = table.to_pandas()
    assert played["status"].tolist() == ["invalid"] * 4 + ["forecast", "invalid", "learned"]
    words = ("no 'store'", "no 't'", "no 'case'", "no 't'", None, "1.5", None)
    for reason, word in zip(played["reason"], words, strict=True):
        assert pd.isna(reason) if word is None else word in reason


def test_a_state_of_other_settings_is_refused() -> None:
    saved = KeyBucket(template()).to_bytes()
    KeyBucket(template()).filled(saved)
    seed = sc.Forecaster(sc.Probability(), template().hypotheses, seed=12, max_pending=256)
    groups = sc.Forecaster(sc.Probability(), sc.Groups(["sex"], limit=30), seed=11, max_pending=256)
    for other in (seed, groups, template(max_pending=8)):
        with pytest.raises(StateFileError, match="made with another property, seed, groups or settings"):
            KeyBucket(other).filled(saved)


def test_the_repeated_hour_keeps_its_order() -> None:
    columns = SparkColumns("store", "y", "p", (), ("t",), None, "case", micros=("t",))
    micros = [1_792_890_000_000_000 + 1_800_000_000 * k for k in range(4)]  # half hours around the end of summer time
    events = {"store": ["a"] * 4, "t": micros, "case": list("1234"), "p": [0.5] * 4, "y": [None] * 4}
    own = sc.Forecaster(sc.Probability(), sc.Finite(1), seed=1, max_pending=8)
    table = pa.table(events).take([2, 0, 3, 1])
    played = play_bucket(KeyBucket(own), table, columns)
    assert (played["case"].to_pylist(), played["t"].to_pylist()) == (list("1234"), micros)


def test_outcomes_known_later() -> None:
    part = rows(1, 100)
    start = dt.datetime(2026, 1, 1)
    at = [start + dt.timedelta(hours=t) for t in range(100)]
    known = [None if t % 10 == 0 else at[t] + dt.timedelta(hours=5) for t in range(100)]
    part = part.set_column(1, "t", pa.array(at)).append_column("known", pa.array(known))
    columns = SparkColumns("store", "y", "p", ("sex", "age"), ("t",), "known")
    found = recalibrated(part, columns, template().to_bytes(), 10**6)["forecast"].to_numpy()
    x = {"sex": part["sex"], "age": part["age"]}
    own = forecaster_for_key(template(), "key", key_text("store 0"))
    due = [np.nan if t % 10 == 0 else t + 5 for t in range(100)]
    assert (found == own.run(x, part["y"].to_numpy(), part["p"].to_numpy(), known=due)).all()


def test_idle_keys_start_anew_and_get_a_row() -> None:
    columns = SparkColumns("store", "y", None, (), ("t",), None, "case")

    def at(times: list[float], bucket: KeyBucket, key: str = "a") -> list[str]:
        n = len(times)
        table = {"store": [key] * n, "t": times, "y": [None if t < 100 else 1.0 for t in times]}
        played = play_bucket(bucket, pa.table({**table, "case": [str(t % 100) for t in times]}), columns)
        return [str(word) for word in played["status"].to_pylist()]

    own = sc.Forecaster(sc.Probability(), sc.Finite(1), seed=1, max_pending=8)
    assert at([1.0, 2.0, 101.0], KeyBucket(own)) == ["forecast", "forecast", "learned"]
    assert at([1.0, 2.0, 101.0], KeyBucket(own, idle=50.0)) == ["forecast", "forecast", "unknown"]
    bucket = KeyBucket(own, idle=50.0)
    at([1.0], bucket)
    at([1e9], bucket, "far")
    assert list(bucket.states) == ["a", "far"]  # a time far ahead forgets no other key
    for moment, key in ((10.0, "a"), (20.0, "b")):
        at([moment], bucket, key)
    del bucket.states["far"]
    again = KeyBucket(own).filled(bucket.to_bytes())
    assert (again.forget(15.0), list(again.states)) == (["a"], ["b"])
    row = {"store": "a", "case": None, "t": None, "y": None, "forecast": None, "status": "idle", "reason": None}
    assert left(["a"], columns).to_dict("records") == [row]
    with pytest.raises(StateFileError, match="damaged"):
        KeyBucket(own).filled(KeyBucket(own).to_bytes()[:-1])


@pytest.mark.parametrize("order", ["arrival", "forecast"])
@pytest.mark.parametrize("size", [9, 1000])
def test_a_bucket_is_the_cases_of_its_keys_however_events_are_cut(order: str, size: int) -> None:
    """With weights, moments at which outcomes are known, and some that never come; saved between any two pieces."""
    rng, nan = np.random.default_rng(5), np.nan
    rows: list[tuple[Any, ...]] = []
    for t in range(120):
        name, p, w = f"store {t % 2}", round(float(rng.random()), 2), (1.0, 0.25, 0.0, 0.6)[t // 2 % 4]
        rows.append((t + 0.0, name, f"c{t}", nan, p, w, None, nan))
        no_more, label = t % 7 == 3, float(rng.random() < 0.4)
        came = t + float(rng.choice([0.5, 4.5, 11.5]))
        due = nan if t % 3 or no_more else came + 6.0
        rows.append((came, name, f"c{t}", nan if no_more else label, nan, nan, no_more or None, due))
    names = ("at", "store", "case", "y", "p", "w", "never", "known")
    table = pd.DataFrame(sorted(rows, key=lambda row: (row[0], row[2])), columns=names)
    columns = SparkColumns("store", "y", "p", (), ("at",), "known", "case", weight="w", never="never")
    own = sc.Forecaster(sc.Probability(), sc.Finite(1), seed=2, max_pending=64)
    bucket, parts = KeyBucket(own, order=order), []
    for start in range(0, len(table), size):
        # As Spark hands them over: in any order, and a column without a value has lost its type.
        part = table[start : start + size].sample(frac=1.0, random_state=start)
        parts.append(play_bucket(bucket, pa.Table.from_pandas(part, preserve_index=False), columns))
        bucket = KeyBucket(own, order=order).filled(bucket.to_bytes())
    played = pa.concat_tables(parts).to_pandas().sort_values(["at", "case"])
    for name, mine in table.groupby("store"):
        whole = Cases(forecaster_for_key(own, "key", key_text(name)), order=order)
        never = (mine["never"] == True).to_numpy()  # noqa: E712
        cases = mine[mine["y"].isna() & ~never]
        more = {"times": mine["at"].to_numpy(), "known": mine["known"].to_numpy(), "never": never}
        events = Events(
            mine["case"].tolist(),
            mine["y"].to_numpy(),
            np.ones((len(cases), 1)),
            cases["p"],
            weights=cases["w"],
            **more,
        )
        at_once, found = whole.play(events), played[played["store"] == name]
        assert {"forecast", "learned", "held", "forgotten", "contradicted"} <= set(at_once.status)
        assert found["status"].tolist() == at_once.status
        np.testing.assert_array_equal(found["forecast"], at_once.forecast)


def test_audits_of_parts_are_those_of_all_rows() -> None:
    table = rows(8, 100)
    table = table.set_column(2, "p", pa.array(np.round(table["p"].to_numpy() * 8) / 8))
    empty = mergeable_column(sc.Probability(), sc.Groups(["sex", "age"]), 8).to_bytes()
    size = table.num_rows // 5
    parts = [partial_audit([table.slice(k * size, size)], empty, "p", "y", ("sex", "age")) for k in range(5)]
    parts.append(partial_audit([], empty, "p", "y", ("sex", "age")))
    merged = merged_audits(reversed(parts))
    assert merged is not None
    whole = Column.from_bytes(partial_audit([table], empty, "p", "y", ("sex", "age"))).audit
    found = Column.from_bytes(merged).audit
    assert set(found.function_names) == set(whole.function_names)
    mine, theirs = found.table(), whole.table()
    for j, name in enumerate(whole.function_names):
        assert (mine.xv[:, found.function_names.index(name)] == theirs.xv[:, j]).all()
    assert merged_audits([]) is None


def test_sentences() -> None:
    table, data = rows(1, 20), template().to_bytes()
    with pytest.raises(InvalidInput, match=r"rows have no key: the column 'store' is null"):
        recalibrated(table.set_column(0, "store", pa.nulls(20, pa.string())), COLUMNS, data, 100)
    with pytest.raises(InvalidInput, match=r"beyond most_rows=10: a key is one sequence"):
        recalibrated(table, COLUMNS, data, 10)
    with pytest.raises(InvalidInput, match=r"two rows of key 'store 0' have the same 't', \[1\]"):
        recalibrated(table.set_column(1, "t", pa.array(np.maximum(np.arange(20), 1))), COLUMNS, data, 100)
    with pytest.raises(InvalidInput, match=r"1 rows of key 'store 0' have no 't'"):
        recalibrated(table.set_column(1, "t", pa.array([None, *range(19)])), COLUMNS, data, 100)
    types = [("store", "string"), ("y", "double"), ("p", "double"), ("sex", "string"), ("age", "string")]
    types += [("t", "timestamp"), ("case", "bigint"), ("gone", "boolean")]
    COLUMNS.check(types)
    for change, words in (
        ({"store": "double"}, "key='store' is a column of type double; it must be a string or a whole number"),
        ({"y": "string"}, "y='y' is a column of type string; it must be a number: cast it first"),
        ({"sex": "array<string>"}, "groups are made from plain columns; 'sex' is of type array<string>"),
        ({"forecast": "double"}, "there is a column 'forecast' already; name the new one with output="),
        ({"t": "binary"}, "time='t' is a column of type binary"),
        ({"gone": "double"}, "never='gone' is a column of type double; it must be true or false"),
    ):
        with pytest.raises(InvalidInput) as caught:
            COLUMNS.check([*(dict(types) | change).items()])
        assert words in str(caught.value)
    with pytest.raises(InvalidInput, match=r"there is no column 'sex'; did you mean 'sexe'\?"):
        COLUMNS.check([("sexe" if name == "sex" else name, kind) for name, kind in types])


def test_keys_of_a_partition_are_played_one_after_the_other() -> None:
    table = rows(5, 120).sort_by("store")
    for size in (1, 50, 120, 1000):
        parts = iter(table.to_batches(max_chunksize=size))
        found = pa.Table.from_batches(list(recalibrated_keys(parts, COLUMNS, template().to_bytes(), 10**6)))
        for name in ("store 0", "store 3", "store 4"):
            own = found.filter(pa.compute.equal(found["store"], name))
            assert (own["forecast"].to_numpy() == loop(table, name)).all()
    part = table.filter(pa.compute.equal(table["store"], "store 2"))
    shuffled = part.take(np.random.default_rng(1).permutation(part.num_rows))
    alone = recalibrated(shuffled, COLUMNS, template().to_bytes(), 10**6)
    assert (alone["forecast"].to_numpy() == loop(table, "store 2")).all()
    assert list(recalibrated_keys(iter(()), COLUMNS, template().to_bytes(), 10)) == []
    apart = pa.concat_tables([table, table.slice(0, 3)]).combine_chunks().to_batches()
    with pytest.raises(InvalidInput, match="'store 0' are not beside each other"):
        list(recalibrated_keys(iter(apart), COLUMNS, template().to_bytes(), 10**6))
    with pytest.raises(InvalidInput, match="key 'store 0' has 120 rows or more, beyond most_rows=100"):
        list(recalibrated_keys(iter(table.to_batches()), COLUMNS, template().to_bytes(), 100))

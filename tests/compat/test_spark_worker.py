"""What Spark's workers run, without Spark: the loop over keys, however events are cut; and sentences."""

import datetime as dt
from typing import Any

import numpy as np
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
from swapcal.keyed import KeyBucket, forecaster_for_key, key_text
from swapcal.tasks.audit import mergeable_column

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


@pytest.mark.parametrize("cuts", [1, 4, 37])
def test_a_bucket_is_the_loop_however_events_are_cut(cuts: int) -> None:
    table = rows(4, 60)
    cases = table.set_column(3, "y", pa.nulls(table.num_rows, pa.float64()))
    name = pa.array([f"{s}/{t}" for s, t in zip(table["store"].to_pylist(), table["t"].to_pylist(), strict=True)])
    cases = cases.append_column("case", name).append_column("at", pa.array(table["t"].to_numpy() * 1.0))
    empty = pa.nulls(table.num_rows, pa.string())
    outcomes = table.append_column("case", name).append_column("at", pa.array(table["t"].to_numpy() + 0.5))
    outcomes = outcomes.set_column(4, "sex", empty).set_column(5, "age", empty)
    again = outcomes.slice(0, 10).set_column(7, "at", pa.array(outcomes["at"].to_numpy()[:10] + 0.1))
    events = pa.concat_tables([cases, outcomes, again]).sort_by([("at", "ascending"), ("store", "ascending")])
    columns = SparkColumns("store", "y", "p", ("sex", "age"), ("at",), None, "case")
    state, parts = None, []
    for k in range(cuts):
        bucket = KeyBucket(template())
        if state is not None:
            bucket.filled(state)
        size = -(-events.num_rows // cuts)
        part = events.slice(k * size, size)
        parts.append(play_bucket(bucket, part.take(np.random.default_rng(k).permutation(part.num_rows)), columns))
        state = bucket.to_bytes()
    played = pa.concat_tables(parts).to_pylist()
    counts = {word: sum(row["status"] == word for row in played) for word in ("forecast", "learned", "repeated")}
    assert counts == {"forecast": 240, "learned": 240, "repeated": 10}
    for name in ("store 0", "store 3"):
        own = sorted((r["at"], r["forecast"]) for r in played if r["store"] == name and r["status"] == "forecast")
        assert [value for _, value in own] == loop(table, name).tolist()


def test_idle_keys_start_anew_and_unknown_outcomes_are_told() -> None:
    columns = SparkColumns("store", "y", None, (), ("t",), None, "case")

    def at(times: list[float], bucket: KeyBucket) -> list[str]:
        n = len(times)
        table = {"store": ["a"] * n, "t": times, "y": [None if t < 100 else 1.0 for t in times]}
        played = play_bucket(bucket, pa.table({**table, "case": [str(t % 100) for t in times]}), columns)
        return [str(word) for word in played["status"].to_pylist()]

    own = sc.Forecaster(sc.Probability(), sc.Finite(1), seed=1, max_pending=8)
    assert at([1.0, 2.0, 101.0], KeyBucket(own)) == ["forecast", "forecast", "learned"]
    assert at([1.0, 2.0, 101.0], KeyBucket(own, idle=50.0)) == ["forecast", "forecast", "unknown"]
    bucket = KeyBucket(own, idle=50.0)
    at([1.0], bucket)
    assert bucket.expire(40.0) == 0
    assert bucket.expire(60.0) == 1
    with pytest.raises(StateFileError, match="damaged"):
        KeyBucket(own).filled(KeyBucket(own).to_bytes()[:-1])


@pytest.mark.parametrize("order", ["arrival", "forecast"])
def test_weights_known_times_and_outcomes_that_never_come(order: str) -> None:
    """A bucket that is saved between any two pieces plays what the cases of its keys play at once."""
    rng, nan = np.random.default_rng(5), np.nan
    events: list[tuple[Any, ...]] = []
    for t in range(80):
        p, w = round(float(rng.random()), 2), (1.0, 0.25, 0.0, 0.6)[t % 4]
        events.append((t + 0.0, "store 0", f"c{t}", nan, p, w, None, nan))
        no_more, label = t % 7 == 3, float(rng.random() < 0.4)
        came = t + float(rng.choice([0.5, 4.5, 11.5]))
        due = nan if t % 3 else came + 6.0
        events.append(
            (came, "store 0", f"c{t}", nan if no_more else label, nan, nan, no_more or None, nan if no_more else due)
        )
    names = ("at", "store", "case", "y", "p", "w", "never", "known")
    kinds = (pa.float64(), pa.string(), pa.string(), *[pa.float64()] * 3, pa.bool_(), pa.float64())
    events.sort(key=lambda event: (event[0], event[2]))
    made = dict(zip(names, zip(*events, strict=True), strict=True))
    arrays = [pa.array(made[name], kind, from_pandas=True) for name, kind in zip(names, kinds, strict=True)]
    table = pa.Table.from_arrays(arrays, list(names))
    columns = SparkColumns("store", "y", "p", (), ("at",), "known", "case", weight="w", never="never")
    own = sc.Forecaster(sc.Probability(), sc.Finite(1), seed=2, max_pending=64)
    whole = Cases(forecaster_for_key(own, "key", key_text("store 0")), order=order)
    y, never = np.array(made["y"]), np.array([each is True for each in made["never"]])
    cases = np.flatnonzero(np.isnan(y) & ~never)
    at_once = whole.play(
        Events(
            made["case"],
            y,
            np.ones((len(cases), 1)),
            np.array(made["p"])[cases],
            weights=np.array(made["w"])[cases],
            times=np.array(made["at"]),
            known=np.array(made["known"]),
            never=never,
        )
    )
    assert {"forecast", "learned", "held", "forgotten", "contradicted"} <= set(at_once.status)
    bucket, parts = KeyBucket(own, order=order), []
    for start in range(0, table.num_rows, 9):
        # As Spark hands them over: a column without a value has lost its type.
        part = pa.Table.from_pandas(table.slice(start, 9).to_pandas(), preserve_index=False)
        parts.append(play_bucket(bucket, part, columns))
        bucket = KeyBucket(own, order=order).filled(bucket.to_bytes())
    played = pa.concat_tables(parts)
    assert played["status"].to_pylist() == at_once.status
    np.testing.assert_array_equal(played["forecast"].to_numpy(), at_once.forecast)


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


def test_keys_that_are_forgotten_get_a_row() -> None:
    own = template()
    bucket = KeyBucket(own)
    for clock, key in ((10.0, "a"), (20.0, "b")):
        bucket.clock = clock
        bucket.play(key, np.array([1.0]), 1, lambda some: Events(["1"], [np.nan], {"sex": ["f"], "age": [None]}))
    again = KeyBucket(own).filled(bucket.to_bytes())
    assert again.forget(15.0) == ["a"]
    assert list(again.states) == ["b"]
    found = left(["a"], COLUMNS)
    assert found.to_dict("records")[0] == {
        "store": "a", "case": None, "t": None, "y": None, "forecast": None, "status": "idle"
    }  # fmt: skip

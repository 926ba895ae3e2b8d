"""`Trees`: boxes are cells of partitions, bins never move, and the class is `Finite` over their columns."""

import itertools
from typing import Any

import numpy as np
import pytest

import swapcal as sc
from swapcal.errors import InvalidInput, StateFileError
from swapcal.hypotheses import from_spec
from swapcal.protocols import Rows
from swapcal.tables.grouping import column_cuts


def table(n: int, seed: int) -> dict[str, Any]:
    """Numbers with an atom, numbers with holes, categories with some that come late."""
    rng = np.random.default_rng(seed)
    gains = np.where(rng.random(n) < 0.9, 0.0, rng.exponential(100.0, n))
    age = rng.normal(40.0, 9.0, n)
    age[rng.random(n) < 0.05] = np.nan
    sex = np.where(rng.random(n) < 0.5, "f", "m").astype(object)
    sex[n // 2 :][rng.random(n - n // 2) < 0.1] = "x"
    return {"age": age, "gains": gains, "sex": sex.tolist()}


def dense(rows: Rows, n: int) -> np.ndarray:
    out = np.zeros((len(rows.indptr) - 1, n))
    out[np.repeat(np.arange(len(out)), np.diff(rows.indptr)), rows.indices] = rows.values
    return out


def part(X: dict[str, Any], begin: int, end: int) -> dict[str, Any]:
    return {name: column[begin:end] for name, column in X.items()}


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_one_cell_of_each_partition_is_active(depth: int) -> None:
    X = table(3000, seed=depth)
    trees = sc.Trees(list(X), depth=depth, bins=8, first=100)
    trees.fit(part(X, 0, 1000))
    rows = trees.rows(X, 3000)
    n_sets = sum(len(list(itertools.combinations(X, k))) for k in range(1, depth + 1))
    assert (np.diff(rows.indptr) == 1 + n_sets).all()
    assert (rows.values == 1.0).all()
    names = np.array(trees.names)
    by_row = names[rows.indices].reshape(3000, 1 + n_sets)
    assert (by_row[:, 0] == "all").all()
    # A box of k columns names k of them, and the parts agree with the row itself.
    for j in range(1, 1 + n_sets):
        assert len({name.count(" & ") for name in by_row[:, j]}) == 1
    column = by_row[:, [name.startswith("sex") and "&" not in name for name in by_row[0]]][:, 0]
    known = {"f": "sex=f", "m": "sex=m"}
    assert column.tolist() == [known.get(each, "sex=other") for each in X["sex"]]


def test_the_class_is_finite_over_its_columns_to_the_bit() -> None:
    X = table(2000, seed=4)
    y = (np.random.default_rng(5).random(2000) < 0.3).astype(float)
    trees = sc.Trees(list(X), bins=4, limit=400)
    trees.fit(X)
    again = from_spec(trees.spec())
    matrix = dense(again.rows(X, 2000), again.n)
    ours = sc.Forecaster(sc.Probability(), trees, seed=3)
    plain = sc.Forecaster(sc.Probability(), sc.Finite(trees.n), seed=3)
    assert np.array_equal(ours.run(X, y), plain.run(matrix, y))
    assert ours.error() == plain.error()
    assert ours.guarantee() == plain.guarantee()


def test_sums_of_boxes() -> None:
    X = table(1500, seed=6)
    v = np.random.default_rng(7).uniform(-1.0, 1.0, 1500)
    trees = sc.Trees(list(X), bins=4)
    trees.fit(X)
    rows = trees.rows(X, 1500)
    sums = np.zeros(trees.n)
    np.add.at(sums, rows.indices, np.repeat(v, np.diff(rows.indptr)) * rows.values)
    for j, name in enumerate(trees.names[:60]):
        inside = [
            name in {trees.names[i] for i in trees.peek({k: c[t] for k, c in X.items()}).indices} for t in range(300)
        ]
        mine = dense(rows, trees.n)[:300, j].astype(bool)
        assert mine.tolist() == inside
    assert np.isclose(sums[0], v.sum())


def test_depth_one_is_intervals() -> None:
    rng = np.random.default_rng(8)
    x = rng.normal(size=900)
    trees = sc.Trees(["x"], depth=1, bins=8)
    trees.fit({"x": x})
    (edges,) = trees.edges.values()
    assert len(edges) == 7
    rows = trees.rows({"x": x}, 900)
    assert np.array_equal(rows.indices.reshape(-1, 2)[:, 1] - 1, np.searchsorted(edges, x, side="right"))
    counts = np.bincount(rows.indices, minlength=9)[1:9]
    assert counts.min() > 100


def test_atoms_have_bins_of_their_own() -> None:
    x = np.concatenate([np.zeros(900), np.arange(1.0, 101.0)])
    cuts = column_cuts(x, 8)
    assert cuts.atoms == (0.0,)
    labels = cuts.labels()
    assert labels[0] == "<= 0"
    assert len(labels) == 8
    trees = sc.Trees(["x"], depth=1)
    trees.fit({"x": x})
    assert {trees.names[j] for j in trees.row({"x": 0.0}).indices} == {"all", "x <= 0"}
    assert trees.names[trees.row({"x": 1e-300}).indices[1]].startswith("x in (0, ")


@pytest.mark.parametrize("value", [None, float("nan"), "", "nonsense"])
def test_missing_values_have_a_bin(value: Any) -> None:
    X = table(1200, seed=9)
    trees = sc.Trees(["age", "sex"])
    trees.fit(X)
    row = trees.row({"age": value, "sex": "f"})
    assert "age=missing" in [trees.names[j] for j in row.indices]
    assert np.array_equal(trees.rows({"age": [value], "sex": ["f"]}, 1).indices, row.indices)
    for x in (1e300, -1e300, float("inf"), float("-inf")):
        name = trees.names[trees.row({"age": x, "sex": "zebra"}).indices[1]]
        assert name.startswith("age >=") == (x > 0)
        assert name != "age=missing"


def test_batches_are_rows_one_by_one_and_bins_never_move() -> None:
    X = table(2600, seed=10)
    one, many, parts = (sc.Trees(list(X), first=1000) for _ in range(3))
    single = [one.row({name: column[t] for name, column in X.items()}).indices for t in range(2600)]
    batch = many.rows(X, 2600)
    assert np.array_equal(np.concatenate(single), batch.indices)
    halves = [parts.rows(part(X, a, b), b - a).indices for a, b in ((0, 400), (400, 1700), (1700, 2600))]
    assert np.array_equal(np.concatenate(halves), batch.indices)
    assert one.edges == many.edges == parts.edges
    before = many.edges
    many.rows({"age": np.full(3000, 99.0), "gains": np.ones(3000), "sex": ["new"] * 3000}, 3000)
    assert many.edges == before
    with pytest.raises(InvalidInput, match="bins never move"):
        many.fit(X)


def test_thresholds_between_edges_are_within_the_spread_of_one_bin() -> None:
    """For every real b: |sum of 1{x <= b} V| <= |sum of 1{x < e} V| + the sum of |V| in the bin of b."""
    rng = np.random.default_rng(11)
    x, v = rng.gamma(2.0, size=2000), rng.uniform(-1.0, 1.0, 2000)
    edges = np.array(column_cuts(x, 8).edges)
    bins = np.searchsorted(edges, x, side="right")
    for b in rng.gamma(2.0, size=200):
        k = int(np.searchsorted(edges, b, side="right"))
        below = abs(v[bins < k].sum())
        assert abs(v[x <= b].sum()) <= below + np.abs(v[bins == k]).sum() + 1e-9


def test_saved_before_and_after_bins_are_known() -> None:
    X = table(2400, seed=12)
    y = (np.random.default_rng(13).random(2400) < 0.4).astype(float)
    for stop in (300, 1500):
        whole = sc.Forecaster(sc.Probability(), sc.Trees(list(X)), seed=2, identity="a")
        broken = sc.Forecaster(sc.Probability(), sc.Trees(list(X)), seed=2, identity="a")
        expected = np.concatenate([whole.run(part(X, 0, stop), y[:stop]), whole.run(part(X, stop, 2400), y[stop:])])
        first = broken.run(part(X, 0, stop), y[:stop])
        again = sc.Forecaster.from_bytes(broken.to_bytes())
        assert np.array_equal(np.concatenate([first, again.run(part(X, stop, 2400), y[stop:])]), expected)
        assert again.to_bytes() == whole.to_bytes()
    spec = whole.hypotheses.spec()
    spec["learned"]["bins"]["age"]["cuts"][0][0].reverse()
    with pytest.raises(StateFileError, match="contradict"):
        from_spec(spec)


def test_a_failed_run_leaves_no_bins() -> None:
    X = table(1500, seed=14)
    trees = sc.Trees(list(X))
    forecaster = sc.Forecaster(sc.Probability(), trees, seed=2)
    before = forecaster.to_bytes()
    y = np.full(1500, 0.0)
    y[1400] = 7.0
    with pytest.raises(InvalidInput):
        forecaster.run(X, y)
    assert forecaster.to_bytes() == before
    assert trees.names == ("all",)


def test_what_is_refused() -> None:
    for bad in ([], ["a", "a"]):
        with pytest.raises(InvalidInput):
            sc.Trees(bad)
    with pytest.raises(InvalidInput, match="limit="):
        sc.Trees([f"c{j}" for j in range(30)], limit=100)
    with pytest.raises(InvalidInput, match="none of them"):
        sc.Trees(["a"], categories=["b"])
    with pytest.raises(InvalidInput, match="mapping"):
        sc.Trees(["a"]).row([1.0])


def test_an_interaction_that_single_columns_cannot_see() -> None:
    """0.2 more in two opposite corners, 0.2 less in the others; the model says the mean. Groups of bins see nothing."""
    n = 20_000
    rng = np.random.default_rng(15)
    X = {"a": rng.uniform(size=n), "b": rng.uniform(size=n)}
    corner = np.sign(X["a"] - 0.5) * np.sign(X["b"] - 0.5)
    y = (rng.random(n) < 0.5 + 0.2 * corner).astype(float)
    forecasts = sc.Forecaster(sc.Probability(), sc.Trees(["a", "b"], bins=8), seed=1).run(X, y, np.full(n, 0.5))
    late = np.arange(n) >= n // 2
    worst = max(abs(np.mean((y - forecasts)[late & (corner == s)])) for s in (-1.0, 1.0))
    assert worst < 0.05


def test_an_audit_names_boxes() -> None:
    n = 4000
    rng = np.random.default_rng(16)
    X = {"age": rng.uniform(20.0, 60.0, n), "sex": np.where(rng.random(n) < 0.5, "f", "m").tolist()}
    young = (X["age"] < 40.0) & (np.array(X["sex"]) == "f")
    y = (rng.random(n) < np.where(young, 0.7, 0.4)).astype(float)
    trees = sc.Trees(["age", "sex"], bins=4)
    trees.fit(X)
    audit = sc.Audit(sc.Probability(), trees)
    audit.update_many(y, np.full(n, 0.4), X)
    cells = audit.worst(1)
    assert "sex=f" in str(cells)

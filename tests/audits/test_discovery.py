"""Discovery: a planted subgroup is named, calibrated rows confirm nothing, leaks are told apart, clusters count."""

import numpy as np
import pytest
from scipy import stats

from swapcal.audits.discovery import DiscoveryColumn, _quantile, _tail, banded, discover, valued
from swapcal.errors import InvalidInput
from swapcal.typing import Float64Array


def table(n: int, seed: int) -> tuple[list[DiscoveryColumn], Float64Array, Float64Array]:
    """Columns, forecasts and calibrated V: six columns of values, two of numbers, and the forecast itself."""
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 4, n)
    columns = [valued(f"c{k}", rng.integers(-1, 8, n), [f"v{i}" for i in range(8)]) for k in range(6)] + [
        banded(name, rng.normal(size=n)) for name in ("age", "income")
    ]
    return [*columns, banded("forecast", p)], p, p - (rng.random(n) < p)


def plain_best(columns: list[DiscoveryColumn], v: Float64Array) -> tuple[float, str]:
    """The largest S^2 / (n + 50) over all conjunctions of one or two conditions, with loops."""
    best = (0.0, "")
    conditions = [(i, code) for i, column in enumerate(columns) for code in range(len(column.labels))]
    for a in conditions:
        for b in conditions:
            if a[0] > b[0] or (a[0] == b[0] and a != b):
                continue
            members = (columns[a[0]].codes == a[1]) & (columns[b[0]].codes == b[1])
            n = np.count_nonzero(members)
            if n >= max(50, 0.005 * len(v)):
                names = dict.fromkeys([columns[a[0]].labels[a[1]], columns[b[0]].labels[b[1]]])
                best = max(best, (float(v[members].sum() ** 2 / (n + 50)), " and ".join(names)))
    return best


def test_the_first_pick_is_the_best_of_all_conjunctions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swapcal.audits.discovery.SIMPLER", 1.0)
    columns, _, v = table(4000, 0)
    v = v + 0.15 * ((columns[1].codes == 2) & (columns[4].codes == 3))
    found = discover(columns, v, picks=1, seed=3)
    searched = np.random.default_rng(3).permutation(4000) % 2 == 0
    half = [DiscoveryColumn(column.name, column.codes[searched], column.labels) for column in columns]
    _, name = plain_best(half, v[searched])
    assert found.subgroups[0].name == name
    codes = {label: (column, code) for column in columns for code, label in enumerate(column.labels)}
    members = np.logical_and.reduce([codes[part][0].codes == codes[part][1] for part in name.split(" and ")])
    assert found.subgroups[0].bias == pytest.approx(v[members & ~searched].mean())
    assert found.subgroups[0].found_bias == pytest.approx(v[members & searched].mean())
    assert found.subgroups[0].rows == np.count_nonzero(members & ~searched)


def test_a_planted_subgroup_is_named_and_confirmed() -> None:
    named = 0
    for seed in range(10):
        columns, _, v = table(40_000, seed)
        planted = (columns[2].codes == 1) & (columns[6].codes >= 3)
        v = v + 0.1 * planted
        names = [one.name for one in discover(columns, v, seed=seed).confirmed]
        named += any("c2=" in name and columns[2].labels[1] in name for name in names)
    assert named >= 8


def test_calibrated_rows_confirm_nothing_most_of_the_time() -> None:
    confirmed = 0
    for seed in range(20):
        columns, _, v = table(5000, 100 + seed)
        found = discover(columns, v, seed=seed)
        confirmed += bool(found.confirmed)
        assert not found.leaks
        assert found.explained < 0.01
    assert confirmed <= 4


@pytest.mark.slow
def test_calibrated_rows_confirm_something_as_rarely_as_promised() -> None:
    confirmed = sum(bool(discover(*table(10_000, 500 + seed)[::2], seed=seed).confirmed) for seed in range(200))
    assert confirmed <= 20  # 10 expected at most; 20 has a chance of 0.2 %


def test_days_with_shocks_of_their_own_confirm_nothing_where_they_are_clusters() -> None:
    rng = np.random.default_rng(0)
    by_row = by_day = 0
    for seed in range(8):
        day = np.repeat(np.arange(200), 50)
        weather = DiscoveryColumn("weather", rng.integers(0, 6, 200)[day], tuple(f"w{k}" for k in range(6)))
        v = 0.2 * rng.normal(size=200)[day] + 0.2 * rng.normal(size=len(day))
        by_row += bool(discover([weather], v, seed=seed).confirmed)
        by_day += bool(discover([weather], v, clusters=day, seed=seed).confirmed)
    assert by_row >= 6
    assert by_day <= 1


def test_a_column_that_gives_the_outcome_away_is_told_and_not_searched() -> None:
    columns, p, v = table(10_000, 7)
    y = np.round(p - v).astype(np.int64)
    closed = np.where((y == 1) & (np.random.default_rng(0).random(10_000) < 0.5), 1, 0)
    leaking = [
        *columns,
        DiscoveryColumn("paid", y, ("paid=no", "paid=yes")),
        DiscoveryColumn("status", closed, ("open", "status=closed")),
    ]
    found = discover(leaking, v)
    assert {leak.name for leak in found.leaks} == {"paid", "status=closed"}
    assert not any("paid" in one.name for one in found.subgroups)
    assert not discover(columns, v + 0.2).leaks  # a bias of 20 points everywhere is no leak


def test_weights_are_rows() -> None:
    columns, _, v = table(6000, 8)
    v = v + 0.2 * (columns[0].codes == 0)
    twice = np.where(np.arange(6000) % 2 == 0, 1.0, 0.0)
    weighted = discover(columns, v, weights=twice, seed=1)
    assert weighted.subgroups[0].name == columns[0].labels[0]
    assert weighted.confirmed


def test_tails_of_student() -> None:
    for degrees in (29, 60, 1000):
        for t in (-1.0, 0.5, 2.0, 3.5):
            assert _tail(t, degrees) == pytest.approx(stats.t.sf(t, degrees), rel=0.02)
            assert _quantile(1 - _tail(t, degrees), degrees) == pytest.approx(t, abs=1e-6)


def test_columns_as_conditions() -> None:
    column = valued("c", np.array([0, 0, 1, 2, -1]), ["a", "b", "c"], 2)
    assert column.labels == ("c=a", "c=b", "c missing")
    assert column.codes.tolist() == [0, 0, 1, -1, 2]
    assert banded("x", np.full(5, 3.0)).labels == ("x any", "x missing")
    assert banded("x", np.arange(10.0)).codes.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


def test_what_cannot_be_used_is_refused() -> None:
    column = DiscoveryColumn("c", np.zeros(3, dtype=np.int64), ("a",))
    with pytest.raises(InvalidInput, match="'c' has 3 rows"):
        discover([column], np.zeros(4))
    with pytest.raises(InvalidInput, match="from -1 to 0"):
        discover([column._replace(codes=np.array([0, 1, 0]))], np.zeros(3))
    with pytest.raises(InvalidInput, match="finite"):
        discover([column], np.array([0.0, np.nan, 0.0]))
    with pytest.raises(InvalidInput, match="from -1 to 1"):
        valued("c", np.array([2]), ["a", "b"])
    assert discover([column], np.zeros(3)).subgroups == ()

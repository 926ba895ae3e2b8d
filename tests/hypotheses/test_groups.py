"""Groups from columns: names, learning, and the same rows whichever way a table comes."""

import json
import warnings
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import swapcal as sc
from effort import some
from swapcal.errors import GroupsWarning, InvalidInput, StateFileError
from swapcal.hypotheses import Groups, from_spec
from swapcal.protocols import Row, Rows
from swapcal.tables.batch import Coded, text

pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))

VALUES = st.sampled_from(["a", "b", "c", "other", "missing", "", "7", 7, 7.0, 2.5, True, None, float("nan"), -0.0])
GROUPS = [
    ["u"],
    ["u", "v"],
    [("u", "v"), "u"],
    ["u", "v >= 3", ("v", "u", "w")],
    [("big", lambda x: x["v"] == 7), "v", "w != 'a'"],
]


def same(one: Rows, two: Rows) -> bool:
    return all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in zip(one, two, strict=True))


def stacked(rows: list[Row]) -> Rows:
    ends = np.cumsum([0, *(len(row.indices) for row in rows)])
    empty = [Row(np.zeros(0, dtype=np.int64), np.zeros(0))]
    parts = [np.concatenate(column) for column in zip(*(rows or empty), strict=True)]
    return Rows(ends, parts[0], parts[1])


def learned(groups: Groups) -> Any:
    """What a group class knows, without the order in which counts were first made."""
    spec = json.loads(json.dumps(dict(groups.spec())))
    spec["vocabulary"]["counts"] = [sorted(map(str, one)) for one in spec["vocabulary"]["counts"]]
    return spec


@settings(max_examples=some(300))
@given(
    table=st.lists(st.tuples(VALUES, VALUES, VALUES), max_size=40),
    which=st.integers(0, len(GROUPS) - 1),
    limit=st.integers(9, 25),
    rare=st.integers(1, 4),
    cuts=st.lists(st.integers(0, 40), max_size=3),
    fitted=st.sampled_from(["not", "to values", "to bands"]),
)
def test_rows_are_a_loop_of_row(
    table: list[tuple[Any, ...]], which: int, limit: int, rare: int, cuts: list[int], fitted: str
) -> None:
    cases = [dict(zip("uvw", row, strict=True)) for row in table]
    one, many = (Groups(GROUPS[which], limit=limit, rare=rare) for _ in range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GroupsWarning)
        for groups in (one, many) if fitted != "not" else ():
            bands = {"u": np.arange(30.0), "v": np.arange(30), "w": ["a", "b"] * 15}
            groups.fit(bands if fitted == "to bands" else cases[:10])
        looped = []
        for case in cases:
            peeked = one.peek(case)
            looped.append(one.row(case))
            assert np.array_equal(peeked.indices, looped[-1].indices)
        edges = sorted({0, len(cases), *(min(cut, len(cases)) for cut in cuts)})
        for start, end in pairwise(edges):
            part = cases[start:end]
            columns = {name: [case[name] for case in part] for name in "uvw"}
            given_as = part if start % 2 else columns
            assert same(many.rows(given_as, len(part)), stacked(looped[start:end]))
    assert learned(one) == learned(many)
    assert len(one.names) <= one.n
    assert all(row.indices[0] == 0 and (np.diff(row.indices) > 0).all() for row in looped)


def test_counts_are_bounded_and_the_bound_is_the_same_row_by_row() -> None:
    one, many = Groups(["id"], limit=19, rare=3), Groups(["id"], limit=19, rare=3)
    ids = [*range(1400), *range(990, 1010), *range(990, 1010), 2000, 2000, 2000]
    looped = stacked([one.row({"id": value}) for value in ids])
    parts = [many.rows({"id": np.array(ids[a : a + 400])}, len(ids[a : a + 400])) for a in range(0, len(ids), 400)]
    assert np.array_equal(np.concatenate([part.indices for part in parts]), looped.indices)
    assert learned(one) == learned(many)
    assert one.names == ("all", "id=other", *(f"id={k}" for k in range(990, 1000)))
    assert sum(map(len, one.spec()["vocabulary"]["counts"])) == 990


def test_rare_values_share_a_group_until_they_are_frequent() -> None:
    groups = Groups(["city"], rare=3)
    rows = groups.rows({"city": ["Oslo", "Rome", "Oslo", "Oslo", "Oslo", None]}, 6)
    assert groups.names == ("all", "city=other", "city=Oslo", "city=missing")
    assert rows.indices.reshape(6, 2)[:, 1].tolist() == [1, 1, 1, 2, 2, 3]


def test_a_value_that_is_called_other_is_not_the_rest() -> None:
    groups = Groups(["sex"], limit=4, rare=2)
    groups.rows({"sex": ["other", "other", "x", None, "missing", "missing"]}, 6)
    assert groups.names == ("all", "sex=other", "sex='other'", "sex=missing", "sex='missing'")


def test_without_room_new_values_are_other_and_a_warning_says_so_once() -> None:
    groups = Groups(["id"], limit=4)
    with pytest.warns(GroupsWarning, match="'id' has more values than there is room for in 4 groups") as caught:
        rows = groups.rows({"id": np.arange(2000)}, 2000)
    assert len(caught) == 1
    assert groups.names == ("all", "id=0", "id=1", "id=other")
    assert rows.indices.max() == 3
    # No warning: pytest would make an error of a second one.
    groups.rows({"id": np.arange(5000, 7000)}, 2000)
    assert groups.row({"id": None}).indices.tolist() == [0, 4]
    assert list(groups.names)[-1] == "id=missing"


def test_fit_lists_values_of_text_by_frequency_and_of_numbers_in_their_order() -> None:
    groups = Groups(["city", "hour"])
    groups.fit({"city": ["Rome", "Oslo", "Oslo", "Bonn"], "hour": ["10", "9", "10", "2"]})
    few = Groups(["city"], limit=4)
    with pytest.warns(GroupsWarning, match="city"):
        few.fit({"city": ["Rome"] * 3 + ["Oslo"] * 5 + ["Bonn"] + ["Nice"] * 2})
    assert few.names == ("all", "city=Oslo", "city=Rome")
    assert groups.names == ("all", "city=Oslo", "city=Bonn", "city=Rome", "hour=2", "hour=9", "hour=10")
    with pytest.raises(InvalidInput, match="fit comes before the first row"):
        groups.fit({"city": ["Rome"], "hour": [1]})


@pytest.mark.parametrize("kind", [float, int, str, "float32"])
def test_many_numbers_become_bands_with_stated_edges(kind: Any) -> None:
    ages = np.arange(18, 68).repeat(4)
    column = [str(age) for age in ages] if kind is str else ages.astype(kind)
    groups = Groups(["age", ("age", "sex")], bands=4)
    groups.fit({"age": column, "sex": ["f", "m"] * 100})
    assert groups.edges == {"age": (30.0, 42.0, 55.0)}
    assert groups.names[:5] == ("all", "age < 30", "age in [30, 42)", "age in [42, 55)", "age >= 55")
    assert "age in [30, 42) & sex=f" in groups.names
    counts = np.bincount(groups.rows({"age": column, "sex": ["f", "m"] * 100}, 200).indices)[1:5]
    assert counts.sum() == 200
    assert counts.min() >= 40
    for value, name in ((30, "age in [30, 42)"), (29.99, "age < 30"), (1e9, "age >= 55"), ("41", "age in [30, 42)")):
        assert name in [groups.names[j] for j in groups.row({"age": value, "sex": "f"}).indices]
    assert "age=missing" not in groups.names
    for missing in (None, float("nan"), "unknown"):
        assert "age=missing" in [groups.names[j] for j in groups.row({"age": missing, "sex": "f"}).indices]


def test_few_numbers_and_labels_made_of_digits_are_values() -> None:
    groups = Groups(["hour", "zip"])
    groups.fit({"hour": np.arange(60) % 20, "zip": [f"0{k}" for k in range(1000, 1060)]})
    assert groups.edges == {}
    assert "hour=19" in groups.names
    assert "zip=01059" in groups.names


def test_edges_are_short_where_they_can_be_and_exact_where_they_must() -> None:
    rng = np.random.default_rng(0)
    for values in (
        rng.random(1000),
        1.7e9 + rng.random(1000),
        rng.random(1000) * 1e-12,
        rng.integers(0, 40, 1000) // 13,
    ):
        column = np.concatenate([values, np.linspace(values.min(), values.max(), 30)])
        groups = Groups(["x"])
        groups.fit({"x": column})
        counts = np.bincount(groups.rows({"x": column}, len(column)).indices)
        assert (counts[1:] > 0).all()
        assert all(len(repr(edge)) <= 15 for edge in groups.edges["x"])


FRAME: dict[str, list[Any]] = {
    "city": ["Oslo", None, "Rome", "Oslo", "Bonn", "Rome"],
    "hour": [1, 2, 1, 12, 2, 1],
    "smokes": [True, False, True, True, False, True],
    "weight": [70.5, float("nan"), 81.0, 70.5, 60.0, 99.25],
}


def arrow(columns: Mapping[str, Any]) -> Any:
    return pa.table({name: pa.array(values, from_pandas=True) for name, values in columns.items()})


@pytest.mark.parametrize(
    "make",
    [
        lambda: {name: np.array(values, dtype=None if name != "city" else object) for name, values in FRAME.items()},
        lambda: [dict(zip(FRAME, row, strict=True)) for row in zip(*FRAME.values(), strict=True)],
        lambda: pd.DataFrame(FRAME),
        lambda: pd.DataFrame(FRAME).astype({"city": "category", "hour": "Int64"}),
        lambda: pd.DataFrame(FRAME).astype({"city": object, "hour": float, "smokes": "boolean"}),
        lambda: pl.DataFrame(FRAME),
        lambda: pl.DataFrame(FRAME).with_columns(pl.col("city").cast(pl.Categorical), pl.col("hour").cast(pl.Int16)),
        lambda: arrow(FRAME),
        lambda: pa.concat_tables([arrow(FRAME)[:2], arrow(FRAME)[2:]]),
        lambda: {**FRAME, "city": Coded(np.array([1, -1, 0, 1, 2, 0]), ("Rome", "Oslo", "Bonn", "unused"))},
        lambda: {**FRAME, "hour": [str(hour) for hour in FRAME["hour"]]},
    ],
)
def test_every_kind_of_table_gives_the_same_rows(make: Any) -> None:
    wanted, groups = (Groups(["city", "hour", ("smokes", "city"), "weight", "hour > 1"]) for _ in range(2))
    rows = wanted.rows(FRAME, 6)
    assert same(groups.rows(make(), 6), rows)
    assert groups.names == wanted.names
    fitted, wanted = (Groups(["city", "hour", ("smokes", "city"), "weight", "hour > 1"]) for _ in range(2))
    fitted.fit(make())
    wanted.fit(FRAME)
    assert fitted.names == wanted.names


@pytest.mark.parametrize(
    ("written", "truths"),
    [
        ("v >= 2", [False, True, True, False, False]),
        ("v<2.5", [True, True, False, False, False]),
        ("v == 2", [False, True, False, False, False]),
        ("v != 2", [True, False, True, False, True]),
        ("v == '2'", [False, True, False, False, False]),
        ("v != 'x'", [True, True, True, False, False]),
        ("v == x", [False, False, False, False, True]),
    ],
)
def test_comparisons(written: str, truths: list[bool]) -> None:
    for column in ([1, 2.0, 3, None, "x"], ["1", "2", "3", "", "x"]):
        rows = Groups([written]).rows({"v": column}, 5)
        assert (np.diff(rows.indptr) == 2).tolist() == truths
    floats = Groups([written]).rows({"v": np.array([1.0, 2.0, 3.0, np.nan])}, 4)
    assert (np.diff(floats.indptr) == 2).tolist() == truths[:4]


@pytest.mark.parametrize(
    ("groups", "options", "sentence"),
    [
        (3, {}, "groups must be a sequence of column names"),
        ([3], {}, "a group must be a column name"),
        ([""], {}, "empty name"),
        (["a", "a"], {}, "'a' is given twice"),
        ([("a", "a")], {}, "names a column twice"),
        (["age >= old"], {}, "compare a column with a number"),
        (["a"], {"limit": 1}, "need limit=2 or more"),
        (["a"], {"rare": 0}, "rare must be a whole number, 1 or more"),
        (["a"], {"bands": 1}, "bands must be a whole number, 2 or more"),
    ],
)
def test_bad_definitions_are_refused(groups: Any, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        Groups(groups, **options)


def test_bad_tables_are_refused_and_nothing_is_learned() -> None:
    def wild(x: Mapping[str, Any]) -> float:
        return 2.0 if x["v"] == "bad" else 1.0

    groups = Groups(["v", ("wild", wild)])
    for table, sentence in (
        ({"w": [1]}, "there is no column 'v'; there are 'w'"),
        ({"val": [1], "vv": [2]}, "did you mean 'vv'?"),
        (pd.DataFrame({"w": [1]}), "there is no column 'v'"),
        (np.zeros((1, 2)), "a table with a column 'v'"),
        ({"v": ["ok", "bad"]}, "must have 1, as many"),
        ({"v": ["bad"]}, r"'wild' gave 2; a function of a row must stay in \[-1, 1\]"),
        ({"v": np.zeros((1, 1))}, "must be flat"),
        ({"v": "text"}, "must be an array or a list"),
        (Rows(np.array([0, 1, 2]), np.array([0, 0]), np.ones(2)), "2 rows and must be 1"),
        (Rows(np.array([0, 1]), np.array([5000]), np.ones(1)), "not those of a class with 1001"),
    ):
        with pytest.raises(InvalidInput, match=sentence):
            groups.rows(table, 1)
    with pytest.raises(InvalidInput, match="a case is a mapping"):
        groups.row([1.0, 2.0])
    assert groups.names == ("all", "wild")
    rows = groups.rows({"v": ["a", "b"]}, 2)
    assert groups.rows(rows, 2) is rows
    assert groups.row(groups.row({"v": "a"})).indices.tolist() == [0, 1, 2]


def test_spec_round_trip_continues_where_it_was() -> None:
    groups = Groups(["city", ("city", "age"), "age > 30"], limit=20, rare=2, bands=3, potential=sc.potentials.Squint())
    groups.fit({"city": ["Oslo", "Rome"] * 50, "age": np.arange(100)})
    groups.rows({"city": ["Bonn", None, "Nice", "Nice"], "age": [1, 2, None, 99]}, 4)
    again = from_spec(json.loads(json.dumps(dict(groups.spec()))))
    assert isinstance(again, Groups)
    assert json.dumps(dict(again.spec())) == json.dumps(dict(groups.spec()))
    for name in ("groups", "vocabulary", "edges", "potential"):
        with pytest.raises(StateFileError):
            from_spec({**groups.spec(), name: 7})
    before, names = again.snapshot(), again.names
    again.row({"city": "Turin", "age": 7})
    again.row({"city": "Turin", "age": 7})
    assert again.names != names
    again.restore(before)
    later = {"city": ["Bonn", "Nice", "Kiel", "Kiel"], "age": [20, 90, 5, 5]}
    assert same(again.rows(later, 4), groups.rows(later, 4))
    assert again.names == groups.names


def test_functions_are_stored_by_name_and_given_again() -> None:
    def make() -> Groups:
        return Groups([("even", lambda x: x["n"] % 2 == 0), "n"])

    groups = make()
    groups.rows({"n": [3, 4, 5]}, 3)
    stored = json.loads(json.dumps(dict(groups.spec())))
    with pytest.raises(StateFileError, match="a function of your own, 'even'"):
        from_spec(stored)
    assert make().resumed(stored).names == ("all", "even", "n=3", "n=4", "n=5")
    with pytest.raises(StateFileError, match="are not the ones in the file"):
        Groups(["n"]).resumed(stored)


def test_texts() -> None:
    given = [1, 1.0, np.float32(1), "1", True, b"x", 2**60, 1e300, -0.0, np.str_("s")]
    assert [text(value) for value in given] == ["1", "1", "1", "1", "True", "x", str(2**60), "1e+300", "0", "s"]
    assert {text(value) for value in (pd.NA, pd.NaT, None, "", np.nan, np.datetime64("NaT"))} == {None}

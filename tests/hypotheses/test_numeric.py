"""The linear class over columns: standardized by the rows before, the same bits row by row and in bulk."""

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from effort import some
from swapcal.errors import InvalidInput, StateFileError
from swapcal.hypotheses import Numeric, from_spec
from swapcal.protocols import Rows
from swapcal.tables.records import read

pd = pytest.importorskip("pandas")

NUMBERS = st.one_of(
    st.none(), st.floats(allow_nan=True, allow_infinity=True), st.integers(-5, 5), st.sampled_from([1.7e9, 1.7e9 + 1.0])
)


@settings(max_examples=some(200))
@given(
    table=st.lists(st.tuples(NUMBERS, NUMBERS), max_size=30),
    cut=st.floats(0.1, 10.0),
    at=st.integers(0, 30),
)
@example(table=[(-0.0, 1.7e9), (1, -0.1), (0.1, 1e300)], cut=10.0, at=6)
def test_rows_are_a_loop_of_row_bit_for_bit(table: list[tuple[Any, Any]], cut: float, at: int) -> None:
    one, many = Numeric(["a", "b"], cut=cut), Numeric(["a", "b"], cut=cut)
    looped = []
    for a, b in table:
        peeked = one.peek({"a": a, "b": b})
        looped.append(one.row({"a": a, "b": b}))
        assert np.array_equal(peeked.values, looped[-1].values)
    for start, end in ((0, min(at, len(table))), (min(at, len(table)), len(table))):
        part = table[start:end]
        rows = many.rows({"a": [a for a, _ in part], "b": [b for _, b in part]}, len(part))
        for t, row in enumerate(looped[start:end]):
            inside = slice(rows.indptr[t], rows.indptr[t + 1])
            assert np.array_equal(rows.indices[inside], row.indices)
            assert rows.values[inside].tobytes() == row.values.tobytes()
    assert json.dumps(dict(one.spec())) == json.dumps(dict(many.spec()))
    for row in looped:
        assert math.sqrt(float(np.sum(row.values**2))) <= 1.0 + 1e-12
        assert row.indices[0] == 0


def test_it_standardizes_by_the_rows_before() -> None:
    rng = np.random.default_rng(1)
    x = 1e6 + 25.0 * rng.standard_normal(500)
    x[::7] = np.nan
    numeric = Numeric(["x"], cut=2.0)
    rows = numeric.rows({"x": x}, 500)
    dense = np.zeros((500, 2))
    dense[np.repeat(np.arange(500), np.diff(rows.indptr)), rows.indices] = rows.values
    dense *= math.sqrt(5.0)
    assert np.allclose(dense[:, 0], 1.0)
    for t in range(500):
        before = x[:t][~np.isnan(x[:t])]
        sd = np.std(before) if len(before) > 1 else 0.0
        z = 0.0 if np.isnan(x[t]) or sd == 0.0 else np.clip((x[t] - np.mean(before)) / sd, -2.0, 2.0)
        assert dense[t, 1] == pytest.approx(z, abs=1e-6)


def test_a_constant_column_stays_at_zero_and_huge_numbers_do_no_harm() -> None:
    numeric = Numeric(["x", "y"])
    rows = numeric.rows({"x": [0.1] * 50, "y": [1e308, -1e308] * 25}, 50)
    assert np.isfinite(rows.values).all()
    assert 1 not in rows.indices
    assert 2 in rows.indices


def test_spec_round_trip_and_snapshot() -> None:
    numeric = Numeric(["x"], cut=2.5)
    numeric.rows({"x": np.random.default_rng(0).random(100)}, 100)
    stored = json.loads(json.dumps(dict(numeric.spec())))
    again = from_spec(stored)
    assert isinstance(again, Numeric)
    assert again.row({"x": 0.3}).values.tobytes() == numeric.peek({"x": 0.3}).values.tobytes()
    assert Numeric(["x"], cut=2.5).resumed(stored).spec() == numeric.spec()
    with pytest.raises(StateFileError, match="is not the one"):
        Numeric(["y"], cut=2.5).resumed(stored)
    for broken in ({"firsts": [1.0, 2.0]}, 3):
        with pytest.raises(StateFileError):
            from_spec({**stored, "running": broken})
    before = numeric.snapshot()
    numeric.row({"x": 5.0})
    numeric.restore(before)
    assert json.loads(json.dumps(dict(numeric.spec()))) == stored


def test_bad_input_is_refused_and_nothing_is_learned() -> None:
    numeric = Numeric(["x"])
    with pytest.raises(InvalidInput, match="cut must be a positive number"):
        Numeric(["x"], cut=0.0)
    columns: list[Any] = ["x", [], [3], ["x", "x"], None, [""]]
    for bad in columns:
        with pytest.raises(InvalidInput, match="Numeric needs"):
            Numeric(bad)
    for call in (
        lambda: numeric.row({"x": "tall"}),
        lambda: numeric.rows({"x": [1.0, "tall"]}, 2),
        lambda: numeric.rows({"y": [1.0]}, 1),
        lambda: numeric.rows({"x": [1.0]}, 2),
        lambda: numeric.rows(Rows(np.array([0, 1]), np.array([9]), np.ones(1)), 1),
        lambda: numeric.row([1.0]),
    ):
        with pytest.raises(InvalidInput):
            call()
    assert numeric.spec() == Numeric(["x"]).spec()


def test_text_that_spells_numbers_and_batches_of_records_are_read() -> None:
    x = [1.0, 2.0, None, 4.5, 3.0]
    tables: list[Any] = [
        {"x": x},
        {"x": ["1", "2", "", "4.5", "3"]},
        pd.DataFrame({"x": x}),
        [{"x": value} for value in x],
        next(read({"x": x})),
    ]
    found = [Numeric(["x"]).rows(table, 5) for table in tables]
    assert all(rows.values.tobytes() == found[0].values.tobytes() for rows in found)
    assert all(np.array_equal(rows.indptr, found[0].indptr) for rows in found)

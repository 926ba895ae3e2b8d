"""The compiled learning hint against its Python twin, bit for bit; and what both owe to whoever runs it alone."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import some
from swapcal.engine import kernels
from swapcal.errors import InvalidInput, StateFileError
from swapcal.hints import OnlineRegression, RegressionState
from swapcal.properties import Expectile, Mean, Moment, Probability, Property, Quantile
from swapcal.protocols import Elicitable, Row, Rows
from swapcal.simulate.streams import Stream, drifting
from swapcal.typing import Float64Array

native = pytest.mark.skipif(
    kernels.backend() == "python", reason="the compiled kernels are not installed, or switched off"
)

PROPERTIES: list[Elicitable] = [
    Mean(), Mean(low=-50.0, high=1234.5), Moment(3, low=-1.0, high=2.0), Quantile(0.9),
    Quantile(0.05, low=-3.0, high=0.1), Expectile(0.8), Expectile(0.3, low=1e-9, high=3e-9), Probability(),
]  # fmt: skip


def bits(state: RegressionState) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in state.buffers().items()}


def rows_of(x: Float64Array) -> Rows:
    ends = np.concatenate(([0], np.cumsum(np.count_nonzero(x, axis=1))))
    return Rows(ends, np.nonzero(x)[1], x[x != 0.0])


def row_at(rows: Rows, t: int) -> Row:
    part = slice(rows.indptr[t], rows.indptr[t + 1])
    return Row(rows.indices[part], rows.values[part])


def labels_for(property: Elicitable, share: Float64Array) -> Float64Array:
    share = np.round(share) if isinstance(property, Probability) else share
    return np.clip(property.low + (property.high - property.low) * share, property.low, property.high)


def bases_for(property: Elicitable, share: Float64Array) -> Float64Array:
    low, high = property.domain
    return np.clip(low + (high - low) * share, low, high)


def of_stream(property: Elicitable, stream: Stream) -> tuple[Rows, Float64Array, Float64Array, Float64Array]:
    """The arguments of `run`."""
    return rows_of(stream.x), stream.features, bases_for(property, stream.hint), labels_for(property, stream.y)


# Bit for bit


@native
@settings(max_examples=some(150))
@given(data=st.data(), property=st.sampled_from(PROPERTIES))
def test_every_round_gives_the_same_bits(data: st.DataObject, property: Elicitable) -> None:
    n_features, n_inputs = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 5))
    regression = OnlineRegression(n_features=n_features, most_full=data.draw(st.sampled_from([1, 4, 128])))
    events = data.draw(st.booleans())
    state, twin = (regression.start(property, n_inputs) for _ in range(2))
    compiled = twin.kernel()
    entries = st.sampled_from([0.0, 1.0]) | st.floats(-1.0, 1.0)
    numbers = st.floats(-1e60, 1e60) | st.sampled_from([0.0, 1.0, 1e-162, -3e-162])
    shares = st.floats(0.0, 1.0) | st.sampled_from([0.0, 0.5, 1.0])
    for _ in range(data.draw(st.integers(1, 25))):
        x = np.array(data.draw(st.lists(entries, min_size=n_inputs, max_size=n_inputs)), dtype=np.float64)
        row = Row(np.flatnonzero(x), x[x != 0.0])
        extra = np.array(data.draw(st.lists(numbers, min_size=n_features, max_size=n_features)), dtype=np.float64)
        features = extra if n_features else None
        base = data.draw(st.none() | shares.map(lambda share: float(bases_for(property, np.array(share)))))
        action = data.draw(st.sampled_from(["both", "both", "forecast", "update", "restore"]))
        if action == "restore":
            saved = state.arrays()
            state, twin = (regression.start(property, n_inputs) for _ in range(2))
            compiled = twin.kernel()
            state.restore(saved)
            twin.restore(saved)
        if action in ("both", "forecast"):
            assert compiled.forecast(*row, features, base) == state.forecast(row, features, base)
        if action in ("both", "update"):
            y = float(labels_for(property, np.array(round(data.draw(shares)) if events else data.draw(shares))))
            compiled.update(*row, features, base, y)
            state.update(row, features, base, y)
        assert bits(twin) == bits(state)


@native
@pytest.mark.parametrize(("most_full", "binary"), [(128, False), (20, True)])
@pytest.mark.parametrize("property", PROPERTIES, ids=repr)
def test_whole_runs_give_the_same_bits(property: Elicitable, most_full: int, binary: bool) -> None:
    rows, features, bases, y = of_stream(property, drifting(600, 3, binary=binary))
    regression = OnlineRegression(n_features=features.shape[1], most_full=most_full)
    state, twin, other = (regression.start(property, 20) for _ in range(3))
    compiled, single = twin.kernel(), other.kernel()
    # A stretch of rounds without a base in the middle.
    for part, given_bases in ((slice(0, 280), bases), (slice(280, 360), None), (slice(360, 600), bases)):
        first, last = rows.indptr[part.start], rows.indptr[part.stop]
        some = Rows(rows.indptr[part.start : part.stop + 1] - first, rows.indices[first:last], rows.values[first:last])
        base = None if given_bases is None else given_bases[part]
        got = np.empty(part.stop - part.start)
        compiled.run(*some, features[part], base, y[part], got)
        with kernels.using("python"):
            expected = state.run(some, features[part], base, y[part])
        assert got.tobytes() == expected.tobytes()
        assert bits(twin) == bits(state)
        for t in range(part.start, part.stop):
            given_round = (*row_at(rows, t), features[t], None if given_bases is None else float(given_bases[t]))
            assert single.forecast(*given_round) == expected[t - part.start]
            single.update(*given_round, float(y[t]))
        assert bits(other) == bits(state)


@native
def test_the_kernel_refuses_what_would_reach_beyond_its_arrays() -> None:
    state = OnlineRegression(n_features=1).start(Mean(), 2)
    compiled, before, one = state.kernel(), bits(state), np.ones(1)
    for position in (-1, 2):
        with pytest.raises(ValueError, match="outside"):
            compiled.update(np.array([position]), one, one, None, 0.5)
    with pytest.raises(ValueError, match="distinct"):
        compiled.update(np.array([0, 1, 1]), np.ones(3), one, None, 0.5)
    with pytest.raises(ValueError, match="value for each"):
        compiled.forecast(np.array([0, 1]), one, one, None)
    for features in (None, np.ones(2)):
        with pytest.raises(ValueError, match="features"):
            compiled.forecast(np.array([0]), one, features, None)
    rows = Rows(np.array([0, 1]), np.array([0]), one)
    for bad in (
        (*rows, None, None, one, np.empty(1)),
        (*rows, np.ones((1, 1)), np.ones(2), one, np.empty(1)),
        (*rows, np.ones((1, 1)), None, one, np.empty(2)),
        (np.array([0, 2]), *rows[1:], np.ones((1, 1)), None, one, np.empty(1)),
        (np.array([0, 2, 1]), *rows[1:], np.ones((2, 1)), None, np.ones(2), np.empty(2)),
    ):
        with pytest.raises(ValueError, match=r"needed|length|increase"):
            compiled.run(*bad)
    other = OnlineRegression(n_features=1).start(Mean(), 3)
    constants = {**Mean().kernel, "tells": True}
    for name in ("weights", "slopes", "matrices"):
        with pytest.raises(ValueError, match="differ in length"):
            kernels.native.Regression(constants, state.buffers() | {name: other.buffers()[name][:-1]})
    assert bits(state) == before


# The regression by itself


def test_a_run_learns_everything_or_nothing() -> None:
    def fussy(p: Any, y: Any) -> Any:
        if np.any(np.asarray(y) == 0.123):
            raise ArithmeticError("not this label")
        return p - y

    rows, features, bases, y = of_stream(Mean(), drifting(60, 2))
    state = OnlineRegression(n_features=10).start(Property(fussy, lipschitz=1.0), 20)
    state.run(rows, features, bases, y)
    before = bits(state)
    y[50] = 0.123
    with pytest.raises(InvalidInput, match="not this label"):
        state.run(rows, features, bases, y)
    assert bits(state) == before


@pytest.mark.parametrize(("name", "position"), [("totals", 0), ("totals", 5), ("totals", 8), ("variation", 1)])
def test_negative_counts_and_squares_are_refused(name: str, position: int) -> None:
    state = OnlineRegression(n_features=2).start(Mean(), 1)
    before, arrays = bits(state), state.arrays()
    arrays[name][position] = -1.0
    with pytest.raises(StateFileError):
        state.restore(arrays)
    assert bits(state) == before


def spoil(array: Any, at: Any, value: float) -> None:
    array[at] = value


BAD: dict[str, Any] = {
    "y": lambda rows, features, bases, y: spoil(y, 7, np.nan),
    "base": lambda rows, features, bases, y: spoil(bases, 29, np.inf),
    "feature": lambda rows, features, bases, y: spoil(features, (29, 9), 1e200),
    "position": lambda rows, features, bases, y: spoil(rows.indices, -1, 20),
    "indptr": lambda rows, features, bases, y: spoil(rows.indptr, 3, rows.indptr[5]),
    "value": lambda rows, features, bases, y: spoil(rows.values, -1, np.nan),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_stream_changes_nothing(what: str) -> None:
    stream = of_stream(Mean(), drifting(30, 2))
    state = OnlineRegression(n_features=10).start(Mean(), 20)
    state.run(*stream)
    before = bits(state)
    for bad in ((*stream[:3], stream[3][:-1]), (stream[0], None, *stream[2:])):
        with pytest.raises(InvalidInput):
            state.run(*bad)
    BAD[what](*stream)
    with pytest.raises(InvalidInput):
        state.run(*stream)
    assert bits(state) == before

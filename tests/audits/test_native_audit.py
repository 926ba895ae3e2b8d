"""The compiled sums of an audit have the bits of their Python twin, and of one round after the other."""

import tracemalloc
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse

from effort import some
from swapcal.audits import Audit
from swapcal.audits.sums import Sums, SumTable
from swapcal.engine import kernels
from swapcal.errors import InvalidInput
from swapcal.hypotheses import Finite
from swapcal.protocols import Row, Rows
from swapcal.typing import Float64Array

native_only = pytest.mark.skipif(
    kernels.backend() == "python", reason="the compiled kernels are not in use, so there are no twins to compare"
)
BACKENDS = ("python", "native") if kernels.backend() == "native" else ("python",)
COLUMNS = tuple(SumTable.__dataclass_fields__)

forecasts = st.one_of(
    st.sampled_from([0.0, -0.0, 0.1, 0.1 + 2.0**-56, 0.5, 5e-324, -5e-324, 1.0]), st.floats(-1e300, 1e300)
)
errors = st.one_of(st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.1, 1e-17, -5e-324]), st.floats(-1.0, 1.0))
entries = st.one_of(st.sampled_from([0.0, 0.0, 0.0, -0.0, 1.0, -1.0, 1 / 3, 1e-200, 5e-324]), st.floats(-1.0, 1.0))


class Stream:
    """Rounds as a test needs them: forecasts, errors, dense contexts, the same contexts as sparse rows, and weights.

    `edges` are those of the bins that forecasts share, if they do.
    """

    def __init__(
        self,
        p: Float64Array,
        v: Float64Array,
        x: Float64Array,
        w: Float64Array | None = None,
        edges: Float64Array | None = None,
    ) -> None:
        self.p, self.v, self.x, self.w, self.edges = p, v, x, w, edges

    @property
    def rows(self) -> Rows:
        matrix = sparse.csr_matrix(self.x)
        matrix.eliminate_zeros()
        return Rows(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data)

    def part(self, part: slice) -> "Stream":
        w = None if self.w is None else self.w[part]
        return Stream(self.p[part], self.v[part], self.x[part], w, self.edges)


@st.composite
def streams(draw: st.DrawFn) -> Stream:
    n_rounds, n = draw(st.integers(1, 25)), draw(st.integers(1, 6))
    p = draw(st.lists(st.sampled_from(draw(st.lists(forecasts, min_size=1, max_size=6))), min_size=n_rounds))
    v = draw(st.lists(errors, min_size=n_rounds, max_size=n_rounds))
    x = draw(st.lists(entries, min_size=n_rounds * n, max_size=n_rounds * n))
    w = draw(st.none() | st.lists(st.sampled_from([0.0, 0.25, 1 / 3, 1.0]), min_size=n_rounds, max_size=n_rounds))
    edges = draw(st.none() | st.lists(st.sampled_from([-1e9, -1.0, 0.0, 0.1, 0.4, 2.0, 7.0]), min_size=2, unique=True))
    return Stream(
        np.array(p[:n_rounds]),
        np.array(v),
        np.array(x).reshape(n_rounds, n),
        None if w is None else np.array(w),
        None if edges is None else np.array(sorted(edges)),
    )


def large(n_rounds: int = 3000, n: int = 70, n_values: int = 900, *, weighted: bool = False) -> Stream:
    rng = np.random.default_rng(5)
    x = rng.uniform(-1.0, 1.0, (n_rounds, n)) * (rng.random((n_rounds, n)) < rng.random((n_rounds, 1)))
    p, v = rng.choice(rng.random(n_values), n_rounds), rng.uniform(-1.0, 1.0, n_rounds)
    return Stream(p, v, x, rng.random(n_rounds), np.linspace(0, 1, 40)) if weighted else Stream(p, v, x)


def bits(sums: Sums) -> list[bytes]:
    table = sums.table()
    return [getattr(table, name).tobytes() for name in COLUMNS]


def summed(stream: Stream, *, backend: str, dense: bool, intervals: bool, parts: int = 1) -> list[bytes]:
    sums = Sums(stream.x.shape[1], edges=stream.edges, intervals=intervals)
    cuts = np.linspace(0, len(stream.p), parts + 1).astype(int)
    with kernels.using(backend):
        for start, end in pairwise(cuts.tolist()):
            piece = stream.part(slice(start, end))
            if len(piece.p):
                sums.add_many(piece.p, piece.v, piece.x if dense else piece.rows, piece.w)
    return bits(sums)


def in_turn(stream: Stream, *, intervals: bool) -> list[bytes]:
    sums = Sums(stream.x.shape[1], edges=stream.edges, intervals=intervals)
    weights = [1.0] * len(stream.p) if stream.w is None else stream.w.tolist()
    for p, v, x, w in zip(stream.p.tolist(), stream.v.tolist(), stream.x, weights, strict=True):
        indices = np.flatnonzero(x)
        sums.add(p, v, Row(indices, x[indices]), w)
    return bits(sums)


@settings(max_examples=some(200), deadline=None)
@given(stream=streams(), intervals=st.booleans(), parts=st.integers(1, 3))
def test_all_ways_to_add_rounds_have_the_same_bits(stream: Stream, intervals: bool, parts: int) -> None:
    expected = in_turn(stream, intervals=intervals)
    for backend in BACKENDS:
        for dense in (False, True):
            assert summed(stream, backend=backend, dense=dense, intervals=intervals, parts=parts) == expected


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intervals", [True, False])
def test_many_values_and_wide_contexts_have_the_same_bits(intervals: bool, weighted: bool) -> None:
    stream = large(weighted=weighted)
    expected = in_turn(stream, intervals=intervals)
    for backend in BACKENDS:
        for dense in (False, True):
            assert summed(stream, backend=backend, dense=dense, intervals=intervals, parts=3) == expected


@pytest.mark.parametrize("backend", BACKENDS)
def test_arrays_may_lie_in_memory_as_they_like(backend: str) -> None:
    # More entries than are looked at together, so that what must be copied is copied in pieces.
    stream = large(9000, 33)
    expected = summed(stream, backend=backend, dense=True, intervals=True)
    strided, frozen = np.repeat(stream.x, 2, axis=1)[:, ::2], stream.x.copy()
    frozen.flags.writeable = False
    raw = np.zeros(stream.x.nbytes + 1, dtype=np.uint8)
    crooked = raw[1:].view(np.float64).reshape(stream.x.shape)
    crooked[...] = stream.x
    assert not crooked.flags.aligned
    for x in (np.asfortranarray(stream.x), strided, frozen, crooked):
        sums = Sums(33)
        with kernels.using(backend):
            sums.add_many(np.repeat(stream.p, 2)[::2], np.repeat(stream.v, 2)[::2], x)
        assert bits(sums) == expected


def test_an_error_that_is_not_finite_stays_in_its_cells() -> None:
    stream = Stream(np.full(3, 0.5), np.array([0.25, np.inf, 0.5]), np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]))
    for backend in BACKENDS:
        for dense in (False, True):
            found = summed(stream, backend=backend, dense=dense, intervals=True)
            assert found == in_turn(stream, intervals=True)
            assert np.frombuffer(found[COLUMNS.index("xv")]).tolist() == [0.75, np.inf]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("signs", [(0.0, -0.0), (-0.0, 0.0), (-0.0, -0.0)])
def test_both_zeros_are_one_forecast(backend: str, signs: tuple[float, float]) -> None:
    with kernels.using(backend):
        sums = Sums(1)
        sums.add_many(np.array(signs), np.array([0.5, -0.25]), np.ones((2, 1)))
    table = sums.table()
    assert table.value.tobytes() == np.zeros(1).tobytes()
    assert (table.count.tolist(), table.v.tolist()) == ([2.0], [0.25])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1.5])
@pytest.mark.parametrize("hypotheses", [None, Finite(3)])
def test_a_bad_dense_entry_is_named_and_leaves_no_trace(backend: str, bad: float, hypotheses: Finite | None) -> None:
    x = np.zeros((4, 3))
    x[2, 1] = bad
    with kernels.using(backend):
        audit = Audit(hypotheses=hypotheses)
        for contexts in (x, x.tolist()):
            with pytest.raises(InvalidInput, match=f"{bad:g}"):
                audit.update_many(np.zeros(4), np.zeros(4), contexts)
        assert audit.n_rounds == 0


@native_only
def test_a_dense_audit_copies_no_contexts() -> None:
    rng = np.random.default_rng(3)
    x = rng.uniform(-1.0, 1.0, (100_000, 40))
    y, p = rng.random(100_000), rng.choice([0.25, 0.75], 100_000)
    audit = Audit()
    tracemalloc.start()
    try:
        audit.update_many(y, p, x)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < x.nbytes / 4


@pytest.mark.parametrize("backend", BACKENDS)
def test_functions_take_room_when_they_come_up(backend: str) -> None:
    """A class with a million functions of which three were ever not 0 takes the memory of a few."""
    rows = Rows(np.array([0, 1, 3, 3]), np.array([0, 0, 5]), np.array([1.0, 1.0, -0.5]))
    p, v, few, many = np.array([0.1, 0.2, 0.1]), np.array([0.5, -0.5, 1.0]), Sums(6), Sums(1_000_000)
    with kernels.using(backend):
        for sums in (few, many):
            sums.add_many(p, v, rows)
        assert sum(array.nbytes for array in many.arrays().values()) < 1000
        with pytest.raises(IndexError):
            few.add_many(p, v, Rows(rows.indptr, rows.indices + 1, rows.values))
    assert (few.n_used, many.n_used, many.n_rounds) == (6, 6, 3)
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(many.table(6), name), getattr(few.table(), name))


@native_only
@settings(max_examples=some(100), deadline=None)
@given(values=st.lists(forecasts, max_size=60))
@example(values=[1.0 + k * 2.0**-52 for k in range(5000)])
@example(values=[k % 5000 / 32768.0 for k in range(10_000)])
def test_distinct_values_are_numbered_as_they_appear(values: list[float]) -> None:
    """Also neighbors of 1 and multiples of a power of two, whose bits differ at either end only."""
    distinct, codes = kernels.native.audit_distinct(np.array(values))
    assert distinct.tolist() == list(dict.fromkeys(values))
    assert distinct[codes].tolist() == values
    assert not np.signbit(distinct[distinct == 0.0]).any()


@native_only
@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"slots": np.array([0, 2])}, IndexError),
        ({"slots": np.array([0, -1])}, IndexError),
        ({"slots": np.array([0])}, ValueError),
        ({"v": np.zeros(3)}, ValueError),
        ({"indptr": np.array([0, 1])}, ValueError),
        ({"indptr": np.array([0, 2, 1])}, ValueError),
        ({"indptr": np.array([1, 1, 2])}, ValueError),
        ({"indptr": np.array([0, 1, 3])}, ValueError),
        ({"indices": np.array([0, 3])}, IndexError),
        ({"indices": np.array([-1, 0])}, IndexError),
        ({"values": np.ones(3)}, ValueError),
        ({"vv": np.zeros(1)}, ValueError),
        ({"p": np.zeros(1)}, ValueError),
        ({"w": np.zeros(1)}, ValueError),
        ({"forecast": np.zeros(1)}, ValueError),
        ({"weight": np.zeros((2, 2))}, ValueError),
    ],
)
def test_kernels_refuse_what_does_not_fit(change: dict[str, Any], error: type[Exception]) -> None:
    sums: dict[str, Any] = {name: np.zeros(2) for name in ("rounds", "count", "v", "vv")}
    sums |= {name: np.zeros((2, 3)) for name in ("xv", "active", "weight", "xvxv")}
    rounds: dict[str, Any] = {
        "slots": np.array([0, 1]),
        "v": np.array([0.5, -0.5]),
        "p": np.array([0.25, 0.75]),
        "w": None,
        "indptr": np.array([0, 1, 2]),
        "indices": np.array([0, 2]),
        "values": np.ones(2),
    }
    sums |= {name: array for name, array in change.items() if name not in rounds}
    rounds |= {name: array for name, array in change.items() if name in rounds}
    with pytest.raises(error):
        kernels.native.audit_add_sparse(sums, *rounds.values())
    assert not any(array.any() for array in sums.values())

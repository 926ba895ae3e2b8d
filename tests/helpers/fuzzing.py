"""How odd inputs are thrown, and what is written down when one is not caught."""

import array
import datetime
import decimal
import fractions
import traceback
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import swapcal as sc
from effort import part
from swapcal.inputs import short_repr
from swapcal.protocols import Elicitable, Row
from swapcal.typing import Float64Array

Rng = np.random.Generator


class Raising:
    """A thing that cannot be a number, and says so."""

    def __float__(self) -> float:
        raise ValueError("not a number")

    def __array__(self, *args: Any, **options: Any) -> Any:
        raise TypeError("not an array")


class Strange:
    """A thing that says it is an array, and is not."""

    shape = (3,)
    dtype = "float64"
    indptr = "indptr"
    indices = None
    data = 5


class Meaning(NamedTuple):
    """An input, what it stands for (None: nothing, so it must be refused), and whether the opposite will do as well."""

    given: Any
    means: Any
    doubtful: bool = False


NOT_NUMBERS: list[Any] = [
    None, "", "0.5", "x", "\x00", "nan", b"0.5", bytearray(b"0.5"), 1j, complex(0.5, 0.0), np.complex128(0.5), np.nan,
    -np.nan, np.inf, -np.inf, np.float32("nan"), np.float16("inf"), decimal.Decimal("NaN"), decimal.Decimal("sNaN"),
    decimal.Decimal("Infinity"), decimal.Decimal("1e400"), fractions.Fraction(10**400), 10**400, -(10**400), 10**5000,
    np.longdouble("1e4000"), datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1), datetime.timedelta(0),
    np.datetime64("1970-01-01T00:00:00.000000000"), np.datetime64("1970-01-01"), np.datetime64("NaT"),
    np.timedelta64(0, "ns"), np.timedelta64("NaT"), np.ma.masked, np.str_("0.5"), np.bytes_(b"0.5"), np.array("0.5"),
    np.array(None), np.array(np.nan), np.array(0.5j), np.array(0.5, dtype=object)[None], np.ma.array(0.5, mask=True),
    np.zeros((), dtype=[("a", float)]), object(), object, float, NotImplemented, Ellipsis, len,
    types.SimpleNamespace(value=0.5), Raising(), Strange(), slice(0, 1), memoryview(b"0.5"), {0.5}, {"y": 0.5}, [],
    (), {}, [0.5, 0.5], [[0.5]], [[0.5], [0.5, 0.5]], iter([0.5]),
]  # fmt: skip
"""Nothing here is one number."""

NOT_ARRAYS = [each for each in NOT_NUMBERS if not isinstance(each, (np.ndarray, list, tuple))]
"""An array that is put into an array is unpacked, and may then be a number."""


FORMS: list[Callable[[float], Any]] = [
    decimal.Decimal, fractions.Fraction, np.array, np.float64, np.longdouble,
    lambda value: np.array(value, dtype=object), lambda value: np.ma.array(value, mask=False),
]  # fmt: skip
"""A number in other words."""


def scalar(rng: Rng, low: float, high: float) -> Meaning:
    """One number of [low, high] in one of its many forms, or something that is none."""
    if rng.random() < 0.5:
        return Meaning(NOT_NUMBERS[int(rng.integers(len(NOT_NUMBERS)))], None)
    kind = int(rng.integers(len(FORMS) + 9))
    value = float(rng.choice([low, high, rng.uniform(low, high), 0.5 * (low + high)]))
    if kind < len(FORMS):
        return Meaning(FORMS[kind](value), value)
    if kind == len(FORMS):
        outside = float(rng.choice([high + (high - low), low - 1e-9 * (high - low) - 1e-300, 1e308, -1e308, 1e12]))
        return Meaning(outside, None)
    if kind == len(FORMS) + 1:
        half = np.float16(0.5 * (low + high))
        return Meaning(half, float(half))
    if kind == len(FORMS) + 2:
        return Meaning(np.array([value]), value, doubtful=True)
    if kind == len(FORMS) + 3 and low <= 0.0 and high >= 1.0:
        one = bool(rng.integers(2))
        forms = [one, np.bool_(one), int(one), np.int8(one), np.uint64(one)]
        return Meaning(forms[int(rng.integers(5))], float(one), True)
    return Meaning(value, value)


def _spoiled(rng: Rng, x: Float64Array) -> Any:
    """The vector with one entry that is not a number."""
    at, wrong = int(rng.integers(len(x))), NOT_NUMBERS[int(rng.integers(len(NOT_NUMBERS)))]
    entries: list[Any] = x.tolist()
    entries[at] = wrong
    kind = int(rng.integers(5))
    if kind == 0:
        return tuple(entries) if len(entries) != 2 else entries
    if kind == 1:
        boxed = np.empty(len(entries), dtype=object)
        boxed[:] = [None] * len(entries)
        for i, entry in enumerate(entries):
            boxed[i] = entry
        return boxed
    if kind == 2:
        spoiled = x.copy()
        spoiled[at] = rng.choice([np.nan, np.inf, -np.inf])
        return spoiled.astype(rng.choice(["f2", "f4", "f8", "g"]))
    return entries


def _frozen(x: Float64Array) -> Float64Array:
    copy = x.copy()
    copy.setflags(write=False)
    return copy


TYPES: list[Callable[[Float64Array], Any]] = [
    lambda x: np.repeat(x, 2)[::2], lambda x: x[::-1].copy()[::-1], lambda x: array.array("d", x.tolist()),
    lambda x: np.ma.array(x, mask=np.zeros(len(x), dtype=bool)), lambda x: [decimal.Decimal(v) for v in x.tolist()],
    lambda x: np.array([fractions.Fraction(v) for v in x.tolist()], dtype=object), lambda x: x.astype(">f8"), _frozen,
]  # fmt: skip


def _typed(rng: Rng, x: Float64Array) -> Meaning:
    """The same vector as another type; rounded beforehand where the type rounds."""
    kind = int(rng.integers(len(TYPES) + 4))
    if kind < len(TYPES):
        return Meaning(TYPES[kind](x), x)
    if kind < len(TYPES) + 2:
        short = x.astype((np.float32, np.float16)[kind - len(TYPES)])
        return Meaning(short, short.astype(float))
    if kind == len(TYPES) + 2:
        return Meaning(np.sign(x).astype(rng.choice(["i1", "i4", "i8"])), np.sign(x))
    return Meaning(x > 0, (x > 0).astype(float))


def _misshapen(rng: Rng, x: Float64Array) -> Any:
    n = len(x)
    shapes: list[Callable[[], Any]] = [
        lambda: np.append(x, 0.0),
        lambda: x[:-1],
        lambda: np.zeros(0),
        lambda: np.zeros((0, n)),
        lambda: np.array(0.5),
        lambda: x[None, :],
        lambda: x[:, None],
        lambda: np.zeros((2, n)),
        lambda: np.zeros((1, 1, n)),
        lambda: [x.tolist(), x.tolist()[:-1]],
        lambda: [*x.tolist()[:-1], [0.5]],
        lambda: [[v] for v in x.tolist()],
        lambda: (v for v in x.tolist()),
        lambda: set(range(n)),
        lambda: x.astype(complex),
        lambda: x.astype(str),
        lambda: x.astype("S8"),
        lambda: np.zeros(n, dtype="M8[ns]"),
        lambda: np.zeros(n, dtype="M8[D]"),
        lambda: np.zeros(n, dtype="m8[s]"),
        lambda: np.zeros(n, dtype=[("a", float)]),
        lambda: np.zeros(n, dtype="V8"),
        lambda: np.full(n, None),
        lambda: np.array([{}] * n, dtype=object),
        lambda: np.ma.array(x, mask=np.eye(n, dtype=bool)[int(rng.integers(n))]),
        lambda: NOT_NUMBERS[int(rng.integers(len(NOT_NUMBERS) - 5))],
        lambda: "0" * n,
        lambda: b"\x00" * n if rng.random() < 0.5 else "1" * n,
        lambda: [str(v) for v in x.tolist()],
        lambda: Row(np.arange(n + 1), np.zeros(n + 1)),
        lambda: Row(None, None),  # type: ignore[arg-type]
        lambda: sparse.csr_matrix(np.zeros((2, n))),
        lambda: sparse.csr_matrix(np.zeros((1, n + 1))),
        lambda: sparse.coo_matrix(np.zeros((n, 1))) if n > 1 else None,
        lambda: sparse.csr_matrix(x + 0.5j),
        lambda: Strange(),
        lambda: types.SimpleNamespace(indptr=[0, 1], indices=[n], data=[0.5], shape=(1, n)),
        lambda: types.SimpleNamespace(indptr=[0, 1], indices=[0], data=[None], shape=(1, n)),
        lambda: types.SimpleNamespace(indptr=[0, 1], indices=[0], data=[0.5], shape=[n, "x"]),
        lambda: types.SimpleNamespace(indptr=[0, 2], indices=[0, 0], data=[0.5], shape=(1, n)),
    ]
    return shapes[int(rng.integers(len(shapes)))]()


def _sparse(rng: Rng, x: Float64Array) -> Meaning:
    """Mappings, pairs and matrices with one row; right, or wrong in one way."""
    n, at = len(x), np.flatnonzero(x)
    keys, values = at.tolist(), x[at].tolist()
    wrong: list[Any] = [-1, n, 2**31, 2**63, 10**30, 0.5, "0", None, np.nan, (0,), b"0", np.datetime64(0, "D"), 1j]
    order = rng.permutation(len(keys))
    mixed = [keys[i] for i in order], [values[i] for i in order]
    bad = wrong[int(rng.integers(len(wrong)))]
    right: list[Callable[[], Any]] = [
        lambda: dict(zip(*mixed, strict=True)), lambda: (mixed[0], mixed[1]),
        lambda: (np.array(keys, dtype=np.uint8), np.array(values)), lambda: (at.astype(np.uint64), x[at]),
        lambda: Row(at, x[at]), lambda: sparse.csr_matrix(x[None, :]), lambda: sparse.csr_array(x[None, :]),
        lambda: sparse.csc_matrix(x[None, :]), lambda: sparse.coo_matrix(x[None, :]),
        lambda: sparse.lil_matrix(x[None, :]),
    ]  # fmt: skip
    worse: list[Callable[[], Any]] = [
        lambda: {**dict(zip(*mixed, strict=True)), bad: 0.5},
        lambda: {0: NOT_NUMBERS[int(rng.integers(len(NOT_NUMBERS)))]}, lambda: ([*keys, bad], [*values, 0.5]),
        lambda: ([0], [NOT_NUMBERS[int(rng.integers(len(NOT_NUMBERS)))]]), lambda: ([0, 0], [0.5, 0.5]),
        lambda: ([*keys, 0], values), lambda: ([[0], [0, 0]], [0.5]), lambda: ([[0]], [[0.5]]), lambda: ([0], 0.5),
        lambda: ([0.0], [0.5]), lambda: ([0], [[0.5], [0.5, 0.5]]), lambda: (np.zeros(1, dtype="M8[D]"), [0.5]),
        lambda: ([0], np.ma.array([0.5], mask=True)), lambda: ([0], np.array([0.5j])), lambda: ([0], ["0.5"]),
    ]  # fmt: skip
    if rng.random() < 0.5:
        return Meaning(right[int(rng.integers(len(right)))](), x)
    return Meaning(worse[int(rng.integers(len(worse)))](), None)


def context(rng: Rng, n: int, *, tiny: bool = True) -> Meaning:
    """One context of length n, n above 2, with entries in [-1, 1]; some so tiny that their inverse is infinite."""
    x = rng.uniform(-1.0, 1.0, n) * (rng.random(n) < 0.7)
    special = rng.random()
    if special < 0.05 and tiny:
        x *= 1e-310
    elif special < 0.1:
        x = np.sign(x)
    kind = rng.random()
    if kind < 0.1:
        return Meaning(x, x)
    if kind < 0.15:
        return Meaning(x.tolist(), x)
    if kind < 0.35:
        return _typed(rng, x)
    if kind < 0.55:
        return _sparse(rng, x)
    if kind < 0.75:
        return Meaning(_spoiled(rng, x), None)
    return Meaning(_misshapen(rng, x), None)


def vector(rng: Rng, x: Float64Array) -> Meaning:
    """A vector of numbers in one of its forms, or something that is none."""
    kind = rng.random()
    if kind < 0.3:
        return Meaning(x, x)
    if kind < 0.5:
        typed = _typed(rng, x)
        return typed if np.array_equal(typed.means, x) else Meaning(x.tolist(), x)
    if kind < 0.75:
        return Meaning(_spoiled(rng, x), None)
    wrong = _misshapen(rng, x)
    return Meaning(wrong, None, doubtful=True)


def table(rng: Rng, X: Float64Array, *, fakes: bool = True) -> Meaning:
    """Contexts of many rounds in one of their forms, or something that is none; `fakes` only look like sparse ones."""
    n_rows, n = X.shape
    indptr = np.concatenate([[0], np.cumsum((X != 0).sum(axis=1))])
    csr: dict[str, Any] = {"indptr": indptr, "indices": np.nonzero(X)[1], "data": X[X != 0], "shape": X.shape}
    right: list[Callable[[], Any]] = [
        lambda: X, lambda: X.tolist(), lambda: np.asfortranarray(X), lambda: np.repeat(X, 2, axis=1)[:, ::2],
        lambda: X.astype(object), lambda: X.astype(">f8"), lambda: np.ma.array(X, mask=False),
        lambda: sparse.csr_matrix(X), lambda: sparse.csc_array(X), lambda: sparse.coo_matrix(X),
        lambda: types.SimpleNamespace(**csr),
    ]  # fmt: skip
    spoiled = X.copy()
    spoiled[int(rng.integers(n_rows)), int(rng.integers(n))] = rng.choice([np.nan, np.inf, -np.inf])
    boxed = X.astype(object)
    boxed[int(rng.integers(n_rows)), int(rng.integers(n))] = NOT_ARRAYS[int(rng.integers(len(NOT_ARRAYS)))]
    field = ["indptr", "indices", "data", "shape"][int(rng.integers(4))]
    odd: list[Any] = [
        None, "x", [], [0], np.zeros(0), np.arange(n_rows + 1)[::-1], csr["indptr"] + 1,
        np.full(len(csr["data"]), np.nan), np.full(len(csr["data"]), -1), np.full(len(csr["data"]), n),
        [10**30] * (n_rows + 1), (n_rows, n + 1), 5,
    ]  # fmt: skip
    worse: list[Callable[[], Any]] = [
        lambda: spoiled,
        lambda: spoiled.tolist(),
        lambda: spoiled.astype(np.float32),
        lambda: sparse.csr_matrix(spoiled),
        lambda: boxed,
        lambda: boxed.tolist(),
        lambda: X[:-1],
        lambda: np.vstack([X, X]),
        lambda: X[:, :-1] if n > 1 else X[:0],
        lambda: X.ravel(),
        lambda: X[:, :, None],
        lambda: X.astype(complex),
        lambda: X.astype(str),
        lambda: np.zeros(X.shape, dtype="M8[ns]"),
        lambda: np.zeros(X.shape, dtype="m8[D]"),
        lambda: np.ma.array(X, mask=np.eye(n_rows, n, dtype=bool)),
        lambda: [row[:1] if t else row for t, row in enumerate(X.tolist())] if n > 1 and n_rows > 1 else None,
        lambda: NOT_NUMBERS[int(rng.integers(51))],
        lambda: sparse.csr_matrix(X[:, :1]) if n > 1 else None,
        lambda: sparse.csr_matrix(X).astype(complex),
        lambda: types.SimpleNamespace(**(csr | {field: odd[int(rng.integers(len(odd)))]})) if fakes else None,
        lambda: Strange() if fakes else None,
        lambda: 2.5 * np.ones(X.shape),
    ]
    if rng.random() < 0.4:
        return Meaning(right[int(rng.integers(len(right)))](), X)
    given = worse[int(rng.integers(len(worse)))]()
    return Meaning(given, None, doubtful=isinstance(given, types.SimpleNamespace))


FULL = {"predict": 38_000, "update": 32_000, "run": 9_000, "errors": 21_000}
PLAN = {name: part(n, n // 40) for name, n in FULL.items()}
"""How many inputs each test throws in all, and in this lane; each counts its own and compares."""

N = 4


def finite() -> sc.Forecaster:
    return sc.Forecaster(sc.Mean(), sc.Finite(N), horizon=200, levels=3, max_pending=64, seed=1)


def linear() -> sc.Forecaster:
    return sc.Forecaster(sc.Expectile(0.3, low=-5.0, high=5.0), sc.Linear(N, radius=0.5), max_pending=64, seed=2)


def learning() -> sc.Forecaster:
    hint = sc.OnlineRegression(n_features=3)
    potential = sc.potentials.Squint()
    hypotheses = sc.Finite(N, potential=potential)
    return sc.Forecaster(sc.Quantile(0.7), hypotheses, bins=5, jitter=0.1, hint=hint, max_pending=64, levels=2, seed=3)


def polynomial() -> sc.Forecaster:
    return sc.Forecaster(sc.Probability(), sc.Finite(N, potential=sc.potentials.PNorm()), max_pending=64, seed=4)


MAKERS = (finite, linear, learning, polynomial)


class Faults:
    """What went wrong, with the input that did it."""

    def __init__(self) -> None:
        self.n, self.accepted, self.found = 0, 0, list[str]()

    def note(self, seed: int, given: Any, what: str) -> None:
        if len(self.found) < 20:
            self.found.append(f"seed {seed}: {what} for {short_repr(given)}")

    def verdict(self, planned: int) -> None:
        assert not self.found, "\n".join(self.found)
        assert self.n == planned
        # Neither everything nor nothing passed: the test would be blind.
        assert 0.02 < self.accepted / self.n < 0.9, self.accepted / self.n


def digest(forecaster: sc.Forecaster) -> Any:
    counters, arrays = forecaster.state.snapshot()
    return counters, {name: (array.shape, array.dtype.str, array.tobytes()) for name, array in arrays.items()}


def is_sound(forecaster: sc.Forecaster) -> bool:
    return all(np.isfinite(array).all() for array in forecaster.state.snapshot()[1].values())


def attempt(
    faults: Faults, seed: int, given: Any, state: Callable[[], Any], call: Callable[[], Any], *, meant: bool | None
) -> Any:
    """The call's result, or None if it was refused; `meant` says whether it should be taken, None that it may be."""
    faults.n += 1
    before = state()
    try:
        result = call()
    except sc.SwapcalError as error:
        if state() != before:
            faults.note(seed, given, f"{type(error).__name__} changed the state")
        if not str(error):
            faults.note(seed, given, "an error without a message")
        if meant is True:
            faults.note(seed, given, f"refused though it is right ({error})")
        return None
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        faults.note(seed, given, f"{type(error).__name__}: {error} (in {where.name}, line {where.lineno})")
        return None
    faults.accepted += 1
    if meant is False:
        faults.note(seed, given, f"taken, with the result {short_repr(result)},")
    return result


def all_mean(*parts: Meaning | None) -> bool | None:
    """Whether a call with these arguments should be taken; None if either will do."""
    given = [part for part in parts if part is not None]
    if any(part.means is None and not part.doubtful for part in given):
        return False
    return None if any(part.doubtful for part in given) else True


def in_domain(property: Elicitable, value: float) -> bool:
    low, high = property.domain
    return isinstance(value, float) and low <= value <= high


def good_context(rng: Rng) -> Float64Array:
    return rng.uniform(-0.5, 0.5, N)


def good_label(forecaster: sc.Forecaster, rng: Rng) -> float:
    low, high = forecaster.property.low, forecaster.property.high
    return float(rng.choice([low, high])) if isinstance(forecaster.property, sc.Probability) else rng.uniform(low, high)


def options(forecaster: sc.Forecaster, rng: Rng) -> dict[str, Any]:
    return {"features": rng.normal(size=3)} if forecaster.hint is not None else {}


def cases(name: str) -> Iterator[tuple[int, Rng]]:
    for seed in range(PLAN[name]):
        yield seed, np.random.default_rng((len(name), seed))


def odd_features(forecaster: sc.Forecaster, rng: Rng) -> Meaning:
    if forecaster.hint is None:
        return Meaning(None, ()) if rng.random() < 0.95 else Meaning([0.5], None)
    return Meaning(rng.normal(size=3), ()) if rng.random() < 0.7 else vector(rng, rng.normal(size=3))


def odd_hint(forecaster: sc.Forecaster, rng: Rng) -> Meaning:
    hint = Meaning(None, None) if rng.random() < 0.6 else scalar(rng, *forecaster.property.domain)
    return Meaning(None, ()) if hint.given is None else hint


def shape_of(given: Any) -> Any:
    return given.shape if isinstance(given, np.ndarray) else None

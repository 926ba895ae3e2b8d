"""How odd inputs are thrown, and what is written down when one is not caught."""

import array
import datetime
import decimal
import fractions
import functools
import traceback
import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import swapcal as sc
from effort import part
from swapcal.inputs import short_repr
from swapcal.protocols import Row
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


def all_mean(*parts: Meaning) -> bool | None:
    """Whether a call with these arguments should be taken; None if either will do."""
    if any(part.means is None and not part.doubtful for part in parts):
        return False
    return None if any(part.doubtful for part in parts) else True


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


def pick(rng: Rng, things: Sequence[Any]) -> Any:
    return things[int(rng.integers(len(things)))]


def scalar(rng: Rng, low: float, high: float) -> Meaning:
    """One number of [low, high] in one of its many forms, or something that is none."""
    if rng.random() < 0.5:
        return Meaning(pick(rng, NOT_NUMBERS), None)
    value, half = float(rng.choice([low, high, rng.uniform(low, high)])), np.float16(0.5 * (low + high))
    forms: list[Any] = [decimal.Decimal(value), fractions.Fraction(value), np.array(value), np.longdouble(value)]
    forms += [np.array(value, dtype=object), np.ma.array(value, mask=False)]
    outside = float(rng.choice([high + (high - low), low - 1e-9 * (high - low) - 1e-300, 1e308, -1e308, 1e12]))
    kinds = [Meaning(form, value) for form in (*forms, *[value] * 6)]
    kinds += [Meaning(outside, None), Meaning(half, float(half)), Meaning(np.array([value]), value, doubtful=True)]
    if low <= 0.0 and high >= 1.0:
        one = bool(rng.integers(2))
        kinds.append(Meaning(pick(rng, [one, np.bool_(one), int(one), np.int8(one), np.uint64(one)]), float(one), True))
    found: Meaning = pick(rng, kinds)
    return found


def _spoiled(rng: Rng, x: Float64Array) -> Any:
    """The vector with one entry that is not a number."""
    at, entries, floats, boxed = int(rng.integers(len(x))), x.tolist(), x.copy(), np.empty(len(x), dtype=object)
    entries[at] = pick(rng, NOT_NUMBERS)
    floats[at] = rng.choice([np.nan, np.inf, -np.inf])
    for i, entry in enumerate(entries):
        boxed[i] = entry
    pair = len(entries) == 2  # a tuple of two would be positions and values
    typed = floats.astype(rng.choice(["f2", "f4", "f8", "g"]))
    return pick(rng, [entries if pair else tuple(entries), boxed, typed, entries])


def _typed(rng: Rng, x: Float64Array) -> Meaning:
    """The same vector as another type; rounded beforehand where the type rounds."""
    frozen, single, short = x.copy(), x.astype(np.float32), x.astype(np.float16)
    frozen.setflags(write=False)
    same = [
        np.repeat(x, 2)[::2], x[::-1].copy()[::-1], array.array("d", x.tolist()), np.ma.array(x, mask=False), frozen,
        [decimal.Decimal(v) for v in x.tolist()], np.array([fractions.Fraction(v) for v in x.tolist()], dtype=object),
        x.astype(">f8"),
    ]  # fmt: skip
    whole = np.sign(x).astype(rng.choice(["i1", "i4", "i8"]))
    rounded = [(each, each.astype(float)) for each in (single, short, whole, x > 0)]
    found: Meaning = pick(rng, [*(Meaning(each, x) for each in same), *(Meaning(*each) for each in rounded)])
    return found


def _misshapen(rng: Rng, x: Float64Array) -> Any:
    n, entries, fake = len(x), x.tolist(), functools.partial(types.SimpleNamespace, indptr=[0, 1], shape=(1, len(x)))
    return pick(rng, [
        np.append(x, 0.0), x[:-1], np.zeros(0), np.zeros((0, n)), np.array(0.5), x[None, :], x[:, None],
        np.zeros((2, n)), np.zeros((1, 1, n)), [entries, entries[:-1]], [*entries[:-1], [0.5]], [[v] for v in entries],
        (v for v in entries), set(range(n)), x.astype(complex), x.astype(str), x.astype("S8"), "0" * n, b"\x00" * n,
        *(np.zeros(n, dtype=kind) for kind in ("M8[ns]", "M8[D]", "m8[s]", [("a", float)], "V8")), np.full(n, None),
        np.array([{}] * n, dtype=object), np.ma.array(x, mask=np.eye(n, dtype=bool)[int(rng.integers(n))]),
        pick(rng, NOT_NUMBERS[:-5]), [str(v) for v in entries], Row(np.arange(n + 1), np.zeros(n + 1)),
        Row(None, None), sparse.csr_matrix(np.zeros((2, n))), sparse.csr_matrix(np.zeros((1, n + 1))),  # type: ignore[arg-type]
        sparse.coo_matrix(np.zeros((n, 1))) if n > 1 else None, sparse.csr_matrix(x + 0.5j), Strange(),
        fake(indices=[n], data=[0.5]), fake(indices=[0], data=[None]), fake(indices=[0], data=[0.5], shape=[n, "x"]),
        fake(indptr=[0, 2], indices=[0, 0], data=[0.5]),
    ])  # fmt: skip


def _sparse(rng: Rng, x: Float64Array) -> Meaning:
    """Mappings, pairs and matrices with one row; right, or wrong in one way."""
    at, row = np.flatnonzero(x), x[None, :]
    order = rng.permutation(len(at))
    keys, values = at[order].tolist(), x[at[order]].tolist()
    if rng.random() < 0.5:
        right = [
            dict(zip(keys, values, strict=True)), (keys, values), (at.astype(np.uint8), x[at]), Row(at, x[at]),
            (at.astype(np.uint64), x[at]), sparse.csr_matrix(row), sparse.csr_array(row), sparse.csc_matrix(row),
            sparse.coo_matrix(row), sparse.lil_matrix(row),
        ]  # fmt: skip
        return Meaning(pick(rng, right), x)
    positions: list[Any] = [-1, len(x), 2**31, 2**63, 10**30, 0.5, "0", None, np.nan, (0,), b"0", np.datetime64(0, "D")]
    bad = pick(rng, positions)
    worse = [
        {**dict(zip(keys, values, strict=True)), bad: 0.5}, {0: pick(rng, NOT_NUMBERS)}, ([*keys, bad], [*values, 0.5]),
        ([0], [pick(rng, NOT_NUMBERS)]), ([0, 0], [0.5, 0.5]), ([*keys, 0], values), ([[0], [0, 0]], [0.5]),
        ([[0]], [[0.5]]), ([0], 0.5), ([0.0], [0.5]), ([0], [[0.5], [0.5, 0.5]]), (np.zeros(1, dtype="M8[D]"), [0.5]),
        ([0], np.ma.array([0.5], mask=True)), ([0], np.array([0.5j])), ([0], ["0.5"]),
    ]  # fmt: skip
    return Meaning(pick(rng, worse), None)


def context(rng: Rng, n: int) -> Meaning:
    """One context of length n, n above 2, with entries in [-1, 1]; some so tiny that their inverse is infinite."""
    x = rng.uniform(-1.0, 1.0, n) * (rng.random(n) < 0.7)
    special, kind = rng.random(2)
    x = x * 1e-310 if special < 0.05 else np.sign(x) if special < 0.1 else x
    if kind < 0.15:
        return Meaning(x if kind < 0.1 else x.tolist(), x)
    if kind < 0.55:
        return _typed(rng, x) if kind < 0.35 else _sparse(rng, x)
    return Meaning(_spoiled(rng, x) if kind < 0.75 else _misshapen(rng, x), None)


def vector(rng: Rng, x: Float64Array) -> Meaning:
    """A vector of numbers in one of its forms, or something that is none."""
    kind, typed = rng.random(), _typed(rng, x)
    if kind < 0.5:
        return typed if kind > 0.3 and np.array_equal(typed.means, x) else Meaning(x, x)
    return Meaning(_spoiled(rng, x), None) if kind < 0.75 else Meaning(_misshapen(rng, x), None, doubtful=True)


def table(rng: Rng, X: Float64Array, *, fakes: bool = True) -> Meaning:
    """Contexts of many rounds in one of their forms, or something that is none; `fakes` only look like sparse ones."""
    n_rows, n = X.shape
    csr = sparse.csr_matrix(X)
    made = {"indptr": csr.indptr, "indices": csr.indices, "data": csr.data, "shape": X.shape}
    if rng.random() < 0.4:
        right = [
            X, X.tolist(), np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], X.astype(object), X.astype(">f8"),
            np.ma.array(X, mask=False), csr, sparse.csc_array(X), sparse.coo_matrix(X), types.SimpleNamespace(**made),
        ]  # fmt: skip
        return Meaning(pick(rng, right), X)
    spoiled, boxed, at = X.copy(), X.astype(object), (int(rng.integers(n_rows)), int(rng.integers(n)))
    spoiled[at] = rng.choice([np.nan, np.inf, -np.inf])
    boxed[at] = pick(rng, NOT_ARRAYS)
    odd: list[Any] = [
        None, "x", [], [0], np.zeros(0), np.arange(n_rows + 1)[::-1], csr.indptr + 1, np.full(csr.nnz, np.nan),
        np.full(csr.nnz, -1), np.full(csr.nnz, n), [10**30] * (n_rows + 1), (n_rows, n + 1), 5,
    ]  # fmt: skip
    ragged = [row[:1] if t else row for t, row in enumerate(X.tolist())] if n > 1 and n_rows > 1 else None
    fake = types.SimpleNamespace(**made | {pick(rng, list(made)): pick(rng, odd)})
    worse = [
        spoiled, spoiled.tolist(), spoiled.astype(np.float32), sparse.csr_matrix(spoiled), boxed, boxed.tolist(),
        X[:-1], np.vstack([X, X]), X[:, :-1] if n > 1 else X[:0], X.ravel(), X[:, :, None], X.astype(complex),
        X.astype(str), np.zeros(X.shape, dtype="M8[ns]"), np.ma.array(X, mask=np.eye(n_rows, n, dtype=bool)), ragged,
        pick(rng, NOT_NUMBERS[:51]), sparse.csr_matrix(X[:, :1]) if n > 1 else None, csr.astype(complex),
        2.5 * np.ones(X.shape), *([fake, Strange()] if fakes else []),
    ]  # fmt: skip
    given = pick(rng, worse)
    return Meaning(given, None, doubtful=isinstance(given, types.SimpleNamespace))


FULL = {"predict": 38_000, "update": 32_000, "run": 9_000, "errors": 21_000}
PLAN = {name: part(n, n // 40) for name, n in FULL.items()}
"""How many inputs each test throws in all, and in this lane."""


class Throw(NamedTuple):
    """A call with odd arguments, whether it should be taken (None: it may be), and what is wrong with its result."""

    given: Any
    call: Callable[[], Any]
    meant: bool | None
    wrong: Callable[[Any], str | None]


def play(name: str, throw: Callable[[Any, Rng], Throw], targets: Sequence[Any], state: Callable[[Any], Any]) -> None:
    """Throws all inputs of a test at its targets in turn: a right answer, or a named error that changes no state."""
    faults, accepted = list[str](), 0
    for seed in range(PLAN[name]):
        target, rng = targets[seed % len(targets)], np.random.default_rng((len(name), seed))
        thrown = throw(target, rng)
        before, fault = state(target), None
        try:
            result = thrown.call()
        except sc.SwapcalError as error:
            if state(target) != before or not str(error) or thrown.meant is True:
                fault = f"{type(error).__name__}, {error}, though it is right, or the state has changed"
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            fault = f"{type(error).__name__}: {error} (in {where.name}, line {where.lineno})"
        else:
            accepted += 1
            fault = f"taken: {short_repr(result)}" if thrown.meant is False else thrown.wrong(result)
        if fault:
            faults.append(f"seed {seed}: {fault} for {short_repr(thrown.given)}")
    assert not faults, "\n".join(faults[:20])
    # Neither everything nor nothing passed: the test would be blind.
    assert 0.02 < accepted / PLAN[name] < 0.9, accepted / PLAN[name]

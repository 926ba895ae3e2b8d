"""The edges of the binding: what the kernels leave to Python, and what they refuse."""

import dataclasses
import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import swapcal as sc
from native_streams import GAMES, Game, assert_twins, digest, told
from swapcal.engine import kernels

pytestmark = pytest.mark.skipif(
    kernels.backend() == "python", reason="the compiled kernels are not installed, or switched off"
)

Change = Callable[[sc.Forecast], sc.Forecast]


def changed(**fields: Any) -> Change:
    return lambda forecast: dataclasses.replace(forecast, **fields)


def context(indices: list[int], values: list[float]) -> Change:
    return changed(context=sc.Forecast.packed(indices, values))


class Word(str):
    """Equal to the word, and not quite one."""


CHANGES: dict[str, Change] = {
    "nothing": changed(),
    "another context": context([0, 3], [0.5, -0.25]),
    "a level's context": context([0, 6], [0.5, 1.0]),
    "no context": context([], []),
    "a context with a zero": context([0, 1], [0.0, 1.0]),
    "a position beyond the class": context([0, 99], [1.0, 1.0]),
    "a negative position": context([-1, 0], [1.0, 1.0]),
    "positions out of order": context([2, 0], [1.0, 1.0]),
    "a position twice": context([2, 2], [1.0, 1.0]),
    "a large value": context([0], [1.5]),
    "a value that is no number": context([0], [float("nan")]),
    "bytes of a context": changed(context=b"x" * 32),
    "a value off the grid": changed(value=0.123),
    "a value beyond the domain": changed(value=-5.0),
    "a whole value": changed(value=0),
    "a value of NumPy": lambda forecast: dataclasses.replace(forecast, value=np.float64(forecast.value)),
    "the other value": lambda forecast: dataclasses.replace(forecast, value=forecast.other),
    "evidence at an end": changed(evidence_at=1.0),
    "evidence beyond": changed(evidence_at=1.5),
    "evidence at a whole number": changed(evidence_at=0),
    "another kind": changed(kind="low"),
    "the kind of a pair": changed(kind="pair"),
    "another phi": changed(phi=0.7),
    "a large phi": changed(phi=1e149),
    "a whole phi": changed(phi=1),
    "another hint": changed(hint=0.7),
    "no hint": changed(hint=None),
    "a whole hint": changed(hint=1),
    "a hint of NumPy": changed(hint=np.float32(0.25)),
    "a hint beyond": changed(hint=1.01),
    "a base": changed(base=0.3),
    "a base beyond": changed(base=30.0),
    "features": changed(features=(0.5,)),
    "whole features": changed(features=(1, 2)),
    "two features": changed(features=(1.5, -2.0)),
    "huge features": changed(features=(1e150, 0.0)),
    "features that are words": changed(features=("a", "b")),
    "no features": changed(features=None),
    "no scores": changed(scores=None),
    "too few scores": changed(scores=b"xy"),
    "other scores": changed(scores=bytes(38)),
    "a round to come": changed(round=10**6),
    "the last round there can be": changed(round=2**63 - 1),
    "a round with an outcome": changed(round=0),
    "another forecaster": changed(forecaster="0123456789abcdef"),
    "a word for the forecaster": lambda forecast: dataclasses.replace(forecast, forecaster=Word(forecast.forecaster)),
    "the same forecaster, spelled anew": lambda f: dataclasses.replace(f, forecaster="".join(list(f.forecaster))),
}


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("name", GAMES)
def test_a_changed_forecast_is_taken_or_refused_alike(name: str, what: str) -> None:
    game, hint, features = GAMES[name]
    twins = game.twins()

    def call(forecaster: sc.Forecaster) -> Any:
        first, second = (
            forecaster.predict(np.array([0.5, 0.0, 0.0, -0.5, 0.1]), hint, features=features) for _ in "ab"
        )
        forecaster.update(first, 0.25)
        before = digest(forecaster)
        try:
            forecaster.update(CHANGES[what](second), 0.75)
        except sc.SwapcalError:
            assert digest(forecaster) == before
            forecaster.update(second, 0.75)
            raise

    one, two = (told(twin, call) for twin in twins)
    assert one == two
    assert_twins(twins)


NUMBERS = [0, 1, True, 0.5, -0.0, np.float32(0.3), np.float64(0.25), np.int8(1), Fraction(1, 3), np.array(0.5)]
NOT_NUMBERS = [
    None, "0.5", 10**400, float("nan"), float("inf"), -1e-300, 1.0000001, [0.5], np.array([0.5]), 1j, object(),
]  # fmt: skip


@pytest.mark.parametrize("y", [*NUMBERS, *NOT_NUMBERS], ids=lambda y: "an object" if type(y) is object else repr(y))
@pytest.mark.parametrize("outside", ["error", "clip"])
def test_odd_labels_and_hints_are_taken_or_refused_alike(y: Any, outside: str) -> None:
    twins = Game(sc.Quantile(0.5), "AdaNormalHedge", {"bins": 5, "outside": outside}).twins()
    x = np.ones(5)
    for call in (
        lambda forecaster: forecaster.update(forecaster.predict(x), y),
        lambda forecaster: forecaster.update(forecaster.predict(x, y), 0.5),
        lambda forecaster: forecaster.predict(x, y),
        lambda forecaster: forecaster.distribution(x, y),
    ):
        one, two = (told(twin, call) for twin in twins)
        assert one == two
        assert_twins(twins)


class Odd(np.ndarray):
    """A kind of array with nothing of its own."""


def misaligned(x: Any) -> Any:
    return np.frombuffer(b"0" + x.tobytes(), dtype=x.dtype, offset=1).reshape(x.shape)


def frozen(x: Any) -> Any:
    kept = x.copy()
    kept.flags.writeable = False
    return kept


ARRAYS: dict[str, Callable[[Any], Any]] = {
    "masked, nothing hidden": np.ma.array, "masked, some hidden": lambda x: np.ma.array(x, mask=x == 0.5),
    "big-endian": lambda x: x.astype(">f8"), "strided": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "backward": lambda x: x[..., ::-1], "read-only": frozen, "misaligned": misaligned,
    "float32": lambda x: x.astype(np.float32), "long double": lambda x: x.astype(np.longdouble),
    "whole": lambda x: x.astype(np.int16), "true and false": lambda x: x > 0.0, "objects": lambda x: x.astype(object),
    "objects, one missing": lambda x: np.where(x == 0.5, None, x.astype(object)), "words": lambda x: x.astype(str),
    "complex": lambda x: x.astype(complex), "a subclass": lambda x: x.view(Odd),
    "one dimension more": lambda x: x[None], "a number": lambda x: x.sum(), "too short": lambda x: x[..., 1:],
    "NaN": lambda x: np.where(x == 0.5, np.nan, x), "infinite": lambda x: np.where(x == 0.5, np.inf, x),
    "too large": lambda x: x * 3.0,
}  # fmt: skip


@pytest.mark.parametrize("form", ARRAYS)
@pytest.mark.parametrize("name", ["AdaNormalHedge", "Linear", "GradientDescent", "MultiplicativeWeights"])
def test_odd_arrays_are_read_or_refused_alike(name: str, form: str) -> None:
    game = Game(sc.Mean(), name, {"bins": 5, "hint": sc.OnlineRegression(n_features=2)})
    twins, made = game.twins(), ARRAYS[form]
    x, features = np.array([[0.5, 0.0, 1.0, -1.0, 0.25]] * 3), np.array([[0.5, 1.0]] * 3)
    y, hints = np.array([0.5, 0.25, 1.0]), np.array([0.25, 0.5, 0.75])
    for call in (
        lambda forecaster: forecaster.update(forecaster.predict(made(x[0]), features=features[0]), 0.25),
        lambda forecaster: forecaster.predict(x[0], features=made(features[0])),
        lambda forecaster: forecaster.run(made(x), y, features=features).tobytes(),
        lambda forecaster: forecaster.run(x, made(y), features=features).tobytes(),
        lambda forecaster: forecaster.run(x, y, made(hints), features=features).tobytes(),
        lambda forecaster: forecaster.run(x, y, features=made(features)).tobytes(),
    ):
        one, two = (told(twin, call) for twin in twins)
        assert one == two
        assert_twins(twins)


# What the kernels refuse: anything that would reach beyond an array


LEARNED = (0, 0.125, 0.125, "zero", 0.0, 0.1, 0.1, 0.1, 0.1, 0.0)
"""Slot, the other value, where evidence is taken, how it was found, Phi, and four values of V."""


def engine_of(hint: Any = None, features: Any = None) -> tuple[sc.Forecaster, Any]:
    """An engine for contexts of length 3, with one open round."""
    forecaster = sc.Forecaster(sc.Mean(), sc.Finite(3), bins=4, levels=2, max_pending=8, hint=hint)
    forecaster._round.make_room()
    forecaster.predict(np.ones(3), features=features)
    kernel: Any = forecaster._engine
    return forecaster, kernel._kernel


ROWS: dict[str, Any] = {
    "indptr": np.array([0, 2, 3]), "indices": np.array([0, 2, 1]), "values": np.array([1.0, 0.5, -1.0]),
    "y": np.array([0.3, 0.6]), "hints": None, "features": None, "out": np.zeros(2),
    "progress": np.zeros(3, dtype=np.int64), "late": None,
}  # fmt: skip

BAD_ROWS: dict[str, dict[str, Any]] = {
    "a position beyond the context": {"indices": np.array([0, 2, 3])},
    "a level set's position": {"indices": np.array([0, 4, 1])},
    "a negative position": {"indices": np.array([-1, 2, 1])},
    "a huge position": {"indices": np.array([0, 2**62, 1])},
    "a position twice": {"indices": np.array([2, 2, 1])},
    "positions out of order": {"indices": np.array([2, 0, 1])},
    "an indptr that falls": {"indptr": np.array([0, 3, 2])},
    "an indptr below 0": {"indptr": np.array([-5, 2, 3])},
    "an indptr beyond the end": {"indptr": np.array([0, 2, 4])},
    "a short indptr": {"indptr": np.array([0, 2])},
    "an indptr of a long row": {"indptr": np.array([0, 0, 3])},
    "too few values": {"values": np.ones(2)},
    "too many labels": {"y": np.ones(3)},
    "too few hints": {"hints": np.ones(1)},
    "features without a hint that takes them": {"features": np.ones((2, 1))},
    "too little room for forecasts": {"out": np.zeros(1)},
    "forecasts of another type": {"out": np.zeros(2, dtype=np.float32)},
    "forecasts that cannot be written": {"out": np.broadcast_to(0.0, 2)},
    "a table of positions": {"indices": np.array([[0, 2, 1]])},
    "words for positions": {"indices": np.array(["a", "b", "c"])},
    "progress below 0": {"progress": np.array([-1, 0, 0])},
    "too little progress": {"progress": np.zeros(2, dtype=np.int64)},
    "hints of another type": {"hints": np.array([None, None])},
}


def refused(call: Callable[[], Any], forecaster: sc.Forecaster) -> None:
    before = digest(forecaster)
    with pytest.raises((ValueError, TypeError, RuntimeError)):
        call()
    assert digest(forecaster) == before


@pytest.mark.parametrize("what", BAD_ROWS)
def test_malformed_sparse_runs_are_refused(what: str) -> None:
    forecaster, engine = engine_of()
    refused(lambda: engine.run_sparse(**{**ROWS, "progress": ROWS["progress"].copy(), **BAD_ROWS[what]}), forecaster)
    assert played(engine.run_sparse, **ROWS) == 2
    assert forecaster.n_rounds == 2


def played(run: Callable[..., None], *contexts: Any, **rest: Any) -> int:
    """How many rows a run has done."""
    progress = rest["progress"].copy()
    run(*contexts, **{**rest, "progress": progress})
    return int(progress[0])


@pytest.mark.parametrize(
    "x",
    [
        np.ones((2, 2)), np.ones((3, 3)), np.ones((2, 4)), np.ones(6), np.full((2, 3), np.nan), np.full((2, 3), 1.5),
        np.array([["a"] * 3] * 2), None,
    ],
    ids=repr,
)  # fmt: skip
def test_malformed_dense_runs_are_refused(x: Any) -> None:
    rest = {name: ROWS[name] for name in ("y", "hints", "features", "out", "progress", "late")}
    forecaster, engine = engine_of()
    refused(lambda: engine.run_dense(x, **{**rest, "progress": rest["progress"].copy()}), forecaster)
    assert played(engine.run_dense, np.ones((2, 3)), **rest) == 2


def test_a_bad_context_stops_a_run_where_it_stands() -> None:
    """`Forecaster.run` looks at all contexts first; whoever calls the kernel by hand is stopped at the bad one."""
    rest = {name: ROWS[name] for name in ("y", "hints", "features", "out", "progress", "late")}
    forecaster, engine = engine_of()
    with pytest.raises(ValueError, match="not allowed"):
        engine.run_dense(np.array([[0.0] * 3, [0.0, 0.0, -np.inf]]), **rest)
    assert forecaster.n_rounds == 1


def test_runs_with_a_learning_hint_need_its_features() -> None:
    forecaster, engine = engine_of(sc.OnlineRegression(n_features=2), np.ones(2))
    assert played(engine.run_sparse, **{**ROWS, "features": np.ones((2, 2))}) == 2
    for features in (None, np.ones((2, 1)), np.ones((3, 2)), np.ones(4), np.ones((2, 2)).astype(object)):
        refused(functools.partial(engine.run_sparse, **{**ROWS, "features": features}), forecaster)


@pytest.mark.parametrize(
    ("indices", "values", "hint"),
    [
        ([0, 5], [1.0, 1.0], None), ([-1, 2], [1.0, 1.0], None), ([1, 1], [1.0, 1.0], None),
        ([2, 0], [1.0, 1.0], None), ([0, 1], [1.0], None), ([[0, 1]], [1.0, 1.0], None),
        ([0, 1], [1.0, 1.0], math.nan), ([0, 1], [1.0, 1.0], "0.5"),
    ],
)  # fmt: skip
def test_malformed_rows_are_refused_by_play_and_learn(indices: Any, values: Any, hint: Any) -> None:
    forecaster, engine = engine_of()
    row = np.array(indices), np.array(values)
    refused(lambda: engine.play(*row, hint), forecaster)
    refused(lambda: engine.learn(*row, *LEARNED, 0, hint), forecaster)


@pytest.mark.parametrize(("slot", "t"), [(-1, 0), (4, 0), (2**40, 0), (0, -1), (0, 1), (0, -(2**62)), (0, 2**63)])
def test_slots_and_rounds_that_are_not_there_are_refused_by_learn(slot: int, t: int) -> None:
    forecaster, engine = engine_of()
    row = np.array([0]), np.ones(1)
    refused(lambda: engine.learn(*row, slot, *LEARNED[1:], t, None), forecaster)
    refused(lambda: engine.learn(*row, 0, 0.1, 0.1, "sideways", *LEARNED[4:], 0, None), forecaster)
    engine.learn(*row, 3, *LEARNED[1:], 0, None)
    refused(lambda: engine.learn(*row, 3, *LEARNED[1:], 0, None), forecaster)


def test_scaling_refuses_rows_that_do_not_fit() -> None:
    for indptr in ([0, 4], [0, 2, 1], [1, 2], [-1, 2], []):
        values = np.ones(3)
        with pytest.raises(ValueError, match="indptr"):
            kernels.native.scale_rows(np.array(indptr, dtype=np.int64), values, 1.0)
        assert (values == 1.0).all()
    with pytest.raises(TypeError):
        kernels.native.scale_rows(np.array([0, 3]), np.ones(3, dtype=np.float32), 1.0)


def test_the_kernel_weighs_what_is_read_as_the_potential_does() -> None:
    assert kernels.native is not None
    potential = sc.Finite(1).potential
    rng = np.random.default_rng(5)
    spreads = rng.random(1000) * 10.0 ** rng.integers(-3, 6, 1000)
    sums = spreads * rng.uniform(-1.0, 1.0, 1000)
    weights = np.empty(1000)
    kernels.native.weigh_adanormalhedge(sums, spreads, weights)
    assert (weights == potential.weights(sums, spreads)).all()
    with pytest.raises(ValueError, match="differ in length"):
        kernels.native.weigh_adanormalhedge(sums, spreads[1:], weights)

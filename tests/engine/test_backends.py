"""Both backends in the world: threads, signals, memory, the environment, and the objects that they make."""

import copy
import dataclasses
import gc
import os
import pickle
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effort
import native_streams
import swapcal as sc
from native_streams import GAMES, digest, told
from swapcal.engine import kernels
from swapcal.engine import schedule as replay
from swapcal.engine.round import PythonEngine
from swapcal.potentials import Squint

native = pytest.mark.skipif(
    kernels.backend() == "python", reason="the compiled kernels are not installed, or switched off"
)

# Threads and signals


def slow_stream(n_rounds: int) -> tuple[sc.Forecaster, Any, Any]:
    """A forecaster whose rounds take microseconds each, and a stream for it."""
    rng = np.random.default_rng(1)
    forecaster = sc.Forecaster(sc.Mean(), sc.Finite(8, potential=Squint()), bins=20)
    return forecaster, rng.uniform(-1.0, 1.0, (n_rounds, 8)), rng.random(n_rounds)


def facts(forecaster: sc.Forecaster) -> dict[str, Any]:
    return {name: value for name, value in digest(forecaster).items() if name not in ("identity", "key")}


@native
def test_forecasters_in_threads_give_the_numbers_of_one_after_the_other() -> None:
    makers: list[Callable[[], sc.Forecaster]] = [
        lambda: sc.Forecaster(sc.Mean(), sc.Finite(4), seed=1),
        lambda: sc.Forecaster(sc.Quantile(0.9), sc.Linear(4), jitter=0.1, seed=2, hint=sc.OnlineRegression()),
    ]
    rng = np.random.default_rng(3)
    X, y = rng.uniform(-1.0, 1.0, (20_000, 4)), rng.random(20_000)

    def play(forecaster: sc.Forecaster) -> None:
        for t in range(300):
            forecaster.update(forecaster.predict(X[t], float(y[t - 1])), float(y[t]))
            forecaster.distribution(X[t])
        forecaster.run(X, y)
        forecaster.run(X[:300].tolist(), y[:300])

    alone, beside = ([make() for make in makers] for _ in "ab")
    for forecaster in alone:
        play(forecaster)
    threads = [threading.Thread(target=play, args=(forecaster,)) for forecaster in beside]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [facts(forecaster) for forecaster in alone] == [facts(forecaster) for forecaster in beside]
    assert alone[0].n_rounds == 20_600


@native
def test_a_forecaster_that_runs_lets_everybody_else_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "_chunk", lambda n: 1 << 30)  # the whole run in one call
    (forecaster, X, y), (alone, *_) = (slow_stream(300_000) for _ in "ab")
    alone.run(X, y)
    after = alone.predict(X[0])
    alone.update(after, 0.5)
    thread = threading.Thread(target=forecaster.run, args=(X, y))
    thread.start()
    while forecaster.state.pending.issued < 10:
        assert thread.is_alive()
    forecast = forecaster.predict(X[0])
    assert (forecast.round, forecast.value) == (after.round, after.value)
    forecaster.update(forecast, 0.5)
    thread.join()
    assert facts(forecaster) == facts(alone)


def test_a_call_from_within_a_call_is_an_error_and_no_deadlock() -> None:
    made: list[sc.Forecaster] = []

    def v(p: float, label: float) -> float:
        if made:
            made[0].predict([1.0])
        return p - label

    forecaster = sc.Forecaster(sc.Property(v, lipschitz=1.0), sc.Finite(1), bins=5)
    forecast = forecaster.predict([1.0])
    made.append(forecaster)
    with pytest.raises(sc.SwapcalError, match="under way"):
        forecaster.update(forecast, 0.5)
    made.clear()
    forecaster.update(forecast, 0.5)
    assert forecaster.n_rounds == 1


INTERRUPTED = """
import os, signal, sys
sys.path[:0] = {tests!r}
import test_backends as here
from swapcal.engine import schedule

forecaster, X, y = here.slow_stream(1_000_000)
forecaster.update(forecaster.predict(X[0]), y[0])
before, play, chunks = here.digest(forecaster), schedule.play_alone, []

def interrupted(round, part):
    chunks.append(len(part.labels))
    if len(chunks) == 2:
        os.kill(os.getpid(), signal.SIGINT)
    play(round, part)

schedule.play_alone = interrupted
try:
    forecaster.run(X, y)
except KeyboardInterrupt:
    schedule.play_alone = play
    assert here.digest(forecaster) == before
    assert forecaster.run(X[:10], y[:10]).shape == (10,)
    print("stopped", sum(chunks) <= 200_000)
"""


def python(code: str, **environment: str) -> tuple[int, str, str]:
    """Runs code in a fresh interpreter: its exit code, and what it printed."""
    kept = {name: value for name, value in os.environ.items() if name != kernels.VARIABLE}
    done = subprocess.run(
        [sys.executable, "-c", code], env=kept | environment, capture_output=True, text=True, timeout=1200
    )
    return done.returncode, done.stdout.strip(), done.stderr.strip()


@native
@pytest.mark.skipif(os.name == "nt", reason="signals of this kind are not known here")
def test_an_interrupted_run_leaves_no_trace() -> None:
    """It stops after the chunk in which the signal came: a fraction of a second, and of the million rounds."""
    code = INTERRUPTED.format(tests=[os.path.dirname(__file__), os.path.dirname(native_streams.__file__)])
    assert python(code) == (0, "stopped True", "")


# The environment

BLOCKED = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name == "swapcal._native":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Block())
"""

PLAYED = """
import warnings
import swapcal as sc
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    made = [sc.Forecaster(sc.Mean(), sc.Finite(1), bins=2) for _ in range(2)]
    made[0].run([[1.0]] * 9, [0.25] * 9)
print(sc.backend(), made[0].n_rounds, [(w.category.__name__, w.filename) for w in caught])
"""


@pytest.mark.parametrize(
    ("before", "wanted", "printed"),
    [
        ("", "python", "python 9 []"),
        pytest.param("", "native", "native 9 []", marks=native),
        pytest.param("", None, "native 9 []", marks=native),
        (BLOCKED, None, "python 9 [('UncompiledWarning', '<string>')]"),
        (BLOCKED, "python", "python 9 []"),
    ],
)
def test_the_backend_is_the_one_asked_for(before: str, wanted: str | None, printed: str) -> None:
    environment = {} if wanted is None else {kernels.VARIABLE: wanted}
    assert python(before + PLAYED, **environment) == (0, printed, "")


def test_a_backend_that_cannot_be_had_is_an_error() -> None:
    garbage = "ImportError: the environment variable SWAPCAL_BACKEND must be native or python; it is 'garbage'"
    missing = "ModuleNotFoundError: No module named 'swapcal._native'"
    for before, wanted, sentence in (("", "garbage", garbage), (BLOCKED, "native", missing)):
        code, _, errors = python(before + PLAYED, **{kernels.VARIABLE: wanted})
        assert (code, errors.splitlines()[-1]) == (1, sentence)


def test_a_block_of_code_chooses_its_backend() -> None:
    outside = sc.backend()
    with kernels.using("python"):
        assert sc.backend() == "python"
        assert isinstance(sc.Forecaster(sc.Mean(), sc.Finite(1))._engine, PythonEngine)
    assert sc.backend() == outside
    with pytest.raises(ImportError, match="'fortran'"), kernels.using("fortran"):
        pass
    assert sc.backend() == outside


# Objects


def forecasts_of(name: str) -> tuple[sc.Forecast, sc.Forecast]:
    """The same forecast, made by Python and by a kernel."""
    game, hint, features = GAMES[name]
    made = [told(twin, lambda f: f.predict(np.full(5, 0.4), hint, features=features)) for twin in game.twins()]
    return made[0], made[1]


@native
@pytest.mark.parametrize("name", GAMES)
def test_forecasts_of_both_backends_are_the_same_objects(name: str) -> None:
    ours, kernels_own = forecasts_of(name)
    assert kernels_own == ours
    assert type(kernels_own) is sc.Forecast
    assert hash(kernels_own) == hash(ours)
    assert repr(kernels_own) == repr(ours)
    assert kernels_own.to_json() == ours.to_json()
    assert float(kernels_own) == ours.value
    assert gc.is_tracked(kernels_own) == gc.is_tracked(ours)
    for field in dataclasses.fields(sc.Forecast):
        assert type(getattr(kernels_own, field.name)) is type(getattr(ours, field.name)), field.name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(kernels_own, field.name, 0.0)
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(kernels_own, field.name)
    for twin in (pickle.loads(pickle.dumps(kernels_own)), copy.copy(kernels_own), copy.deepcopy(kernels_own)):
        assert twin == ours


@native
def test_forecasts_survive_the_garbage_collector() -> None:
    """In a cycle, with its forecaster gone; and made while the collector runs somebody's code that forecasts too."""
    forecaster = sc.Forecaster(sc.Mean(), sc.Finite(3), bins=3, seed=1)
    kept = [forecaster.predict(np.ones(3)) for _ in range(100)]
    kept.append(kept)  # type: ignore[arg-type]
    del forecaster
    gc.collect()
    assert [forecast.round for forecast in kept[:100]] == list(range(100))
    assert {forecast.indices for forecast in kept[:100]} == {(0, 1, 2)}

    inner: list[sc.Forecast] = []

    class Nosy:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            inner.append(other.predict(np.array([0.0, 1.0, 0.0])))

    other, outer = sc.Forecaster(sc.Mean(), sc.Finite(3), bins=3, seed=1), []
    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(200):
            Nosy()
            outer.append(other.predict(np.array([1.0, 0.0, 0.5])))
    finally:
        gc.set_threshold(*before)
    gc.collect()
    assert len(inner) == 200
    assert {(forecast.indices, forecast.values) for forecast in outer} == {((0, 2), (1.0, 0.5))}
    assert {forecast.indices for forecast in inner} == {(1,)}
    assert sorted(forecast.round for forecast in inner + outer) == list(range(400))


@native
@pytest.mark.parametrize("name", GAMES)
def test_rounds_leave_nothing_behind(name: str) -> None:
    """Two hundred thousand rounds over five games (or a tenth), and as many updates that are refused."""
    game, hint, features = GAMES[name]
    forecaster = game.twins()[1].forecaster
    x, stale = np.full(5, 0.3), forecaster.predict(np.full(5, 0.3), hint, features=features)
    forecaster.update(stale, 0.5)
    watched = (None, forecaster.state.identity, x, features, hint, stale, stale.context)

    def play(n_rounds: int) -> None:
        for t in range(n_rounds):
            forecaster.update(forecaster.predict(x, hint, features=features), (t * 0.618) % 1.0)
            assert forecaster._engine.update(stale, 0.5) is False
            assert forecaster._engine.predict("x", hint, features) is None

    play(1_000)
    gc.collect()
    counts = [sys.getrefcount(one) for one in watched]
    tracemalloc.start()
    try:
        play(2_000)
        start = tracemalloc.get_traced_memory()[0]
        play(effort.part(37_000, 3_700))
        grown = tracemalloc.get_traced_memory()[0] - start
    finally:
        tracemalloc.stop()
    assert grown < 20_000
    assert max(abs(sys.getrefcount(one) - count) for one, count in zip(watched, counts, strict=True)) < 20


@native
@pytest.mark.parametrize("backend", ["python", "native"])
def test_where_the_backends_once_differed(backend: str) -> None:
    with kernels.using(backend):
        forecaster = sc.Forecaster(sc.Mean(), sc.Finite(2), bins=3)
        forecaster.run([[1.0, 0.0]] * 2, [0.5, np.nan], [np.nan, 0.5], missing="skip")
        assert forecaster.state.hinted is False
        learning = sc.Forecaster(sc.Mean(), sc.Finite(2), bins=3, hint=sc.OnlineRegression(n_features=1))
        with pytest.raises(sc.InvalidInput, match="at most 1e"):
            learning.run([[1.0, 0.0]] * 2, [0.5, 0.5], features=[[1.0], [1e200]])
        assert learning.n_rounds == 0


@pytest.mark.parametrize("hinted", [False, True])
@pytest.mark.parametrize("guide", [None, sc.OnlineRegression()], ids=["given", "learned"])
def test_expected_is_the_mean_of_the_distribution_and_changes_nothing(
    guide: Any, hinted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    X = (rng.random((2000, 3)) < 0.4).astype(float)
    hints = rng.random(2000)
    y = (rng.random(2000) < (hints + X[:, 1]) / 2).astype(float)
    forecaster = sc.Forecaster(sc.Probability(), sc.Finite(3), seed=1, hint=guide)
    forecaster.run(X, y, hints if hinted else None)
    before = forecaster.to_bytes()
    given = hints[:60] if hinted else None
    pairs = zip(X[:60], [None] * 60 if given is None else given.tolist(), strict=True)
    wanted = [sum(v * p for v, p in forecaster.distribution(x, h).items()) for x, h in pairs]
    assert forecaster.expected(X[:60], given) == pytest.approx(wanted, abs=1e-14)
    monkeypatch.setattr(type(forecaster._engine), "look", lambda *arguments: False)
    assert forecaster.expected(X[:60], given) == pytest.approx(wanted, abs=1e-14)
    assert forecaster.to_bytes() == before
    if hinted:
        assert float(np.ptp(np.subtract(wanted, hints[:60]))) > 0.01

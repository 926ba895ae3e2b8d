"""One forecaster in many threads: no round is lost, and whatever is saved meanwhile can be loaded."""

import io
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swapcal as sc


@pytest.fixture(autouse=True)
def _impatient() -> Iterator[None]:
    """Threads are switched a thousand times as often as usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def records(t: int) -> dict[str, Any]:
    return {"color": "rgb"[t % 3], "size": t % 40}


FORECASTERS: dict[str, Any] = {
    "arrays": (lambda: sc.Forecaster(sc.Mean(), sc.Finite(3), seed=1), lambda t: np.array([1.0, t % 2, t % 5 == 0])),
    "lists": (lambda: sc.Forecaster(sc.Mean(), sc.Finite(3), seed=1), lambda t: [1.0, t % 2, 0.0]),
    "sparse": (lambda: sc.Forecaster(sc.Mean(), sc.Finite(3), seed=1), lambda t: {0: 1.0, t % 2 + 1: 1.0}),
    "groups": (lambda: sc.Forecaster(sc.Mean(), sc.Groups(["color", "size"], limit=60), seed=1), records),
    "learning": (
        lambda: sc.Forecaster(sc.Mean(), sc.Finite(3), hint=sc.OnlineRegression(), seed=1),
        lambda t: np.array([1.0, t % 2, t % 5 == 0]),
    ),
}


def shared(name: str, seconds: float, n_threads: int = 8) -> None:
    """Eight threads forecast and learn, two save and load, all the while."""
    make, context = FORECASTERS[name]
    forecaster, rounds, end = make(), [0] * n_threads, time.monotonic() + seconds
    seen: list[set[int]] = [set() for _ in range(n_threads)]
    failures: list[BaseException] = []

    def play(k: int) -> None:
        try:
            t = 0
            while time.monotonic() < end:
                forecast = forecaster.predict(context(t + k), 0.3)
                seen[k].add(forecast.round)
                forecaster.update(forecast, float(t % 2))
                t += 1
            rounds[k] = t
        except BaseException as error:
            failures.append(error)

    def save() -> None:
        try:
            while time.monotonic() < end:
                file = io.BytesIO()
                forecaster.save(file)
                file.seek(0)
                loaded = sc.Forecaster.load(file)
                assert loaded.n_rounds + loaded.n_pending <= loaded.state.pending.issued
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=play, args=(k,)) for k in range(n_threads)]
    threads += [threading.Thread(target=save) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[:3]
    assert forecaster.n_rounds == sum(rounds) > 0
    assert forecaster.n_pending == 0
    assert len(set().union(*seen)) == sum(rounds)


@pytest.mark.parametrize("name", FORECASTERS)
def test_fault_02_shared_by_threads_nothing_is_lost(name: str) -> None:
    shared(name, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", FORECASTERS)
def test_fault_02_shared_by_threads_for_minutes(name: str) -> None:
    shared(name, 120.0)


def test_fault_03_threads_that_save_to_one_path_leave_a_whole_file_at_every_moment(tmp_path: Path) -> None:
    make, context = FORECASTERS["groups"]
    forecaster, path, end = make(), tmp_path / "state", time.monotonic() + 1.5
    forecaster.save(path)
    failures: list[BaseException] = []
    counts = {"saved": 0, "loaded": 0, "played": 0}

    def guarded(what: str, act: Callable[[], object]) -> None:
        try:
            while time.monotonic() < end:
                act()
                counts[what] += 1
        except BaseException as error:
            failures.append(error)

    def play() -> None:
        forecaster.update(forecaster.predict(context(counts["played"]), 0.3), 1.0)

    acts: list[tuple[str, Callable[[], object]]] = [("played", play)]
    acts += [("saved", lambda: forecaster.save(path))] * 2 + [("loaded", lambda: sc.Forecaster.load(path))] * 2
    threads = [threading.Thread(target=guarded, args=act) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[:3]
    assert min(counts.values()) > 0
    assert [each.name for each in tmp_path.iterdir()] == ["state"]

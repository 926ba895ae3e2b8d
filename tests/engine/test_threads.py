"""One forecaster in many threads and forks: no round is lost, no lock is inherited, what is saved can be loaded."""

import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import effort
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


def together(*acts: Callable[[], object]) -> None:
    """All of them at the same time, each in a thread; the first error of any."""
    failures: list[BaseException] = []

    def guarded(act: Callable[[], object]) -> None:
        try:
            act()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


@pytest.mark.parametrize("name", FORECASTERS)
def test_shared_by_threads_nothing_is_lost(name: str) -> None:
    """Eight threads forecast and learn, two save and load."""
    make, context = FORECASTERS[name]
    forecaster, n, n_saves = make(), effort.part(20_000, 100), effort.part(2000, 8)
    seen: list[int] = []

    def play(k: int) -> None:
        for t in range(n):
            forecast = forecaster.predict(context(t + k), 0.3)
            seen.append(forecast.round)
            forecaster.update(forecast, float(t % 2))

    def save() -> None:
        for _ in range(n_saves):
            file = io.BytesIO()
            forecaster.save(file)
            file.seek(0)
            loaded = sc.Forecaster.load(file)
            assert loaded.n_rounds + loaded.n_pending <= 8 * n

    together(*(lambda k=k: play(k) for k in range(8)), save, save)
    assert (forecaster.n_rounds, forecaster.n_pending, len(set(seen))) == (8 * n, 0, 8 * n)


def test_threads_that_save_to_one_path_leave_a_whole_file_at_every_moment(tmp_path: Path) -> None:
    make, context = FORECASTERS["groups"]
    forecaster, path, n = make(), tmp_path / "state", effort.part(2000, 30)
    forecaster.save(path)

    def play() -> None:
        for t in range(10 * n):
            forecaster.update(forecaster.predict(context(t), 0.3), 1.0)

    def save() -> None:
        for _ in range(n):
            forecaster.save(path)

    def load() -> None:
        for _ in range(n):
            sc.Forecaster.load(path)

    together(play, save, save, load, load)
    assert [each.name for each in tmp_path.iterdir()] == ["state"]


def forked(act: Callable[[], object]) -> int:
    """What a forked child's `act` ends with: 0, or 1 on an error."""
    child = os.fork()
    if child == 0:
        code = 1
        signal.alarm(300)  # one that waits for ever ends, too
        try:
            act()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class Slow:
    """V of the mean, which waits until it is told to go on, once: with the lock of its forecaster."""

    def __init__(self) -> None:
        self.inside, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()

    def __call__(self, p: Any, y: Any) -> Any:
        if not self.go_on.is_set():
            self.inside.set()
            self.go_on.wait()
        return p - y


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
class TestForks:
    def test_a_fork_waits_for_a_call_of_another_thread(self) -> None:
        """So the child finds the lock free and the round whole; without the wait it would wait for ever."""
        v = Slow()
        busy, idle = (sc.Forecaster(sc.Property(v, lipschitz=1.0), sc.Finite(1), bins=5, seed=1) for _ in "ab")
        forecast = busy.predict([1.0])
        v.go_on.clear()
        learning = threading.Thread(target=busy.update, args=(forecast, 1.0))
        learning.start()
        v.inside.wait()

        def act() -> None:
            assert (busy.n_rounds, busy.n_pending) == (1, 0)
            for each in (busy, idle):
                each.update(each.predict([1.0]), 1.0)

        # The call ends when the fork is under way: from then on a new call of that lock would have to wait.
        release = threading.Timer(0.05, v.go_on.set)
        release.start()
        assert forked(act) == 0
        learning.join()
        release.join()
        act()  # the parent goes on too

    def test_children_of_a_process_whose_threads_never_rest(self) -> None:
        forecaster, over = FORECASTERS["groups"][0](), threading.Event()

        def play() -> None:
            while not over.is_set():
                forecaster.update(forecaster.predict(records(0), 0.3), 1.0)

        def fork() -> None:
            try:
                for _ in range(effort.part(200, 10)):
                    assert forked(lambda: forecaster.update(forecaster.predict(records(1)), 0.0)) == 0
            finally:
                over.set()

        together(play, play, fork)


@pytest.mark.parametrize("hint", [0.3, 0.9])
@pytest.mark.parametrize("at", [1])
def test_a_property_that_raises_in_predict_leaves_no_round_open(hint: float, at: int) -> None:
    """A forecast asks V what a correction may cost; here its call number `at` fails."""
    calls: list[int] = []

    def v(p: Any, y: Any) -> Any:
        if calls:
            calls[0] -= 1
            if calls[0] == 0:
                raise RuntimeError("not today")
        return p - y

    forecaster, twin = (
        sc.Forecaster(sc.Property(v, lipschitz=1.0), sc.Finite(1), seed=1, identity="one") for _ in "ab"
    )
    waiting = [each.predict([1.0], 0.3) for each in (forecaster, twin)]
    before = forecaster.to_bytes()
    calls.append(at)
    with pytest.raises(RuntimeError, match="not today"):
        forecaster.predict([1.0], hint)
    calls.clear()
    assert forecaster.to_bytes() == before
    assert forecaster.n_pending == 1
    for each, first in zip((forecaster, twin), waiting, strict=True):
        second = each.predict([1.0], hint)
        each.update(second, 1.0)
        each.update(first, 0.0)
    assert forecaster.to_bytes() == twin.to_bytes()

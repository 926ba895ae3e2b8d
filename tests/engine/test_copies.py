"""Copies, forks and loaded twins of a forecaster share the rounds from before they parted, and no others."""

import copy
import io
import multiprocessing
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import swapcal as sc


def loaded(forecaster: sc.Forecaster) -> sc.Forecaster:
    file = io.BytesIO()
    forecaster.save(file)
    file.seek(0)
    return sc.Forecaster.load(file)


COPIES: dict[str, Callable[[sc.Forecaster], sc.Forecaster]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda forecaster: pickle.loads(pickle.dumps(forecaster)),
    "load": loaded,
}


def started(n_open: int = 3, **parts: Any) -> tuple[sc.Forecaster, list[sc.Forecast]]:
    """A forecaster of some rounds, and forecasts that wait."""
    forecaster = sc.Forecaster(sc.Mean(), sc.Finite(3), seed=5, **parts)
    rng = np.random.default_rng(0)
    for _ in range(200):
        forecaster.update(forecaster.predict([1.0, float(rng.integers(2)), 0.0], rng.random()), rng.random())
    return forecaster, [forecaster.predict([1.0, 0.0, float(k % 2)]) for k in range(n_open)]


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("stored", [False, True])
def test_rounds_from_before_the_cut_are_good_in_every_copy(how: str, stored: bool) -> None:
    forecaster, waiting = started()
    twin = COPIES[how](forecaster)
    for forecast in waiting:
        given = sc.Forecast.from_json(forecast.to_json()) if stored else forecast
        for each in (forecaster, twin):
            each.update(given, 0.5)
            with pytest.raises(sc.AlreadyUpdated):
                each.update(given, 0.5)
    assert forecaster.error() == twin.error()


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("stored", [False, True])
def test_rounds_after_the_cut_belong_to_the_copy_that_issued_them(how: str, stored: bool) -> None:
    forecaster, _ = started()
    twin = COPIES[how](forecaster)
    ours, theirs = forecaster.predict([1.0, 1.0, 0.0]), twin.predict([1.0, 0.0, 1.0])
    assert ours.round == theirs.round
    if stored:
        ours, theirs = (sc.Forecast.from_json(each.to_json()) for each in (ours, theirs))
    for each, wrong in ((forecaster, theirs), (twin, ours)):
        before = each.state.snapshot()
        with pytest.raises(sc.UnknownForecast, match=r"made by a copy of this forecaster.*Give the outcome to the one"):
            each.update(wrong, 1.0)
        after = each.state.snapshot()
        assert before[0] == after[0]
        assert all((before[1][name] == after[1][name]).all() for name in after[1])
    forecaster.update(ours, 1.0)
    twin.update(theirs, 1.0)


def test_a_round_that_was_not_issued_here_at_all_says_whose_it_may_be() -> None:
    forecaster, _ = started()
    ahead = copy.deepcopy(forecaster).predict([1.0, 0.0, 0.0])
    with pytest.raises(sc.UnknownForecast, match=r"never forecast here.*if a copy of this forecaster made"):
        forecaster.update(ahead, 1.0)


def test_the_same_log_played_again_issues_the_same_rounds() -> None:
    """What a service does after a crash: load the last state, forecast anew what came after it, and go on."""
    forecaster, _ = started()
    twin = loaded(forecaster)
    after = [forecaster.predict([1.0, k % 2, 0.0], 0.1 * k).to_json() for k in range(9)]
    again = [twin.predict([1.0, k % 2, 0.0], 0.1 * k).to_json() for k in range(9)]
    assert after == again
    for text in after:
        twin.update(sc.Forecast.from_json(text), 1.0)


@pytest.mark.parametrize("changed", ["context", "hint", "features"])
def test_any_difference_is_noticed(changed: str) -> None:
    forecaster, _ = (
        started(0, hint=sc.OnlineRegression(n_features=0))
        if changed != "features"
        else (sc.Forecaster(sc.Mean(), sc.Finite(3), seed=5, hint=sc.OnlineRegression(n_features=1)), [])
    )
    twin = copy.deepcopy(forecaster)
    ours: dict[str, Any] = {"x": [1.0, 0.0, 0.0], "hint": 0.3}
    theirs = dict(ours)
    if changed == "features":
        ours["features"], theirs["features"] = [0.1], [0.2]
    else:
        others: dict[str, dict[str, Any]] = {"context": {"x": [1.0, 0.0, 1e-9]}, "hint": {"hint": 0.3 + 1e-12}}
        theirs |= others[changed]
    made, other = forecaster.predict(**ours), twin.predict(**theirs)
    assert made.round == other.round
    with pytest.raises(sc.UnknownForecast, match="copy"):
        forecaster.update(other, 1.0)
    forecaster.update(sc.Forecast.from_json(made.to_json()), 1.0)


def _child(forecaster: sc.Forecaster, waiting: sc.Forecast, pipe: Any) -> None:
    forecaster.update(waiting, 0.0)
    pipe.send(forecaster.predict([1.0, 0.0, 1.0]).to_json())


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_and_its_parent() -> None:
    forecaster, [waiting] = started(1)
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=_child, args=(forecaster, waiting, there))
    child.start()
    theirs = sc.Forecast.from_json(here.recv())
    child.join()
    assert child.exitcode == 0
    ours = forecaster.predict([1.0, 1.0, 0.0])
    assert (ours.round, str(ours.forecaster)) == (theirs.round, theirs.forecaster)
    with pytest.raises(sc.UnknownForecast, match="a fork"):
        forecaster.update(theirs, 1.0)
    forecaster.update(ours, 1.0)
    forecaster.update(waiting, 1.0)


def test_rounds_that_run_keeps_are_nobody_elses() -> None:
    forecaster, _ = started(0)
    twin = copy.deepcopy(forecaster)
    forecaster.run([[1.0, 0.0, 0.0]] * 3, [0.5] * 3, known=[99.0] * 3)
    theirs = twin.predict([1.0, 0.0, 0.0])
    for each in (forecaster, loaded(forecaster)):
        with pytest.raises(sc.UnknownForecast, match="copy"):
            each.update(theirs, 1.0)


def test_marks_outlive_a_file_and_a_crowd() -> None:
    """Open rounds keep their marks as the window grows, and through a file."""
    forecaster, waiting = started(3000)
    twin = loaded(forecaster)
    for each in (forecaster, twin):
        for forecast in waiting[::7]:
            each.update(sc.Forecast.from_json(forecast.to_json()), 0.5)
        assert each.n_rounds == forecaster.n_rounds >= len(waiting[::7])
        assert each.n_pending == len(waiting) - len(waiting[::7])

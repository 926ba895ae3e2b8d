"""Forecasts that come back: only as they were made, under a key that is good, to the copy that issued them."""

import copy
import dataclasses
import json
import multiprocessing
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import swapcal as sc
from swapcal import state


def loaded(forecaster: sc.Forecaster) -> sc.Forecaster:
    return sc.Forecaster.from_bytes(forecaster.to_bytes())


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


def asked(n: int = 3, **parts: Any) -> tuple[sc.Forecaster, list[str]]:
    """A forecaster and stored forecasts of it that wait."""
    forecaster = sc.Forecaster(sc.Mean(), sc.Finite(2), seed=1, **parts)
    for k in range(50):
        forecaster.update(forecaster.predict([1.0, k % 2], 0.4), float(k % 2))
    return forecaster, [forecaster.predict([1.0, k % 2], 0.4).to_json() for k in range(n)]


CHANGES: dict[str, Any] = {
    "value": 0.9, "round": 52, "other": 0.9, "probability": 0.5, "evidence_at": 0.3, "values": [1.0, 1.0],
    "kind": "pair", "phi": 0.01, "hint": 0.41, "base": 0.41, "seal": "00" * 32,
}  # fmt: skip


@pytest.mark.parametrize("field", CHANGES)
def test_a_forecast_that_was_changed_is_refused(field: str) -> None:
    forecaster, [first, second, _] = asked()
    data = json.loads(second)
    assert data[field] != CHANGES[field]
    forged = {**data, field: CHANGES[field], **({"indices": [0, 1]} if field == "values" else {})}
    before = forecaster.error()
    with pytest.raises(sc.UnknownForecast, match="not as this forecaster made it"):
        forecaster.update(sc.Forecast.from_dict(forged), 1.0)
    assert forecaster.error() == before
    for whole in (first, second):
        forecaster.update(sc.Forecast.from_json(whole), 1.0)


def test_the_identity_alone_seals_nothing() -> None:
    """Whoever has seen one forecast knows the identity, and cannot make another one."""
    forecaster, [leaked, *_] = asked()
    real = sc.Forecast.from_json(leaked)
    for forged in (dataclasses.replace(real, value=0.1, seal=None), dataclasses.replace(real, round=real.round + 1)):
        with pytest.raises(sc.UnknownForecast, match="seal"):
            forecaster.update(forged, 1.0)
    own = forecaster.predict([1.0, 0.0])
    with pytest.raises(sc.UnknownForecast, match="seal"):
        forecaster.update(dataclasses.replace(own, value=0.1), 1.0)


def test_keys_are_rotated_and_former_seals_stay_good_until_forgotten() -> None:
    forecaster, [first, second, third] = asked()
    inside = forecaster.predict([1.0, 1.0])
    forecaster.rotate_key()
    after = forecaster.predict([1.0, 0.0])
    forecaster.update(sc.Forecast.from_json(first), 1.0)
    forecaster.update(inside, 1.0)
    twin = loaded(forecaster)
    for each in (forecaster, twin):
        each.update(sc.Forecast.from_json(second), 1.0)
        each.forget_keys()
        each.update(sc.Forecast.from_json(after.to_json()), 1.0)
        with pytest.raises(sc.UnknownForecast, match="of a key that was forgotten"):
            each.update(sc.Forecast.from_json(third), 1.0)
    with pytest.raises(sc.UnknownForecast, match="forgotten"):
        loaded(forecaster).update(sc.Forecast.from_json(third), 1.0)


def test_a_key_that_leaked_forges_nothing_once_forgotten() -> None:
    forecaster, _ = asked()
    leaked = forecaster.state.identity
    forecaster.rotate_key()
    waiting = forecaster.predict([1.0, 1.0]).outside()
    forged = dataclasses.replace(waiting, value=waiting.other, seal=leaked.seal(waiting.signed))
    forecaster.forget_keys()
    with pytest.raises(sc.UnknownForecast, match="seal"):
        forecaster.update(forged, 1.0)
    forecaster.update(waiting, 1.0)


def test_forecasters_that_share_a_key() -> None:
    """A key that all copies were given; and forecasters of different identities never take each other's rounds."""
    forecaster, [text, *_] = asked()
    twin, stranger = copy.deepcopy(forecaster), asked()[0]
    for each in (forecaster, twin, stranger):
        each.rotate_key(b"sixteen bytes or more")
        each.rotate_key(b"sixteen bytes or more")
        assert len(each.state.identity.former) == 1
    made = forecaster.predict([1.0, 0.0], 0.2).to_json()
    assert twin.predict([1.0, 0.0], 0.2).to_json() == made
    twin.update(sc.Forecast.from_json(made), 0.0)
    twin.update(sc.Forecast.from_json(text), 0.0)
    with pytest.raises(sc.UnknownForecast, match="made by another forecaster"):
        stranger.update(sc.Forecast.from_json(made), 0.0)


def test_an_identity_of_ones_own_takes_its_forecasts_after_a_replay() -> None:
    def made(seed: int = 9) -> sc.Forecaster:
        return sc.Forecaster(sc.Probability(), sc.Finite(2), seed=seed, identity="store 7")

    stored = made().predict([1.0, 1.0], hint=0.4).to_json()
    replayed = made()
    replayed.predict([1.0, 1.0], hint=0.4)
    replayed.update(sc.Forecast.from_json(stored), 1.0)
    for key in (b"short", "a text is no key of bytes", 7):
        with pytest.raises(sc.InvalidInput, match="at least 16 random bytes"):
            replayed.rotate_key(key)  # type: ignore[arg-type]
    stranger = made(seed=10)
    stranger.predict([1.0, 1.0], hint=0.4)
    with pytest.raises(sc.UnknownForecast, match="seal"):
        stranger.update(sc.Forecast.from_json(stored), 1.0)
    with pytest.raises(sc.InvalidInput, match="identity is a name"):
        sc.Forecaster(sc.Mean(), sc.Finite(2), identity="")


@pytest.mark.parametrize("learning", [False, True])
def test_a_forecast_as_bytes(learning: bool) -> None:
    hint = sc.OnlineRegression() if learning else None
    forecaster = sc.Forecaster(sc.Quantile(0.9), sc.Linear(20) if learning else sc.Finite(20), seed=2, hint=hint)
    x = [float(k % 3 == 0) for k in range(20)]
    forecast = forecaster.predict(x, hint=0.25)
    data = forecast.to_bytes()
    again = sc.Forecast.from_bytes(data)
    assert again == forecast
    assert again.to_bytes() == data
    assert len(data) < 150 + 16 * (sum(x) + 1) + 100 * learning
    assert len(data) < 0.6 * len(forecast.to_json())
    forecaster.update(again, 1.0)
    assert forecaster.n_rounds == 1
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 0x10
        with pytest.raises(sc.UnknownForecast):
            sc.Forecast.from_bytes(bytes(changed))
    payload = bytearray(state.unframed("forecast", data))
    payload[24] ^= 1
    with pytest.raises(sc.UnknownForecast):
        forecaster.update(sc.Forecast.from_bytes(state.framed("forecast", bytes(payload))), 1.0)
    for end in range(12, len(data)):
        with pytest.raises(sc.UnknownForecast):
            sc.Forecast.from_bytes(state.framed("forecast", data[20:end]))

"""Late outcomes, for every model: `run`, single events and the loop of `predict` and `update` are one thing."""

import io
from typing import Any

import numpy as np
import pytest

import swapcal as sc
from late_models import MODELS, loop, model, rows, stream, values

pytestmark = pytest.mark.filterwarnings("ignore::swapcal.errors.AtomsWarning")
ORDERS: list[dict[str, Any]] = [{}, {"order": "forecast"}, {"order": "forecast", "settle": 6}]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("order", ORDERS)
def test_known_times_and_orders(name: str, order: dict[str, Any]) -> None:
    some = stream(name)
    expected = loop(model(name), some, **order)
    assert rows(model(name).run(some.x, some.y, some.hints, known=some.known, **order)) == expected
    halves = model(name)
    first = halves.run(some.x[:50], some.y[:50], some.hints[:50], known=some.known[:50], **order)
    again = reloaded(halves)
    second = again.run(some.x[50:], some.y[50:], some.hints[50:], known=some.known[50:] - 50.0, **order)
    assert rows(first) + rows(second) == expected


def reloaded(own: Any) -> Any:
    file = io.BytesIO()
    own.save(file)
    file.seek(0)
    return type(own).load(file)


@pytest.mark.parametrize("name", MODELS)
def test_outcomes_that_never_come_hold_up_nobody(name: str) -> None:
    some = stream(name)
    y = np.where(some.never, np.nan, some.y)
    own, twin = model(name), model(name)
    order: dict[str, Any] = {"order": "forecast"}
    assert rows(own.run(some.x, y, some.hints, known=some.known, missing="skip", **order)) == loop(
        twin, some._replace(known=np.where(some.never, np.nan, some.known)), never=some.never, **order
    )
    assert own.n_pending == twin.n_pending
    assert own.n_rounds == twin.n_rounds


@pytest.mark.parametrize("name", [name for name in MODELS if "forecaster" not in name and name != "quantile"])
def test_weights_are_factors_and_none_is_forgotten(name: str) -> None:
    some = stream(name)
    own = model(name)
    expected = loop(model(name), some, weights=some.weights)
    known = np.where(some.weights > 0.0, some.known, np.nan)
    assert rows(own.run(some.x, some.y, some.hints, known=some.known, weights=some.weights)) == expected
    assert np.isnan(known).any()


@pytest.mark.parametrize("name", MODELS)
def test_filled_in_is_update_in_that_order(name: str) -> None:
    some = stream(name)
    y, blank = np.where(some.never, np.nan, some.y), np.flatnonzero(some.never)
    own, twin = model(name), model(name)
    shown = own.run(some.x, y, some.hints, missing="skip", waits=some.never)
    forecasts = []
    for t in range(len(y)):
        forecasts.append(twin.predict(some.x[t], some.hints[t]))
        if not some.never[t]:
            twin.update(forecasts[t], label(name, some.y[t]))
    own = reloaded(own)
    assert own.n_pending == twin.n_pending == len(blank)
    order = np.random.default_rng(1).permutation(blank)
    filled = own.fill_in(order, some.y[order])
    assert rows(filled[:, : np.shape(shown)[1]] if np.ndim(shown) == 2 else filled) == rows(shown[order])
    for t in order:
        twin.update(forecasts[t], label(name, some.y[t]))
    again = twin.predict(some.x[0], some.hints[0])
    assert rows(own.run(some.x[:1], some.y[:1], some.hints[:1])) == [values(again)]
    with pytest.raises(sc.AlreadyUpdated):
        own.fill_in(order[:1], some.y[order[:1]])
    with pytest.raises(sc.UnknownForecast):
        own.fill_in([10_000], some.y[:1])


def label(name: str, y: float) -> Any:
    return int(y) if name in ("classes", "prediction set") else float(y)


@pytest.mark.parametrize("name", MODELS)
def test_what_waited_for_too_long_has_expired(name: str) -> None:
    some = stream(name)
    own, twin = model(name, max_pending=8), model(name, max_pending=8)
    forecasts: list[Any] = []
    done: set[int] = set()
    out = []
    for row in range(len(some.y)):
        for t in [t for t in range(row) if t not in done and some.known[t] <= row]:
            done.add(t)
            if t >= row - 8:
                twin.update(forecasts[t], label(name, some.y[t]))
            else:
                with pytest.raises(sc.ExpiredForecast):
                    twin.update(forecasts[t], label(name, some.y[t]))
        forecasts.append(twin.predict(some.x[row], some.hints[row]))
        out.append(values(forecasts[row]))
    assert rows(own.run(some.x, some.y, some.hints, known=some.known)) == out
    assert own.n_pending == twin.n_pending <= 8


@pytest.mark.parametrize("name", MODELS)
def test_each_forecast_is_updated_once(name: str) -> None:
    some = stream(name)
    own = model(name)
    one, two = (own.predict(some.x[t], some.hints[t]) for t in range(2))
    own.update(one, label(name, some.y[0]))
    own.forget(two)
    for closed in (one, two):
        with pytest.raises(sc.AlreadyUpdated):
            own.update(closed, label(name, some.y[0]))
        with pytest.raises(sc.AlreadyUpdated):
            own.forget(closed)
    assert own.n_pending == 0

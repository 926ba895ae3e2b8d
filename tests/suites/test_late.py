"""Late outcomes, for every model: `run`, single events and the loop of `predict` and `update` are one thing."""

import io
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np
import pytest

import swapcal as sc
from effort import crossed
from swapcal.cases import Cases, Events, step

pytestmark = pytest.mark.filterwarnings("ignore::swapcal.errors.AtomsWarning")


class Stream(NamedTuple):
    """Contexts, outcomes, the model's own forecasts, when outcomes are known, weights, and who never has one."""

    x: Any
    y: Any
    hints: Any
    known: Any
    weights: Any
    never: Any


def _forecaster(**settings: Any) -> Any:
    return sc.Forecaster(sc.Mean(), sc.Finite(3), seed=3, **settings)


MODELS: dict[str, Callable[..., Any]] = {
    "forecaster": _forecaster,
    "learning forecaster": lambda **settings: _forecaster(hint=sc.OnlineRegression(), **settings),
    "quantile": lambda **settings: sc.Forecaster(sc.Quantile(0.8), sc.Finite(3), seed=3, jitter=0.01, **settings),
    "quantiles": lambda **settings: sc.Quantiles([0.2, 0.5, 0.9], sc.Finite(3), seed=4, **settings),
    "interval": lambda **settings: sc.Interval(0.8, sc.Finite(3), seed=5, **settings),
    "quantiles of a model": lambda **settings: sc.Quantiles([0.2, 0.5, 0.9], sc.Finite(3), seed=8, **settings),
    "classes": lambda **settings: sc.Classes(3, sc.Finite(3), seed=6, **settings),
    "prediction set": lambda **settings: sc.PredictionSet(0.8, 3, sc.Finite(3), seed=7, **settings),
}


def model(name: str, **settings: Any) -> Any:
    return MODELS[name](**settings)


def stream(name: str, n: int = 120, seed: int = 0) -> Stream:
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(n), rng.random(n) < 0.5, rng.random(n) < 0.3]).astype(float)
    if name in ("classes", "prediction set"):
        hints: Any = rng.dirichlet([2.0, 1.0, 0.5], n)
        y = rng.integers(0, 3, n).astype(float)
    elif name in ("quantiles", "interval", "quantiles of a model"):
        hints = rng.normal(20.0, 5.0, n)
        y = hints + rng.normal(size=n) * (1.0 + 2.0 * x[:, 1])
        if name == "quantiles of a model":
            hints = hints[:, None] + np.where(rng.random((n, 1)) < 0.1, np.nan, [-0.8, 0.0, 1.3])
    else:
        hints = rng.uniform(0.1, 0.9, n)
        y = np.clip(hints + 0.2 * (x[:, 1] - 0.5) + 0.2 * rng.normal(size=n), 0.0, 1.0)
    known = np.arange(n) + rng.integers(1, 25, n).astype(float)
    return Stream(x, y, hints, known, rng.choice([0.0, 0.5, 1.0], n), rng.random(n) < 0.15)


def values(forecast: Any) -> list[float]:
    """The numbers of a forecast that `run` gives."""
    for name in ("probabilities", "members", "values"):
        if isinstance(getattr(forecast, name, None), tuple) and not isinstance(forecast, sc.Forecast):
            return [float(each) for each in getattr(forecast, name)]
    return [forecast.lower, forecast.upper] if hasattr(forecast, "lower") else [float(forecast)]


def learned_before(row: int, known: Sequence[float], done: set[int], order: str, settle: int | None) -> list[int]:
    """Which rows are learned before this one: each of the earlier ones is asked by itself. NaN: its outcome is out."""

    def holds_up(earlier: int) -> bool:
        come = earlier in done or known[earlier] <= row
        return not come and (settle is None or earlier + settle > row)

    due = [t for t in range(row) if t not in done and known[t] <= row]
    if order == "arrival":
        return due
    return [t for t in due if not any(holds_up(earlier) for earlier in range(t))]


def loop(
    own: Any, some: Stream, *, order: str = "arrival", settle: int | None = None, never: Any = None, weights: Any = None
) -> list[list[float]]:
    """`predict`, `update` and `forget`, row by row; what never has an outcome is forgotten at once."""
    done: set[int] = set()
    forecasts: list[Any] = []
    out = []
    for row in range(len(some.y)):
        for t in learned_before(row, some.known.tolist(), done, order, settle):
            own.update(forecasts[t], label(own, some.y[t]))
            done.add(t)
        share = 1.0 if weights is None or not weights[row] else weights[row]
        forecasts.append(own.predict(some.x[row] * share, some.hints[row]))
        out.append(values(forecasts[row]))
        gone = (never is not None and never[row]) or (weights is not None and not weights[row])
        if gone:
            own.forget(forecasts[row])
            done.add(row)
    return out


def label(own: Any, y: float) -> Any:
    return int(y) if isinstance(own, (sc.Classes, sc.PredictionSet)) else float(y)


def rows(array: Any) -> list[list[float]]:
    """What `run` gave, as `loop` gives it."""
    return np.asarray(array, dtype=float).reshape(len(array), -1).tolist()


ORDERS: list[dict[str, Any]] = [{}, {"order": "forecast"}, {"order": "forecast", "settle": 6}]
SIZES = [(1,), (7, 1, 40), (1000,)]


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
            twin.update(forecasts[t], label(twin, some.y[t]))
    own = reloaded(own)
    assert own.n_pending == twin.n_pending == len(blank)
    order = np.random.default_rng(1).permutation(blank)
    filled = own.fill_in(order, some.y[order])
    assert rows(filled[:, : np.shape(shown)[1]] if np.ndim(shown) == 2 else filled) == rows(shown[order])
    for t in order:
        twin.update(forecasts[t], label(twin, some.y[t]))
    again = twin.predict(some.x[0], some.hints[0])
    assert rows(own.run(some.x[:1], some.y[:1], some.hints[:1])) == [values(again)]
    with pytest.raises(sc.AlreadyUpdated):
        own.fill_in(order[:1], some.y[order[:1]])
    with pytest.raises(sc.UnknownForecast):
        own.fill_in([10_000], some.y[:1])


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
                twin.update(forecasts[t], label(twin, some.y[t]))
            else:
                with pytest.raises(sc.ExpiredForecast):
                    twin.update(forecasts[t], label(twin, some.y[t]))
        forecasts.append(twin.predict(some.x[row], some.hints[row]))
        out.append(values(forecasts[row]))
    assert rows(own.run(some.x, some.y, some.hints, known=some.known)) == out
    assert own.n_pending == twin.n_pending <= 8


@pytest.mark.parametrize("name", MODELS)
def test_each_forecast_is_updated_once(name: str) -> None:
    some = stream(name)
    own = model(name)
    one, two = (own.predict(some.x[t], some.hints[t]) for t in range(2))
    own.update(one, label(own, some.y[0]))
    own.forget(two)
    for closed in (one, two):
        with pytest.raises(sc.AlreadyUpdated):
            own.update(closed, label(own, some.y[0]))
        with pytest.raises(sc.AlreadyUpdated):
            own.forget(closed)
    assert own.n_pending == 0


# Events: any mixture of cases, outcomes and words that none will come.


def told(some: Stream, start: int, stop: int, *, never: Any = None, weights: Any = None) -> Events:
    """These rows as events: the outcome of each comes right behind it, with the moment at which it is known."""
    gone = np.zeros(2 * (stop - start), dtype=bool)
    gone[1::2] = False if never is None else never[start:stop]
    y, known = np.full((2, len(gone)), np.nan)
    y[1::2], known[1::2] = some.y[start:stop], some.known[start:stop]
    y[gone] = known[gone] = np.nan
    ids = [f"case {t}" for t in range(start, stop) for _ in range(2)]
    shares = None if weights is None else weights[start:stop]
    return Events(ids, y, some.x[start:stop], some.hints[start:stop], weights=shares, known=known, never=gone)


def ends(sizes: Sequence[int], n: int) -> Iterator[tuple[int, int]]:
    """Where pieces of these sizes, again and again, begin and end."""
    start = 0
    for size in cycle(sizes):
        if start >= n:
            return
        yield start, min(start + size, n)
        start += size


@pytest.mark.parametrize(("name", "order", "sizes"), crossed(MODELS, ORDERS, SIZES))
def test_events_are_the_loop_however_they_are_cut(name: str, order: dict[str, Any], sizes: tuple[int, ...]) -> None:
    some = stream(name, n=60)
    expected = loop(
        model(name), some._replace(known=np.where(some.never, np.nan, some.known)), never=some.never, **order
    )
    cases, shown, status = Cases(model(name), **order), [], []
    for start, stop in ends(sizes, 60):
        played = cases.play(told(some, start, stop, never=some.never))
        shown += rows(played.forecast)[::2]
        status += played.status
        cases = Cases.from_bytes(cases.to_bytes())
    width = len(expected[0])
    assert [each[:width] for each in shown] == expected
    assert status[::2] == ["forecast"] * 60
    assert set(status[1::2]) <= {"learned", "held", "forgotten"}
    assert status[1::2].count("forgotten") == some.never.sum()


@pytest.mark.parametrize("name", MODELS)
def test_events_of_no_weight_are_forgotten_at_once(name: str) -> None:
    some = stream(name, n=60)
    expected = loop(model(name), some, weights=some.weights)
    cases = Cases(model(name))
    played = cases.play(told(some, 0, 60, weights=some.weights))
    assert [each[: len(expected[0])] for each in rows(played.forecast)[::2]] == expected
    of_none = [status for status, share in zip(played.status[1::2], some.weights, strict=True) if not share]
    assert set(of_none) == {"contradicted"}


@pytest.mark.parametrize("name", MODELS)
def test_outcomes_can_be_corrected_before_they_are_learned(name: str) -> None:
    some = stream(name, n=40)
    some = some._replace(known=some.known + 1.0)  # none is due before the next row
    wrong = some.y[::-1].copy()
    expected = loop(model(name), some)
    cases, shown = Cases(model(name), corrections=True), []
    for t in range(40):
        case = Events(
            [t, t], [np.nan, wrong[t]], some.x[t : t + 1], some.hints[t : t + 1], known=[np.nan, some.known[t]]
        )
        played = cases.play(case)
        assert played.status == ["forecast", "held"]
        shown += rows(played.forecast)[:1]
        again = cases.learn([t], some.y[t : t + 1], known=some.known[t : t + 1])
        assert again.status == ["repeated" if wrong[t] == some.y[t] else "corrected"]
    assert [each[: len(expected[0])] for each in shown] == expected
    learned = next(t for t in range(40) if some.known[t] <= 39)
    assert cases.learn([learned], wrong[learned : learned + 1]).status == [
        "repeated" if wrong[learned] == some.y[learned] else "contradicted"
    ]


@pytest.mark.parametrize("name", MODELS)
def test_cases_expire_by_rounds_or_by_word(name: str) -> None:
    some = stream(name, n=20)
    cases = Cases(model(name, max_pending=8), remember=4)
    cases.play(Events(list(range(20)), np.full(20, np.nan), some.x, some.hints))
    assert cases.n_waiting == 8
    assert cases.learn([0, 11, 12], some.y[:3]).status == ["unknown", "expired", "learned"]
    assert cases.expire(15) == [13, 14]
    assert cases.learn([14, 15], some.y[:2]).status == ["expired", "learned"]
    assert len(cases.book.closed) == 4


def test_what_events_cannot_be() -> None:
    cases = Cases(model("forecaster"))
    with pytest.raises(sc.InvalidInput, match="one id and one y"):
        Events(["a"], [1.0, 2.0], [])
    with pytest.raises(sc.InvalidInput, match="its y must be NaN"):
        cases.play(Events(["a"], [1.0], [], never=np.array([True])))
    with pytest.raises(sc.InvalidInput, match="must not fall"):
        cases.play(Events(["a", "a"], [1.0, 1.0], [], times=[2.0, 1.0]))
    with pytest.raises(sc.InvalidInput, match="outside"):
        cases.play(Events(["a"], [np.nan], [[1.0, 0.0, 0.0]], [7.0]))
    clipped = Cases(model("forecaster", outside="clip"))
    assert clipped.play(Events(["a", "a"], [np.nan, 3.0], [[1.0, 0.0, 0.0]], [7.0])).status == ["forecast", "learned"]


def test_times_are_a_clock() -> None:
    cases = Cases(model("forecaster"))
    x = [[1.0, 0.0, 0.0]]
    day = np.array(["2026-01-01", "2026-01-01"], dtype="datetime64[D]")
    later = np.array(["NaT", "2026-01-03"], dtype="datetime64[D]")
    assert cases.play(Events(["a", "a"], [np.nan, 0.3], x, times=day, known=later)).status == ["forecast", "held"]
    assert cases.play(Events(["b"], [np.nan], x, times=day[:1] + 1)).status == ["forecast"]
    assert cases.learn(["a"], [0.3]).status == ["repeated"]
    assert cases.model.n_rounds == 0  # type: ignore[attr-defined]
    cases.play(Events(["c"], [np.nan], x, times=day[:1] + 2))
    assert cases.model.n_rounds == 1  # type: ignore[attr-defined]


def test_a_step_is_pure() -> None:
    some = stream("forecaster", n=30)
    first, events = model("forecaster", identity="k").to_bytes(), told(some, 0, 30)
    assert step(first, events)[0] == step(first, events)[0] != first


def as_they_come(some: Stream, seed: int) -> list[tuple[int, str]]:
    """Cases and outcomes in another order: some twice, some never, another one than the first, too late, forgotten."""
    rng = np.random.default_rng(seed)
    events: list[tuple[float, int, str]] = []
    for t in range(len(some.y)):
        events.append((float(t), t, "case"))
        due = t + (0.5 if rng.random() < 0.5 else float(rng.integers(1, 30)) + float(rng.random()))
        kinds = ["outcome"] if rng.random() < 0.85 else ["never"]
        kinds += [
            str(kind) for kind in rng.permutation(["case", "outcome", "other", "never"])[: int(rng.integers(0, 3))]
        ]
        events += [(due + 0.1 * k, t, kind) for k, kind in enumerate(kinds)]
    return [(t, kind) for _, t, kind in sorted(events)]


@pytest.mark.parametrize(("name", "sizes"), crossed([*MODELS, "groups"], SIZES))
def test_outcomes_as_they_come_are_the_loop(name: str, sizes: tuple[int, ...]) -> None:
    some = stream(name, n=70)
    records = [{"a": f"v{x[1]}", "b": x[2]} for x in some.x]
    contexts = records if name == "groups" else list(some.x)
    other = {"classes": (some.y + 1) % 3, "prediction set": (some.y + 1) % 3}.get(name, 0.5 * some.y)

    def made() -> Any:
        if name == "groups":
            return sc.Forecaster(sc.Mean(), sc.Groups(["a", "b"], limit=20), seed=3, max_pending=16)
        return model(name, max_pending=16)

    twin, forecasts, ended = made(), dict[int, Any](), dict[int, str]()
    expected: list[tuple[list[float], str]] = []
    events = as_they_come(some, 5)
    for t, kind in events:
        if kind == "case":
            if t not in forecasts:
                forecasts[t] = twin.predict(contexts[t], some.hints[t])
                status = "forecast"
            else:
                status = "same forecast"
        elif t in ended:
            equal = {"outcome": "learned", "never": "forgotten"}.get(kind) == ended[t]
            status = "expired" if ended[t] == "expired" else "repeated" if equal else "contradicted"
        else:
            try:
                if kind == "never":
                    twin.forget(forecasts[t])
                else:
                    twin.update(forecasts[t], label(twin, (other if kind == "other" else some.y)[t]))
                status = "forgotten" if kind == "never" else "learned"
                ended[t] = "learned other" if kind == "other" else status
            except sc.ExpiredForecast:
                status = ended[t] = "expired"
        expected.append((values(forecasts[t]), status))
    cases, played = Cases(made()), list[tuple[list[float], str]]()
    for start, stop in ends(sizes, len(events)):
        part = events[start:stop]
        own = [t for t, kind in part if kind == "case"]
        y = [{"outcome": some.y, "other": other}.get(kind, np.full(70, np.nan))[t] for t, kind in part]
        never = np.array([kind == "never" for _, kind in part])
        answers = cases.play(Events([t for t, _ in part], y, [contexts[t] for t in own], some.hints[own], never=never))
        played += zip(rows(answers.forecast), answers.status, strict=True)
        cases = Cases.from_bytes(cases.to_bytes())
    width = len(expected[0][0])
    assert [(shown[:width], status) for shown, status in played] == expected
    assert {"expired", "forgotten", "learned", "repeated", "contradicted"} <= {status for _, status in expected}
    assert cases.model.n_rounds == twin.n_rounds  # type: ignore[attr-defined]

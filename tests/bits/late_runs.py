"""A forecaster whose outcomes come late, never, by weight or filled in; with features, records and frames."""

import itertools
from functools import partial
from typing import Any

import numpy as np

import swapcal as sc
from forecaster_runs import CLASSES
from plays import PROPERTIES, Played, Run, Runs, numbers, reloaded, streams
from swapcal import deterministic

KINDS = ("mean", "probability", "quantile", "expectile")
HINTS = ("none", "frozen", "learned")
SHORT = {"AdaNormalHedge": "Finite", "Linear": "Linear"}
T = 300


class Scene:
    """A forecaster and a stream for it; `options` are those of the forecaster."""

    def __init__(self, property: str, name: str = "AdaNormalHedge", hint: str = "frozen", **options: Any) -> None:
        self.property = PROPERTIES[property]()
        stream = streams(self.property, T, 7)
        self.rng = np.random.default_rng(19)
        self.x, self.y = stream["x"], stream["y"]
        low, high = self.property.domain
        # A model that is so wrong that the forecaster, which shows the model at first, comes to speak for itself.
        self.model = None if hint == "none" else low + high - stream["model"]
        learning = sc.OnlineRegression(n_features=options.pop("n_features", 0)) if hint == "learned" else None
        hypotheses = options.pop("hypotheses", None) or CLASSES[name]()
        self.forecaster = sc.Forecaster(self.property, hypotheses, seed=5, hint=learning, **options)
        # Delays that depend on the outcome, so that the two orders differ.
        large = self.y > np.median(self.y)
        self.delay = np.where(self.rng.random(T) < 0.5, 1, self.rng.integers(1, 10, T) * np.where(large, 2, 1))

    def hints(self, part: slice) -> Any:
        return None if self.model is None else self.model[part]

    def hint(self, t: int) -> float | None:
        return None if self.model is None else float(self.model[t])

    def after(self, *forecasts: Any) -> Played:
        """The forecasts, and what the forecaster then says of itself."""
        model = self.forecaster
        late = model.lateness()
        counts = [model.n_rounds, model.n_pending, late.n_late, late.share]
        promise = float(model.guarantee(0.05)) if model.n_rounds else 0.0
        return Played(numbers(*forecasts, counts, [model.error(), promise]))


def known(property: str, name: str, hint: str) -> Played:
    """Outcomes that are known some rows later, in two pieces of `run`."""
    scene = Scene(property, name, hint)
    due = np.arange(T) + scene.delay.astype(float)
    due[220::29] = np.nan
    parts = [
        scene.forecaster.run(scene.x[part], scene.y[part], scene.hints(part), known=due[part])
        for part in (slice(0, 170), slice(170, T))
    ]
    return scene.after(*parts)


def in_order(property: str, hint: str, settle: int) -> Played:
    """Times of rows and of outcomes, learned in the order of the forecasts; saved in the middle, rounds waiting."""
    scene = Scene(property, hint=hint)
    times = np.datetime64("2026-03-01") + (np.arange(T) // 4).astype("timedelta64[D]")
    due = times + (scene.delay // 4).astype("timedelta64[D]")
    due[180::31] = np.datetime64("NaT")
    parts = []
    for part in (slice(0, 140), slice(140, T)):
        late = {"known": due[part], "times": times[part], "order": "forecast", "settle": settle}
        parts.append(scene.forecaster.run(scene.x[part], scene.y[part], scene.hints(part), **late))
        scene.forecaster = reloaded(scene.forecaster)
    return scene.after(*parts)


def filled_in(property: str, name: str, hint: str) -> Played:
    """Outcomes that are blank at first: some are told later, in pieces, some when they are known, some never."""
    scene = Scene(property, name, hint, protect="loss" if name == "Linear" else "nothing")
    blank = scene.rng.random(T) < 0.3
    waits = blank & (scene.rng.random(T) < 0.8)
    y = np.where(blank, np.nan, scene.y)
    out: list[Any] = []

    def play(start: int, stop: int, late: bool = False) -> None:
        part = slice(start, stop)
        due = {"known": np.arange(start, stop) + scene.delay[part].astype(float)} if late else {}
        out.append(
            scene.forecaster.run(scene.x[part], y[part], scene.hints(part), missing="skip", waits=waits[part], **due)
        )

    def tell(rounds: Any, **due: Any) -> None:
        out.append(scene.forecaster.fill_in(rounds, scene.y[rounds], **due))

    play(0, 120)
    waiting = np.flatnonzero(waits[:120])
    tell(waiting[5:20][::-1])
    scene.forecaster = reloaded(scene.forecaster)
    tell(waiting[:5])
    play(120, 200, late=True)
    tell(waiting[20:25], known=np.arange(205.0, 210.0))
    tell(120 + np.flatnonzero(waits[120:200])[::2])
    scene.forecaster = sc.Forecaster.from_bytes(scene.forecaster.to_bytes())
    play(200, T, late=True)
    return scene.after(*out)


def by_hand(property: str, name: str, hint: str) -> Played:
    """`predict`, `update` and `forget`: late, in another order, some too late for the small window."""
    scene = Scene(property, name, hint, max_pending=12)
    due: dict[int, list[tuple[int, Any]]] = {}
    values, n_expired = [], 0
    for t in range(T):
        forecast = scene.forecaster.predict(scene.x[t], scene.hint(t))
        values += [forecast.value, forecast.other, forecast.probability]
        due.setdefault(t + int(scene.delay[t]), []).append((t, forecast))
        for then, late in reversed(due.pop(t, [])):
            try:
                if then % 11 == 3:
                    scene.forecaster.forget(late)
                else:
                    scene.forecaster.update(late, float(scene.y[then]))
            except sc.ExpiredForecast:
                n_expired += 1
        if t == 150:
            scene.forecaster = reloaded(scene.forecaster)
    return scene.after(values, n_expired)


def many(property: str, hint: str) -> Played:
    """`predict_many` and `update_many`, one batch late."""
    scene = Scene(property, hint=hint, protect="loss" if hint == "learned" else "nothing")
    values: list[float] = []
    before: tuple[Any, Any] | None = None
    for start in range(0, T, 10):
        part = slice(start, start + 10)
        forecasts = scene.forecaster.predict_many(scene.x[part], scene.hints(part))
        values += [float(each) for each in forecasts]
        if before is not None:
            scene.forecaster.update_many(*before)
        before = forecasts[::-1], scene.y[part][::-1]
    return scene.after(values)


def weighted(property: str, hint: str) -> Played:
    """Weights, outcomes that are missing, hints that are missing."""
    scene = Scene(property, hint=hint)
    weights = scene.rng.choice([0.0, 0.25, 1.0], T)
    y = np.where(scene.rng.random(T) < 0.1, np.nan, scene.y)
    hints = None if scene.model is None else np.where(scene.rng.random(T) < 0.1, np.nan, scene.model)
    due = np.arange(T) + scene.delay.astype(float)
    late = scene.forecaster.run(scene.x, y, hints, weights=weights, missing="skip", known=due)
    again = Scene(property, hint=hint)
    return again.after(late, again.forecaster.run(scene.x, y, hints, weights=weights, missing="skip"))


def featured(property: str, name: str) -> Played:
    """Extra features of the learning hint: in `run`, late, and in `predict`."""
    scene = Scene(property, name, "learned", n_features=2)
    features = np.column_stack([np.sin(np.arange(T) / 7.0), 30.0 * scene.rng.random(T)])
    due = np.arange(150) + scene.delay[:150].astype(float)
    first = slice(0, 150)
    values = [
        scene.forecaster.run(scene.x[first], scene.y[first], scene.hints(first), features=features[first], known=due)
    ]
    for t in range(150, T):
        forecast = scene.forecaster.predict(scene.x[t], scene.hint(t), features=features[t])
        scene.forecaster.update(forecast, float(scene.y[t]))
        values.append(np.array([float(forecast)]))
    return scene.after(*values)


def protecting_nothing(property: str, hint: str) -> Played:
    """Late outcomes, and forecasts that are always the engine's."""
    scene = Scene(property, hint=hint, protect="nothing")
    return scene.after(scene.forecaster.run(scene.x, scene.y, scene.hints(slice(0, T)), known=np.arange(T) + 60.0))


def table() -> dict[str, list[Any]]:
    """Columns of records, with blanks."""
    rng = np.random.default_rng(23)
    return {
        "carrier": rng.choice(["AA", "UA", "B6", "DL"], T).tolist(),
        "hour": rng.integers(0, 24, T).tolist(),
        "distance": np.where(rng.random(T) < 0.05, np.nan, rng.gamma(2.0, 300.0, T)).tolist(),
    }


def recorded(property: str, groups: Any, hint: str, frame: bool) -> Played:
    """Groups and columns of numbers, from a frame late or from records one by one."""
    scene = Scene(property, hint=hint, hypotheses=groups)
    columns = table()
    if frame:
        import pandas

        due = np.arange(T) + scene.delay.astype(float)
        return scene.after(
            scene.forecaster.run(pandas.DataFrame(columns), scene.y, scene.hints(slice(0, T)), known=due)
        )
    values = []
    for t in range(T):
        forecast = scene.forecaster.predict({name: column[t] for name, column in columns.items()}, scene.hint(t))
        scene.forecaster.update(forecast, float(scene.y[t]))
        values.append(float(forecast))
    return scene.after(values)


def mean_of_draws(property: str, name: str, hint: str) -> Played:
    """Forecasts without a draw."""
    scene = Scene(property, name, hint)
    means = deterministic.run(scene.forecaster, scene.x, scene.y, scene.hints(slice(0, T)))
    grid = np.linspace(scene.property.low, scene.property.high, 9)
    smooth = deterministic.smooth_error(means, scene.y, scene.x, grid, scene.property)
    return Played(numbers(means), {"smooth error": smooth})


def groups() -> dict[str, Any]:
    """Classes over records."""
    return {
        "Groups": lambda: sc.Groups(["carrier", "hour >= 12", ("carrier", "hour")], limit=30),
        "Numeric": lambda: sc.Numeric(["hour", "distance"]),
    }


def runs() -> Runs:
    """Name and play of every run."""
    for p, c, h in itertools.product(KINDS, SHORT, HINTS):
        yield Run(f"known: {p}, {SHORT[c]}, hint {h}", partial(known, p, c, h))
    for p, h in itertools.product(KINDS, HINTS):
        settle = 12 if h == "frozen" else 40
        yield Run(f"in order: {p}, hint {h}", partial(in_order, p, h, settle))
        yield Run(f"filled in: {p}, Finite, hint {h}", partial(filled_in, p, "AdaNormalHedge", h))
        yield Run(f"by hand: {p}, Finite, hint {h}", partial(by_hand, p, "AdaNormalHedge", h))
    for p in KINDS:
        yield Run(f"filled in: {p}, Linear, hint frozen", partial(filled_in, p, "Linear", "frozen"))
        yield Run(f"by hand: {p}, Linear, hint frozen", partial(by_hand, p, "Linear", "frozen"))
        yield Run(f"weights: {p}", partial(weighted, p, "frozen"))
    for p, h in itertools.product(("probability", "quantile"), HINTS):
        yield Run(f"many: {p}, hint {h}", partial(many, p, h))
    for p, c in itertools.product(("mean", "quantile"), SHORT):
        yield Run(f"features: {p}, {SHORT[c]}", partial(featured, p, c))
    for p, h in itertools.product(("mean", "quantile"), ("frozen", "learned")):
        yield Run(f"protecting nothing: {p}, hint {h}", partial(protecting_nothing, p, h))
    for g, frame in itertools.product(groups(), (True, False)):
        name = f"{g} of {'a frame' if frame else 'records'}"
        for p, h in (("probability", "frozen"), ("mean", "learned")):
            yield Run(f"{name}: {p}, hint {h}", lambda p=p, g=g, h=h, f=frame: recorded(p, groups()[g](), h, f))  # type: ignore[misc]
    for p, c, h in (
        ("mean", "AdaNormalHedge", "none"),
        ("mean", "Linear", "frozen"),
        ("quantile", "AdaNormalHedge", "frozen"),
    ):
        name = f"deterministic: {p}, {SHORT[c]}, hint {h}"
        yield Run(name, partial(mean_of_draws, p, c, h))

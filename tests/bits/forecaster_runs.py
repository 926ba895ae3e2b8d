"""A forecaster by itself, whose outcomes are known at once or a few rounds later."""

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import swapcal as sc
from plays import PROPERTIES, N, Played, Run, Runs, reloaded, streams

CLASSES: dict[str, Callable[[], Any]] = {
    "AdaNormalHedge": lambda: sc.Finite(N),
    "Exponential": lambda: sc.Finite(N, potential=sc.potentials.Exponential(n_rates=6)),
    "Squint": lambda: sc.Finite(N, potential=sc.potentials.Squint()),
    "PNorm": lambda: sc.Finite(N, potential=sc.potentials.PNorm()),
    "Linear": lambda: sc.Linear(N, radius=2.0),
    "GradientDescent": lambda: sc.Oracle(sc.learners.GradientDescent(N)),
    "MultiplicativeWeights": lambda: sc.Oracle(sc.learners.MultiplicativeWeights(N)),
}
HINTS = ("none", "frozen", "learned", "learned on a model")
FORMS: dict[str, dict[str, Any]] = {"horizon": {"horizon": 500}, "anytime": {}}
ODD: dict[str, dict[str, Any]] = {
    "r = 1": {"r": 1.0, "horizon": 500},
    "r = 3": {"r": 3.0},
    "7 bins": {"bins": 7},
    "no trust": {"trust": 0.0, "horizon": 500},
    "more trust": {"trust": 0.5, "horizon": 500},
    "no levels": {"levels": 0, "horizon": 500},
    "jitter": {"jitter": 0.01, "horizon": 500},
    "clip": {"outside": "clip", "horizon": 500},
}


def forecaster(property: Any, hypotheses: Any, hint: str, options: dict[str, Any]) -> Any:
    learning = sc.OnlineRegression() if hint.startswith("learned") else None
    return sc.Forecaster(property, hypotheses, seed=11, hint=learning, **options)


def whole(property: str, name: str, hint: str, options: dict[str, Any], n_rounds: int = 500) -> Played:
    """`run` on the whole stream."""
    part = PROPERTIES[property]()
    stream = streams(part, n_rounds, 3)
    hints = stream["model"] if hint in ("frozen", "learned on a model") else None
    return Played(forecaster(part, CLASSES[name](), hint, options).run(stream["x"], stream["y"], hints).tobytes())


def events(property: str, name: str, hint: str, options: dict[str, Any]) -> Played:
    """`predict` and `update`, every third outcome four rounds late, saved and loaded in the middle."""
    part = PROPERTIES[property]()
    stream, model = streams(part, 300, 5), forecaster(part, CLASSES[name](), hint, options)
    waiting: list[tuple[int, Any]] = []
    values = []
    for t in range(300):
        own = float(stream["model"][t]) if hint in ("frozen", "learned on a model") else None
        forecast = model.predict(stream["x"][t], own)
        values.append(float(forecast))
        waiting.append((t, forecast))
        for then, late in [each for each in waiting if each[0] % 3 or each[0] <= t - 4]:
            model.update(late, float(stream["y"][then]))
            waiting.remove((then, late))
        if t == 150:
            model = reloaded(model)
    return Played(np.array(values).tobytes())


def runs() -> Runs:
    """Name and play of every run."""
    for p, c, h, f in itertools.product(PROPERTIES, CLASSES, HINTS, FORMS):
        if h.startswith("learned") and c not in ("AdaNormalHedge", "Linear", "GradientDescent"):
            continue
        # A horizon changes no forecast, as the digests say: the slow backend plays one form, and events with a horizon.
        play = partial(whole, p, c, h, FORMS[f])
        yield Run(f"run: {p}, {c}, hint {h}, {f}", play, both=f == "anytime")
    for p, h, o in itertools.product(("mean", "quantile"), HINTS, ODD):
        yield Run(f"run: {p}, hint {h}, {o}", partial(whole, p, "AdaNormalHedge", h, ODD[o]))
    for p, c, h in itertools.product(PROPERTIES, ("AdaNormalHedge", "Linear"), HINTS):
        yield Run(f"events: {p}, {c}, hint {h}", partial(events, p, c, h, FORMS["horizon"]))
    for p, h in itertools.product(("mean", "probability", "quantile"), ("none", "frozen")):
        yield Run(f"long: {p}, hint {h}", partial(whole, p, "AdaNormalHedge", h, {}, 20_000))

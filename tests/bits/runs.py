"""Runs whose forecasts are remembered to the last bit: a list, a file of digests, and the command that compares them.

`make bits` plays every run on both backends and names those whose forecasts differ from `digests.json`. After a change
that is meant to move forecasts, `python tests/bits/runs.py --write` makes the file anew; the commit says why.
"""

import argparse
import hashlib
import io
import itertools
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import swapcal as sc

DIGESTS = Path(__file__).with_name("digests.json")
N = 5

PROPERTIES: dict[str, Callable[[], Any]] = {
    "mean": sc.Mean,
    "mean of a range": lambda: sc.Mean(low=-50.0, high=1234.5),
    "probability": sc.Probability,
    "quantile": lambda: sc.Quantile(0.9, low=-3.0, high=5.0),
    "dense quantile": lambda: sc.Quantile(0.3, density=12.0),
    "expectile": lambda: sc.Expectile(0.8),
    "moment": lambda: sc.Moment(2, low=-1.0, high=2.0),
}
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


def streams(property: Any, n_rounds: int, seed: int) -> dict[str, Any]:
    """Contexts, labels and a biased model's forecasts, in the property's units."""
    rng = np.random.default_rng(seed)
    x = np.where(rng.random((n_rounds, N)) < 0.5, rng.integers(-2, 3, (n_rounds, N)) / 2.0, 0.0)
    x[:, 0] = 1.0
    share = np.clip(0.45 + 0.2 * x[:, 1] - 0.15 * x[:, 2], 0.02, 0.98)
    noise = rng.random(n_rounds)
    binary = isinstance(property, sc.Probability)
    unit = (noise < share).astype(float) if binary else np.clip(share + 0.3 * (noise - 0.5), 0.0, 1.0)
    low, high = property.domain
    return {
        "x": x,
        "y": np.clip(property.low + (property.high - property.low) * unit, property.low, property.high),
        "model": np.clip(low + (high - low) * (0.1 + 0.8 * share), low, high),
    }


def forecaster(property: Any, hypotheses: Any, hint: str, options: dict[str, Any]) -> Any:
    learning = sc.OnlineRegression() if hint.startswith("learned") else None
    return sc.Forecaster(property, hypotheses, seed=11, hint=learning, **options)


def whole(property: str, name: str, hint: str, options: dict[str, Any], n_rounds: int = 500) -> bytes:
    """`run` on the whole stream."""
    part = PROPERTIES[property]()
    stream = streams(part, n_rounds, 3)
    hints = stream["model"] if hint in ("frozen", "learned on a model") else None
    forecasts: bytes = forecaster(part, CLASSES[name](), hint, options).run(stream["x"], stream["y"], hints).tobytes()
    return forecasts


def events(property: str, name: str, hint: str, options: dict[str, Any]) -> bytes:
    """`predict` and `update`, every third outcome four rounds late, saved and loaded in the middle."""
    part = PROPERTIES[property]()
    stream, made = streams(part, 300, 5), forecaster(part, CLASSES[name](), hint, options)
    waiting: list[tuple[int, Any]] = []
    values = []
    for t in range(300):
        given = float(stream["model"][t]) if hint in ("frozen", "learned on a model") else None
        forecast = made.predict(stream["x"][t], given)
        values.append(float(forecast))
        waiting.append((t, forecast))
        for then, late in [each for each in waiting if each[0] % 3 or each[0] <= t - 4]:
            made.update(late, float(stream["y"][then]))
            waiting.remove((then, late))
        if t == 150:
            file = io.BytesIO()
            made.save(file)
            file.seek(0)
            made = sc.Forecaster.load(file)
    return np.array(values).tobytes()


def runs() -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Name and play of every run."""
    for p, c, h, f in itertools.product(PROPERTIES, CLASSES, HINTS, FORMS):
        if h.startswith("learned") and c not in ("AdaNormalHedge", "Linear", "GradientDescent"):
            continue
        yield f"run: {p}, {c}, hint {h}, {f}", lambda p=p, c=c, h=h, f=f: whole(p, c, h, FORMS[f])  # type: ignore[misc]
    for p, h, o in itertools.product(("mean", "quantile"), HINTS, ODD):
        yield f"run: {p}, hint {h}, {o}", lambda p=p, h=h, o=o: whole(p, "AdaNormalHedge", h, ODD[o])  # type: ignore[misc]
    for p, c, h in itertools.product(PROPERTIES, ("AdaNormalHedge", "Linear"), HINTS):
        yield f"events: {p}, {c}, hint {h}", lambda p=p, c=c, h=h: events(p, c, h, FORMS["horizon"])  # type: ignore[misc]
    for p, h in itertools.product(("mean", "probability", "quantile"), ("none", "frozen")):
        yield f"long: {p}, hint {h}", lambda p=p, h=h: whole(p, "AdaNormalHedge", h, {}, 20_000)  # type: ignore[misc]


def played(backend: str) -> dict[str, str]:
    """Digest of the forecasts of every run."""
    from swapcal.engine import kernels

    with kernels.using(backend):
        return {name: hashlib.sha256(play()).hexdigest()[:16] for name, play in runs()}


def main() -> int:
    """Compare, or write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="remember the forecasts of today")
    parser.add_argument("--backend", choices=("native", "python"), help="only this one")
    asked = parser.parse_args()
    if asked.write:
        DIGESTS.write_text(json.dumps(played("native"), indent=0, sort_keys=True) + "\n")
    remembered, wrong = json.loads(DIGESTS.read_text()), 0
    for backend in ("native", "python") if asked.backend is None else (asked.backend,):
        found = played(backend)
        different = sorted(name for name in found.keys() | remembered.keys() if found.get(name) != remembered.get(name))
        wrong += len(different)
        sys.stdout.write(f"{backend}: {len(found) - len(different)} of {len(remembered)} runs are as remembered\n")
        sys.stdout.writelines(f"  differs: {name}\n" for name in different[:20])
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())

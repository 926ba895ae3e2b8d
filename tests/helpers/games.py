"""Games for the tests of guarantees and rates: who plays against whom, for what."""

import sys
import warnings
from collections.abc import Callable
from itertools import cycle, islice, product
from typing import Any, NamedTuple

import numpy as np

import swapcal as sc
from swapcal.engine.ledger import LATEST, LUCK, RESERVED, VARIANCE
from swapcal.engine.theorems import most_luck
from swapcal.forecast import Forecast
from swapcal.forecaster import Forecaster
from swapcal.hypotheses import Finite, Linear
from swapcal.potentials import Exponential, PNorm, Squint
from swapcal.properties import Expectile, Log, Mean, Moment, Probability, Quantile
from swapcal.protocols import Elicitable, Hypotheses, Row
from swapcal.simulate.adversaries import (
    Adversary,
    AntiHint,
    Arena,
    Far,
    Greedy,
    GroupTargeted,
    Sweep,
    ball,
    groups,
    rounds,
    signed,
)
from swapcal.typing import Float64Array

WIDTH = 0.2
"""Real labels are uniform on a fifth of the range, so that their density is at most 5 / range."""

SOUGHT: dict[str, tuple[Elicitable, float | None]] = {
    "mean": (Mean(), None),
    "mean-wide": (Mean(low=-20.0, high=60.0), None),
    "mean-real": (Mean(), WIDTH),
    "quantile": (Quantile(0.9, density=1.0 / WIDTH), WIDTH),
    "median": (Quantile(0.5, low=-1.0, high=3.0, density=1.0 / WIDTH), WIDTH),
    "expectile": (Expectile(0.8), WIDTH),
    "expectile-binary": (Expectile(0.8), None),
    "moment": (Moment(2), WIDTH),
    "probability": (Probability(Log()), None),
}
"""What is forecast, and the width of the labels' window; None for binary labels."""

CLASSES: dict[str, tuple[Hypotheses, Float64Array]] = {
    "one": (Finite(1), groups(1, seed=1)),
    "groups": (Finite(12), groups(12, seed=1)),
    "signed": (Finite(12), signed(12, seed=1)),
    "exponential": (Finite(6, potential=Exponential()), signed(6, seed=1)),
    "squint": (Finite(6, potential=Squint()), groups(6, seed=1)),
    "p-norm": (Finite(12, potential=PNorm()), signed(12, seed=1)),
    "linear": (Linear(5), ball(5, seed=1)),
}
"""For whom, and the contexts to choose from."""


STRATEGIES: dict[str, Callable[[Arena, int], Adversary]] = {
    "greedy": lambda arena, n_rounds: Greedy(arena),
    "far": lambda arena, n_rounds: Far(arena),
    "group-targeted": lambda arena, n_rounds: GroupTargeted(arena),
    "sweep": lambda arena, n_rounds: Sweep(arena, period=n_rounds / 2),
    "fast sweep": lambda arena, n_rounds: Sweep(arena, period=n_rounds / 10),
    "anti-hint": lambda arena, n_rounds: AntiHint(arena),
}

Game = tuple[Forecaster, Adversary]


def game(
    sought: str, hypotheses: str, strategy: str, n_rounds: int, *, seed: int, hints: str | None = None, **settings: Any
) -> Game:
    """A new forecaster and its adversary; an adversary that contradicts hints gets some if none are asked for."""
    target, width = SOUGHT[sought]
    members, contexts = CLASSES[hypotheses]
    if strategy == "anti-hint" and hints is None:
        hints = "alternating"
    settings.setdefault("horizon", n_rounds)
    arena = Arena(contexts, width=width, hints=hints, seed=seed + 1000)
    return Forecaster(target, members, seed=seed, **settings), STRATEGIES[strategy](arena, n_rounds)


class Watched:
    """A forecaster with somebody who looks over its shoulder: `look(forecaster, forecast)` before each outcome."""

    def __init__(self, forecaster: Forecaster, look: Callable[[Forecaster, Forecast], None]) -> None:
        self.forecaster, self.look = forecaster, look
        self.property, self.hypotheses = forecaster.property, forecaster.hypotheses

    def predict(self, x: Any, hint: float | None = None) -> Forecast:
        forecast = self.forecaster.predict(x, hint)
        self.look(self.forecaster, forecast)
        return forecast

    def update(self, forecast: Forecast, y: float) -> None:
        self.forecaster.update(forecast, y)


def row_of(forecast: Forecast) -> Row:
    """The context that a forecast carries."""
    return Row(np.array(forecast.indices, dtype=np.int64), np.array(forecast.values, dtype=np.float64))


def branches(forecaster: Forecaster, forecast: Forecast) -> list[tuple[int, float]]:
    """Every outcome of the draw as (slot of the value, probability)."""
    said = forecast.value if forecast.said is None else forecast.said
    return [
        (forecaster.state.values.find(value), probability)
        for value, probability in ((said, forecast.probability), (forecast.other, 1.0 - forecast.probability))
        if probability > 0.0
    ]


def evidence_of(property: Elicitable, forecast: Forecast, labels: Float64Array) -> Float64Array:
    """V where a forecast takes its evidence, for each label; at an end of the domain only the sign that heals counts.

    It is the same for both outcomes of a draw: a pair has one evidence point, and outright plays have one outcome.
    """
    v: Float64Array = np.asarray(property.identification(forecast.evidence_at, labels))
    if forecast.kind == "low":
        return np.minimum(v, 0.0)
    return np.maximum(v, 0.0) if forecast.kind == "high" else v


def every_label(property: Elicitable, points: Float64Array) -> Float64Array:
    """Labels over the whole range, both ends too, among them those just below, at and just above every point."""
    ends = np.array([property.low, property.high])
    if isinstance(property, Probability):
        return ends
    near = np.concatenate([points, np.nextafter(points, -np.inf), np.nextafter(points, np.inf), ends])
    return near[(near >= property.low) & (near <= property.high)]


N_ROUNDS = 20_000
N_GROUPS = 10
PROPERTIES: dict[str, Any] = {
    "mean": sc.Mean(),
    "probability": sc.Probability(),
    "quantile": sc.Quantile(0.9),
    "expectile": sc.Expectile(0.8),
}
DELTA = 0.05


class Ratio(NamedTuple):
    """Means over some seeds."""

    sought: str
    hypotheses: str
    hint: str
    error: float
    guarantee: float

    @property
    def ratio(self) -> float:
        """How many times the error."""
        return self.guarantee / self.error


def ordinary(binary: bool, seed: int, n_rounds: int = N_ROUNDS) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Groups, outcomes that drift and depend on them, and the forecasts of a model that is a little off."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([np.ones((n_rounds, 1)), rng.random((n_rounds, N_GROUPS - 1)) < 0.3], axis=1)
    effects = rng.normal(0.0, 0.15, N_GROUPS)
    mean = np.clip(0.5 + x[:, 1:] @ effects[1:] + 0.1 * np.sin(np.arange(n_rounds) / 3000.0), 0.02, 0.98)
    noisy = np.clip(mean + 0.15 * rng.normal(size=n_rounds), 0.0, 1.0)
    y = (rng.random(n_rounds) < mean).astype(np.float64) if binary else noisy
    return x, y, np.clip(mean + 0.05 + 0.08 * rng.normal(size=n_rounds), 0.0, 1.0)


def measured(n_seeds: int = 3) -> list[Ratio]:
    """Every property, for groups and for linear functions of them; without a hint, with one, with one that learns."""
    found = []
    for name, hypotheses, hint in product(PROPERTIES, ("Finite", "Linear"), ("none", "given", "learned")):
        totals = np.zeros(2)
        for seed in range(n_seeds):
            x, y, model = ordinary(name == "probability", seed)
            linear = hypotheses == "Linear"
            members = sc.Linear(N_GROUPS) if linear else sc.Finite(N_GROUPS)
            learner = sc.OnlineRegression() if hint == "learned" else None
            forecaster = sc.Forecaster(PROPERTIES[name], members, seed=seed, hint=learner)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", sc.AtomsWarning)
                forecaster.run(x / np.sqrt(N_GROUPS) if linear else x, y, model if hint == "given" else None)
            totals += forecaster.error(said=True), float(forecaster.guarantee(DELTA, said=True))
        found.append(Ratio(name, hypotheses, hint, *(totals / n_seeds).tolist()))
    return found


def table(found: list[Ratio]) -> str:
    """As Markdown."""
    lines = ["| property | class | hint | error | guarantee | ratio |", "| --- | --- | --- | --- | --- | --- |"]
    lines += [
        f"| {one.sought} | {one.hypotheses}({N_GROUPS}) | {one.hint} | {one.error:.2f} | {one.guarantee:.1f} | "
        f"{one.ratio:.1f} |"
        for one in found
    ]
    return "\n".join(lines)


def attacked(n_runs: int, n_rounds: int, *, every: int) -> tuple[int, float]:
    """Runs against adversaries that know the state and the odds; how often the guarantee failed, and the closest call.

    What a failure takes is that the draws have had more luck than theorem C allows; that is looked at after every
    round, and the error against the guarantee after every `every` rounds.
    """
    kinds = islice(cycle(product(SOUGHT, CLASSES, STRATEGIES, (None, "random"))), 0, None, 7)
    failures, closest = 0, 0.0
    for seed, (sought, hypotheses, strategy, hints) in zip(range(n_runs), kinds, strict=False):
        forecaster, adversary = game(sought, hypotheses, strategy, n_rounds, seed=seed, hints=hints)
        ledger, failed = forecaster.state.ledger, False
        for t, _ in enumerate(rounds(forecaster, adversary, n_rounds), start=1):
            totals = ledger.totals
            variance = float(totals[VARIANCE]) + float(totals[LATEST])
            allowed = most_luck(variance, 0.5 * DELTA) + float(ledger.drift[RESERVED])
            failed = failed or float(totals[LUCK]) > allowed + 1e-9 * (1.0 + allowed)
            if t % every == 0:
                share = forecaster.error() / float(forecaster.guarantee(DELTA))
                closest, failed = max(closest, share), failed or share > 1.0 + 1e-9
        failures += failed
    return failures, closest


if __name__ == "__main__":
    sys.stdout.write(table(measured()) + "\n")
    if len(sys.argv) > 1:
        n_runs = int(sys.argv[1])
        failures, closest = attacked(n_runs, 300, every=25)
        sys.stdout.write(
            f"\n{n_runs:,} runs of 300 rounds against adversaries that know the state: {failures} failures at "
            f"delta = {DELTA:g}; the error was at most {closest:.2f} of the guarantee.\n"
        )

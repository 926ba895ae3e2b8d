"""Games for the tests of guarantees and rates: who plays against whom, for what."""

import math
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import cycle, islice, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import class_games
import swapcal as sc
from class_games import DELTA, Late, Play
from swapcal.engine.ledger import LATEST, LUCK, RESERVED, VARIANCE
from swapcal.engine.theorems import most_luck
from swapcal.forecast import Forecast
from swapcal.forecaster import Forecaster
from swapcal.hypotheses import Finite, Linear
from swapcal.intervals import Quantiles
from swapcal.potentials import Exponential, PNorm, Quadratic, Squint
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
    "quadratic": (Linear(5, potential=Quadratic()), ball(5, seed=1)),
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


# --------
# Every promise that is printed, against somebody who knows the code: what was promised, and what was seen.


def _sides(seed: int, strategies: list[str]) -> tuple[str, str]:
    """Who plays against whom: every pair comes up."""
    others, members = divmod(seed, len(CLASSES))
    return list(CLASSES)[members], strategies[others % len(strategies)]


def _engine_game(sought: str, delay: int, seed: int, n_rounds: int) -> list[tuple[float, float]]:
    members, strategy = _sides(seed, list(STRATEGIES))
    hints, r = (None, "random")[seed % 2], (2.0, 1.0, 3.0)[seed % 3]
    forecaster, adversary = game(sought, members, strategy, n_rounds, seed=seed, hints=hints, r=r)
    for t, _ in enumerate(rounds(Late(forecaster, delay), adversary, n_rounds), start=1):
        if t % 100 == 0:
            error, bound = forecaster.error(said=True), forecaster.guarantee(DELTA, said=True)
    shown = (forecaster.error(), float(forecaster.guarantee(DELTA)))
    return [(error, float(bound)), (error, bound.worst), shown]


def _ahead_game(sought: str, seed: int, n_rounds: int) -> list[tuple[float, float]]:
    members, strategy = _sides(seed, [each for each in STRATEGIES if each != "anti-hint"])
    settings: dict[str, Any] = {"bins": 2 + seed % 9, "r": (2.0, 1.0, 3.0)[seed % 3]}
    forecaster, adversary = game(sought, members, strategy, n_rounds, seed=seed, **settings)
    promised = float(forecaster.guarantee(DELTA, n_rounds=n_rounds))
    for _ in rounds(forecaster, adversary, n_rounds):
        pass
    return [(forecaster.error(), promised)]


def _against_ends(model: Any, hints: Callable[[float], Any], seed: int, n_rounds: int) -> list[tuple[float, float]]:
    """Outcomes at, beside and far beyond the ends that the last forecast had, on the side of which there were more."""
    rng, levels = np.random.default_rng(seed), np.array(model.levels)
    sums, covered, last = np.zeros((2, len(levels))), np.zeros(2), np.array([-1.0, 1.0])
    share = 0.05 + 0.25 * rng.random()
    for t in range(n_rounds):
        context = np.array([1.0, float(t % 2)])
        forecast = model.predict(context, hints(float(rng.normal())))
        side = 1.0 if sums[0].sum() < 0.0 else -1.0
        near = [float(rng.choice(last)), math.nextafter(float(rng.choice(last)), side * math.inf), side * 3.0]
        y = -side * 1e6 * (1.0 + rng.random()) if rng.random() < share else near[rng.integers(3)] + 1e-9 * rng.normal()
        values = np.array(forecast.values)
        if forecast.parts:
            sums += np.outer(context, (y <= values) - levels)
            covered += context * ((values[0] < y <= values[-1]) - (levels[-1] - levels[0]))
        last = values[np.isfinite(values)] if np.isfinite(values).any() else last
        model.update(forecast, y)
    promised = model.miscoverage(DELTA)
    if isinstance(promised, float):
        return [(float(np.abs(covered).max()), promised)]
    return list(zip(np.abs(sums).max(axis=0).tolist(), promised.tolist(), strict=True))


def _quantile_game(made: Callable[[int], Any], own: bool, seed: int, n_rounds: int) -> list[tuple[float, float]]:
    model = made(seed)
    spread = np.linspace(-1.0, 1.0, len(model.levels))

    def hints(z: float) -> Any:
        return z + spread * (1.0 if abs(z) < 2.0 else 1e4) if own else z

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sc.AtomsWarning)
        return _against_ends(model, hints, seed, n_rounds)


def _classes_game(seed: int, n_rounds: int) -> list[tuple[float, float]]:
    """The class is the one that has had the least, where it is thought to be likely."""
    rng, model, owed = np.random.default_rng(seed), sc.Classes(3, Finite(2), seed=seed), np.zeros(3)
    for t in range(n_rounds):
        context = np.array([1.0, float(t % 2)])
        expected = model.expected(context)[:3]
        forecast = model.predict(context)
        y = int(np.argmax(owed)) if rng.random() < 0.7 else int(rng.integers(3))
        owed += expected - (np.arange(3) == y)
        model.update(forecast, y)
    errors = [each.error() for each in (*model.forecasters, model.sure)]
    return list(zip(map(float, errors), model.guarantee(DELTA), strict=True))


def _promises() -> dict[str, Play]:
    """From the name of a promise to a game about it, of a seed and so many rounds."""
    cells: dict[str, Play] = {}
    for sought in SOUGHT:
        for delay, when in ((0, "at once"), (20, "20 late, some never")):
            cells[f"`guarantee()`, {sought}, {when}"] = partial(_engine_game, sought, delay)
        cells[f"`guarantee(n_rounds=)`, {sought}"] = partial(_ahead_game, sought)
    levels = [0.1, 0.5, 0.9]
    for own, hint in ((False, "a forecast as hint"), (True, "own quantiles")):
        made: dict[str, Callable[[int], Any]] = {
            "Interval": lambda seed: sc.Interval(0.8, Finite(2), seed=seed, spread=1.0),
            "Quantiles": lambda seed: Quantiles(levels, Finite(2), seed=seed, spread=1.0),
        }
        cells |= {f"`{name}.miscoverage`, {hint}": partial(_quantile_game, each, own) for name, each in made.items()}
    return cells | class_games.promises() | {"`Classes.guarantee`": _classes_game}


PROMISES = _promises()


class Verdict(NamedTuple):
    """Games about one promise, how many broke it, and the largest share of what was promised that was seen."""

    promise: str
    games: int
    broken: int
    largest: float


def challenged(promise: str, n_games: int, n_rounds: int = 300) -> Verdict:
    """Play for a promise."""
    shares = []
    for seed in range(n_games):
        seen = PROMISES[promise](seed, n_rounds)
        shares.append(max(error / bound if bound else float(error > 0.0) for error, bound in seen))
    return Verdict(promise, n_games, sum(share > 1.0 + 1e-9 for share in shares), max(shares))


BEGIN, END = "<!-- games -->\n", "<!-- end of games -->\n"


def write(verdicts: list[Verdict], path: Path) -> None:
    """Put the table where the document has it."""
    lines = ["| promise | games | broken | largest share |", "| --- | ---: | ---: | ---: |"]
    lines += [f"| {each.promise} | {each.games} | {each.broken} | {each.largest:.2f} |" for each in verdicts]
    before, rest = path.read_text().split(BEGIN)
    path.write_text(before + BEGIN + "\n".join(lines) + "\n" + END + rest.split(END)[1])


if __name__ == "__main__":
    if sys.argv[1:2] == ["promises"]:
        verdicts = []
        with ProcessPoolExecutor() as processes:  # a line as each is judged
            for verdict in processes.map(partial(challenged, n_games=int(sys.argv[2])), PROMISES):
                verdicts.append(verdict)
                sys.stdout.write(f"{verdict.promise}: {verdict.broken} of {verdict.games} broken\n")
                sys.stdout.flush()
        write(verdicts, Path("docs/guarantees.md"))
        raise SystemExit
    sys.stdout.write(table(measured()) + "\n")
    if len(sys.argv) > 1:
        n_runs = int(sys.argv[1])
        failures, closest = attacked(n_runs, 300, every=25)
        sys.stdout.write(
            f"\n{n_runs:,} runs of 300 rounds against adversaries that know the state: {failures} failures at "
            f"delta = {DELTA:g}; the error was at most {closest:.2f} of the guarantee.\n"
        )

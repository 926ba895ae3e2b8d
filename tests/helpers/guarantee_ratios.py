"""`python guarantee_ratios.py`: how far the guarantee is above the error on ordinary streams, as a table."""

import sys
import warnings
from itertools import cycle, islice, product
from typing import Any, NamedTuple

import numpy as np

import swapcal as sc
from games import CLASSES, SOUGHT, STRATEGIES, game
from swapcal.engine.ledger import LATEST, LUCK, RESERVED, VARIANCE
from swapcal.engine.theorems import most_luck
from swapcal.simulate.adversaries import rounds
from swapcal.typing import Float64Array

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
            totals += forecaster.error(), float(forecaster.guarantee(DELTA))
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

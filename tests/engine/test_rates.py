"""Does the error grow like T^(1/3)? Exponents fitted against adversaries and on streams.

All of it is slow: `make slow`.
"""

import math

import numpy as np
import pytest

from effort import ALL, crossed
from games import STRATEGIES, WIDTH
from swapcal.forecaster import Forecaster
from swapcal.hypotheses import Finite, Linear
from swapcal.properties import Expectile, Mean, Quantile
from swapcal.protocols import Elicitable, Hypotheses
from swapcal.simulate.adversaries import Arena, ball, groups, play, signed
from swapcal.simulate.streams import N_FEATURES, drifting
from swapcal.typing import Float64Array

pytestmark = pytest.mark.slow

HORIZONS = [2**k for k in range(10, 18)]

EXPONENT = 0.40
"""What a fitted exponent may be. The rate is T^(1/3) times logarithms. Over these horizons (ln T)^(2/3), theorem B's
factor, alone looks like an exponent of 0.07. The standard error of a slope through seven points with 15 % of noise each
is 0.03. The rates of the rivals, 1/2 and 3/4, are far outside."""

FROM = {"anti-hint": 2**14, "greedy": 2**12}
"""Where a fit begins, if not with the first horizon. Hints that are always contradicted become the first values; until
others stand beside them, the error is smaller: 0.04 to 0.05 T^(1/3), where it comes to 0.06 T^(1/3) later, for a mean
and linear functions. A greedy adversary costs a mean and 20 functions 2.0 T^(1/3) in the first 2,000 rounds, while
values are few, and 2.3 to 2.6 from 8,000 to 131,000. Fewer points are left, so each is a mean over three runs."""

DENSITY = 1.0 / WIDTH
"""Of the adversaries' and the iid labels: the Lipschitz constant that the quantile's bound is about."""

PROPERTIES: dict[str, Elicitable] = {
    "mean": Mean(),
    "quantile": Quantile(0.9, density=DENSITY),
    "expectile": Expectile(0.8),
}
N = {"finite": 20, "linear": 10}


def members(kind: str) -> tuple[Hypotheses, Float64Array]:
    """A class and contexts for it; the finite class is half groups, half signed functions."""
    if kind == "linear":
        return Linear(N[kind]), ball(N[kind], seed=3)
    half = N[kind] // 2
    return Finite(N[kind]), np.hstack([groups(half, seed=3), signed(N[kind] - half, seed=4)])


def adversarial(sought: str, kind: str, strategy: str, n_rounds: int, seed: int) -> float:
    """SMCal_2 after one game."""
    hypotheses, contexts = members(kind)
    width = None if sought == "mean" else WIDTH
    hints = "alternating" if strategy == "anti-hint" else None
    arena = Arena(contexts, width=width, hints=hints, seed=seed)
    forecaster = Forecaster(PROPERTIES[sought], hypotheses, horizon=n_rounds, seed=seed)
    play(forecaster, STRATEGIES[strategy](arena, n_rounds), n_rounds)
    return forecaster.error()


def identical(sought: str, kind: str, n_rounds: int, seed: int) -> float:
    """SMCal_2 on independent, identically distributed rounds: the truth is a fixed function of the context."""
    hypotheses, contexts = members(kind)
    rng = np.random.default_rng(seed)
    x = contexts[rng.integers(0, len(contexts), n_rounds)]
    share = 0.5 + 0.4 * np.tanh(x @ rng.normal(0.0, 3.0 / math.sqrt(N[kind]), N[kind]))
    u = rng.random(n_rounds)
    y = (u < share).astype(np.float64) if sought == "mean" else share + 0.5 * WIDTH * (2.0 * u - 1.0)
    forecaster = Forecaster(PROPERTIES[sought], hypotheses, horizon=n_rounds, seed=seed)
    forecaster.run(x, y)
    return forecaster.error()


def drifted(sought: str, kind: str, n_rounds: int, seed: int) -> float:
    """SMCal_2 on the drifting stream: its 20 groups, or linear functions of its features and a constant."""
    stream = drifting(n_rounds, seed=seed, n_groups=20, binary=sought == "mean")
    hypotheses: Hypotheses = Finite(20)
    target = Quantile(0.9) if sought == "quantile" else PROPERTIES[sought]  # its density is nobody's to know
    x = stream.x
    if kind == "linear":
        hypotheses = Linear(N_FEATURES + 1, radius=5.0)
        x = np.column_stack([np.ones(n_rounds), stream.features])
    forecaster = Forecaster(target, hypotheses, horizon=n_rounds, seed=seed)
    forecaster.run(x, stream.y)
    return forecaster.error()


def curve(sought: str, kind: str, source: str, horizons: list[int]) -> list[float]:
    """For each horizon, the mean error over fresh runs: three where those are short or few, then two, then one."""
    means = []
    for n_rounds in horizons:
        seeds = range(3 if n_rounds <= 2**12 or source in FROM else 2 if n_rounds <= 2**14 else 1)
        if source == "iid":
            errors = [identical(sought, kind, n_rounds, seed) for seed in seeds]
        elif source == "drifting":
            errors = [drifted(sought, kind, n_rounds, seed) for seed in seeds]
        else:
            errors = [adversarial(sought, kind, source, n_rounds, seed) for seed in seeds]
        means.append(float(np.mean(errors)))
    return means


@pytest.mark.parametrize(("sought", "kind", "source"), crossed(PROPERTIES, N, [*STRATEGIES, "iid", "drifting"], of=2))
def test_the_error_grows_like_the_cube_root(sought: str, kind: str, source: str) -> None:
    longest = HORIZONS[-1] if ALL or source in FROM else HORIZONS[-2]
    horizons = [n_rounds for n_rounds in HORIZONS if FROM.get(source, 0) <= n_rounds <= longest]
    exponent = np.polyfit(np.log(horizons), np.log(curve(sought, kind, source, horizons)), 1)[0]
    assert exponent <= EXPONENT

"""What the tests of `swapcal.paper` play: properties, streams, and the package's method beside the oracle's."""

from collections.abc import Callable
from typing import Any

import numpy as np

import naive_learners
import swapcal as sc
from naive_msmwc import NaiveMsMwC
from naive_paper import NaiveAlgorithm1, NaiveAlgorithm2, NaiveExperts
from swapcal.paper import Algorithm1, Algorithm2
from swapcal.paper.experts import Experts
from swapcal.paper.grid import Support
from swapcal.protocols import Elicitable
from swapcal.typing import Float64Array

Method = Algorithm1 | Algorithm2
Naive = NaiveAlgorithm1 | NaiveAlgorithm2

PROPERTIES: dict[str, Elicitable] = {
    "mean": sc.Mean(),
    "quantile": sc.Quantile(0.7, density=2.0),
    "expectile": sc.Expectile(0.8),
    "mean in other units": sc.Mean(low=-3.0, high=7.0),
    "quantile in other units": sc.Quantile(0.35, low=10.0, high=11.5, density=2.0),
}
LEARNERS: dict[str, tuple[Callable[[int], sc.learners.Learner], naive_learners.Algorithm]] = {
    "multiplicative weights": (sc.learners.MultiplicativeWeights, naive_learners.multiplicative_weights),
    "gradient descent": (sc.learners.GradientDescent, naive_learners.gradient_descent),
}
ALGORITHMS = ("1", *LEARNERS)
VARIANTS = [(gains, forecasts) for gains in ("expected", "realized") for forecasts in ("right", "middle")]


def stream_of(property: Elicitable, n_rounds: int, n: int, seed: int) -> tuple[Float64Array, Float64Array]:
    """Signed, fractional and missing functions, all in the unit ball; labels with a density that follow the first."""
    rng = np.random.default_rng(seed)
    x = np.where(
        rng.random((n_rounds, 1)) < 0.3, rng.choice([-1.0, 1.0], (n_rounds, n)), rng.uniform(-1, 1, (n_rounds, n))
    )
    x *= rng.random((n_rounds, n)) < 0.8
    x /= np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True)) * (1.0 + 1e-9)
    unit = np.where(rng.random(n_rounds) < 0.5 + 0.5 * x[:, 0], 0.5, 0.0) + rng.uniform(0.0, 0.5, n_rounds)
    return x, property.low + (property.high - property.low) * unit


def pair(
    algorithm: str,
    property: Elicitable,
    n: int,
    n_bins: int,
    horizon: int,
    seed: int,
    *,
    gains: str = "expected",
    forecasts: str = "right",
    experts: tuple[Callable[[int], Experts] | None, Callable[[int, int], NaiveExperts]] = (None, NaiveMsMwC),
) -> tuple[Method, Naive]:
    """The package's and the oracle's version with the same settings."""
    shared = (property, n, n_bins, horizon, seed, gains == "expected", forecasts == "middle")
    options: Any = {"horizon": horizon, "bins": n_bins, "seed": seed, "gains": gains, "forecasts": forecasts}
    if algorithm == "1":
        return Algorithm1(property, n, experts=experts[0], **options), NaiveAlgorithm1(*shared, make=experts[1])
    learner, recomputed = LEARNERS[algorithm]
    method = Algorithm2(property, learner(n), experts=experts[0], **options)
    return method, NaiveAlgorithm2(*shared, learner=recomputed, make=experts[1])


def support_of(method: Method, x: Float64Array) -> Support:
    """P_t as the package chooses it, without opening a round."""
    notes = method.plan(method.hypotheses.row(x), None).notes
    support: Support = notes if isinstance(method, Algorithm1) else notes[0]
    return support


def phi_of(method: Method, x: Float64Array) -> Float64Array:
    row = method.hypotheses.row(x)
    if isinstance(method, Algorithm1):
        return method.phi(row)
    signed: Float64Array = method.experts.weights.reshape(2, -1) * method.tests(row)
    return np.asarray(signed[0] - signed[1])

"""Every published method obeys the public rules of forecasters."""

from typing import Any

import numpy as np
import pytest

import swapcal as sc
from swapcal.checks import Trial, check_forecaster
from swapcal.checks.rules import default_stream
from swapcal.learners import GradientDescent, MultiplicativeWeights
from swapcal.rivals import Card, all_rivals

PROPERTIES = {"mean": sc.Mean(), "quantile": sc.Quantile(0.8), "expectile": sc.Expectile(0.7), "elicitable": sc.Mean()}
N_ROUNDS, N = 3000, 3


def stream(name: str, card: Card) -> Trial:
    """Groups, so that every method can be asked; labels that follow them, and a biased hint."""
    rng = np.random.default_rng(5)
    if card.classes == ("linear",):
        contexts = rng.normal(size=(N_ROUNDS, N)) / 4.0
        contexts /= np.maximum(np.linalg.norm(contexts, axis=1, keepdims=True), 1.0)
    elif name == "Ghuge2025Oracle":
        contexts = np.eye(N)[rng.integers(0, N, N_ROUNDS)]
    else:
        contexts = (rng.random((N_ROUNDS, N)) < 0.6).astype(np.float64)
    labels = np.clip(0.2 + 0.4 * contexts[:, 0] + 0.3 * rng.random(N_ROUNDS), 0.0, 1.0)
    return Trial(contexts, labels, np.clip(labels + 0.1 * rng.normal(size=N_ROUNDS), 0.0, 1.0))


def maker(name: str) -> Any:
    kind: Any = all_rivals()[name]
    target = PROPERTIES[kind.card.properties[0]]
    hypotheses = sc.Linear(N) if kind.card.classes == ("linear",) else sc.Finite(N)
    return lambda: kind(target, hypotheses, horizon=400, seed=2)


@pytest.mark.parametrize("name", list(all_rivals()))
def test_every_rival_obeys_the_rules_of_forecasters(name: str) -> None:
    make = maker(name)
    check_forecaster(make, stream=stream(name, make().card))


@pytest.mark.parametrize(
    "make",
    [
        lambda: sc.paper.Algorithm1(sc.Mean(), N, horizon=400, seed=2),
        lambda: sc.paper.Algorithm2(sc.Quantile(0.8), MultiplicativeWeights(N), horizon=400, seed=2),
        lambda: sc.paper.Algorithm2(sc.Expectile(0.7), GradientDescent(N), horizon=400, seed=2),
    ],
    ids=["algorithm 1", "algorithm 2, finite", "algorithm 2, linear"],
)
def test_the_paper_obeys_them_too(make: Any) -> None:
    check_forecaster(make, stream=default_stream(make(), N_ROUNDS, hinted=False))

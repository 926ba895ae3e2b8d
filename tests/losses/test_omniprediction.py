"""Regret of any convex loss is at most what the swap error allows: random tables, equality, searches by hand."""

from itertools import product
from typing import Any

import numpy as np
import pytest

import swapcal as sc
from effort import part
from swapcal.losses import Loss, best_function, loss_of


def _absolute(a: Any, y: float) -> Any:
    return np.abs(a - (2.0 * y - 1.0))


def _kinked(a: Any, y: float) -> Any:
    return np.maximum(np.maximum(-2.0 * a, 0.5 * a - 0.2), 3.0 * a - 1.5) * (1.0 - y) + y * np.maximum(0.3 - a, 0.0)


def _steep(a: Any, y: float) -> Any:
    return np.exp(2.0 * a) * (1.0 - y) + y * (a - 0.5) ** 4


LOSSES = [
    *map(loss_of, ("squared", "log", sc.Cost(1, 4), sc.Cost(3, 0.5), _absolute, _kinked, _steep)),
    Loss("squared, not matched", loss_of("squared").value),
    Loss("log, not matched", loss_of("log").value),
]


def _never_violated(n_cases: int, seed: int) -> None:
    """Against the worst single functions and mixtures of a random class, one for each value."""
    rng, grid = np.random.default_rng(seed), np.unique([*np.linspace(0, 1, 41), *np.random.default_rng(seed).random(9)])
    answers = [loss.best(grid) for loss in LOSSES]
    for k in range(n_cases):
        loss, n, d = LOSSES[k % len(LOSSES)], int(rng.integers(1, 12)), int(rng.integers(1, 4))
        at = rng.choice(rng.integers(0, len(grid), int(rng.integers(1, 4))), n)
        p, actions = grid[at], answers[k % len(LOSSES)][at]
        soft = rng.random(n)
        y = soft if k % 4 == 0 else (soft < (p if k % 4 == 1 else 1.0 - p)).astype(float)
        x = rng.uniform(-1, 1, (n, d)) if k % 3 else rng.choice([-1.0, 0.0, 1.0], (n, d))
        if k % 5 == 0:
            x[:, 0] = 2.0 * (y > p) - 1.0
        mixed = rng.dirichlet(np.ones(d)) * rng.choice([-1.0, 1.0], d)
        h = np.column_stack([x, -x, x @ mixed, np.zeros(n)])
        ours = loss.mean(actions, y)
        regret = swap = plain = 0.0
        for value in np.unique(p):
            here = p == value
            against = loss.mean(h[here], y[here, None]).sum(axis=0)
            regret += ours[here].sum() - against.min()
            v = (p - y)[here]
            swap, plain = swap + np.abs(v @ x[here]).max(), plain + abs(v.sum())
        assert regret <= loss.bound(swap, plain, actions) + 1e-6 * n, (loss, k)


def test_no_random_table_beats_the_bound() -> None:
    _never_violated(part(4000, 1000), 1)


@pytest.mark.slow
def test_none_of_forty_thousand_does() -> None:
    _never_violated(40_000, 2)


@pytest.mark.parametrize(("loss", "share"), [(_absolute, 1.0), (sc.Cost(1, 1), 0.5), (sc.Cost(2, 2), 1.0)])
def test_the_bound_is_attained(loss: Any, share: float) -> None:
    """Forecasts of 1/2, and a function that knows the outcome."""
    y = np.tile([0.0, 1.0], 50)
    found = sc.omniprediction(np.full(100, 0.5), y, 2.0 * y[:, None] - 1.0, sc.Finite(1), loss)
    assert found.error == 0.0
    assert found.swap_error == pytest.approx(50.0)
    assert found.losses[0].swap_regret == pytest.approx(100.0 * share, abs=0.01)
    assert found.losses[0].at_most == pytest.approx(100.0 * share, rel=1e-4)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_the_best_function_is_that_of_a_search_on_a_grid(loss: Loss) -> None:
    rng = np.random.default_rng(3)
    x, y = rng.uniform(-1, 1, (60, 1)), rng.random(60).round(1)
    rows = sc.Finite(1).rows(x, 60)
    best, gap = best_function(loss, rows, y, 1, "max")
    grid = min(loss.mean(w * x[:, 0], y).sum() for w in np.linspace(-1, 1, 4001))
    assert best - gap - 1e-6 <= grid
    assert best <= grid + 0.02


@pytest.mark.parametrize("dual", ["max", "euclidean"])
def test_of_two_functions_too_and_the_gap_is_small(dual: str) -> None:
    rng = np.random.default_rng(4)
    x = rng.uniform(-0.7, 0.7, (80, 2))
    y = (rng.random(80) < 0.5 + 0.4 * x[:, 0]).astype(float)
    rows = sc.Finite(2).rows(x, 80)
    angles = np.linspace(0.0, 2.0 * np.pi, 721)
    rim = np.column_stack([np.cos(angles), np.sin(angles)])
    rim = rim / (np.abs(rim).sum(axis=1, keepdims=True) if dual == "max" else 1.0)
    for name in ("squared", "log"):
        loss = loss_of(name)
        best, gap = best_function(loss, rows, y, 2, dual)
        grid = min(loss.mean(x @ (s * w), y).sum() for s, w in product(np.linspace(0, 1, 41), rim[::6]))
        assert gap <= 1e-3
        assert best - gap <= grid + 1e-9
        assert best <= grid + 1e-3


def test_of_a_whole_table_all_numbers_are_those_by_hand() -> None:
    rng = np.random.default_rng(5)
    x = (rng.random((400, 3)) < 0.5).astype(float)
    y, p = (rng.random(400) < 0.3 + 0.4 * x[:, 0]).astype(float), rng.choice([0.2, 0.5, 0.7], 400)
    names = ["squared", "log", sc.Cost(1, 4), _absolute]
    found = sc.omniprediction(p, y, x, sc.Finite(3), names)
    parts = [p == value for value in np.unique(p)]
    assert found.swap_error == pytest.approx(sum(np.abs((p - y)[at] @ x[at]).max() for at in parts))
    assert found.error == pytest.approx(sum(abs((p - y)[at].sum()) for at in parts))
    assert found.losses[0].ours == pytest.approx(np.sum((p - y) ** 2))
    logit = np.clip(np.log(p / (1 - p)), -1, 1)
    assert found.losses[1].ours == pytest.approx(np.sum(np.logaddexp(0, logit) - logit * y), rel=1e-6)
    assert found.losses[2].ours == pytest.approx(np.sum(np.where(p > 0.2, 1.0 - y, 4.0 * y)), rel=0.3)
    for each in found.losses:
        assert each.regret <= each.swap_regret + 1e-9 <= each.at_most
        assert each.best_by_value <= each.best
    groups = sc.omniprediction(p, y, {"a": x[:, 0], "b": x[:, 1]}, sc.Groups(["a", "b"]))
    frame = groups.frame()
    assert list(frame["loss"]) == ["squared", "log"]
    assert str(groups).splitlines()[-1] == groups.note
    assert groups.__rich__().row_count == 2
    drawn = sc.report.regrets(found)
    assert drawn.frame()["swap_regret"].tolist() == [each.swap_regret for each in found.losses]


def test_ours_has_less_regret_than_a_biased_model_for_every_loss() -> None:
    rng = np.random.default_rng(6)
    x = rng.standard_normal((3000, 4)) / 2.0
    truth = 1.0 / (1.0 + np.exp(-2.0 * x[:, 0] - x[:, 1]))
    y, biased = (rng.random(3000) < truth).astype(float), np.clip(0.5 * truth + 0.4, 0, 1).round(1)
    p = sc.Forecaster(sc.Probability(), sc.Linear(4, radius=2.0), seed=1, bins=20).run(x, y)
    names = ["squared", "log", sc.Cost(1, 2)]
    ours, theirs = (sc.omniprediction(each, y, x, sc.Linear(4, radius=2.0), names) for each in (p, biased))
    for one, other in zip(ours.losses, theirs.losses, strict=True):
        assert one.swap_regret < 0.5 * other.swap_regret
        assert one.gap < 1.0


def test_what_is_refused() -> None:
    ones = np.ones((2, 1))
    with pytest.raises(sc.InvalidInput, match="not convex"):
        sc.omniprediction([0.5, 0.5], [0.0, 1.0], ones, sc.Finite(1), lambda a, y: -a * a)
    with pytest.raises(sc.InvalidInput, match="about events"):
        sc.omniprediction([0.5, 0.5], [0.0, 2.0], ones, sc.Finite(1))
    with pytest.raises(sc.InvalidInput, match="a loss is 'squared', 'log'"):
        sc.omniprediction([0.5, 0.5], [0.0, 1.0], ones, sc.Finite(1), ["hinge"])
    with pytest.raises(sc.InvalidInput, match="costs must be above 0"):
        sc.Cost(0, 1)
    with pytest.raises(sc.InvalidInput, match="one context for each"):
        sc.omniprediction([0.5, 0.5], [0.0, 1.0], np.ones((3, 1)), sc.Finite(1))
    assert sc.omniprediction([0.5, 0.5], [0.0, 1.0], None).n_rows == 2

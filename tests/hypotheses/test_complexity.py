"""Sequential Rademacher complexity as numbers, and what the corollaries promise ahead of a run."""

import math
import re
from typing import Any

import numpy as np
import pytest

import swapcal as sc
from class_games import SQUARES, Forward
from swapcal.learners import GradientDescent, MultiplicativeWeights
from swapcal.potentials import Exponential
from swapcal.simulate.adversaries import Arena, Far, Greedy, ball, groups, play


def _tree(functions: Any, n: int, seed: int, greedy: bool) -> float:
    """sup_f sum eps_t f(x_t) of one walk down a tree, whose contexts may depend on the signs so far."""
    rng, sums = np.random.default_rng(seed), np.zeros(functions.n)
    for eps in rng.choice([-1.0, 1.0], n):
        x = rng.choice([-1.0, 1.0], functions.n)
        if greedy:
            x = np.where(np.abs(sums) >= np.abs(sums).max() - 1.0, x, 0.0)
        row = functions.row(x)
        sums[row.indices] += eps * row.values
    return float(functions.supremum(sums))


@pytest.mark.parametrize("greedy", [False, True])
@pytest.mark.parametrize("functions", [sc.Finite(2), sc.Finite(30), sc.Linear(30, radius=1.0)])
def test_no_tree_has_more(functions: Any, greedy: bool) -> None:
    """Of |sum|, which is the supremum of a class and its mirror image."""
    n = 200
    found = [_tree(functions, n, seed, greedy) for seed in range(60)]
    mirrored = sc.Finite(2 * functions.n) if isinstance(functions, sc.Finite) else functions
    error = np.std(found) / math.sqrt(len(found))
    assert np.mean(found) <= mirrored.complexity(n) + 3.0 * error
    assert np.mean(found) >= 0.3 * mirrored.complexity(n)


def test_orthogonal_contexts_attain_that_of_a_linear_class() -> None:
    rng, sums = np.random.default_rng(0), np.zeros(2)
    for eps in rng.choice([-1.0, 1.0], 500):
        away = np.array([-sums[1], sums[0]]) if sums.any() else np.array([1.0, 0.0])
        sums += eps * away / np.linalg.norm(away)
    assert np.linalg.norm(sums) == pytest.approx(sc.Linear(2).complexity(500))


def test_of_boxes_groups_and_learners() -> None:
    trees = sc.Trees(["a", "b"], bins=4)
    before = trees.complexity(100)
    trees.fit({"a": np.arange(100.0), "b": np.arange(100.0)[::-1]})
    assert before > trees.complexity(100) == sc.Finite(len(trees.names)).complexity(100)
    assert sc.Groups(["a"], limit=19).complexity(100) == sc.Finite(20).complexity(100)
    known = sc.Oracle(GradientDescent(3)).complexity(100)
    assert known is not None
    assert known <= 30.0
    assert sc.Finite(1).complexity(100) == 0.0


def _ahead(functions: Any, n_rounds: int, delta: float = 0.05, r: float = 2.0) -> float:
    """The number with the best of all bins, which the assumptions name."""
    asked = sc.Forecaster(sc.Mean(), functions, r=r, seed=1).guarantee(delta, n_rounds=n_rounds)
    named = [re.search(r"with bins=\d+ it would be ([0-9.e+]+) ahead", each) for each in asked.assumptions]
    return next((float(each[1]) for each in named if each is not None), float(n_rounds))


@pytest.mark.parametrize("r", [1.0, 1.5, 2.0, 3.0])
def test_ahead_of_a_run_more_rounds_functions_and_certainty_cost_more(r: float) -> None:
    pairs: list[tuple[Any, Any]] = [(sc.Finite(2), sc.Finite(50)), (sc.Linear(3), sc.Linear(3))]
    pairs += [(sc.Linear(3), sc.Linear(3) | sc.Finite(2)), (sc.Finite(2), sc.Oracle(GradientDescent(2)))]
    pairs += [(sc.Oracle(MultiplicativeWeights(2)), sc.Oracle(MultiplicativeWeights(50)))]
    for small, large in pairs:
        numbers = [_ahead(small, n, r=r) for n in (100, 1000, 10_000, 100_000, 1_000_000)]
        assert numbers == sorted(numbers)
        assert all(number <= n for number, n in zip(numbers, (100, 1000, 10_000, 100_000, 1_000_000), strict=True))
        assert _ahead(large, 10_000, r=r) >= _ahead(small, 10_000, r=r)
        assert _ahead(small, 10_000, 0.001, r) >= _ahead(small, 10_000, 0.05, r)


@pytest.mark.parametrize(("r", "rate"), [(1.0, 2 / 3), (1.5, 1 / 2), (2.0, 1 / 3), (3.0, 1 / 4)])
def test_the_number_grows_as_the_corollaries_say(r: float, rate: float) -> None:
    """From 1e6 to 1e8 rounds, with the best number of values of each; logarithms add a little."""
    for functions in (sc.Finite(20), sc.Linear(20)):
        found = [_ahead(functions, n, r=r) for n in (10**6, 10**8)]
        assert rate - 0.02 <= math.log(found[1] / found[0], 100) <= rate + 0.08


def test_it_says_for_how_many_values() -> None:
    forecaster = sc.Forecaster(sc.Mean(), sc.Finite(4), bins=15, seed=1)
    assert forecaster.guarantee(n_rounds=10**5).bins == 15
    assert forecaster.guarantee(n_rounds=3).bins is None
    assert sc.Forecaster(sc.Mean(), sc.Finite(4), seed=1).guarantee(n_rounds=10**5).bins is None


_PLAYED: tuple[tuple[Any, Any], ...] = (
    (sc.Linear(4, radius=2.0), sc.Linear(4, radius=2.0)),
    (sc.Finite(4), sc.Finite(4)),
    (sc.Oracle(GradientDescent(4)), sc.Linear(4)),
    (sc.Oracle(MultiplicativeWeights(4)), sc.Finite(4)),
    (sc.Finite(4) | sc.Linear(4), sc.Finite(4)),
)


@pytest.mark.parametrize(("n_rounds", "note"), [(10**5, 2186.0), (10**6, 5224.0)])
def test_ahead_for_a_learner_of_squares(n_rounds: int, note: float) -> None:
    """Its rate is 1/3, from the logarithm of its regret; with a number for each r, and none where it is not proved."""
    forward = Forward(10)
    made = sc.Oracle(forward, scaled=False, potential=Exponential())
    found = [_ahead(made, n_rounds, r=r) for r in (1.0, 1.5, 2.0, 3.0)]
    assert found[2] == pytest.approx(note, rel=0.1)
    assert found == sorted(found, reverse=True)
    for other in (sc.Oracle(forward), sc.Oracle(forward, scaled=False)):
        assert _ahead(other, n_rounds) == n_rounds
    beside = sc.Finite(3, potential=Exponential()) | made
    assert found[2] < _ahead(beside, n_rounds) < n_rounds
    quantile = sc.Forecaster(sc.Quantile(0.5, density=2.0), made, bins=15).guarantee(0.05, n_rounds=n_rounds)
    assert float(quantile) == n_rounds


@pytest.mark.parametrize("seed", range(6))
def test_explained_squares_are_a_logarithm_and_the_rounding(seed: int) -> None:
    """X of each value, at most 4 ln(K B) + 4.4 times the sum of d^2, against adversaries; and sup^2 <= n (X + Reg)."""
    bins, n_rounds = 3 + seed, 300
    forecaster = sc.Forecaster(sc.Mean(), SQUARES[1], bins=bins, seed=seed, protect="nothing", levels=0)
    arena = Arena(ball(4, seed=seed), seed=seed)
    play(forecaster, (Greedy if seed % 2 else Far)(arena), n_rounds, sc.Linear(4))
    evidence: Any = forecaster.state.evidence
    n = evidence.taught[:bins]
    explained = 2.0 * evidence.answers[:bins, 0] - evidence.squares[:bins]
    most = 4.0 * math.log(16 * 2.0 * bins / 0.05) + 4.4 * n * (0.5 / bins) ** 2
    assert (explained <= most).all()
    assert (np.square(evidence.reach(bins)) <= n * (explained + SQUARES[1].learner.regret(n)) + 1e-9).all()
    assert forecaster.error() <= forecaster.guarantee(0.05, n_rounds=n_rounds)


def _largest_share(n_runs: int, n_rounds: int) -> float:
    """Of the promised number, over runs against an adversary that knows the state."""
    worst = 0.0
    for seed in range(n_runs):
        r, bins = (1.0, 1.5, 2.0, 3.0)[seed % 4], (3, 5, 9)[seed % 3]
        functions, known = _PLAYED[seed % len(_PLAYED)]
        forecaster = sc.Forecaster(sc.Mean(), functions, bins=bins, r=r, seed=seed, protect="nothing")
        promised = float(forecaster.guarantee(0.05, n_rounds=n_rounds))
        play(forecaster, Greedy(Arena(groups(4, seed=seed))), n_rounds, known)
        worst = max(worst, forecaster.error() / promised)
    return worst


def test_adversaries_stay_below_it() -> None:
    assert 0.05 < _largest_share(12, 150) <= 1.0


@pytest.mark.slow
def test_in_two_hundred_runs() -> None:
    assert _largest_share(200, 300) <= 1.0

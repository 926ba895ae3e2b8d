"""`Oracle`: Algorithm 2 with a quadratic potential, against the paper read aloud, its theorem, and bad learners."""

import math
from typing import Any

import numpy as np
import pytest

import swapcal as sc
from instances import Sound
from swapcal import hypotheses
from swapcal.checks import check_hypotheses
from swapcal.errors import InvalidInput, StateFileError
from swapcal.hypotheses import Oracle
from swapcal.learners import GradientDescent, Learner, MultiplicativeWeights
from swapcal.protocols import Row, Tally
from swapcal.simulate.adversaries import Arena, Far, Greedy, GroupTargeted, Sweep, ball, groups, play, signed
from swapcal.typing import Float64Array

BUILT_IN: list[Learner] = [MultiplicativeWeights(3), GradientDescent(3)]


class Doubled:
    """Gradient descent that does not say that it is odd, and so gets two copies."""

    def __init__(self, n: int) -> None:
        descent = GradientDescent(n)
        self.n, self.odd, self.dual = n, False, descent.dual
        self.start, self.predict, self.update = descent.start, descent.predict, descent.update
        self.regret, self.spec = descent.regret, descent.spec


def stream(n: int, n_rounds: int, seed: int) -> tuple[Float64Array, Float64Array]:
    """Contexts in the unit ball, and labels that depend on them and drift."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n_rounds, n))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    drift = 0.15 * np.sin(np.arange(n_rounds) / 60.0)
    return X, 0.5 + 0.2 * X[:, 0] + drift + rng.uniform(-0.1, 0.1, n_rounds)


def dense(x: Float64Array) -> Row:
    return Row(np.arange(len(x)), x)


# The theorem: the step of the potential, the sum of all steps, and what the regret adds.


@pytest.mark.parametrize("learner", [*BUILT_IN, Doubled(3)], ids=["weights", "descent", "doubled"])
def test_step_of_the_potential(learner: Learner) -> None:
    """Q grows by at most X + k / (n + 1), X = -A + 2 v Phi, and X^2 <= 9 k A, X <= 2 k, for k copies."""
    evidence, rng = Oracle(learner).start(1), np.random.default_rng(6)
    X, _ = stream(3, 400, seed=7)
    k = len(evidence.signs)
    largest = 0.0
    for t, x in enumerate(X):
        n, before = float(evidence.counts[0]), np.maximum(evidence.sums[0], 0.0)
        phi = evidence.phi(0, dense(x))
        # Rounds that can be learned, so that S grows; then with the evidence, against it, and at random.
        v = (math.copysign(1.0, phi), -math.copysign(1.0, phi), float(rng.uniform(-1.0, 1.0)))[t % 5 % 3]
        v = float(x[0]) if t < 100 else v
        evidence.record(0, dense(x), v)
        after = np.maximum(evidence.sums[0], 0.0)
        A = float(np.sum(before**2)) / (n * (n + 1.0)) if n else 0.0
        step = -A + 2.0 * v * phi
        grown = float(np.sum(after**2)) / (n + 1.0) - (float(np.sum(before**2)) / n if n else 0.0)
        assert grown <= step + k / (n + 1.0) + 1e-9
        assert step**2 <= 9.0 * k * A + 1e-9
        assert step <= 2.0 * k
        largest = max(largest, step)
    assert largest > 0.1


@pytest.mark.parametrize("learner", [*BUILT_IN, Doubled(3)], ids=["weights", "descent", "doubled"])
@pytest.mark.parametrize("hostile", [True, False])
def test_what_the_class_finds_is_what_the_answers_find_and_the_regret(learner: Learner, hostile: bool) -> None:
    evidence, rng = Oracle(learner).start(1), np.random.default_rng(8)
    X, _ = stream(3, 400, seed=9)
    sums = np.zeros(3)
    for t, x in enumerate(X, start=1):
        answer = learner.predict(evidence.states[0, 0], dense(x))
        v = (-1.0 if answer > 0.0 else 1.0) if hostile else float(rng.uniform(-1.0, 1.0))
        evidence.record(0, dense(x), v)
        sums += x * v
        found = float(np.maximum(evidence.sums[0], 0.0).max())
        assert float(Oracle(learner).supremum(sums)) <= found + float(learner.regret(np.array(float(t)))) + 1e-9


GAMES: dict[str, tuple[Learner, Float64Array]] = {
    "weights-groups": (MultiplicativeWeights(8), groups(8, seed=1)),
    "weights-signed": (MultiplicativeWeights(4), signed(4, seed=1)),
    "descent": (GradientDescent(4), ball(4, seed=1)),
    "own": (Sound(), ball(2, seed=1)),
}


@pytest.mark.parametrize("strategy", [Greedy, Far, GroupTargeted, Sweep])
@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("horizon", [600, None])
def test_error_stays_below_the_guarantee(name: str, strategy: Any, horizon: int | None) -> None:
    n_rounds, (learner, pool) = 600, GAMES[name]
    forecaster = sc.Forecaster(sc.Mean(), Oracle(learner), horizon=horizon, seed=5)
    ahead = forecaster.guarantee(0.05, n_rounds=n_rounds)
    arena = Arena(pool, seed=12)
    play(forecaster, Sweep(arena, period=n_rounds / 10) if strategy is Sweep else strategy(arena), n_rounds)
    now = forecaster.guarantee(0.05)
    assert forecaster.error() <= 0.1 * n_rounds
    assert forecaster.error() <= now <= ahead
    assert now.theorem == ahead.theorem == "theorem B with an oracle"
    assert not now.broken
    evidence: Any = forecaster.state.evidence
    potential = np.sum(np.maximum(evidence.sums, 0.0) ** 2 / np.maximum(evidence.counts, 1.0)[:, None])
    harmonic = sum(math.fsum(1.0 / k for k in range(1, int(n) + 1)) for n in evidence.counts)
    assert potential <= len(evidence.signs) * (harmonic + 20.0 * math.log(20.0))


# The bound.


@pytest.mark.parametrize("r", [1.0, 1.5, 2.0, 3.0, 100.0])
@pytest.mark.parametrize(
    "learner", [*BUILT_IN, MultiplicativeWeights(1), Sound()], ids=lambda each: each.spec()["kind"]
)
def test_bound_ahead_covers_every_split_of_the_rounds(learner: Learner, r: float) -> None:
    evidence, rng = Oracle(learner).start(6), np.random.default_rng(14)
    for n_rounds in (1, 7, 60, 5000, 10**6):
        ahead = evidence.bound(Tally(6, learner.n, n_rounds), r, 0.05)
        splits = [np.full(6, n_rounds // 6), np.array([n_rounds, 0, 0, 0, 0, 0])]
        splits += [rng.multinomial(n_rounds, rng.dirichlet(np.full(6, a))) for a in (0.1, 0.5, 2.0, 20.0)]
        splits += [np.minimum(n_rounds // 6, k) * np.ones(6) for k in (1, 3, 9, 20)]
        for counts in splits:
            part = Tally(6, learner.n, int(counts.sum()), counts.astype(np.float64), counts.astype(np.float64))
            assert evidence.bound(part, r, 0.05) <= ahead * (1.0 + 1e-12)
        assert ahead <= n_rounds
    assert evidence.bound(Tally(6, learner.n, 0, np.zeros(6), np.zeros(6)), r, 0.05) == 0.0


# Citizenship: one path, exact files, finer grids.


@pytest.mark.parametrize("learner", [Doubled(3), Sound()], ids=["doubled", "own"])
def test_checks_of_a_class(learner: Learner) -> None:
    check_hypotheses(Oracle(learner))


def test_a_learner_of_your_own_is_passed_to_load_again() -> None:
    X, y = stream(2, 400, seed=17)
    forecaster = sc.Forecaster(sc.Mean(), Oracle(Sound()), horizon=800, seed=6)
    forecaster.run(X, y)
    data = forecaster.to_bytes()
    with pytest.raises(StateFileError, match="pass it as hypotheses=Oracle"):
        sc.Forecaster.from_bytes(data)
    with pytest.raises(StateFileError, match="is not the one that was stored"):
        sc.Forecaster.from_bytes(data, hypotheses=Oracle(GradientDescent(2)))
    again = sc.Forecaster.from_bytes(data, hypotheses=Oracle(Sound()))
    assert np.array_equal(again.run(X, y), forecaster.run(X, y))
    for bad in ({"kind": "Oracle"}, {"kind": "Oracle", "learner": 3}, {"kind": "Oracle", "learner": {"kind": "Mine"}}):
        with pytest.raises(StateFileError):
            hypotheses.from_spec(bad)


# Bad learners.


def test_what_is_no_learner_is_refused() -> None:
    for bad, why in ((None, "has no"), (GradientDescent, "make one"), (sc.Finite(3), "has no"), (3, "has no")):
        with pytest.raises(InvalidInput, match=why):
            Oracle(bad)

    class Manhattan(Sound):
        dual = "manhattan"

    class Integers(Sound):
        def start(self) -> Any:
            return np.zeros(3, dtype=np.int64)

    class Empty(Sound):
        n = 0

    for kind, why in ((Manhattan, "dual must be"), (Integers, "flat array"), (Empty, "whole number")):
        with pytest.raises(InvalidInput, match=why):
            Oracle(kind())

    class Negative(Sound):
        def regret(self, n_rounds: Float64Array) -> Float64Array:
            return np.asarray(-n_rounds)

    with pytest.raises(InvalidInput, match="declares a regret"):
        Oracle(Negative()).start(2).bound(Tally(2, 2, 10), 2.0, 0.05)


def test_learners_that_fail_leave_the_evidence_alone() -> None:
    class Fails(Sound):
        def update(self, state: Float64Array, row: Row, kappa: float) -> None:
            super().update(state, row, kappa)
            if state[-1] == 3.0:
                raise RuntimeError("out of order")

    class Loud(Sound):
        def predict(self, state: Float64Array, row: Row) -> float:
            return 3.0 * super().predict(state, row)

    class Overflows(Sound):
        def update(self, state: Float64Array, row: Row, kappa: float) -> None:
            super().update(state, row, kappa)
            state[0] = state[0] if state[-1] < 3.0 else math.nan

    row = dense(np.array([0.6, 0.8]))
    cases: list[tuple[Learner, type[Exception], str]] = [
        (Fails(), RuntimeError, "out of order"),
        (Loud(), InvalidInput, r"outside \[-1, 1\]"),
        (Overflows(), InvalidInput, "not finite"),
    ]
    for learner, error, why in cases:
        evidence = Oracle(learner).start(2)
        before: dict[str, Float64Array] = {}

        def three_rounds(evidence: Any = evidence, before: dict[str, Float64Array] = before) -> None:
            for _ in range(3):
                before.update({name: array.copy() for name, array in evidence.arrays().items()})
                evidence.record(1, row, 1.0)

        with pytest.raises(error, match=why):
            three_rounds()
        assert all(np.array_equal(before[name], array) for name, array in evidence.arrays().items())

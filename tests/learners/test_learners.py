"""The learners: the paper's pseudocode, the regret that is proved of them, and what the public check catches."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import swapcal as sc
from instances import LEARNERS, Sound
from naive_paper import Algorithm, gradient_descent, multiplicative_weights
from swapcal import learners
from swapcal.checks.hints import LearnerRules, check_learner
from swapcal.checks.rules import CheckFailed
from swapcal.errors import InvalidInput, StateFileError
from swapcal.learners import GradientDescent, MultiplicativeWeights
from swapcal.protocols import Row
from swapcal.typing import Float64Array

NAIVE: list[tuple[Any, Algorithm]] = [
    (MultiplicativeWeights(1), multiplicative_weights),
    (MultiplicativeWeights(4), multiplicative_weights),
    (GradientDescent(1), gradient_descent),
    (GradientDescent(4), gradient_descent),
]


def row_of(x: Float64Array) -> Row:
    indices = np.flatnonzero(x)
    return Row(indices, x[indices])


def sparse(n: int, n_rounds: int, seed: int) -> Float64Array:
    """Contexts in the unit ball, so that they fit both classes; some entries, and some whole contexts, are zero."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n_rounds, n)) * (rng.random((n_rounds, n)) < 0.6)
    return np.asarray(X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0))


@pytest.mark.parametrize(("learner", "algorithm"), NAIVE, ids=lambda each: getattr(each, "__name__", repr(each)))
def test_the_paper_read_aloud(learner: Any, algorithm: Algorithm) -> None:
    rng, state = np.random.default_rng(1), learner.start()
    past: list[list[float]] = []
    for x in sparse(learner.n, 80, seed=2):
        expected = sum(a * value for a, value in zip(algorithm(past, learner.n), x.tolist(), strict=True))
        assert learner.predict(state, row_of(x)) == pytest.approx(expected, rel=1e-12, abs=1e-13)
        kappa = float(rng.choice([-1.0, 1.0, rng.uniform(-1.0, 1.0)]))
        learner.update(state, row_of(x), kappa)
        past.append((kappa * x).tolist())


@settings(max_examples=60)
@given(
    learner=st.sampled_from([MultiplicativeWeights(3), GradientDescent(3)]),
    plan=st.lists(
        st.tuples(st.integers(0, 5), st.sampled_from(["with", "against", "+", "-", "0"])), min_size=1, max_size=60
    ),
)
def test_regret_against_adaptive_sequences(learner: Any, plan: list[tuple[int, str]]) -> None:
    pool = np.array([[1.0, 0, 0], [0, 1.0, 0], [0.6, -0.8, 0], [-0.6, 0, 0.8], [0.577, 0.577, 0.577], [0, 0, -1.0]])
    state, sums, gained = learner.start(), np.zeros(3), 0.0
    for t, (which, how) in enumerate(plan, start=1):
        row = row_of(pool[which])
        q = learner.predict(state, row)
        agree = 1.0 if q >= 0.0 else -1.0
        kappa = {"with": agree, "against": -agree, "+": 1.0, "-": -1.0, "0": 0.0}[how]
        learner.update(state, row, kappa)
        sums += kappa * pool[which]
        gained += q * kappa
        best = float(np.linalg.norm(sums)) if learner.odd else float(sums.max())
        assert learner.supremum(state) == pytest.approx(best, abs=1e-12)
        assert best - gained <= float(learner.regret(np.array(float(t)))) + 1e-9


def test_regret_in_numbers() -> None:
    assert MultiplicativeWeights(7).regret(np.array([0.0, 25.0])).tolist() == pytest.approx(
        [0.0, 10.0 * math.sqrt(math.log(7.0))]
    )
    assert GradientDescent(7).regret(np.array([0.0, 1.0, 400.0])).tolist() == [0.0, 1.25, 58.25]


def test_weights_survive_huge_sums() -> None:
    """Sums after a billion rounds: no exponential overflows, and the best function has all the weight."""
    learner = MultiplicativeWeights(3)
    state = learner.start()
    state[:4] = [1e9, 1e9, -1e9, 0.0]
    learner.update(state, Row(np.array([0]), np.array([1.0])), 1.0)
    assert np.isfinite(state).all()
    assert learner.predict(state, Row(np.array([0, 1]), np.array([0.5, 1.0]))) == 0.5


def test_specs_and_sizes() -> None:
    for learner in LEARNERS:
        assert learners.from_spec(learner.spec()) == learner
    sizes: list[Any] = [0, -1, 2.0, True, "3", None]
    for kind in (MultiplicativeWeights, GradientDescent):
        for n in sizes:
            with pytest.raises(InvalidInput, match="whole number"):
                kind(n)
    with pytest.raises(StateFileError, match="hypotheses=Oracle"):
        learners.from_spec({"kind": "Mine"})
    for bad in ({"kind": "GradientDescent"}, {"kind": "GradientDescent", "n": -1}, {"kind": "GradientDescent", "m": 1}):
        with pytest.raises(StateFileError, match="damaged"):
            learners.from_spec(bad)


# Every rule of the public check catches somebody.


class CountsQuestions(Sound):
    def predict(self, state: Float64Array, row: Row) -> float:
        state[-1] += 0.01
        return super().predict(state, row)


class RemembersByItself(Sound):
    def __init__(self) -> None:
        self.last = 0.0

    def update(self, state: Float64Array, row: Row, kappa: float) -> None:
        super().update(state, row, 0.5 * (kappa + self.last))
        self.last = kappa


class TooLoud(Sound):
    def predict(self, state: Float64Array, row: Row) -> float:
        return 1.01 * super().predict(state, row)


class Biased(Sound):
    def predict(self, state: Float64Array, row: Row) -> float:
        return max(super().predict(state, row), -0.5)


def changed(**members: Any) -> Any:
    """The sound learner with some members replaced."""
    return type("Changed", (Sound,), members)()


SHARED = np.zeros(3)
BROKEN: dict[str, Any] = {
    "has_the_role": changed(contract="ranks"),
    "starts_anew": changed(start=lambda self: SHARED),
    "predict_learns_nothing": CountsQuestions(),
    "states_are_separate": RemembersByItself(),
    "answers_are_bounded": TooLoud(),
    "odd_as_claimed": Biased(),
    "regret_is_a_bound": changed(regret=lambda self, n_rounds: np.asarray(100.0 / n_rounds)),
    "regret_is_kept": changed(regret=lambda self, n_rounds: np.asarray(0.3 * np.sqrt(n_rounds))),
    "spec_is_plain": changed(spec=lambda self: {"kind": "Sound", "start": np.zeros(3)}),
}


class Words:
    """Follows the leader over the words of a text; a state is a dictionary."""

    odd = True

    def row(self, x: Any) -> Any:
        return sorted(set(x["text"].split()))

    def start(self) -> Any:
        return {"n": 0, "sums": {}}

    def predict(self, state: Any, row: Any) -> float:
        length = max(self.supremum(state), math.sqrt(state["n"]), 1.0)
        return float(sum(state["sums"].get(w, 0.0) for w in row) / max(len(row), 1) ** 0.5 / length)

    def update(self, state: Any, row: Any, kappa: float) -> None:
        state["n"] += 1
        for w in row:
            state["sums"][w] = state["sums"].get(w, 0.0) + float(kappa) / len(row) ** 0.5

    def regret(self, n: Any) -> Any:
        return 1.5 * np.sqrt(n)

    def supremum(self, state: Any) -> float:
        return float(sum(s * s for s in state["sums"].values()) ** 0.5)

    def spec(self) -> Any:
        return {"kind": "Words"}


def test_learners_that_read_no_vectors_are_checked_on_contexts_of_theirs() -> None:
    texts = [{"text": text} for text in ("a b", "a c d", "", "b", "d e f g")]
    check_learner(Words(), contexts=texts, n_rounds=60)
    with pytest.raises(InvalidInput, match="pass contexts="):
        check_learner(Words())
    liar: Any = type("Liar", (Words,), {"regret": lambda self, n: np.asarray(0.1 * np.sqrt(n))})()
    with pytest.raises(CheckFailed) as caught:
        check_learner(liar, contexts=texts, n_rounds=60)
    assert caught.value.rule == "regret_is_kept"


@pytest.mark.parametrize("rule", LearnerRules.rules())
def test_every_rule_catches_somebody(rule: str) -> None:
    with pytest.raises(CheckFailed) as caught:
        check_learner(BROKEN[rule], n_rounds=200)
    assert caught.value.rule == rule


def test_a_sound_learner_passes_and_settings_are_checked() -> None:
    check_learner(Sound(), n_rounds=200)
    for bad in ({"n_rounds": 0}, {"n_rounds": 2.5}, {"seed": -1}):
        with pytest.raises(InvalidInput, match="whole number"):
            check_learner(Sound(), **bad)


class Failing(GradientDescent):
    """Fails in each third update, as a learner of a user's own may."""

    calls = 0

    def update(self, state: Any, row: Any, label: float) -> None:
        Failing.calls += 1
        if Failing.calls % 3 == 0:
            raise RuntimeError("no")
        super().update(state, row, label)


def test_a_learner_that_fails_leaves_no_trace() -> None:
    """The learning hint had learned the round already, and once more with each retry."""
    forecaster = sc.Forecaster(sc.Mean(), sc.Oracle(Failing(2)), hint=sc.OnlineRegression(), seed=1)
    rng, failures = np.random.default_rng(0), 0
    for _ in range(60):
        x = rng.uniform(-0.5, 0.5, 2)
        forecast, y = forecaster.predict(x), float(rng.random())
        for _ in range(5):
            counters, arrays = forecaster.state.snapshot()
            try:
                forecaster.update(forecast, y)
                break
            except RuntimeError:
                failures += 1
                again, after = forecaster.state.snapshot()
                assert again == counters
                for name, array in arrays.items():
                    np.testing.assert_array_equal(after[name], array, err_msg=name)
    assert failures >= 20
    assert forecaster.n_rounds == 60

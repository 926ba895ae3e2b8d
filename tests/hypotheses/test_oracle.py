"""`Oracle`: what it refuses, what it weighs, how it is saved; theorems O and Q are in `test_taught.py`."""

import contextlib
import math
from typing import Any

import numpy as np
import pytest

import naive_paper
import swapcal as sc
from instances import Sound
from swapcal import hypotheses
from swapcal.audits import swap_multicalibration_error
from swapcal.errors import InvalidInput, StateFileError
from swapcal.hypotheses import Oracle
from swapcal.learners import GradientDescent, MultiplicativeWeights, model
from swapcal.protocols import Row, Tally
from swapcal.simulate.adversaries import Arena, Far, Greedy, GroupTargeted, Sweep, ball, groups, play, signed
from swapcal.typing import Float64Array


def dense(x: Float64Array) -> Row:
    return Row(np.arange(len(x)), x)


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize(
    ("learner", "algorithm", "signs"),
    [
        (GradientDescent(3), naive_paper.gradient_descent, (1.0,)),
        (MultiplicativeWeights(3), naive_paper.multiplicative_weights, (1.0, -1.0)),
    ],
    ids=["descent", "weights"],
)
def test_phi_from_the_list_of_past_rounds(learner: Any, algorithm: Any, signs: Any, scaled: bool) -> None:
    """Said in one value, counted in another; each copy's answers, sums and spreads by loops over the past."""
    rng = np.random.default_rng(1)
    evidence: Any = Oracle(learner, scaled=scaled).start(3)
    past: list[tuple[int, Any, float, int, float]] = []
    fed: list[list[list[float]]] = [[], [], []]
    said: list[dict[float, list[tuple[float, float]]]] = [{s: [] for s in signs} for _ in range(3)]
    sizes = [dict.fromkeys(signs, 0.0) for _ in range(3)]

    def seen(value: int, s: float, x: Any, *, largest: float | None = None) -> tuple[float, float]:
        rounds = [[s * k for k in one] for one in fed[value]]
        a = s * math.fsum(w * each for w, each in zip(algorithm(rounds, 3), x, strict=True))
        most = max(sizes[value][s], abs(a))
        return (a / most if scaled and most else a), abs(a)

    for _ in range(40):
        x = rng.uniform(-0.5, 0.5, 3)
        for value in range(3):
            expected = 0.0
            for s in signs:
                pairs = said[value][s]
                S, C = sum(u * v for u, v in pairs), sum(abs(u * v) for u, v in pairs)
                weight = math.exp((S * S + 1.0) / (3.0 * (C + 1.0))) * math.sinh(2.0 * S / (3.0 * (C + 1.0)))
                expected += weight * seen(value, s, x)[0]
            assert evidence.phi(value, dense(x)) == pytest.approx(expected, rel=1e-9, abs=1e-12)
        i, j = rng.integers(3, size=2).tolist()
        v, kappa = rng.uniform(-1.0, 1.0, 2).tolist()
        for s in signs:
            u, size = seen(i, s, x)
            said[i][s].append((u, v))
            sizes[i][s] = max(sizes[i][s], size)
        fed[j].append((kappa * x).tolist())
        evidence.learn(i, dense(x), v, j, kappa)
        past.append((i, x, v, j, kappa))


GAMES: dict[str, tuple[Any, Float64Array]] = {
    "weights-groups": (MultiplicativeWeights(8), groups(8, seed=1)),
    "weights-signed": (MultiplicativeWeights(4), signed(4, seed=1)),
    "descent": (GradientDescent(4), ball(4, seed=1)),
    "own": (Sound(), ball(2, seed=1)),
}


@pytest.mark.parametrize("strategy", [Greedy, Far, GroupTargeted, Sweep])
@pytest.mark.parametrize("name", GAMES)
def test_error_stays_below_the_guarantee(name: str, strategy: Any) -> None:
    """Adversaries that know the odds of every draw and the class behind the learner."""
    n_rounds, (learner, pool) = 300, GAMES[name]
    plain = sc.Finite(learner.n) if name.startswith("weights") else sc.Linear(learner.n)
    arena = Arena(pool, seed=12)
    forecaster = sc.Forecaster(sc.Mean(), Oracle(learner), horizon=n_rounds, seed=5)
    adversary = Sweep(arena, period=n_rounds / 10) if strategy is Sweep else strategy(arena)
    played = play(forecaster, adversary, n_rounds, plain)
    now = forecaster.guarantee(0.05)
    assert forecaster.n_rounds == n_rounds
    assert forecaster.error().kind == "exact"
    assert forecaster.error() == pytest.approx(
        swap_multicalibration_error(played.y, played.p, played.x, hypotheses=plain), rel=1e-9
    )
    assert forecaster.error() <= now
    assert now.theorem == "theorem O"
    assert not now.broken
    with pytest.raises(InvalidInput, match="through its learner alone"):
        play(forecaster, adversary, 1)


@pytest.mark.parametrize("r", [1.0, 1.5, 2.0, 3.0, 100.0])
@pytest.mark.parametrize(
    "learner", [MultiplicativeWeights(3), GradientDescent(3), MultiplicativeWeights(1), Sound()], ids=repr
)
def test_bound_ahead_covers_every_split_of_the_rounds(learner: Any, r: float) -> None:
    evidence, rng = Oracle(learner).start(6), np.random.default_rng(14)
    for n_rounds in (1, 7, 60, 5000, 10**6):
        ahead = evidence.bound(Tally(6, learner.n, n_rounds), r, 0.05)
        assert ahead <= n_rounds
        for a in (0.1, 0.5, 2.0, 20.0):
            counts = rng.multinomial(n_rounds, rng.dirichlet(np.full(6, a))).astype(float)
            evidence.taught[:] = counts  # type: ignore[attr-defined]
            none = np.zeros(6)
            part = Tally(6, learner.n, n_rounds, counts, counts, none)
            assert evidence.bound(part, r, 0.05) >= 0.0
            reached = np.minimum(np.asarray(learner.regret(np.maximum(counts, 1.0))), counts)
            there = counts > 0
            assert np.sum(counts[there] * (reached[there] / counts[there]) ** r) <= ahead * (1.0 + 1e-9)


def test_a_learner_of_your_own_is_passed_to_load_again() -> None:
    rng = np.random.default_rng(17)
    X = rng.uniform(-0.7, 0.7, (200, 2))
    y = np.clip(0.5 + 0.3 * X[:, 0] + rng.uniform(-0.1, 0.1, 200), 0.0, 1.0)
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


def test_what_is_no_learner_is_refused() -> None:
    for bad, why in ((None, "has no"), (GradientDescent, "make one"), (sc.Finite(3), "has no"), (3, "has no")):
        with pytest.raises(InvalidInput, match=why):
            Oracle(bad)

    class Ranks(Sound):
        contract = "ranks"

    with pytest.raises(InvalidInput, match="contract"):
        Oracle(Ranks())

    class Negative(Sound):
        def regret(self, n_rounds: Float64Array) -> Float64Array:
            return np.asarray(-n_rounds)

    with pytest.raises(InvalidInput, match="declares a regret"):
        Oracle(Negative()).start(2).bound(Tally(2, 2, 10), 2.0, 0.05)
    with pytest.raises(InvalidInput, match="one learner"):
        Oracle(Sound()) | Oracle(Sound())
    with pytest.raises(InvalidInput, match="wider range"):
        sc.Forecaster(sc.Mean(), Oracle(Sound()), outside="follow")
    for bad_context in (None, [1.0], [1.0, math.nan], "x"):
        with pytest.raises(InvalidInput):
            sc.Forecaster(sc.Mean(), Oracle(Sound())).predict(bad_context)


class Answers(Sound):
    """Answers what it is told to."""

    def __init__(self, answer: float) -> None:
        self.answer = answer

    def predict(self, state: Float64Array, row: Row) -> float:
        return self.answer if float(state[-1]) >= 3.0 else super().predict(state, row)


class Fails(Sound):
    def update(self, state: Float64Array, row: Row, kappa: float) -> None:
        super().update(state, row, kappa)
        if state[-1] == 4.0:
            raise RuntimeError("out of order")


@pytest.mark.parametrize("hint", [None, 0.3])
@pytest.mark.parametrize(
    ("learner", "why"),
    [(Answers(2.0), "outside"), (Answers(math.nan), "outside"), (Answers(math.inf), "outside"), (Fails(), "of order")],
    ids=["two", "nan", "infinite", "raises"],
)
def test_learners_that_fail_leave_everything_as_it_was(learner: Any, why: str, hint: float | None) -> None:
    forecaster = sc.Forecaster(
        sc.Mean(), Oracle(learner), bins=1, seed=1, hint=sc.OnlineRegression() if hint is None else None
    )
    failed = 0
    for _ in range(5):
        before = [forecaster.to_bytes()]

        def one(before: list[bytes] = before) -> None:
            forecast = forecaster.predict([0.6, 0.8], hint)
            before[0] = forecaster.to_bytes()
            forecaster.update(forecast, 0.4)

        if forecaster.n_rounds < 2:
            one()
            continue
        with contextlib.suppress(InvalidInput, RuntimeError):
            one()
            continue
        failed += 1
        assert forecaster.to_bytes() == before[0]
        with pytest.raises((InvalidInput, RuntimeError), match=why):
            one()
        assert forecaster.to_bytes() == before[0]
    assert failed


def test_one_state_for_all_values_and_a_column_for_each() -> None:
    """A shared model is told which value it is asked about, and asked before it is told."""
    log: list[tuple[str, Any]] = []

    class Logs:
        n = 1

        def start(self) -> Any:
            return {"sum": 0.0, "n": 0}

        def at(self, row: Row, value: float) -> Any:
            return (float(row.values.sum()), value)

        def predict(self, state: Any, row: Any) -> float:
            log.append(("asked", row))
            return float(state["sum"] / max(state["n"], 1) * 0.5)

        def update(self, state: Any, row: Any, kappa: float) -> None:
            log.append(("told", row))
            state["sum"], state["n"] = state["sum"] + kappa, state["n"] + 1

        def spec(self) -> Any:
            return {"kind": "Logs"}

    forecaster = sc.Forecaster(sc.Mean(), Oracle(Logs(), shared=True), bins=5, seed=1)
    rng = np.random.default_rng(2)
    for _ in range(120):
        begin = len(log)
        forecast = forecaster.predict([float(rng.random()) + 0.1])
        forecaster.update(forecast, float(rng.random() < 0.8))
        told = [k for k, (what, _) in enumerate(log[begin:]) if what == "told"]
        assert len(told) == 1
        assert ("asked", log[begin + told[0]][1]) in log[begin : begin + told[0]]
        assert log[begin + told[0]][1][1] == forecast.value
    evidence: Any = forecaster.state.evidence
    assert list(evidence.copies) == [-1]
    assert np.count_nonzero(evidence.taught) > 1
    error = forecaster.error()
    assert error.kind == "answers"
    assert "over the answers" in str(error)
    assert error <= forecaster.guarantee(0.05)
    again = sc.Forecaster.from_bytes(forecaster.to_bytes(), hypotheses=Oracle(Logs(), shared=True))
    assert again.distribution([0.5]) == forecaster.distribution([0.5])


@pytest.mark.parametrize("late", [0, 5])
def test_a_class_and_a_learner_side_by_side(late: int) -> None:
    """The error is the larger one in each value, and says so part by part; the learner is taught what was shown."""
    rng = np.random.default_rng(3)
    both = sc.Finite(2) | Oracle(GradientDescent(2))
    forecaster, waiting, rounds = sc.Forecaster(sc.Mean(), both, bins=6, seed=2, levels=0), [], []
    for t in range(300):
        x = [1.0, float(rng.uniform(-1.0, 1.0))]
        y = float(np.clip(0.5 + 0.3 * x[1] + rng.normal() * 0.1, 0.0, 1.0))
        waiting.append((forecaster.predict(x, 0.5), x, y))
        if len(waiting) > late:
            forecast, x, y = waiting.pop(0)
            forecaster.update(forecast, y)
            at = forecaster.values[np.argmin(np.abs(forecaster.values - forecast.value))]
            rounds.append((at, x, forecast.value - y))
        assert t >= 0
    total, alone = 0.0, 0.0
    for value in {each[0] for each in rounds}:
        own = [(np.array(x), v) for z, x, v in rounds if z == value]
        finite = np.abs(sum(x * v for x, v in own)).max()
        ball = np.linalg.norm(sum(x / max(np.linalg.norm(x), 1.0) * v for x, v in own))
        total += max(finite, ball) ** 2 / len(own)
        alone += finite**2 / len(own)
    error = forecaster.error()
    assert error == pytest.approx(total, rel=1e-9)
    assert error.parts["Finite(2)"] == pytest.approx(alone, rel=1e-9)
    assert error.kind == "exact"
    assert error <= forecaster.guarantee(0.05)
    again = sc.Forecaster.from_bytes(forecaster.to_bytes())
    assert again.error() == error
    assert again.distribution([1.0, 0.4], 0.5) == forecaster.distribution([1.0, 0.4], 0.5)


def test_records_of_any_kind_travel_with_forecasts() -> None:
    """A dictionary of texts and numbers, through late outcomes, a file, JSON and `run`."""
    tree = pytest.importorskip("river.tree")
    made = Oracle(model(tree.HoeffdingTreeRegressor(grace_period=20, leaf_prediction="mean"), pickled=True))
    rng, cases = np.random.default_rng(4), []
    for _ in range(120):
        case = {"city": str(rng.choice(["Zürich", "東京"])), "x": float(rng.normal())}
        cases.append((case, float(rng.random() < (0.8 if case["city"] == "東京" else 0.2))))
    options: dict[str, Any] = {"bins": 4, "seed": 1}
    loop, whole = (sc.Forecaster(sc.Probability(), made, **options) for _ in range(2))
    forecasts = whole.run([case for case, _ in cases], np.array([y for _, y in cases]))
    for k, (case, y) in enumerate(cases):
        forecast = loop.predict(case)
        assert forecast.value == forecasts[k]
        loop.update(sc.Forecast.from_json(forecast.to_json()), y)
    waiting = [loop.predict(case) for case, _ in cases[:5]]
    again = sc.Forecaster.from_bytes(loop.to_bytes(), hypotheses=made)
    for forecast in waiting:
        again.update(sc.Forecast.from_json(forecast.to_json()), 1.0)
        loop.update(forecast, 1.0)
    assert again.distribution(cases[0][0]) == loop.distribution(cases[0][0])
    assert again.error() == loop.error()
    with pytest.raises(StateFileError, match="pickled=True"):
        sc.Forecaster.from_bytes(loop.to_bytes(), hypotheses=Oracle(model(tree.HoeffdingTreeRegressor())))

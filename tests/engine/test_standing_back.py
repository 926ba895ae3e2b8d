"""The gate: at once it is not there, late it keeps its promise against anybody, and it is the same wherever it runs."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

import swapcal as sc
from effort import ALL, crossed
from swapcal import simulate
from swapcal.engine import gate as gates
from swapcal.engine import kernels
from swapcal.engine.gate import LossBounds
from swapcal.simulate import streams

PROPERTIES: dict[str, Any] = {
    "mean": sc.Mean(low=-1.0, high=3.0),
    "probability": sc.Probability(),
    "quantile": sc.Quantile(0.9),
    "expectile": sc.Expectile(0.2),
    "moment": sc.Moment(2, low=-1.0, high=2.0),
    "own": sc.Property(lambda p, y: p - y, lipschitz=1.0),
}


def data(property: Any, n: int, seed: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    x = (rng.random((n, 4)) < 0.5).astype(float)
    x[:, 0] = 1.0
    chance = np.clip(0.2 + 0.5 * x[:, 1] * x[:, 2], 0.0, 1.0)
    unit = (rng.random(n) < chance).astype(float)
    if not isinstance(property, sc.Probability):
        unit = np.clip(chance + 0.4 * (rng.random(n) - 0.5), 0.0, 1.0)
    low, high = property.domain
    return x, property.low + (property.high - property.low) * unit, low + (high - low) * (0.1 + 0.7 * chance)


def late_by(kind: str, y: Any) -> Any:
    n = len(y)
    if kind == "fixed":
        return streams.fixed(n, 40)
    if kind == "geometric":
        return streams.geometric(n, 25.0, 1)
    if kind == "by outcome":
        return streams.by_outcome(y, 1.0, 150.0, 1)
    if kind == "a history":
        return np.arange(n) + np.where(np.arange(n) < 200, 1.0, np.random.default_rng(3).geometric(1.0 / 25.0, n))
    return np.arange(n) + np.where(np.random.default_rng(2).random(n) < 0.5, 1.0, 90.0)


def looped(forecaster: sc.Forecaster, x: Any, y: Any, h: Any, known: Any, save_at: int) -> tuple[Any, sc.Forecaster]:
    """`predict` and `update`; in the middle all that is out goes through JSON, and the forecaster through a file."""
    order = np.argsort(known, kind="stable")
    waiting: dict[int, sc.Forecast] = {}
    shown, k = np.empty(len(y)), 0
    for t in range(len(y)):
        while k < len(y) and known[order[k]] <= t:
            forecaster.update(waiting.pop(int(order[k])), float(y[order[k]]))
            k += 1
        waiting[t] = forecaster.predict(x[t], float(h[t]))
        shown[t] = float(waiting[t])
        if t == save_at:
            own = forecaster.property if isinstance(forecaster.property, sc.Property) else None
            forecaster = sc.Forecaster.from_bytes(forecaster.to_bytes(), property=own)
            waiting = {key: sc.Forecast.from_json(each.to_json()) for key, each in waiting.items()}
    return shown, forecaster


@pytest.mark.parametrize(
    ("name", "kind"), crossed(PROPERTIES, ["fixed", "geometric", "by outcome", "some at once", "a history"], of=2)
)
def test_the_same_in_a_run_in_a_loop_and_through_files(name: str, kind: str) -> None:
    target = PROPERTIES[name]
    x, y, h = data(target, 500, 3)
    known = late_by(kind, y)
    found = []
    for backend, learn in product(("native", "python") if kernels.native else ("python",), (False, True)):
        with kernels.using(backend):

            def made(learn: bool = learn) -> sc.Forecaster:
                hint = sc.OnlineRegression() if learn else None
                return sc.Forecaster(target, sc.Finite(4), seed=5, hint=hint)

            whole = made()
            shown = whole.run(x, y, h, known=known)
            each, other = looped(made(), x, y, h, known, 200)
            np.testing.assert_array_equal(each, shown)
            # What is known only behind the last row waits in one, and is out in the other.
            for part in ("totals", "counts"):
                np.testing.assert_array_equal(getattr(other.state.gate, part), getattr(whole.state.gate, part))
            assert other.error() == whole.error() <= whole.guarantee(0.05)
            assert other.guarantee() == whole.guarantee()
            assert other.lateness() == whole.lateness()
            found.append((learn, shown.tobytes(), whole.state.gate.totals.tobytes()))
    assert len(set(found)) == 2


@pytest.mark.parametrize("learn", [False, True])
def test_at_once_it_is_not_there(learn: bool) -> None:
    x, y, h = data(sc.Mean(), 400, 1)
    shown = []
    for stand_back in (False, True):
        hint = sc.OnlineRegression() if learn else None
        forecaster = sc.Forecaster(sc.Mean(), sc.Finite(4), seed=1, hint=hint, stand_back=stand_back)
        shown.append(forecaster.run(x, y, h))
        assert not forecaster.state.gate.open
        assert not forecaster.standing_back
        assert forecaster.lateness().sentences == ()
        np.testing.assert_array_equal(
            shown[-1][:50], sc.Forecaster(sc.Mean(), sc.Finite(4), seed=1, hint=hint).run(x[:50], y[:50], h[:50])
        )
    np.testing.assert_array_equal(shown[0], shown[1])


def test_without_a_hint_there_is_nothing_to_stand_back_to() -> None:
    x, y, _ = data(sc.Mean(), 300, 1)
    shown = [
        sc.Forecaster(sc.Mean(), sc.Finite(4), seed=1, stand_back=each).run(x, y, known=streams.fixed(300, 30))
        for each in (False, True)
    ]
    np.testing.assert_array_equal(shown[0], shown[1])


def test_the_record_does_not_depend_on_what_is_shown() -> None:
    """Engine, hint and paper are those of a forecaster that never stands back."""
    x, y, h = data(sc.Mean(), 600, 2)
    known = streams.by_outcome(y, 5.0, 200.0, 0)
    both = [
        sc.Forecaster(sc.Mean(), sc.Finite(4), seed=1, hint=sc.OnlineRegression(), stand_back=each)
        for each in (False, True)
    ]
    shown = [each.run(x, y, h, known=known) for each in both]
    assert not np.array_equal(shown[0], shown[1])
    free, gated = (each.state for each in both)
    for part in ("evidence", "record", "hint"):
        for name, array in getattr(free, part).arrays().items():
            np.testing.assert_array_equal(array, getattr(gated, part).arrays()[name])
    np.testing.assert_array_equal(free.ledger.sums, gated.ledger.sums)
    stood = shown[1] != shown[0]
    np.testing.assert_array_equal(shown[1][stood], h[stood])
    assert gated.gate.counts[gates.N_BACK] == np.count_nonzero(stood)


@pytest.mark.parametrize("name", ["mean", "probability", "quantile", "expectile", "moment"])
def test_the_worst_case_is_the_worst(name: str) -> None:
    target, rng = PROPERTIES[name], np.random.default_rng(1)
    stakes, (low, high) = LossBounds(target), target.domain
    for _ in range(200):
        said, model = low + (high - low) * rng.random(2)
        labels = [target.low, target.high, *(target.low + (target.high - target.low) * rng.random(20))]
        labels = [0.0, 1.0] if name == "probability" else labels
        costs = [stakes.outcome(said, model, y) for y in labels]
        worst = stakes.worst(said, model)
        assert all(each.difference <= worst + 1e-12 for each in costs)
        scale = float(target.loss(said, labels[0]) - target.loss(model, labels[0])) / costs[0].difference
        for y, each in zip(labels, costs, strict=True):
            # In the scale of the loss that people report.
            assert each.difference * scale == pytest.approx(
                float(target.loss(said, y) - target.loss(model, y)), abs=1e-9
            )
            assert each.model * scale == pytest.approx(float(target.loss(model, y)), abs=1e-9)


class Watched:
    """The naive book of what was shown: every round with its number, its worst case and when it was learned."""

    def __init__(self, forecaster: sc.Forecaster) -> None:
        self.forecaster, self.stakes = forecaster, LossBounds(forecaster.property)
        self.rounds: dict[int, tuple[float, float, bool]] = {}
        self.costs: dict[int, float] = {}
        self.losses: dict[int, float] = {}
        self.last: tuple[float, float, float] | None = None

    def predict(self, x: Any, h: float) -> sc.Forecast:
        gate = self.forecaster.state.gate
        forecast = self.forecaster.predict(x, h)
        if gate.open and forecast.round >= gate.counts[gates.BEGIN]:
            said = forecast.value if forecast.said is None else forecast.said
            follow = forecast.said is None
            self.rounds[forecast.round] = said, h, follow
            if follow and said != h:
                front = int(gate.counts[gates.FRONT]) * gates.COHORT
                judged = [t for t in self.losses if t < front]
                loss = sum(self.losses[t] for t in judged)
                out = sum(
                    self.stakes.worst(*self.rounds[t][:2]) for t in self.rounds if t >= front and self.rounds[t][2]
                )
                self.last = loss, loss / max(len(judged), 1), out
        return forecast

    def update(self, forecast: sc.Forecast, y: float) -> None:
        self.forecaster.update(forecast, y)
        if forecast.round in self.rounds:
            said, h, follow = self.rounds[forecast.round]
            cost = self.stakes.outcome(said, h, y)
            self.losses[forecast.round] = cost.model
            self.costs[forecast.round] = cost.difference if follow else 0.0

    def check(self) -> float:
        """What was shown has cost over the model, beside what is promised."""
        if self.last is None:
            assert all(each == 0.0 for each in self.costs.values())
            return 0.0
        loss, mean, out = self.last
        paid, promised = sum(self.costs.values()), 0.004 * loss + 2.0 * mean + out
        assert paid <= promised + 1e-9
        return paid / promised


ADVERSARIES = (
    "against what is said",
    "for it, then against",
    "holds back what costs",
    "by chance",
    "the model is right",
)


def adversarial(strategy: str, seed: int, n: int, **options: Any) -> float:
    """The largest share of its promise that the gate has used against somebody who picks outcomes and delays."""
    rng = np.random.default_rng(seed)
    forecaster = sc.Forecaster(sc.Mean(), sc.Finite(2), seed=seed, hint=sc.OnlineRegression(), **options)
    watched, waiting, used = Watched(forecaster), list[tuple[int, sc.Forecast, float]](), 0.0
    for t in range(n):
        h = float(np.clip(0.5 + 0.3 * np.sin(t / 200.0) + 0.05 * rng.normal(), 0.0, 1.0))
        forecast = watched.predict([1.0, float(rng.random() < 0.5)], h)
        said = forecast.value if forecast.said is None else forecast.said
        # Of labels 0 and 1, the one with which what is said loses most.
        bad = 0.0 if said > h else 1.0
        y, delay = {
            "against what is said": (bad, 60),
            "for it, then against": (1.0 - bad if t < n // 2 else bad, 60),
            "holds back what costs": ((y := float(rng.random() < 0.5)), 400 if y == bad else 1),
            "by chance": (float(rng.random() < 0.7), int(rng.geometric(1.0 / 50.0))),
            "the model is right": (float(rng.random() < h), 100),
        }[strategy]
        waiting.append((t + delay, forecast, y))
        for item in [each for each in waiting if each[0] <= t]:
            waiting.remove(item)
            watched.update(item[1], item[2])
        if t % 50 == 49:
            used = max(used, watched.check())
    for _, late, y in waiting:
        watched.update(late, y)
    return max(used, watched.check())


@pytest.mark.parametrize("strategy", ADVERSARIES)
def test_the_promise_holds_for_every_sequence_of_outcomes_and_delays(strategy: str) -> None:
    assert adversarial(strategy, 1, 1500) <= 1.0


@pytest.mark.slow
def test_the_promise_holds_in_many_games() -> None:
    for seed, strategy in product(range(8 if ALL else 3), ADVERSARIES):
        assert adversarial(strategy, seed, 4000) <= 1.0


def test_it_stands_back_says_so_and_comes_back() -> None:
    """A model that is right at first and wrong later: corrections are shown once they have gained for some delays."""
    rng, n = np.random.default_rng(4), 12_000
    x, h = np.ones((n, 1)), rng.uniform(0.2, 0.8, n)
    chance = np.where(np.arange(n) < 4000, h, 0.5 * h)
    y = (rng.random(n) < chance).astype(float)
    forecaster = sc.Forecaster(sc.Probability(), sc.Finite(1), seed=1, hint=sc.OnlineRegression())
    first = forecaster.run(x[:100], y[:100], h[:100], known=streams.fixed(100, 200))
    assert forecaster.standing_back
    assert forecaster.lateness().sentences[0].startswith("Standing back since row ")
    assert np.array_equal(first[2:], h[2:100])
    shown = forecaster.run(x[100:], y[100:], h[100:], known=streams.fixed(n - 100, 200))
    known, later = slice(3900, None), np.mean((shown[3900:] - y[4000:]) ** 2)
    assert later < 0.93 * np.mean((h[100:][known] - y[100:][known]) ** 2)
    assert not forecaster.standing_back
    assert forecaster.lateness().n_stood_back > 0
    assert (
        np.sum((shown[:3900] - y[100:4000]) ** 2 - (h[100:4000] - y[100:4000]) ** 2)
        <= 0.005 * np.sum((h[100:4000] - y[100:4000]) ** 2) + 2.0
    )


def test_distribution_is_of_what_would_be_shown() -> None:
    x, y, h = data(sc.Mean(), 400, 5)
    forecaster = sc.Forecaster(sc.Mean(), sc.Finite(4), seed=1)
    waiting = []
    for t in range(400):
        chances = forecaster.distribution(x[t], float(h[t]))
        forecast = forecaster.predict(x[t], float(h[t]))
        assert sum(chances.values()) == pytest.approx(1.0)
        # The look before the draw does not judge cohorts; they are judged with the draw.
        if t % 32 and t > 2:
            assert float(forecast) in chances
        waiting.append((forecast, float(y[t])))
        if t >= 20:
            forecaster.update(*waiting.pop(0))


def test_what_is_forgotten_costs_nothing() -> None:
    """Every fifth outcome never comes; said late, when its cohort may be judged, it leaves the book as if at once."""
    x, y, h = data(sc.Mean(), 700, 8)
    books = []
    for patience in (0, 40, 200):
        forecaster = sc.Forecaster(sc.Mean(), sc.Finite(4), seed=1, stand_back=False)
        made = []
        for t in range(900):
            if t < 700:
                made.append(forecaster.predict(x[t], float(h[t])))
            for s, wait in ((t - 30, 30), (t - patience, patience)):
                if 0 <= s < 700 and s % 5 and wait == 30:
                    forecaster.update(made[s], float(y[s]))
                elif 0 <= s < 700 and s % 5 == 0 and wait == patience:
                    forecaster.forget(made[s])
        assert (forecaster.n_pending, forecaster.n_rounds) == (0, 560)
        with pytest.raises(sc.AlreadyUpdated):
            forecaster.forget(made[0])
        gate = forecaster.state.gate
        books.append([gate.totals[k] + gate.cohorts(700)[:, k].sum() for k in (gates.PAPER, gates.SPENT)])
        assert forecaster.error() <= forecaster.guarantee(0.05)
    np.testing.assert_allclose(books[1], books[0], atol=0.05)
    np.testing.assert_allclose(books[2], books[0], atol=0.05)
    assert abs(books[0][0]) > 1.0


# Delays that depend on outcomes


def flagged(y: Any, v: Any, lags: Any) -> bool:
    """The e-value over cohorts of 32, straight from its definition."""
    totals = np.zeros(gates.N_LATE_TOTALS)
    for start in range(0, len(y) - 31, 32):
        cohort = np.zeros(gates.LATE_WIDTH)
        for t in range(start, start + 32):
            gates.add(cohort, float(v[t]), int(lags[t]))
        if gates.judge(totals, cohort):
            return True
    return False


def test_the_e_value_is_its_definition() -> None:
    rng = np.random.default_rng(1)
    v, g = rng.normal(size=(9, 32)), rng.integers(0, 50, (9, 32))
    logs = np.log1p(g)
    x = np.array([np.sum((a - a.mean()) * (b - b.mean())) for a, b in zip(v, logs, strict=True)])
    rho = np.mean(x * x)
    expected = x.sum() ** 2 / (2.0 * (np.sum(x * x) + rho)) - 0.5 * math.log((np.sum(x * x) + rho) / rho)
    totals = np.zeros(gates.N_LATE_TOTALS)
    for row, late in zip(v, g, strict=True):
        cohort = np.zeros(gates.LATE_WIDTH)
        for a, b in zip(row, late, strict=True):
            gates.add(cohort, float(a), int(b))
        gates.judge(totals, cohort)
    assert gates.log_evidence(totals) == pytest.approx(expected)


def test_independent_delays_are_not_found_and_equal_ones_say_exactly_nothing() -> None:
    for seed in range(6):
        stream = simulate.drifting(4000, seed, binary=True)
        for known in (
            streams.fixed(4000, 77),
            streams.geometric(4000, 60.0, seed),
            streams.heavy_tailed(4000, 20.0, seed),
        ):
            forecaster = sc.Forecaster(sc.Probability(), sc.Finite(stream.x.shape[1]), seed=1)
            forecaster.run(stream.x, stream.y, stream.hint, known=known)
            late = forecaster.lateness()
            assert late.dependent_since is None
            assert late.log_e == 0.0 or not np.array_equal(known, streams.fixed(4000, 77))


def test_dependent_delays_are_found_and_said() -> None:
    for seed in range(6):
        stream = simulate.miscalibrated(6000, seed)
        for high, low, word in ((10.0, 400.0, "lower"), (400.0, 10.0, "higher")):
            forecaster = sc.Forecaster(sc.Probability(), sc.Finite(stream.x.shape[1]), seed=1)
            known = streams.by_outcome(stream.y, high, low, seed)
            forecaster.run(stream.x, stream.y, stream.hint, known=known)
            late = forecaster.lateness()
            assert late.dependent_since is not None
            said = next(each for each in late.sentences if each.startswith("Outcomes that come late"))
            assert f"were {word}" in said


@pytest.mark.slow
def test_false_flags_are_as_rare_as_promised() -> None:
    """300 streams of 20,000 rounds without dependence: none, or one, where about 0.3 are promised at most."""
    rng, false = np.random.default_rng(2), 0
    for k in range(300):
        p = (0.5, 0.05, 0.01)[k % 3]
        y = (rng.random(20_000) < p).astype(float)
        lags = [
            rng.geometric(1 / 300, 20_000),
            np.floor(50 * rng.pareto(1.2, 20_000)),
            3000 * (rng.random(20_000) < 0.5),
        ]
        false += flagged(y, p - y, lags[k // 3 % 3])
    assert false <= 2


@pytest.mark.parametrize("learn", [False, True])
@pytest.mark.parametrize(("high", "low"), [(20.0, 3000.0), (3000.0, 20.0)])
def test_it_starts_closed_where_outcomes_hold_themselves_back(learn: bool, high: float, low: float) -> None:
    """What is known first is a biased sample: hardly a correction from it is shown, before it is found to be one."""
    stream = simulate.miscalibrated(8000, 3)
    known = streams.by_outcome(stream.y, high, low, 1)
    hint = sc.OnlineRegression() if learn else None
    forecaster = sc.Forecaster(sc.Mean(), sc.Finite(stream.x.shape[1]), seed=1, hint=hint)
    shown = forecaster.run(stream.x, stream.y, stream.hint, known=known)
    assert np.count_nonzero(shown != stream.hint) <= 8
    assert forecaster.lateness().dependent_since is not None


@pytest.mark.parametrize(("flagged", "times"), [(-1, gates.GENERATIONS), (7, gates.PATIENCE)])
def test_it_spends_without_proof_when_enough_is_judged_and_more_where_delays_depend(flagged: int, times: int) -> None:
    gate = gates.Gate(LossBounds(sc.Probability()), True)
    gate.begin(0)
    gate.totals[[gates.MODEL, gates.JUDGED, gates.DISTANCE, gates.SIZE]] = 1000.0, 4000.0, 100.0, 100.0
    gate.counts[gates.FLAGGED], gate.counts[gates.FRONT] = flagged, 1_000
    judged = 1_000 * gates.COHORT
    rest = judged // times
    assert gate.follows(judged + rest - 1, 0.5, 0.49, rest)
    assert not gate.follows(judged + rest, 0.5, 0.49, rest + 1)
    assert not gate.follows(judged + rest - 1, 0.5, 0.49, rest + judged // 8 + 1)


def test_in_the_order_of_forecasts_nothing_is_left_to_find() -> None:
    """Each outcome waits for those before it: delays differ by little, and with the outcome for certain."""
    n = 12_000
    x, y, h = data(sc.Probability(), n, 9)
    known = np.arange(n) + np.where(y > 0.5, 1_000.0, 100.0)
    found = {}
    for order in ("arrival", "forecast"):
        forecaster = sc.Forecaster(sc.Probability(), sc.Finite(4), seed=1)
        forecaster.run(x, y, h, known=known, order=order)
        found[order] = int(forecaster.state.gate.counts[gates.FLAGGED])
    assert found["forecast"] == -1 < found["arrival"]
    totals, cohort = np.zeros(gates.N_LATE_TOTALS), np.zeros(gates.LATE_WIDTH)
    for k in range(32):
        gates.add(cohort, 1.0 if k % 2 else -1.0, 1_000 + 100 * (k % 2))
    for _ in range(1_000):
        assert not gates.judge(totals, cohort)
    assert not totals.any()


# A history that was learned at once speaks for itself when outcomes begin to come late.


@pytest.mark.parametrize("name", PROPERTIES)
def test_the_book_has_the_sums_of_the_history(name: str) -> None:
    target, n = PROPERTIES[name], 100
    x, y, h = data(target, n, 7)
    h[50:60] = np.nan  # nothing to compare with
    forecaster = sc.Forecaster(target, sc.Finite(4), seed=2)
    said = forecaster.run(x, y, h, missing="skip")
    hinted = ~np.isnan(h)
    costs = [LossBounds(target).outcome(*each) for each in zip(said[hinted], h[hinted], y[hinted], strict=True)]
    differences = np.array([each.difference for each in costs])
    totals = forecaster.state.gate.totals
    assert totals[gates.JUDGED] == 90.0
    assert totals[gates.PAPER] == pytest.approx(differences.sum())
    assert totals[gates.MODEL] == pytest.approx(sum(each.model for each in costs))
    assert totals[gates.SIZE] == pytest.approx(sum(abs(each.v) for each in costs))
    assert totals[gates.DISTANCE] == pytest.approx(sum(each.distance for each in costs))
    cohorts = differences[:64].reshape(2, 32).sum(axis=1)
    assert totals[gates.SQUARES] == pytest.approx((cohorts**2).sum())
    assert totals[gates.BLOCK] == pytest.approx(differences[64:].sum())
    assert not np.delete(totals, gates.NOTED).any()


def test_a_long_history_is_halved() -> None:
    x, y, h = data(sc.Mean(), gates.MEMORY + 50, 1)
    short, long = (sc.Forecaster(sc.Mean(), sc.Finite(4), seed=1) for _ in range(2))
    short.run(x[: gates.MEMORY - 1], y[: gates.MEMORY - 1], h[: gates.MEMORY - 1])
    long.run(x[: gates.MEMORY], y[: gates.MEMORY], h[: gates.MEMORY])
    assert short.state.gate.totals[gates.JUDGED] == gates.MEMORY - 1
    assert long.state.gate.totals[gates.JUDGED] == gates.MEMORY // 2
    assert long.state.gate.totals[gates.MODEL] == pytest.approx(0.5 * short.state.gate.totals[gates.MODEL], rel=1e-3)
    long.run(x[gates.MEMORY :], y[gates.MEMORY :], h[gates.MEMORY :])
    assert long.state.gate.totals[gates.JUDGED] == gates.MEMORY // 2 + 50
    sc.Forecaster.from_bytes(long.to_bytes())


def a_model_that_is_off(n: int, seed: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    x = (rng.random((n, 12)) < 0.3).astype(float)
    x[:, 0] = 1.0
    chance = 1.0 / (1.0 + np.exp(-(x @ rng.normal(0.0, 0.5, 12))))
    return x, (rng.random(n) < chance).astype(float), 0.7 * chance + 0.1


def test_what_a_history_has_shown_to_gain_is_shown_on() -> None:
    n, before, delay = 8_000, 5_000, 500.0
    x, y, h = a_model_that_is_off(n, 0)
    live = slice(before, n)
    known = np.arange(n - before) + delay
    shares, losses = [], []
    for learned in (before, 0):
        forecaster = sc.Forecaster(sc.Probability(), sc.Finite(12), seed=1, hint=sc.OnlineRegression())
        if learned:
            forecaster.run(x[:learned], y[:learned], h[:learned])
        shown = forecaster.run(x[live], y[live], h[live], known=known)
        soon = slice(int(delay), 4 * int(delay))
        shares.append(float((shown[soon] != h[live][soon]).mean()))
        losses.append(float(((shown - y[live]) ** 2).mean() / ((h[live] - y[live]) ** 2).mean()))
    assert shares[0] > 0.5 > 0.05 > shares[1]
    assert losses[0] < min(losses[1], 0.99)


@pytest.mark.parametrize("learn", [False, True])
@pytest.mark.parametrize(("high", "low"), [(20.0, 3000.0), (3000.0, 20.0)])
def test_outcomes_that_hold_themselves_back_do_no_harm_after_it(learn: bool, high: float, low: float) -> None:
    n, before = 20_000, 8_000
    for seed in range(2):
        x, y, h = a_model_that_is_off(n, seed)
        forecaster = sc.Forecaster(
            sc.Probability(), sc.Finite(12), seed=seed, hint=sc.OnlineRegression() if learn else None
        )
        forecaster.run(x[:before], y[:before], h[:before])
        x, y, h = x[before:], y[before:], h[before:]
        shown = forecaster.run(x, y, h, known=np.arange(len(y)) + np.where(y > 0.5, high, low))
        assert ((shown - y) ** 2).mean() <= 1.005 * ((h - y) ** 2).mean()

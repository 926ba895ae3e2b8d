"""The monitor: against a loop, over batches and machines, saved and loaded; false alarms and delays."""

import math
from typing import Any

import numpy as np
import pytest

from effort import part
from swapcal.errors import InvalidInput, StateFileError
from swapcal.hypotheses import Finite, Groups
from swapcal.monitor import NORM, RATES, Alarm, Ever, Monitor
from swapcal.properties import Mean, Probability, Quantile
from swapcal.state import pack
from swapcal.typing import Float64Array

Stream = tuple[Float64Array, Float64Array, Float64Array]
NAMES = [f"g{k}" for k in range(8)]


def stream(n: int, seed: int, *, bias: float = 0.0, start: int = 0) -> Stream:
    """Outcomes, forecasts, eight groups of which each row has two; group 3 is biased from row `start` on."""
    rng = np.random.default_rng(seed)
    x = np.zeros((n, 8))
    x[np.arange(n), rng.integers(0, 4, n)] = 1
    x[np.arange(n), 4 + rng.integers(0, 4, n)] = 1
    p = rng.choice([0.2, 0.4, 0.6, 0.8], n)
    hit = (x[:, 3] > 0) & (np.arange(n) >= start)
    return (rng.random(n) < p - bias * hit).astype(float), p, x


def naive(
    batches: list[Stream], tolerance: float, *, alpha: float | None = None, every: float | None = None
) -> list[tuple[int, int, int]]:
    """The recursions of docs/audits.md, looping over rows, groups, sides and rates: (batch, group, side) of alarms."""
    wealth = {(g, s, j): 0.5 if every is None else 0.0 for g in range(8) for s in (0, 1) for j in range(len(RATES))}
    turn, sounded, alarms = [0.0] * 8, set(), []
    for k, (y, p, x) in enumerate(batches):
        for g in range(8):
            members = [t for t in range(len(y)) if x[t, g]]
            if not members:
                continue
            turn[g] += 1 if every is None else 0
            stake = turn[g] if every is not None else 1 / (NORM * (turn[g] + 1) * math.log(turn[g] + 1) ** 2)
            for s, sign in enumerate((1, -1)):
                for j, rate in enumerate(RATES.tolist()):
                    gain = math.prod((1 + sign * rate * (p[t] - y[t])) / (1 + rate * tolerance) for t in members)
                    wealth[g, s, j] = gain * (wealth[g, s, j] + stake)
                mean = sum(wealth[g, s, j] for j in range(len(RATES))) / len(RATES)
                level = 2 * 8 / alpha if alpha is not None else 2 * (every or 0)
                if mean >= level and (g, s) not in sounded:
                    alarms.append((k, g, s))
                    if every is None:
                        sounded.add((g, s))
                    else:
                        wealth.update({(g, s, j): 0.0 for j in range(len(RATES))})
            if every is not None:
                turn[g] = sum(1 / x[t].sum() for t in members)
    return alarms


@pytest.mark.parametrize("promise", [{"alpha": 0.05}, {"every": 3000.0}])
def test_alarms_are_those_of_the_loop(promise: Any) -> None:
    rng = np.random.default_rng(0)
    y, p, x = stream(3000, 1, bias=0.15, start=1000)
    cuts = np.sort(rng.choice(np.arange(1, 3000), 60, replace=False))
    batches = [(y[a:b], p[a:b], x[a:b]) for a, b in zip([0, *cuts], [*cuts, 3000], strict=True)]
    monitor = Monitor(Probability(), Finite(8, names=NAMES), tolerance=0.02, **promise)
    found = []
    for k, batch in enumerate(batches):
        found += [(k, NAMES.index(a.group), int(a.side == "too low")) for a in monitor.step(monitor.measure(*batch))]
    assert found == naive(batches, 0.02, **promise)
    assert any(g == 3 and s == 0 for _, g, s in found)


def test_rows_one_by_one_are_batches_of_one() -> None:
    y, p, x = stream(400, 2, bias=0.3)
    one, many = (Monitor(Probability(), Finite(8), tolerance=0.02, every=100) for _ in range(2))
    for t in range(400):
        alarms = one.update(y[t], p[t], x[t])
        assert alarms == many.step(many.measure(y[t : t + 1], p[t : t + 1], x[t : t + 1]))
    assert one.n_rows == 400
    assert one.to_bytes() == many.to_bytes()


def test_sums_of_two_machines_are_the_batch_of_both() -> None:
    y, p, x = stream(1000, 3, bias=0.2)
    whole, parts = (Monitor(Probability(), Finite(8), alpha=0.01) for _ in range(2))
    for start in range(0, 1000, 100):
        a, b, c = start, start + 37, start + 100
        alarms = whole.step(whole.measure(y[a:c], p[a:c], x[a:c]))
        apart = parts.step(parts.measure(y[a:b], p[a:b], x[a:b]) + parts.measure(y[b:c], p[b:c], x[b:c]))
        assert [one[:4] for one in alarms] == [one[:4] for one in apart]
        assert np.allclose([one.log_e for one in alarms], [one.log_e for one in apart])


def false_alarms(promise: Any, n_runs: int, n_rows: int, tolerance: float, bias: float) -> list[int]:
    streams = (stream(n_rows, 1000 + run, bias=bias) for run in range(n_runs))
    return [
        len(Monitor(Probability(), Finite(8), tolerance=tolerance, **promise).update_many(*each)) for each in streams
    ]


def test_false_alarms_are_as_rare_as_promised() -> None:
    assert sum(n > 0 for n in false_alarms({"alpha": 0.3}, 40, 4000, 0.0, 0.0)) <= 12
    assert sum(false_alarms({"every": 2000}, 20, 4000, 0.0, 0.0)) <= 40
    assert sum(n > 0 for n in false_alarms({"alpha": 0.3}, 20, 4000, 0.05, 0.05)) <= 6  # a bias as large as tolerated


@pytest.mark.slow
def test_false_alarms_over_long_streams() -> None:
    n = part(200, 50)
    assert sum(one > 0 for one in false_alarms({"alpha": 0.1}, n, 20_000, 0.0, 0.0)) <= n // 10
    assert sum(false_alarms({"every": 5000}, n // 2, 20_000, 0.0, 0.0)) <= 4 * (n // 2)


@pytest.mark.parametrize(("promise", "most"), [({"alpha": 0.01}, 2500), ({"every": 1e6}, 2000)])
def test_a_bias_that_begins_late_is_found_in_good_time(promise: Any, most: int) -> None:
    delays = []
    for seed in range(5):
        y, p, x = stream(40_000, seed, bias=0.1, start=20_000)
        alarms = Monitor(Probability(), Finite(8, names=NAMES), tolerance=0.02, **promise).update_many(y, p, x)
        assert all(alarm.group == "g3" and alarm.side == "too high" for alarm in alarms)
        delays.append(alarms[0].group_rows - x[:20_000, 3].sum())
    assert 100 < np.median(delays) < most


def test_days_with_shocks_of_their_own_give_no_alarm_where_they_are_clusters() -> None:
    rng = np.random.default_rng(5)
    n_days, per_day = 400, 100
    day = np.repeat(np.arange(n_days), per_day)
    pi = np.clip(0.5 + 0.15 * rng.normal(size=n_days), 0.01, 0.99)[day]
    y, p = (rng.random(len(day)) < pi).astype(float), np.full(len(day), 0.5)
    assert Monitor(Probability(), tolerance=0.02, alpha=0.05).update_many(y, p)
    days = Monitor(Probability(), tolerance=0.02, alpha=0.05, cluster="day")
    assert days.update_many(y, p, clusters=day) == []
    biased = Monitor(Probability(), tolerance=0.02, alpha=0.05, cluster="day")
    assert [a.side for a in biased.update_many(y, np.full(len(day), 0.8), clusters=day)] == ["too high"]


def test_columns_name_groups_and_clusters() -> None:
    rng = np.random.default_rng(6)
    columns = {"sex": rng.choice(["f", "m"], 6000).tolist(), "day": (np.arange(6000) // 20).tolist()}
    women = np.array([one == "f" for one in columns["sex"]])
    groups = Groups(["sex"])
    groups.fit(columns)
    y = (rng.random(6000) < 0.5 - 0.3 * women).astype(float)
    alarms = Monitor(Probability(), groups, alpha=0.01, cluster="day").update_many(y, np.full(6000, 0.5), columns)
    assert ("sex=f", "too high") in {(a.group, a.side) for a in alarms}
    row = Monitor(Probability(), groups, alpha=0.01, cluster="day")
    assert row.update(1.0, 0.5, {"sex": "f", "day": 1}) == []
    assert row.n_rows == 1
    with pytest.raises(InvalidInput, match="no column 'day'"):
        row.update(1.0, 0.5, {"sex": "f"})


def test_groups_that_turned_up_late_keep_their_share_of_the_promise_when_loaded() -> None:
    rng = np.random.default_rng(9)
    cities = [f"city {k}" for k in range(12)]
    first = {"city": rng.choice(cities[:4], 500).tolist()}
    groups = Groups(["city"], limit=20)
    groups.fit(first)
    monitor = Monitor(Probability(), groups, alpha=0.05)
    later = {"city": rng.choice(cities, 3000).tolist()}
    y, p = (rng.random(3000) < 0.2).astype(float), np.full(3000, 0.5)
    monitor.update_many(y, p, later)
    again = Monitor.from_bytes(monitor.to_bytes())
    assert len(groups.names) > 6
    for side in ("too high", "too low"):
        assert np.array_equal(monitor.evidence()[side], again.evidence()[side])
    saved = monitor.to_state()
    with pytest.raises(StateFileError, match="contradict"):
        Monitor.from_bytes(pack("monitor", saved._replace(plain={**saved.plain, "n_known": 99})))


@pytest.mark.parametrize(
    ("property", "p", "side", "small", "large"),
    [
        (Mean(low=0.0, high=100.0), 60.0, "too high", 2.0, 12.0),
        (Quantile(0.9, low=0.0, high=100.0), 80.0, "too low", 0.02, 0.12),
    ],
)
def test_the_tolerance_is_in_units_of_the_outcome(
    property: Any, p: float, side: str, small: float, large: float
) -> None:
    y = np.random.default_rng(7).uniform(0, 100, 5000)
    for tolerance, expected in ((small, [side]), (large, [])):
        alarms = Monitor(property, tolerance=tolerance, alpha=0.01).update_many(y, np.full(5000, p))
        assert [alarm.side for alarm in alarms] == expected


def test_shares_of_the_promise_add_up() -> None:
    for n, known in ((1, 1), (40, 40), (1001, 30), (5, 1)):
        shares = np.exp(math.log(2 / 0.05) - Ever(n, 0.05, known).levels)
        assert shares.sum() <= 1 + 1e-12
        assert shares.sum() > 0.74
    k = np.arange(2.0, 2_000_001.0)
    assert (1 / (NORM * k * np.log(k) ** 2)).sum() + 1 / (NORM * math.log(2e6)) < 0.5  # the rest is below the integral


def test_evidence_says_how_near_an_alarm_is() -> None:
    y, p, x = stream(3000, 8, bias=0.3)
    monitor = Monitor(Probability(), Finite(8, names=NAMES), alpha=0.01)
    alarms = monitor.update_many(y, p, x)
    assert all(monitor.evidence()["too high"][NAMES.index(alarm.group)] > -2 for alarm in alarms)
    assert monitor.evidence()["too high"][3] > 0 > monitor.evidence()["too low"][3]
    assert isinstance(alarms[0], Alarm)
    assert np.isneginf(Monitor(Probability(), every=10.0).evidence()["too low"][0])


def test_what_cannot_be_used_is_refused() -> None:
    for alpha, every in ((None, None), (0.1, 10.0), (1.0, None), (None, 0.5)):
        with pytest.raises(InvalidInput, match=r"alpha|every"):
            Monitor(Probability(), alpha=alpha, every=every)
    with pytest.raises(InvalidInput, match="tolerance"):
        Monitor(Probability(), tolerance=-0.1, alpha=0.1)
    with pytest.raises(InvalidInput, match="in their order"):
        Monitor(Probability(), alpha=0.1, cluster="day").measure([1.0], [0.5])
    with pytest.raises(InvalidInput, match="each of 1 rows"):
        Monitor(Probability(), alpha=0.1, cluster="day").update_many([1.0], [0.5], clusters=[1, 2])


def arrivals(n: int, seed: int, *, bias: float = 0.0) -> tuple[Float64Array, Float64Array, np.ndarray[Any, Any]]:
    """Outcomes, forecasts and the order in which outcomes come: events soon, their absence after 200 rows."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.1, 0.5, n)
    y = (rng.random(n) < p + bias).astype(float)
    return y, p, np.argsort(np.arange(n) + np.where(y > 0, 1.0, 200.5), kind="stable")


def test_outcomes_known_early_are_no_alarm_on_a_right_model() -> None:
    """Events come first: in order of arrival a right model alarms, in order of its forecasts it does not."""
    by_arrival = by_forecast = found = 0
    for seed in range(20):
        y, p, order = arrivals(3000, seed)
        by_arrival += bool(Monitor(Probability(), alpha=0.05).update_many(y[order], p[order]))
        by_forecast += bool(Monitor(Probability(), alpha=0.05).update_many(y[order], p[order], rounds=order))
        y, p, order = arrivals(3000, seed, bias=0.1)
        found += bool(Monitor(Probability(), alpha=0.05).update_many(y[order], p[order], rounds=order))
    assert by_arrival >= 15
    assert (by_forecast, found) == (0, 20)


def test_outcomes_are_judged_in_the_order_of_their_forecasts() -> None:
    """One by one, in batches, saved and loaded between, with some that never come: as if they had come in order."""
    y, p, order = arrivals(900, 3, bias=0.3)
    gone = set(range(0, 900, 50))
    kept = np.array([t for t in range(900) if t not in gone])
    straight, held = Monitor(Probability(), alpha=0.05), Monitor(Probability(), alpha=0.05)
    for t in kept.tolist():
        straight.update(y[t], p[t])
    assert held.n_held == 0
    for k, t in enumerate(order.tolist()):
        if t in gone:
            held.skip(t)
        else:
            held.update(y[t], p[t], round=t)
        if k % 300 == 100:
            held = Monitor.from_bytes(held.to_bytes())
    assert (held.n_held, held.n_rows) == (0, len(kept))
    assert held.evidence()["too low"][0] > 0
    waits = Monitor(Probability(), alpha=0.05, settle=10)
    waits.update_many(y[1:9], p[1:9], rounds=range(1, 9))
    assert (waits.n_rows, waits.n_held) == (0, 8)
    waits.update_many(y[20:21], p[20:21], rounds=[20])
    assert waits.n_rows == 8
    waits.update(y[0], p[0], round=0)  # too late: passed over
    assert waits.n_rows == 8

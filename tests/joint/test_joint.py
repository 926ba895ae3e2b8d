"""A quantile and the mean beyond it, a mean and its variance: identities in every cell, promises, and games."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import swapcal as sc
from swapcal.joint import Joint
from swapcal.learners import GradientDescent
from swapcal.potentials import Quadratic

LEVEL = 0.8


def gamma_stream(n: int, seed: int = 0) -> tuple[Any, Any]:
    """Six groups whose tails differ, and everybody."""
    rng = np.random.default_rng(seed)
    g = rng.integers(0, 6, n)
    x = np.zeros((n, 7))
    x[:, 0], x[np.arange(n), 1 + g] = 1.0, 1.0
    raw = rng.gamma(1.0 + g, 0.05 + 0.01 * g, n)
    return x, raw / (1.0 + raw)


def made(kind: str, **options: Any) -> Joint[Any]:
    options = {"hypotheses": sc.Finite(7), "seed": 1, **options}
    return sc.TailMean(LEVEL, **options) if kind == "tail" else sc.MeanVariance(**options)


def pinball(z: float, y: Any) -> float:
    return float(np.mean((LEVEL - (y <= z)) * (y - z)))


def cells(p: Any) -> list[Any]:
    _, where = np.unique(p, axis=0, return_inverse=True)
    order = np.argsort(where.reshape(-1), kind="stable")
    return np.split(order, np.flatnonzero(np.diff(where.reshape(-1)[order])) + 1)


@pytest.mark.parametrize("hinted", [False, True])
def test_the_identity_of_tail_means_holds_in_every_cell(hinted: bool) -> None:
    x, y = gamma_stream(3000)
    hints = np.column_stack([np.full(3000, 0.4), np.full(3000, 0.3)]) if hinted else None
    p = made("tail", learn=hinted).run(x, y, hints)
    assert (p[:, 1] >= p[:, 0]).all()
    assert len(cells(p)) > 5
    for cell in cells(p):
        (z, s), own = p[cell[0]], y[cell]
        excess = np.maximum(own - z, 0.0) / (1.0 - LEVEL)
        best = min(pinball(v, own) for v in own)
        q = float(np.quantile(own, LEVEL, method="inverted_cdf"))
        assert pinball(q, own) == pytest.approx(best, abs=1e-14)
        shortfall = min(v + np.maximum(own - v, 0.0).mean() / (1.0 - LEVEL) for v in own)
        second = (pinball(z, own) - best) / (1.0 - LEVEL)
        assert s - shortfall == pytest.approx((s - z) - excess.mean() + second, abs=1e-12)
        assert -1e-12 <= second <= abs(np.mean(own <= z) - LEVEL) * abs(z - q) / (1.0 - LEVEL) + 1e-12


def test_the_identity_of_variances_holds_in_every_cell() -> None:
    x, y = gamma_stream(3000)
    p = made("variance").run(x, y)
    assert (p[:, 1] >= 0.0).all()
    assert len(cells(p)) > 5
    for cell in cells(p):
        (m, s), own = p[cell[0]], y[cell]
        w = (own - m) ** 2
        assert s - own.var() == pytest.approx(s - w.mean() + (m - own.mean()) ** 2, abs=1e-12)


def naive_error(joint: Joint[Any], rounds: list[Any], x: Any, width: float) -> float:
    """The second error: per value of the second, the worst function of the class, alone or within a first value."""
    order = 2 if isinstance(joint.hypotheses, sc.Linear) else np.inf
    values, total = np.array([f.second.value for f, _ in rounds]), 0.0
    first = np.array([f.first.value for f, _ in rounds])
    labels = np.array([joint.second_label(f.first.value, y) for f, y in rounds])
    v = (values - labels) / width
    for value in np.unique(values):
        here = values == value
        sums = [x[here & some] * v[here & some, None] for some in [first >= -1.0, *(first == z for z in joint.bands)]]
        worst = max(float(np.linalg.norm(each.sum(axis=0), order)) for each in sums)
        total += np.count_nonzero(here) * (worst / here.sum()) ** 2
    return total


@pytest.mark.filterwarnings("ignore:.* labels are equal")
@pytest.mark.parametrize("hypotheses", [sc.Finite(3), sc.Linear(3)], ids=["finite", "linear"])
@pytest.mark.parametrize("kind", ["tail", "variance"])
def test_the_second_promise_holds_where_the_first_draw_is_seen(kind: str, hypotheses: Any) -> None:
    """Whoever sees the first draw makes the outcome miss it; the second draw is not seen."""
    rng = np.random.default_rng(4)
    joint = made(kind, hypotheses=hypotheses)
    x = np.column_stack([np.ones(1500), rng.random((1500, 2)) < 0.5]) * hypotheses.row(np.ones(3)).values
    rounds = []
    for row in x:
        forecast = joint.predict(row)
        z = forecast.first.value
        # Above a quantile always; on the far side of a mean; sometimes near.
        y = 1.0 if z < 0.5 or rng.random() < 0.5 else 0.0 if kind == "variance" else min(z + 0.01 * (row[1] > 0.0), 1.0)
        joint.update(forecast, y)
        rounds.append((forecast, y))
    width = joint.second.rules.property.high
    second = joint.error()[1]
    assert second == pytest.approx(naive_error(joint, rounds, x, width), rel=1e-9)
    assert second <= joint.guarantee(0.05)[1]
    first = np.array([f.first.value for f, _ in rounds])
    assert len(joint.bands) == len(np.unique(first))


def test_in_games_where_nothing_is_seen_both_promises_hold() -> None:
    for kind in ("tail", "variance"):
        rng, joint = np.random.default_rng(5), made(kind)
        x, _ = gamma_stream(1200, 3)
        for row in x:
            forecast = joint.predict(row)
            joint.update(forecast, float(rng.random() ** (1.0 + 3.0 * row[1])))
        assert all(e <= g for e, g in zip(joint.error(), joint.guarantee(0.05), strict=True))


@pytest.mark.parametrize("kind", ["tail", "variance"])
def test_run_is_the_loop_and_late_outcomes_wait(kind: str) -> None:
    x, y = gamma_stream(400)
    y[::11] = np.nan
    run, loop, late, slow = (made(kind, hypotheses=sc.Finite(7)) for _ in range(4))
    p = run.run(x, y)
    for t, row in enumerate(x):
        forecast = loop.predict(row)
        assert loop.outputs(forecast) == tuple(p[t])
        if y[t] == y[t]:
            loop.update(type(forecast).from_json(forecast.to_json()), y[t])
        else:
            loop.forget(forecast)
    assert (loop.error(), loop.guarantee(), loop.bands) == (run.error(), run.guarantee(), run.bands)
    after = late.run(x, y, known=np.arange(400) + 20.0)
    waiting = []
    for t, row in enumerate(x):
        waiting.append(slow.predict(row))
        assert slow.outputs(waiting[-1]) == tuple(after[t])
        if t >= 20 - 1:
            due = t - 20 + 1
            if y[due] == y[due]:
                slow.update(waiting[due], y[due])
    with pytest.raises(sc.AlreadyUpdated):
        slow.update(waiting[1], 0.5)


def test_weights_and_groups() -> None:
    x, y = gamma_stream(500)
    weights = np.random.default_rng(2).random(500)
    rows = [{"g": int(np.argmax(row[1:]))} for row in x]
    tail = sc.TailMean(0.8, sc.Groups(["g"], limit=20), seed=2)
    p = tail.run(rows, y, weights=weights)
    again = sc.TailMean.from_bytes(tail.to_bytes())
    assert again.run(rows[:50], y[:50]).tolist() == tail.run(rows[:50], y[:50]).tolist()
    assert p.shape == (500, 2)
    assert tail.n_rounds == 550


def test_how_near_it_comes() -> None:
    """Groups of different tails: nearer than any constant, and than what two moments give."""
    n = 8000
    x, y = gamma_stream(n)
    tail, both = made("tail").run(x, y), made("variance").run(x, y)
    group, late = np.argmax(x[:, 1:], axis=1), np.arange(n) >= n // 2
    own = [y[group == g] for g in range(6)]
    beyond = np.array([min(v + np.maximum(o - v, 0.0).mean() / (1.0 - LEVEL) for v in o[:400]) for o in own])
    deviations = np.array([o.std() for o in own])
    for p, truth in ((tail[:, 1], beyond), (np.sqrt(both[:, 1]), deviations)):
        off = np.abs(p - truth[group])[late].mean()
        constant = np.abs(truth[group] - np.median(truth[group]))[late].mean()
        assert off < 0.75 * constant


def test_bands_beyond_the_room_have_no_functions_of_their_own() -> None:
    x, y = gamma_stream(600)
    joint = made("variance", bands=2, bins=9)
    joint.run(x, y)
    assert len(joint.bands) == 2
    forecasts = [joint.predict(row) for row in x[:50]]
    assert len({f.first.value for f in forecasts}) > 2


def test_what_is_refused() -> None:
    with pytest.raises(sc.NotElicitable, match=r"sc\.TailMean\(0\.9, groups\)"):
        sc.CVaR()
    with pytest.raises(sc.NotElicitable, match=r"sc\.MeanVariance\(groups\)"):
        sc.Variance()
    with pytest.raises(sc.InvalidInput, match="finite or a linear class"):
        sc.TailMean(0.9, sc.Oracle(GradientDescent(2)))
    with pytest.raises(sc.InvalidInput, match="potential"):
        sc.TailMean(0.9, sc.Linear(2, potential=Quadratic()))
    with pytest.raises(sc.InvalidInput, match="level"):
        sc.TailMean(1.0, sc.Finite(2))
    tail = made("tail")
    forecast = tail.predict(np.ones(7))
    with pytest.raises(sc.InvalidInput, match="outside"):
        tail.update(forecast, 1.5)
    tail.update(forecast, 0.5)
    for wrong in (forecast, 0.5):
        with pytest.raises(sc.SwapcalError):
            tail.update(wrong, 0.5)
    assert all(a <= b for a, b in pairwise(tail.outputs(tail.predict(np.ones(7), [0.9, 0.2]))))

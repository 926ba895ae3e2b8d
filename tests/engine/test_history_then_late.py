"""A history that was learned at once speaks for itself when outcomes begin to come late."""

from itertools import product
from typing import Any

import numpy as np
import pytest

import swapcal as sc
from effort import ALL
from late_streams import PROPERTIES, data, late_by, looped
from swapcal.engine import gate as gates
from swapcal.engine import kernels
from swapcal.engine.gate import LossBounds


def a_model_that_is_off(n: int, seed: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    x = (rng.random((n, 12)) < 0.3).astype(float)
    x[:, 0] = 1.0
    chance = 1.0 / (1.0 + np.exp(-(x @ rng.normal(0.0, 0.5, 12))))
    return x, (rng.random(n) < chance).astype(float), 0.7 * chance + 0.1


@pytest.mark.parametrize("name", PROPERTIES if ALL else ["mean", "quantile", "own"])
def test_the_same_in_runs_in_a_loop_and_through_files(name: str) -> None:
    target = PROPERTIES[name]
    x, y, h = data(target, 500, 3)
    before = 200
    known = np.concatenate([np.arange(before) + 1.0, before + late_by("geometric", y[before:])])
    found = []
    for backend, learn in product(("native", "python") if kernels.native else ("python",), (False, True)):
        with kernels.using(backend):
            hint = sc.OnlineRegression() if learn else None
            whole, other = (sc.Forecaster(target, sc.Finite(4), seed=5, hint=hint) for _ in range(2))
            first = whole.run(x[:before], y[:before], h[:before])
            shown = [*first, *whole.run(x[before:], y[before:], h[before:], known=known[before:] - before)]
            # Saved while the book is closed: what the history has told goes through the file.
            each, other = looped(other, x, y, h, known, 150)
            np.testing.assert_array_equal(each, shown)
            np.testing.assert_array_equal(other.state.gate.totals, whole.state.gate.totals)
            found.append((learn, np.array(shown).tobytes(), whole.state.gate.totals.tobytes()))
    assert len(set(found)) == 2


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

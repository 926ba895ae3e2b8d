"""Decisions against an oracle in plain NumPy, and the inequality that makes calibration worth having."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swapcal as sc
from commands import swapcal, table
from swapcal.decisions import Decisions, saved
from swapcal.state import Saved, pack

UTILITIES = {
    "costs": [[0.0, -5.0], [-1.0, 0.0]],
    "three": [[0.0, -5.0], [-0.5, -2.0], [-2.0, 0.5]],
    "never": [[1.0, 1.0], [0.0, 0.5]],
}


def naive_regret(utility: Any, y: Any, p: Any, w: Any) -> tuple[float, float]:
    """Loss and swap regret, action by action and round by round."""
    taken = []
    for forecast in p:
        worth = [(1 - forecast) * u[0] + forecast * u[1] for u in utility]
        taken.append(worth.index(max(worth)))
    loss = sum(
        weight * (max(u[int(label)] for u in utility) - utility[a][int(label)])
        for a, label, weight in zip(taken, y, w, strict=True)
    )
    regret = 0.0
    for action in set(taken):
        here = [(label, weight) for a, label, weight in zip(taken, y, w, strict=True) if a == action]
        regret += max(
            sum(weight * (other[int(label)] - utility[action][int(label)]) for label, weight in here)
            for other in utility
        )
    return loss / sum(w), regret


@pytest.mark.parametrize("name", UTILITIES)
@pytest.mark.parametrize("seed", range(3))
def test_against_the_oracle(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, w = rng.random(300).round(1), rng.random(300)
    y = (rng.random(300) < 0.4).astype(float)
    found = Decisions(UTILITIES[name])
    found.update_many(y[:100], p[:100], w[:100])
    other = Decisions(UTILITIES[name])
    other.update_many(y[100:], p[100:], w[100:])
    both = found + Decisions.from_bytes(other.to_bytes())
    loss, regret = naive_regret(UTILITIES[name], y, p, w)
    assert both.mean_loss == pytest.approx(loss, rel=1e-12)
    assert both.swap_regret == pytest.approx(regret, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", UTILITIES)
def test_thresholds_are_where_actions_change(name: str) -> None:
    decisions = Decisions(UTILITIES[name])
    grid = np.linspace(0.0, 1.0, 100_001)
    taken = decisions.actions(grid)
    changes = grid[1:][np.diff(taken) != 0]
    assert decisions.thresholds == pytest.approx(changes.tolist(), abs=2e-5)


@pytest.mark.parametrize("seed", range(20))
def test_the_swap_error_bounds_the_swap_regret_of_any_utility(seed: int) -> None:
    rng = np.random.default_rng(seed)
    decisions = Decisions(rng.normal(size=(int(rng.integers(2, 6)), 2)))
    p = rng.random(8)[rng.integers(8, size=500)]
    y = (rng.random(500) < rng.random(8)[rng.integers(8, size=500)]).astype(float)
    decisions.update_many(y, p)
    for r in (1.0, 1.5, 2.0):
        error = sc.swap_multicalibration_error(y, p, np.ones((500, 1)), property=sc.Probability(), r=r)
        assert decisions.swap_regret <= decisions.regret_bound(error, r) + 1e-9


def test_the_bound_is_met_where_one_action_is_wrong_everywhere() -> None:
    decisions = Decisions([[0.0, 0.0], [-1.0, 1.0]])
    y, p = np.ones(100), np.full(100, 0.5 - 1e-12)
    decisions.update_many(y, p)
    assert decisions.swap_regret == pytest.approx(100.0)
    assert decisions.regret_bound(50.0, 1.0) == pytest.approx(100.0)


def test_what_is_no_event_is_refused() -> None:
    for wrong in ("1", "1:", "a:b", "0:1", "1:-2", "1:2:3", "nan:1"):
        with pytest.raises(sc.InvalidInput):
            Decisions.parsed(wrong)
    decisions = Decisions.parsed("1:5")
    for y, p in (([-0.5], [0.5]), ([1.0], [1.5]), ([1.0], [np.nan]), ([1.0, 0.0], [0.5])):
        with pytest.raises(sc.InvalidInput):
            decisions.update_many(y, p)
    for utility in ([], [[1.0]], [[np.inf, 0.0]], "abc"):
        with pytest.raises((sc.InvalidInput, ValueError)):
            Decisions(utility)
    with pytest.raises(sc.StateFileError):
        Decisions.from_bytes(pack("decisions", Saved({"utility": [[0.0, 1.0]]}, {"sums": np.array([[-1.0, 0.0]])})))


def test_on_the_command_line_a_run_goes_on(tmp_path: Path) -> None:
    path, out, state = table(tmp_path / "in.csv", 2000), tmp_path / "out.csv", tmp_path / "run.state"
    asked = ("--y", "y", "--p", "p", "--costs", "3:5")
    seeded = ("run", path, *asked, "--seed", "1", "--horizon", "4000", "--json")
    assert swapcal(*seeded, "--state", state, "--out", out).exit_code == 0
    table(path, 4000)
    told = []
    for outcome in (swapcal(*seeded), swapcal(*seeded, "--state", state, "--out", out)):
        assert outcome.exit_code == 0, outcome.output
        told.append(json.loads(outcome.stdout)["result"]["costs"]["sentence"])
    assert told[0] == told[1]
    assert "acting on the new forecasts would have saved" in told[0]
    alone = swapcal("audit", path, *asked, "--json")
    assert "swap regret" in json.loads(alone.stdout)["result"]["costs"]["sentence"]


def test_sentences() -> None:
    before, after = Decisions.parsed("1:5"), Decisions.parsed("1:5")
    before.update_many([0, 1], [0.9, 0.1])
    after.update_many([0, 1], [0.1, 0.1])
    assert "would have saved 16.7 %" in saved(before, after, "1:5")
    assert "would have cost 20.0 % more" in saved(after, before, "1:5")

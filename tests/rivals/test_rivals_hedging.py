"""The rivals that hedge between two neighbors: what each of them claims."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import swapcal as sc
from rival_games import N_GROUPS, drifting, far_label, play
from swapcal.paper.method import Plan
from swapcal.rivals.conformal import MVP
from swapcal.rivals.games import first_change
from swapcal.rivals.garg2024 import Garg2024Finite
from swapcal.rivals.ghuge2025 import Ghuge2025
from swapcal.rivals.gupta2022 import Gupta2022
from swapcal.rivals.haghtalab2023 import Haghtalab2023
from swapcal.rivals.noarov import NoarovRoth2023, Roth2022
from swapcal.rivals.okoroafor2025 import Okoroafor2025
from swapcal.typing import Float64Array


class TestTwoPoints:
    """Two forecasts have the probabilities that cancel the evidence as it is defined, computed afresh here."""

    def cancels(self, method: Any, evidence: Callable[[Float64Array, int], float]) -> None:
        rng = np.random.default_rng(1)
        twice = 0
        for _ in range(300):
            x = (rng.random(N_GROUPS) < 0.6) * rng.choice([1.0, 1.0, -0.5], N_GROUPS)
            plan = method.plan(method.hypotheses.row(x), None)
            bins = [note[0] if isinstance(note, tuple) else note for note in plan.notes]
            parts = [p * evidence(x, i) for p, i in zip(plan.probabilities, bins, strict=True)]
            if len(parts) == 2:
                twice += 1
                assert abs(sum(parts)) <= 1e-9 * abs(parts[0])
            else:
                e = evidence(x, bins[0])
                ends = (e > 0.0 and bins[0] == 0) or (e < 0.0 and bins[0] == method.bins - 1)
                assert ends or abs(e) < 1e-12
        assert twice > 50

    def test_gupta(self) -> None:
        method = Gupta2022(sc.Mean(), sc.Finite(N_GROUPS), horizon=400, rate=0.2)
        method.run(*drifting(400))
        self.cancels(method, lambda x, i: float(sum(x * 2.0 * np.sinh(0.2 * method.sums[:, i]))))

    def test_mvp(self) -> None:
        method = MVP(sc.Quantile(0.8), sc.Finite(N_GROUPS), horizon=400, bins=10)
        method.run(*drifting(400))

        def evidence(x: Float64Array, i: int) -> float:
            total = 0.0
            for f in range(N_GROUPS):
                n = method.counts[f, i]
                norm = math.sqrt((n + 1.0) * math.log2(n + 2.0) ** 2)
                a = 0.5 * method.sums[f, i] / norm
                total += x[f] * (math.exp(a) - math.exp(-a)) / norm
            return total

        self.cancels(method, evidence)

    def test_noarov_roth(self) -> None:
        method = NoarovRoth2023(sc.Mean(), sc.Finite(N_GROUPS), horizon=400, bins=12)
        method.run(*drifting(400))

        def evidence(x: Float64Array, k: int) -> float:
            chi = np.exp(method.logs) / np.exp(method.logs).sum()
            return float(sum(chi * x * method.sums[:, k] / np.maximum(method.counts[:, k], 1.0)))

        self.cancels(method, evidence)

    def test_exponents_beyond_the_range_of_floats(self) -> None:
        change = first_change(np.array([-0.5, 1.0, -1.0]), np.array([2000.0, 2001.0, 0.0]))
        assert change.lower == 0
        assert math.isclose(change.p_lower, math.e / (math.e + 0.5))
        method = Gupta2022(sc.Mean(), sc.Finite(2), horizon=4000, bins=3, rate=900.0)
        y = play(method, np.ones((300, 2)), far_label)
        assert np.isfinite(method.sums).all()
        assert set(y) == {0.0, 1.0}


def theorem_f10(horizon: int, m: int, n: int, *, c: float = 1.0, lipschitz: float = 1.0) -> float:
    return (
        2.0 * c * lipschitz / m
        + 2.0 * m * c**2 * math.log(horizon / m) / horizon
        + 12.0 * c**2 * math.sqrt(math.log(n) / horizon)
    )


class TestQuadraticGames:
    def test_a_visit_costs_at_most_the_gain(self) -> None:
        """K(f) rises by at most what the weights are told, so that they weigh an upper bound."""
        rng = np.random.default_rng(0)
        finite = sc.Finite(3)
        for kind in (NoarovRoth2023, Garg2024Finite):
            game = kind(sc.Mean(), finite, horizon=100, bins=2)
            for _ in range(500):
                row = finite.row((rng.random(3) < 0.6) * rng.uniform(-1.0, 1.0, 3))
                before, logs = game.errors(), game.logs.copy()
                point = int(rng.integers(2))
                game.learn(row, Plan((float(game.points[point]),), (1.0,), (point,)), 0, float(rng.random()))
                assert (game.errors() - before <= (game.logs - logs) / game.rate + 1e-9).all()

    def test_roth_with_the_bound_of_a_quantile(self) -> None:
        horizon, n, level = 8000, 5, 0.6
        x, _ = drifting(horizon, n)
        y = np.random.default_rng(1).random(horizon)
        method = Roth2022(sc.Quantile(level), sc.Finite(n), horizon=horizon)
        assert math.isclose(method.rate, math.sqrt(math.log(n) / (4 * horizon)) / (3 * level**2))
        forecasts = method.run(x, y)
        assert method.errors().max() / horizon <= theorem_f10(horizon, method.bins, n, c=level)
        assert abs(np.mean(y <= forecasts) - level) < 0.05

    def test_garg_keeps_the_multicalibration_error_itself(self) -> None:
        horizon, n = 6000, 6
        rng = np.random.default_rng(0)
        x = rng.uniform(-1.0, 1.0, (horizon, n)) * (rng.random((horizon, n)) < 0.5)
        y = (rng.random(horizon) < 0.5 + 0.3 * x[:, 0]).astype(float)
        method = Garg2024Finite(sc.Mean(), sc.Finite(n), horizon=horizon)
        forecasts = method.run(x, y)
        audit = sc.Audit(sc.Mean(), sc.Finite(n))
        audit.update_many(y, forecasts, x)
        assert math.isclose(audit.multicalibration(), method.errors().max(), rel_tol=1e-9)
        assert audit.multicalibration() / horizon <= theorem_f10(horizon, method.bins, n)


class TestHaghtalab2023:
    def test_expected_gains_obey_the_regret_bound_on_every_path(self) -> None:
        horizon, n = 2500, 5
        rng = np.random.default_rng(0)
        x = (rng.random((horizon, n)) < 0.5).astype(float)
        method = Haghtalab2023(sc.Mean(), sc.Finite(n), horizon=horizon)
        play(method, x, far_label)
        d = 2 * n * method.bins
        lost = horizon / (method.fineness * method.bins)
        bound = math.sqrt(2.0 * horizon * math.log(d)) + lost
        assert (np.abs(method.gains) <= bound).all()
        assert np.abs(method.gains).max() < 0.05 * horizon


class TestGhuge2025:
    @pytest.mark.parametrize("halfspace", [pytest.param("sampled", marks=pytest.mark.slow), "averaged"])
    def test_l1_bound_with_its_constants(self, halfspace: str) -> None:
        horizon, n = 6000, 5
        rng = np.random.default_rng(0)
        x = rng.choice([-1.0, 1.0], (horizon, n))
        method = Ghuge2025(sc.Mean(), sc.Finite(n), horizon=horizon, halfspace=halfspace)
        m = method.bins
        rewards = 0.0
        for row in x:
            active = method.hypotheses.row(row)
            plan = method.plan(active, None)
            before, weights = method.thetas.copy(), method.weights()
            forecast = method.predict(row)
            y = far_label(plan)
            j = int(np.flatnonzero(method.points == forecast.value)[0])
            rewards += float(weights @ (before[:, j] * row)) * (forecast.value - y)
            method.update(forecast, y)
        l1 = float(np.abs(method.sums).sum(axis=1).max())
        regret = math.sqrt((m + 1) * horizon) + math.sqrt(2.0 * horizon * math.log(n))
        # Gradient ascent and weights together: a bound for every path.
        assert l1 - rewards <= regret
        full = 1 / m + regret / horizon + 4 * math.sqrt(m * math.log(6 * horizon * n) / horizon) + 4 * m / horizon
        assert l1 / horizon <= full
        # The martingale term is loose; without it the bound is far below what a fixed forecast has, 1/2.
        assert l1 / horizon <= 1 / m + regret / horizon < 0.15

    def test_the_halfspace_oracle_for_both_labels(self) -> None:
        method = Ghuge2025(sc.Mean(), sc.Finite(N_GROUPS), horizon=400, halfspace="averaged")
        method.run(*drifting(400))
        single = Ghuge2025(sc.Mean(), sc.Finite(1), horizon=400)
        single.run(drifting(400, 1)[0], drifting(400)[1])
        rng = np.random.default_rng(2)
        for _ in range(100):
            for each in (method, single):
                x = rng.uniform(-1.0, 1.0, each.hypotheses.n)
                theta = each.weights() @ (each.thetas * x[:, None])
                plan = each.plan(each.hypotheses.row(x), None)
                for y in (0.0, 1.0):
                    parts = zip(plan.probabilities, plan.notes, plan.values, strict=True)
                    assert sum(p * theta[j] * (v - y) for p, j, v in parts) <= 1.0 / each.bins

    def test_ascent_and_weights_step_by_step(self) -> None:
        method = Ghuge2025(sc.Mean(), sc.Finite(N_GROUPS), horizon=400)
        x, y = drifting(400)
        forecasts = method.run(x, y)
        m = math.ceil(400 ** (1 / 3))
        thetas, gains = np.zeros((N_GROUPS, m + 1)), np.zeros(N_GROUPS)
        for t, p in enumerate(forecasts):
            for f in range(N_GROUPS):
                error, j = x[t, f] * (p - y[t]), round(p * m)
                gains[f] += thetas[f, j] * error
                thetas[f, j] = min(max(thetas[f, j] + math.sqrt((m + 1) / 400) * error, -1.0), 1.0)
        raw = np.exp(math.sqrt(2.0 * math.log(N_GROUPS) / 400) * gains)
        assert np.allclose(method.thetas, thetas)
        assert np.allclose(method.weights(), raw / raw.sum())


class TestOkoroafor2025:
    @pytest.mark.parametrize("seed", [0, 1])
    def test_small_regret_under_every_proper_loss(self, seed: int) -> None:
        horizon, n = 5000, 4
        rng = np.random.default_rng(seed)
        x = (rng.random((horizon, n)) < 0.5).astype(float)
        drift = 0.2 * np.sin(np.arange(horizon) / 500.0)
        y = (rng.random(horizon) < 0.3 + 0.4 * x[:, 2] + drift * (1.0 - x[:, 2])).astype(float)
        method = Okoroafor2025(sc.Mean(), sc.Finite(n), horizon=horizon, seed=seed)
        p = method.run(x, y)
        tests = [abs(float(np.sum((p - y)[p >= v]))) for v in method.points]
        groups = np.abs(x.T @ (p - y))
        allowed = (
            horizon / method.bins
            + math.sqrt(2.0 * horizon * math.log(2 * method.bins + 2))
            + 2.0 * math.sqrt(horizon * math.log(2 * n))
            + 3.0 * math.sqrt(horizon)
        )
        assert max(tests) + groups.max() <= allowed
        assert np.allclose(np.abs(method.sums), tests)
        for v in (0.13, 0.303, 0.501, 0.707):
            # The losses with G(p) = |p - v|, of which every other proper loss is a mixture.
            def loss(p: Float64Array, v: float = v) -> float:
                return float(np.sum(-np.sign(p - v) * (y - v)))

            for f in range(n):
                inside, outside = y[x[:, f] == 1.0].mean(), y[x[:, f] == 0.0].mean()
                regret = loss(p) - loss(np.where(x[:, f] == 1.0, inside, outside))
                assert regret <= 4.0 * max(tests) + 2.0 * groups.max() + 1e-9
                assert regret < 0.03 * horizon
        best = np.where(x[:, 2] == 1.0, y[x[:, 2] == 1.0].mean(), y[x[:, 2] == 0.0].mean())
        squared = float(np.sum((p - y) ** 2 - (best - y) ** 2))
        fixed = float(np.sum((y.mean() - y) ** 2 - (best - y) ** 2))
        assert squared < 0.3 * fixed

"""The rivals that hedge between two neighbors: what all of them obey, and what each of them claims."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import swapcal as sc
from hedging_games import CASES, N_FUNCTIONS, T, every_rival, far_label, make, play, stream
from rival_citizens import check_rival
from swapcal.errors import InvalidInput
from swapcal.paper.method import Plan
from swapcal.rivals import all_rivals
from swapcal.rivals.conformal import MVP
from swapcal.rivals.games import first_change
from swapcal.rivals.ghuge2025 import Ghuge2025
from swapcal.rivals.gupta2022 import Gupta2022
from swapcal.rivals.haghtalab2023 import Haghtalab2023
from swapcal.rivals.hu_wu2024 import HuWu2024
from swapcal.rivals.noarov import Noarov2025, NoarovRoth2023
from swapcal.typing import Float64Array


class TestEveryRival:
    @every_rival
    def test_is_found_and_names_itself(self, name: str) -> None:
        kind = CASES[name][0]
        assert all_rivals()[kind.__name__] is kind
        assert kind.card.reference  # type: ignore[attr-defined]

    @every_rival
    def test_good_citizens(self, name: str) -> None:
        check_rival(partial(make, name))

    @every_rival
    def test_probabilities_and_domain(self, name: str) -> None:
        default = CASES[name][1]
        spec = dict(default.spec()) | {"low": -0.3, "high": 0.6}
        spec.pop("kind")
        method = make(name, property=type(default)(**spec))
        x, y = stream(T)
        for t in range(T):
            plan = method.plan(method.hypotheses.row(x[t]), None)
            assert all(-0.3 <= value <= 0.6 for value in plan.values)
            assert min(plan.probabilities) > 0.0
            assert math.isclose(sum(plan.probabilities), 1.0)
            assert list(plan.values) == sorted(plan.values) or "simulated" in name
            method.update(method.predict(x[t]), -0.3 + 0.9 * y[t])

    @every_rival
    def test_units_do_not_matter(self, name: str) -> None:
        default = CASES[name][1]
        spec = dict(default.spec()) | {"low": 0.0, "high": 4.0}
        spec.pop("kind")
        x, y = stream(T)
        scaled = make(name, property=type(default)(**spec)).run(x, 4.0 * y)
        assert np.array_equal(scaled, 4.0 * make(name).run(x, y))

    @every_rival
    def test_seeds(self, name: str) -> None:
        x, y = stream(T)
        assert np.array_equal(make(name, seed=5).run(x, y), make(name, seed=5).run(x, y))
        assert not np.array_equal(make(name, seed=5).run(x, y), make(name, seed=6).run(x, y))

    @every_rival
    def test_a_context_with_nothing_active(self, name: str) -> None:
        method = make(name)
        for t in range(30):
            method.update(method.predict(np.zeros(N_FUNCTIONS)), 0.1 * (t % 10))
        assert 0.0 <= method.predict(np.zeros(N_FUNCTIONS)).value <= 1.0

    @every_rival
    def test_one_bin_and_a_short_horizon(self, name: str) -> None:
        kind, target, options = CASES[name]
        make_any: Callable[..., Any] = kind
        method = make_any(target, sc.Finite(1), horizon=1, **(options | {"bins": 1}))
        forecasts = method.run(np.ones((9, 1)), np.linspace(0.1, 0.9, 9))
        assert ((forecasts >= 0.0) & (forecasts <= 1.0)).all()

    @every_rival
    def test_refuses_by_name_what_it_cannot_do(self, name: str) -> None:
        kind, target, options = CASES[name]
        make_any: Callable[..., Any] = kind
        card = kind.card  # type: ignore[attr-defined]
        for bad in ({"horizon": 0}, {"horizon": 10, "bins": 0}, {"horizon": 10, "seed": -1}):
            with pytest.raises(InvalidInput):
                make_any(target, sc.Finite(2), **(options | bad))
        if "elicitable" not in card.properties:
            with pytest.raises(InvalidInput, match=card.name):
                make_any(sc.Expectile(0.9), sc.Finite(2), horizon=10)
        if card.classes == ("finite",):
            with pytest.raises(InvalidInput, match=card.name):
                make_any(target, sc.Linear(2), horizon=10)

    def test_bad_words(self) -> None:
        for kind, options in (
            (Gupta2022, {"forecasts": "left"}),
            (Gupta2022, {"rate": math.nan}),
            (Haghtalab2023, {"adversary": "squint"}),
            (Ghuge2025, {"halfspace": "all"}),
            (Noarov2025, {"inner": "lp"}),
            (HuWu2024, {"max_steps": 0}),
        ):
            make_any: Callable[..., Any] = kind
            with pytest.raises(InvalidInput):
                make_any(sc.Mean(), sc.Finite(2), horizon=10, **options)
        with pytest.raises(InvalidInput, match="theory"):
            MVP(sc.Quantile(0.5), sc.Finite(2), horizon=10, rate="practice")


class TestTwoPoints:
    """Two forecasts have the probabilities that cancel the evidence as it is defined, computed afresh here."""

    def cancels(self, method: Any, evidence: Callable[[Float64Array, int], float]) -> None:
        rng = np.random.default_rng(1)
        twice = 0
        for _ in range(300):
            x = (rng.random(N_FUNCTIONS) < 0.6) * rng.choice([1.0, 1.0, -0.5], N_FUNCTIONS)
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
        method = Gupta2022(sc.Mean(), sc.Finite(N_FUNCTIONS), horizon=400, rate=0.2)
        method.run(*stream(400))
        self.cancels(method, lambda x, i: float(sum(x * 2.0 * np.sinh(0.2 * method.sums[:, i]))))

    def test_mvp(self) -> None:
        method = MVP(sc.Quantile(0.8), sc.Finite(N_FUNCTIONS), horizon=400, bins=10)
        method.run(*stream(400))

        def evidence(x: Float64Array, i: int) -> float:
            total = 0.0
            for f in range(N_FUNCTIONS):
                n = method.counts[f, i]
                norm = math.sqrt((n + 1.0) * math.log2(n + 2.0) ** 2)
                a = 0.5 * method.sums[f, i] / norm
                total += x[f] * (math.exp(a) - math.exp(-a)) / norm
            return total

        self.cancels(method, evidence)

    def test_noarov_roth(self) -> None:
        method = NoarovRoth2023(sc.Mean(), sc.Finite(N_FUNCTIONS), horizon=400, bins=12)
        method.run(*stream(400))
        game = method.game

        def evidence(x: Float64Array, k: int) -> float:
            chi = np.exp(game.logs) / np.exp(game.logs).sum()
            return float(sum(chi * x * game.sums[:, k] / np.maximum(game.counts[:, k], 1.0)))

        self.cancels(method, evidence)

    def test_exponents_beyond_the_range_of_floats(self) -> None:
        change = first_change(np.array([-0.5, 1.0, -1.0]), np.array([2000.0, 2001.0, 0.0]))
        assert change.lower == 0
        assert math.isclose(change.p_lower, math.e / (math.e + 0.5))
        method = Gupta2022(sc.Mean(), sc.Finite(2), horizon=4000, bins=3, rate=900.0)
        y = play(method, np.ones((300, 2)), far_label)
        assert np.isfinite(method.sums).all()
        assert set(y) == {0.0, 1.0}


class TestGupta2022:
    def test_the_largest_cell_obeys_its_bound(self) -> None:
        horizon, n = 3000, 6
        rng = np.random.default_rng(0)
        x = (rng.random((horizon, n)) < 0.5).astype(float)
        worst = []
        for seed in range(3):
            method = Gupta2022(sc.Mean(), sc.Finite(n), horizon=horizon, seed=seed)
            play(method, x, far_label)
            worst.append(np.abs(method.sums).max())
        bins = method.bins
        assert np.mean(worst) <= horizon / (1000 * bins) + 4.0 * math.sqrt(horizon * math.log(2 * n * bins))
        # A forecaster that does not learn would have about this much in a single cell.
        assert np.mean(worst) < 0.1 * 0.5 * horizon


class TestMVP:
    def test_every_group_is_covered_in_the_end_on_a_drifting_stream(self) -> None:
        """Groups around the rest's quantile win slowly against it, so that the horizon has to be long."""
        n, level, learned = 6, 0.9, []
        for horizon in (1500, 24_000):
            rng = np.random.default_rng(0)
            x = (rng.random((horizon, n)) < 0.4).astype(float)
            x[:, 0] = 1.0
            t = np.arange(horizon)
            center = 0.3 + 0.1 * np.sin(t / 300.0) + 0.2 * (t > horizon / 2) + 0.1 * x[:, 1] - 0.1 * x[:, 2]
            y = np.clip(center + 0.2 * (rng.random(horizon) + rng.random(horizon) - 1.0), 0.0, 1.0)
            method = MVP(sc.Quantile(level), sc.Finite(n), horizon=horizon, bins=20)
            gaps = {}
            for name, p in (("MVP", method.run(x, y)), ("fixed", np.full(horizon, np.quantile(y[:500], level)))):
                gaps[name] = float(np.abs(x.T @ ((y <= p) - level) / x.sum(axis=0)).max())
            learned.append(gaps["MVP"])
            assert gaps["fixed"] > 0.2
        assert learned[1] < 0.03
        assert learned[1] < 0.6 * learned[0]

    def test_an_adversary_cannot_move_the_coverage_far(self) -> None:
        method = MVP(sc.Quantile(0.9), sc.Finite(2), horizon=4000, bins=20)
        rng = np.random.default_rng(0)

        def answer(plan: Plan) -> float:
            return float(0.5 * rng.random() + (0.5 if plan.values[0] < 0.5 else 0.0))

        play(method, np.ones((4000, 2)), answer)
        assert abs(method.sums[0].sum()) / 4000 < 0.03

    def test_theory_rate(self) -> None:
        cells = 4 * 10
        n = np.arange(200_000)
        squares = (1.0 / ((n + 1) * np.log2(n + 2) ** 2)).sum() + math.log(2) ** 2 / math.log(200_000)
        rate = MVP(sc.Quantile(0.5), sc.Finite(4), horizon=10, bins=10, rate="theory").eta
        assert math.isclose(rate, math.sqrt(math.log(cells) / (2 * squares * cells)), rel_tol=1e-3)

"""The rivals that rest on swap regret and a stationary distribution: true to their theorems."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import some
from rival_games import N_GROUPS, N_ROUNDS, Data, make, stream
from swapcal.hypotheses import Finite, Linear
from swapcal.properties import Mean, Quantile
from swapcal.rivals.foster_hart2023 import FosterHart2023
from swapcal.rivals.games import cycle
from swapcal.rivals.garg2024 import Garg2024, Garg2024Quantile
from swapcal.rivals.luo2025 import Luo2025, projected, stationary, two_neighbors
from swapcal.typing import Float64Array, IntArray


@given(st.lists(st.integers(0, 7), min_size=8, max_size=8), st.integers(0, 7))
def test_cycle_is_stationary(successors: list[int], start: int) -> None:
    states = cycle(successors, start)
    p = np.zeros(8)
    p[list(states)] = 1.0 / len(states)
    q = np.zeros((8, 8))
    q[np.arange(8), successors] = 1.0
    np.testing.assert_allclose(p @ q, p, atol=1e-15)


def test_vovk_azoury_warmuth_and_its_regret() -> None:
    """Each copy equals the forecaster written with a solver, and keeps its regret bound against its best affine fit."""
    n_rounds, ridge = 600, 0.7
    method = Garg2024(Mean(), Finite(N_GROUPS), horizon=n_rounds, ridge=ridge, seed=5)
    x, y, _ = stream(n_rounds, seed=1)
    seen: list[list[tuple[Float64Array, float, float]]] = [[] for _ in range(method.bins)]
    for t in range(n_rounds):
        row = method.hypotheses.row(x[t])
        z = np.append(x[t], 1.0)
        forecasts = method.regressions(row)
        forecast = method.predict(x[t])
        i = method.grid.bin(float(forecast))
        if t % 20 == 0:
            a, b = ridge * np.eye(N_GROUPS + 1) + np.outer(z, z), np.zeros(N_GROUPS + 1)
            for before, label, _ in seen[i]:
                a += np.outer(before, before)
                b += label * before
            assert math.isclose(forecasts[i], float(z @ np.linalg.solve(a, b)), abs_tol=1e-9)
        seen[i].append((z, y[t], float(forecasts[i])))
        method.update(forecast, y[t])
    for past in seen:
        if not past:
            continue
        z, u, forecast_of = (np.array([s[k] for s in past]) for k in range(3))
        d = N_GROUPS + 1
        best = np.linalg.solve(ridge * np.eye(d) + z.T @ z, z.T @ u)
        least = float(np.sum((z @ best - u) ** 2) + ridge * best @ best)
        bound = float(np.max(u**2)) * d * math.log(1.0 + float(np.sum(z * z)) / (ridge * d))
        assert float(np.sum((forecast_of - u) ** 2)) <= least + bound + 1e-9


def test_pinball_oracles_keep_their_regret() -> None:
    n_rounds, level, radius = 800, 0.8, math.sqrt(2.0)
    method = Garg2024Quantile(Quantile(level), Finite(N_GROUPS), horizon=n_rounds, seed=2)
    x, y, _ = stream(n_rounds, seed=2)
    seen: list[list[tuple[Float64Array, float, float]]] = [[] for _ in range(method.bins)]
    for t in range(n_rounds):
        forecast = method.predict(x[t])
        i = method.grid.bin(float(forecast))
        seen[i].append((np.append(x[t], 1.0), y[t], float(method.regressions(method.hypotheses.row(x[t]))[i])))
        method.update(forecast, y[t])
        assert np.all(np.linalg.norm(method.coefficients, axis=1) <= radius + 1e-12)
    directions = np.random.default_rng(0).normal(size=(300, N_GROUPS + 1))
    rivals = radius * directions / np.linalg.norm(directions, axis=1)[:, None] * np.linspace(0.1, 1.0, 300)[:, None]

    def pinball(p: Float64Array, y: Float64Array) -> Float64Array:
        return (p - y) * ((y <= p) - level)

    for i, past in enumerate(seen):
        if past:
            z, u, forecast_of = (np.array([s[k] for s in past]) for k in range(3))
            least = min(float(pinball(z @ w, u).sum()) for w in rivals)
            gradients = ((u <= forecast_of) - level) ** 2 * np.sum(z * z, axis=1)
            assert math.isclose(float(gradients.sum()), float(method.squares[i]), rel_tol=1e-9)
            regret = float(pinball(forecast_of, u).sum()) - least
            assert regret <= 2.0 * math.sqrt(2.0) * radius * math.sqrt(float(gradients.sum()))


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=9), st.integers(1, 40))
def test_rounding_to_neighbors_is_unbiased(forecasts: list[float], n: int) -> None:
    h = np.array(forecasts)
    lower, share = two_neighbors(h, n)
    low, high = lower / n, (lower + 1) / n
    assert np.all((lower >= 0) & (lower < n) & (share >= 0.0) & (share <= 1.0))
    np.testing.assert_allclose((1.0 - share) * low + share * high, h, atol=1e-11)
    spread = (1.0 - share) * (low - h) ** 2 + share * (high - h) ** 2
    assert np.all(spread <= 1.0 / (4.0 * n * n) + 1e-11)


def chain_of(lower: IntArray, share: Float64Array) -> Float64Array:
    n = len(lower)
    q = np.zeros((n, n))
    q[np.arange(n), lower] = 1.0 - share
    q[np.arange(n), lower + 1] += share
    return q


@settings(max_examples=some(200))
@given(
    st.integers(1, 12).flatmap(
        lambda n: st.tuples(
            st.just(n),
            st.lists(
                st.tuples(
                    st.integers(0, n - 1), st.one_of(st.sampled_from([0.0, 1.0, 1e-12, 0.5]), st.floats(1e-9, 1.0))
                ),
                min_size=n + 1,
                max_size=n + 1,
            ),
            st.integers(0, n),
        )
    )
)
def test_stationary_distribution_is_stationary(case: tuple[int, list[tuple[int, float]], int]) -> None:
    """Also for chains with several closed classes, with cycles, and with transitions that are next to impossible."""
    n, rows, start = case
    lower, share = np.array([k for k, _ in rows]), np.array([s for _, s in rows])
    states, chances = stationary(lower, share, start)
    p = np.zeros(n + 1)
    p[states] = chances
    assert math.isclose(p.sum(), 1.0, abs_tol=1e-12)
    assert np.all(p[states] > 0.0)
    np.testing.assert_allclose(p @ chain_of(lower, share), p, atol=1e-10)


@pytest.mark.parametrize("name", ["garg", "garg quantile", "luo"])
def test_plays_the_stationary_distribution(name: str) -> None:
    method: Any = make(name)
    x, y, _ = stream()
    sizes = set()
    for t in range(N_ROUNDS):
        row = method.hypotheses.row(x[t])
        plan = method.plan(row, None)
        if name == "luo":
            q = chain_of(*two_neighbors(method.regressions(row), method.bins))
        else:
            q = np.eye(method.bins)[method.successors(row)]
        p = np.zeros(len(q))
        p[list(plan.notes)] = plan.probabilities
        np.testing.assert_allclose(p @ q, p, atol=1e-10)
        sizes.add(len(plan.notes))
        method.update(method.predict(x[t]), y[t])
    assert max(sizes) > 1 + (name == "luo"), "the stream never met a larger cycle or closed class"


def test_newton_steps_as_written() -> None:
    """Coefficients are those of the steps written with a solver; the labels want more than the ball holds."""
    method = Luo2025(Mean(), Linear(N_GROUPS, radius=4.0), horizon=N_ROUNDS, bins=3)
    x, _, _ = stream()
    y = (x[:, 0] > x[:, 1]).astype(np.float64)
    outside = 0
    matrices = np.tile(method.epsilon * np.eye(N_GROUPS + 1), (4, 1, 1))
    for t in range(N_ROUNDS):
        row = method.hypotheses.row(x[t])
        z = np.zeros(N_GROUPS + 1)
        z[row.indices], z[-1] = row.values, 1.0
        plan = method.plan(row, None)
        before = method.coefficients.copy()
        for i, chance in zip(plan.notes, plan.probabilities, strict=True):
            g = 2.0 * chance * float(before[i] @ z - y[t]) * z
            matrices[i] += np.outer(g, g)
            before[i] -= np.linalg.solve(matrices[i], g) / method.gamma
            if np.linalg.norm(before[i]) > method.radius:
                before[i] = projected(before[i], np.linalg.inv(matrices[i]), method.radius)
                outside += 1
        method.update(method.predict(x[t]), y[t])
        np.testing.assert_allclose(method.coefficients, before, atol=1e-7)
    assert outside > 0


def swap_error(p: Float64Array, x: Float64Array, v: Float64Array, hypotheses: Any) -> float:
    return sum(
        float(hypotheses.supremum(x[p == z].T @ v[p == z])) ** 2 / float(np.sum(p == z)) for z in np.unique(p).tolist()
    )


def world(n_rounds: int, seed: int) -> Data:
    """Means that do not sit on the grids: how much rounding costs must not depend on one lucky N."""
    rng = np.random.default_rng((n_rounds, seed))
    x = (rng.random((n_rounds, N_GROUPS)) < 0.5).astype(np.float64)
    mean = 0.5 + 0.8 * (x - 0.5) @ np.random.default_rng(seed).uniform(-0.3, 0.3, N_GROUPS)
    return x, np.clip(mean + rng.uniform(-0.15, 0.15, n_rounds), 0.0, 1.0), np.clip(mean**2 + 0.1, 0.0, 1.0)


TERMS: dict[Any, Callable[[float, float], tuple[float, ...]]] = {
    Garg2024: lambda t, m: (t / m, m * math.sqrt(t), m * math.log(t)),
    Garg2024Quantile: lambda t, m: (t / m, m * math.sqrt(t), math.sqrt(m * t)),
    Luo2025: lambda t, m: (t / m**2, m * math.log(t)),
    FosterHart2023: lambda t, m: (t / m**2, m * math.log(t)),
}
"""The terms of each bound in T and N; which of them an error is made of depends on the stream."""


@pytest.mark.slow
@pytest.mark.parametrize("method", TERMS)
def test_claimed_exponent(method: Any) -> None:
    """The fitted exponent, within its confidence interval, is at most that of the fastest growing term of the bound.

    The bound is evaluated at the N that are used: N is a small whole number here, and T / N^2 with N rounded up grows
    like T^0.6 between these horizons, whatever it does in the limit. Claims are upper bounds; less is no failure.
    """
    hypotheses = Linear(N_GROUPS, radius=2.0) if method is Luo2025 else Finite(N_GROUPS)
    target = Quantile(0.8) if method is Garg2024Quantile else Mean()
    horizons, seeds = (1024, 4096, 16384), range(6)
    errors, terms = np.empty((len(seeds), len(horizons))), []
    for k, horizon in enumerate(horizons):
        for seed in seeds:
            x, y, hints = world(horizon, seed)
            forecaster = method(target, hypotheses, horizon=horizon, seed=seed)
            p = forecaster.run(x, y, hints)
            scaled = {Luo2025: x / 2.0, FosterHart2023: np.ones_like(x)}.get(method, x)
            errors[seed, k] = swap_error(p, scaled, np.asarray(target.identification(p, y)), hypotheses)
        terms.append(TERMS[method](horizon, forecaster.bins))
    times = np.log(horizons)
    slopes = np.polyfit(times, np.log(errors).T, 1)[0]
    fastest = float(np.polyfit(times, np.log(terms), 1)[0].max())
    lower_end = float(slopes.mean() - 2.0 * slopes.std(ddof=1) / math.sqrt(len(seeds)))
    assert lower_end <= fastest, (slopes, fastest)

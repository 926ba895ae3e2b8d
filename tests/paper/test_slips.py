"""Where the paper's text says something else than it means: each slip that a number can show."""

import itertools
import math

import numpy as np

import swapcal as sc
from swapcal.paper import Algorithm1


def test_the_sequential_rademacher_complexity_as_written_is_zero() -> None:
    # Definition 4: sup over f of the mean. f(x_i(eps)) does not depend on eps_i, so every mean is 0.
    depth, rng = 4, np.random.default_rng(0)
    tree = {path: rng.integers(8) for i in range(depth) for path in itertools.product((-1, 1), repeat=i)}
    functions = rng.choice([-1.0, 1.0], size=(5, 8))
    signs = list(itertools.product((-1, 1), repeat=depth))
    totals = np.array([[sum(s[i] * f[tree[s[:i]]] for i in range(depth)) for s in signs] for f in functions])
    assert np.abs(totals.mean(axis=1)).max() == 0.0
    assert totals.max(axis=0).mean() > 1.0  # what is meant: the mean of the supremum


def test_an_end_of_the_range_is_not_safe_for_a_quantile() -> None:
    # Assumption 1: "V(0, Y) <= 0 ... is clearly true for means and quantiles". Not where Y has an atom at 0.
    assert sc.Mean().identification(0.0, 0.0) == 0.0
    assert math.isclose(sc.Quantile(0.7).identification(0.0, 0.0), 0.3)
    # So the rule that stays at 0 where Phi(0) > 0 gains in every round, which Proposition 1 excludes.
    method = Algorithm1(sc.Quantile(0.7), 1, horizon=216, seed=0)
    gain = sc.Quantile(0.7).identification(method.grid.point(0), 0.0)
    assert gain > 1.0 / method.grid.horizon


def test_labels_zero_and_one_have_no_lipschitz_quantile() -> None:
    # Section 3.2 has Y within {0, 1}, where the distribution function of every law jumps by P(y = 1) at 1.
    v = [np.mean(sc.Quantile(0.7).identification(p, np.array([0.0, 1.0]))) for p in (1.0 - 1e-9, 1.0)]
    assert abs(v[1] - v[0]) == 0.5


def test_the_expectiles_integral_has_other_limits() -> None:
    # Section 3.1: the integral of |t - z| from -t to infinity is tau times that over all z. From -infinity to t it is.
    y, level = np.random.default_rng(0).beta(2.0, 5.0, 20_001), 0.8
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        above = float(np.mean(sc.Expectile(level).identification(middle, y))) > 0.0
        low, high = (low, middle) if above else (middle, high)
    distance = np.abs(low - y)
    assert math.isclose(distance[y <= low].sum(), level * distance.sum(), rel_tol=1e-9)
    assert distance[y >= -low].sum() == distance.sum()  # as written: all of it, for labels in [0, 1]


def test_the_overview_loses_a_root() -> None:
    # Section 2.2, step (v): "alpha <= gamma sqrt(beta) + sqrt(n) + sqrt(gamma beta)"; that bounds the root of alpha.
    n, beta, gamma = 10_000.0, 5.0, 6.0
    alpha = n  # visits as expected
    assert abs(n - alpha) <= gamma * (math.sqrt(alpha * beta) + beta)
    bound = gamma * math.sqrt(beta) + math.sqrt(n) + math.sqrt(gamma * beta)
    assert math.sqrt(alpha) <= bound < alpha


def test_tsallis_identifies_nothing_at_zero() -> None:
    # Section 3.2 counts it, with alpha >= 3, among what meets Assumption 1; but the loss's derivative at 0 is 0 for
    # every label, so that 0 is a root whatever the law is, which Definition 3 excludes.
    for alpha in (3.0, 4.0):
        loss, h = sc.properties.Tsallis(alpha), 1e-6
        for y in (0.0, 1.0):
            assert loss.weight(0.0) * (0.0 - y) == 0.0
            assert abs(float(loss.loss(h, y)) - float(loss.loss(0.0, y))) / h < 1e-5


def test_rounding_may_cross_a_border() -> None:
    # Proof of Lemma 2: |U_t| <= rho / N. E_t V(p~, y) is over both points, of which one may be 1/T beyond the bin.
    method = Algorithm1(sc.Mean(), 1, horizon=1000, seed=0)
    grid = method.grid
    crossings = [(j, j + 1) for j in range(grid.horizon) if grid.bin(j) != grid.bin(j + 1)]
    assert len(crossings) == grid.n_bins - 1
    lower, upper = crossings[0]
    share = 0.5  # of the lower point
    mixed = share * grid.point(lower) + (1.0 - share) * grid.point(upper)
    from_above = grid.forecast(grid.bin(upper)) - mixed
    assert 1.0 / grid.n_bins < from_above <= 1.0 / grid.n_bins + 1.0 / grid.horizon

"""F3 by rows and by clusters: the formula, coverage where it is claimed, and what clusters are for."""

import math

import numpy as np
import pytest

from swapcal.audits.intervals import Terms
from swapcal.typing import Float64Array


def test_the_radius_is_the_formula() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=500) + 0.1
    m, s, q, delta = 500, x.sum(), (x**2).sum(), 0.01
    rho = (-2 * math.log(delta) + math.log(1 - 2 * math.log(delta))) / 1000
    sigma = x.std(ddof=1)
    wanted = sigma * math.sqrt(2 * (m * rho + 1) / rho * math.log(math.sqrt(m * rho + 1) / delta))
    assert Terms(*np.array([[500.0], [s], [q], [500.0]])).radius(delta)[0] == pytest.approx(wanted)


def test_too_few_terms_claim_nothing() -> None:
    one = np.ones(1)
    for found in (
        Terms(99 * one, 50 * one, 60 * one, 99 * one).bias(0.05),
        Terms(19 * one, 50 * one, 60 * one, 99 * one, clusters=True).bias(0.05),
        Terms(0 * one, 0 * one, 0 * one, 0 * one).bias(0.05),
    ):
        assert (found.low[0], found.high[0]) == (-1.0, 1.0)


def left_when_worst(x: Float64Array, delta: float, usual: float = 0.0) -> float:
    """Share of streams (rows of x, mean 0) whose sum leaves its radius at some time."""
    m = np.arange(1.0, x.shape[1] + 1) + np.zeros_like(x)
    radius = Terms(m, x.cumsum(axis=1), (x**2).cumsum(axis=1), m, usual).radius(delta)
    return float((np.abs(x.cumsum(axis=1)) > radius).any(axis=1).mean())


def test_streams_left_when_they_look_worst() -> None:
    rng = np.random.default_rng(2)
    assert left_when_worst(rng.normal(size=(1000, 1000)), 0.1) < 0.1
    assert left_when_worst(rng.random((1000, 1000)) - 0.5, 0.1) < 0.1
    assert left_when_worst(rng.exponential(size=(1000, 1000)) - 1, 0.1, usual=1.0) < 0.1


def test_terms_of_usual_size_help_where_outcomes_are_skewed() -> None:
    rng = np.random.default_rng(3)
    x = np.exp(rng.normal(size=(3000, 600))) - math.exp(0.5)
    usual = (math.e - 1) * math.e
    assert left_when_worst(x, 0.001) > 3 * left_when_worst(x, 0.001, usual)
    assert left_when_worst(x, 0.05, usual) < 0.06


@pytest.mark.slow
def test_coverage_of_clusters_left_when_they_look_worst() -> None:
    rng = np.random.default_rng(5)
    for x in (rng.normal(size=(4000, 400)), rng.exponential(size=(4000, 400)) - 1):
        m = np.arange(1.0, 401.0) + np.zeros_like(x)
        sums, squares = x.cumsum(axis=1), (x**2).cumsum(axis=1)
        radius = Terms(m, sums, squares, m, 1.0, clusters=True).radius(0.05)
        assert (np.abs(sums) > radius).any(axis=1).mean() < 0.05

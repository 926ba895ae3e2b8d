"""Weighted rounds and bins between edges: naive sums, identities, stored form, and what is refused."""

import math
from typing import Any

import numpy as np
import pytest

from swapcal.audits import Audit
from swapcal.audits.sums import bins_between
from swapcal.engine import kernels
from swapcal.errors import InvalidInput
from swapcal.hypotheses import Groups
from swapcal.properties import Mean

EDGES = [0.0, 0.3, 0.55, 1.0]


def stream(n: int = 400, seed: int = 0) -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(seed)
    w = rng.random(n) * (rng.random(n) < 0.9)
    return rng.random(n), rng.integers(0, 11, n) / 10, rng.choice([0.0, 1.0, -0.5], (n, 3)), w


def naive(y: Any, p: Any, x: Any, w: Any, edges: Any, r: float) -> tuple[float, float, float]:
    """Cal_r, MCal_r and SMCal_r by loops over rounds; a round of weight w is w rounds, and V counts as w V."""
    cells: dict[float, list[int]] = {}
    for t, forecast in enumerate(p):
        key = forecast if edges is None else sum(edge <= forecast for edge in edges[1:-1])
        cells.setdefault(key, []).append(t)
    overall, single, swap = 0.0, [0.0] * x.shape[1], 0.0
    for rounds in cells.values():
        n = math.fsum(w[t] for t in rounds)
        if n == 0.0:
            continue
        errors = [math.fsum(w[t] * x[t, j] * (p[t] - y[t]) for t in rounds) for j in range(x.shape[1])]
        overall += n * abs(math.fsum(w[t] * (p[t] - y[t]) for t in rounds) / n) ** r
        terms = [n * abs(error / n) ** r for error in errors]
        single, swap = [a + b for a, b in zip(single, terms, strict=True)], swap + max(terms)
    return overall, max(single), swap


@pytest.mark.parametrize("r", [1.0, 2.0, 3.5])
@pytest.mark.parametrize("edges", [None, EDGES])
@pytest.mark.parametrize("weighted", [False, True])
def test_errors_are_those_of_naive_loops(r: float, edges: Any, weighted: bool) -> None:
    y, p, x, w = stream()
    audit = Audit(bins=edges)
    audit.update_many(y, p, x, weights=w if weighted else None)
    found = (audit.calibration(r), audit.multicalibration(r), audit.swap_multicalibration(r))
    assert found == pytest.approx(naive(y, p, x, w if weighted else np.ones(400), edges, r))
    assert audit.n_rounds == 400
    cells = audit.cells()
    assert sum(cells.count) == np.count_nonzero(x)
    assert audit.reliability().weight.sum() == pytest.approx(w.sum() if weighted else 400)


def test_one_round_after_the_other_is_all_at_once() -> None:
    y, p, x, w = stream(60)
    for bins in (None, 4, EDGES):
        slow, fast = Audit(bins=bins), Audit(bins=bins)
        fast.update_many(y, p, x, weights=w)
        for round_ in zip(y, p, x, w, strict=True):
            slow.update(*round_[:3], weight=round_[3])
        assert slow.to_bytes() == fast.to_bytes()


def test_a_bin_between_edges_judges_each_forecast_at_its_own_value() -> None:
    audit = Audit(bins=[0.0, 0.5, 1.0])
    audit.update_many([0.0, 0.0, 1.0], [0.2, 0.4, 0.5], None)
    assert audit.values.tolist() == [0.3, 0.5]
    assert audit.reliability()[0].mean == pytest.approx(-0.5)
    assert audit.calibration(1.0) == pytest.approx(0.2 + 0.4 + 0.5)


def test_groups_that_have_not_come_up_take_no_part() -> None:
    """A class with room for thousands of groups has the intervals of those that are there."""
    rng = np.random.default_rng(0)
    p, sex = rng.random(500), rng.choice(["f", "m"], 500)
    y = (rng.random(500) < p).astype(float)
    named, plain = Audit(Mean(), Groups(["sex"]), bins=5), Audit(bins=5, names=["all", "sex=f", "sex=m"])
    named.update_many(y, p, {"sex": sex})
    names = named.function_names
    plain.update_many(y, p, np.stack([np.ones(500), *(sex == name[-1] for name in names[1:])], axis=1).astype(float))
    assert set(names) == {"all", "sex=f", "sex=m"}
    np.testing.assert_array_equal(named.cells().low, plain.cells().low)
    assert len(named.witness().sentence) > 40


@pytest.mark.parametrize("bins", [[0.5], [0.5, 0.5, 1.0], [1.0, 0.0], [0.0, math.nan], ["a", "b"], [[0.0, 1.0]]])
def test_bad_edges_are_refused(bins: Any) -> None:
    with pytest.raises(InvalidInput, match="bins"):
        Audit(bins=bins)


@pytest.mark.skipif(kernels.backend() == "python", reason="there are no twins to compare")
@pytest.mark.parametrize("n_edges", [0, 1, 2, 3, 47, 64, 1000])
def test_bins_are_those_of_their_twin(n_edges: int) -> None:
    rng = np.random.default_rng(n_edges)
    inner = np.unique(rng.random(n_edges))
    values = np.concatenate(
        [inner, np.nextafter(inner, 2.0), np.nextafter(inner, -2.0), rng.random(500), [-1e300, 9.0]]
    )
    for upper in (True, False):
        with kernels.using("native"):
            found = bins_between(inner, values, upper=upper)
        with kernels.using("python"):
            np.testing.assert_array_equal(found, bins_between(inner, values, upper=upper))

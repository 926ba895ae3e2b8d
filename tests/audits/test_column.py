"""A column of forecasts: its errors are those of `Audit`; its curves, its chance level and its bins."""

from typing import Any

import numpy as np
import pytest

import swapcal as sc
from streams import PROPERTIES, rows_of, stream
from swapcal.audits.column import Column
from swapcal.audits.decision import find
from swapcal.audits.histograms import OutcomeBins, root
from swapcal.audits.summary import summarize
from swapcal.errors import InvalidInput, StateFileError
from swapcal.protocols import Elicitable, Rows
from swapcal.sparse import sliced
from swapcal.state import pack
from swapcal.tasks.evaluation import binning

NAMES = ("all", "one", "two", "three")


def column(property: Elicitable, n: int = 4, *, bins: Any = None, shown: Any = 20) -> Column:
    names = NAMES if n == 4 else ("all", *(f"g{i}" for i in range(1, n)))
    return Column(sc.Audit(property, sc.Finite(n), bins=bins, names=names), label="the model", shown=shown)


# The errors of a column are those of the audit.


@pytest.mark.parametrize("property", PROPERTIES, ids=repr)
@pytest.mark.parametrize("bins", [None, 7])
def test_totals_are_those_of_the_audit(property: Elicitable, bins: int | None) -> None:
    y, p, x = stream(1200)
    p = property.domain[0] + (property.domain[1] - property.domain[0]) * p
    rows = rows_of(x)
    one = column(property, bins=bins)
    for start, end in ((0, 1), (1, 500), (500, 500), (500, 1200)):
        losses = one.add(y[start:end], p[start:end], sliced(rows, start, end))
        np.testing.assert_allclose(losses, property.loss(p[start:end], y[start:end]))
    reference = sc.Audit(property, sc.Finite(4), bins=bins)
    reference.update_many(y, p, x)
    for r in (1.0, 2.0, 3.5):
        assert one.swap_error(r) == reference.swap_multicalibration(r)
        assert one.group_error(r) == reference.multicalibration(r)
        assert one.overall_error(r) == reference.calibration(r)
    side = summarize(one)
    assert side.loss == pytest.approx(np.mean(property.loss(p, y)))
    assert (side.n_cells, one.n_rounds) == (len(reference.cells()), 1200)
    top = reference.cells().contribution[0]
    assert max(cell.contribution for cell in side.worst) <= top * (1 + 1e-9)
    assert side.counts[:, 0].sum() == side.histogram.sum() == 1200
    # The heat map adds up to the overall bias.
    overall = reference.reliability()
    assert np.nansum(side.bias[:, 0] * side.counts[:, 0]) == pytest.approx(float(overall.mean @ overall.count))


def test_a_linear_class_beside_groups_takes_the_larger_of_both() -> None:
    y, p, x = stream(800)
    rng = np.random.default_rng(5)
    z = rng.normal(size=(800, 3)) / 4
    z /= np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1.0)
    y = np.clip(y + 2 * z[:, 1], -1, 3)
    signed = sc.Mean(low=-1.0, high=3.0)
    beside = sc.Audit(signed, sc.Linear(3), names=["constant", "u", "v"])
    one = Column(sc.Audit(signed, sc.Finite(4, names=NAMES)), beside, label="the model")
    one.add(y, p, rows_of(x), sc.Linear(3).rows(z, 800))
    groups, linear = sc.Audit(signed, sc.Finite(4)), sc.Audit(signed, sc.Linear(3))
    groups.update_many(y, p, x)
    linear.update_many(y, p, z)
    assert one.group_error() == pytest.approx(max(groups.multicalibration(), linear.multicalibration()))
    assert max(groups.swap_multicalibration(), linear.swap_multicalibration()) <= one.swap_error()
    assert one.swap_error() <= groups.swap_multicalibration() + linear.swap_multicalibration()
    side = summarize(one)
    assert one.names == (*NAMES, "constant", "u", "v")
    assert side.bias.shape == (20, 7)
    assert "linear" not in side.curves
    assert list(side.curves) == list(NAMES)


def test_memory_does_not_grow_with_groups_without_end() -> None:
    rng = np.random.default_rng(0)
    n = 2500
    one = column(sc.Mean(), n, bins=48)
    for _ in range(3):
        x = np.stack([np.zeros(4000, dtype=np.int64), rng.integers(1, n, 4000)], axis=1)
        p = rng.random(4000)
        one.add((rng.random(4000) < p).astype(float), p, Rows(np.arange(4001) * 2, x.reshape(-1), np.ones(8000)))
    side = summarize(one)
    assert len(side.curves) == 30
    assert side.bias.shape == (20, n)
    assert not find(side).biased
    assert sum(array.nbytes for array in one.arrays().values()) < 40e6


def test_misshapen_batches_are_refused() -> None:
    y, p, x = stream(10)
    one = column(PROPERTIES[0])
    with pytest.raises(InvalidInput, match="one entry per round"):
        one.add(y, p[:9], rows_of(x))
    with pytest.raises(InvalidInput, match="finite"):
        one.add(np.full(10, np.nan), p, rows_of(x))
    with pytest.raises(InvalidInput, match="needs a round"):
        summarize(one)
    assert one.n_rounds == 0


# Curves.


@pytest.mark.parametrize("property", PROPERTIES, ids=repr)
def test_the_root_is_the_property(property: Elicitable) -> None:
    rng = np.random.default_rng(1)
    for y in (rng.integers(0, 3, 999).astype(float), rng.uniform(-1, 3, 20_000), np.full(5, 0.25)):
        bins = OutcomeBins(y, -1.0, 3.0)
        found = bins.add(y)
        counts = np.bincount(found, minlength=bins.n)[None, :].astype(float)
        points = bins.points(spread=not property.continuous)
        assert root(property, counts, points)[0] == pytest.approx(property.value(y), abs=0.03)
    # Few different outcomes have a bin each, so nothing is lost.
    y = rng.integers(0, 3, 999).astype(float)
    bins = OutcomeBins(y, -1.0, 3.0)
    counts = np.bincount(bins.add(y), minlength=bins.n)[None, :].astype(float)
    exact = root(property, counts, bins.points(spread=not property.continuous))[0]
    assert exact == pytest.approx(property.value(y), abs=1e-9)


@pytest.mark.parametrize("property", [sc.Mean(), sc.Quantile(0.9), sc.Expectile(0.8)], ids=repr)
def test_curves_cover_the_truth(property: Elicitable) -> None:
    """Outcomes uniform on [0, p + 0.1]: the intervals hold the property's true value in nearly all bins."""
    rng = np.random.default_rng(3)
    n = 60_000
    p = rng.random(n) * 0.9
    y = rng.random(n) * (p + 0.1)
    one = column(property, 1, bins=np.linspace(0, 1, 41))
    one.add(y, p, Rows(np.arange(n + 1), np.zeros(n, dtype=np.int64), np.ones(n)))
    curve = summarize(one).curves["all"]
    for forecast, outcome, low, high in zip(curve.forecast, curve.outcome, curve.low, curve.high, strict=True):
        truth = property.value(np.linspace(0, 1, 20_001)) * (forecast + 0.1)
        assert low <= truth <= high
        assert outcome == pytest.approx(truth, abs=0.03)
        assert high - low < 0.25


# Binning.


def test_bins_of_forecasts() -> None:
    rng = np.random.default_rng(0)
    few = binning(sc.Mean(), rng.integers(0, 11, 500) / 10, None)
    assert "11 forecast values" in few.stated
    assert isinstance(few.audit_bins, np.ndarray)
    assert len(few.audit_bins) == 12
    one = column(sc.Mean(), 1, bins=few.audit_bins, shown=few.shown)
    p = np.array([0.0, 0.1, 0.2, 0.21, 1.0])
    one.add(np.zeros(5), p, Rows(np.arange(6), np.zeros(5, dtype=np.int64), np.ones(5)))
    assert len(one.audit.contributions()) == 4, "0.21 was never seen at the start and joins 0.2"
    many = binning(sc.Mean(high=1000.0), np.exp(rng.normal(2.0, 0.5, 5000)), None)
    assert isinstance(many.audit_bins, np.ndarray)
    assert 40 <= len(many.audit_bins) - 1 <= 60
    assert set(many.shown) <= set(many.audit_bins), "bins of the pictures are unions of those of the totals"
    counts = np.histogram(np.exp(rng.normal(2.0, 0.5, 5000)), many.shown)[0]
    assert counts.max() < 0.1 * 5000, "a long tail does not put all forecasts into one bin"
    given = binning(sc.Mean(), rng.random(50), 10)
    np.testing.assert_array_equal(given.audit_bins, np.linspace(0.0, 1.0, 11))
    np.testing.assert_allclose(given.shown, np.linspace(0, 1, 11))
    assert "all 0.5" in binning(sc.Mean(), np.full(9, 0.5), None).stated


@pytest.mark.parametrize("name", ["key", "place", "length", "function", "start", "units"])
@pytest.mark.parametrize("forged", [-1.0, 1e17])
def test_a_forged_sample_is_refused(name: str, forged: float) -> None:
    y, p, x = stream(300)
    one = column(sc.Mean(low=-1.0, high=3.0), bins=7)
    one.add(y, p, rows_of(x))
    saved = one.to_state()
    assert Column.from_bytes(pack(Column.kind, saved)).to_bytes() == one.to_bytes()
    array = saved.arrays[f"sample.{name}"].copy()
    array[-1] = forged
    with pytest.raises(StateFileError, match="damaged"):
        Column.from_bytes(pack(Column.kind, saved._replace(arrays={**saved.arrays, f"sample.{name}": array})))

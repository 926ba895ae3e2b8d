"""Properties: what they are against each other and other packages. What every one obeys is in `swapcal.checks`."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_diagnostics.calibration import identification_function  # type: ignore[import-untyped]
from scipy import stats

from instances import PROPERTIES, REBUILDABLE
from swapcal.errors import NotElicitable, StateFileError
from swapcal.properties import (
    CVaR,
    Expectile,
    Log,
    Mean,
    Median,
    Mode,
    Moment,
    Probability,
    Property,
    Quantile,
    Spherical,
    Squared,
    Tsallis,
    Variance,
    from_spec,
)
from swapcal.protocols import Elicitable
from swapcal.typing import Float64Array

every_property = pytest.mark.parametrize("property", PROPERTIES, ids=repr)
levels = st.floats(0.01, 0.99)
units = st.lists(st.floats(0.0, 1.0).map(lambda u: round(u, 6)), min_size=1, max_size=30).map(np.array)


@every_property
def test_claimed_slopes_are_attained(property: Elicitable) -> None:
    """`checks` asks that no slope is above the constant; here some slope is near it."""
    p = np.linspace(*property.domain, 201)
    y = np.array([0.0, 1.0]) if isinstance(property, Probability) else np.linspace(property.low, property.high, 41)
    steepest = np.diff(np.asarray(property.identification(p[:, None], y)), axis=0).max() * 200
    assert property.lipschitz is None or not property.continuous or steepest >= 0.9 * property.lipschitz
    assert property.continuous is not isinstance(property, Quantile)


def test_mean_identification_of_a_quantile_is_as_steep_as_the_density() -> None:
    quantile = Quantile(0.3, low=-1.0, high=3.0, density=2.0)
    # Uniform on half of the range: twice the density of the uniform distribution on all of it.
    y = np.linspace(0.0, 2.0, 4001)
    p = np.linspace(0.2, 1.8, 9)
    mean = np.mean(quantile.identification(p[:, None], y), axis=1)
    assert np.diff(mean) / (np.diff(p) / 4.0) == pytest.approx(np.full(8, quantile.density), rel=1e-2)
    assert "rho = 2" in quantile.assumption
    assert Quantile(0.3).lipschitz is None


@given(y=units)
def test_expectile_at_one_half_is_the_mean(y: Float64Array) -> None:
    assert Expectile(0.5).value(y) == pytest.approx(Mean().value(y), rel=1e-12, abs=1e-15)
    p = np.linspace(0.0, 1.0, 7)[:, None]
    assert np.array_equal(Expectile(0.5).identification(p, y), 0.5 * np.asarray(Mean().identification(p, y)))


@given(y=units)
def test_first_moment_and_squared_probability_are_the_mean(y: Float64Array) -> None:
    p = np.linspace(0.0, 1.0, 7)[:, None]
    for other in (Moment(1), Probability()):
        sample = y if isinstance(other, Moment) else np.round(y)
        for method in ("identification", "loss"):
            assert np.array_equal(getattr(other, method)(p, sample), getattr(Mean(), method)(p, sample))
        assert np.array_equal(other.loss_weight(p), Mean().loss_weight(p))
        assert other.value(sample) == pytest.approx(Mean().value(sample), rel=1e-15)


@given(y=units, level=levels)
def test_values_agree_with_scipy_and_numpy(y: Float64Array, level: float) -> None:
    assert Expectile(level).value(y) == pytest.approx(stats.expectile(y, level), rel=1e-9, abs=1e-12)
    assert Mean().value(y) == pytest.approx(np.mean(y), rel=1e-12)
    assert Moment(3).value(y) == pytest.approx(np.mean(y**3), rel=1e-12)
    # NumPy takes one label too many where level * n is a whole number that rounding has raised; see the next test.
    if abs(level * y.size - round(level * y.size)) > 1e-9:
        assert Quantile(level).value(y) == np.quantile(y, level, method="inverted_cdf")


@pytest.mark.parametrize("level", [0.1, 0.5, 0.8])
def test_identification_agrees_with_model_diagnostics(level: float) -> None:
    y, p = np.random.default_rng(0).random((2, 200))
    p[:20] = y[:20]
    theirs: dict[str, Any] = {
        name: identification_function(y, p, functional=name, level=level) for name in ("mean", "quantile", "expectile")
    }
    assert np.asarray(Mean().identification(p, y)) == pytest.approx(theirs["mean"], abs=1e-15)
    assert np.asarray(Quantile(level).identification(p, y)) == pytest.approx(theirs["quantile"], abs=1e-15)
    assert 2.0 * np.asarray(Expectile(level).identification(p, y)) == pytest.approx(theirs["expectile"], abs=1e-15)


@pytest.mark.parametrize(("kind", "arguments"), [(Mean, ()), (Quantile, (0.3,)), (Expectile, (0.8,)), (Moment, (1,))])
def test_change_of_label_units_changes_nothing_else(kind: Any, arguments: tuple[float, ...]) -> None:
    unit, other = kind(*arguments), kind(*arguments, low=-4.0, high=12.0)
    y, p = np.random.default_rng(1).random((2, 50))
    # Multiples of 2^-20, so that the change of units is exact and no rounding moves a label across a forecast.
    y, p = np.floor(y * 2**20) / 2**20, np.floor(p * 2**20) / 2**20
    assert np.array_equal(other.identification(16.0 * p - 4.0, 16.0 * y - 4.0), unit.identification(p, y))
    assert other.value(16.0 * y - 4.0) == pytest.approx(16.0 * unit.value(y) - 4.0, rel=1e-12)


@pytest.mark.parametrize(
    ("moment", "domain"),
    [
        (Moment(2, low=-1.0, high=2.0), (0.0, 4.0)),
        (Moment(2, low=-3.0, high=2.0), (0.0, 9.0)),
        (Moment(2, low=-3.0, high=-1.0), (1.0, 9.0)),
        (Moment(2, low=1.0, high=3.0), (1.0, 9.0)),
        (Moment(3, low=-2.0, high=1.0), (-8.0, 1.0)),
        (Moment(4, low=-2.0, high=0.0), (0.0, 16.0)),
    ],
)
def test_domain_of_moments(moment: Moment, domain: tuple[float, float]) -> None:
    assert moment.domain == domain


def test_small_facts() -> None:
    assert Median(low=-1.0, high=4.0, density=2.0) == Quantile(0.5, low=-1.0, high=4.0, density=2.0)
    p, y = np.linspace(0.0, 1.0, 9)[:, None], np.array([0.0, 1.0])
    assert np.asarray(Tsallis(2.0).loss(p, y)) + y**2 == pytest.approx(np.asarray(Squared().loss(p, y)), abs=1e-15)
    assert np.array_equal(Tsallis(2.0).weight(p), Squared().weight(p))
    # 0.07 * 100 is rounded up to more than 7, yet 7 labels of 100 are a share of 0.07.
    assert Quantile(0.07).value(np.arange(1, 101) / 100) == 0.07
    assert Quantile(0.9).value(np.arange(10) / 10) == 0.8
    # No value leaves the labels by rounding.
    assert {
        each.value(np.full(3, 0.1)) for each in (Mean(high=0.1), Expectile(0.3, high=0.1), Moment(1, high=0.1))
    } == {0.1}
    assert repr(Quantile(np.float64(0.9), density=2)) == "Quantile(0.9, density=2.0)"
    assert [repr(Mean()), repr(Moment(2, high=3))] == ["Mean()", "Moment(2, high=3.0)"]


def test_proper_losses_at_the_ends() -> None:
    ends, y = np.array([0.0, 1.0])[:, None], np.array([0.0, 1.0])
    wrong = np.array([[0.0, np.inf], [np.inf, 0.0]])
    assert np.array_equal(Log().loss(ends, y), wrong)
    assert [[Log().loss(p, label) for label in (0.0, 1.0)] for p in (0.0, 1.0)] == wrong.tolist()
    assert np.array_equal(Log().weight(ends[:, 0]), [np.inf, np.inf])
    assert Log().weight(1.0) == np.inf
    assert np.array_equal(Spherical().loss(ends, y), [[-1.0, 0.0], [0.0, -1.0]])
    assert np.array_equal(Tsallis(1.5).weight(ends[:, 0]), [np.inf, 0.75])
    assert Tsallis(1.5).weight(0.0) == np.inf
    assert np.array_equal(Tsallis(1.5).loss(ends, y), [[0.0, 0.0], [0.5, -1.0]])


@pytest.mark.parametrize("property", REBUILDABLE, ids=repr)
def test_spec_and_repr_rebuild_an_equal_object(property: Elicitable) -> None:
    again = from_spec(json.loads(json.dumps(property.spec())))
    assert again == property
    assert hash(again) == hash(property)
    names = {kind.__name__: kind for kind in (Mean, Moment, Quantile, Expectile, Probability, Log, Spherical, Tsallis)}
    assert eval(repr(property), {"__builtins__": {}}, names) == property


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"kind": "Mode"}, "unknown kind of property: 'Mode'"),
        ({"level": 0.5}, '"kind"'),
        ({"kind": ["Mean"]}, '"kind"'),
        ("Mean", '"kind"'),
        ({"kind": "Quantile"}, "damaged"),
        ({"kind": "Quantile", "level": "high"}, "damaged: level must be a finite number"),
        ({"kind": "Mean", "level": 0.5}, "damaged"),
        ({"kind": "Probability"}, "saved proper loss"),
        ({"kind": "Probability", "loss": {"kind": "Hinge"}}, "unknown kind of proper loss"),
        ({"kind": "Probability", "loss": {"kind": "Concave", "name": "mine"}}, "'mine'.*property="),
        (Property(lambda p, y: p - y, name="mine").spec(), "'mine'.*property="),
    ],
)
def test_specs_that_cannot_be_rebuilt(spec: Any, message: str) -> None:
    with pytest.raises(StateFileError, match=message):
        from_spec(spec)


@pytest.mark.parametrize(
    ("refused", "instead"), [(Variance, r"sc\.MeanVariance\("), (CVaR, r"sc\.TailMean\(0\.9, "), (Mode, "Probability")]
)
def test_properties_that_no_loss_elicits(refused: Any, instead: str) -> None:
    for arguments, options in (((), {}), ((0.9,), {}), ((), {"level": 0.9, "low": 0.0})):
        with pytest.raises(NotElicitable, match=instead):
            refused(*arguments, **options)

"""Properties from users' functions, and what bad arguments get."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from instances import entropy, entropy_slope, huber, huber_loss, wide
from swapcal.errors import InvalidInput
from swapcal.properties import Concave, Expectile, Log, Mean, Moment, Probability, Property, Quantile, Squared, Tsallis
from swapcal.protocols import Elicitable
from swapcal.typing import Float64Array

BUILT_IN: list[Elicitable] = [
    Mean(), Mean(low=-2.0, high=6.0), Moment(2, low=-1.0, high=2.0), Quantile(0.8), Quantile(0.3, low=10.0, high=20.0),
    Expectile(0.9),
]  # fmt: skip


def off_labels(property: Elicitable) -> tuple[Float64Array, Float64Array]:
    """Forecasts and labels that are never nearer than the step of a difference."""
    unit = np.linspace(0.0, 1.0, 21)
    p = property.domain[0] + (property.domain[1] - property.domain[0]) * unit[:, None]
    return p, property.low + (property.high - property.low) * (unit[:-1] + 0.021)


@pytest.mark.parametrize("built_in", BUILT_IN, ids=repr)
def test_from_the_identification_of_a_built_in_property(built_in: Elicitable) -> None:
    own = Property(built_in.identification, low=built_in.low, high=built_in.high, domain=built_in.domain)
    p, y = off_labels(built_in)
    assert own.scale == 1.0
    assert own.monotone
    assert own.continuous is built_in.continuous
    assert np.array_equal(own.identification(p, y), built_in.identification(p, y))
    assert own.value(y) == pytest.approx(built_in.value(y), rel=1e-12)
    # The integral of V is the loss over its weight, up to what depends on the label alone; both are zero at p = y.
    expected = np.asarray(built_in.loss(p, y)) / built_in.loss_weight(p)
    assert np.asarray(own.loss(p, y)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("built_in", BUILT_IN, ids=repr)
def test_from_the_loss_of_a_built_in_property(built_in: Elicitable) -> None:
    own = Property(loss=built_in.loss, low=built_in.low, high=built_in.high, domain=built_in.domain)
    p, y = off_labels(built_in)
    weight = np.asarray(built_in.loss_weight(p)) / own.scale
    assert np.asarray(own.identification(p, y)) == pytest.approx(
        weight * np.asarray(built_in.identification(p, y)), abs=1e-7
    )
    assert own.monotone
    assert own.continuous is built_in.continuous
    # 19 labels: a mean identification that is zero nowhere has its jump where the value is, give or take a step.
    width = built_in.domain[1] - built_in.domain[0]
    assert own.value(y[1:]) == pytest.approx(built_in.value(y[1:]), abs=1e-5 * width)
    assert np.array_equal(own.loss(p, y), built_in.loss(p, y))
    assert own.loss_weight(0.5) == own.scale


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=12).map(lambda n: np.array(n) / 1000))
def test_value_by_bisection_is_the_exact_one(y: Float64Array) -> None:
    assert Property(Mean().identification).value(np.zeros(2)) == 0.0
    assert Property(Mean().identification).value(y) == pytest.approx(Mean().value(y), abs=1e-12)
    assert Property(Quantile(0.6).identification).value(y) == pytest.approx(Quantile(0.6).value(y), abs=1e-12)


def test_identification_is_scaled_into_the_unit_interval() -> None:
    own = Property(wide, low=-2.0, high=1.0, lipschitz=12.0)
    assert own.scale == wide(np.array(1.0), np.array(-2.0))
    assert own.identification(1.0, -2.0) == 1.0
    assert own.lipschitz == 12.0 / own.scale
    assert own.identification(0.5, 0.25) == 1.0 / own.scale


def test_functions_of_numbers_and_of_arrays_give_the_same() -> None:
    def vectorized(p: Any, y: Any) -> Any:
        return np.clip(p - y, -0.2, 0.2)

    p, y = off_labels(Mean())
    assert np.array_equal(Property(huber).identification(p, y), Property(vectorized).identification(p, y))
    assert Property(huber).loss(p, y) == pytest.approx(np.vectorize(huber_loss)(p, y), abs=2e-5)


def test_weight_of_a_loss_given_with_its_identification() -> None:
    own = Property(Expectile(0.7).identification, loss=Expectile(0.7).loss)
    # At either end the identification of that label is zero, so the other label must tell the weight.
    assert np.asarray(own.loss_weight(np.array([0.0, 0.5, 1.0]))) == pytest.approx(np.full(3, 2.0), abs=1e-8)


def test_own_value_name_and_domain() -> None:
    own = Property(
        lambda p, y: p - 2.0 * y, name="double", domain=(0, 2), value=lambda y: 2.0 * float(np.mean(y)), monotone=True
    )
    assert repr(own) == "Property(name='double', domain=(0.0, 2.0))"
    assert own.value(np.array([0.25, 0.5])) == 0.75
    assert own.spec() == {"kind": "Property", "name": "double", "low": 0.0, "high": 1.0, "domain": [0.0, 2.0]}
    assert Property(huber).name == "huber"


def test_monotonicity_is_measured() -> None:
    def bump(p: Any, y: Any) -> Any:
        return np.sin(4.0 * (p - y)) / 2.0 + (p - y) / 2.0

    assert not Property(bump).monotone
    assert Property(Mean().identification, monotone=False).monotone is False
    with pytest.raises(InvalidInput, match=r"monotone=True, yet V\(., [0-9.]+\) falls by"):
        Property(bump, monotone=True)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Property(), "needs an identification function"),
        (lambda: Property("mean"), "must be a function; got 'mean'"),  # type: ignore[arg-type]
        (lambda: Property(huber, name=3), "name must be a string"),  # type: ignore[arg-type]
        (lambda: Property(huber, value=0.5), "value must be a function"),  # type: ignore[arg-type]
        (lambda: Property(huber, monotone=1), "monotone must be"),  # type: ignore[arg-type]
        (lambda: Property(huber, lipschitz=0.0), "lipschitz must be positive"),
        (lambda: Property(huber, domain=(0.0,)), "domain must be a pair"),  # type: ignore[arg-type]
        (lambda: Property(huber, domain=(1.0, 0.0)), "low < high"),
        (lambda: Property(lambda p, y: y - p), r"V\(0, 0.995\) = 0.995, but it must be at most 0 .*turn the sign"),
        (lambda: Property(lambda p, y: p - y, domain=(0.0, 0.5)), r"V\(0.5, 0.995\) = -0.495, .* at least 0"),
        (lambda: Property(lambda p, y: 0.0 * p * y), "zero for all"),
        (lambda: Property(lambda p, y: (p - y) / (p * (1.0 - p))), "raised ZeroDivisionError|must be finite"),
        (lambda: Property(lambda p, y: np.log(p) - np.log(y)), r"V\(0, 0\) = nan, but V must be finite"),
        (lambda: Property(loss=lambda p, y: None), "raised TypeError"),
        (lambda: Property(lambda p, y: p[0] - y), "raised TypeError"),
        (lambda: Property(huber, loss=lambda p, y: -huber_loss(p, y)), "the loss must rise"),
    ],
)
def test_properties_that_cannot_be(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()


def test_identification_that_fails_later_is_named() -> None:
    # The grid has no forecast at a third, so only the stream finds the pole.
    own = Property(lambda p, y: p - y if p != 1.0 / 3.0 else math.nan, name="holed")
    with pytest.raises(InvalidInput, match=r"holed: V\(0.333333, 0.5\) = nan"):
        own.identification(1.0 / 3.0, 0.5)
    with pytest.raises(InvalidInput, match=r"holed: V\(0.333333, 0.7\) = nan"):
        own.identification(np.array([0.1, 1.0 / 3.0]), np.array([0.2, 0.7]))


def test_concave_functions_give_the_proper_losses_of_their_entropy() -> None:
    p, y = np.linspace(0.0, 1.0, 11)[:, None], np.array([0.0, 1.0])
    brier = Concave(lambda p: p * (1.0 - p), lambda p: 1.0 - 2.0 * p)
    assert np.asarray(brier.loss(p, y)) == pytest.approx(np.asarray(Squared().loss(p, y)), abs=1e-15)
    assert np.asarray(brier.weight(p)) == pytest.approx(np.full(p.shape, 2.0), abs=1e-6)
    shannon = Concave(entropy, entropy_slope, name="entropy")
    assert np.asarray(shannon.loss(p, y)) == pytest.approx(np.asarray(Log().loss(p, y)), abs=1e-12)
    assert shannon.loss(0.0, 0.0) == 0.0
    assert shannon.loss(0.0, 1.0) == math.inf
    assert np.asarray(shannon.weight(p[1:-1])) == pytest.approx(np.asarray(Log().weight(p[1:-1])), rel=1e-6)
    assert repr(Probability(shannon)) == "Probability(Concave(name='entropy'))"
    # Straight pieces: the rounded curvature is not negative, and a supergradient may jump.
    noisy = Concave(lambda p: p, lambda p: 1.0 + 1e-12 * np.sin(1e5 * p))
    assert np.min(noisy.weight(np.linspace(0.0, 1.0, 99))) == 0.0
    assert min(noisy.weight(p) for p in np.linspace(0.0, 1.0, 99).tolist()) == 0.0
    kinked = Concave(lambda p: min(p, 1.0 - p), lambda p: 1.0 if p < 0.5 else -1.0)
    assert np.array_equal(kinked.weight(np.array([0.2, 0.7])), [0.0, 0.0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Concave(lambda p: p * p, lambda p: 2.0 * p, name="bowl"), "bowl: .* not of a concave function"),
        (lambda: Concave(lambda p: p * (1.0 - p), lambda p: 2.0 * p - 1.0), "not of a concave function"),
        (lambda: Concave(lambda p: p * (1.0 - p), 1.0), "supergradient must be a function"),  # type: ignore[arg-type]
        (lambda: Concave(np.log, lambda p: 1.0 / p), "f must be finite"),
        (lambda: Probability(Log), "proper loss object such as"),  # type: ignore[arg-type]
        (lambda: Probability("log"), "got 'log'"),  # type: ignore[arg-type]
        (lambda: Tsallis(1.0), "alpha above 1"),
        (lambda: Tsallis(math.inf), "alpha must be a finite number"),
        (lambda: Quantile(0.0), "strictly between 0 and 1"),
        (lambda: Quantile(90), "for 90 % give 0.9"),
        (lambda: Quantile(math.nan), "level must be a finite number"),
        (lambda: Quantile(0.5, density=0.5), "below 1; got 0.5"),
        (lambda: Quantile(0.5, density=math.inf), "density must be a finite number"),
        (lambda: Expectile(True), "level must be a finite number; got True"),
        (lambda: Expectile("0.5"), "got '0.5'"),  # type: ignore[arg-type]
        (lambda: Moment(0), "k must be a whole number, 1 or more"),
        (lambda: Moment(2.0), "k must be a whole number"),  # type: ignore[arg-type]
        (lambda: Moment(True), "k must be a whole number"),
        (lambda: Moment(400, high=10.0), "rescale the labels"),
        (lambda: Moment(400, high=0.001), "rescale the labels"),
        (lambda: Mean(low=1.0), "low < high"),
        (lambda: Mean(low=-1e308, high=1e308), "finite width"),
        (lambda: Mean(high=math.inf), "high must be a finite number"),
        (lambda: Mean(low=None), "low must be a finite number"),  # type: ignore[arg-type]
    ],
)
def test_arguments_that_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()


@pytest.mark.parametrize("property", [Mean(), Moment(2), Quantile(0.5), Expectile(0.2), Property(huber)], ids=repr)
def test_labels_outside_the_range_are_named(property: Elicitable) -> None:
    assert property.invalid_labels(np.array([0.0, 0.5, 1.0])) is None
    assert property.invalid_labels(np.array([])) is None
    assert property.invalid_labels(np.array([0.2, 0.1, 0.3, 1.7, 9.0])) == "label 1.7 at position 3 is outside [0, 1]"
    assert property.invalid_labels(np.array([0.2, math.nan, 1.7])) == "label nan at position 1 is not a number"
    assert property.invalid_labels(np.array([0.2, -math.inf])) == "label -inf at position 1 is outside [0, 1]"
    assert property.invalid_labels(np.array([2.0])) == "label 2 is outside [0, 1]"
    assert property.invalid_labels(np.array(["a"])) == "the labels are not all numbers"
    assert Mean(low=-2.5, high=1000.0).invalid_labels(1000.0000001) == "label 1000.0000001 is outside [-2.5, 1000]"
    assert Probability().invalid_labels(np.array([0.0, 1.5])) == "label 1.5 at position 1 is outside [0, 1]"
    assert Probability().invalid_labels(1.0) is None


@pytest.mark.parametrize("property", [Mean(), Moment(2), Quantile(0.5), Expectile(0.2), Probability(), Property(huber)])
@pytest.mark.parametrize("sample", [[], [[0.0, 1.0]], 1.0, [0.0, 3.0], [math.nan]])
def test_samples_without_a_value(property: Elicitable, sample: Any) -> None:
    with pytest.raises(InvalidInput, match="the value of a property needs"):
        property.value(np.array(sample))

"""Probabilities of classes, the confidence in the likeliest, and sets of classes."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import swapcal as sc
from effort import some
from swapcal.classes import Classes, ClassesForecast, PredictionSet, _spread, projected, shared_out
from swapcal.learners import GradientDescent
from swapcal.potentials import Quadratic


def stream(n: int = 4000, seed: int = 0) -> tuple[Any, Any, Any, Any]:
    """Three classes, an overconfident model, and a group in which it mixes two of them up."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(n), rng.random(n) < 0.4]).astype(float)
    scores = rng.normal(size=(n, 3))
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    truth = np.where(X[:, 1:] == 1, p[:, [1, 0, 2]], p)
    y = (rng.random(n)[:, None] > truth.cumsum(axis=1)).sum(axis=1)
    sharp = p**2 / (p**2).sum(axis=1, keepdims=True)
    return X, y, sharp, truth


@settings(max_examples=some(100), deadline=None)
@given(st.lists(st.floats(-2, 2), min_size=2, max_size=8))
def test_the_projection_is_the_nearest_probability_vector(raw: list[float]) -> None:
    p = projected(raw)
    assert p.sum() == pytest.approx(1.0)
    assert p.min() >= 0.0
    distance = np.linalg.norm(p - raw)
    for corner in np.eye(len(raw)):
        assert np.linalg.norm(p - corner) <= np.linalg.norm(np.array(raw) - corner) + 1e-9
        assert distance <= np.linalg.norm(0.9 * p + 0.1 * corner - raw) + 1e-9
    assert projected(p) == pytest.approx(p)


@settings(max_examples=some(100), deadline=None)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=8))
def test_what_is_shared_out_adds_up_and_makes_nothing_impossible(raw: list[float]) -> None:
    p, given = shared_out(raw), np.array(raw)
    assert p.sum() == pytest.approx(1.0)
    assert p.min() >= 0.0
    if sum(raw) > 1e-9:
        assert (p[given > 1e-12] > 0).sum() >= (given > 1e-12).sum() - (given == 1.0).any() * len(raw)
    if abs(1.0 - sum(raw)) / len(raw) <= 0.5 * min(raw):
        assert p == pytest.approx(projected(raw))


def test_a_rare_class_keeps_its_probability_and_is_never_called_impossible() -> None:
    """Equal shares of what is missing would lift it to many times its rate, and cut it to 0 where it comes up."""
    rng = np.random.default_rng(0)
    n = 4000
    scores = rng.normal(size=(n, 4)) + np.array([0.5, 0.3, 0.0, -5.0])
    truth, said = (np.exp(c * scores) / np.exp(c * scores).sum(axis=1, keepdims=True) for c in (1.0, 1.5))
    y = np.minimum((truth.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1), 3)
    classes, raw, moved, even = (Classes(4, sc.Finite(1), horizon=n, seed=1), *(np.empty((n, 4)) for _ in range(3)))
    for t in range(n):
        forecast = classes.predict([1.0], said[t])
        raw[t] = [float(part) for part in forecast.parts]
        moved[t], even[t] = forecast.probabilities, projected(raw[t])
        classes.update(forecast, int(y[t]))
    rate = raw[:, 3].mean()
    assert abs(moved[:, 3].mean() - rate) < 0.3 * rate
    assert even[:, 3].mean() > 3.0 * rate
    came = np.arange(n), y
    assert np.mean(-np.log(np.maximum(moved[came], 1e-12))) < np.mean(-np.log(np.maximum(even[came], 1e-12)))
    assert ((moved - np.eye(4)[y]) ** 2).sum() < ((even - np.eye(4)[y]) ** 2).sum() * 1.002


def test_classes_are_right_in_every_group_and_the_score_improves() -> None:
    X, y, sharp, _ = stream()
    classes = Classes(3, sc.Finite(2), horizon=4000, seed=1)
    p = classes.run(X, y, sharp)
    outcome = np.eye(3)[y]
    for j in range(2):
        inside = X[:, j] == 1
        assert np.abs((p - outcome)[inside].mean(axis=0)).max() < 0.03
    assert np.mean(((p - outcome) ** 2).sum(axis=1)) < 0.95 * np.mean(((sharp - outcome) ** 2).sum(axis=1))
    assert len(classes.guarantee(0.05)) == 4
    for forecaster, bound in zip((*classes.forecasters, classes.sure), classes.guarantee(0.05), strict=True):
        assert forecaster.error() <= bound


def test_the_bound_on_the_moved_probabilities() -> None:
    """While nothing is cut at 0: bias of class k in a group <= e_k + mean of all e_j; docs of `Classes`, 2."""
    X, y, _, _ = stream(1500)
    classes, raw, moved = Classes(3, sc.Finite(2), seed=1), [], []
    for x, label in zip(X, y.tolist(), strict=True):
        forecast = classes.predict(x, [0.4, 0.3, 0.3])
        raw.append([float(part) for part in forecast.parts])
        moved.append(forecast.probabilities)
        classes.update(forecast, label)
    assert np.min(moved) > 0.0
    outcome = np.eye(3)[y]
    for j in range(2):
        inside = X[:, j] == 1
        errors = np.abs((np.array(raw) - outcome)[inside].sum(axis=0))
        assert (np.abs((np.array(moved) - outcome)[inside].sum(axis=0)) <= errors + errors.mean() + 1e-9).all()


def test_confidence_in_the_top_class_is_calibrated() -> None:
    X, y, sharp, _ = stream(6000)
    classes, rows = Classes(3, sc.Finite(2), horizon=6000, seed=1), []
    for t, (x, label, hints) in enumerate(zip(X, y.tolist(), sharp, strict=True)):
        forecast = classes.predict(x, hints)
        if t % 20 == 0:
            forecast = ClassesForecast.from_json(forecast.to_json())
        rows.append((forecast.confidence, float(label == forecast.top), *x, *np.eye(3)[forecast.top], max(hints)))
        classes.update(forecast, label)
    p, hit, *members, model = np.array(rows).T
    values = np.array(classes.sure.values)
    nearest = values[np.abs(p[:, None] - values).argmin(axis=1)]  # where numbers that were shown count
    ours = sc.swap_multicalibration_error(hit, nearest, np.column_stack(members))
    n = len(values)  # as many values for the model
    rounded = (np.floor(np.minimum(model, 1.0 - 1e-9) * n) + 0.5) / n
    before = sc.swap_multicalibration_error((sharp.argmax(axis=1) == y).astype(float), rounded, X)
    assert ours < classes.guarantee(0.05)[-1]
    assert ours < before / 5


@pytest.mark.parametrize("delay", [1, 500])
def test_a_right_model_keeps_its_probabilities_and_a_wrong_one_is_corrected(delay: int) -> None:
    rng = np.random.default_rng(0)
    n = 10_000
    right, inside = rng.dirichlet([1.0, 1.0, 1.0], n), rng.random(n) < 0.3
    y = (right.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    wrong = right * np.where(inside[:, None], [2.5, 1.0, 1.0], 1.0)
    wrong /= wrong.sum(axis=1, keepdims=True)
    X = np.column_stack([np.ones(n), inside]).astype(float)

    def ratios(hints: Any) -> list[float]:
        classes = Classes(3, sc.Finite(2), seed=1, hint=sc.OnlineRegression())
        shown = classes.run(X, y, hints, known=np.arange(n) + delay)
        scores = [
            (-np.log(p[np.arange(n), y]).mean(), np.square(p - np.eye(3)[y]).sum(axis=1).mean()) for p in (shown, hints)
        ]
        return [after / before for after, before in zip(*scores, strict=True)]

    assert max(ratios(right)) < 1.0005
    assert max(ratios(wrong)) < 0.985


@pytest.mark.parametrize("functions", [sc.Linear(2), sc.Oracle(GradientDescent(2))], ids=["linear", "learner"])
def test_classes_over_linear_functions_and_over_those_of_a_learner(functions: Any) -> None:
    X, y, sharp, _ = stream(800)
    classes = Classes(3, functions, seed=1)
    p = classes.run(X, y, sharp)
    for forecaster, bound in zip((*classes.forecasters, classes.sure), classes.guarantee(0.05), strict=True):
        assert forecaster.error() <= bound
    outcome = np.eye(3)[y]
    assert np.abs((p - outcome)[400:].mean(axis=0)).max() < 0.05
    again = Classes.from_bytes(classes.to_bytes())
    assert np.array_equal(again.run(X[:50], y[:50], sharp[:50]), classes.run(X[:50], y[:50], sharp[:50]))


def test_sets_cover_every_group() -> None:
    X, y, sharp, _ = stream(5000)
    sets = PredictionSet(0.9, 3, sc.Finite(2), horizon=5000, seed=1)
    inside = sets.run(X, y, sharp)
    covered = inside[np.arange(5000), y]
    for j in range(2):
        assert abs(covered[X[:, j] == 1].mean() - 0.9) < 0.02
    assert inside.sum(axis=1).min() >= 1
    assert inside.sum(axis=1).mean() < 2.7


def test_the_share_of_a_threshold_is_an_option_and_late_outcomes_are_learned() -> None:
    """The own threshold of a right model stays; that of a wrong one is corrected."""
    X, y, p, right = stream(3000)
    own = float(_spread(0.9))
    for model, kept in ((right, True), (p, False)):
        sets = PredictionSet(0.9, 3, sc.Finite(2), seed=1, protect="loss", budget=0.002)
        inside = sets.run(X, y, model, known=np.arange(3000) + 100.0)
        again = PredictionSet.from_bytes(sets.to_bytes())
        thresholds = [each.predict(X[k], model[k]).threshold.value for each in (sets, again) for k in range(20)]
        assert thresholds[:20] == thresholds[20:]
        assert np.abs(np.array(thresholds) - own).max() < 0.001 if kept else min(thresholds) > own + 0.1
        assert sets.lateness().sentences[0].startswith("The model's own" if kept else "Corrections are shown since")
        assert inside[np.arange(3000), y][500:].mean() == pytest.approx(0.9, abs=0.03)


def test_errors_name_the_fault() -> None:
    X, _, sharp, _ = stream(400)
    classes = Classes(3, sc.Finite(2), seed=1)
    sets = PredictionSet(0.8, 3, sc.Finite(2), seed=1)
    forecast = classes.predict(X[0], sharp[0])
    for label in (3, -1, "a", True):
        with pytest.raises(sc.InvalidInput):
            classes.update(forecast, label)  # type: ignore[arg-type]
    classes.update(forecast, 1)
    with pytest.raises(sc.AlreadyUpdated):
        classes.update(forecast, 1)
    with pytest.raises(sc.InvalidInput, match="top class can join"):
        Classes(3, sc.Linear(2, potential=Quadratic()))
    with pytest.raises(sc.InvalidInput, match="none below 0"):
        sets.predict(X[0], [1.0, -0.5, 0.5])

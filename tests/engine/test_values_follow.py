"""The grid follows the forecasts: labels at the ends, first hints, rare events, quiet streams, few values."""

import numpy as np
import pytest

import swapcal as sc
from swapcal.engine.values import FIRST, FLOOR
from swapcal.protocols import Elicitable


def most_values(n_rounds: int) -> int:
    """The most values that so many rounds can make (docs/guarantees.md, values that appear).

    Gaps of a width between 2^-d and 2^(1-d) are disjoint, so there are at most 2^d of them; each is cut after 4^-d n >=
    FLOOR x (1 - x) rounds, a round counts in one gap, and the sum over d of the smaller of both numbers is at most 4.7
    (2 T / FLOOR)^(1/3), with logarithms near the ends. Hints add order T^(1/3) more by themselves.
    """
    cuts_made = 4.7 * (2.0 * n_rounds / FLOOR) ** (1.0 / 3.0) + 2.0 * np.log2(1.0 + n_rounds)
    return int(min(n_rounds, np.ceil(cuts_made + n_rounds ** (1.0 / 3.0)))) + 2 * FIRST


@pytest.mark.filterwarnings("ignore::swapcal.errors.AtomsWarning")
@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("end", ["low", "high"])
def test_labels_that_all_lie_at_an_end(level: float, end: str) -> None:
    """V(low, low) > 0 for a quantile: no forecast is right, the error is linear, and the guarantee says so."""
    target = sc.Quantile(level, low=-1.0, high=2.0)
    forecaster = sc.Forecaster(target, sc.Finite(2), seed=1)
    n_rounds = 20_000
    y = np.full(n_rounds, getattr(target, end))
    for part in np.array_split(np.arange(n_rounds), 4):
        forecaster.run(np.ones((len(part), 2)), y[part])
        assert forecaster.error() <= forecaster.guarantee(0.05) * (1.0 + 1e-12)
    if (level, end) == (0.5, "low"):
        assert forecaster.error() == pytest.approx(0.25 * n_rounds, rel=0.01)


@pytest.mark.parametrize("target", [sc.Mean(), sc.Quantile(0.9), sc.Expectile(0.3), sc.Probability()], ids=repr)
def test_first_forecasts_are_those_of_the_hint(target: Elicitable) -> None:
    """Within 1 % of the hint, or of its distance to the nearer end, while nothing speaks against it."""
    rng = np.random.default_rng(1)
    forecaster = sc.Forecaster(target, sc.Finite(1), seed=1)
    for hint in rng.random(6):
        forecast = forecaster.predict([1.0], float(hint))
        assert abs(float(forecast) - hint) <= 0.01 * min(hint, 1.0 - hint)
        below = rng.random() < (0.9 if isinstance(target, sc.Quantile) else 0.5)
        y = hint * rng.random() if below else hint + (1.0 - hint) * rng.random()
        forecaster.update(forecast, float(rng.random() < hint) if isinstance(target, sc.Probability) else float(y))


def rare(n_rounds: int, share: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Groups, events and their true probabilities, which vary by a factor of ten."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(n_rounds), rng.integers(0, 2, (n_rounds, 4))]).astype(float)
    odds = np.exp(0.6 * (x[:, 1:].sum(axis=1) - 2.0) + 0.3 * rng.standard_normal(n_rounds))
    truth = share * odds / odds.mean()
    return x, (rng.random(n_rounds) < truth).astype(float), truth


def log_loss(p: np.ndarray, y: np.ndarray) -> float:
    return float(-np.mean(np.where(y == 1.0, np.log(p), np.log1p(-p))))


@pytest.mark.parametrize("n_rounds", [20_000, pytest.param(200_000, marks=pytest.mark.slow)])
def test_rare_events(n_rounds: int) -> None:
    """One in 400, with the truth as the hint: the mean forecast is within 5 % of it, the log loss within 0.5 %."""
    x, y, truth = rare(n_rounds, 0.0025, 1)
    p = sc.Forecaster(sc.Probability(), sc.Finite(5), seed=1).run(x, y, truth)
    assert p.mean() == pytest.approx(truth.mean(), rel=0.05)
    assert log_loss(p, y) <= 1.005 * log_loss(truth, y)


def test_rare_events_without_a_hint_are_neither_missed_nor_feared() -> None:
    """Before the first events a ladder towards 0 is climbed at a fifth of an outcome in so many rounds."""
    ratios = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        y = (rng.random(20_000) < 0.001).astype(float)
        forecaster = sc.Forecaster(sc.Probability(), sc.Finite(1), seed=seed)
        ratios.append(float(np.mean(forecaster.run(np.ones((20_000, 1)), y))) / 0.001)
    assert 0.9 <= np.mean(ratios) <= 1.3


def test_evidence_is_weighed_in_units_of_v() -> None:
    """A thousandth of the gains in a thousandth of the size: the same weights, and the same level, to the last bit."""
    both = [sc.Finite(2).start(4) for _ in range(2)]
    row = sc.Finite(2).row([1.0, 0.5])
    for evidence, size in zip(both, (1.0, 2.0**-10), strict=True):
        for v in (0.5, -0.25, 0.75, 0.125):
            evidence.record(1, row, v * size)
        evidence.measure(size)
    assert both[0].phi(1, row) == both[1].phi(1, row) != 0.0
    assert both[0].level(1, row) == both[1].level(1, row) > 0.0


def test_a_right_hint_of_little_noise_makes_few_values() -> None:
    """Where rounding costs next to nothing of the hint's loss, a gap is left as it is; where it is dear, it is cut."""
    numbers = []
    for noise in (0.3, 0.003):
        rng = np.random.default_rng(5)
        truth = 0.2 + 0.6 * rng.random(30_000)
        y = np.clip(truth + noise * rng.uniform(-0.5, 0.5, 30_000), 0.0, 1.0)
        forecaster = sc.Forecaster(sc.Mean(), sc.Finite(1), seed=1)
        forecaster.run(np.ones((30_000, 1)), y, truth)
        numbers.append(len(forecaster.values))
    # As many as 67 and 389 without regard to what rounding costs.
    assert numbers[0] <= 58
    assert numbers[1] >= 385


@pytest.mark.parametrize("n_rounds", [20_000, pytest.param(200_000, marks=pytest.mark.slow)])
def test_quiet_labels(n_rounds: int) -> None:
    """Noise of 0.5 % of the range around a good hint: values come as near as the noise is small."""
    rng = np.random.default_rng(2)
    x = np.column_stack([np.ones(n_rounds), rng.integers(0, 2, n_rounds)]).astype(float)
    truth = 0.5 + 0.2 * np.sin(np.arange(n_rounds) / 500.0) + 0.1 * x[:, 1]
    y = np.clip(truth + 0.005 * rng.standard_normal(n_rounds), 0.0, 1.0)
    forecaster = sc.Forecaster(sc.Mean(), sc.Finite(2), seed=1)
    p = forecaster.run(x, y, truth)
    assert np.mean((p - y) ** 2) <= 1.1 * np.mean((truth - y) ** 2)
    assert 11 < len(forecaster.values) <= most_values(n_rounds)


@pytest.mark.parametrize("n_rounds", [100, 3000, 30_000])
@pytest.mark.parametrize("lure", ["sweep", "uniform", "near an end", "no hint"])
def test_no_lure_makes_more_values_than_promised(lure: str, n_rounds: int) -> None:
    """Hints that are right and labels without noise: nothing wants more values."""
    rng = np.random.default_rng(3)
    hints = {
        "sweep": np.linspace(0.001, 0.999, n_rounds),
        "uniform": rng.random(n_rounds),
        "near an end": rng.random(n_rounds) ** 8,
        "no hint": rng.random(n_rounds),
    }[lure]
    forecaster = sc.Forecaster(sc.Mean(), sc.Finite(1), seed=1)
    forecaster.run(np.ones((n_rounds, 1)), hints, None if lure == "no hint" else hints)
    assert 11 <= len(forecaster.values) <= most_values(n_rounds)
    assert np.unique(forecaster.values).tolist() == forecaster.values.tolist()

"""The adversaries keep to the rules of the game, and do harm."""

import numpy as np
import pytest

from games import CLASSES, SOUGHT, STRATEGIES, Watched, game
from swapcal.audits import swap_multicalibration_error
from swapcal.errors import InvalidInput
from swapcal.forecast import Forecast
from swapcal.forecaster import Forecaster
from swapcal.hypotheses import Finite
from swapcal.properties import Mean, Quantile
from swapcal.simulate.adversaries import AntiHint, Arena, Books, Far, Greedy, Sweep, groups, play, rounds


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_was_played_replays_as_a_recorded_stream(strategy: str) -> None:
    forecaster, adversary = game("mean", "signed", strategy, 200, seed=5)
    played = play(forecaster, adversary, 200)
    fresh, _ = game("mean", "signed", strategy, 200, seed=5)
    np.testing.assert_array_equal(fresh.run(played.x, played.y, played.hints), played.p)
    assert fresh.error() == forecaster.error()
    assert (played.hints is not None) == (strategy == "anti-hint")
    again = play(*game("mean", "signed", strategy, 200, seed=5), 200)
    np.testing.assert_array_equal(again.y, played.y)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("sought", SOUGHT)
def test_labels_are_legal(strategy: str, sought: str) -> None:
    """Binary, or inside a window: no value repeats, and none leaves the range."""
    target, width = SOUGHT[sought]
    played = play(*game(sought, "groups", strategy, 300, seed=1), 300)
    assert target.invalid_labels(played.y) is None
    if width is None:
        assert set(played.y) <= {target.low, target.high}
    else:
        assert len(np.unique(played.y)) == 300


def test_the_odds_are_told_without_the_draw() -> None:
    """Whichever of two values is drawn, the adversary hears the same."""
    told = []

    class Listening(Greedy):
        __slots__ = ()

        def location(self, t, books, x, hint, odds):  # type: ignore[no-untyped-def]
            told.append(odds)
            return Greedy.location(self, t, books, x, hint, odds)

    forecaster = Forecaster(Mean(), Finite(4), horizon=400, seed=1)
    drawn = [each.forecast for each in rounds(forecaster, Listening(Arena(groups(4, seed=0))), 400)]
    uppers = 0
    for odds, forecast in zip(told, drawn, strict=True):
        assert (odds.lower, odds.upper) == (min(forecast.value, forecast.other), max(forecast.value, forecast.other))
        share = odds.p_lower if forecast.value == odds.lower else 1.0 - odds.p_lower
        assert share == pytest.approx(forecast.probability, abs=1e-15)
        uppers += forecast.value > forecast.other
    assert uppers > 10


@pytest.mark.usefixtures("little_room")
@pytest.mark.parametrize("hypotheses", ["groups", "signed", "linear"])
def test_the_books_are_the_swap_error(hypotheses: str) -> None:
    members, contexts = CLASSES[hypotheses]
    forecaster = Forecaster(Quantile(0.7), members, horizon=None, seed=2)
    books = Books(forecaster.property, members, contexts.shape[1])
    played = []
    for each in rounds(forecaster, Far(Arena(contexts, width=0.3)), 1500):
        books.record(each.forecast.value, each.x, each.y)
        played.append((each.y, each.forecast.value, each.x))
    assert len(forecaster.values) >= 11
    y, p, x = (np.array(column) for column in zip(*played, strict=True))
    direct = swap_multicalibration_error(y, p, x, property=forecaster.property, hypotheses=members)
    assert books.error() == pytest.approx(direct, rel=1e-10) == pytest.approx(forecaster.error(), rel=1e-10)
    assert books.errors[books.worst()] == books.errors.max() > 0.0


def test_greedy_does_more_harm_than_chance() -> None:
    """Against a forecaster that always says 1/2, greed makes the error linear; a coin makes it logarithmic."""

    class Stubborn(Watched):
        def predict(self, x: object, hint: float | None = None) -> Forecast:
            return Forecast(0.5, 0, "nobody", 0.5, 1.0, 0.5, b"")

        def update(self, forecast: Forecast, y: float) -> None:
            pass

    forecaster = Forecaster(Mean(), Finite(3), horizon=1000)
    arena = Arena(groups(3, seed=0))
    played = play(Stubborn(forecaster, lambda *_: None), Greedy(arena), 1000)
    assert swap_multicalibration_error(played.y, played.p, played.x) == pytest.approx(250.0)


def test_windows_have_the_density_they_promise() -> None:
    arena = Arena(groups(2, seed=0), width=0.25)
    for location in (-4.0, 0.1, 2.0, 6.0):
        labels = np.array([arena.label(location, u, -4.0, 6.0) for u in np.linspace(0.0, 1.0, 1001)[:-1]])
        np.testing.assert_allclose(np.diff(labels), 0.25 * 10.0 / 1000, rtol=1e-6)
        assert labels.min() >= -4.0
        assert labels.max() <= 6.0


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Arena(np.zeros((0, 3))), "at least one"),
        (lambda: Arena(np.zeros(3)), "shape"),
        (lambda: Arena(np.array([["a"]])), "numbers"),
        (lambda: Arena(np.array([[np.nan]])), "finite"),
        (lambda: Arena(groups(2, 0), width=0.0), "width"),
        (lambda: Arena(groups(2, 0), width=float("nan")), "width"),
        (lambda: Arena(groups(2, 0), hints="both"), "alternating"),
        (lambda: Arena(groups(2, 0), seed=-1), "seed"),
        (lambda: AntiHint(Arena(groups(2, 0))), "hints"),
        (lambda: Sweep(Arena(groups(2, 0)), period=0.0), "period"),
        (lambda: play(Forecaster(Mean(), Finite(2), horizon=5), Far(Arena(groups(2, 0))), 0), "n_rounds"),
        (lambda: play(Forecaster(Mean(), Finite(2), horizon=5), Far(Arena(groups(3, 0))), 5), "vector of 2 numbers"),
    ],
)
def test_bad_input_gets_a_named_error(make: object, says: str) -> None:
    assert callable(make)
    with pytest.raises(InvalidInput, match=says):
        make()

"""The parts of the arena: scores that can be computed by hand, streams that know the truth, sizes of states."""

from typing import Any

import numpy as np
import pytest

from swapcal.errors import InvalidInput
from swapcal.hypotheses import Finite, Linear
from swapcal.properties import Expectile, Mean, Probability, Quantile
from swapcal.rivals import all_rivals
from swapcal.rivals.card import Card
from swapcal.simulate.adversaries import play
from swapcal_benchmarks.rivals.board_streams import BINARY, REAL, record
from swapcal_benchmarks.rivals.boards import BOARDS
from swapcal_benchmarks.rivals.contestants import all_contestants
from swapcal_benchmarks.rivals.duels import ADVERSARIES, adversary
from swapcal_benchmarks.rivals.noise import heavy, triangular, unit
from swapcal_benchmarks.rivals.probe import probe
from swapcal_benchmarks.rivals.rounding import Rounded
from swapcal_benchmarks.rivals.scores import on_grid, score
from swapcal_benchmarks.rivals.state_size import state_bytes


def test_scores_by_hand() -> None:
    x = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    y, p = np.array([1.0, 0.0, 1.0, 1.0]), np.array([0.5, 0.5, 0.75, 0.75])
    made = score(Mean(), Finite(2), x, y, p, truth=np.full(4, 0.75), microseconds=2.0, memory=3)
    # V = -.5, .5, -.25, -.25. At 0.5: sums 0 and .5; at 0.75: sums -.5 and -.25.
    assert made.smcal == pytest.approx(0.5**2 / 2 + 0.5**2 / 2)
    assert made.mcal == pytest.approx(max(0.0 + 0.125, 0.125 + 0.25**2 / 2))
    assert made.cal == pytest.approx(0.125)
    assert made.mcal_1 == pytest.approx(max(0.5, 0.75))
    assert made.largest == pytest.approx(0.5)
    # Groups with fewer than 50 cases do not count, unless all are such.
    assert made.worst == pytest.approx(0.5 / 4)
    assert made.loss == pytest.approx((0.25 + 0.25 + 0.0625 + 0.0625) / 4)
    assert made.excess == pytest.approx(made.loss - (3 * 0.0625 + 0.5625) / 4)
    assert (made.n_values, made.rounded, made.microseconds, made.state_bytes) == (2, False, 2.0, 3)
    linear = score(Mean(), Linear(2), x / 2, y, p, truth=None, microseconds=None, memory=0)
    assert linear.smcal == pytest.approx(0.25**2 / 2 + (0.25**2 + 0.125**2) / 2)
    assert (linear.mcal_1, linear.excess) == (None, None)


def test_coverage_gap_of_the_worst_group() -> None:
    x = np.ones((200, 2))
    x[100:, 1] = 0.0
    y = np.linspace(0.0, 1.0, 200)
    made = score(Quantile(0.5), Finite(2), x, y, np.full(200, 1.0), truth=None, microseconds=None, memory=0)
    assert made.worst == pytest.approx(0.5)
    half = score(Quantile(0.5), Finite(2), x, y, np.full(200, y[99]), truth=None, microseconds=None, memory=0)
    assert half.worst == pytest.approx(0.5)
    assert half.cal == pytest.approx(0.0)


def test_only_forecasts_without_a_grid_are_rounded() -> None:
    p = np.random.default_rng(0).random(1000)
    rounded, changed = on_grid(p, (0.0, 1.0))
    assert changed
    assert len(np.unique(rounded)) == 10
    assert np.abs(rounded - p).max() <= 0.05
    kept, changed = on_grid(np.round(p, 2), (0.0, 1.0))
    assert not changed
    assert np.array_equal(kept, np.round(p, 2))


def test_a_rounded_method_learns_from_its_own_forecasts() -> None:
    board, make = BOARDS["probability"], all_contestants()["logistic recalibration"].make
    spoken = Rounded(make(board.property, Finite(4), 200, 0), 200)
    played = play(spoken, adversary("far", board.property, Finite(4), 200, 0), 200)
    assert len(np.unique(played.p)) <= 6
    own = make(board.property, Finite(4), 200, 0).run(played.x, played.y, played.hints)
    assert np.array_equal(spoken.grid.round(own), played.p)
    assert not spoken.waiting


def test_what_the_probe_sees() -> None:
    people = all_contestants()
    assert {kind.card.name for kind in all_rivals().values()} < set(people)  # type: ignore[attr-defined]
    assert all(isinstance(each.card, Card) and each.card.name == name for name, each in people.items())
    assert not probe(people["raw model"], BOARDS["quantile"], 1000).on_grid
    assert probe(people["raw model"], BOARDS["quantile"], 1000).uses_hint
    assert probe(people["swapcal"], BOARDS["quantile"], 1000).on_grid
    assert not probe(people["swapcal"], BOARDS["quantile"], 1000).uses_hint
    assert probe(people["swapcal + model"], BOARDS["quantile"], 1000).uses_hint
    assert probe(people["Algorithm 1"], BOARDS["linear"], 1000).refused is not None


def test_state_bytes_counts_arrays_once() -> None:
    class Inner:
        __slots__ = ("table",)

        def __init__(self) -> None:
            self.table = np.zeros((3, 2))

    class Outer:
        def __init__(self) -> None:
            self.inner, self.rate, self.name = Inner(), 0.5, "name"
            self.view = self.inner.table[0]
            self.past = {1: [0.5, 0.25]}

    assert state_bytes(Outer()) in (48 + 24, 16 + 24)
    small, large = (all_contestants()["swapcal"].make(Mean(), Finite(n), 100, 0) for n in (2, 200))
    assert state_bytes(large) > 10 * state_bytes(small)


@pytest.mark.parametrize("property", [Probability(), Quantile(0.9), Expectile(0.8)])
def test_streams_know_the_truth(property: Any) -> None:
    for name in BINARY if isinstance(property, Probability) else REAL:
        stream = record(name, property, 20_000, 5, 12)
        assert stream.hint is not None
        assert stream.truth is not None
        v = np.asarray(property.identification(stream.truth, stream.y))
        groups = stream.x.T @ v / np.sqrt(stream.x.sum(axis=0))
        # Means of centered noise: standard deviations of at most 0.5 each, and 12 or 40 groups.
        assert np.abs(groups).max() < 0.5 * 4.5
        assert np.mean(property.loss(stream.truth, stream.y)) < np.mean(property.loss(stream.hint, stream.y))
        assert stream.x[:, 0].all()


def test_noise_laws_and_unknown_names() -> None:
    with pytest.raises(InvalidInput, match="no stream 'heavy-tailed'"):
        record("heavy-tailed", Probability(), 100, 0, 12)
    with pytest.raises(InvalidInput, match="no adversary 'nobody'"):
        adversary("nobody", Mean(), Finite(2), 100, 0)
    assert len({type(adversary(name, Mean(), Finite(2), 100, 0)) for name in ADVERSARIES}) == len(ADVERSARIES)
    u = (np.arange(100_000) + 0.5) / 100_000
    for law in (triangular, heavy):
        e = law(u)
        assert np.all(np.diff(e) >= 0.0)
        assert abs(e.mean()) < 1e-9
        assert np.abs(e).max() <= 1.0
    assert unit(Quantile(0.9), triangular) == pytest.approx(1.0 - np.sqrt(0.2), abs=1e-3)
    # Heavy: most of it is near zero, and yet it reaches the ends.
    assert np.median(np.abs(heavy(u))) < 0.05 < 0.9 < heavy(u)[-1]

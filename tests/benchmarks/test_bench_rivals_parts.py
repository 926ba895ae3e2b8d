"""The parts of the arena: scores that can be computed by hand, streams that know the truth, sizes of states."""

from typing import Any

import numpy as np
import pytest

from swapcal.hypotheses import Finite, Linear
from swapcal.properties import Expectile, Mean, Probability, Quantile
from swapcal.simulate.adversaries import play
from swapcal_benchmarks.rivals.board_streams import BINARY, REAL, record
from swapcal_benchmarks.rivals.boards import BOARDS
from swapcal_benchmarks.rivals.contestants import all_contestants
from swapcal_benchmarks.rivals.duels import adversary
from swapcal_benchmarks.rivals.rounding import Rounded
from swapcal_benchmarks.rivals.scores import score


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


def test_a_rounded_method_learns_from_its_own_forecasts() -> None:
    board, make = BOARDS["probability"], all_contestants()["logistic recalibration"].make
    spoken = Rounded(make(board.property, Finite(4), 200, 0), 200)
    played = play(spoken, adversary("far", board.property, Finite(4), 200, 0), 200)
    assert len(np.unique(played.p)) <= 6
    own = make(board.property, Finite(4), 200, 0).run(played.x, played.y, played.hints)
    assert np.array_equal(spoken.grid.round(own), played.p)
    assert not spoken.waiting


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

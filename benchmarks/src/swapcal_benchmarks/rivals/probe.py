"""A short look at a method before the contest: does it cover the board, does it use hints, how slow is it."""

import time
from dataclasses import dataclass

import numpy as np

from swapcal.errors import InvalidInput
from swapcal.rivals.card import kind_of
from swapcal_benchmarks.rivals.boards import Board
from swapcal_benchmarks.rivals.contestants import Contestant

__all__ = ["Probe", "probe"]

_N_ROUNDS = 60
_N_FUNCTIONS = 6
_MANY = 40


@dataclass(frozen=True, slots=True)
class Probe:
    """What was seen.

    Parameters
    ----------
    refused : str, optional
        Why the method does not cover the board; None if it does.
    uses_hint : bool
        Whether other hints gave other forecasts.
    microseconds : float
        Processor time a round.
    on_grid : bool
        Whether forecasts come again: at most 40 different ones among the 60.
    """

    refused: str | None
    uses_hint: bool = False
    microseconds: float = 0.0
    on_grid: bool = True


def probe(contestant: Contestant, board: Board, horizon: int) -> Probe:
    """Set the method up for `horizon` rounds and play 60 of them twice, with different hints.

    A method that fails here is left to fail in the contest, where that is reported.
    """
    rng = np.random.default_rng(0)
    low, high = board.property.domain
    x = (rng.random((_N_ROUNDS, _N_FUNCTIONS)) < 0.5) / (_N_FUNCTIONS**0.5 if board.linear else 1.0)
    y = rng.random(_N_ROUNDS)
    # Away from the ends, where forecasts that are cut to the range would look like a grid.
    y = low + (high - low) * (np.round(y) if kind_of(board.property) == "mean" else 0.4 + 0.2 * y)
    hints = low + (high - low) * (0.3 + 0.4 * rng.random((2, _N_ROUNDS)))
    forecasts, spent = [], []
    try:
        for row in hints:
            entry = contestant.make(board.property, board.hypotheses(_N_FUNCTIONS), max(horizon, _N_ROUNDS), 0)
            start = time.process_time()
            forecasts.append(entry.run(x, y, row))
            spent.append((time.process_time() - start) / _N_ROUNDS * 1e6)
    except InvalidInput as error:
        return Probe(str(error))
    except Exception:
        return Probe(None)
    on_grid = max(len(np.unique(p)) for p in forecasts) <= _MANY
    return Probe(None, not np.array_equal(forecasts[0], forecasts[1]), min(spent), on_grid)

"""How many bins a run of T rounds gets, and when a run without a horizon refines its grid."""

import math

__all__ = ["REFINEMENT", "bins_for", "first_bins", "next_refinement", "stages"]

REFINEMENT = 3
"""Every refinement cuts a bin into three: the middle one forecasts the same value, so that nothing is forgotten."""

# N bins cost about N and rounding costs T / 4 N^2 or less: with mid-points the best N is below T^(1/3). A learning
# hint is sharp, and a coarser grid would cost it loss.
_SHARE, _SHARE_LEARNING = 0.75, 1.1
_FIRST = 4


def _share(learning: bool) -> float:
    return _SHARE_LEARNING if learning else _SHARE


def bins_for(n_rounds: float, r: float, *, learning: bool = False) -> int:
    """N = ceil(0.75 T^(1/(r+1))), 1.1 with a learning hint, and at least 2.

    For r < 2 the exponent is that of r = 2, as in the paper.
    """
    return max(2, math.ceil(_share(learning) * math.pow(n_rounds, 1.0 / (max(r, 2.0) + 1.0))))


def first_bins(horizon: int | None, r: float, *, learning: bool) -> int:
    """Bins with which a run starts: those for its horizon, or few where there is none."""
    return _FIRST if horizon is None else bins_for(horizon, r, learning=learning)


def next_refinement(n_bins: int, r: float, *, learning: bool = False) -> int:
    """After how many rounds a grid of `n_bins` is refined: when the N for that many rounds is sqrt(3) times as large.

    So N stays within a factor sqrt(3) of `bins_for` at all times (but for the first rounds).
    """
    return math.ceil(math.pow(n_bins * math.sqrt(REFINEMENT) / _share(learning), max(r, 2.0) + 1.0))


def stages(n_rounds: int, r: float, *, learning: bool = False) -> list[tuple[int, int]]:
    """The grids of an anytime run: pairs of bins and rounds spent on them."""
    result, n_bins, done = [], _FIRST, 0
    while True:
        end = min(next_refinement(n_bins, r, learning=learning), n_rounds)
        result.append((n_bins, end - done))
        if end == n_rounds:
            return result
        done, n_bins = end, n_bins * REFINEMENT

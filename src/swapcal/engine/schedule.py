"""How many bins a run of T rounds gets, and when a run without a horizon refines its grid."""

import math

__all__ = ["REFINEMENT", "bins_for", "first_bins", "next_refinement", "share_for", "stages"]

REFINEMENT = 3
"""Every refinement cuts a bin into three: the middle one forecasts the same value, so that nothing is forgotten."""

# N bins cost about N and rounding costs rho^2 T / 4 N^2 or less: with mid-points the best N is below (rho^2 T)^(1/3).
# Where no bound rho on the density of labels is known, 1.54 makes the factor 1.
_SHARE, _UNKNOWN, _LARGEST = 0.75, 1.54, 4.0
# A learning hint is sharp, and a coarser grid would cost it loss.
_SHARE_LEARNING = 1.1
# Few rounds do not make a coarse grid worth its loss: rounding to 5 values costs a good hint 2 % of a Brier score.
_FIRST = 11


def share_for(lipschitz: float | None, r: float, *, learning: bool = False) -> float:
    """The factor of T^(1/(r+1)) in the number of bins: 0.75 rho^(r/(r+1)), and at least 1.1 with a learning hint.

    Examples
    --------
    >>> share_for(1.0, 2.0), round(share_for(None, 2.0), 2), round(share_for(8.0, 2.0), 2)
    (0.75, 1.0, 3.0)
    """
    rho = _UNKNOWN if lipschitz is None else max(lipschitz, 1.0)
    share = min(_SHARE * math.pow(rho, max(r, 2.0) / (max(r, 2.0) + 1.0)), _LARGEST)
    return max(share, _SHARE_LEARNING) if learning else share


def bins_for(n_rounds: float, r: float, share: float = _SHARE) -> int:
    """N = share T^(1/(r+1)), rounded up to an odd number, and at least 11; for r < 2 the exponent is that of r = 2.

    Odd, so that the middle of the domain, the forecast of a model that knows nothing, is one of the values.
    """
    return max(_FIRST, math.ceil(share * math.pow(n_rounds, 1.0 / (max(r, 2.0) + 1.0))) | 1)


def first_bins(horizon: int | None, r: float, share: float = _SHARE) -> int:
    """Bins with which a run starts: those for its horizon, or 11 where there is none."""
    return _FIRST if horizon is None else bins_for(horizon, r, share)


def next_refinement(n_bins: int, r: float, share: float = _SHARE) -> int:
    """After how many rounds a grid of `n_bins` is refined: when the N for that many rounds is sqrt(3) times as large.

    So N stays within a factor sqrt(3) of share T^(1/(r+1)), but for the first rounds, for which 11 bins are more.
    """
    return math.ceil(math.pow(n_bins * math.sqrt(REFINEMENT) / share, max(r, 2.0) + 1.0))


def stages(n_rounds: int, r: float, share: float = _SHARE) -> list[tuple[int, int]]:
    """The grids of an anytime run: pairs of bins and rounds spent on them."""
    result, n_bins, done = [], _FIRST, 0
    while True:
        end = min(next_refinement(n_bins, r, share), n_rounds)
        result.append((n_bins, end - done))
        if end == n_rounds:
            return result
        done, n_bins = end, n_bins * REFINEMENT

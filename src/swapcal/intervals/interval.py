"""Intervals from two quantiles that cannot cross."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from swapcal import inputs
from swapcal.errors import InvalidInput
from swapcal.intervals.forecasts import IntervalForecast
from swapcal.intervals.quantiles import Quantiles
from swapcal.protocols import Hypotheses
from swapcal.typing import Float64Array


class Interval(Quantiles):
    r"""Intervals that cover a given share of outcomes, for every group, whatever the stream does.

    The lower end is a forecast of the quantile at (1 - c)/2. The upper end is forecast inside the half-line above it,
    as the quantile of the outcomes that lie there, at c/(c + (1 - c)/2): the ends cannot cross, and no width is zero.

    Guarantee: with E_1, E_2 the sums over a group's rounds of 1{y <= lower} - (1 - c)/2, and, over those with an
    outcome above the lower end, of 1{y <= upper} - s, s = c/(c + (1 - c)/2), the covered rounds of the group are
    :math:`c\,n_g + E_2 - s E_1`: add 1{lower < y <= upper} = 1{y > lower} (1{y <= upper} - s) + s 1{y > lower} up. Each
    E is a sum over the forecaster's values, so it is at most the root of its rounds times its `guarantee`;
    `miscoverage(delta)` adds the two. What is calibrated given itself is the lower end, and the upper end given its
    place above the lower, both in units of the scale that was in force.

    Parameters
    ----------
    coverage : float
        The share c of outcomes to cover.
    hypotheses : Hypotheses
        For whom: `Groups([...])`, `Finite(n)`, ...
    spread, low, high, horizon, seed, learn, max_pending, protect, budget
        As for `Quantiles`.

    Examples
    --------
    >>> import numpy as np, swapcal as sc
    >>> from swapcal.intervals import Interval
    >>> rng = np.random.default_rng(0)
    >>> noisy = np.arange(4000) % 2
    >>> y = rng.normal(10.0, 1.0 + 4.0 * noisy)
    >>> interval = Interval(0.9, sc.Finite(2), horizon=4000, seed=1)
    >>> ends = interval.run(np.column_stack([np.ones(4000), noisy]), y, np.full(4000, 10.0))
    >>> covered = (ends[:, 0] <= y) & (y <= ends[:, 1])
    >>> [round(float(covered[noisy == k].mean()), 1) for k in (0, 1)]
    [0.9, 0.9]
    >>> forecast = interval.predict([1, 1], hint=12.0)
    >>> forecast.lower < 12.0 < forecast.upper
    True
    """

    kind = "interval"
    forecast_type: ClassVar[type[IntervalForecast]] = IntervalForecast
    asked = "coverage"

    def __init__(
        self,
        coverage: float,
        hypotheses: Hypotheses | str | Sequence[Any],
        *,
        spread: float | None = None,
        low: float | None = None,
        high: float | None = None,
        horizon: int | None = None,
        seed: int | None = None,
        learn: bool = True,
        max_pending: int = 65_536,
        protect: str = "calibration",
        budget: float | None = None,
    ) -> None:
        self.coverage = inputs.level(coverage)
        tail = 0.5 * (1.0 - self.coverage)
        super().__init__(
            (tail, 1.0 - tail),
            hypotheses,
            spread=spread,
            low=low,
            high=high,
            horizon=horizon,
            seed=seed,
            learn=learn,
            max_pending=max_pending,
            protect=protect,
            budget=budget,
        )

    def predict(self, x: Any, hint: Any = None, *, unit: float | None = None) -> IntervalForecast:
        """The interval for context `x`, around `hint`; opens a round, learns nothing about outcomes.

        Parameters
        ----------
        x : array, sequence, mapping or record
            The context, as the class of functions takes it.
        hint : float or two floats, optional
            Your own model's forecast, in the outcomes' unit, or the ends of its own interval.
        unit : float, optional
            How far your own model expects this outcome from a single hint, as for `Quantiles.predict`.

        Returns
        -------
        IntervalForecast
            `lower` and `upper`, and all that the update will need.
        """
        forecast = super().predict(x, hint, unit=unit)
        assert isinstance(forecast, IntervalForecast)
        return forecast

    def miscoverage(self, delta: float = 0.05) -> float:  # type: ignore[override]
        """What the number of covered rounds differs at most from coverage times rounds, in every group at once.

        Parameters
        ----------
        delta : float
            Probability with which it may fail.

        Returns
        -------
        float
            A total, of order T^(2/3); divide it by a group's rounds for the error of its coverage.
        """
        lower, upper = self._alone(delta)
        return upper + (1.0 if self.own else self.coverage / (0.5 + 0.5 * self.coverage)) * lower


# --------
# How good intervals are: coverage for every group, width, and the proper score of the two together.


def interval_score(y: Any, lower: Any, upper: Any, coverage: float = 0.9) -> Float64Array:
    r"""Width, and :math:`2 / (1 - c)` times the distance to outcomes outside: proper for the central interval.

    Examples
    --------
    >>> interval_score([0.5, 3.0], [0.0, 0.0], [1.0, 1.0], 0.9)
    array([ 1., 41.])

    References
    ----------
    Gneiting and Raftery (2007), Strictly proper scoring rules, prediction, and estimation, JASA 102, section 6.2.
    """
    y, lower, upper = (np.asarray(a, dtype=np.float64) for a in (y, lower, upper))
    outside = np.maximum(lower - y, 0.0) + np.maximum(y - upper, 0.0)
    return np.asarray((upper - lower) + 2.0 / (1.0 - coverage) * outside, dtype=np.float64)


def group_coverage(covered: Any, groups: Any, at_least: int = 1) -> dict[int, float]:
    """The share of covered outcomes in every group that has at least so many rounds.

    Parameters
    ----------
    covered : array of bool
        Whether each outcome was covered.
    groups : array, rounds by groups
        Who is in which group: entries that are not zero.
    at_least : int
        Smaller groups are left out.

    Returns
    -------
    dict
        From the position of a group to its coverage.

    Examples
    --------
    >>> group_coverage([True, False, True], [[1, 0], [1, 1], [1, 1]])
    {0: 0.6666666666666666, 1: 0.5}
    """
    hits, members = np.asarray(covered, dtype=np.float64), np.asarray(groups) != 0
    if members.ndim != 2 or members.shape[0] != len(hits):
        raise InvalidInput(
            f"groups must be a table with one row for each of {len(hits)} rounds; got shape {members.shape}"
        )
    counts = members.sum(axis=0)
    bins = np.flatnonzero(counts >= max(at_least, 1))
    return {int(j): float(hits[members[:, j]].mean()) for j in bins}

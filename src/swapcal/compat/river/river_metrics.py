"""Metrics of forecasts and intervals, as river has them."""

from typing import Any

from river import base, metrics

from swapcal.audit import Audit
from swapcal.errors import InvalidInput
from swapcal.hypotheses import Groups
from swapcal.properties import Expectile, Probability, Quantile
from swapcal.roles import Elicitable

__all__ = ["ExpectileLoss", "GroupCoverage", "PinballLoss", "SwapError"]


class PinballLoss(metrics.base.MeanMetric, metrics.base.RegressionMetric):
    """Mean pinball loss of forecasts of a quantile.

    Parameters
    ----------
    level
        Of the quantile.

    Examples
    --------
    >>> metric = PinballLoss(0.9)
    >>> for y, p in [(1.0, 2.0), (4.0, 2.0)]:
    ...     metric.update(y, p)
    >>> metric
    PinballLoss: 0.95
    """

    def __init__(self, level: float = 0.5) -> None:
        super().__init__()
        self.level = level

    @property
    def bigger_is_better(self) -> bool:
        """False: it is a loss."""
        return False

    def _eval(self, y_true: Any, y_pred: Any) -> float:
        return float(Quantile(self.level).loss(float(y_pred), float(y_true)))


class ExpectileLoss(metrics.base.MeanMetric, metrics.base.RegressionMetric):
    """Mean asymmetric squared loss of forecasts of an expectile.

    Parameters
    ----------
    level
        Of the expectile.

    Examples
    --------
    >>> metric = ExpectileLoss(0.8)
    >>> for y, p in [(1.0, 2.0), (4.0, 2.0)]:
    ...     metric.update(y, p)
    >>> metric
    ExpectileLoss: 1.7
    """

    def __init__(self, level: float = 0.5) -> None:
        super().__init__()
        self.level = level

    @property
    def bigger_is_better(self) -> bool:
        """False: it is a loss."""
        return False

    def _eval(self, y_true: Any, y_pred: Any) -> float:
        return float(Expectile(self.level).loss(float(y_pred), float(y_true)))


class SwapError(metrics.base.Metric):
    """The swap multicalibration error of forecasts so far, a total over the rounds.

    Groups are functions of the features, which river's `evaluate` does not pass on: there they are everybody. In a loop
    of your own give them, `metric.update(y, p, x=x)`.

    Parameters
    ----------
    property
        What was forecast, with its range; default the probability.
    groups
        For whom, as for `MulticalibratedClassifier`.
    bins
        Forecasts are rounded to the mid-points of so many bins.

    Examples
    --------
    >>> metric = SwapError(groups=["old"], bins=10)
    >>> for old, y in [(True, 1), (True, 1), (False, 0), (False, 1)]:
    ...     metric.update(y, 0.45, x={"old": old})
    >>> metric
    SwapError: 0.36
    """

    _fmt = ",.6f"

    def __init__(self, property: Elicitable | None = None, groups: Any = None, bins: int = 20) -> None:
        self.property = property
        self.groups = groups
        self.bins = bins
        functions = None if groups is None else Groups(groups)
        self._audit = Audit(Probability() if property is None else property, functions, bins=bins)

    @property
    def bigger_is_better(self) -> bool:
        """False: it is an error."""
        return False

    @property
    def works_with_weights(self) -> bool:
        """False."""
        return False

    def works_with(self, model: Any) -> bool:
        """For every model that forecasts numbers or probabilities of truth values."""
        return isinstance(model, (base.Regressor, base.Classifier))

    @property
    def requires_labels(self) -> bool:
        """False: it is given probabilities."""
        return False

    def update(self, y_true: Any, y_pred: Any, w: float = 1.0, x: Any = None) -> None:
        """Add a round; probabilities may be those of `predict_proba_one`."""
        if isinstance(y_pred, dict):
            y_pred = y_pred.get(True, 0.0)
        if self.groups is None:
            self._audit.update(float(y_true), float(y_pred))
        else:
            self._audit.update(float(y_true), float(y_pred), {} if x is None else x)

    def revert(self, y_true: Any, y_pred: Any, w: float = 1.0) -> None:
        """Not possible: an error over cells cannot forget."""
        raise NotImplementedError("a swap error cannot take a round back; start a new metric")

    def get(self) -> float:
        """The error so far."""
        return self._audit.swap_multicalibration()


class GroupCoverage(metrics.base.Metric):
    """How far the worst group's coverage is from what was asked for.

    Parameters
    ----------
    coverage
        The share of outcomes that intervals are to cover.
    groups
        For whom, as for `MulticalibratedClassifier`; features are given as `metric.update(y, interval, x=x)`.
    at_least
        Groups with fewer rounds are left out.

    Examples
    --------
    >>> from river import conf
    >>> metric = GroupCoverage(0.9, groups=["old"])
    >>> for old, y in [(True, 1.0), (True, 3.0), (False, 1.5), (False, 1.7)]:
    ...     metric.update(y, conf.Interval(0.0, 2.0), x={"old": old})
    >>> metric, metric.groups_covered()
    (GroupCoverage: 0.4, {'all': 0.75, 'old=True': 0.5, 'old=False': 1.0})
    """

    _fmt = ",.6f"

    def __init__(self, coverage: float = 0.9, groups: Any = None, at_least: int = 1) -> None:
        self.coverage = coverage
        self.groups = groups
        self.at_least = at_least
        self._functions = Groups([] if groups is None else groups)
        self._counts: dict[int, list[float]] = {}

    @property
    def bigger_is_better(self) -> bool:
        """False: it is a gap."""
        return False

    @property
    def works_with_weights(self) -> bool:
        """False."""
        return False

    def works_with(self, model: Any) -> bool:
        """For models that give intervals."""
        return isinstance(model, base.Regressor)

    def update(self, y_true: float, y_pred: Any, w: float = 1.0, x: Any = None) -> None:
        """Add a round: an outcome and a `river.conf.Interval`, or anything with `lower` and `upper`."""
        if not hasattr(y_pred, "lower"):
            raise InvalidInput("GroupCoverage takes intervals: predict_one(x, with_interval=True)")
        covered = float(y_pred.lower <= y_true <= y_pred.upper)
        for j in self._functions.row({} if x is None else x).indices.tolist():
            tally = self._counts.setdefault(j, [0.0, 0.0])
            tally[0], tally[1] = tally[0] + covered, tally[1] + 1.0

    def revert(self, y_true: Any, y_pred: Any, w: float = 1.0) -> None:
        """Not possible."""
        raise NotImplementedError("a coverage over groups cannot take a round back; start a new metric")

    def groups_covered(self) -> dict[str, float]:
        """The coverage of every group that is large enough."""
        names, found = self._functions.names, sorted(self._counts.items())
        return {names[j]: hits / n for j, (hits, n) in found if n >= self.at_least}

    def get(self) -> float:
        """The largest distance from the coverage asked for."""
        return max((abs(share - self.coverage) for share in self.groups_covered().values()), default=0.0)

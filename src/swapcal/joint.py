"""Properties that a loss elicits only given another: the mean beyond a quantile, the variance around a mean."""

import secrets
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from swapcal import hypotheses, inputs, sparse
from swapcal.engine.composite import Composite, CompositeForecast
from swapcal.engine.kernels import seed_for
from swapcal.engine.pending import Asked
from swapcal.engine.theorems import Guarantee
from swapcal.errors import InvalidInput
from swapcal.forecast import Forecast
from swapcal.forecaster import Forecaster
from swapcal.hints import OnlineRegression
from swapcal.hypotheses.finite import Finite
from swapcal.hypotheses.groups import for_whom
from swapcal.properties import Mean, Quantile
from swapcal.protocols import Elicitable, Hypotheses, Row
from swapcal.state import Packed, Saved
from swapcal.typing import Float64Array

# --------
# One forecast, and a second one whose label depends on the first.


@dataclass(frozen=True, slots=True)
class JointForecast(CompositeForecast):
    """What two forecasters played in one round.

    Attributes
    ----------
    first, second : Forecast
        The second is one of a label that is made from the outcome and the first.
    round : int
        Its number among all that were forecast, from 0.
    """

    stored: ClassVar = {"first": Forecast.from_dict, "second": Forecast.from_dict, "round": int}

    first: Forecast
    second: Forecast
    round: int = -1


@dataclass(frozen=True, slots=True)
class TailMeanForecast(JointForecast):
    """A quantile, and the mean of the outcomes beyond it."""

    @property
    def quantile(self) -> float:
        """The quantile."""
        return self.first.value

    @property
    def tail_mean(self) -> float:
        """The expected shortfall: the quantile and what outcomes exceed it by, over 1 - level; never below it."""
        return self.first.value + self.second.value


@dataclass(frozen=True, slots=True)
class MeanVarianceForecast(JointForecast):
    """A mean, and the variance around it."""

    @property
    def mean(self) -> float:
        """The mean."""
        return self.first.value

    @property
    def variance(self) -> float:
        """The variance, 0 or more."""
        return self.second.value


J = TypeVar("J", TailMeanForecast, MeanVarianceForecast)

# Values of the first forecast that the second is calibrated given; runs of 12,000 rows had 9 to 35 of them.
_BANDS = 64


class Joint(Composite[J]):
    """Two forecasters: the second is over the class and over the class within each value of the first.

    Parameters
    ----------
    first, second : Elicitable
        What they forecast, with their ranges.
    hypotheses : Hypotheses
        For whom: groups, trees, another finite class, or a linear one.
    horizon, max_pending
        As for `Forecaster`.
    bins : int, optional
        Values of the first forecast and of the second, as for `Forecaster`.
    seed : int, optional
        Of the draws; None draws one from the system.
    learn : bool
        Whether an `OnlineRegression` guides both.
    bands : int
        How many values of the first forecast the second is calibrated given. Later ones have no functions of their own.
    """

    forecast_type: ClassVar[Any]

    def __init__(
        self, first: Elicitable, second: Elicitable, hypotheses: Hypotheses, seed: int | None, settings: dict[str, Any]
    ) -> None:
        super().__init__(settings["max_pending"])
        hypotheses = for_whom(hypotheses)
        if not hasattr(hypotheses, "extended") or hypotheses.dual not in ("max", "euclidean"):
            raise InvalidInput(f"{type(self).__name__} needs a finite or a linear class; got {hypotheses!r}")
        self.hypotheses, self.settings = hypotheses, settings
        self.seed = secrets.randbits(63) if seed is None else inputs.integer(seed, "seed", 0)
        self.n_bands = inputs.integer(settings["bands"], "bands", 1)
        # The values of the first forecast so far, and which of the functions behind the class are theirs.
        self.bands: dict[float, int] = {}
        rules = {name: settings[name] for name in ("horizon", "bins", "max_pending")}

        def forecaster(target: Elicitable, functions: Any, name: str) -> Forecaster:
            guide = OnlineRegression() if settings["learn"] else None
            seed = seed_for(self.seed, name)
            # What is shown is what was drawn: cells are values, and the identities below are about cells.
            return Forecaster(target, functions, hint=guide, seed=seed, protect="nothing", **rules)

        alone: Any = hypotheses.extended(0)
        if hypotheses.dual == "max":
            within = alone.extended(self.n_bands * hypotheses.n)
        else:
            within = alone | Finite(self.n_bands) * hypotheses
        self.first, self.second = forecaster(first, alone, "first"), forecaster(second, within, "second")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.hypotheses!r}): {self.n_rounds} rounds"

    @abstractmethod
    def second_label(self, first: float, y: float) -> float:
        """The label of the second forecast."""

    @abstractmethod
    def second_hint(self, first: float, hint: float) -> float:
        """A model's own second number, as a hint of the second forecaster."""

    @property
    def n_rounds(self) -> int:
        """Rounds that have had their outcome."""
        return self.second.n_rounds

    @property
    def n_outputs(self) -> int:
        """Both numbers."""
        return 2

    def predict(self, x: Any, hints: Sequence[float | None] | None = None) -> J:
        """Forecast both numbers for context `x`; opens a round, learns nothing.

        Parameters
        ----------
        x : array, sequence, mapping or record
            The context.
        hints : two floats, optional
            Your own model's numbers; None or NaN for one that it has not.
        """
        guide, other = (None, None) if hints is None else map(_number, hints)
        row = self.hypotheses.row(x)
        first = self.first.predict(row, hint=guide)
        hint = None if other is None else min(max(self.second_hint(first.value, other), 0.0), self._most)
        second = self.second.predict(self._within(row, first.value), hint=hint)
        forecast: J = self.forecast_type(first, second, self._open())
        return forecast

    def _within(self, row: Row, value: float) -> Row:
        """The context with the functions of this value of the first forecast behind it."""
        band = self.bands.get(value)
        if band is None:
            if len(self.bands) == self.n_bands:
                return row
            band = self.bands[value] = len(self.bands)
        behind = (1 + band) * self.hypotheses.n + row.indices
        return Row(np.concatenate([row.indices, behind]), np.concatenate([row.values, row.values]))

    @property
    def _most(self) -> float:
        """The end of the second range."""
        return self.second.rules.property.high

    def label(self, y: Any) -> float:
        """An outcome in the range."""
        return self.first.rules.label(y)

    def forecasters_by_name(self) -> dict[str, Forecaster]:
        """Of both numbers."""
        return {"first": self.first, "second": self.second}

    def _learn(self, forecast: J, y: float) -> None:
        self.first.update(forecast.first, y)
        self.second.update(forecast.second, min(self.second_label(forecast.first.value, y), self._most))

    def _forget(self, forecast: J) -> None:
        self.first.forget(forecast.first)
        self.second.forget(forecast.second)

    def run(self, X: Any, y: Any, hints: Any = None, **late: Any) -> Float64Array:
        """Forecast and update a whole recorded stream; one row of two numbers for each round.

        Parameters
        ----------
        X : array, sparse rows, frame or list of records
            One context for each round.
        y : array
            Outcomes; where one is NaN the round is forecast and not learned from.
        hints : array, rounds by two, optional
            Your own model's numbers; NaN for none.
        **late
            `weights`, `known`, `times`, `order`, `settle` and `waits`, as for `Forecaster.run`.

        Returns
        -------
        array, rounds by two
            Both numbers.
        """
        return self._run(X, y, hints, **late)

    def _given(self, n: int, hints: Any, features: Any) -> tuple[Any, Any]:
        if hints is None:
            return None, None
        return inputs.table(hints, "hints", n, 2, "two numbers for each round"), None

    def _case(self, asked: Asked, t: int) -> J:
        return self.predict(sparse.row(asked.rows, t), None if asked.hints is None else asked.hints[t].tolist())

    def error(self) -> tuple[float, float]:
        """The swap multicalibration errors of both forecasters."""
        return self.first.error(), self.second.error()

    def guarantee(self, delta: float = 0.05) -> tuple[Guarantee, Guarantee]:
        """Bounds on both errors, together with probability 1 - delta.

        The second holds against whoever sees the first draw before choosing the outcome; the first then does not.
        """
        return self.first.guarantee(0.5 * delta), self.second.guarantee(0.5 * delta)

    def to_state(self) -> Saved:
        """What it is made of: the forecasters are parts."""
        plain = {"hypotheses": dict(self.hypotheses.spec()), "seed": self.seed, "settings": self.settings}
        plain |= {"asked": self._asked(), "bands": list(self.bands), "rounds": self.rounds_plain()}
        return Saved(plain, {}, {"first": self.first.to_bytes(), "second": self.second.to_bytes()})

    @abstractmethod
    def _asked(self) -> dict[str, float]:
        """Its own arguments."""

    @classmethod
    def from_state(cls, packed: Packed, *_: Any) -> Self:
        """Make it again; see `from_bytes`."""
        plain = packed.plain
        own: Any = {**plain["asked"], **plain["settings"], "seed": plain["seed"]}
        joint = cls(hypotheses=hypotheses.from_spec(plain["hypotheses"]), **own)
        joint.bands = {float(value): k for k, value in enumerate(plain["bands"])}
        joint.first, joint.second = (Forecaster.from_bytes(packed.parts[name]) for name in ("first", "second"))
        joint.restore_rounds(plain["rounds"], joint.settings["max_pending"])
        return joint


def _number(hint: float | None) -> float | None:
    return None if hint is None or hint != hint else float(hint)


# --------
# A quantile and the mean beyond it.


class TailMean(Joint[TailMeanForecast]):
    r"""A quantile and the mean of the outcomes beyond it, also called expected shortfall or CVaR.

    The second forecaster is of the excess :math:`(y - z)_+ / (1 - a)` over the quantile z that was drawn, at level a;
    the tail mean is z and that, so never below z.

    Guarantee: for every value e of the excess, every function f of the class, and every value z, the sum of
    f (e - excess) is small, by the theorem of `Forecaster` for the second (`guarantee`). In any set of rounds with one
    quantile z and one tail mean s, with ES the expected shortfall of their outcomes and pin the pinball loss,

    .. math:: s - ES = mean(s - z - excess) + (mean\ pin(z) - \min pin) / (1 - a).

    The last term lies between 0 and :math:`|share(y \le z) - a|\, |z - q| / (1 - a)` with q their quantile: it is of
    second order in the quantile's error. The quantile is not calibrated given the tail mean.

    Parameters
    ----------
    level : float
        a, strictly between 0 and 1.
    hypotheses : Hypotheses
        For whom: groups, trees, another finite class, or a linear one.
    low, high : float
        Range of the outcomes.
    horizon, bins, seed, max_pending
        As for `Forecaster`.
    learn : bool
        Whether an `OnlineRegression` guides both forecasters.
    bands : int
        How many values of the quantile the tail mean is calibrated given.

    Examples
    --------
    >>> import numpy as np, swapcal as sc
    >>> tail = sc.TailMean(0.9, sc.Finite(1), seed=2)
    >>> y = np.random.default_rng(0).random(4000)
    >>> tail.run(np.ones((4000, 1)), y)[2000:].mean(axis=0).round(2)
    array([0.9 , 0.95])

    References
    ----------
    Fissler and Ziegel (2016), Higher order elicitability and Osband's principle, Annals of Statistics 44. Rockafellar
    and Uryasev (2000), Optimization of conditional value-at-risk, Journal of Risk 2.
    """

    kind = "tail-mean"
    forecast_type = TailMeanForecast

    def __init__(
        self,
        level: float,
        hypotheses: Hypotheses,
        *,
        low: float = 0.0,
        high: float = 1.0,
        horizon: int | None = None,
        bins: int | None = None,
        seed: int | None = None,
        learn: bool = False,
        bands: int = _BANDS,
        max_pending: int = 65_536,
    ) -> None:
        quantile = Quantile(level, low=low, high=high)
        self.level, self.low, self.high = quantile.level, quantile.low, quantile.high
        excess = Mean(high=(self.high - self.low) / (1.0 - self.level))
        settings = {"horizon": horizon, "bins": bins, "learn": learn, "bands": bands, "max_pending": max_pending}
        super().__init__(quantile, excess, hypotheses, seed, settings)

    def second_label(self, first: float, y: float) -> float:
        """What the outcome exceeds the quantile by, over 1 - level."""
        return max(y - first, 0.0) / (1.0 - self.level)

    def second_hint(self, first: float, hint: float) -> float:
        """What the model's tail mean exceeds the quantile by."""
        return hint - first

    def outputs(self, forecast: TailMeanForecast) -> Sequence[float]:
        """The quantile and the tail mean."""
        return forecast.quantile, forecast.tail_mean

    def _asked(self) -> dict[str, float]:
        return {"level": self.level, "low": self.low, "high": self.high}


# --------
# A mean and the variance around it.


class MeanVariance(Joint[MeanVarianceForecast]):
    r"""A mean, and the variance of the outcomes around it, which is never below 0.

    The second forecaster is of the label :math:`(y - m)^2`, with m the mean that was drawn.

    Guarantee: for every value s of the variance, every function f of the class, and every value m, the sum of
    f (s - (y - m)^2) is small, by the theorem of `Forecaster` for the second (`guarantee`). In any set of rounds with
    one mean m and one variance s, with Var the variance of their outcomes,

    .. math:: s - Var = mean(s - (y - m)^2) + (m - mean\ y)^2,

    so what the mean's error adds is its square. The mean is not calibrated given the variance.

    Parameters
    ----------
    hypotheses : Hypotheses
        For whom: groups, trees, another finite class, or a linear one.
    low, high, horizon, bins, seed, learn, bands, max_pending
        As for `TailMean`.

    Examples
    --------
    >>> import numpy as np, swapcal as sc
    >>> both = sc.MeanVariance(sc.Finite(1), seed=1)
    >>> y = np.random.default_rng(0).random(4000)
    >>> both.run(np.ones((4000, 1)), y)[2000:].mean(axis=0).round(2)
    array([0.5 , 0.08])
    """

    kind = "mean-variance"
    forecast_type = MeanVarianceForecast

    def __init__(
        self,
        hypotheses: Hypotheses,
        *,
        low: float = 0.0,
        high: float = 1.0,
        horizon: int | None = None,
        bins: int | None = None,
        seed: int | None = None,
        learn: bool = False,
        bands: int = _BANDS,
        max_pending: int = 65_536,
    ) -> None:
        mean = Mean(low=low, high=high)
        self.low, self.high = mean.low, mean.high
        settings = {"horizon": horizon, "bins": bins, "learn": learn, "bands": bands, "max_pending": max_pending}
        super().__init__(mean, Mean(high=(self.high - self.low) ** 2), hypotheses, seed, settings)

    def second_label(self, first: float, y: float) -> float:
        """The squared distance of the outcome from the mean."""
        return (y - first) * (y - first)

    def second_hint(self, first: float, hint: float) -> float:
        """The model's variance."""
        return hint

    def outputs(self, forecast: MeanVarianceForecast) -> Sequence[float]:
        """The mean and the variance."""
        return forecast.mean, forecast.variance

    def _asked(self) -> dict[str, float]:
        return {"low": self.low, "high": self.high}

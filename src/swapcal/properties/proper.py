"""Proper losses for the probability of a binary label."""

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from swapcal import checked
from swapcal.errors import InvalidInput
from swapcal.properties import arguments
from swapcal.typing import FloatLike, Spec

__all__ = ["Log", "ProperLoss", "Spherical", "Squared", "Tsallis"]


@runtime_checkable
class ProperLoss(Protocol):
    """A loss for forecasts p in [0, 1] of a label y in {0, 1} that the true probability minimizes on average."""

    def loss(self, p: FloatLike, y: FloatLike) -> FloatLike:
        """The loss of forecast `p` when the label is `y`."""

    def weight(self, p: FloatLike) -> FloatLike:
        """The h(p) >= 0 in the derivative h(p) (p - y) of the loss: minus the second derivative of its entropy."""

    def spec(self) -> Spec:
        """Plain data from which the object can be rebuilt."""


@dataclass(frozen=True, slots=True, repr=False)
class Squared:
    """The squared or Brier loss (p - y)^2, with h(p) = 2.

    Examples
    --------
    >>> Squared().loss(0.75, 1.0), Squared().weight(0.75)
    (0.0625, 2.0)
    """

    def __repr__(self) -> str:
        return arguments.call(self)

    def loss(self, p: FloatLike, y: FloatLike) -> FloatLike:
        """(p - y)^2."""
        return (p - y) * (p - y)

    def weight(self, p: FloatLike) -> FloatLike:
        """2, for each forecast."""
        return 0.0 * p + 2.0

    def spec(self) -> Spec:
        """Plain data for `from_spec`."""
        return arguments.data(self)


@dataclass(frozen=True, slots=True, repr=False)
class Log:
    """The log loss, minus the logarithm of the probability given to what happened, with h(p) = 1 / (p (1 - p)).

    A certain forecast that is wrong costs infinity; h is infinite at both ends.

    Examples
    --------
    >>> Log().loss(1.0, 1.0), Log().loss(0.0, 1.0), Log().weight(0.5)
    (0.0, inf, 4.0)
    """

    def __repr__(self) -> str:
        return arguments.call(self)

    def loss(self, p: FloatLike, y: FloatLike) -> FloatLike:
        """-log(p) for y = 1, -log(1 - p) for y = 0."""
        # Exactly one of the two terms is zero, so this is p or 1 - p, and no zero meets an infinite logarithm.
        given = y * p + (1.0 - y) * (1.0 - p)
        if isinstance(given, np.ndarray):
            with np.errstate(divide="ignore"):
                return 0.0 - np.log(given)
        return 0.0 - math.log(given) if given > 0.0 else math.inf

    def weight(self, p: FloatLike) -> FloatLike:
        """1 / (p (1 - p))."""
        variance = p * (1.0 - p)
        if isinstance(variance, np.ndarray):
            with np.errstate(divide="ignore"):
                return 1.0 / variance
        return 1.0 / variance if variance > 0.0 else math.inf

    def spec(self) -> Spec:
        """Plain data for `from_spec`."""
        return arguments.data(self)


@dataclass(frozen=True, slots=True, repr=False)
class Spherical:
    """The spherical loss: minus the probability of what happened over r(p) = sqrt(p^2 + (1 - p)^2); h(p) = 1 / r(p)^3.

    Examples
    --------
    >>> Spherical().loss(1.0, 1.0), Spherical().weight(1.0)
    (-1.0, 1.0)
    """

    def __repr__(self) -> str:
        return arguments.call(self)

    def loss(self, p: FloatLike, y: FloatLike) -> FloatLike:
        """-(p y + (1 - p) (1 - y)) / r(p)."""
        return -(p * y + (1.0 - p) * (1.0 - y)) * (p * p + (1.0 - p) * (1.0 - p)) ** -0.5

    def weight(self, p: FloatLike) -> FloatLike:
        """1 / r(p)^3, between 1 at the ends and 2 sqrt(2) at one half."""
        result: FloatLike = (p * p + (1.0 - p) * (1.0 - p)) ** -1.5
        return result

    def spec(self) -> Spec:
        """Plain data for `from_spec`."""
        return arguments.data(self)


@dataclass(frozen=True, slots=True, repr=False)
class Tsallis:
    """The loss of Tsallis's entropy, (a - 1) p^a - a p^(a - 1) y, with h(p) = a (a - 1) p^(a - 2).

    At a = 2 it is the squared loss less y^2. Above 2 the weight vanishes at p = 0, below 2 it is infinite there.

    Parameters
    ----------
    alpha
        The order a, above 1.

    Examples
    --------
    >>> Tsallis(2.0).loss(0.5, 1.0), Tsallis(3.0).weight(0.0), Tsallis(1.5).weight(0.0)
    (-0.75, 0.0, inf)
    """

    alpha: float

    def __post_init__(self) -> None:
        alpha = checked.plain_number(self.alpha, "alpha")
        if not alpha > 1.0:
            raise InvalidInput(f"the loss of Tsallis's entropy needs alpha above 1; got {alpha!r} (use Log() for 1)")
        object.__setattr__(self, "alpha", alpha)

    def __repr__(self) -> str:
        return arguments.call(self)

    def loss(self, p: FloatLike, y: FloatLike) -> FloatLike:
        """(alpha - 1) p^alpha - alpha p^(alpha - 1) y."""
        # One power, of a positive order: p = 0 is safe.
        result: FloatLike = p ** (self.alpha - 1.0) * ((self.alpha - 1.0) * p - self.alpha * y)
        return result

    def weight(self, p: FloatLike) -> FloatLike:
        """Alpha (alpha - 1) p^(alpha - 2)."""
        if not isinstance(p, np.ndarray) and p == 0.0 and self.alpha < 2.0:
            return math.inf
        with np.errstate(divide="ignore"):
            result: FloatLike = self.alpha * (self.alpha - 1.0) * p ** (self.alpha - 2.0)
        return result

    def spec(self) -> Spec:
        """Plain data for `from_spec`."""
        return arguments.data(self)

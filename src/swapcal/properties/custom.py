"""A user's own property."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from swapcal import checked
from swapcal.errors import InvalidInput
from swapcal.properties import labels
from swapcal.properties.calculus import integral, root, slope
from swapcal.properties.examination import examine, probes, require_agreement, require_finite
from swapcal.properties.vectorized import Vectorized
from swapcal.typing import Float64Array, FloatLike, Spec

__all__ = ["Property"]


class Property:
    """A property given by its identification function V(p, y), or by a loss of which V is the derivative in p.

    The guarantee is that of the theorems if V has mean zero exactly at the property's value; what can be checked of
    that is checked when the object is made, on a grid of 101 forecasts and 101 labels.

    Parameters
    ----------
    identification
        V(p, y): on average negative for forecasts that are too low, positive for those too high. It and the functions
        below may take numbers only, or arrays too.
    loss
        A loss that the property minimizes on average. Alone, it gives V by the central difference over 2^-17 widths of
        the domain (one-sided at its ends), accurate to about 1e-10 for smooth losses. With V, it is used for reports.
    name
        What to call the property; by default the name of the first function given.
    low, high
        The label range.
    domain
        The interval of the property's values; by default the label range.
    lipschitz
        Lipschitz constant of the V you give, or of its mean under every distribution that labels may have, where p is
        measured in widths of the domain. Bounds that need it are not available without.
    monotone
        Whether V never decreases in p. Measured on the grid if not given.
    value
        The property of a sample. By default the root of the mean identification, by bisection.

    Attributes
    ----------
    scale
        What V was divided by to bring it into [-1, 1]: its largest size on the grid, or 1 if that is smaller.

    continuous
        Whether V has no jump in p, as far as the grid shows; a slope above 1000 / (width of the domain) counts as one.

    Raises
    ------
    InvalidInput
        If V is not finite or zero everywhere, if it has the wrong sign at an end of the domain, if it is not monotone
        as promised, or if the slope of the loss has another sign than V. The message shows where. The signs are
        examined for labels strictly inside the range: a step such as a quantile's is on the wrong side at its very end.

    Notes
    -----
    Without a loss, the loss is the integral of V in p from where V(., y) changes its sign, which is never negative for
    a monotone V. It is exact for pieces of polynomials that meet there and off by about 1e-5 if V has kinks elsewhere;
    each value takes 130 evaluations of V. Without both, `loss_weight` is `scale`.

    Examples
    --------
    >>> import numpy as np
    >>> huber = Property(lambda p, y: np.clip(p - y, -0.1, 0.1), name="Huber", lipschitz=1.0)
    >>> huber, huber.monotone, round(huber.value(np.array([0.2, 0.3, 0.9])), 6), round(huber.loss(0.55, 0.5), 6)
    (Property(name='Huber'), True, 0.3, 0.00125)

    References
    ----------
    Steinwart, Pasin, Williamson and Zhang (2014), Elicitation and identification of properties, COLT.
    """

    def __init__(
        self,
        identification: Callable[..., Any] | None = None,
        *,
        loss: Callable[..., Any] | None = None,
        name: str | None = None,
        low: float = 0.0,
        high: float = 1.0,
        domain: tuple[float, float] | None = None,
        lipschitz: float | None = None,
        monotone: bool | None = None,
        value: Callable[[Float64Array], float] | None = None,
    ) -> None:
        first = loss if identification is None else identification
        if first is None:
            raise InvalidInput("a property needs an identification function V(p, y) or a loss(p, y); give one of them")
        self.name = getattr(first, "__name__", type(first).__name__) if name is None else name
        if not isinstance(self.name, str):
            raise InvalidInput(f"name must be a string; got {name!r}")
        self.low, self.high = checked.label_range(low, high)
        self.domain = (self.low, self.high) if domain is None else _interval(domain)
        probe = probes(self.domain, (self.low, self.high))
        self._identification = (
            None if identification is None else Vectorized(identification, f"{self.name}: identification", *probe)
        )
        self._loss = None if loss is None else Vectorized(loss, f"{self.name}: loss", *probe)
        if value is not None and not callable(value):
            raise InvalidInput(f"{self.name}: value must be a function of a sample; got {value!r}")
        self._value = value
        found = examine(self.name, self._raw, self.domain, (self.low, self.high), monotone)
        self.scale = max(found.peak, 1.0)
        self.monotone = found.monotone
        self.continuous = found.continuous
        if self._identification is not None and self._loss is not None:
            require_agreement(self.name, self._raw, self._derivative, self.domain, (self.low, self.high))
        declared = None if lipschitz is None else checked.plain_number(lipschitz, "lipschitz")
        if declared is not None and declared <= 0.0:
            raise InvalidInput(f"{self.name}: lipschitz must be positive; got {lipschitz!r}")
        self.lipschitz = None if declared is None else declared / self.scale

    def __repr__(self) -> str:
        options = [("low", self.low, 0.0), ("high", self.high, 1.0), ("domain", self.domain, (self.low, self.high))]
        given = [f"name={self.name!r}"] + [f"{name}={value!r}" for name, value, default in options if value != default]
        return f"Property({', '.join(given)})"

    @property
    def assumption(self) -> str:
        """What the guarantee assumes of the labels."""
        kind = "is Lipschitz in the forecast" if self.lipschitz is None else f"is {self.lipschitz:g}-Lipschitz"
        return f"The mean of V under the distribution of each label, given the context and the past, {kind}."

    def identification(self, p: FloatLike, y: FloatLike) -> FloatLike:
        """V(p, y), divided by `scale`."""
        v = self._raw(p, y) / self.scale
        if not (np.isfinite(v).all() if isinstance(v, np.ndarray) else math.isfinite(v)):
            require_finite(self.name, np.asarray(v), p, y)
        return v

    def loss(self, p: FloatLike, y: FloatLike) -> FloatLike:
        """The loss given, or the integral of the V given, from where it changes its sign."""
        if self._loss is not None:
            return self._loss(p, y)
        ends, outcomes = np.broadcast_arrays(np.asarray(p, dtype=np.float64), np.asarray(y, dtype=np.float64))

        def v(forecasts: Float64Array) -> Float64Array:
            return np.asarray(self._raw(forecasts, outcomes))

        total = integral(v, root(v, np.full(ends.shape, self.domain[0]), self.domain[1]), ends)
        return total if isinstance(p, np.ndarray) or isinstance(y, np.ndarray) else float(total)

    def loss_weight(self, p: FloatLike) -> FloatLike:
        """`scale`; of a loss given along with V, its derivative over V, at the end label where V is larger."""
        if self._identification is None or self._loss is None:
            return 0.0 * p + self.scale
        at_low, at_high = np.asarray(self.identification(p, self.low)), np.asarray(self.identification(p, self.high))
        lower = np.abs(at_low) > np.abs(at_high)
        ratio = np.where(lower, self._derivative(p, self.low), self._derivative(p, self.high)) / np.where(
            lower, at_low, at_high
        )
        return ratio if isinstance(p, np.ndarray) else float(ratio)

    def value(self, y: Float64Array) -> float:
        """The root of the sample's mean identification, or what the function given says."""
        y = labels.sample(y, self.invalid_labels)
        if self._value is not None:
            return float(self._value(y))

        def mean(p: Float64Array) -> Float64Array:
            # Rounding must not hide that a step function's mean has reached zero.
            return np.asarray(np.mean(self._raw(p, y)) + 1e-13 * self.scale)

        return float(root(mean, np.asarray(self.domain[0]), self.domain[1]))

    def invalid_labels(self, y: FloatLike) -> str | None:
        """Which label is outside [low, high], as a clause for an error message, or None."""
        return labels.outside(y, self.low, self.high)

    def spec(self) -> Spec:
        """What can be saved of a user's functions: their name. `from_spec` refuses it and says what to do."""
        return {"kind": "Property", "name": self.name, "low": self.low, "high": self.high, "domain": list(self.domain)}

    def _derivative(self, p: FloatLike, y: FloatLike) -> FloatLike:
        loss = self._loss
        assert loss is not None
        return slope(lambda forecast: loss(forecast, y), p, *self.domain)

    def _raw(self, p: FloatLike, y: FloatLike) -> FloatLike:
        """V(p, y) as the user gave it."""
        return self._derivative(p, y) if self._identification is None else self._identification(p, y)


def _interval(domain: object) -> tuple[float, float]:
    if not isinstance(domain, (tuple, list)) or len(domain) != 2:
        raise InvalidInput(f"domain must be a pair of numbers; got {domain!r}")
    return checked.label_range(*domain)

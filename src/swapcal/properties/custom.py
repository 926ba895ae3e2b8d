"""A user's own property."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from swapcal import inputs
from swapcal.errors import InvalidInput
from swapcal.properties import base
from swapcal.typing import Float64Array, FloatLike, Spec

# --------
# Derivatives, roots and integrals of functions of which only values are known.

# Step of a difference, in widths of the interval: near the cube root of the rounding unit, where the error of cutting
# the Taylor series off (step squared) and that of rounding (unit / step) are of the same size, 1e-10.
_STEP = 2.0**-17

# Enough to bring any interval down to the spacing of the floats at its ends.
_HALVINGS = 64

# Gauss and Legendre's rule, exact for polynomials; a kink costs it about 1e-5 of the interval.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


def slope(function: Callable[[FloatLike], FloatLike], p: FloatLike, low: float, high: float) -> FloatLike:
    """The derivative of `function` at `p`, from values inside [low, high] only.

    It is that of the parabola through three points a step apart: the central difference, except within a step of an
    end, where the points stay inside and the parabola's curvature carries the derivative over to `p`.
    """
    step = _STEP * (high - low)
    center: FloatLike
    if isinstance(p, np.ndarray):
        center = np.clip(p, low + step, high - step)
        shifted = bool((center != p).any())
    else:
        center = min(max(p, low + step), high - step)
        shifted = center != p
    left, right = function(center - step), function(center + step)
    central = (right - left) / (2.0 * step)
    if not shifted:
        return central
    return central + (p - center) * (right - 2.0 * function(center) + left) / (step * step)


def root(function: Callable[[Float64Array], Float64Array], low: Float64Array, high: float) -> Float64Array:
    """Where `function` gets from negative to non-negative, by bisection, elementwise.

    The function must not be negative at `high`. The result is the right end of the last bracket, so at a jump it is the
    first point of the upper side; it is `low` where the function is not negative there.
    """
    left, right = low, np.where(function(low) >= 0.0, low, high)
    for _ in range(_HALVINGS):
        middle = left + 0.5 * (right - left)
        up = function(middle) >= 0.0
        left, right = np.where(up, left, middle), np.where(up, middle, right)
    return right


def integral(function: Callable[[Float64Array], Float64Array], start: Float64Array, end: Float64Array) -> Float64Array:
    """The integral of `function` from `start` to `end`, elementwise, for a function smooth in between."""
    half = 0.5 * (end - start)
    total = np.zeros_like(half)
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        total += weight * function(start + half * (1.0 + node))
    return half * total


# --------
# A user's function of numbers, made to work on arrays too.


class Vectorized:
    """A function that may know numbers only, or arrays as well, called either way.

    Parameters
    ----------
    function
        Takes as many numbers as there are probes and returns one.
    name
        What to call it in error messages.
    probes
        Equally long arrays of allowed arguments. If `function` gives the same for the arrays as for their elements
        one by one, it is trusted with arrays; otherwise arrays are cut into numbers, which is slow and always right.

    Examples
    --------
    >>> ramp = Vectorized(lambda p: p if p > 0.5 else 0.0, "ramp", np.array([0.2, 0.9]))
    >>> ramp.arrays, ramp(0.7), ramp(np.array([0.4, 0.6]))
    (False, 0.7, array([0. , 0.6]))
    """

    __slots__ = ("arrays", "function", "name")

    def __init__(self, function: Callable[..., Any], name: str, *probes: Float64Array) -> None:
        if not callable(function):
            raise InvalidInput(f"{name} must be a function; got {function!r}")
        self.function = function
        self.name = name
        self.arrays = False
        one_by_one = self._each(probes)
        try:
            with np.errstate(all="ignore"):
                together = np.asarray(function(*probes), dtype=np.float64)
        except Exception:
            # Numbers went well, so whatever happened is a function of numbers meeting arrays: it gets none.
            return
        self.arrays = bool(together.shape == one_by_one.shape and np.allclose(together, one_by_one, equal_nan=True))

    def __call__(self, *values: FloatLike) -> FloatLike:
        """The function at numbers, or at arrays that broadcast."""
        for value in values:
            if isinstance(value, np.ndarray):
                break
        else:
            return self._one(values)
        arrays = np.broadcast_arrays(*values)
        if not self.arrays:
            return self._each(arrays)
        with np.errstate(all="ignore"):
            return np.asarray(self.function(*arrays), dtype=np.float64)

    def _one(self, values: tuple[Any, ...]) -> float:
        try:
            return float(self.function(*values))
        except (ArithmeticError, TypeError, ValueError) as error:
            at = ", ".join(map(repr, values))
            raise InvalidInput(
                f"{self.name} at ({at}) raised {type(error).__name__}: {error}; it must return a number there"
            ) from error

    def _each(self, arrays: tuple[Float64Array, ...]) -> Float64Array:
        numbers = zip(*(array.ravel().tolist() for array in arrays), strict=True)
        return np.array([self._one(values) for values in numbers]).reshape(arrays[0].shape)


# --------
# The proper loss of any concave function.

# Where a supergradient is tried: inside, as entropies are infinitely steep at the ends.
_INSIDE = (np.arange(100) + 0.5) / 100

# How near the ends the numerical curvature evaluates the supergradient, for the same reason.
_EDGE = 1e-5


@dataclass(frozen=True, slots=True, repr=False)
class Concave:
    """The loss f(p) + f'(p) (y - p) of a concave f on [0, 1]: every proper loss is of this form, up to terms in y.

    The truth p makes its mean loss f(p), and any other forecast q costs what the tangent at q lies above f at p.
    The loss is strictly proper if f is strictly concave.

    Parameters
    ----------
    function
        f, finite on [0, 1]. It and the others may take numbers only, or arrays too.
    supergradient
        f', or any slope between the one-sided derivatives where f has a kink.
    name
        What to call the loss in reports; a saved state holds only this of a user's functions.
    curvature
        -f'', which is h(p). Without it h is a difference quotient of `supergradient`, extrapolated within 1e-5 of
        an end.

    Raises
    ------
    InvalidInput
        If some tangent fails to lie above f on a grid of 100 points and the ends.

    Examples
    --------
    >>> brier = Concave(lambda p: p * (1 - p), lambda p: 1 - 2 * p, name="Brier")
    >>> brier, brier.loss(0.25, 1.0), round(float(brier.weight(0.25)), 6)
    (Concave(name='Brier'), 0.5625, 2.0)

    References
    ----------
    Gneiting and Raftery (2007), Strictly proper scoring rules, prediction, and estimation, JASA 102, Theorem 1;
    doi:10.1198/016214506000001437.
    """

    function: Callable[..., Any]
    supergradient: Callable[..., Any]
    name: str = field(default="Concave", kw_only=True)
    curvature: Callable[..., Any] | None = field(default=None, kw_only=True)
    _f: Vectorized = field(init=False, compare=False)
    _slope: Vectorized = field(init=False, compare=False)
    _curvature: Vectorized | None = field(init=False, compare=False)

    def __post_init__(self) -> None:
        probe = _INSIDE[::30]
        f = Vectorized(self.function, "function", probe)
        tangent = Vectorized(self.supergradient, "supergradient", probe)
        curvature = None if self.curvature is None else Vectorized(self.curvature, "curvature", probe)
        for name, value in (("_f", f), ("_slope", tangent), ("_curvature", curvature)):
            object.__setattr__(self, name, value)
        points = np.concatenate([[0.0], _INSIDE, [1.0]])
        heights, slopes = np.asarray(f(points)), np.asarray(tangent(_INSIDE))
        if not (np.isfinite(heights).all() and np.isfinite(slopes).all()):
            raise InvalidInput(
                f"{self.name}: f must be finite on [0, 1], and its supergradient strictly between 0 and 1"
            )
        excess = heights - (heights[1:-1, None] + slopes[:, None] * (points - _INSIDE[:, None]))
        if excess.max() > 1e-9 * max(1.0, np.abs(heights).max()):
            at, other = np.unravel_index(int(excess.argmax()), excess.shape)
            raise InvalidInput(
                f"{self.name}: f and this supergradient are not of a concave function: "
                f"f({points[other]:g}) = {heights[other]:g} lies {excess.max():g} above "
                f"the line through f({_INSIDE[at]:g}) with slope {slopes[at]:g}; give a concave f and its derivative"
            )

    def __repr__(self) -> str:
        return f"Concave(name={self.name!r})"

    def loss(self, p: FloatLike, y: FloatLike) -> FloatLike:
        """f(p) + f'(p) (y - p), which is f(p) at y = p however steep f is there."""
        height, error = self._f(p), y - p
        if isinstance(height, np.ndarray) or isinstance(error, np.ndarray):
            with np.errstate(invalid="ignore"):
                return np.where(error == 0.0, height, height + self._slope(p) * error)
        return height if error == 0.0 else height + self._slope(p) * error

    def weight(self, p: FloatLike) -> FloatLike:
        """-f''(p)."""
        if self._curvature is not None:
            return self._curvature(p)
        curvature = -slope(self._slope, p, _EDGE, 1.0 - _EDGE)
        # Rounding must not make a straight piece of f convex.
        return np.maximum(curvature, 0.0) if isinstance(curvature, np.ndarray) else max(curvature, 0.0)

    def spec(self) -> Spec:
        """What can be saved of functions: their name. `from_spec` refuses it and says what to do."""
        return {"kind": "Concave", "name": self.name}


# --------
# What can be checked of a user's identification function: on a grid of 101 forecasts and 101 labels.

_CELLS = 100

# What a sign or an order may be wrong by, relative to the largest |V|: a thousand times the error of a difference.
_SLACK = 1e-7

# A jump is a change of V by 1 % of its peak within 1e-5 widths of the domain: there the step of a difference, which
# spreads a kink of a loss, is as wide.
_EXAMINATION_HALVINGS, _JUMP = 10, 0.01

Interval = tuple[float, float]
Bivariate = Callable[[FloatLike, FloatLike], FloatLike]


def _borders(interval: Interval) -> Float64Array:
    return np.linspace(*interval, _CELLS + 1)


def _middles(interval: Interval) -> Float64Array:
    """Points strictly inside, none of them a border: a step at p = y, or at the very end, does not fall on them."""
    return interval[0] + (interval[1] - interval[0]) * (np.arange(_CELLS) + 0.5) / _CELLS


def examined(low: float, high: float) -> Float64Array:
    """The labels on which a user's own property is examined."""
    return np.concatenate([_borders((low, high)), _middles((low, high))])


def probes(domain: Interval, labels: Interval) -> tuple[Float64Array, Float64Array]:
    """A few forecasts and labels, below, above and far from one another, on which to try a function."""
    return _borders(domain)[[20, 50, 80, 50]], _borders(labels)[[45, 15, 30, 85]]


def examine(
    name: str, v: Bivariate, domain: Interval, labels: Interval, monotone: bool | None
) -> tuple[float, bool, bool]:
    """The largest |V(p, y)|, whether V never falls in p, and whether it never jumps, as far as the grid shows.

    InvalidInput tells the place where it cannot be an identification function.
    """
    if monotone is not None and not isinstance(monotone, bool):
        raise InvalidInput(f"{name}: monotone must be True, False or None; got {monotone!r}")
    forecasts, outcomes = _borders(domain), _borders(labels)
    grid = np.asarray(v(forecasts[:, None], outcomes))
    require_finite(name, grid, forecasts[:, None], outcomes)
    peak = float(np.abs(grid).max())
    if peak == 0.0:
        raise InvalidInput(f"{name}: V(p, y) is zero for all forecasts and labels, so it identifies nothing")
    outcomes = _middles(labels)
    for end, sign, allowed in ((domain[0], 1.0, "at most"), (domain[1], -1.0, "at least")):
        column = np.asarray(v(np.asarray([end]), outcomes))
        at = int(np.argmax(sign * column))
        if sign * column[at] > _SLACK * peak:
            raise InvalidInput(
                f"{name}: V({end:g}, {outcomes[at]:g}) = {column[at]:g}, but it must be {allowed} 0 at this end of the "
                "domain for every label; turn the sign of V, or set domain= to the range of the property's values"
            )
    falls = grid[:-1] - grid[1:]
    rising = bool(falls.max() <= _SLACK * peak)
    if monotone and not rising:
        i, j = np.unravel_index(int(falls.argmax()), falls.shape)
        raise InvalidInput(
            f"{name}: monotone=True, yet V(., {_borders(labels)[j]:g}) falls by {falls[i, j]:g} between the forecasts "
            f"{forecasts[i]:g} and {forecasts[i + 1]:g}; leave monotone out to have it measured"
        )
    jump = _largest_jump(v, forecasts, _borders(labels), falls)
    return peak, rising if monotone is None else monotone, jump <= _JUMP * peak


def _largest_jump(v: Bivariate, forecasts: Float64Array, outcomes: Float64Array, falls: Float64Array) -> float:
    """The change of V that stays, over the labels, when the cell where it is largest is halved again and again."""
    cell = np.abs(falls).argmax(axis=0)
    left, right = forecasts[cell], forecasts[cell + 1]
    for _ in range(_EXAMINATION_HALVINGS):
        middle = 0.5 * (left + right)
        at = np.asarray(v(middle, outcomes))
        lower = np.abs(at - v(left, outcomes)) >= np.abs(v(right, outcomes) - at)
        left, right = np.where(lower, left, middle), np.where(lower, middle, right)
    return float(np.abs(np.asarray(v(right, outcomes)) - v(left, outcomes)).max())


def require_finite(name: str, v: Float64Array, p: FloatLike, y: FloatLike) -> None:
    """Raise InvalidInput with the first pair (p, y) at which `v` is not finite."""
    finite = np.isfinite(v)
    if finite.all():
        return
    at = int(np.argmin(finite))
    forecasts, outcomes = np.broadcast_arrays(p, y)
    raise InvalidInput(
        f"{name}: V({forecasts.flat[at]:g}, {outcomes.flat[at]:g}) = {v.flat[at]}, but V must be finite for every "
        "forecast in the domain and every label; multiply it by a positive function of p that keeps it bounded (for a "
        "probability use Probability(loss))"
    )


def require_agreement(name: str, v: Bivariate, derivative: Bivariate, domain: Interval, labels: Interval) -> None:
    """Raise InvalidInput with a pair (p, y) at which the loss falls though V is positive, or rises though negative."""
    forecasts, outcomes = _borders(domain)[1:-1], _middles(labels)
    values = np.asarray(v(forecasts[:, None], outcomes))
    slopes = np.asarray(derivative(forecasts[:, None], outcomes))
    against = np.where(np.isfinite(slopes), -slopes * np.sign(values), np.inf)
    i, j = np.unravel_index(int(against.argmax()), against.shape)
    if against[i, j] > _SLACK * np.abs(slopes).max() or not np.isfinite(slopes[i, j]):
        raise InvalidInput(
            f"{name}: at ({forecasts[i]:g}, {outcomes[j]:g}) the loss has slope {slopes[i, j]:g} and V is "
            f"{values[i, j]:g}; the loss must rise in p where V is positive and fall where it is negative"
        )


class Property(base.PropertyBase):
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
        self.low, self.high = inputs.label_range(low, high)
        self.domain = (self.low, self.high) if domain is None else _interval(domain)
        probe = probes(self.domain, (self.low, self.high))
        self._identification = (
            None if identification is None else Vectorized(identification, f"{self.name}: identification", *probe)
        )
        self._loss = None if loss is None else Vectorized(loss, f"{self.name}: loss", *probe)
        if value is not None and not callable(value):
            raise InvalidInput(f"{self.name}: value must be a function of a sample; got {value!r}")
        self._value = value
        examined = examine(self.name, self._raw, self.domain, (self.low, self.high), monotone)
        peak, self.monotone, self.continuous = examined
        self.scale = max(peak, 1.0)
        if self._identification is not None and self._loss is not None:
            require_agreement(self.name, self._raw, self._derivative, self.domain, (self.low, self.high))
        declared = None if lipschitz is None else inputs.plain_number(lipschitz, "lipschitz")
        if declared is not None and declared <= 0.0:
            raise InvalidInput(f"{self.name}: lipschitz must be positive; got {lipschitz!r}")
        self.lipschitz = None if declared is None else declared / self.scale

    def __repr__(self) -> str:
        options = [("low", self.low, 0.0), ("high", self.high, 1.0), ("domain", self.domain, (self.low, self.high))]
        arguments = [f"name={self.name!r}"] + [
            f"{name}={value!r}" for name, value, default in options if value != default
        ]
        return f"Property({', '.join(arguments)})"

    @property
    def assumption(self) -> str:
        """What the guarantee assumes of the labels."""
        kind = "is Lipschitz in the forecast" if self.lipschitz is None else f"is {self.lipschitz:g}-Lipschitz"
        ends = "; and so for labels at the very ends, where V must have its sign of the inside or labels no mass"
        return f"The mean of V under the distribution of each label, given the context and the past, {kind}{ends}."

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
        y = base.sample(y, self.invalid_labels)
        if self._value is not None:
            return float(self._value(y))

        def mean(p: Float64Array) -> Float64Array:
            # Rounding must not hide that a step function's mean has reached zero.
            return np.asarray(np.mean(self._raw(p, y)) + 1e-13 * self.scale)

        return float(root(mean, np.asarray(self.domain[0]), self.domain[1]))

    def invalid_labels(self, y: FloatLike) -> str | None:
        """Which label is outside [low, high], as a clause for an error message, or None."""
        return base.outside(y, self.low, self.high)

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
    return inputs.label_range(*domain)

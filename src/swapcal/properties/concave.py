"""The proper loss of any concave function."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from swapcal.errors import InvalidInput
from swapcal.properties.calculus import slope
from swapcal.properties.vectorized import Vectorized
from swapcal.typing import FloatLike, Spec

__all__ = ["Concave"]

_INSIDE = (np.arange(100) + 0.5) / 100
"""Where a supergradient is tried: inside, as entropies are infinitely steep at the ends."""

_EDGE = 1e-5
"""How near the ends the numerical curvature evaluates the supergradient, for the same reason."""


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

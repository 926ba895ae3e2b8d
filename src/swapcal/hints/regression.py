"""A hint that learns: the property's own regression, run beside the engine at every step size at once."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from swapcal.errors import InvalidInput, StateFileError
from swapcal.hints.inputs import N_OWN, Inputs
from swapcal.hints.mixture import Mixture
from swapcal.roles import Elicitable, Row
from swapcal.typing import Float64Array, Spec

__all__ = ["OnlineRegression", "RegressionState"]

# From the rate that solves least squares for the current round alone down to one that averages thousands of rounds.
# Factors of 2.5 are close enough: on the synthetic streams the mixture loses at most 0.3 % to the best fixed rate.
_RATES = tuple(2.5**-k for k in range(9))
# Keeps the inverse hyperbolic tangent of a base forecast finite: odds of 10^12 to 1.
_EDGE = 1.0 - 2e-12
# Larger numbers could overflow when squared and summed.
_LARGEST = 1e100
_NOTHING = np.empty(0)


@dataclass(frozen=True, kw_only=True)
class OnlineRegression:
    r"""Online regression of any elicitable property on context, features and the user's own forecast; nothing to tune.

    Parameters
    ----------
    n_features
        Number of extra dense features that come with each round.
    rates
        Step sizes, one or more, positive; the default is 2.5^-k for k = 0 to 8. Rate 1 solves least squares for the
        current round alone.
    link
        "identity", "logistic", or None for both: with None the data choose.

    Notes
    -----
    Expert k forecasts u = g(h(b) + <theta_k, s>), in units in which the property's domain is [-1, 1]. Either g cuts to
    [-1, 1] and h is the identity, or g = tanh and h is its inverse: the logistic link in these units, with h(b) half
    the log-odds. Both are at most 1 steep, so they share their rates. b is the user's forecast (0, the middle of the
    domain, if there is none), and s are the inputs that `Inputs` brings to a common size: an intercept, half the
    log-odds of b, the features, the context. It starts at theta = 0, so as the user's model. One update serves all
    properties and links:

    .. math:: \theta_k \leftarrow \theta_k - \eta_k \, c \, V(u_k, y) \, s \, / \max(|s|^2, \text{mean of } |s|^2).

    It is gradient descent on the matching loss, the integral of V(g(z), y) over z, which is convex whenever V is
    nondecreasing: log loss for a mean with logistic link, squares with the identity, pinball loss for quantiles,
    asymmetric squares for expectiles. The unit c is the mean of |y - p|, in these units, over the mean of |V|: constant
    for a mean, and for a quantile, whose V has no unit, proportional to the size of the noise. An expert with rate 0 is
    the user's forecast itself. `Mixture` combines them all, by V alone.

    Rounds without a base forecast (None) have an intercept of their own, the middle of the domain as their start, and
    do not use the base's weight; all other weights are shared. Base forecasts outside the domain are moved to its end.

    Cost a round: O(K (n_features + active)) for K = 2 len(rates) + 1 experts; memory O(K (n_features + n_inputs)).

    Examples
    --------
    >>> from swapcal.properties import Mean
    >>> state = OnlineRegression().start(Mean(), 2)
    >>> row = Row(np.array([1]), np.array([1.0]))
    >>> state.forecast(row, None, 0.3)
    0.3
    >>> for _ in range(100):
    ...     state.update(row, None, 0.3, 1.0)
    >>> state.forecast(row, None, 0.3) > 0.95
    True

    References
    ----------
    Helmbold, Kivinen, Warmuth (1999), Relative loss bounds for single neurons, IEEE Transactions on Neural Networks 10
    (matching losses). Ross, Mineiro, Langford (2013), Normalized online learning, UAI, arXiv:1305.6646.
    """

    n_features: int = 0
    rates: Sequence[float] | None = None
    link: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.n_features, bool) or not isinstance(self.n_features, int) or self.n_features < 0:
            raise InvalidInput(f"n_features must be a whole number, 0 or more; got {self.n_features!r}")
        if self.link not in (None, "identity", "logistic"):
            raise InvalidInput(f'link must be "identity", "logistic" or None for both; got {self.link!r}')
        if self.rates is not None:
            object.__setattr__(self, "rates", _checked_rates(self.rates))

    def spec(self) -> Spec:
        """Plain data from which `from_spec` rebuilds the object."""
        rates = None if self.rates is None else list(self.rates)
        return {"kind": "OnlineRegression", "n_features": self.n_features, "rates": rates, "link": self.link}

    @classmethod
    def from_spec(cls, spec: Spec) -> "OnlineRegression":
        """The object that `spec` describes."""
        arguments = {name: value for name, value in spec.items() if name != "kind"}
        if spec.get("kind") != "OnlineRegression" or not arguments.keys() <= {"n_features", "rates", "link"}:
            raise InvalidInput(f"not the spec of an OnlineRegression: {dict(spec)!r}; pass what its spec() returned")
        return cls(**arguments)

    def start(self, property: Elicitable, n_inputs: int) -> "RegressionState":
        """A fresh state for contexts of length `n_inputs`."""
        if isinstance(n_inputs, bool) or not isinstance(n_inputs, int) or n_inputs < 0:
            raise InvalidInput(f"n_inputs must be a whole number, 0 or more; got {n_inputs!r}")
        low, high = property.domain
        if not (math.isfinite(high - low) and low < high):
            raise InvalidInput(
                f"a regression needs a finite domain of forecasts; that of {property!r} is [{low}, {high}]"
            )
        return RegressionState(self, property, n_inputs)


class RegressionState:
    """What an `OnlineRegression` has learned; made by its `start`.

    `update` recomputes everything from its own arguments, so outcomes may come late and in any order.
    """

    def __init__(self, regression: OnlineRegression, property: Elicitable, n_inputs: int) -> None:
        rates = np.array(_RATES if regression.rates is None else regression.rates, dtype=np.float64)
        identity = rates if regression.link != "logistic" else rates[:0]
        logistic = rates if regression.link != "identity" else rates[:0]
        # The rate-0 expert is the first, as ties go to the first: before any outcome the forecast is the base itself.
        self._rates = np.concatenate(([0.0], identity, logistic))
        self._n_identity = 1 + len(identity)
        self._property = property
        self._low, self._high = property.domain
        self._half = 0.5 * (self._high - self._low)
        self._middle = self._low + self._half
        self._n_features, self._n_inputs = regression.n_features, n_inputs
        self._dense = np.zeros((N_OWN + regression.n_features, len(self._rates)))
        self._sparse = np.zeros((n_inputs, len(self._rates)))
        self._inputs = Inputs(regression.n_features)
        self._mixture = Mixture(len(self._rates))
        # Totals over the learned rounds: their number, |s|^2, |y - p| in half-widths, |V|.
        self._totals = [0.0] * 4

    def forecast(self, row: Row, features: Float64Array | None, base: float | None) -> float:
        """The hint for this round, in the property's domain; changes nothing."""
        features, squares = self._checked(row, features)
        unit, odds = self._start(base)
        dense = self._inputs.dense(features, None if base is None else odds)
        rows = self._sparse.take(row.indices, axis=0)
        units = self._units(dense, self._inputs.sparse(row.values, squares), rows, unit, odds)
        return self._value(self._mixture.combine(units))

    def update(self, row: Row, features: Float64Array | None, base: float | None, y: float) -> None:
        """Learn from a round whose outcome is `y`; the other arguments are those of its forecast."""
        features, squares = self._checked(row, features)
        unit, odds = self._start(base)
        if not math.isfinite(y):
            raise InvalidInput(f"a label must be a finite number; got {y!r}")
        known = None if base is None else odds
        dense, sparse = self._inputs.dense(features, known), self._inputs.sparse(row.values, squares)
        rows = self._sparse.take(row.indices, axis=0)
        units = self._units(dense, sparse, rows, unit, odds)
        combined = self._mixture.combine(units)
        value = self._value(combined)
        v = float(self._property.identification(value, y))
        step = self._property.identification(self._middle + self._half * units, y) * self._rates

        self._mixture.learn(units, combined, v)
        self._inputs.learn(features, known, len(sparse), squares)
        norm = float(dense.dot(dense)) + float(sparse.dot(sparse))
        totals = self._totals
        totals[0] += 1.0
        totals[1] += norm
        totals[2] += abs(y - value) / self._half
        totals[3] += abs(v)
        scale = totals[2] / totals[3] if totals[3] > 0.0 else 2.0
        step *= scale / max(norm, totals[1] / totals[0])
        self._dense -= np.multiply.outer(dense, step)
        # Positions are distinct, so no entry is written twice.
        rows -= np.multiply.outer(sparse, step)
        self._sparse[row.indices] = rows

    def arrays(self) -> dict[str, Float64Array]:
        """The complete state, as copies; `restore` continues from it bit for bit."""
        totals = np.array([*self._totals, *self._inputs.totals, self._mixture.bound])
        return {name: part.copy() for name, part in self._parts().items()} | {"totals": totals}

    def restore(self, arrays: Mapping[str, Float64Array]) -> None:
        """Continue from what `arrays` returned for a state of the same configuration."""
        parts = self._parts()
        shapes = {name: part.shape for name, part in parts.items()} | {"totals": (11,)}
        given = {name: np.shape(array) for name, array in arrays.items()}
        if given != shapes:
            raise StateFileError(f"these arrays are of another regression: expected shapes {shapes}, got {given}")
        copies = {name: np.array(array, dtype=np.float64) for name, array in arrays.items()}
        for name, array in copies.items():
            # Squares of features have twice their digits. Written so that NaN is refused too.
            limit = _LARGEST**3 if name in ("variation", "totals") else _LARGEST
            if not np.max(np.abs(array), initial=0.0) <= limit:
                raise StateFileError(f"this is not the state of a regression: its {name} are not finite, or too large")
        for name, part in parts.items():
            part[...] = copies[name]
        totals = copies["totals"].tolist()
        self._totals, self._inputs.totals, self._mixture.bound = totals[:4], totals[4:10], totals[10]
        self._inputs.scale()
        if not np.isfinite(self._inputs.inverse).all():
            raise StateFileError(
                "these arrays are not the state of a regression: a feature's variation is out of range"
            )

    def _parts(self) -> dict[str, Float64Array]:
        return {
            "dense": self._dense,
            "sparse": self._sparse,
            "mean": self._inputs.mean,
            "variation": self._inputs.variation,
            "regrets": self._mixture.regrets,
            "squares": self._mixture.squares,
            "weights": self._mixture.weights,
        }

    def _checked(self, row: Row, features: Float64Array | None) -> tuple[Float64Array, float]:
        """The features, and the sum of squares of the context's entries."""
        indices, values = row
        if len(indices) and not 0 <= indices[0] <= indices[-1] < self._n_inputs:
            raise InvalidInput(f"context positions run from 0 to {self._n_inputs - 1}; got {indices.tolist()}")
        # Written so that NaN, whose comparisons are all false, is refused too; here and below.
        if len(indices) != len(values) or not _largest(values) <= _LARGEST:
            raise InvalidInput(f"a context needs one finite value, at most {_LARGEST}, for each position; got {row!r}")
        if features is None:
            features = _NOTHING
        elif type(features) is not np.ndarray or features.dtype.char != "d":
            features = _vector(features)
        if features.shape != (self._n_features,):
            raise InvalidInput(f"features must be a vector of length n_features={self._n_features}; got {features!r}")
        if not _largest(features) <= _LARGEST:
            raise InvalidInput(f"features must be finite and at most {_LARGEST} in size; got {features.tolist()}")
        return features, float(values.dot(values))

    def _start(self, base: float | None) -> tuple[float, float]:
        """The base forecast in units of [-1, 1], and half its log-odds."""
        if base is None:
            return 0.0, 0.0
        if not math.isfinite(base):
            raise InvalidInput(f"a base forecast must be a finite number, or None if there is none; got {base!r}")
        unit = min(max((base - self._middle) / self._half, -1.0), 1.0)
        return unit, math.atanh(min(max(unit, -_EDGE), _EDGE))

    def _units(
        self, dense: Float64Array, sparse: Float64Array, rows: Float64Array, unit: float, odds: float
    ) -> Float64Array:
        """The experts' forecasts in units of [-1, 1]; `rows` are the weights of the context's entries."""
        z: Float64Array = dense.dot(self._dense)
        z += sparse.dot(rows)
        identity, logistic = z[: self._n_identity], z[self._n_identity :]
        identity += unit
        np.minimum(np.maximum(identity, -1.0, out=identity), 1.0, out=identity)
        logistic += odds
        np.tanh(logistic, out=logistic)
        return z

    def _value(self, unit: float) -> float:
        """A forecast in the property's units; rounding must not carry it past an end of the domain."""
        return min(max(self._middle + self._half * unit, self._low), self._high)


def _largest(values: Float64Array) -> float:
    """The largest size of an entry; NaN if there is one, 0 if there are none."""
    if not len(values):
        return 0.0
    sizes = np.abs(values)
    return float(sizes[sizes.argmax()])


def _vector(features: object) -> Float64Array:
    try:
        return np.array(features, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"features must be a vector of numbers; got {features!r}") from None


def _checked_rates(rates: Sequence[float]) -> tuple[float, ...]:
    try:
        values = tuple(float(rate) for rate in rates)
    except (TypeError, ValueError):
        values = ()
    if not values or not all(math.isfinite(rate) and rate > 0.0 for rate in values):
        raise InvalidInput(f"rates must be positive finite numbers, one or more, or None; got {rates!r}")
    return values

"""A hint that learns: the property's own regression, run beside the engine at every step size at once."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from swapcal.engine import kernels
from swapcal.engine.kernels import in_order, rows_in_order
from swapcal.errors import InvalidInput, StateFileError, UnknownForecast
from swapcal.protocols import Elicitable, Row, Rows
from swapcal.typing import Float64Array, IntArray, Spec

# --------
# What a regression sees: numbers of any unit, brought to a common size as the stream goes by.

# Inputs before the features: the intercept of rounds with a base, of rounds without one, and the base.
N_OWN = 3

# Rounds; rounds with a base, its mean and its variation; non-zero context entries, the sum of their squares.
N_TOTALS = 6

# Standardized inputs are cut at this many standard deviations: out of reach for a normal feature, and a limit to what
# one bad record can do to a forecast.
_CUT = 5.0


class Inputs:
    """Running sizes of the inputs, and the inputs in those sizes.

    The base and the features v become (v - mean) / deviation over the rounds learned so far, cut to [-5, 5], and 0 as
    long as they have not varied. The context keeps its zeros, so it is not centered; it is divided by the root mean
    square of all its non-zero entries, those of this round included, so a group's indicator stays 0 or 1 however rare
    the group is.

    The totals are kept in an array of the caller's, of length `N_TOTALS`.

    Cost: O(features + active) for each call; memory O(features).
    """

    __slots__ = ("inverse", "mean", "totals", "variation")

    def __init__(self, n_features: int, totals: Float64Array) -> None:
        self.mean = np.zeros(n_features)
        self.variation = np.zeros(n_features)
        self.inverse = np.zeros(n_features)
        self.totals = totals

    def scaled(self, features: Float64Array, base: float | None, values: Float64Array, squares: float) -> Float64Array:
        """The vector (1, 0, base, features, context), or (0, 1, 0, features, context) without a base; in common sizes.

        `values` are the entries of the context, and `squares` is the sum of their squares.
        """
        _, count, mean, variation, n_entries, total = self.totals.tolist()
        end = N_OWN + len(features)
        inputs = np.empty(end + len(values))
        if base is None:
            inputs[0], inputs[1], inputs[2] = 0.0, 1.0, 0.0
        else:
            spread = variation / count if count > 0.0 else 0.0
            scaled = (base - mean) / math.sqrt(spread) if spread > 0.0 else 0.0
            inputs[0], inputs[1], inputs[2] = 1.0, 0.0, min(max(scaled, -_CUT), _CUT)
        if len(features):
            part = inputs[N_OWN:end]
            np.subtract(features, self.mean, out=part)
            part *= self.inverse
            np.maximum(part, -_CUT, out=part)
            np.minimum(part, _CUT, out=part)
        total += squares
        np.multiply(values, _root_ratio(n_entries + len(values), total), out=inputs[end:])
        return inputs

    def learn(self, features: Float64Array, base: float | None, n_values: int, squares: float) -> None:
        """Add one round (Welford's recursion for means and variations)."""
        totals = self.totals
        rounds, count, mean, variation, n_entries, total = totals.tolist()
        rounds += 1.0
        if base is not None:
            count += 1.0
            change = base - mean
            mean += change / count
            variation += change * (base - mean)
            totals[1], totals[2], totals[3] = count, mean, variation
        totals[0], totals[4], totals[5] = rounds, n_entries + n_values, total + squares
        if len(features):
            changes = features - self.mean
            self.mean += changes / rounds
            self.variation += changes * (features - self.mean)
            self.scale()

    def scale(self) -> None:
        """One over the deviation of each feature, 0 where nothing varied yet.

        The root comes before the division: it is at least 1e-162, so that its inverse is finite.
        """
        rounds = float(self.totals[0])
        spread = self.variation / rounds if rounds > 0.0 else self.variation
        np.sqrt(spread, out=spread)
        self.inverse.fill(0.0)
        np.divide(1.0, spread, out=self.inverse, where=spread > 0.0)


def _root_ratio(n: float, total: float) -> float:
    """The root of n / total, 0 for no total; finite also where entries are so tiny that the ratio overflows."""
    if total <= 0.0:
        return 0.0
    return math.sqrt(n / total) if n / total < math.inf else math.sqrt(n) / math.sqrt(total)


# Standard deviations of what the rounds that are out will add to a regret, which an expert must be ahead by.
CAUTION = 2.0


class Mixture:
    r"""Polynomial weights on the regret against each expert (ML-Poly), scored by what was said.

    With the mixture's forecast u and expert k's forecast u_k *at the time of the forecast*, an outcome adds r_k = V(u,
    y) (u - u_k), and

    .. math:: w_k \propto \frac{(\sum_t r_k - m_k)_+}{B + \sum_t r_k^2}, \qquad B = \max_{t, k} r_k^2.

    If V is nondecreasing in the forecast, r_k is at least the difference of the losses of which V is the derivative.
    Where every outcome is known before the next forecast, m_k = 0, and the sum of w_k r_k over the experts is zero in
    every round, which is what bounds each total regret by the root of its own sum of squares, up to a factor in K and
    ln T. As r_k is linear in u_k, that holds for every fixed convex combination of experts too. Multiplying V or the
    forecasts by a constant changes nothing. Where no regret is positive the choice is free: the expert with the largest
    one is followed, the first among equals. O(K) a round.

    Where outcomes come late, the margin m_k is two standard deviations of what the rounds that are out will add: the
    mean lag, so their mean number, times the mean square of r_k, under the root. Without it weights go to whoever won
    the first few scores and stay there blindly for a whole delay. A constant shift of a regret raises its bound by as
    much. The first expert has no margin, and is followed where nobody is ahead by more than theirs.

    B is kept in an array of the caller's, of length 1.

    References
    ----------
    Gaillard, Stoltz, van Erven (2014), A second-order bound with excess losses, COLT, arXiv:1402.2044 (ML-Poly).
    Joulani, Gyorgy, Szepesvari (2016), Delay-tolerant online convex optimization, AAAI.
    """

    __slots__ = ("bound", "regrets", "squares", "weights")

    def __init__(self, n_experts: int, bound: Float64Array) -> None:
        self.regrets = np.zeros(n_experts)
        self.squares = np.zeros(n_experts)
        self.bound = bound
        self.weights = np.zeros(n_experts)
        self.weights[0] = 1.0

    def combine(self, forecasts: Float64Array) -> float:
        """The weighted mean of the experts' forecasts."""
        return in_order(self.weights * forecasts)

    def learn(self, apart: Float64Array, v: float, rounds: float, lags: float) -> None:
        """Add one round: how far the mixture was above each expert, V at the mixture, rounds and lags so far."""
        r = v * apart
        self.regrets += r
        r *= r
        self.squares += r
        bound = max(float(self.bound[0]), float(r[r.argmax()]))
        self.bound[0] = bound
        ahead = self.regrets
        if lags > 0.0:
            share = CAUTION * CAUTION * (lags / rounds) / rounds
            ahead = self.regrets - np.sqrt(share * self.squares)
            ahead[0] = self.regrets[0]
        best = ahead.argmax()
        if ahead[best] > 0.0 and bound > 0.0:
            # Not np.maximum, which leaves the sign of a zero open.
            self.weights.fill(0.0)
            np.copyto(self.weights, ahead, where=ahead > 0.0)
            self.weights /= np.add(self.squares, bound, out=r)
            total = in_order(self.weights)
            if total > 0.0:
                self.weights /= total
                return
        self.weights.fill(0.0)
        self.weights[0 if lags > 0.0 else best] = 1.0


def packed(apart: Float64Array) -> bytes:
    """Differences between forecasts in two bytes each: the upper halves of 32-bit floats, rounded to even.

    Examples
    --------
    >>> unpacked(packed(np.array([0.0, 1.0, -0.25, 0.1])))
    array([ 0.        ,  1.        , -0.25      ,  0.10009766])
    """
    bits = apart.astype(np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return rounded.astype("<u2").tobytes()


def unpacked(scores: bytes) -> Float64Array:
    """What `packed` packed."""
    bits = np.frombuffer(scores, dtype="<u2").astype(np.uint32) << np.uint32(16)
    return bits.view(np.float32).astype(np.float64)


# --------
# What a learning hint has learned: one round, and the arrays between rounds.

# Keeps the inverse hyperbolic tangent of a base forecast finite: odds of 10^12 to 1.
_EDGE = 1.0 - 2e-12
# Larger numbers could overflow when squared and summed.
LARGEST = 1e100
_NOTHING = np.empty(0)
# The parts of the totals: the state's own, those of `Inputs`, that of `Mixture`.
_N_OWN_TOTALS = 5
_N_TOTALS = _N_OWN_TOTALS + N_TOTALS + 1
# The only total that may be negative: the mean of the base.
_BASE_MEAN = _N_OWN_TOTALS + 2


class _Look(NamedTuple):
    """A round before its outcome."""

    features: Float64Array
    base: float | None  # as an input: half its log-odds
    squares: float  # the sum of squares of the context's entries
    positions: IntArray  # of the inputs among all weights
    inputs: Float64Array
    rows: Float64Array  # a copy of the weights at `positions`
    units: Float64Array  # the experts' forecasts, in units of [-1, 1]
    combined: float


class RegressionState:
    """What an `OnlineRegression` has learned; made by its `start`.

    Outcomes may come late and in any order. Experts are scored by what they said, which a forecast carries; the step is
    taken from where they are now.

    Parameters
    ----------
    property
        What is forecast.
    identity, logistic
        The rates of the experts with each link.
    n_features, n_inputs
        Lengths of the feature vector and of the context.

    Notes
    -----
    Sums run from left to right: over inputs in the order intercepts, base, features, context; over experts in the order
    rate 0, identity, logistic. Hyperbolic functions are those of the C library, one number at a time. So the compiled
    twin in ``cpp/regression.hpp`` gives the same bits. It works in the arrays of `buffers`, which are never replaced.

    Examples
    --------
    >>> from swapcal import Mean, OnlineRegression
    >>> from swapcal.protocols import Row
    >>> state = OnlineRegression(n_features=1).start(Mean(), 0)
    >>> nobody = Row(np.array([], dtype=np.int64), np.array([]))
    >>> for _ in range(50):
    ...     state.update(nobody, np.array([1.0]), None, 0.9)
    >>> state.forecast(nobody, np.array([1.0]), None) > 0.7
    True
    """

    def __init__(
        self,
        property: Elicitable,
        identity: Float64Array,
        logistic: Float64Array,
        *,
        n_features: int,
        n_inputs: int,
    ) -> None:
        # The rate-0 expert is the first, as ties go to the first: before any outcome the forecast is the base itself.
        self._rates = np.concatenate(([0.0], identity, logistic))
        self._n_identity = 1 + len(identity)
        self._property = property
        self._low, self._high = property.domain
        self._half = 0.5 * (self._high - self._low)
        self._middle = self._low + self._half
        self._n_features, self._n_inputs = n_features, n_inputs
        self._n_dense = N_OWN + n_features
        self._always = np.arange(self._n_dense)
        self._weights = np.zeros((self._n_dense + n_inputs, len(self._rates)))
        # Over the learned rounds: their number, |s|^2, |y - p| in half-widths, |V|, lags; then what the parts keep.
        self._totals = np.zeros(_N_TOTALS)
        self._inputs = Inputs(n_features, self._totals[_N_OWN_TOTALS:-1])
        self._mixture = Mixture(len(self._rates), self._totals[-1:])

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy's parts count in the copy's totals, as the original's do in its own."""
        self.__dict__.update(state)
        self._inputs.totals, self._mixture.bound = self._totals[_N_OWN_TOTALS:-1], self._totals[-1:]

    @property
    def n_identity(self) -> int:
        """How many experts, the first ones, have the identity as their link."""
        return self._n_identity

    def forecast(self, row: Row, features: Float64Array | None, base: float | None) -> float:
        """The hint for this round, in the property's domain; changes nothing."""
        return self.said(row, features, base)[0]

    def said(self, row: Row, features: Float64Array | None, base: float | None) -> tuple[float, bytes]:
        """The hint, and how far it is from what each expert says, for the update; changes nothing."""
        look = self._look(row, features, base)
        return self._value(look.combined), packed(look.combined - look.units)

    def update(
        self,
        row: Row,
        features: Float64Array | None,
        base: float | None,
        y: float,
        said: float | None = None,
        scores: bytes | None = None,
        lag: int = 0,
    ) -> None:
        """Learn from a round whose outcome is `y`: the arguments of its forecast, what was `said`, and how late it is.

        Where it is not told what was said, the outcome is taken as known at once: what would be said now.
        """
        look = self._look(row, features, base)
        if not math.isfinite(y):
            raise InvalidInput(f"a label must be a finite number; got {y!r}")
        if said is None or scores is None:
            said, scores = self._value(look.combined), packed(look.combined - look.units)
        if len(scores) != 2 * len(self._rates):
            raise UnknownForecast("this forecast carries the scores of another learning hint; it has been changed")
        self._learn(look, y, said, unpacked(scores), lag)

    def run(
        self, rows: Rows, features: Float64Array | None, bases: Float64Array | None, y: Float64Array
    ) -> Float64Array:
        """Forecast and update a whole stream: the loop's numbers, and all of them or, on an error, none.

        The regression by itself, without the engine: a baseline. `features` has one row for each round.

        Examples
        --------
        >>> from swapcal.hints import OnlineRegression
        >>> from swapcal.hypotheses import Finite
        >>> from swapcal.properties import Mean
        >>> x, y = np.array([[1, 0], [0, 1]] * 50), np.array([0.2, 0.7] * 50)
        >>> state = OnlineRegression().start(Mean(), 2)
        >>> state.run(Finite(2).rows(x, 100), None, None, y)[-2:].round(2)
        array([0.2, 0.7])
        """
        labels, given = _numbers(y, "y"), None if bases is None else _numbers(bases, "bases")
        extras = None if features is None else _numbers(features, "features")
        self._check_stream(rows, extras, given, labels)
        forecasts = np.empty(len(labels))
        before = self.arrays()
        kernel = self.kernel()
        if kernel is not None:
            parts = (np.ascontiguousarray(part) for part in rows)
            kernel.run(*parts, extras, given, np.ascontiguousarray(labels), forecasts)
            return forecasts
        try:
            for t, label in enumerate(labels.tolist()):
                part = slice(rows.indptr[t], rows.indptr[t + 1])
                row = Row(rows.indices[part], rows.values[part])
                extra = None if extras is None else extras[t]
                look = self._look(row, extra, None if given is None else float(given[t]))
                forecasts[t] = said = self._value(look.combined)
                self._learn(look, label, said, unpacked(packed(look.combined - look.units)), 0)
        except BaseException:
            self.restore(before)
            raise
        return forecasts

    def arrays(self) -> dict[str, Float64Array]:
        """The complete state, as copies; `restore` continues from it bit for bit."""
        return {name: part.copy() for name, part in self._parts().items()}

    def restore(self, arrays: Mapping[str, Float64Array]) -> None:
        """Continue from what `arrays` returned for a state of the same configuration."""
        parts = self._parts()
        shapes = {name: part.shape for name, part in parts.items()}
        given = {name: np.shape(array) for name, array in arrays.items()}
        if given != shapes:
            raise StateFileError(f"these arrays are of another regression: expected shapes {shapes}, got {given}")
        found = {name: np.asarray(array, dtype=np.float64) for name, array in arrays.items()}
        # Squares of features have twice their digits. Written so that NaN is refused too.
        squares = ("variation", "totals")
        for limit, names in ((LARGEST**3, squares), (LARGEST, [name for name in found if name not in squares])):
            if not np.abs(np.concatenate([found[name].reshape(-1) for name in names])).max(initial=0.0) <= limit:
                named = ", ".join(names)
                raise StateFileError(f"this is not the state of a regression: its {named} are not finite, or too large")
        totals = found["totals"].tolist()
        del totals[_BASE_MEAN]
        if min(totals) < 0.0 or found["variation"].min(initial=0.0) < 0.0:
            raise StateFileError("this is not the state of a regression: a count or a sum of squares is negative")
        for name, part in parts.items():
            part[...] = found[name]
        self._inputs.scale()

    def kernel(self) -> Any:
        """The compiled twin over these arrays, or None where there is none."""
        if kernels.native is None or not self._property.kernel["property"]:
            return None
        return kernels.native.Regression({**self._property.kernel} | {"n_identity": self._n_identity}, self.buffers())

    def buffers(self) -> dict[str, Float64Array]:
        """The arrays themselves, flat, for kernels that change them in place; `inverse` follows from the others."""
        derived = {"rates": self._rates, "inverse": self._inputs.inverse}
        return {name: part.reshape(-1) for name, part in (self._parts() | derived).items()}

    def _parts(self) -> dict[str, Float64Array]:
        return {
            "dense": self._weights[: self._n_dense],
            "sparse": self._weights[self._n_dense :],
            "mean": self._inputs.mean,
            "variation": self._inputs.variation,
            "regrets": self._mixture.regrets,
            "squares": self._mixture.squares,
            "weights": self._mixture.weights,
            "totals": self._totals,
        }

    def _look(self, row: Row, features: Float64Array | None, base: float | None) -> _Look:
        """The experts' forecasts and all that a later update needs of them; changes nothing."""
        features = self._checked(row, features)
        unit, odds = self._start(base)
        known = None if base is None else odds
        squares = in_order(row.values * row.values)
        inputs = self._inputs.scaled(features, known, row.values, squares)
        positions = np.concatenate((self._always, row.indices + self._n_dense))
        rows = self._weights.take(positions, axis=0)
        linear = rows_in_order(rows * inputs[:, None]).tolist()
        cut = [_cut(unit + part) for part in linear[: self._n_identity]]
        # An expert that has learned nothing gives the base itself: the mixture has no scale below which it would take
        # the rounding errors of tanh and atanh for differences between experts.
        curved = [math.tanh(odds + part) if part else unit for part in linear[self._n_identity :]]
        units = np.array(cut + curved)
        return _Look(features, known, squares, positions, inputs, rows, units, self._mixture.combine(units))

    def _learn(self, look: _Look, y: float, said: float, apart: Float64Array, lag: int) -> None:
        """Everything that can fail, a user's own identification function, comes before the first change."""
        inputs, units = look.inputs, look.units
        v = float(self._property.identification(said, y))
        step = self._property.identification(self._middle + self._half * units, y) * self._rates

        totals = self._totals
        rounds, norms, errors, sizes, lags = totals[:_N_OWN_TOTALS].tolist()
        rounds, lags = rounds + 1.0, lags + lag
        self._mixture.learn(apart, v, rounds, lags)
        self._inputs.learn(look.features, look.base, len(inputs) - self._n_dense, look.squares)
        norm = in_order(inputs * inputs)
        norms, errors, sizes = norms + norm, errors + abs(y - said) / self._half, sizes + abs(v)
        totals[0], totals[1], totals[2], totals[3], totals[4] = rounds, norms, errors, sizes, lags
        scale = errors / sizes if sizes > 0.0 else 2.0
        step *= scale / max(norm, norms / rounds)
        # Positions are distinct, so no entry is written twice.
        self._weights[look.positions] = look.rows - inputs[:, None] * step

    def _checked(self, row: Row, features: Float64Array | None) -> Float64Array:
        """The features as an array, if everything in the round is in range."""
        indices, values = row
        if len(indices) and not 0 <= indices[0] <= indices[-1] < self._n_inputs:
            raise InvalidInput(f"context positions run from 0 to {self._n_inputs - 1}; got {indices.tolist()}")
        # Written so that NaN, whose comparisons are all false, is refused too; here and below.
        if len(indices) != len(values) or not _largest(values) <= LARGEST:
            raise InvalidInput(f"a context needs one finite value, at most {LARGEST}, for each position; got {row!r}")
        if features is None:
            features = _NOTHING
        elif type(features) is not np.ndarray or features.dtype.char != "d":
            features = _numbers(features, "features")
        if features.shape != (self._n_features,):
            raise InvalidInput(f"features must be a vector of length n_features={self._n_features}; got {features!r}")
        if not _largest(features) <= LARGEST:
            raise InvalidInput(f"features must be finite and at most {LARGEST} in size; got {features.tolist()}")
        return features

    def _check_stream(
        self, rows: Rows, features: Float64Array | None, bases: Float64Array | None, y: Float64Array
    ) -> None:
        """All rounds of a stream, before the first: kernels trust what they are given."""
        n_rounds = len(y) if y.ndim == 1 else 0
        ends = rows.indptr
        if y.ndim != 1 or ends.shape != (n_rounds + 1,) or (bases is not None and bases.shape != y.shape):
            shapes = (y.shape, ends.shape, None if bases is None else bases.shape)
            raise InvalidInput(f"y, rows and bases must be of one length; got shapes y, indptr, bases = {shapes}")
        if not (ends[0] == 0 and (ends[1:] >= ends[:-1]).all() and ends[-1] == len(rows.indices) == len(rows.values)):
            raise InvalidInput("rows must be compressed sparse rows: increasing indptr, one value for each position")
        if len(rows.indices) and not 0 <= rows.indices.min() <= rows.indices.max() < self._n_inputs:
            raise InvalidInput(f"context positions run from 0 to {self._n_inputs - 1}; rows go beyond")
        table = (n_rounds, self._n_features)
        if self._n_features if features is None else features.shape != table:
            got = None if features is None else features.shape
            raise InvalidInput(f"features must have shape {table}; got {got}")
        for name, numbers in (("contexts", rows.values), ("features", features), ("bases", bases), ("y", y)):
            limit = LARGEST if name in ("contexts", "features") else math.inf
            if numbers is not None and not (np.isfinite(numbers) & (np.abs(numbers) <= limit)).all():
                raise InvalidInput(f"{name} must be finite numbers, at most {limit:g} in size; some are not")

    def _start(self, base: float | None) -> tuple[float, float]:
        """The base forecast in units of [-1, 1], and half its log-odds."""
        if base is None:
            return 0.0, 0.0
        if not math.isfinite(base):
            raise InvalidInput(f"a base forecast must be a finite number, or None if there is none; got {base!r}")
        unit = _cut((base - self._middle) / self._half)
        return unit, math.atanh(min(max(unit, -_EDGE), _EDGE))

    def _value(self, unit: float) -> float:
        """A forecast in the property's units; rounding must not carry it past an end of the domain."""
        return min(max(self._middle + self._half * unit, self._low), self._high)


def _cut(unit: float) -> float:
    """`unit`, moved into [-1, 1]."""
    return -1.0 if unit < -1.0 else 1.0 if unit > 1.0 else unit


def _largest(values: Float64Array) -> float:
    """The largest size of an entry; NaN if there is one, 0 if there are none."""
    if not len(values):
        return 0.0
    sizes = np.abs(values)
    return float(sizes[sizes.argmax()])


def _numbers(values: object, name: str) -> Float64Array:
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"{name} must be numbers; got {values!r}") from None


# From the rate that solves least squares for the current round alone down to one that averages thousands of rounds.
# Factors of 2.5 are close enough: on the synthetic streams the mixture loses at most 0.3 % to the best fixed rate.
_RATES = tuple(2.5**-k for k in range(9))


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
    >>> from swapcal.protocols import Row
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

    def start(self, property: Elicitable, n_inputs: int) -> RegressionState:
        """A fresh state for contexts of length `n_inputs`."""
        if isinstance(n_inputs, bool) or not isinstance(n_inputs, int) or n_inputs < 0:
            raise InvalidInput(f"n_inputs must be a whole number, 0 or more; got {n_inputs!r}")
        low, high = property.domain
        if not (math.isfinite(high - low) and low < high):
            raise InvalidInput(
                f"a regression needs a finite domain of forecasts; that of {property!r} is [{low}, {high}]"
            )
        rates = np.array(_RATES if self.rates is None else self.rates, dtype=np.float64)
        identity = rates if self.link != "logistic" else rates[:0]
        logistic = rates if self.link != "identity" else rates[:0]
        return RegressionState(property, identity, logistic, n_features=self.n_features, n_inputs=n_inputs)


def _checked_rates(rates: Sequence[float]) -> tuple[float, ...]:
    try:
        values = tuple(float(rate) for rate in rates)
    except (TypeError, ValueError):
        values = ()
    if not values or not all(math.isfinite(rate) and rate > 0.0 for rate in values):
        raise InvalidInput(f"rates must be positive finite numbers, one or more, or None; got {rates!r}")
    return values

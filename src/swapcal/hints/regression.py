"""A hint that learns: the property's own regression, run beside the engine at every step size at once."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from swapcal.engine import kernels
from swapcal.engine.kernels import in_order, rows_in_order
from swapcal.errors import InvalidInput, StateFileError, UnknownForecast
from swapcal.learners import Model, Taught
from swapcal.properties.mean import power
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


class Mixture:
    r"""Polynomial weights on the regret against each expert (ML-Poly), scored by what was said.

    With the mixture's forecast u and expert k's forecast u_k *at the time of the forecast*, an outcome adds r_k = V(u,
    y) (u - u_k), and

    .. math:: w_k \propto \frac{(\sum_t r_k)_+}{B + \sum_t r_k^2}, \qquad B = \max_{t, k} r_k^2.

    If V is nondecreasing in the forecast, r_k is at least the difference of the losses of which V is the derivative.
    Where every outcome is known before the next forecast, the sum of w_k r_k over the experts is zero in every round,
    which is what bounds each total regret by the root of its own sum of squares, up to a factor in K and ln T. As r_k
    is linear in u_k, that holds for every fixed convex combination of experts too. Multiplying V or the forecasts by a
    constant changes nothing. Where no regret is positive the choice is free: the expert with the largest one is
    followed, the first among equals. O(K) a round.

    B is kept in an array of the caller's, of length 1.

    References
    ----------
    Gaillard, Stoltz, van Erven (2014), A second-order bound with excess losses, COLT, arXiv:1402.2044 (ML-Poly).
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

    def learn(self, apart: Float64Array, v: float) -> None:
        """Add one round: how far the mixture was above each expert, and V at the mixture."""
        r = v * apart
        self.regrets += r
        r *= r
        self.squares += r
        bound = max(float(self.bound[0]), float(r[r.argmax()]))
        self.bound[0] = bound
        best = self.regrets.argmax()
        if self.regrets[best] > 0.0 and bound > 0.0:
            # Not np.maximum, which leaves the sign of a zero open.
            self.weights.fill(0.0)
            np.copyto(self.weights, self.regrets, where=self.regrets > 0.0)
            self.weights /= np.add(self.squares, bound, out=r)
            total = in_order(self.weights)
            if total > 0.0:
                self.weights /= total
                return
        self.weights.fill(0.0)
        self.weights[best] = 1.0


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
# The experts beside the raw model, in this order: two filters with full matrices, four whose weights have their own
# pace, four step sizes.

# Prior variances of the filters without drift, in units of the prior.
FULL = (1.0, 0.03)
# Drift of the intercepts and of the other weights, of the filters with a variance for each weight.
DRIFTS = ((1e-5, 1e-5), (1e-3, 1e-3), (1e-3, 1e-6), (1e-1, 1e-6))
# Step sizes; the last SLOW of them correct the second filter instead of the model, so that small groups are heard.
RATES = (1.0, 0.16, 0.0256, 0.004)
SLOW = 2
_DRIFTS, _RATES = np.array(DRIFTS).T, np.array(RATES)
N_EXPERTS = 1 + len(FULL) + len(DRIFTS) + len(RATES)
# Outcomes that set the unit of priors; nothing is learned from them but that.
WARM_UP = 8
# More weights than this have variances of their own in the full filters, too.
MOST_FULL = 128

# Keeps log-odds finite: a billion to one.
_EDGE = 1e-9
# The least curvature of an event, and of V beside its size: what a first sample says too sharply.
_FLAT, _LEAST_SLOPE = 1e-6, 0.25
# Larger numbers could overflow when squared and summed.
LARGEST = 1e100
_NOTHING = np.empty(0)
# The totals of learned rounds: their number; sums of |s|^2, of |y - said|, |V|, V^2, and of secants of V; the unit of
# priors (0 before there is one); whether all outcomes were at the ends of the range; 1 + the last weight that was ever
# active; the property of all outcomes as one number, and its variance. Then what the parts keep.
ROUNDS, NORMS, ERRORS, SIZES, SQUARES, SLOPES, UNIT, ENDS, USED, CENTER, SPREAD = range(11)
_N_OWN_TOTALS = 11
_N_TOTALS = _N_OWN_TOTALS + N_TOTALS + 1
# The only total that may be negative: the mean of the base.
_BASE_MEAN = _N_OWN_TOTALS + 2


class _Look(NamedTuple):
    """A round before its outcome."""

    row: Row
    features: Float64Array
    base: float | None  # as an input: its log-odds
    squares: float  # the sum of squares of the context's entries
    positions: IntArray  # of the inputs among all weights
    inputs: Float64Array
    units: Float64Array  # the forecasts of the model and the experts, in units of the range
    combined: float


class RegressionState:
    """What an `OnlineRegression` has learned; made by its `start`.

    Outcomes may come late and in any order. Experts are scored by what they said, which a forecast carries; what is
    learned is learned from where they are now.

    Parameters
    ----------
    property
        What is forecast.
    n_features, n_inputs
        Lengths of the feature vector and of the context.
    most_full
        For how many weights there are full matrices.
    model
        One more expert: a learner of what V is at the base.

    Notes
    -----
    Sums run from left to right: over inputs in the order intercepts, base, features, context; over experts in their
    order. Exponentials and logarithms are those of the C library, one number at a time. So the compiled twin in
    ``cpp/regression.hpp`` gives the same bits. It works in the arrays of `buffers`, which are never replaced.

    Examples
    --------
    >>> from swapcal import Mean, OnlineRegression
    >>> from swapcal.protocols import Row
    >>> state = OnlineRegression(n_features=1).start(Mean(), 0)
    >>> nobody = Row(np.array([], dtype=np.int64), np.array([]))
    >>> for _ in range(50):
    ...     state.update(nobody, np.array([1.0]), None, 0.9)
    >>> round(state.forecast(nobody, np.array([1.0]), None), 2)
    0.9
    """

    def __init__(
        self, property: Elicitable, *, n_features: int, n_inputs: int, most_full: int, model: Model | None = None
    ) -> None:
        self._property = property
        self._taught = None if model is None else Taught(model)
        self._low, self._high = property.domain
        self._width = self._high - self._low
        self._power = int(property.kernel["power"])
        # Where V tells the outcome, outcomes at the ends of the range are events.
        self._tells = property.outcome(self._low, 0.0) is not None
        self._n_features, self._n_inputs = n_features, n_inputs
        self._n_dense = N_OWN + n_features
        self._always = np.arange(self._n_dense)
        n = self._n_dense + n_inputs
        self._n_full = min(n, most_full)
        # Of the full filters: weights, covariances of the first of them, and variances of the others.
        self._means = np.zeros((len(FULL), n))
        self._matrices = np.zeros((len(FULL), self._n_full, self._n_full))
        self._rest = np.zeros((len(FULL), n - self._n_full))
        # Weights of the other experts, and variances of those that have them.
        self._weights = np.zeros((n, len(DRIFTS) + len(RATES)))
        self._variances = np.zeros((n, len(DRIFTS)))
        self._totals = np.zeros(_N_TOTALS)
        self._totals[[ENDS, CENTER, SPREAD]] = 1.0, 0.5, 1.0
        self._inputs = Inputs(n_features, self._totals[_N_OWN_TOTALS:-1])
        self._mixture = Mixture(N_EXPERTS + (model is not None), self._totals[-1:])

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy's parts count in the copy's totals, as the original's do in its own."""
        self.__dict__.update(state)
        self._inputs.totals, self._mixture.bound = self._totals[_N_OWN_TOTALS:-1], self._totals[-1:]

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
    ) -> None:
        """Learn from a round whose outcome is `y`: the arguments of its forecast, and what was `said`.

        Where it is not told what was said, the outcome is taken as known at once: what would be said now.
        """
        look = self._look(row, features, base)
        if not math.isfinite(y):
            raise InvalidInput(f"a label must be a finite number; got {y!r}")
        if said is None or scores is None:
            said, scores = self._value(look.combined), packed(look.combined - look.units)
        if len(scores) != 2 * len(look.units):
            raise UnknownForecast("this forecast carries the scores of another learning hint; it has been changed")
        self._learn(look, y, said, unpacked(scores))

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
                self._learn(look, label, said, unpacked(packed(look.combined - look.units)))
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
        if self._taught is not None and found["taught"][0] == self._taught.n - 1.0:
            self._taught.undo()
        for name, part in parts.items():
            part[...] = found[name]
        self._inputs.scale()

    def dumped(self) -> bytes:
        """What a model has learned; nothing without one."""
        return b"" if self._taught is None else self._taught.dump()

    def load(self, data: bytes) -> None:
        """Take over what was `dumped`."""
        if self._taught is not None:
            self._taught = Taught.load(self._taught.learner, data)

    def rescaled(self, property: Elicitable, v: float) -> "RegressionState":
        """What was learned, for a wider range, in whose units V is `v` times what it was; log-odds start anew."""
        most_full = max(self._n_full, 1)
        model = None if self._taught is None else self._taught.learner
        wider = RegressionState(
            property, n_features=self._n_features, n_inputs=self._n_inputs, most_full=most_full, model=model
        )
        if self._totals[ENDS] > 0.0:  # outcomes were events, and are none any more
            return wider
        c, arrays = self._width / wider._width, self.arrays()
        powers = {"means": c, "slopes": c, "matrices": c * c, "rest": c * c, "variances": c * c}
        for name, factor in (powers | {"regrets": c * v, "squares": (c * v) ** 2}).items():
            arrays[name] *= factor
        totals = arrays["totals"]
        totals[[ERRORS, SIZES, SQUARES, SLOPES, UNIT, SPREAD]] *= (c, v, v * v, v / c, c * c, c * c)
        totals[CENTER] = c * totals[CENTER] + (self._low - wider._low) / wider._width
        totals[-1] *= (c * v) ** 2
        # The base counts by its log-odds, which are others now.
        totals[_N_OWN_TOTALS + 1 : _N_OWN_TOTALS + 4] = arrays["means"][:, N_OWN - 1] = arrays["slopes"][N_OWN - 1] = (
            0.0
        )
        wider.restore(arrays)
        return wider

    def kernel(self) -> Any:
        """The compiled twin over these arrays, or None where there is none."""
        if kernels.native is None or self._taught is not None or not self._property.kernel["property"]:
            return None
        return kernels.native.Regression({**self._property.kernel} | {"tells": self._tells}, self.buffers())

    def buffers(self) -> dict[str, Float64Array]:
        """The arrays themselves, flat, for kernels that change them in place; `inverse` follows from the others."""
        derived = {"inverse": self._inputs.inverse}
        return {name: part.reshape(-1) for name, part in (self._parts() | derived).items()}

    def _parts(self) -> dict[str, Float64Array]:
        return {
            "means": self._means,
            "matrices": self._matrices,
            "rest": self._rest,
            "slopes": self._weights,
            "variances": self._variances,
            "mean": self._inputs.mean,
            "variation": self._inputs.variation,
            "regrets": self._mixture.regrets,
            "squares": self._mixture.squares,
            "weights": self._mixture.weights,
            "totals": self._totals,
            **({} if self._taught is None else {"taught": np.array([float(self._taught.n)])}),
        }

    def _look(self, row: Row, features: Float64Array | None, base: float | None) -> _Look:
        """The experts' forecasts and all that a later update needs of them; changes nothing."""
        features = self._checked(row, features)
        unit, odds = self._start(base)
        known = None if base is None else odds
        squares = in_order(row.values * row.values)
        inputs = self._inputs.scaled(features, known, row.values, squares)
        positions = np.concatenate((self._always, row.indices + self._n_dense))
        full = [in_order(means.take(positions) * inputs) for means in self._means]
        linear = full + rows_in_order(self._weights.take(positions, axis=0) * inputs[:, None]).tolist()
        for k in range(len(linear) - SLOW, len(linear)):
            linear[k] = linear[1] + linear[k]
        logistic = self._totals[UNIT] > 0.0 and self._totals[ENDS] > 0.0
        # An expert that has learned nothing gives the base itself: the mixture has no scale below which it would take
        # the rounding errors of a link and its inverse for differences between experts.
        units = np.array([unit] + [_said(unit, odds, part, logistic) for part in linear])
        if self._taught is not None:
            # V at the base as the model expects it, by the slope of V: where V would be 0.
            v = self._taught.learner.predict(self._taught.state, self._case(unit, features, row))
            units = np.append(units, min(max(unit - v / self._slope(), 0.0), 1.0))
        return _Look(row, features, known, squares, positions, inputs, units, self._mixture.combine(units))

    def _case(self, unit: float, features: Float64Array, row: Row) -> Row:
        """What the model sees: the base, the features, and the context."""
        inputs = np.concatenate(([unit], features, row.values))
        return Row(np.concatenate((np.arange(1 + len(features)), row.indices + 1 + len(features))), inputs)

    def _slope(self) -> float:
        """How fast V rises with the forecast, on average, in units of the range."""
        rounds, slopes = float(self._totals[ROUNDS]), float(self._totals[SLOPES])
        return max(slopes / rounds, _LEAST_SLOPE) if slopes > 0.0 else 1.0

    def _learn(self, look: _Look, y: float, said: float, apart: Float64Array) -> None:
        """Everything that can fail, a user's own identification function, comes before the first change."""
        target, totals = self._property, self._totals
        rounds, norms, errors, sizes, squares, slopes = totals[: SLOPES + 1].tolist()
        v = float(target.identification(said, y))
        units = self._low + self._width * look.units
        gradients: Float64Array = np.asarray(target.identification(units[1:N_EXPERTS], y))
        center = float(totals[CENTER])
        v_center = float(target.identification(self._low + self._width * center, y))
        rounds, sizes, squares = rounds + 1.0, sizes + abs(v), squares + v * v
        errors += abs(float(power(y, self._power)) - said) / self._width
        reach, unit = errors / rounds, (said - self._low) / self._width
        low, high = max(unit - reach, 0.0), min(unit + reach, 1.0)
        if high > low:
            below, above = (float(target.identification(self._low + self._width * u, y)) for u in (low, high))
            slopes += (above - below) / (high - low)

        if self._taught is not None:
            case = self._case(float(look.units[0]), look.features, look.row)
            self._taught.update(case, float(target.identification(float(units[0]), y)))
        self._mixture.learn(apart, v)
        self._inputs.learn(look.features, look.base, len(look.inputs) - self._n_dense, look.squares)
        norm = in_order(look.inputs * look.inputs)
        norms += norm
        totals[: SLOPES + 1] = rounds, norms, errors, sizes, squares, slopes
        totals[USED] = max(float(totals[USED]), float(look.positions[-1] + 1))
        noise = squares / rounds
        slope = max(slopes / rounds, _LEAST_SLOPE * (sizes / rounds) / reach) if reach > 0.0 else 1.0
        if noise > 0.0:
            self._center(center, v_center, slope, noise)
        if totals[UNIT] == 0.0:
            self._warm_up(y, rounds, reach)
        elif noise > 0.0:
            step = (errors / sizes if sizes > 0.0 else 1.0) / max(norm, norms / rounds)
            self._learn_experts(look, gradients, slope, noise, step)

    def _center(self, center: float, v: float, slope: float, noise: float) -> None:
        """The property of all outcomes as one number: a filter with one weight."""
        totals = self._totals
        spread = float(totals[SPREAD])
        share = 1.0 / (1.0 + slope * slope / noise * spread)
        totals[CENTER] = min(max(center - share * (v * slope / noise) * spread, 0.0), 1.0)
        totals[SPREAD] = spread - share * (slope * slope / noise) * (spread * spread)

    def _warm_up(self, y: float, rounds: float, reach: float) -> None:
        """The first outcomes tell whether they are events, and set the unit of priors."""
        totals = self._totals
        if not self._tells or not (y == self._property.low or y == self._property.high):
            totals[ENDS] = 0.0
        if rounds >= WARM_UP:
            totals[UNIT] = 1.0 if totals[ENDS] > 0.0 else max(reach * reach, 1e-12)

    def _learn_experts(self, look: _Look, gradients: Float64Array, slope: float, noise: float, step: float) -> None:
        """Each from where it is: the filters by slope and size of V, the others by steps."""
        unit, logistic = float(self._totals[UNIT]), self._totals[ENDS] > 0.0
        n_full, n_filters = len(FULL), len(FULL) + len(DRIFTS)
        if logistic:
            p = look.units[1 : 1 + n_filters]
            curves = p * (1.0 - p)
            curves[curves < _FLAT] = _FLAT
            errors, step = gradients[:n_filters], 4.0 * step
        else:
            curves = np.full(n_filters, slope * slope / noise)
            errors = gradients[:n_filters] * (slope / noise)
        for f in range(n_full):
            self._learn_full(f, look, unit * FULL[f], float(curves[f]), float(errors[f]))
        inputs, positions = look.inputs, look.positions
        variances = self._variances.take(positions, axis=0)
        variances[variances[:, 0] == 0.0] = unit
        variances[N_OWN - 1 :] += _DRIFTS[1] * unit
        variances[: N_OWN - 1] += (_DRIFTS[0] * unit) * inputs[: N_OWN - 1, None]
        reach = variances * inputs[:, None]
        share = 1.0 / (1.0 + curves[n_full:] * rows_in_order(reach * inputs[:, None]))
        weights = self._weights.take(positions, axis=0)
        weights[:, : len(DRIFTS)] -= (share * errors[n_full:]) * reach
        variances -= (share * curves[n_full:]) * (reach * reach)
        steps = gradients[n_filters:] * (_RATES * step)
        weights[:, len(DRIFTS) :] -= inputs[:, None] * steps
        # Positions are distinct, so no entry is written twice.
        self._variances[positions], self._weights[positions] = variances, weights

    def _learn_full(self, f: int, look: _Look, prior: float, curve: float, error: float) -> None:
        """A filter with a full matrix for the first weights, and a variance for each of the others."""
        inputs, positions, matrix, means = look.inputs, look.positions, self._matrices[f], self._means[f]
        n = min(int(self._totals[USED]), self._n_full)
        inside = positions < n
        first, rest = positions[inside], positions[~inside]
        fresh = first[matrix[first, first] == 0.0]
        matrix[fresh, fresh] = prior
        variances = self._rest[f].take(rest - self._n_full)
        variances[variances == 0.0] = prior
        # Of the symmetric matrix the upper triangle is kept.
        whole = matrix[:n, :n] + np.triu(matrix[:n, :n], 1).T
        reach = rows_in_order(whole[first] * inputs[inside, None])
        far = variances * inputs[~inside]
        total = in_order(np.concatenate((reach[first], far)) * inputs)
        share = 1.0 / (1.0 + curve * max(total, 0.0))
        means[:n] -= (share * error) * reach
        means[rest] -= (share * error) * far
        matrix[:n, :n] -= np.triu(((share * curve) * reach)[:, None] * reach)
        self._rest[f][rest - self._n_full] = variances - (share * curve) * (far * far)

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
        """The base forecast in units of the range, and its log-odds; without one, what outcomes were so far."""
        if base is None:
            unit = float(self._totals[CENTER])
        elif not math.isfinite(base):
            raise InvalidInput(f"a base forecast must be a finite number, or None if there is none; got {base!r}")
        else:
            unit = min(max((base - self._low) / self._width, 0.0), 1.0)
        inside = min(max(unit, _EDGE), 1.0 - _EDGE)
        return unit, math.log(inside / (1.0 - inside))

    def _value(self, unit: float) -> float:
        """A forecast in the property's units; rounding must not carry it past an end of the domain."""
        return min(max(self._low + self._width * unit, self._low), self._high)


def _said(unit: float, odds: float, part: float, logistic: bool) -> float:
    """What an expert says, whose linear function of the inputs is `part`."""
    if part == 0.0:
        return unit
    if logistic:
        return 1.0 / (1.0 + math.exp(-(odds + part)))
    return min(max(unit + part, 0.0), 1.0)


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


@dataclass(frozen=True, kw_only=True)
class OnlineRegression:
    r"""Online regression of any elicitable property on context, features and the user's own forecast; nothing to tune.

    Parameters
    ----------
    n_features
        Number of extra dense features that come with each round.
    most_full
        For how many weights the two full filters keep all covariances; the other weights have a variance each. Memory
        and time of a round grow with its square.
    model
        One more expert, as `hint` makes it.

    Notes
    -----
    Ten experts stand beside the user's forecast b. Each says g(h(b) + <theta_k, s>) in units in which the property's
    domain is [0, 1]: g is the logistic function and h its inverse where V tells the outcome and the first outcomes were
    all at the ends of the range, as events are; else g cuts to [0, 1] and h is the identity. s are the inputs that
    `Inputs` brings to a common size: an intercept, the log-odds of b, the features, the context. All start at theta =
    0, so as the user's model.

    - Six are Kalman filters. With a the slope of the mean of V in the forecast (secants between forecasts that lie one
      mean error apart) and m the mean of V^2, an outcome is an observation with gradient V a / m and curvature a^2 / m:
      for a mean these are the residual and 1 over its variance, for a quantile the density f and level (1 - level). For
      events they are p - y and p (1 - p). Two have full covariance matrices, no drift, and wide and narrow priors; four
      have a variance for each weight, which drifts when it is active, so that each weight has its own pace.
    - Four take steps of four sizes along V s / max(|s|^2, mean of |s|^2). The two slowest start from the second filter
      instead of b: what it has shrunk away in small groups is learned there.

    `Mixture` combines them all, by V alone. The unit of priors is that of the first eight errors. Rounds without a base
    forecast (None) start from the property of all outcomes so far, a filter with one weight, and have an intercept of
    their own; all other weights are shared. Base forecasts outside the domain are moved to its end.

    Cost a round: O(active + n_features) for each expert and O(w^2) for w weights that were ever active, `most_full` of
    them at the most.

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
    Gaillard, Stoltz, van Erven (2014), A second-order bound with excess losses, COLT, arXiv:1402.2044 (ML-Poly). Ross,
    Mineiro, Langford (2013), Normalized online learning, UAI, arXiv:1305.6646.
    """

    n_features: int = 0
    most_full: int = MOST_FULL
    model: Model | None = None

    def __post_init__(self) -> None:
        for name in ("n_features", "most_full"):
            value, least = getattr(self, name), int(name == "most_full")
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InvalidInput(f"{name} must be a whole number, {least} or more; got {value!r}")

    def spec(self) -> Spec:
        """Plain data from which `from_spec` rebuilds the object."""
        model = {} if self.model is None else {"model": dict(self.model.spec())}
        return {"kind": "OnlineRegression", "n_features": self.n_features, "most_full": self.most_full, **model}

    @classmethod
    def from_spec(cls, spec: Spec) -> "OnlineRegression":
        """The object that `spec` describes."""
        arguments = {name: value for name, value in spec.items() if name != "kind"}
        if "model" in arguments:
            raise StateFileError(f"a state file holds no models; make {arguments['model']} again and pass it as hint=")
        if spec.get("kind") != "OnlineRegression" or not arguments.keys() <= {"n_features", "most_full"}:
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
        model = None
        if self.model is not None:
            model = Model(self.model.model, 1 + self.n_features + n_inputs, pickled=self.model.pickled)
        return RegressionState(
            property, n_features=self.n_features, n_inputs=n_inputs, most_full=self.most_full, model=model
        )


def hint(model: Any, n_features: int = 0, *, pickled: bool = False) -> OnlineRegression:
    """A model of river or scikit-learn as a learning hint: one more expert beside those of `OnlineRegression`.

    It learns what V is at your own forecast (or, without one, at the property of all outcomes so far): for a mean, the
    residual. The mixture follows it as far as it has been better. Late outcomes are learned when they come.

    Parameters
    ----------
    model : object
        With `learn_one` and `predict_one`, or `partial_fit` and `predict`: a regressor. Position 0 of what it sees is
        your forecast in units of the range, then come the features, then the context.
    n_features : int
        Number of features that come with each round.
    pickled : bool
        Whether states may be saved and read as pickles; reading one runs what is in it.

    Returns
    -------
    OnlineRegression
        For `Forecaster(..., hint=)`. It runs in Python.

    Examples
    --------
    >>> import swapcal as sc
    >>> from sklearn.linear_model import SGDRegressor
    >>> guide = sc.hint(SGDRegressor(random_state=0))
    >>> forecaster = sc.Forecaster("probability", groups=["carrier"], hint=guide, seed=1)
    >>> forecaster.update(forecaster.predict({"carrier": "UA"}, hint=0.2), 1)
    """
    return OnlineRegression(n_features=n_features, model=Model(model, 1, pickled=pickled))

"""The learning hint read aloud: scales, scores and mixture from the list of all learned rounds, filters entry by entry.

The oracle of `swapcal.hints`. Units are those in which the property's domain is [0, 1]. Expert 0 is the base itself;
then come two filters with all covariances, four with a variance for each weight, four that take steps.
"""

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from naive import total
from swapcal.protocols import Elicitable

PRIORS = [1.0, 0.03]
DRIFTS = [(1e-5, 1e-5), (1e-3, 1e-3), (1e-3, 1e-6), (1e-1, 1e-6)]
"""Of the intercepts, and of the other weights."""
RATES = [1.0, 0.16, 0.0256, 0.004]
LIMIT = 5.0
"""Standard deviations beyond which inputs are cut."""
WARM_UP = 8


def half_precision(x: float) -> float:
    """The upper half of a 32-bit float, rounded to even; as a forecast carries it."""
    mantissa, exponent = math.frexp(*struct.unpack("f", struct.pack("f", x)))
    return math.ldexp(round(mantissa * 256.0) / 256.0, exponent)


def cut(x: float, low: float, high: float) -> float:
    return min(max(x, low), high)


@dataclass(frozen=True)
class Said:
    """A round before its outcome."""

    x: list[float]
    features: list[float]
    base: float | None
    hint: float
    apart: list[float]
    """How far the hint was above each expert, in units, as a forecast carries it."""


@dataclass(frozen=True)
class Learned:
    """A round after its outcome."""

    said: Said
    v: float
    error: float
    at_an_end: bool
    secant: float
    norm: float
    """|s|^2, for the inputs s as they were scaled when the outcome came."""


@dataclass
class Filter:
    """A Kalman filter: covariances of weights below `full`, variances of the others, and how these drift."""

    full: int
    prior: float
    drift: tuple[float, float] = (0.0, 0.0)
    weights: dict[int, float] = field(default_factory=dict)
    covariance: dict[tuple[int, int], float] = field(default_factory=dict)

    def entry(self, i: int, j: int) -> float:
        return self.covariance.get((i, j), self.prior if i == j else 0.0)

    def learn(self, inputs: dict[int, float], error: float, curve: float, unit: float) -> None:
        """`inputs` are those of the intercept in force, of the dense ones, and of active functions."""
        if not self.covariance:
            self.prior *= unit
        for i in inputs:
            self.covariance[i, i] = self.entry(i, i) + self.drift[i > 1] * unit
        reach = {}
        for i in {i for pair in self.covariance for i in pair}:
            others = [j for j in inputs if i == j or max(i, j) < self.full]
            reach[i] = total([self.entry(i, j) * inputs[j] for j in others])
        share = 1.0 / (1.0 + curve * total([reach[i] * s for i, s in inputs.items()]))
        for i, far in reach.items():
            self.weights[i] = self.weights.get(i, 0.0) - share * error * far
            for j in reach:
                if i == j or max(i, j) < self.full:
                    self.covariance[i, j] = self.entry(i, j) - share * curve * far * reach[j]


@dataclass
class NaiveHint:
    """Weights are those of the intercepts with and without a base, the base, the features, the context."""

    target: Elicitable
    n_inputs: int
    n_features: int = 0
    full: int = 128
    learned: list[Learned] = field(default_factory=list)
    unit_of_priors: float = 0.0
    events: bool = False
    center: float = 0.5
    spread: float = 1.0

    def __post_init__(self) -> None:
        self.filters = [Filter(self.full, prior) for prior in PRIORS] + [Filter(0, 1.0, drift) for drift in DRIFTS]
        self.steps: list[dict[int, float]] = [{} for _ in RATES]

    @property
    def width(self) -> float:
        low, high = self.target.domain
        return high - low

    def value(self, unit: float) -> float:
        low, high = self.target.domain
        return cut(low + self.width * unit, low, high)

    def v(self, unit: float, y: float) -> float:
        return float(self.target.identification(self.target.domain[0] + self.width * unit, y))

    def start(self, base: float | None) -> float:
        return self.center if base is None else cut((base - self.target.domain[0]) / self.width, 0.0, 1.0)

    def odds(self, base: float | None) -> float:
        inside = cut(self.start(base), 1e-9, 1.0 - 1e-9)
        return math.log(inside / (1.0 - inside))

    def standardized(self, past: list[float], x: float) -> float:
        """In standard deviations from the mean of the learned rounds; 0 as long as nothing has varied."""
        mean = total(past) / max(len(past), 1)
        deviation = math.sqrt(total([(each - mean) ** 2 for each in past]) / max(len(past), 1))
        return cut((x - mean) / deviation, -LIMIT, LIMIT) if deviation > 1e-12 * abs(mean) else 0.0

    def inputs(self, x: Sequence[float], features: Sequence[float], base: float | None) -> dict[int, float]:
        """One intercept, the base, all features, and functions that are not 0."""
        rounds = [each.said for each in self.learned]
        bases = [self.odds(each.base) for each in rounds if each.base is not None]
        scaled = {1: 1.0, 2: 0.0} if base is None else {0: 1.0, 2: self.standardized(bases, self.odds(base))}
        for j, feature in enumerate(features):
            scaled[3 + j] = self.standardized([each.features[j] for each in rounds], feature)
        entries = [value for each in [*(each.x for each in rounds), x] for value in each if value != 0.0]
        size = math.sqrt(total([value * value for value in entries]) / max(len(entries), 1))
        return scaled | {3 + len(features) + j: value / size for j, value in enumerate(x) if value != 0.0}

    def units(self, inputs: dict[int, float], base: float | None) -> list[float]:
        """What each expert says; the last two add to the second filter."""
        each = [f.weights for f in self.filters] + self.steps
        parts = [total([weights.get(i, 0.0) * s for i, s in inputs.items()]) for weights in each]
        parts[-2:] = [parts[1] + part for part in parts[-2:]]
        start, logistic = self.start(base), self.events and self.unit_of_priors > 0.0
        units = [start]
        for part in parts:
            if part and logistic:
                units.append(1.0 / (1.0 + math.exp(-self.odds(base) - part)))
            else:
                units.append(cut(start + part, 0.0, 1.0))
        return units

    def mixture(self) -> list[float]:
        """The weights of the experts: polynomial in their regrets."""
        regrets = [[each.v * each.said.apart[k] for each in self.learned] for k in range(11)]
        squares = [total([r * r for r in each]) for each in regrets]
        largest = max([r * r for each in regrets for r in each], default=0.0)
        ahead = [total(each) for each in regrets]
        if max(ahead) > 0.0:
            raw = [max(a, 0.0) / (largest + square) for a, square in zip(ahead, squares, strict=True)]
            return [each / total(raw) for each in raw]
        return [float(k == ahead.index(max(ahead))) for k in range(11)]

    def say(self, x: Sequence[float], features: Sequence[float], base: float | None) -> Said:
        units = self.units(self.inputs(x, features, base), base)
        combined = total([w * u for w, u in zip(self.mixture(), units, strict=True)])
        apart = [half_precision(combined - u) for u in units]
        return Said([*x], [*features], base, self.value(combined), apart)

    def mean(self, values: list[float]) -> float:
        return total(values) / len(self.learned)

    def learn(self, said: Said, y: float) -> None:
        """Experts are scored by what they said, and learn from where they are now."""
        inputs = self.inputs(said.x, said.features, said.base)
        gradients = [self.v(u, y) for u in self.units(inputs, said.base)[1:]]
        units = self.units(inputs, said.base)[1:]
        v, hint = float(self.target.identification(said.hint, y)), (said.hint - self.target.domain[0]) / self.width
        error = abs(y ** int(self.target.kernel["power"]) - said.hint) / self.width
        reach = total([each.error for each in self.learned] + [error]) / (len(self.learned) + 1)
        low, high = max(hint - reach, 0.0), min(hint + reach, 1.0)
        secant = (self.v(high, y) - self.v(low, y)) / (high - low) if high > low else 0.0
        at_an_end = y in (self.target.low, self.target.high)
        norm = total([s * s for s in inputs.values()])
        self.learned.append(Learned(said, v, error, at_an_end, secant, norm))

        noise, size = self.mean([each.v**2 for each in self.learned]), self.mean([abs(each.v) for each in self.learned])
        slope = max(self.mean([each.secant for each in self.learned]), 0.25 * size / reach) if reach else 1.0
        if noise:
            gain = self.spread / (1.0 + self.spread * slope**2 / noise)
            self.center = cut(self.center - gain * slope / noise * self.v(self.center, y), 0.0, 1.0)
            self.spread = gain
        if self.unit_of_priors == 0.0:
            if len(self.learned) == WARM_UP:
                told = self.target.outcome(self.target.domain[0], 0.0) is not None
                self.events = told and all(each.at_an_end for each in self.learned)
                self.unit_of_priors = 1.0 if self.events else max(reach**2, 1e-12)
        elif noise:
            for f, gradient, u in zip(self.filters, gradients, units, strict=False):
                curve = max(u * (1.0 - u), 1e-6) if self.events else slope**2 / noise
                f.learn(inputs, gradient if self.events else gradient * slope / noise, curve, self.unit_of_priors)
            step = (reach / size if size else 1.0) / max(norm, self.mean([each.norm for each in self.learned]))
            for weights, rate, gradient in zip(self.steps, RATES, gradients[-4:], strict=True):
                for i, s in inputs.items():
                    weights[i] = weights.get(i, 0.0) - (4.0 if self.events else 1.0) * rate * step * gradient * s

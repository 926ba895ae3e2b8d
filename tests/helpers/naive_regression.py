"""The learning hint read aloud: scales, scores and mixture from the list of all learned rounds, steps one by one.

The oracle of `swapcal.hints`. Units are those in which the property's domain is [-1, 1]. Expert 0 is the base itself;
then come those with the identity as their link, then those with the hyperbolic tangent.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from naive import total
from swapcal.protocols import Elicitable

RATES = [2.5**-k for k in range(9)]
LIMIT = 5.0
"""Standard deviations beyond which inputs are cut."""
EDGE = 1.0 - 2e-12
CAUTION = 2.0


def half_precision(x: float) -> float:
    """The nearest number of eight binary digits, the even one of two; as a forecast carries it."""
    mantissa, exponent = math.frexp(x)
    return math.ldexp(round(mantissa * 256.0) / 256.0, exponent)


def cut(x: float, limit: float) -> float:
    return min(max(x, -limit), limit)


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
    lag: int
    norm: float
    """|s|^2, for the inputs s as they were scaled when the outcome came."""


@dataclass
class NaiveRegression:
    """Weights of each expert: of the intercepts with and without a base, the base, the features, the context."""

    target: Elicitable
    n_inputs: int
    n_features: int = 0
    rates: Sequence[float] = tuple(RATES)
    learned: list[Learned] = field(default_factory=list)
    weights: list[list[float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.weights = [[0.0] * (3 + self.n_features + self.n_inputs) for _ in range(1 + 2 * len(self.rates))]

    @property
    def all_rates(self) -> list[float]:
        return [0.0, *self.rates, *self.rates]

    @property
    def half(self) -> float:
        low, high = self.target.domain
        return 0.5 * (high - low)

    def value(self, unit: float) -> float:
        low, high = self.target.domain
        return min(max(low + self.half + self.half * unit, low), high)

    def unit(self, base: float | None) -> float:
        return 0.0 if base is None else cut((base - self.target.domain[0] - self.half) / self.half, 1.0)

    def odds(self, base: float | None) -> float:
        return math.atanh(cut(self.unit(base), EDGE))

    def standardized(self, past: list[float], x: float) -> float:
        """In standard deviations from the mean of the learned rounds; 0 as long as nothing has varied."""
        mean = total(past) / max(len(past), 1)
        deviation = math.sqrt(total([(each - mean) ** 2 for each in past]) / max(len(past), 1))
        return cut((x - mean) / deviation, LIMIT) if deviation > 1e-12 * abs(mean) else 0.0

    def inputs(self, x: Sequence[float], features: Sequence[float], base: float | None) -> list[float]:
        rounds = [each.said for each in self.learned]
        bases = [self.odds(each.base) for each in rounds if each.base is not None]
        scaled = [0.0, 1.0, 0.0] if base is None else [1.0, 0.0, self.standardized(bases, self.odds(base))]
        for j, feature in enumerate(features):
            scaled.append(self.standardized([each.features[j] for each in rounds], feature))
        entries = [value for each in [*(each.x for each in rounds), x] for value in each if value != 0.0]
        squares = total([value * value for value in entries])
        return [*scaled, *(value * math.sqrt(len(entries) / squares) if value else 0.0 for value in x)]

    def units(self, inputs: list[float], base: float | None) -> list[float]:
        units = []
        for k, weights in enumerate(self.weights):
            part = total([w * s for w, s in zip(weights, inputs, strict=True)])
            if k <= len(self.rates):
                units.append(cut(self.unit(base) + part, 1.0))
            else:
                units.append(math.tanh(self.odds(base) + part) if part else self.unit(base))
        return units

    def mixture(self) -> list[float]:
        """The weights of the experts: polynomial in their regrets, less a margin for what is still out."""
        n_experts, n, rounds = 1 + 2 * len(self.rates), len(self.learned), self.learned
        regrets = [[each.v * each.said.apart[k] for each in rounds] for k in range(n_experts)]
        squares = [total([r * r for r in each]) for each in regrets]
        largest = max([r * r for each in regrets for r in each], default=0.0)
        lags = sum(each.lag for each in rounds)
        ahead = [total(each) for each in regrets]
        if lags:
            margins = [CAUTION * math.sqrt(lags / n * square / n) for square in squares]
            ahead = [ahead[0], *(a - margin for a, margin in zip(ahead[1:], margins[1:], strict=True))]
        if max(ahead) > 0.0:
            raw = [max(a, 0.0) / (largest + square) for a, square in zip(ahead, squares, strict=True)]
            return [each / total(raw) for each in raw]
        followed = 0 if lags else ahead.index(max(ahead))
        return [float(k == followed) for k in range(n_experts)]

    def say(self, x: Sequence[float], features: Sequence[float], base: float | None) -> Said:
        units = self.units(self.inputs(x, features, base), base)
        combined = total([w * u for w, u in zip(self.mixture(), units, strict=True)])
        apart = [half_precision(combined - u) for u in units]
        return Said([*x], [*features], base, self.value(combined), apart)

    def learn(self, said: Said, y: float, lag: int) -> None:
        """Experts are scored by what they said, and step from where they are now."""
        inputs = self.inputs(said.x, said.features, said.base)
        units, norm = self.units(inputs, said.base), total([s * s for s in inputs])
        v = float(self.target.identification(said.hint, y))
        self.learned.append(Learned(said, v, abs(y - said.hint) / self.half, lag, norm))
        sizes = total([abs(each.v) for each in self.learned])
        unit = total([each.error for each in self.learned]) / sizes if sizes else 2.0
        size = unit / max(norm, total([each.norm for each in self.learned]) / len(self.learned))
        for weights, rate, u in zip(self.weights, self.all_rates, units, strict=True):
            step = rate * size * float(self.target.identification(self.value(u), y))
            for j, s in enumerate(inputs):
                weights[j] -= step * s

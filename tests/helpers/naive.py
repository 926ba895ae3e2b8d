"""A slow, obvious forecaster: the rules read aloud, every number computed from the list of all past rounds.

The oracle of `swapcal.forecaster`. It shares the draw and the property's V with the package and nothing else, keeps no
sums, and looks at all bins in every round.

Notation: N bins of the domain; a bin is known by its mid-point, the exact fraction (2i + 1) / 2N of the domain, so that
cutting each bin into three leaves a middle bin with the same name and the same past. x_j is the value of function j, v
the value of V at the point where evidence is taken, g = x_j v a gain, S the sum of gains, C of their sizes, Q of their
squares, n the visits of a bin. Phi > 0 says that forecasts of the bin were too high.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import chain, count

from scipy.integrate import quad

from swapcal.engine.randomness import uniform
from swapcal.roles import Elicitable

Past = dict[Fraction, list[tuple[list[float], float]]]
"""The rounds of each bin, by its mid-point: context and v."""

Weights = Callable[[list[list[float]], int], list[float]]
"""From the gains of each function in a bin and the bin's visits to the factor of each x_j in Phi."""


def total(terms: Sequence[float]) -> float:
    """From left to right; the built-in `sum` compensates its rounding in some versions of Python."""
    result = 0.0
    for term in terms:
        result += term
    return result


def opposite(a: float, b: float) -> bool:
    return a < 0.0 < b or b < 0.0 < a


# The potentials, each as its defining formula.


def ada_normal_hedge(gains: list[list[float]], n: int) -> list[float]:
    """w(S, C) - w(-S, C), the weights of the experts f and -f."""

    def potential(R: float, C: float) -> float:
        return math.exp(max(R, 0.0) ** 2 / (3.0 * C))

    def w(R: float, C: float) -> float:
        return (potential(R + 1.0, C + 1.0) - potential(R - 1.0, C + 1.0)) / 2.0

    weights = []
    for each in gains:
        S, C = total(each), total([abs(g) for g in each])
        weights.append(w(S, C) - w(-S, C))
    return weights


def exponential(gains: list[list[float]], n: int) -> list[float]:
    """Sixteen rates eta = 1/2, 1/4, ..., each with the experts f and -f, psi(eta) = -ln(1 - eta) - eta."""

    def expert(each: list[float]) -> float:
        S, Q = total(each), total([g * g for g in each])
        rates = [2.0**-k for k in range(1, 17)]
        return total([eta * math.exp(eta * S - (-math.log1p(-eta) - eta) * Q) for eta in rates])

    return [expert(each) - expert([-g for g in each]) for each in gains]


@cache
def _squint(S: float, Q: float) -> float:
    def difference(eta: float) -> float:
        # exp(eta S - eta^2 Q) - exp(-eta S - eta^2 Q), without the cancellation
        return 2.0 * math.sinh(eta * S) * math.exp(-eta * eta * Q)

    return float(quad(difference, 0.0, 0.5, epsabs=0.0, epsrel=1e-12, limit=200)[0])


def squint(gains: list[list[float]], n: int) -> list[float]:
    """The integral of exp(eta S - eta^2 Q) over [0, 1/2] for f, less that for -f, by quadrature."""
    return [_squint(total(each), total([g * g for g in each])) for each in gains]


def p_norm(p: float) -> Weights:
    """The gradient of half the squared p-norm of the vector S, over n + 1."""

    def weights(gains: list[list[float]], n: int) -> list[float]:
        S = [total(each) for each in gains]
        norm = total([abs(s) ** p for s in S]) ** (1.0 / p)
        return [math.copysign(norm ** (2.0 - p) * abs(s) ** (p - 1.0) / (n + 1), s) if s else 0.0 for s in S]

    return weights


def linear(gains: list[list[float]], n: int) -> list[float]:
    """S / (n + 1): the swap error itself is the potential."""
    return [total(each) / (n + 1) for each in gains]


# The logarithm of a potential at (S, C) or (S, Q), or what bounds it, by which a hint is trusted.


def ada_normal_hedge_level(each: list[float]) -> float:
    S, C = total(each), total([abs(g) for g in each])
    return S * S / (3.0 * C) if C else 0.0


def exponential_level(each: list[float]) -> float:
    """The largest eta S - eta^2 Q / 2 over all eta."""
    S, Q = total(each), total([g * g for g in each])
    return S * S / (2.0 * Q) if Q else 0.0


def squint_level(each: list[float]) -> float:
    """The largest eta S - eta^2 Q over all eta."""
    S, Q = total(each), total([g * g for g in each])
    return S * S / (4.0 * Q) if Q else 0.0


@dataclass(frozen=True)
class Choice:
    """What a round plays: bins by their number in the grid of that round, and where the evidence is taken."""

    lower: int
    upper: int
    p_lower: float
    evidence_at: float | None
    """None: at the forecast, which is a mid-point."""

    trusted: bool = False


@dataclass(frozen=True)
class Opened:
    """A round that waits for its outcome."""

    bin: int
    middle: Fraction
    forecast: float
    choice: Choice
    x: list[float]
    hint: float | None
    evidence_at: float


@dataclass
class Naive:
    """The forecaster. `x` is always the dense vector of all functions; level sets of the hint are added here."""

    property: Elicitable
    n: int
    weights: Weights
    level: Callable[[list[float]], float] | None
    seed: int
    n_bins: int
    anytime: bool = False
    n_levels: int = 10
    trust: float = 1.0 / 3.0
    past: Past = field(default_factory=dict)
    hint_past: Past = field(default_factory=dict)
    """What the hint would have done by itself: each round in the bin in which the hint lay, with V at its mid-point."""

    n_opened: int = 0
    n_rounds: int = 0

    def share(self) -> float:
        """N is this times T^(1/3): 0.75 rho^(2/3), with 1.54 for a density that nobody knows, and at most 4."""
        rho = self.property.lipschitz
        return min(0.75 * math.pow(1.54 if rho is None else max(rho, 1.0), 2.0 / 3.0), 4.0)

    def border(self, i: int) -> float:
        low, high = self.property.domain
        return low + (high - low) * (i / self.n_bins)

    def middle(self, i: int) -> float:
        low, high = self.property.domain
        return low + (high - low) * float(self.name(i))

    def name(self, i: int) -> Fraction:
        return Fraction(2 * i + 1, 2 * self.n_bins)

    def home(self, hint: float) -> int:
        """The bin in which the hint lies."""
        return bisect_right([self.border(i) for i in range(1, self.n_bins)], hint)

    def gains(self, i: int, past: Past | None = None) -> list[list[float]]:
        visits = (self.past if past is None else past).get(self.name(i), [])
        return [[x[j] * v for x, v in visits] for j in range(self.n + self.n_levels)]

    def terms(self, i: int, x: list[float]) -> list[float]:
        """The summands of Phi of bin i."""
        visits = len(self.past.get(self.name(i), []))
        return [w * value for w, value in zip(self.weights(self.gains(i), visits), x, strict=True)]

    def context(self, x: Sequence[float], hint: float | None) -> list[float]:
        """The functions' values, and 1 for the level set in which the hint lies."""
        levels = [0.0] * self.n_levels
        if hint is not None and self.n_levels:
            low, high = self.property.domain
            ends = [low + (high - low) * (k / self.n_levels) for k in range(1, self.n_levels)]
            levels[bisect_right(ends, hint)] = 1.0
        return [*map(float, x), *levels]

    def choose(self, x: list[float], hint: float | None) -> Choice:
        phi = [total(self.terms(i, x)) for i in range(self.n_bins)]
        if hint is None:
            return self.without_hint(phi)
        rounded = self.at_its_word(phi, x, hint)
        return self.near(phi, hint) if rounded is None else Choice(rounded, rounded, 1.0, None, trusted=True)

    def at_its_word(self, phi: list[float], x: list[float], hint: float) -> int | None:
        """The bin of a trusted hint: its own, or the one on the hint's other side if that takes bias away."""
        home = self.home(hint)
        if not self.is_small(self.hint_past, home, x, self.trust) or not self.is_small(
            self.past, home, x, 2.0 * self.trust
        ):
            return None
        above = self.middle(home) > hint
        other = home - 1 if above else home + 1
        # If the hint is right, V is positive on average above it: a bin there with Phi > 0 would get worse, one below
        # with Phi >= 0 would not.
        worse = phi[home] > 0.0 if above else phi[home] < 0.0 and self.middle(home) < hint
        if worse and self.levels(self.past, home, x) > 1.0 / 3.0 and 0 <= other < self.n_bins:
            heals = phi[other] >= 0.0 if above else phi[other] <= 0.0
            if heals and self.is_small(self.past, other, x, 2.0 * self.trust):
                return other
        return home

    def levels(self, past: Past, i: int, x: list[float]) -> float:
        """The largest level of an active function; 0 if there is none."""
        assert self.level is not None
        active = [each for each, value in zip(self.gains(i, past), x, strict=True) if value != 0.0]
        return max([self.level(each) for each in active], default=0.0)

    def is_small(self, past: Past, i: int, x: list[float], power: float) -> bool:
        """Whether no active function's potential in the bin exceeds (e n)^power; never with a quadratic potential."""
        if self.level is None or self.trust == 0.0:
            return False
        n = max(len(past.get(self.name(i), [])), 1)
        return self.levels(past, i, x) <= power * (1.0 + math.log(n))

    def without_hint(self, phi: list[float]) -> Choice:
        last = self.n_bins - 1
        if phi[0] >= 0.0:
            return self.zero(0) if phi[0] == 0.0 else self.end(positive=True)
        if phi[last] <= 0.0:
            return self.zero(last) if phi[last] == 0.0 else self.end(positive=False)
        return self.between(phi, 0, last)

    def near(self, phi: list[float], hint: float) -> Choice:
        """The mid-points around the hint; then left and right in turn, by 1, 1, 1, 1, 2, 4, 8, ... bins.

        If the lowest bin has been seen and its forecasts were too high, or the highest and they were too low, that bin
        is played before there is another turn.
        """
        last = self.n_bins - 1
        at_or_below = bisect_right([self.middle(i) for i in range(self.n_bins)], hint) - 1
        left, right = max(at_or_below, 0), min(at_or_below + 1, last)
        zeros = [i for i in (left, right) if phi[i] == 0.0]
        if zeros:
            return self.zero(min(zeros, key=lambda i: abs(hint - self.middle(i))))
        if opposite(phi[left], phi[right]):
            return self.between(phi, left, right)
        seen = {left, right}
        for step in chain([1, 1, 1, 1], (2**k for k in count(1))):
            if 0 in seen and phi[0] > 0.0:
                return self.end(positive=True)
            if last in seen and phi[last] < 0.0:
                return self.end(positive=False)
            # In one turn the two sides look equally far, so that neither is preferred.
            for inner, outer in ((min(seen), max(min(seen) - step, 0)), (max(seen), min(max(seen) + step, last))):
                if phi[outer] == 0.0:
                    return self.zero(outer)
                if opposite(phi[outer], phi[inner]):
                    return self.between(phi, min(outer, inner), max(outer, inner))
                seen.add(outer)
        raise AssertionError("steps that double reach both ends, and the evidence there points outward at one of them")

    def between(self, phi: list[float], left: int, right: int) -> Choice:
        """Halve until two neighbors of opposite signs are left, or a zero is met."""
        while right - left > 1:
            middle = (left + right) // 2
            if phi[middle] == 0.0:
                return self.zero(middle)
            if opposite(phi[left], phi[middle]):
                right = middle
            else:
                left = middle
        p_lower = abs(phi[right]) / (abs(phi[left]) + abs(phi[right]))
        down = phi[left] > 0.0 > phi[right]
        return Choice(left, right, p_lower, None if down and self.property.monotone else self.border(right))

    def zero(self, i: int) -> Choice:
        return Choice(i, i, 1.0, None)

    def end(self, *, positive: bool) -> Choice:
        i = 0 if positive else self.n_bins - 1
        return Choice(i, i, 1.0, self.property.domain[0] if positive else self.property.domain[1])

    def predict(self, x: Sequence[float], hint: float | None = None) -> Opened:
        context = self.context(x, hint)
        choice = self.choose(context, hint)
        played = choice.lower if uniform(self.seed, self.n_opened) < choice.p_lower else choice.upper
        self.n_opened += 1
        forecast = self.middle(played)
        at = forecast if choice.evidence_at is None else choice.evidence_at
        return Opened(played, self.name(played), forecast, choice, context, hint, at)

    def update(self, opened: Opened, y: float) -> None:
        v = float(self.property.identification(opened.evidence_at, y))
        self.past.setdefault(opened.middle, []).append((opened.x, v))
        if opened.hint is not None:
            home = self.home(opened.hint)
            v_hint = float(self.property.identification(self.middle(home), y))
            self.hint_past.setdefault(self.name(home), []).append((opened.x, v_hint))
        self.n_rounds += 1
        # share T^(1/3) bins are right for T rounds; three times as many when that is the square root of 3 times N.
        if self.anytime and self.share() * self.n_rounds ** (1.0 / 3.0) >= math.sqrt(3.0) * self.n_bins:
            self.n_bins *= 3

"""A slow, obvious forecaster: the rules read aloud, every number computed from the list of all past rounds.

The oracle of `swapcal.forecaster`. It shares the draw and the property's V with the package and nothing else, keeps no
sums, and looks at all values in every round.

Notation: x_j is the value of function j, v the value of V at the forecast, e at the point where evidence is taken, g =
x_j e a gain, S the sum of gains, C of their sizes, Q of their squares, n the visits of a value. Phi > 0 says that
forecasts of the value were too high. A gap lies between two neighbors, or between an end of the domain and its
neighbor; it is as old as the younger of the two.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from scipy.integrate import quad

from swapcal.engine.kernels import uniform
from swapcal.protocols import Elicitable

FIRST = 11
"""Values to start with."""
SPEND = 1.5
"""What values that hints have put there may cost in swap error."""
NEAR = 0.01
"""So near, relative to the nearer end, a value serves a hint."""
STEEP = 0.5
"""The least slope of V is so many times its mean size, over the mean distance of outcomes."""
TRUSTED_CUT, CUT = 2.0, 16.0
"""A gap is cut when its rounding, squared, is more than so many times its noise."""
FLOOR = 0.002
"""... and not before n w^2 is so many times x (1 - x)."""
SHARE_AT_ENDS = 0.2
"""At an end, so much of the largest V is taken off the rounding."""
DEAR = 0.05
"""Where rounding a hint costs this share of its loss, the gap is cut as above; for half of it, at twice the noise."""
SOONEST = 0.25
"""No sooner than at this part of the noise."""
WIDE = 0.25
"""A gap wider than this part of the way from its middle to the nearer end is cut no later."""
NOISE = 0.05
"""Level from which a trusted hint is rounded to the side that heals."""
CLEAN = 2.0
"""Squared standard errors, for each 1 + ln n, that a clean record may show."""

Weights = Callable[[list[list[float]], int], list[float]]
"""From the gains of each function at a value and the value's visits to the factor of each x_j in Phi."""


def total(terms: Sequence[float]) -> float:
    """From left to right; the built-in `sum` compensates its rounding in some versions of Python."""
    result = 0.0
    for term in terms:
        result += term
    return result


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


def length_and_spread(gains: list[list[float]]) -> tuple[float, float]:
    """Of a block: the length of the vector of sums, and the sum over rounds of the lengths of its gains."""
    norm = math.sqrt(total([total(each) ** 2 for each in gains]))
    return norm, total([math.sqrt(total([g * g for g in one])) for one in zip(*gains, strict=True)])


def one_block(levels: int) -> Weights:
    """All functions but the last `levels` are one block: the weight of its length, in the direction of its sums."""

    def weights(gains: list[list[float]], n: int) -> list[float]:
        own = gains[: len(gains) - levels]
        norm, C = length_and_spread(own)

        def potential(R: float, C: float) -> float:
            return math.exp(max(R, 0.0) ** 2 / (3.0 * C))

        def w(R: float, C: float) -> float:
            return (potential(R + 1.0, C + 1.0) - potential(R - 1.0, C + 1.0)) / 2.0

        factor = (w(norm, C) - w(-norm, C)) / norm if norm else 0.0
        return [factor * total(each) for each in own] + ada_normal_hedge(gains[len(own) :], n)

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
class Quadratic:
    """What the drift of a quadratic potential needs: the squared radius of contexts, and the norm."""

    radius: float
    norm: Callable[[list[list[float]]], float]
    """Of the evidence, from the gains of each function."""


def p_norm_of_sums(p: float) -> Callable[[list[list[float]]], float]:
    return lambda gains: total([abs(total(each)) ** p for each in gains]) ** (1.0 / p)


@dataclass(frozen=True)
class Play:
    """What a round plays: two neighbors or twice the same value, where the evidence is taken, and how it was found."""

    lower: float
    upper: float
    p_lower: float
    evidence_at: float
    kind: str
    phi_lower: float = 0.0
    phi_upper: float = 0.0


@dataclass(frozen=True)
class Opened:
    """A round that waits for its outcome."""

    t: int
    x: list[float]
    hint: float | None
    play: Play
    forecast: float
    other: float
    phi: float
    """The evidence that the draw has canceled."""
    known: int
    """Outcomes that had been learned before it."""

    @property
    def probability(self) -> float:
        return self.play.p_lower if self.forecast == self.play.lower else 1.0 - self.play.p_lower


@dataclass(frozen=True)
class Done:
    """A round that has had its outcome."""

    opened: Opened
    v: float
    e: float
    v_hint: float | None
    accused: float | None
    """A point of the gap that was too wide for this round, by `rounding`, where outcomes had `noise`."""

    rounding: float
    noise: float
    cost: float
    """What rounding a trusted hint costs if the hint is right, beside the hint's own loss."""

    lost: float
    drift: float
    y: float


@dataclass
class Naive:
    """The forecaster. `x` is always the dense vector of all functions; level sets of the hint are added here."""

    target: Elicitable
    n: int
    weights: Weights
    level: Callable[[list[float]], float] | None
    seed: int
    bins: int | None = None
    n_levels: int = 10
    trust: float = 0.25
    quadratic: Quadratic | None = None
    block: bool = False
    """Whether the functions of the class are one block, and only the level sets functions by themselves."""
    first_size: float = 1.0
    """How large V is taken to be before the first outcome."""

    scale_free: bool = False
    """Whether evidence is weighed in units of the size of V."""

    curvature: float = 0.5
    """The loss of p at y is so many times (p - y) V(p, y)."""

    born: dict[float, int] = field(default_factory=dict)
    """Each value with the number of rounds that had had their outcome when it appeared."""

    added: int = 0
    """How many of them hints have put there."""

    n_opened: int = 0
    waiting: dict[int, Opened] = field(default_factory=dict)
    done: list[Done] = field(default_factory=list)
    peak: float = 0.0

    def __post_init__(self) -> None:
        if self.bins is not None:
            self.spread(self.bins)

    # The size of V

    def size(self, known: int | None = None) -> float:
        """The first size, doubled until no |V| at an evidence point or a hint of the outcomes `known` exceeds it."""
        size = self.first_size
        for each in self.done[:known]:
            while max(abs(each.e), abs(each.v_hint or 0.0)) > size:
                size *= 2.0
        return size

    @property
    def unit_of_evidence(self) -> float:
        return self.size() if self.scale_free else 1.0

    # Values

    def spread(self, n: int) -> None:
        """The mid-points of n equal bins."""
        low, high = self.target.domain
        for i in range(n):
            self.born[low + (high - low) * ((2 * i + 1) / (2 * n))] = len(self.done)

    @property
    def values(self) -> list[float]:
        return sorted(self.born)

    def unit(self, x: float) -> float:
        low, high = self.target.domain
        return (x - low) / (high - low)

    def nearest(self, x: float) -> int:
        """The lower one of two that are as near."""
        values = self.values
        return min(range(len(values)), key=lambda i: (abs(values[i] - x), values[i]))

    # Evidence

    def visits(self, value: float) -> list[Done]:
        return [each for each in self.done if each.opened.forecast == value]

    def gains(self, value: float) -> list[list[float]]:
        visits = self.visits(value)
        return [[each.opened.x[j] * each.e for each in visits] for j in range(self.n + self.n_levels)]

    def terms(self, value: float, x: list[float]) -> list[float]:
        """The summands of Phi."""
        size = self.unit_of_evidence
        gains = [[g / size for g in each] for each in self.gains(value)]
        weights = self.weights(gains, len(self.visits(value)))
        return [w * each for w, each in zip(weights, x, strict=True)]

    def phi(self, value: float, x: list[float]) -> float:
        return total(self.terms(value, x))

    def owed_terms(self, value: float, x: list[float]) -> list[float]:
        """The summands of the signed rounding in the direction of x."""
        visits = self.visits(value)
        return [x[j] * total([each.opened.x[j] * (each.v - each.e) for each in visits]) for j in range(len(x))]

    def owed(self, value: float, x: list[float]) -> float:
        return total(self.owed_terms(value, x)) / max(len(self.visits(value)), 1)

    def levels(self, value: float, x: list[float]) -> float:
        """The largest level of an active function; 0 if there is none, infinite with a quadratic potential."""
        if self.level is None:
            return math.inf
        size, alone = self.unit_of_evidence, self.n if self.block else 0
        gains = [[g / size for g in each] for each in self.gains(value)]
        levels = [self.level(each) for each, value in zip(gains[alone:], x[alone:], strict=True) if value != 0.0]
        if self.block and any(x[: self.n]):
            norm, C = length_and_spread(gains[: self.n])
            levels.append(norm * norm / (3.0 * C) if C else 0.0)
        return max(levels, default=0.0)

    def is_small(self, value: float, x: list[float], trust: float) -> bool:
        """Whether no active function's potential exceeds (e n)^trust."""
        return self.levels(value, x) <= trust * (1.0 + math.log(max(len(self.visits(value)), 1)))

    # The hint's record

    def hinted(self) -> list[Done]:
        return [each for each in self.done if each.v_hint is not None]

    def is_clean(self, x: list[float]) -> bool:
        """Whether no active function shows a bias of the hint by itself that is beyond doubt."""
        rounds = self.hinted()
        limit = CLEAN * (1.0 + math.log(max(len(rounds), 1)))
        if self.block and any(x[: self.n]):
            own = [[each.opened.x[j] * (each.v_hint or 0.0) for each in rounds] for j in range(self.n)]
            squares = total([g * g for gains in own for g in gains])
            if max(length_and_spread(own)[0] - self.size(), 0.0) ** 2 > limit * squares:
                return False
        for j in (j for j, value in enumerate(x) if value != 0.0 and not (self.block and j < self.n)):
            gains = [each.opened.x[j] * (each.v_hint or 0.0) for each in rounds]
            if max(abs(total(gains)) - self.size(), 0.0) ** 2 > limit * total([g * g for g in gains]):
                return False
        return True

    def was_better(self) -> bool:
        """Whether hints that were overruled lost less than the forecasts, by a standard error."""
        losses = []
        for each in self.hinted():
            if each.opened.play.kind != "trusted":
                assert each.opened.hint is not None
                assert each.v_hint is not None
                # The integral of V from the hint to the forecast, by the trapezoid rule.
                losses.append(0.5 * (each.opened.forecast - each.opened.hint) * (each.v + each.v_hint))
        return total(losses) > math.sqrt(total([d * d for d in losses]))

    def becomes_a_value(self, hint: float) -> bool:
        if not self.born:
            return True
        rounds = self.hinted()
        squares = total([(each.v_hint or 0.0) ** 2 for each in rounds])
        if len(rounds) >= FIRST and self.added * squares > SPEND * len(rounds):
            return False
        if self.added >= FIRST and (self.added - FIRST) ** 3 >= len(rounds):
            return False
        unit = self.unit(hint)
        return abs(self.unit(self.values[self.nearest(hint)]) - unit) > NEAR * min(unit, 1.0 - unit)

    # A round

    def context(self, x: Sequence[float], hint: float | None) -> list[float]:
        """The functions' values, and 1 for the level set in which the hint lies."""
        levels = [0.0] * self.n_levels
        if hint is not None and self.n_levels:
            low, high = self.target.domain
            ends = [low + (high - low) * (k / self.n_levels) for k in range(1, self.n_levels)]
            levels[bisect_right(ends, hint)] = 1.0
        return [*map(float, x), *levels]

    def choose(self, x: list[float], hint: float | None) -> Play:
        if hint is None:
            if not self.born:
                self.spread(FIRST)
            return self.search(self.nearest(self.property_so_far()[0]), x)
        if self.bins is None and self.becomes_a_value(hint):
            self.born[hint] = len(self.done)
            self.added += 1
            return sure(hint, "trusted")
        value = self.at_its_word(x, hint)
        return self.search(self.nearest(hint), x) if value is None else sure(value, "trusted")

    def property_so_far(self) -> tuple[float, float]:
        """Of all outcomes: each moves it against V, over n times the mean slope of V; and their mean distance from it.

        From the middle on, which counts as an outcome as long as all lie at the ends; else from the first between them.
        """
        low, high = self.target.domain
        at, inside, distances, slopes, sizes = 0.5, False, [0.0], [0.0], [0.0]
        for n, each in enumerate(self.done, start=1):
            own, started = self.unit(each.y ** getattr(self.target, "k", 1)), inside
            inside = inside or 0.0 < own < 1.0
            if inside and not started:
                at, distances, sizes, slopes = own, [0.0], [0.0], [self.v(high, each.y) - self.v(low, each.y)]
                continue
            distances.append(abs(own - at))
            reach, v = total(distances) / n, self.v(low + (high - low) * at, each.y)
            ends = [max(at - reach, 0.0), min(at + reach, 1.0)]
            below, above = (self.v(low + (high - low) * end, each.y) for end in ends)
            slopes.append((above - below) / (ends[1] - ends[0]) if ends[1] > ends[0] else 0.0)
            sizes.append(abs(v))
            slope = total(slopes) if inside else 1.0 + total(slopes)
            if inside and reach > 0.0:
                slope = max(slope, STEEP * total(sizes) / reach)
            at = min(max(at - v / slope, 0.0), 1.0) if slope > 0.0 else at
        return low + (high - low) * at, total(distances) / max(len(self.done), 1)

    def lacking(self) -> float | None:
        """Where a round without a hint needs a value: at the property so far, or a mean distance below or above."""
        start, reach = self.property_so_far()
        low, high = self.target.domain
        if self.added >= FIRST and (self.added - FIRST) ** 3 >= len(self.done):
            return None
        for side, near in ((0.0, 0.25), (-1.0, 0.5), (1.0, 0.5)):
            unit = self.unit(start) + side * reach
            x = low + (high - low) * unit
            if 0.0 < unit < 1.0 and abs(self.unit(self.values[self.nearest(x)]) - unit) > near * reach:
                return x
        return None

    def at_its_word(self, x: list[float], hint: float) -> float | None:
        """The value of a trusted hint: the nearest, or the one on the hint's other side if that takes bias away."""
        trust = self.trust if self.is_clean(x) else self.trust / 2.0 if self.was_better() else 0.0
        values, home = self.values, self.nearest(hint)
        if trust == 0.0 or not self.is_small(values[home], x, trust):
            return None
        # If the hint is right, V is positive on average above it: a value there with Phi > 0 would get worse, one
        # below with Phi >= 0 would not.
        phi, above = self.phi(values[home], x), values[home] > hint
        worse = phi > 0.0 if above else phi < 0.0 and values[home] < hint
        other = home - 1 if above else home + 1
        if worse and self.levels(values[home], x) > NOISE and 0 <= other < len(values):
            beyond = self.phi(values[other], x)
            heals = beyond >= 0.0 if values[other] < hint else beyond <= 0.0 or values[other] == hint
            if heals and self.is_small(values[other], x, trust):
                return values[other]
        return values[home]

    def search(self, start: int, x: list[float]) -> Play:
        """Down from `start` if forecasts there were too high, else up: to a zero, a change of sign, or the end."""
        values = self.values
        phi = [self.phi(value, x) for value in values]
        if phi[start] == 0.0:
            return sure(values[start], "zero")
        down = phi[start] > 0.0
        path = range(start - 1, -1, -1) if down else range(start + 1, len(values))
        for i in path:
            if phi[i] == 0.0:
                return sure(values[i], "zero")
            if (phi[i] < 0.0) == down:
                return self.between(i, i + 1, phi, x) if down else self.between(i - 1, i, phi, x)
        low, high = self.target.domain
        if down:
            return Play(values[0], values[0], 1.0, low, "low")
        return Play(values[-1], values[-1], 1.0, high, "high")

    def between(self, lower: int, upper: int, phi: list[float], x: list[float]) -> Play:
        """Probabilities that cancel Phi; evidence half-way, or without bins where the neighbor is owed more."""
        a, b = self.values[lower], self.values[upper]
        p = abs(phi[upper]) / (abs(phi[lower]) + abs(phi[upper]))
        for_lower, for_upper = p * self.owed(a, x), -(1.0 - p) * self.owed(b, x)
        point = 0.5 * (a + b)
        if self.bins is None and max(for_lower, for_upper) > 0.0:
            point = b if for_lower >= for_upper else a
        return Play(a, b, p, point, "pair", phi[lower], phi[upper])

    def predict(self, x: Sequence[float], hint: float | None = None) -> Opened:
        context = self.context(x, hint)
        play = self.choose(context, hint)
        first = uniform(self.seed, self.n_opened) < play.p_lower
        forecast, other = (play.lower, play.upper) if first else (play.upper, play.lower)
        phi = play.phi_lower if first else play.phi_upper
        self.peak = max(self.peak, self.drift() + self.reserved())
        opened = Opened(self.n_opened, context, hint, play, forecast, other, phi, len(self.done))
        self.waiting[opened.t] = opened
        self.n_opened += 1
        return opened

    def update(self, opened: Opened, y: float) -> None:
        v, play = self.v(opened.forecast, y), opened.play
        e = self.v(play.evidence_at, y)
        e = min(e, 0.0) if play.kind == "low" else max(e, 0.0) if play.kind == "high" else e
        accused, rounding, noise = None, abs(v - e), e * e
        if play.kind == "pair":
            accused = 0.5 * (opened.forecast + opened.other)
            rounding = 0.0 if play.evidence_at in (opened.forecast, opened.other) else rounding
        elif play.kind in ("low", "high"):
            accused = 0.5 * (opened.forecast + play.evidence_at)
        v_hint, cost, lost = None, 0.0, 0.0
        if opened.hint is not None:
            v_hint = self.v(opened.hint, y)
            if play.kind == "trusted":
                nearest = self.values[self.nearest(opened.hint)]
                accused, rounding, noise = opened.hint, abs(self.v(nearest, y) - v_hint), v_hint * v_hint
                cost = 0.5 * abs(nearest - opened.hint) * rounding
                lost = self.curvature * (opened.hint - self.point(y)) * v_hint
        del self.waiting[opened.t]
        drift = self.drift_of(opened, e, v_hint)
        self.done.append(Done(opened, v, e, v_hint, accused, rounding, noise, cost, lost, drift, y))
        missing = self.lacking() if opened.hint is None and self.bins is None else None
        if missing is not None:
            self.born[missing] = len(self.done) - 1
            self.added += 1
        if accused in self.born:
            accused = None
            self.done[-1] = replace(self.done[-1], accused=None)
        self.peak = max(self.peak, self.drift() + self.reserved())
        if accused is not None and self.bins is None:
            self.cut(accused, play.kind)

    def point(self, y: float) -> float:
        """The outcome in the units of forecasts."""
        return float(y ** self.target.kernel["power"])  # type: ignore[operator]

    def v(self, p: float, y: float) -> float:
        return float(self.target.identification(p, y))

    # Gaps

    def gap(self, point: float) -> tuple[float, float, list[Done]]:
        """The gap that holds a point: its ends, and the rounds that accused it since both were there."""
        low, high = self.target.domain
        left = max((value for value in self.born if value < point), default=None)
        right = min((value for value in self.born if value > point), default=None)
        since = max(self.born[value] if value is not None else 0 for value in (left, right))
        rounds = [
            each
            for each in self.done[since:]
            if each.accused is not None
            and (left is None or left < each.accused)
            and (right is None or each.accused < right)
        ]
        return low if left is None else left, high if right is None else right, rounds

    def cut(self, point: float, kind: str) -> None:
        left, right, rounds = self.gap(point)
        rounding, noise = total([each.rounding for each in rounds]), total([each.noise for each in rounds])
        a, b = self.unit(left), self.unit(right)
        middle, factor = 0.5 * (a + b), CUT
        if kind in ("low", "high"):
            rounding = max(rounding - SHARE_AT_ENDS * self.size(), 0.0)
        if kind == "trusted":
            cost, lost = total([each.cost for each in rounds]), total([each.lost for each in rounds])
            later = max(DEAR / (cost / lost), SOONEST) if cost > 0.0 and lost > 0.0 else SOONEST
            factor = TRUSTED_CUT * (min(later, 1.0) if b - a > WIDE * min(middle, 1.0 - middle) else later)
        floor = FLOOR * middle * (1.0 - middle)
        if rounding**2 > factor * noise and len(rounds) * (b - a) ** 2 >= floor and left < 0.5 * (left + right) < right:
            self.born[0.5 * (left + right)] = len(self.done)

    # What the proof keeps account of

    def drift(self) -> float:
        return total([each.drift for each in self.done])

    def reserved(self) -> float:
        return total([self.reserve(each.phi) for each in self.waiting.values()])

    def reserve(self, phi: float) -> float:
        return abs(phi) if self.quadratic is None else 2.0 * abs(phi) + phi * phi / self.quadratic.radius

    def drift_of(self, opened: Opened, e: float, v_hint: float | None) -> float:
        """What the outcome adds to the potential by the weights in force now, less what the draw accounts for.

        Where V is larger than any before the draw, the draw accounts for nothing.
        """
        if self.quadratic is None:
            largest, then, now = max(abs(e), abs(v_hint or 0.0)), self.size(opened.known), self.size()
            while now < largest:
                now *= 2.0
            then, now = (then, now) if self.scale_free else (1.0, 1.0)
            gains = [[g / now for g in each] for each in self.gains(opened.forecast)]
            weights = self.weights(gains, len(self.visits(opened.forecast)))
            risen = total([w * each for w, each in zip(weights, opened.x, strict=True)]) * e / now
            return risen if self.scale_free and largest > then else risen - opened.phi * e / then
        now = self.phi(opened.forecast, opened.x)
        n, xi = len(self.visits(opened.forecast)), 2.0 * e * opened.phi
        pull = self.quadratic.norm(self.gains(opened.forecast)) ** 2 / (n * (n + 1)) if n else 0.0
        return 2.0 * e * now - xi + xi * xi / (4.0 * self.quadratic.radius) - pull


def sure(value: float, kind: str) -> Play:
    return Play(value, value, 1.0, value, kind)

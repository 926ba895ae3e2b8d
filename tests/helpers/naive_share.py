"""The share of a correction read aloud: every sum from the list of all rounds.

The oracle of `swapcal.engine.share`. A rung is one `NaiveShare`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

import swapcal as sc
from naive import total
from swapcal.protocols import Elicitable

SHARED = [1e-5, 1e-3, 0.003, 0.01, 0.03, 0.1, 0.3, 0.6, 0.9]


@dataclass
class Round:
    t: int
    said: float
    base: float
    k: float
    shown: float
    worst: float
    """The worst plausible -d r, when the forecast was made."""
    forgotten: float | None = None
    """The same, when it was told that no outcome comes."""

    @property
    def d(self) -> float:
        return self.said - self.base


@dataclass(frozen=True)
class Known:
    """A round after its outcome: -V and losses at the base, what was said and shown; losses are over the base's."""

    round: Round
    y: float
    bin: int
    distance: float
    r: float
    r_said: float
    loss: float
    said_over: float
    shown_over: float
    variance: float
    functions: dict[int, float]

    @property
    def worth(self) -> float:
        return self.round.d * self.r


@dataclass(frozen=True)
class Block:
    """What is known of the forecasts of a time, when the share is looked at."""

    n: float
    known: float
    worth: float
    weight: float
    moves: float
    worst: float
    shares: float
    shown: float
    pairs: float

    @property
    def out(self) -> float:
        return self.n - self.known


def bin_of(lag: float) -> int:
    """Three bins for each doubling."""
    return min(int(3.0 * math.log2(lag + 1.0)), 71)


def log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


@dataclass
class NaiveShare:
    target: Elicitable
    caution: float = 0.0
    budget: float = 0.002
    tolerance: float = 0.0
    n_blocks: int = 512
    exact: bool = False
    """Whether losses of a user's own property are those, and not what is no smaller."""
    span: int = 64
    block: int = 0
    k: float = 0.0
    outside: float = 0.0
    """What rounds that are pending may cost."""

    rounds: dict[int, Round] = field(default_factory=dict)
    occasions: list[list[Known]] = field(default_factory=list)
    shifts: list[float] = field(default_factory=list)
    """For occasions of eight or more, by how much outcomes were beyond the base."""

    likely: list[float] = field(default_factory=lambda: [0.0] * len(SHARED))
    numbers: bool = False
    """Whether V has had more than two values."""

    since_arrival: list[Round] = field(default_factory=list)
    pairs: list[tuple[int, float]] = field(default_factory=list)
    told: bool = False
    """Whether an outcome has come since the last forecast."""

    # Losses

    def v(self, p: float, y: float) -> float:
        return float(self.target.identification(p, y))

    def point(self, y: float) -> float:
        return float(y ** int(self.target.kernel["power"]))

    def loss(self, p: float, y: float) -> float:
        """The integral of V from the outcome to p: by its value half-way, as V is linear on either side, or constant.

        Of a property of a user's own, from the root of V, wherever that is.
        """
        z = self.point(y)
        if isinstance(self.target, sc.Property):
            # Half-way between a thousand points; the share adds trapezoids up.
            (low, high), n = self.target.domain, 1024
            steps = np.asarray(self.target.identification(low + (high - low) * (np.arange(n) + 0.5) / n, np.full(n, y)))
            least = (high - low) / n * np.minimum.accumulate(np.append(0.0, np.cumsum(steps)))[-1]
            full, rest = divmod((p - low) / (high - low) * n, 1.0)
            upto = (high - low) / n * (steps[: int(full)].sum() + (rest * steps[int(full)] if rest else 0.0))
            return float(upto - least)
        return (p - z) * self.v(0.5 * (p + z), y) if p != z else 0.0

    def over(self, p: float, base: float, y: float) -> float:
        if isinstance(self.target, sc.Property) and self.target.monotone and not self.exact:
            return self.v(p, y) * (p - base)
        return self.loss(p, y) - self.loss(base, y)

    # What is known

    @property
    def known(self) -> list[Known]:
        return [each for occasion in self.occasions for each in occasion]

    def expected(self, base: float) -> float:
        """How likely an outcome beyond the base is if that is right."""
        if isinstance(self.target, sc.Quantile):
            return 1.0 - self.target.level
        low, high = self.target.domain
        return min(max((base - low) / (high - low), 0.0), 1.0)

    def worst(self, base: float, d: float) -> float:
        low, high = self.target.low, self.target.high
        if isinstance(self.target, sc.Property):
            labels = [low + (high - low) * k / 200 for k in range(201)]
            most = max([0.0] + [self.v(base, y) if d > 0.0 else -self.v(base, y) for y in labels])
        else:
            most = abs(self.v(base, low if d > 0.0 else high))
        if self.numbers:
            most = min(most, 2.5 * total([abs(each.r) for each in self.known]) / len(self.known))
        return abs(d) * most

    # A round

    def allowed(self) -> float:
        losses = total([each.loss for each in self.known])
        grace = max(2.0 / len(self.known), 0.25 / len(self.occasions))
        return (max(self.budget, self.tolerance) + grace) * losses

    def spent(self) -> float:
        return total([each.shown_over for each in self.known])

    def show(self, t: int, said: float, base: float) -> float:
        if self.told:
            self.end_occasion()
        if self.told or not self.known:
            if len(self.since_arrival) >= 8:
                moves = [each.d for each in self.since_arrival]
                self.pairs.append((self.since_arrival[-1].t, total(moves) ** 2 - total([d * d for d in moves])))
            self.since_arrival = []
        self.told = False
        if t // self.span != self.block:
            while t // self.span >= self.n_blocks:
                self.span *= 2
            self.block = t // self.span
            if len(self.known) >= 32:
                self.look()
        k = self.k if len(self.known) >= 32 and self.spent() + self.outside <= self.allowed() else 0.0
        each = Round(t, said, base, k, base + k * (said - base), self.worst(base, said - base))
        self.rounds[t] = each
        self.since_arrival.append(each)
        return each.shown

    def learn(self, t: int, y: float, lag: int, functions: dict[int, float] | None = None) -> None:
        if not self.told:
            self.occasions.append([])
        self.told = True
        each = self.rounds[t]
        base, said, shown = each.base, each.said, each.shown
        q, r, ends = self.expected(base), -self.v(base, y), (self.target.low, self.target.high)
        self.numbers = self.numbers or (y not in ends and not isinstance(self.target, sc.Quantile))
        self.occasions[-1].append(
            Known(
                each,
                y,
                bin_of(lag),
                abs(self.point(y) - base),
                r,
                -self.v(said, y),
                self.loss(base, y),
                self.over(said, base, y),
                self.over(shown, base, y),
                r * r if self.numbers else q * (1.0 - q),
                functions or {},
            )
        )

    def forget(self, t: int) -> None:
        each = self.rounds[t]
        each.forgotten = self.worst(each.base, each.d)

    def end_occasion(self) -> None:
        """Eight outcomes or more at once may share a shock: how likely these are, for every share of it."""
        occasion, n = self.occasions[-1], len(self.occasions[-1])
        if n < 8:
            return
        expected = total([self.expected(each.round.base) for each in occasion])
        hits = total([min(max(self.expected(each.round.base) + each.r, 0.0), 1.0) for each in occasion])
        p = min(max(expected / n + total(self.shifts) / (len(self.shifts) + 10.0), 1e-4), 1.0 - 1e-4)
        self.shifts.append((hits - expected) / n)
        if not self.numbers:
            for j, shared in enumerate(SHARED):
                a = 1.0 / shared - 1.0
                self.likely[j] += log_beta(hits + p * a, n - hits + (1.0 - p) * a) - log_beta(p * a, (1.0 - p) * a)

    # The look at the beginning of a block

    def blocks(self) -> list[Block]:
        """All that have ended."""
        found = []
        for c in range(self.block):
            made = [each for each in self.rounds.values() if each.t // self.span == c]
            kept = [each for each in made if each.forgotten is None]
            known = [each for each in self.known if each.round.t // self.span == c]
            worst = total([each.worst for each in made]) - total([each.forgotten or 0.0 for each in made])
            found.append(
                Block(
                    len(kept),
                    len(known),
                    total([each.worth for each in known]),
                    total([each.d**2 for each in kept]),
                    total([each.d for each in kept]),
                    max(worst, 0.0),
                    total([each.k for each in kept]),
                    total([(each.k * each.d) ** 2 for each in kept]),
                    total([pairs for t, pairs in self.pairs if t // self.span == c]),
                )
            )
        return found

    def never(self, blocks: list[Block]) -> float:
        """The share that is out among blocks older than three times the lag of nine tenths of the known."""
        known = self.known
        top = max(b for b in range(72) if sum(each.bin >= b for each in known) >= 0.1 * len(known))
        old = [b for c, b in enumerate(blocks) if (self.block - c - 1) * self.span >= 3.0 * 2.0 ** ((top + 1) / 3.0)]
        everything = total([b.n for b in old])
        return total([b.out for b in old]) / everything if everything else 0.0

    def out(self, b: Block, age: float, never: float) -> float:
        """What those that are pending are worth."""
        least = -b.worst / b.n
        longer = [each for each in self.known if each.bin >= bin_of(age)]
        late, ds, rs = least, np.array([each.round.d for each in longer]), np.array([each.r for each in longer])
        if len(longer) >= 30 and np.any(ds != 0.0):
            # A line through the late ones, drawn to the one that goes through 0.
            size = np.mean(ds * ds)
            spread = np.var(ds) + 0.1 * size
            slope = (np.mean((ds - ds.mean()) * (rs - rs.mean())) + 0.1 * np.mean(ds * rs)) / spread
            level = rs.mean() - slope * ds.mean()
            noise = np.mean((rs - level - slope * ds) ** 2) / len(rs)
            moved, weight = b.moves / b.n, b.weight / b.n
            error = noise * (moved**2 + (weight - moved * ds.mean()) ** 2 / spread)
            late = level * moved + slope * weight - 0.5 * math.sqrt(error)
        lost = min(b.n * never, b.out)
        return lost * least + (b.out - lost) * late

    def look(self) -> None:
        known, blocks = self.known, self.blocks()
        distance = total([each.distance for each in known])
        tangent = total([abs(each.r) for each in known]) / distance if distance else 1.0
        size = total([each.round.d**2 for each in known])
        secant = total([each.round.d * (each.r - each.r_said) for each in known]) / size if size else tangent
        bend = min(max(secant, 0.25 * tangent), tangent)
        never = self.never(blocks)
        outs = [self.out(b, (self.block - c) * self.span, never) if b.n else 0.0 for c, b in enumerate(blocks)]
        costs = [
            max(0.5 * bend * b.shown * b.out / b.n - b.shares / b.n * out, 0.0)
            for b, out in zip(blocks, outs, strict=True)
            if b.n
        ]
        self.outside, self.k = total(costs), 0.0
        last = max([c + 1 for c, b in enumerate(blocks) if b.n and b.out <= 0.5 * b.n], default=0)
        counted = [(b, b.worth + out, bend * b.weight) for b, out in zip(blocks[:last], outs, strict=False)]
        weights = total([w for b, _, w in counted if b.n])
        if sum(b.n > 0 for b, _, _ in counted) < 6 or not weights > 0.0:
            return
        slope = total([x for b, x, _ in counted if b.n]) / weights
        rests = [x - slope * w if b.n else 0.0 for b, x, w in counted]
        squares, together = total([e * e for e in rests]), []
        for g in (2**j for j in range(1, 20) if len(rests) // 2**j >= 6):
            groups = [rests[i * g : (i + 1) * g] for i in range(len(rests) // g)]
            together.append(total([total(group) ** 2 for group in groups]))
        variance, rho = total([each.variance for each in known]) / len(known), self.rho()
        usual = 4.0 if self.numbers else 1.0 / variance if variance else 0.0
        few = 1.0 + usual / len(self.occasions)
        pairs = total([b.pairs for b, _, _ in counted if b.n])
        noise = max(squares, *together, squares + rho * few * variance * pairs) / weights
        observations = [(x, w) if b.n else (0.0, 0.0) for b, x, w in counted]
        mean, deviation = level(observations, noise, self.span / 64.0, self.block - last)
        k = mean - self.caution * deviation
        self.k = min(max(self.repairing(k, variance, rho, few), 0.0), 1.0)

    def rho(self) -> float:
        """How much rows of an occasion share, times how many rows come so."""
        known, large = self.known, [occasion for occasion in self.occasions if len(occasion) >= 8]
        if not large:
            return 0.0
        if not self.numbers:
            weights = [math.exp(each - max(self.likely)) for each in self.likely]
            rho = total([w * s for w, s in zip(weights, SHARED, strict=True)]) / total(weights)
        else:
            sums = [[each.r for each in occasion] for occasion in large]
            pairs = total([total(rs) ** 2 - total([r * r for r in rs]) for rs in sums])
            per_pair = pairs / sum(len(rs) * (len(rs) - 1) for rs in sums)
            rho = max(per_pair, 0.0) / (total([each.variance for each in known]) / len(known))
        return min(rho, 1.0) * sum(map(len, large)) / len(known)

    def repairing(self, k: float, variance: float, rho: float, few: float) -> float:
        """With a tolerance, the share that repairs the mean of V, where that is beyond chance."""
        known, n = self.known, len(self.occasions)
        if self.tolerance == 0.0 or len(known) < 0.8 * self.block * self.span:
            return k

        def sums(of: Callable[[Known], float]) -> list[float]:
            return [total([of(each) for each in occasion]) for occasion in self.occasions]

        base, said = sums(lambda each: each.r), sums(lambda each: each.r_said)
        losses = sums(lambda each: each.said_over)
        side, gain = (1.0 if total(base) * total(said) > 0.0 else -1.0), abs(total(base)) - abs(total(said))
        gains = [b - side * s for b, s in zip(base, said, strict=True)]
        vary = few * (total([g * g for g in gains]) - gain * gain / n)
        pairs = sum(len(each) * (len(each) - 1) for each in self.occasions)
        chance = max(variance * (len(known) + rho * few * pairs), total([b * b for b in base]))
        spread = math.sqrt(few * max(total([x * x for x in losses]) - total(losses) ** 2 / n, 0.0))
        model = total([each.loss for each in known])
        if total(losses) - spread > self.tolerance * model:
            return k
        if total(base) ** 2 > 9.0 * chance and gain > 0.0 and gain**2 > 9.0 * vary:
            return max(k, 1.0 if side > 0.0 else total(base) / (total(base) - total(said)))
        usual = max(variance * len(known), total([each.r**2 for each in known]))
        apart = total([(each.r - each.r_said) ** 2 for each in known])
        together = total([(b - s) ** 2 for b, s in zip(base, said, strict=True)])
        moved = few * (max(together / apart, 1.0) if apart > 0.0 else 1.0)
        return max(k, 1.0) if self.repairs(variance, chance / usual, moved) else k

    def repairs(self, variance: float, shared: float, moved: float) -> bool:
        """Whether a group is off beyond chance and surely less so with what was said, and none surely more."""
        names = sorted({name for each in self.known for name in each.functions})
        groups = [[(each.functions[name], each) for each in self.known if name in each.functions] for name in names]
        groups = [rows for rows in groups if total([f * f for f, _ in rows]) >= 32.0]
        beyond, found = 9.0 + 2.0 * math.log(max(len(groups), 1)), []
        for rows in groups:
            base, said = total([f * each.r for f, each in rows]), total([f * each.r_said for f, each in rows])
            size, squares = total([f * f for f, _ in rows]), total([(f * each.r) ** 2 for f, each in rows])
            chance = beyond * shared * max(variance * size, squares)
            side = 1.0 if base * said > 0.0 else -1.0
            vary = moved * total([(f * (each.r - side * each.r_said)) ** 2 for f, each in rows])
            if (abs(base) - abs(said)) ** 2 > beyond * vary:
                found.append((abs(said) > abs(base) and said**2 > chance, abs(base) > abs(said) and base**2 > chance))
        return any(good for _, good in found) and not any(bad for bad, _ in found)


def level(observations: list[tuple[float, float]], noise: float, length: float, ahead: int) -> tuple[float, float]:
    """Mean and deviation of a level with a drift, as it will be; observed as x / w with variance noise / w."""
    parts = []
    for drift in (0.0, 1e-4, 1e-2):
        mean, variance, log_likelihood = 0.0, 0.25, 0.0
        for x, w in observations:
            variance += drift * length
            if w > 0.0 and variance + noise / w > 0.0:
                spread = variance + noise / w
                log_likelihood -= 0.5 * (math.log(spread) + (x / w - mean) ** 2 / spread)
                mean, variance = (
                    mean + variance / spread * (x / w - mean),
                    variance * (noise / w) / spread,
                )
        parts.append((log_likelihood, mean, variance + drift * length * ahead))
    top = max(each[0] for each in parts)
    weights = [math.exp(each[0] - top) for each in parts]
    mean = total([w * each[1] for w, each in zip(weights, parts, strict=True)]) / total(weights)
    spread = total([w * (each[2] + (each[1] - mean) ** 2) for w, each in zip(weights, parts, strict=True)])
    return mean, math.sqrt(spread / total(weights))

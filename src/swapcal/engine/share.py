"""What is shown: a base, and the share of a correction of it that the record speaks for.

There are two rungs. The learning hint corrects the model's own number, and what the engine says corrects that; where no
hint learns, the engine corrects the model. The
engine and the hint go on as if nothing stood between them and the world: they learn from what they said. Only what is
*shown* is decided here, in each rung by

    shown = base + k (said - base),

where k is the posterior mean of the slope of outcomes on corrections, as it will be now: half of the loss of a share k
is quadratic in k with its least value at that slope, so the posterior mean is the best share, and a prior around 0 is
all the margin there is. Where the engine corrects what a hint has learned, one posterior deviation is taken off, as it
spoils more than it can gain there where outcomes come late.

Write d = said - base, r = -V(base, y): the derivative of the loss where k = 0 is -d r, and its curvature w = c d^2,
with c the slope of V: mean |r| / mean |y - base| (1 for a mean), or the secant of V between base and what was said,
weighed by d^2, where that is flatter, to a quarter. Rounds are kept in blocks of 64 in a row, at most `n_blocks` of
them (then neighbors are added up), and count up to the last of which half the outcomes are known. Each block has the
sum of d r over its known outcomes, and what those that are pending are worth: by the r of known outcomes that took
longer than theirs have, as a linear function of d, less half a standard error, or the worst that is plausible where
fewer than 30 are known; and the worst for as many as never come. (Where delays depend on outcomes, late ones have an r
of their own whatever d is; a slope without a level would forget that as d shrinks.) The slope of outcomes on
corrections is a local level with a drift of 0, 1e-4 or 1e-2 in 64 rounds, weighed by likelihood; its noise is that
between blocks, at least that between groups of neighbors, at least what rows of one occasion share.

An *occasion* is all outcomes that are told between two forecasts. Eight or more at once may share a shock. How much
they share is judged as if the base were right: nine weeks in a row without a hit are impossible for independent rows
and usual for rows that share everything. A beta-binomial likelihood does it for outcomes with two values, moments for
others.

What it promises
----------------
1. *For every sequence of outcomes and delays.* Over all rounds, the loss of what is shown on a rung over that of its
   base is at most (budget + max(2 / known, 1 / (4 occasions))) times the base's loss on known outcomes, plus the sum
   over rounds pending at the last round shown, and that round, of what they lose. *Proof.* Nothing after the last
   round with k > 0 costs anything. What was known then cost `spent`, and spent <= spent + out <= the first term, as
   `out` is not negative and k > 0 was allowed. The rest is pending, or is that round. [] At once, with every outcome
   coming, the second term is one round.
2. *If the base is right*, given all outcomes so far, told or not, the expected excess of a round is (k d)^2 / 2 for a
   mean, whatever delays depend on: k and d are fixed before its outcome.

docs/guarantees.md has what the theorem of the engine says of what is shown.

Cost: O(1) for each round, and O(n_blocks) at the beginning of each block.
"""

import copy
import math
from typing import Any, TypeVar

import numpy as np

from swapcal import inputs
from swapcal.properties.custom import examined
from swapcal.properties.mean import power
from swapcal.protocols import Elicitable, Row
from swapcal.typing import Float64Array

Numbers = TypeVar("Numbers", float, Float64Array)

# Outcomes that are known before anything is shown; rounds of a block at first; how many mean sizes of V are plausible
# for an outcome that is out; rows of an occasion, at least; variance of the slope beforehand.
WAIT, SPAN_AT_FIRST, PLAUSIBLE, FEW, PRIOR = 32.0, 64.0, 2.5, 8.0, 0.25
# Blocks that count, before anything is shown; the share of outcomes that may be out in one that counts; rounds in which
# a slope drifts as far as it does.
BLOCKS, OPEN, DRIFT_SPAN = 6, 0.5, 64.0
# How much flatter V may be between base and what was said than at the base.
FLATTEST = 0.25
# By how much the slope of late r on d is drawn to what it is through 0: so many times the mean of d^2 are added to it.
# How many standard errors are taken off what that says.
DRAWN, ERRORS = 0.1, 0.5
DRIFTS = (0.0, 1e-4, 1e-2)
SHARED = (1e-5, 1e-3, 0.003, 0.01, 0.03, 0.1, 0.3, 0.6, 0.9)
# Bins of lags, three for each doubling.
N_BINS = 72
# Blocks that are kept, at most.
MOST_BLOCKS = 512
# Posterior deviations that are taken off where the engine corrects what a hint has learned.
BEHIND_A_HINT = 1.0

# Of a block: rounds, known outcomes, sums of d r, d^2 and d, of the worst plausible -d r, of k and (k d)^2, pairs
# within occasions of forecasts; and of known outcomes the sums of V at the base, of the log of 1 + lag, its square,
# and both.
N, KNOWN_OF, WORTH, WEIGHT, MOVES, WORST, SHARES, SHOWN, PAIRS, VS, LAGS, LAG_SQUARES, V_LAGS = range(13)
# Of a bin of lags: known outcomes, and their sums of d r, d^2, d, r and r^2.
COUNT, DR, DD, D, R, RR = range(6)
# Of a function f of the class, with a tolerance: sums of f^2, f r, f s, f^2 r^2, f^2 r s and f^2 s^2, with s = -V at
# what was said. The first line is that of all rounds.
SIZE_OF, BASE_OF, SAID_OF, BASE_SQUARES, CROSSED, SAID_SQUARES = range(6)
(
    SHARE,
    KNOWN,
    SPENT,
    OUT,
    MODEL,
    DISTANCE,
    SIZES,
    VARIANCE,
    SPAN,
    LAST,
    INSIDE,
    OCCASIONS,
    MANY,
    BIG,
    SHIFT,
    PAIR_SUM,
    PAIR_COUNT,
    ROWS,
    HITS,
    EXPECTED,
    BIAS_NOW,
    SQUARE_NOW,
    SAID_NOW,
    LOSS_NOW,
    BIAS,
    SAID_BIAS,
    BIAS_SQUARE,
    CROSS,
    SAID_SQUARE,
    LOSS_SUM,
    LOSS_SQUARE,
    ROW_PAIRS,
    FORECASTS,
    MOVE,
    MOVE_SQUARE,
    ARRIVED,
    ON,
    SINCE,
    LAG,
    TURN,
) = range(40)
N_TOTALS = 40
# Totals in units of V, and of its square.
_IN_V = [SPENT, OUT, MODEL, SIZES, BIAS_NOW, SAID_NOW, LOSS_NOW, BIAS, SAID_BIAS, LOSS_SUM, TURN]
_IN_SQUARES = [VARIANCE, PAIR_SUM, SQUARE_NOW, BIAS_SQUARE, CROSS, SAID_SQUARE, LOSS_SQUARE]


class Losses:
    """The loss of which V is the derivative in the forecast, the one that every built-in property's loss is in scale.

    With z the property of the outcome alone (y, or y^k), that loss is c (p - z) V(p, z): c is 1 for a quantile, where V
    is constant on either side of z, and 1/2 where it is linear there. Of a property of a user's own V is
    integrated, in steps of 1/1024 of the domain; where V rises in p, the loss of p over that of the base is at most
    V(p, y) (p - base), which stands for it. Its worst outcome is looked for among the labels on which it is examined.

    Parameters
    ----------
    property : Elicitable
        What is forecast.

    Examples
    --------
    >>> import swapcal as sc
    >>> losses = Losses(sc.Mean())
    >>> losses.loss(0.5, 1.0), losses.over(0.75, 0.5, 1.0)
    (0.125, -0.09375)
    """

    __slots__ = ("_forecasts", "_labels", "_own", "_power", "binary", "level", "low", "property", "share", "width")

    def __init__(self, property: Elicitable) -> None:
        kernel: dict[str, Any] = dict(property.kernel)
        self.property, self._own, self._power = property, not kernel["property"], kernel["power"]
        self.low, self.width = kernel["domain_low"], kernel["domain_high"] - kernel["domain_low"]
        # V has two values, whatever the outcomes are.
        self.binary, self.level = kernel["property"] == "Quantile", float(kernel["level"])
        self.share = 1.0 if self.binary else 0.5
        # Where V of a property of a user's own is looked at; of others it is known.
        self._labels = examined(property.low, property.high) if self._own else np.zeros(0)
        self._forecasts = np.linspace(*property.domain, 1025) if self._own else np.zeros(0)

    def point(self, y: float) -> float:
        """The property of the outcome alone."""
        return float(power(y, self._power))

    def v(self, p: float, y: float) -> float:
        """V at a forecast and an outcome; beyond [-1, 1] where either lies outside its range."""
        if self._own:
            return inputs.identified(self.property, p, y)
        return float(self.property.identification(p, y))

    def loss(self, p: float, y: float) -> float:
        """The loss of a forecast."""
        if self._own:
            v = np.asarray(self.property.identification(self._forecasts, np.full(1025, y)))
            total = np.append(0.0, np.cumsum(0.5 * self.width / 1024.0 * (v[1:] + v[:-1])))
            return float(np.interp(p, self._forecasts, total) - total.min())
        return self.share * ((p - self.point(y)) * self.v(p, y))

    def over(self, p: float, base: float, y: float) -> float:
        """The loss of a forecast over that of the base, or more."""
        if self._own and self.property.monotone:
            return self.v(p, y) * (p - base)
        return self.loss(p, y) - self.loss(base, y)

    def steepest(self, base: float, d: float) -> float:
        """The largest that V can be at the base, on the side on which moving it by `d` costs."""
        if self._own:
            v = np.asarray(self.property.identification(np.full(len(self._labels), base), self._labels))
            return max(float(np.max(v if d > 0.0 else -v)), 0.0)
        return abs(self.v(base, self.property.low if d > 0.0 else self.property.high))


class Share:
    """One rung: how much of a correction is shown.

    Parameters
    ----------
    losses : Losses
        Of the property.
    caution : float
        Posterior deviations that are taken off.
    budget : float
        The share of the base's loss that may be spent.
    tolerance : float
        Above 0: a correction that surely repairs the mean of V, over all rounds or in a group, is shown where it is not
        shown to lose more than this share of the base's loss, which may then be spent.
    n_blocks : int
        Blocks that are kept, at most.
    n_groups : int
        Functions of the class.
    """

    __slots__ = ("bins", "blocks", "budget", "caution", "groups", "likely", "losses", "tolerance", "totals")

    def __init__(
        self, losses: Losses, caution: float, budget: float, tolerance: float, n_blocks: int, n_groups: int = 0
    ) -> None:
        self.losses, self.caution, self.budget, self.tolerance = losses, caution, budget, tolerance
        self.totals = np.zeros(N_TOTALS)
        self.totals[SPAN] = SPAN_AT_FIRST
        self.blocks = np.zeros((n_blocks, V_LAGS + 1))
        self.bins = np.zeros((N_BINS, RR + 1))
        self.likely = np.zeros(len(SHARED))
        self.groups = np.zeros((n_groups + 1 if tolerance > 0.0 else 0, SAID_SQUARES + 1))

    def arrays(self) -> dict[str, Float64Array]:
        """The whole state."""
        blocks = self.blocks[: self.n_blocks]
        parts = {"totals": self.totals, "blocks": blocks, "bins": self.bins, "likely": self.likely}
        return {**parts, "groups": self.groups}

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Continue from what `arrays` held."""
        self.totals[:], self.bins[:], self.likely[:] = arrays["totals"], arrays["bins"], arrays["likely"]
        self.blocks[: len(arrays["blocks"])], self.groups[:] = arrays["blocks"], arrays["groups"]

    def rescale(self, losses: Losses, v: float) -> None:
        """Count in units in which V is `v` times what it was."""
        self.losses = losses
        self.totals[_IN_V] *= v
        self.totals[_IN_SQUARES] *= v * v
        self.blocks[:, [WORTH, WORST, VS, V_LAGS]] *= v
        self.bins *= (1.0, v, 1.0, 1.0, v, v * v)
        self.groups *= (1.0, v, v, v * v, v * v, v * v)

    @property
    def n_blocks(self) -> int:
        """Blocks that have been begun."""
        begun = int(self.totals[LAST])
        return begun + 1 if self.blocks[: begun + 1, N].any() else 0

    @property
    def now(self) -> float:
        """The share in force."""
        known, spent, out, model = self.totals[[KNOWN, SPENT, OUT, MODEL]].tolist()
        if known < WAIT:
            return 0.0
        rows, occasions = 2.0 / known, 0.25 / float(self.totals[OCCASIONS])
        allowed = (max(self.budget, self.tolerance) + max(rows, occasions)) * model
        return float(self.totals[SHARE]) if spent + out <= allowed else 0.0

    @property
    def _binary(self) -> bool:
        """Whether V has had two values in all."""
        return self.losses.binary or float(self.totals[INSIDE]) == 0.0

    def _worst(self, base: float, d: float) -> float:
        """The worst plausible -d r, before the outcome."""
        totals, most = self.totals, self.losses.steepest(base, d)
        if not self._binary:
            most = min(most, PLAUSIBLE * float(totals[SIZES]) / max(float(totals[KNOWN]), 1.0))
        return abs(d) * most

    def show(self, t: int, said: float, base: float) -> float:
        """Enter round `t`, in which `said` corrects `base`: what is shown."""
        totals = self.totals
        begins = float(t // int(totals[SPAN])) != float(totals[LAST])
        if totals[ROWS] > 0.0:
            self._end_occasion()
        if totals[ARRIVED] > 0.0 or totals[KNOWN] == 0.0:
            if totals[FORECASTS] >= FEW:
                moved = float(totals[MOVE])
                self.blocks[int(totals[LAST]), PAIRS] += moved * moved - float(totals[MOVE_SQUARE])
            totals[FORECASTS : ARRIVED + 1] = 0.0
        if begins:
            while t // int(totals[SPAN]) >= len(self.blocks):
                self._merge()
            totals[LAST] = float(t // int(totals[SPAN]))
            if totals[KNOWN] >= WAIT:
                self._look(int(totals[LAST]))
        d, k = said - base, self.now if self.covers(base) else 0.0
        worst, block = self._worst(base, d), self.blocks[int(totals[LAST])]
        if (k > 0.0) != (totals[ON] > 0.0):
            totals[ON], totals[SINCE] = float(k > 0.0), float(t)
        block[N] += 1.0
        block[WEIGHT] += d * d
        block[MOVES] += d
        block[WORST] += worst
        block[SHARES] += k
        block[SHOWN] += (k * d) * (k * d)
        totals[FORECASTS] += 1.0
        totals[MOVE] += d
        totals[MOVE_SQUARE] += d * d
        return corrected(k, said, base)

    def at(self, t: int) -> float:
        """The share in force in round `t`, the next one; changes nothing."""
        if t // int(self.totals[SPAN]) == int(self.totals[LAST]):
            return self.now
        after = copy.deepcopy(self)
        after.show(t, self.losses.low, self.losses.low)
        return after.now

    def peek(self, t: int, said: Numbers, base: Numbers) -> Numbers:
        """What round `t`, the next one, would show; changes nothing."""
        shown, inside = corrected(self.at(t), said, base), self.covers(base)
        if isinstance(base, np.ndarray):
            return np.where(inside, shown, base)
        return shown if inside else base

    def covers(self, base: Any) -> Any:
        """Whether a base, or each of an array, lies in the range; beyond it the engine has nothing to say."""
        return (self.losses.low <= base) & (base <= self.losses.low + self.losses.width)

    def learn(self, t: int, said: float, base: float, shown: float, y: float, lag: int, row: Row | None = None) -> None:
        """The outcome of round `t`, after `lag` later forecasts; `row` are the functions of its context."""
        losses, totals = self.losses, self.totals
        v, v_said, loss = losses.v(base, y), losses.v(said, y), losses.loss(base, y)
        spent = losses.over(shown, base, y) if shown != base else 0.0
        over = losses.over(said, base, y)
        d, r, target = said - base, -v, losses.property
        worth, far = d * r, math.log(1.0 + lag)
        block = self.blocks[min(t // int(totals[SPAN]), len(self.blocks) - 1)]
        if not losses.binary and not (y == target.low or y == target.high):
            totals[INSIDE] += 1.0
        totals[KNOWN] += 1.0
        totals[MODEL] += loss
        totals[DISTANCE] += abs(losses.point(y) - base)
        totals[SIZES] += abs(r)
        totals[SPENT] += spent
        totals[LAG] += lag
        totals[TURN] += d * (r + v_said)
        self.bins[_bin(float(lag))] += (1.0, worth, d * d, d, r, r * r)
        block[KNOWN_OF] += 1.0
        block[WORTH] += worth
        block[VS:] += (v, far, far * far, v * far)
        q = 1.0 - losses.level if losses.binary else (base - losses.low) / losses.width
        q = min(max(q, 0.0), 1.0)
        # A V of the user's own may go beyond what a hit can be.
        hit = min(max(q + r, 0.0), 1.0)
        totals[VARIANCE] += q * (1.0 - q) if self._binary else r * r
        if totals[ROWS] == 0.0:
            totals[OCCASIONS] += 1.0
        totals[ARRIVED] = 1.0
        totals[ROWS : LOSS_NOW + 1] += (1.0, hit, q, r, r * r, -v_said, over)
        if self.tolerance > 0.0:
            s = -v_said
            self.groups[0] += (1.0, r, s, r * r, r * s, s * s)
            for j, f in () if row is None else zip(row.indices.tolist(), row.values.tolist(), strict=True):
                square = f * f
                self.groups[1 + j] += (square, f * r, f * s, square * (r * r), square * (r * s), square * (s * s))

    def drop(self, t: int, said: float, base: float, shown: float) -> None:
        """Round `t` has no outcome and will have none."""
        block, d = self.blocks[min(t // int(self.totals[SPAN]), len(self.blocks) - 1)], said - base
        if block[N] <= block[KNOWN_OF]:
            return
        share, size = (shown - base) / d if d != 0.0 else 0.0, (shown - base) * (shown - base)
        worst = self._worst(base, d)
        block[N] -= 1.0
        block[MOVES] -= d
        for column, by in ((WEIGHT, d * d), (WORST, worst), (SHARES, share), (SHOWN, size)):
            block[column] = block[column] - by if block[column] > by else 0.0

    def _merge(self) -> None:
        """Add neighbors up, so that blocks are twice as long."""
        n = len(self.blocks)
        halves = self.blocks[: n - n % 2 : 2] + self.blocks[1::2]
        rest = self.blocks[n - n % 2 :].copy()
        self.blocks[len(halves) + len(rest) :] = 0.0
        self.blocks[: len(halves)], self.blocks[len(halves) : len(halves) + len(rest)] = halves, rest
        self.totals[SPAN] *= 2.0

    def _end_occasion(self) -> None:
        totals = self.totals
        n, hits, expected, r, squares, s, over = totals[ROWS : LOSS_NOW + 1].tolist()
        totals[BIAS : ROW_PAIRS + 1] += (r, s, r * r, r * s, s * s, over, over * over, n * n - n)
        if n >= FEW:
            p = expected / n + float(totals[SHIFT]) / (float(totals[BIG]) + 10.0)
            p = min(max(p, 1e-4), 1.0 - 1e-4)
            totals[MANY : PAIR_COUNT + 1] += (n, 1.0, (hits - expected) / n, r * r - squares, n * n - n)
            for j, shared in enumerate(SHARED if self._binary else ()):
                a = 1.0 / shared - 1.0
                u = p * a
                self.likely[j] += _log_beta(hits + u, n - hits + (a - u)) - _log_beta(u, a - u)
        totals[ROWS : LOSS_NOW + 1] = 0.0

    def _shared(self) -> float:
        """How much rows of an occasion share: their correlation, times how many rows come so."""
        totals = self.totals
        known, many = float(totals[KNOWN]), float(totals[MANY])
        if many <= 0.0:
            return 0.0
        rho = 0.0
        if self._binary:
            top, total = float(self.likely.max()), 0.0
            for shared, likely in zip(SHARED, self.likely.tolist(), strict=True):
                weight = math.exp(likely - top)
                total += weight
                rho += weight * shared
            rho /= total
        elif totals[PAIR_SUM] > 0.0 and totals[VARIANCE] > 0.0:
            rho = float(totals[PAIR_SUM] / totals[PAIR_COUNT]) / (float(totals[VARIANCE]) / known)
        return min(rho, 1.0) * (many / known)

    def _look(self, block: int) -> None:
        """At the beginning of a block: the share, and what those that are pending may cost."""
        totals, known, span = self.totals, float(self.totals[KNOWN]), float(self.totals[SPAN])
        tails: list[tuple[float, ...]]
        tails, longest = [(0.0,) * (RR + 1)] * (N_BINS + 1), 0.0
        for b in range(N_BINS - 1, -1, -1):
            tails[b] = tuple(x + y for x, y in zip(tails[b + 1], self.bins[b].tolist(), strict=True))
            if longest == 0.0 and tails[b][COUNT] >= 0.1 * known:
                longest = math.exp2((b + 1) / 3.0)
        rows = self.blocks[:block].tolist()
        unknown = everything = 0.0
        for c, row in enumerate(rows):
            if (block - c - 1) * span < 3.0 * longest:
                break
            unknown += row[N] - row[KNOWN_OF]
            everything += row[N]
        never = unknown / everything if everything > 0.0 else 0.0
        tangent = float(totals[SIZES]) / float(totals[DISTANCE]) if totals[DISTANCE] > 0.0 else 1.0
        size = tails[0][DD]
        bend = min(max(float(totals[TURN]) / size if size > 0.0 else tangent, FLATTEST * tangent), tangent)
        worths, out, m = [0.0] * block, 0.0, 0
        for c, row in enumerate(rows):
            if row[N] <= 0.0:
                continue
            worths[c], outside = _worth(row, tails[_bin((block - c) * span)], never)
            waits = row[N] - row[KNOWN_OF]
            cost = 0.5 * bend * row[SHOWN] * waits / row[N] - row[SHARES] / row[N] * outside
            out += cost if cost > 0.0 else 0.0
            if waits <= OPEN * row[N]:
                m = c + 1
        totals[OUT], totals[SHARE] = out, 0.0
        sum_x = sum_w = pairs = 0.0
        counted = 0
        for row, worth in zip(rows[:m], worths, strict=False):
            if row[N] > 0.0:
                counted += 1
                sum_x += worth
                sum_w += bend * row[WEIGHT]
                pairs += row[PAIRS]
        if counted < BLOCKS or not sum_w > 0.0:
            return
        slope = sum_x / sum_w
        rests = [
            w - slope * (bend * row[WEIGHT]) if row[N] > 0.0 else 0.0 for row, w in zip(rows[:m], worths, strict=False)
        ]
        squares = 0.0
        for rest in rests:
            squares += rest * rest
        most = _together(rests, squares)
        variance, rho = float(totals[VARIANCE]) / known, self._shared()
        usual = (1.0 / variance if variance > 0.0 else 0.0) if self._binary else 4.0
        few = 1.0 + usual / float(totals[OCCASIONS])
        noise = max(most * squares, squares + rho * few * variance * pairs) / sum_w
        weights = [bend * row[WEIGHT] if row[N] > 0.0 else 0.0 for row in rows[:m]]
        mean, deviation = _level(worths, weights, noise, span / DRIFT_SPAN, block - m)
        k = mean - self.caution * deviation
        if self.tolerance > 0.0:
            k = self._calibrated(k, variance, rho, few, block * span)
        totals[SHARE] = min(max(k, 0.0), 1.0)

    def _calibrated(self, k: float, variance: float, rho: float, few: float, rounds: float) -> float:
        """The share that repairs the mean of V, where the base is off and `said` is less so, both significantly."""
        totals = self.totals
        base, said, base_square, cross, said_square, loss, loss_square, pairs = totals[BIAS : ROW_PAIRS + 1].tolist()
        known, n = float(totals[KNOWN]), float(totals[OCCASIONS])
        spread = math.sqrt(max(loss_square - loss * loss / n, 0.0) * few)
        if known < 0.8 * rounds or loss - spread > self.tolerance * float(totals[MODEL]):
            return k
        side, gain = 1.0 if base * said > 0.0 else -1.0, abs(base) - abs(said)
        vary = (base_square + said_square - 2.0 * side * cross - gain * gain / n) * few
        chance = max(variance * (known + rho * few * pairs), base_square)
        if base * base > 9.0 * chance and gain > 0.0 and gain * gain > 9.0 * vary:
            return max(k, 1.0 if side > 0.0 else base / (base - said))
        _, _, _, rr, rs, ss = self.groups[0].tolist()
        apart = rr + ss - 2.0 * rs
        moved = max((base_square + said_square - 2.0 * cross) / apart, 1.0) * few if apart > 0.0 else few
        return max(k, 1.0) if self._repairs(variance, chance / max(variance * known, rr), moved) else k

    def _repairs(self, variance: float, shared: float, moved: float) -> bool:
        """Whether `said` surely repairs the mean of V in a group, and surely spoils it in none.

        variance: of V in a round. shared, moved: how much more the sums of V, and of its changes, vary as rounds of an
        occasion share something.
        """
        groups = [each for each in self.groups[1:].tolist() if each[SIZE_OF] >= WAIT]
        beyond, repaired = 9.0 + 2.0 * math.log(max(len(groups), 1)), False
        for size, base, said, base_squares, crossed, said_squares in groups:
            chance = beyond * (max(variance * size, base_squares) * shared)
            side, gain = 1.0 if base * said > 0.0 else -1.0, abs(base) - abs(said)
            if not gain * gain > beyond * ((base_squares + said_squares - 2.0 * side * crossed) * moved):
                continue
            if gain < 0.0 and said * said > chance:
                return False
            repaired = repaired or (gain > 0.0 and base * base > chance)
        return repaired


def corrected(k: float, said: Numbers, base: Numbers) -> Numbers:
    """The base, and the share k of the correction; both to the last bit where k is 0 or 1."""
    return said if k == 1.0 else base if k == 0.0 else base + k * (said - base)


def _bin(lag: float) -> int:
    return min(int(3.0 * math.log2(lag + 1.0)), N_BINS - 1)


def _worth(row: list[float], tail: tuple[float, ...], never: float) -> tuple[float, float]:
    """What a block is worth, and of that the outcomes that are pending."""
    waits, least = row[N] - row[KNOWN_OF], -row[WORST] / row[N]
    late, n = least, tail[COUNT]
    if n >= 30.0 and tail[DD] > 0.0:
        d, r, dd, dr = tail[D] / n, tail[R] / n, tail[DD] / n, tail[DR] / n
        spread = dd - d * d + DRAWN * dd
        slope = (dr - d * r + DRAWN * dr) / spread
        level = r - slope * d
        rest = tail[RR] / n - level * (2.0 * r - level) - slope * (2.0 * (dr - level * d) - slope * dd)
        moved, weight = row[MOVES] / row[N], row[WEIGHT] / row[N]
        beside = weight - moved * d
        error = (rest if rest > 0.0 else 0.0) / n * (moved * moved + beside * beside / spread)
        late = level * moved + slope * weight - ERRORS * math.sqrt(error)
    lost = min(row[N] * never, waits)
    outside = lost * least + (waits - lost) * late
    return row[WORTH] + outside, outside


def _together(rests: list[float], squares: float) -> float:
    """By how much neighbors vary more together than alone; 1 or more."""
    most, g = 1.0, 2
    while len(rests) // g >= BLOCKS and squares > 0.0:
        together = 0.0
        for part in range(len(rests) // g):
            total = 0.0
            for rest in rests[part * g : part * g + g]:
                total += rest
            together += total * total
        most = max(most, together / squares)
        g *= 2
    return most


def _level(worths: list[float], weights: list[float], noise: float, length: float, ahead: int) -> tuple[float, float]:
    """Mean and deviation of the slope, `ahead` blocks later: a mixture of local levels."""
    parts = []
    for drift in DRIFTS:
        mu, p, q, log_likely = 0.0, PRIOR, drift * length, 0.0
        for worth, w in zip(worths, weights, strict=False):
            p += q
            # Where nothing varies the slope is known after one block.
            if not w > 0.0 or not p + noise / w > 0.0:
                continue
            v, e = p + noise / w, worth / w - mu
            log_likely -= 0.5 * (math.log(v) + e * e / v)
            mu += p / v * e
            p -= p * p / v
        parts.append((log_likely, mu, p + q * ahead))
    best = max(part[0] for part in parts)
    total = mean = second = 0.0
    for log_likely, mu, p in parts:
        a = math.exp(log_likely - best)
        total += a
        mean += a * mu
        second += a * (p + mu * mu)
    mean /= total
    spread = second / total - mean * mean
    return mean, math.sqrt(spread if spread > 0.0 else 0.0)


def _log_beta(a: float, b: float) -> float:
    return _log_gamma(a) + _log_gamma(b) - _log_gamma(a + b)


def _log_gamma(x: float) -> float:
    """Stirling's series, from 8 on; `math.lgamma` is not the C library's."""
    product = 1.0
    while x < 8.0:
        product *= x
        x += 1.0
    i = 1.0 / (x * x)
    series = (1.0 / 12.0 - i * (1.0 / 360.0 - i * (1.0 / 1260.0 - i / 1680.0))) / x
    return (x - 0.5) * math.log(x) - x + 0.91893853320467274178 + series - math.log(product)


# --------
# Whether outcomes that come late are like those that come early: an e-value, from pairs of forecasts of the same time.
#
# Within a block of forecasts made one after the other, let v be V at the base and g the logarithm of 1 + delay. If the
# delay does not depend on the outcome, the sum x = sum v g - (sum v) (sum g) / n over the block's outcomes is as likely
# to be positive as negative, and drift is no excuse: time is the same within a block. For x that is symmetric about 0,
# exp(l x - l^2 x^2 / 2) has mean at most 1 for every l (de la Pena), so products over blocks are supermartingales.
# Mixed over l with a normal density of variance 1 / rho this gives, with X the sum of the x and Y that of squares,
#
#     ln e = X^2 / (2 (Y + rho)) - ln((Y + rho) / rho) / 2.
#
# Here rho is the mean of the x^2, and delays that are not symmetric leave x only nearly so: *about* 1/1000 for ln 1000.
# The test measures it. A block whose delays differ by less than a tenth says nothing.

ALARM = math.log(1000.0)
# Variance of the logarithm of delays in a block, at least, for it to count.
MATERIAL = 0.01


def dependence(share: Share) -> tuple[float, float]:
    """Log of the e-value against delays that do not depend on outcomes; what ten times the delay adds to V.

    Examples
    --------
    >>> from swapcal import Mean
    >>> rung = Share(Losses(Mean()), 0.0, 0.002, 0.0, 8)
    >>> dependence(rung)
    (0.0, 0.0)
    """
    blocks = share.blocks[share.blocks[:, KNOWN_OF] >= 2.0]
    n, v, g = blocks[:, KNOWN_OF], blocks[:, VS], blocks[:, LAGS]
    spread = blocks[:, LAG_SQUARES] - g * g / n
    x, spread = (blocks[:, V_LAGS] - v * g / n)[spread > MATERIAL * n], spread[spread > MATERIAL * n]
    squares = float(np.sum(x * x))
    if squares <= 0.0:
        return 0.0, 0.0
    rho, cross = squares / len(x), float(np.sum(x))
    log_e = cross * cross / (2.0 * (squares + rho)) - 0.5 * math.log((squares + rho) / rho)
    return log_e, math.log(10.0) * cross / float(np.sum(spread))

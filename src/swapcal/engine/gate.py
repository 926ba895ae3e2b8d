"""Standing back: while outcomes are out, the model's own number is shown where the record does not speak for another.

The engine goes on as if nothing stood between it and the world: it says a number, keeps its evidence of that number and
learns from its outcome. Only what is *shown* is decided here: what was said, or the model's own number h, the hint that
the caller gave. So the record of what is said stays complete, and the forecaster can come back. The gate opens its book
with the first forecast that is made while the outcome of an earlier one is out; where 128 rounds or more were learned
at once by then, only when a first late outcome has come: who learns a history and then forecasts a batch of cases is
shown what was learned. Where every outcome comes before the next forecast it never opens, and not a bit changes. Rounds
without a hint have nothing to stand back to. Rounds that were learned at once before the book was opened are judged in
it: what a history has shown to gain is shown on when outcomes begin to come late.

Let d be the loss of what was said over that of h, w the most that d can be whatever the outcome is (`stakes`), and r
what the correction costs on average if the model is right, to second order: slope (said - h)^2 / 2, with the slope of V
estimated by mean |V| over mean distance of outcomes from h. Rounds are kept in *cohorts* of 32 in a row. A round that
is made is charged w, and RISK r if it is shown; its outcome replaces w by d. A cohort is *judged* when it is older than
the mean delay and two standard deviations of it, whether or not all of its outcomes are known; those that come later
replace their w then. Of the judged cohorts there are

    PAPER    the sum over all rounds since the trial began, of d, or w where the outcome is not known; at first also
             over those learned at once before
    SPENT    the same over the rounds that were shown as said, since the book was opened
    MODEL    the loss of the model on the outcomes that are known
    SQUARES  the sum over generations of the square of their share of PAPER; a generation are the rounds that were made
             while the one before matured, as errors made on the same knowledge are one observation; a cohort where
             they were learned at once.

    proof = max(0, -PAPER - 2 sqrt(SQUARES)),  spare = 0.1 % MODEL + 2 mean losses,  cap = 0.4 % MODEL + 2 mean losses
    shown as said  if and only if  something was judged and SPENT + RISK + r <= min(spare + proof, cap)

and a new trial begins, PAPER = SQUARES = 0, when what was shown has cost more than spare + proof.

It starts closed: spare is 0, and a SPENT below 0 counts as 0, until four times as many rounds are judged as are not,
and while more than an eighth of the judged rounds must be out (of `out` rounds that wait, no more than those that are
not judged can be younger). Where outcomes hold themselves back, those that are known first are a biased sample, and
what was learned from it must not be tried out on people. So there only proof opens, from rounds whose unknown outcomes
are all charged their worst. Once delays are found to depend on outcomes (`lateness`), it takes 64 times instead of
four: until what is held back is a small part of what is known.

What it promises
----------------
1. *For every sequence of outcomes and delays.* Let s be the last round that was shown as said. The loss of what was
   shown over that of the model, on the outcomes known at any later time, is at most 0.4 % of the model's judged loss at
   s, plus 2 mean losses, plus the sum of w over the rounds shown as said that were not judged at s.
   *Proof.* Rounds that stood back cost exactly 0, and none after s was shown as said. Judged rounds that were shown as
   said cost at most SPENT at s, since those whose outcome is not known count w >= d; and SPENT <= max(SPENT, 0) + RISK
   + r <= cap, as RISK and r are not negative. The rest were not judged at s, and cost at most w each. []
   Nothing is assumed of how delays and outcomes hang together: an outcome that holds itself back is charged its worst.
   Of the rounds learned at once before, at most 16,384 count in the model's loss, so a long history buys no more than
   66 mean losses: when there are so many, all that they have told is halved.
2. *If the model is right in the rounds that are not judged at s*, they cost RISK on average (to second order, with the
   slope as estimated), so the total is at most 0.4 % and 2 mean losses on average, however long the delay is; and at
   most 0.1 % and 2 mean losses while there is no proof.
3. *It comes back by itself.* What is said is scored whether it is shown or not. With equal gains g in every generation
   proof is j g - 2 sqrt(j) g after j of them, positive from the fifth on.

An outcome that never comes is charged its worst for good, and some in a hundred of them keep the gate shut: say so with
`Forecaster.forget`, or in a recorded stream by an outcome that is NaN.

The first outcome can be judged only when it is there: until then the model is shown, and what was made before the book
was opened is in no promise; there the engine knew no outcome that was late.

Cost: O(1) for each round, and 80 bytes for 32 rounds that are not judged yet.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from swapcal import inputs
from swapcal.properties.mean import power
from swapcal.protocols import Elicitable
from swapcal.typing import Float64Array

# --------
# Whether outcomes that come late are like those that come early: an e-value, from pairs of forecasts of the same time.
#
# Within a cohort of forecasts made one after the other, let v be V of the model's own number and g the logarithm of 1
# +
# delay, less that of the cohort's first outcome, so that equal delays give exactly 0. If the delay does not depend on
# the
# outcome, the sum
#
#     x = sum v g - (sum v) (sum g) / n
#
# over the cohort's outcomes is as likely to be positive as negative, and drift is no excuse: time is the same within a
# cohort. For x that is symmetric about 0, exp(l x - l^2 x^2 / 2) has mean at most 1 for every l (de la Pena), so
# products
# over cohorts are supermartingales. Mixed over l with a normal density of variance 1 / rho this gives, with X the sum
# of
# the x and Y that of their squares,
#
#     ln e = X^2 / (2 (Y + rho)) - ln((Y + rho) / rho) / 2,
#
# which exceeds ln 1000 ever with a probability of at most 1/1000, whenever one looks (Ville). Here rho is the mean of
# the
# x^2 so far, and delays that are not symmetric leave x only nearly so: *about* 1/1000. The test measures it.
#
# A cohort whose delays differ by less than a tenth says nothing. Where outcomes are learned in the order of forecasts,
# each waits for those before it, and what is left of a dependence is certain and harmless.

ALARM = math.log(1000.0)

# Variance of the logarithm of delays in a cohort, at least, for it to count.
MATERIAL = 0.01

CROSS, CROSS_SQUARES, CROSSINGS, SPREAD = range(4)
N_LATE_TOTALS = 4
C_N, C_V, C_G, C_VG, C_GG, C_FIRST = range(6)
LATE_WIDTH = 6


def add(cohort: Float64Array, v: float, lag: int) -> None:
    """An outcome of a cohort: V of the model, and after how many later forecasts it came."""
    g = math.log(1.0 + lag)
    if cohort[C_N] == 0.0:
        cohort[C_FIRST] = g
    g -= float(cohort[C_FIRST])
    cohort[C_N] += 1.0
    cohort[C_V] += v
    cohort[C_G] += g
    cohort[C_VG] += v * g
    cohort[C_GG] += g * g


def judge(totals: Float64Array, cohort: Float64Array) -> bool:
    """Add a cohort to the totals; whether delays are now found to depend on outcomes."""
    n, sum_v, sum_g, products, squares, _ = cohort.tolist()
    if n < 2.0:
        return False
    spread = squares - sum_g * sum_g / n
    if not spread > MATERIAL * n:
        return False
    x = products - sum_v * sum_g / n
    totals[CROSS] += x
    totals[CROSS_SQUARES] += x * x
    totals[CROSSINGS] += x != 0.0
    totals[SPREAD] += spread
    return log_evidence(totals) > ALARM


def log_evidence(totals: Float64Array) -> float:
    """The logarithm of the e-value against delays that do not depend on outcomes.

    Examples
    --------
    >>> import numpy as np
    >>> round(log_evidence(np.array([30.0, 30.0, 30.0, 9.0])), 2)
    12.8
    """
    cross, squares, n = (float(each) for each in totals[: CROSSINGS + 1])
    if squares <= 0.0:
        return 0.0
    rho = squares / n
    return cross * cross / (2.0 * (squares + rho)) - 0.5 * math.log((squares + rho) / rho)


def slope(totals: Float64Array) -> float:
    """By how much V is larger for outcomes that come ten times as late, within a cohort."""
    spread = float(totals[SPREAD])
    return math.log(10.0) * float(totals[CROSS]) / spread if spread > 0.0 else 0.0


# --------
# What is at stake when another number is played than the model's own: losses, in the units of the forecast times V.


class RoundCost(NamedTuple):
    """What an outcome says of a round.

    `difference` is the loss of what was said over that of the model, `model` the loss of the model, `v` is V at the
    model's number, and `distance` how far the outcome was from it.
    """

    difference: float
    model: float
    v: float
    distance: float


class LossBounds:
    """The loss of which V is the derivative in the forecast, the one that every built-in property's loss is in scale.

    With z the property of the outcome alone (y, or y^k), that loss is c (p - z) V(p, z): c is 1 for a quantile, where V
    is constant on either side of z, and 1/2 where it is linear there. V falls in z, so the loss of p over that of h is
    largest at the lowest z where p > h, and at the highest where p < h.

    For a property of a user's own nothing is integrated: where V rises in p, the loss of p over that of h is at most
    V(p, y) (p - h), which stands for it, and its largest value is looked for at both ends of the label range.

    Parameters
    ----------
    property : Elicitable
        What is forecast.

    Examples
    --------
    >>> import swapcal as sc
    >>> stakes = LossBounds(sc.Mean())
    >>> stakes.worst(0.75, 0.5), stakes.outcome(0.75, 0.5, 1.0).difference
    (0.15625, -0.09375)
    """

    __slots__ = ("_kind", "_level", "_power", "_width", "high", "low", "property", "share")

    def __init__(self, property: Elicitable) -> None:
        numbers: dict[str, Any] = dict(property.kernel)
        self.property, self._kind = property, numbers["property"]
        self.low, self.high = numbers["domain_low"], numbers["domain_high"]
        self._level, self._power, self._width = numbers["level"], numbers["power"], numbers["width"]
        self.share = 1.0 if self._kind == "Quantile" else 0.5

    def worst(self, said: float, model: float) -> float:
        """The most that `said` can lose over the model, whatever the outcome is."""
        if not self._kind:
            ends = (self.property.low, self.property.high)
            return max(inputs.identified(self.property, said, end) * (said - model) for end in ends)
        end = self.low if said > model else self.high
        return self._loss(said, end) - self._loss(model, end)

    def outcome(self, said: float, model: float, y: float) -> RoundCost:
        """What the outcome `y` says of a round in which the engine said `said` and the model `model`."""
        if not self._kind:
            v, z = inputs.identified(self.property, model, y), min(max(y, self.low), self.high)
            distance = abs(z - model)
            difference = inputs.identified(self.property, said, y) * (said - model)
            return RoundCost(difference, 0.5 * (distance * abs(v)), v, distance)
        z = float(power(y, self._power))
        loss = self._loss(model, z)
        return RoundCost(self._loss(said, z) - loss, loss, self._v(model, z), abs(z - model))

    def _loss(self, p: float, z: float) -> float:
        return self.share * ((p - z) * self._v(p, z))

    def _v(self, p: float, z: float) -> float:
        if self._kind == "Quantile":
            return float((1.0 if z <= p else 0.0) - self._level)
        if self._kind == "Expectile":
            return float(abs((1.0 if z <= p else 0.0) - self._level) * (p - z) / self._width)
        return float((p - z) / self._width)


COHORT = 32
# Shares of the model's loss that may be spent without proof and at all, and mean losses beside either.
SPARE, CAP, LOSSES = 0.001, 0.004, 2.0

# Standard deviations of the delay until a cohort is judged, and of a gain that is no proof.
DEVIATIONS, PROOF = 2.0, 2.0

# Share of the judged rounds that may be out at least, before nothing is spent without proof.
UNSETTLED = 0.125

# How many times as many rounds must be judged as are not, before anything is spent without proof; and where delays were
# found to depend on outcomes.
GENERATIONS, PATIENCE = 4, 64

# Rounds learned at once, after which outcomes that are out count only when one has come.
HISTORY = GENERATIONS * COHORT

# Rounds learned at once that count at most; when there are so many, all that they have told is halved.
MEMORY = 1 << 14

ROOM = 4

PAPER, SPENT, MODEL, JUDGED, RISK, SQUARES, BLOCK, LAGS, LAG_SQUARES, KNOWN, DISTANCE, SIZE = range(12)
N_TOTALS = 12 + N_LATE_TOTALS
# The totals that rounds learned at once change before the book is opened.
NOTED = (PAPER, MODEL, JUDGED, SQUARES, BLOCK, DISTANCE, SIZE)
BEGIN, FRONT, SINCE, MARKER, TRIED, N_BACK, BACK_SINCE, FLAGGED = range(8)
C_PAPER, C_SPENT, C_MODEL, C_RISK = range(4)
WIDTH = 4 + LATE_WIDTH


class Gate:
    """The book: totals of what was judged, and the cohorts that are not.

    Parameters
    ----------
    stakes : LossBounds
        Losses.
    stand_back : bool
        False: the book is kept, and what was said is always shown.
    """

    __slots__ = ("counts", "ring", "stakes", "stand_back", "totals")

    def __init__(self, stakes: LossBounds, stand_back: bool) -> None:
        self.stakes, self.stand_back = stakes, stand_back
        self.totals = np.zeros(N_TOTALS)
        # When the book was opened, the first cohort that is not judged, the one with which the trial began, rounds made
        # when the generation began, whether it was tried, rounds that stood back, since when, and when delays were
        # found to depend on outcomes; -1 for never. In an array, because kernels count too.
        self.counts: npt.NDArray[np.int64] = np.array([-1, 0, 0, 0, 0, 0, -1, -1], dtype=np.int64)
        self.ring: Float64Array = np.zeros((ROOM, WIDTH))

    @property
    def open(self) -> bool:
        """Whether a forecast was made while an earlier outcome was out."""
        return bool(self.counts[BEGIN] >= 0)

    def due(self, out: int, n_rounds: int, n_late: int) -> bool:
        """Whether the book is to be opened: `out` rounds wait, and of `n_rounds` learned ones `n_late` came late."""
        return not self.open and out > 0 and (n_late > 0 or n_rounds < HISTORY)

    def note(self, outcome: RoundCost) -> None:
        """What a round says whose outcome came before the next forecast, while the book is closed."""
        totals = self.totals
        difference, loss, v, distance = outcome
        totals[PAPER] += difference
        totals[BLOCK] += difference
        totals[MODEL] += loss
        totals[DISTANCE] += distance
        totals[SIZE] += abs(v)
        totals[JUDGED] += 1.0
        if totals[JUDGED] % COHORT == 0.0:
            totals[SQUARES] += totals[BLOCK] * totals[BLOCK]
            totals[BLOCK] = 0.0
        if totals[JUDGED] == MEMORY:
            totals[list(NOTED)] *= 0.5

    def begin(self, t: int) -> None:
        """Open the book before round `t`."""
        cohort = t // COHORT
        self.counts[: TRIED + 1] = t, cohort, cohort, t, 0

    def full(self, issued: int) -> bool:
        """Whether a round more needs more room."""
        return self.open and issued // COHORT - int(self.counts[FRONT]) >= len(self.ring)

    def grow(self, issued: int) -> None:
        """Make room for twice as many cohorts."""
        cohorts = self.cohorts(issued)
        self._take(cohorts, max(2 * len(self.ring), 2 * len(cohorts)))

    def follows(self, t: int, said: float, model: float, out: int) -> bool:
        """Whether `said` would be shown in round `t`, with `out` rounds that wait, it among them; changes nothing."""
        if not self.open or not self.stand_back:
            return True
        room, _ = self._room(t, out)
        risk = self._risk(said, model)
        return self._tried and self._cost(t, out) + float(self.totals[RISK]) + risk <= room

    def show(self, t: int, said: float, model: float, worst: float, out: int) -> bool:
        """Enter round `t`, which was just made: what the engine said, and the model; whether what was said is shown.

        `worst` is what the first can lose over the second (`stakes.worst`). `out` rounds wait for their outcome, round
        `t` among them.
        """
        totals, counts, cohort = self.totals, self.counts, self._cohort(t // COHORT)
        risk = self._risk(said, model)
        room, earned = self._room(t, out)
        spent, cost, risked = float(totals[SPENT]), self._cost(t, out), float(totals[RISK])
        follow = not self.stand_back or (self._tried and cost + risked + risk <= room)
        if not follow and counts[TRIED] and spent > earned:
            totals[PAPER] = totals[SQUARES] = totals[BLOCK] = 0.0
            counts[SINCE], counts[MARKER] = counts[FRONT], t
        counts[TRIED] = follow or (counts[TRIED] and spent <= earned)
        shut = self.stand_back and not (self._tried and cost + risked < room)
        if not shut:
            counts[BACK_SINCE] = -1
        elif counts[BACK_SINCE] < 0:
            counts[BACK_SINCE] = t
        cohort[C_PAPER] += worst
        if follow:
            cohort[C_SPENT] += worst
            cohort[C_RISK] += risk
            totals[RISK] += risk
        elif said != model:
            counts[N_BACK] += 1
        return follow or said == model

    def holds(self, t: int) -> bool:
        """Whether round `t` is in the book."""
        return bool(0 <= self.counts[BEGIN] <= t)

    def learn(self, t: int, outcome: RoundCost, worst: float, followed: bool, lag: int) -> None:
        """What the outcome of round `t` says, after `lag` later forecasts; it was charged `worst` until now."""
        totals, counts = self.totals, self.counts
        difference, loss, v, distance = outcome
        change = difference - worst
        totals[DISTANCE] += distance
        totals[SIZE] += abs(v)
        totals[LAGS] += lag
        totals[LAG_SQUARES] += float(lag) * float(lag)
        totals[KNOWN] += 1.0
        number = t // COHORT
        if number < counts[FRONT]:
            totals[MODEL] += loss
            totals[JUDGED] += 1.0
            if followed:
                totals[SPENT] += change
            if number >= counts[SINCE]:
                totals[PAPER] += change
            return
        cohort = self._cohort(number)
        cohort[C_PAPER] += change
        cohort[C_MODEL] += loss
        if followed:
            cohort[C_SPENT] += change
        add(cohort[C_RISK + 1 :], v, lag)

    def drop(self, t: int, said: float, model: float, followed: bool) -> None:
        """Round `t` has no outcome and will have none: it costs nothing."""
        if not self.holds(t):
            return
        number, worst = t // COHORT, self.stakes.worst(said, model)
        if number < self.counts[FRONT]:
            if followed:
                self.totals[SPENT] -= worst
            if number >= self.counts[SINCE]:
                self.totals[PAPER] -= worst
            return
        cohort = self._cohort(number)
        cohort[C_PAPER] -= worst
        if followed:
            cohort[C_SPENT] -= worst

    def judge(self, t: int) -> None:
        """Before round `t`: judge the cohorts that are old enough; none before an outcome has told how old that is."""
        if not self.open or not self.totals[KNOWN]:
            return
        totals, counts, age = self.totals, self.counts, self.age
        while (int(counts[FRONT]) + 1) * COHORT + age <= t:
            cohort = self._cohort(int(counts[FRONT]))
            totals[PAPER] += cohort[C_PAPER]
            totals[SPENT] += cohort[C_SPENT]
            totals[MODEL] += cohort[C_MODEL]
            totals[JUDGED] += cohort[C_RISK + 1 + C_N]
            totals[RISK] -= cohort[C_RISK]
            totals[BLOCK] += cohort[C_PAPER]
            found = judge(totals[SIZE + 1 :], cohort[C_RISK + 1 :])
            if found and counts[FLAGGED] < 0:
                counts[FLAGGED] = t
            cohort[:] = 0.0
            counts[FRONT] += 1
            if counts[FRONT] * COHORT > counts[MARKER]:
                totals[SQUARES] += totals[BLOCK] * totals[BLOCK]
                totals[BLOCK], counts[MARKER] = 0.0, t

    @property
    def age(self) -> float:
        """Rounds until a cohort is judged: the mean delay and two standard deviations."""
        totals = self.totals
        n, lags, squares = float(totals[KNOWN]), float(totals[LAGS]), float(totals[LAG_SQUARES])
        return (lags + DEVIATIONS * math.sqrt(max(n * squares - lags * lags, 0.0))) / max(n, 1.0)

    @property
    def shut(self) -> bool:
        """Whether even the smallest correction would not be shown."""
        return bool(self.counts[BACK_SINCE] >= 0)

    @property
    def _tried(self) -> bool:
        """Whether something was judged, and the model was ever wrong."""
        judged = self.counts[FRONT] > self.counts[BEGIN] // COHORT or self.totals[JUDGED] > 0.0
        return bool(judged and self.totals[DISTANCE] > 0.0)

    def _risk(self, said: float, model: float) -> float:
        size, distance = float(self.totals[SIZE]), float(self.totals[DISTANCE])
        return 0.5 * (size / distance) * ((said - model) * (said - model)) if distance > 0.0 else 0.0

    def _settled(self, t: int, out: int) -> bool:
        """Whether nearly all outcomes of judged rounds are known: of those that are out, few can have been judged."""
        made = int(self.counts[FRONT]) * COHORT
        judged, rest = made - int(self.counts[BEGIN]), t + 1 - made
        times = GENERATIONS if self.counts[FLAGGED] < 0 else PATIENCE
        return judged >= times * rest and float(out - rest) <= UNSETTLED * float(judged)

    def _cost(self, t: int, out: int) -> float:
        """What was spent; what was gained is not there to be spent while nothing may be spent without proof."""
        spent = float(self.totals[SPENT])
        return spent if self._settled(t, out) else max(spent, 0.0)

    def _room(self, t: int, out: int) -> tuple[float, float]:
        """How much may be spent, and how much of that without the cap."""
        totals = self.totals
        loss, block = float(totals[MODEL]), float(totals[BLOCK])
        mean = LOSSES * (loss / max(float(totals[JUDGED]), 1.0))
        spare = SPARE * loss + mean if self._settled(t, out) else 0.0
        proof = max(0.0, -float(totals[PAPER]) - PROOF * math.sqrt(float(totals[SQUARES]) + block * block))
        earned = spare + proof
        return min(earned, CAP * loss + mean), earned

    def _cohort(self, number: int) -> Float64Array:
        cohort: Float64Array = self.ring[number % len(self.ring)]
        return cohort

    def cohorts(self, issued: int) -> Float64Array:
        """Those that are not judged, in order, up to the one of the last of `issued` rounds."""
        n = max((issued - 1) // COHORT - int(self.counts[FRONT]) + 1, 0) if self.open else 0
        return self.ring[(int(self.counts[FRONT]) + np.arange(n)) % len(self.ring)]

    def arrays(self, issued: int) -> dict[str, Any]:
        """The whole state."""
        return {"totals": self.totals, "counts": self.counts, "cohorts": self.cohorts(issued)}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Continue from the state in `arrays`."""
        self.totals[:], self.counts[:] = arrays["totals"], arrays["counts"]
        self._take(arrays["cohorts"], max(ROOM, 1 << len(arrays["cohorts"]).bit_length()))

    def _take(self, cohorts: Float64Array, size: int) -> None:
        first, self.ring = int(self.counts[FRONT]), np.zeros((size, WIDTH))
        self.ring[(first + np.arange(len(cohorts))) % size] = cohorts

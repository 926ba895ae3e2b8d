"""What the theorems promise of a forecaster: of the rounds it has played, or of rounds to come."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from swapcal.engine.ledger import DRIFT, LATEST, LUCK, PEAK, RESERVED, VARIANCE
from swapcal.errors import InvalidInput
from swapcal.protocols import Tally
from swapcal.typing import Float64Array

if TYPE_CHECKING:
    from swapcal.engine.state import Rules, State

# --------
# The theorems as numbers. Their proofs are in docs/guarantees.md; names and letters are the same there.
#
# Notation: N values, T rounds, n_i visits of value i, S_i the sums of f(x) V at the points where the evidence is taken,
# D_i the signed rounding of value i: sup_f of |sum f(x) (V(forecast, y) - V(evidence point, y))|. A potential's theorem
# bounds every |S_i,f| by a deviation, and the error is at most sum_i n_i min(1, (deviation_i + D_i) / n_i)^r; or it
# bounds sum_i sup_f |S_i,f|^2 / n_i as a whole, and Minkowski's inequality adds the rounding.


# How the name of a theorem begins where theorem C gives the smaller number.
AFTER = "theorem C, after "


class Guarantee(float):
    """A number that the swap multicalibration error stays below with probability 1 - delta, and why.

    It is a float, so it can be compared and printed; the attributes say which theorem holds under which assumptions,
    and `broken` lists those that this run has not met. After some rounds the error is known, and is what to look at
    first; `worst` is what no stream can drive it above, and `luck` how much larger draws could have made it.

    Parameters
    ----------
    value : float
        The bound itself.
    theorem : str
        Where it comes from.
    delta : float
        The probability with which it may fail.
    r : float
        Exponent of the error.
    n_rounds : int
        Rounds with an outcome so far.
    assumptions : tuple of str
        What the theorem asks for.
    broken : tuple of str
        Those of them that this run has not met.
    bins : int, optional
        Ahead of a run, the number of values for which it holds; None where no number is promised, or rounds have come.
    error : float, optional
        The error of the rounds so far.
    worst : float, optional
        What A' or B promises whatever outcomes do; by default the bound itself.
    luck : float, optional
        How far above the error it could have been with other draws, by theorem C.

    Examples
    --------
    >>> import swapcal as sc
    >>> forecaster = sc.Forecaster(sc.Mean(), sc.Finite(2), horizon=100, seed=1)
    >>> guarantee = forecaster.guarantee(0.05)
    >>> guarantee.delta, guarantee.r, guarantee.n_rounds, guarantee.broken
    (0.05, 2.0, 100, ())
    """

    theorem: str
    delta: float
    r: float
    n_rounds: int
    assumptions: tuple[str, ...]
    broken: tuple[str, ...]
    bins: int | None
    error: float | None
    worst: float
    luck: float | None

    def __new__(
        cls,
        value: float,
        *,
        theorem: str,
        delta: float,
        r: float,
        n_rounds: int,
        assumptions: tuple[str, ...],
        broken: tuple[str, ...] = (),
        bins: int | None = None,
        error: float | None = None,
        worst: float | None = None,
        luck: float | None = None,
    ) -> "Guarantee":
        """Make the number and attach its reasons."""
        self = super().__new__(cls, value)
        self.error, self.worst, self.luck = error, float(value) if worst is None else worst, luck
        self.theorem, self.delta, self.r, self.n_rounds = theorem, delta, r, n_rounds
        self.assumptions, self.broken, self.bins = assumptions, broken, bins
        return self

    @property
    def value(self) -> float:
        """The number as a plain float."""
        return float(self)

    def __str__(self) -> str:
        lines = []
        at_most = f"at most {self.worst:.4g} whatever outcomes do, with probability {1 - self.delta:g}"
        if self.error is None:
            lines.append(f"SMCal_{self.r:g} after {self.n_rounds} rounds: {at_most}")
        else:
            size = (self.error / max(self.n_rounds, 1)) ** (1.0 / self.r)
            bias = "root mean square bias" if self.r == 2.0 else f"mean bias of power {self.r:g}"
            kind = getattr(self.error, "kind", "exact")
            of = {"at most": "is at most", "answers": "over the answers is"}.get(kind, "is")
            lines += [f"SMCal_{self.r:g} {of} {self.error:.4g} after {self.n_rounds} rounds: {bias} {size:.3g}"]
            lines += [] if self.luck is None else [f"  by luck of the draws at most {self.luck:.4g} more, by theorem C"]
            lines.append(f"  {at_most}")
        lines += [f"  by {self.theorem.removeprefix(AFTER)}", *(f"  assuming {a}" for a in self.assumptions)]
        return "\n".join([*lines, *(f"  NOT MET: {b}" for b in self.broken)])

    def __repr__(self) -> str:
        error = "" if self.error is None else f"error={self.error:.6g}, "
        worst = "" if self.worst == self.value else f"worst={self.worst:.6g}, "
        return f"Guarantee({self.value:.6g}, {error}{worst}theorem={self.theorem!r}, delta={self.delta:g})"


class Error(float):
    """A swap multicalibration error, and what it is.

    Parameters
    ----------
    value : float
        The number itself.
    kind : str
        "exact"; "at most", where a class is known through a learner that declares its regret; or "answers", exact for
        what the learner could have said, where it declares nothing.

    Attributes
    ----------
    at_least, at_most : float
        Between them lies the error; an exact one is both.
    parts : dict
        Of classes that stand side by side: the error over each by itself.

    Examples
    --------
    >>> Error(3.0), Error(3.0, "at most"), Error(3.0, "answers")
    (3.0, at most 3.0, 3.0 over the answers)
    """

    kind: str
    at_least: float
    parts: "dict[str, Error]"

    def __new__(cls, value: float, kind: str = "exact", *, at_least: float | None = None, parts: Any = ()) -> "Error":
        """Make the number and say what it is; `at_least` is known of an error that is "at most" the value."""
        self = super().__new__(cls, value)
        self.kind = kind
        self.at_least = float(value) if kind != "at most" else float(at_least or 0.0)
        self.parts = dict(parts)
        return self

    @property
    def at_most(self) -> float:
        """The number as a plain float: the error is no larger."""
        return float(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _error, (float(self), self.kind, self.at_least, self.parts)

    def __repr__(self) -> str:
        number = float.__repr__(self)
        return {"at most": f"at most {number}", "answers": f"{number} over the answers"}.get(self.kind, number)

    __str__ = __repr__


def _error(value: float, kind: str, at_least: float, parts: dict[str, Error]) -> Error:
    return Error(value, kind, at_least=at_least, parts=parts)


def observed(rules: "Rules", state: "State", r: float, *, said: bool = False) -> Error:
    """The error so far of what was shown, or `said`; with parts, where classes stand side by side."""
    evidence, ledger, functions = state.evidence, state.ledger, rules.functions
    sums = ledger.sums if said else ledger.sums + ledger.moved_sums
    counts = evidence.counts if said else evidence.counts + ledger.moved_counts
    visited = counts > 0
    n = counts[visited]

    def swap(found: Float64Array) -> float:
        return float(np.sum(n * (found / n) ** r))

    learner: Any = evidence if hasattr(evidence, "reach") else None
    parts, found = [], np.zeros(len(n))
    if learner is None and not hasattr(functions, "suprema"):
        return Error(swap(functions.supremum(sums[visited])))
    if learner is not None and said and ledger.moved_counts.any():
        raise InvalidInput(
            "learners are taught what was shown, so of what was said nothing is known; pass protect='nothing'"
        )
    for part, largest in functions.suprema(sums[visited]):  # type: ignore[attr-defined]
        found = np.maximum(found, largest)
        parts.append((repr(part), Error(swap(largest))))
    if learner is None:
        return Error(swap(found), parts=parts)
    reach = learner.reach(len(visited))[visited]
    parts.append((repr(learner.oracle), Error(swap(reach), learner.kind)))
    return Error(swap(np.maximum(found, reach)), learner.kind, at_least=swap(found), parts=parts)


# A potential below exp of this has never had weights on the tangent of `safe_exp`, which begins at exp(300).
_TANGENT = 250.0


def combine(evidence: float, rounded: float, r: float) -> float:
    """Minkowski's sum of the two parts of the error."""
    return float((evidence ** (1.0 / r) + rounded ** (1.0 / r)) ** r)


def to_power(squares: float, n_rounds: int, r: float) -> float:
    """The most that an error of power r can be where that of power 2 is `squares`: Hoelder's inequality below 2."""
    return squares if r >= 2.0 else float(n_rounds ** (1.0 - r / 2.0) * squares ** (r / 2.0))


def log_potential(tally: Tally, mass: float, delta: float) -> float:
    """The logarithm of what the potential stays below, at all times at once, with probability 1 - delta.

    M = 2 N |F| `mass` is what the signed functions bring with them and may add by themselves; G = M + drift is all that
    can have come but for the draws, and C = M + peak bounds it before every draw. With c_j = 2^j, j >= 1, the first at
    least C, and u_j = 1 / (j (j + 1)), the potential is at most c_j / (u_j delta) + max(0, G - c_j). Ahead of a run G
    and C are known, so that c = C alone will do.
    """
    total = 2.0 * tally.n_values * tally.n_functions * mass
    if tally.counts is None:
        return math.log((total + tally.drift) / delta)
    level = max(1, math.ceil(math.log2(max(total + max(tally.peak, 0.0), 2.0))))
    budget = math.ldexp(1.0, min(level, 1000))
    excess = max(total + tally.drift - budget, 0.0)
    return math.log(budget * level * (level + 1) / delta + excess)


def exponential(
    tally: Tally,
    mass: float,
    deviation: Callable[[Float64Array, float], Float64Array],
    r: float,
    delta: float,
    *,
    squares: bool = False,
) -> float:
    """The bound on the error for an exponential potential (theorem A').

    `deviation(c, log B)` bounds every |S_i,f| of spread c while the potential is at most B. Whatever the potential, it
    is at most c where c is the sum of |g|; where it is that of `squares`, at most the root of n c.
    Beyond exp(300) weights are continued along a tangent, and no potential is known of which they are the derivative;
    but the drift has been there before them, so where it has come near only that is promised.
    """
    log_mass = log_potential(tally, mass, delta)
    if tally.counts is not None and tally.spread is not None and tally.rounding is not None:
        shown = tally.counts if tally.shown is None else tally.shown
        visited = shown > 0
        n, spread = shown[visited], tally.spread[visited]
        known = np.sqrt(tally.counts[visited] * spread) if squares else spread
        if log_mass <= _TANGENT:
            known = np.minimum(deviation(spread, log_mass), known)
        reach = known + tally.rounding[visited] if tally.reach is None else tally.reach(known, visited)
        return float(np.sum(n * np.minimum(reach / n, 1.0) ** r))
    if r < 2.0:
        return to_power(exponential(tally, mass, deviation, 2.0, delta, squares=squares), tally.n_rounds, r)
    # n share(n)^r on [n_k, n_k+1] is at most n_k^(1-r) min(n_k+1, deviation(n_k+1))^r: exact up to the ratio of the
    # steps.
    steps = np.geomspace(1.0, max(tally.n_rounds, 1.0) * 1.01, 2000)
    sizes, values = np.unique(_sizes(tally), return_counts=True)
    largest = sizes[:, None] * steps[1:]
    reach = np.minimum(largest, deviation(sizes[:, None] * largest if squares else largest, log_mass))
    return float(values @ np.max(steps[:-1] * (reach / steps[:-1]) ** r, axis=1))


def _sizes(tally: Tally) -> Float64Array:
    return np.ones(tally.n_values) if tally.sizes is None else tally.sizes


def quadratic(tally: Tally, smoothness: float, radius: float, r: float, delta: float) -> float:
    """The bound on the error for a quadratic potential normalized by counts (theorem B).

    `radius` bounds the squared norm of a context, `smoothness` is 1 for the Euclidean norm and p - 1 for the p-norm:
    sum_i ||S_i||^2 / n_i <= radius (smoothness sum_i H(n_i) + 4 ln(1/delta)) + max(0, drift), with probability 1 -
    delta for all times at once. A value at which something else was shown counts by itself, with ||S_i||^2 <= n_i
    times that sum.
    """
    visits = np.zeros(0)
    if tally.counts is not None:
        visits = tally.counts[tally.counts > 0]
        harmonic = float(np.sum(np.euler_gamma + np.log(visits) + 0.5 / visits)) if len(visits) else 0.0
    else:
        squared = _sizes(tally) ** 2
        most = squared * (tally.n_rounds + tally.n_values) / np.sum(squared)
        harmonic = float(np.sum(squared * (1.0 + np.log(most))))
    total = radius * (smoothness * harmonic + 4.0 * math.log(1.0 / delta)) + max(tally.drift, 0.0)
    total = min(total, float(tally.n_rounds))
    evidence = to_power(total, tally.n_rounds, r)
    if tally.counts is None or tally.rounding is None:
        return evidence
    if tally.shown is None:
        rounded = tally.rounding[tally.counts > 0]
        return combine(evidence, float(np.sum(visits * (rounded / visits) ** r)), r)
    unmoved = (tally.shown == tally.counts) & (tally.counts > 0)
    n, rounded = tally.counts[unmoved], tally.rounding[unmoved]
    whole = combine(evidence, float(np.sum(n * (rounded / n) ** r)), r)
    moved = (tally.shown != tally.counts) & (tally.shown > 0)
    n, reach = tally.shown[moved], np.sqrt(total * tally.counts[moved]) + tally.rounding[moved]
    return whole + float(np.sum(n * np.minimum(reach / n, 1.0) ** r))


def certified(q: float, tally: Tally, r: float) -> float:
    """Theorem C for a quadratic potential that is `q` now: to which the draws, which count twice, could have added."""
    assert tally.counts is not None
    assert tally.rounding is not None
    assert tally.luck is not None
    total = min(max(q + 2.0 * tally.luck + tally.reserved, 0.0), float(tally.n_rounds))
    evidence = to_power(total, tally.n_rounds, r)
    visited = tally.counts > 0
    visits, rounded = tally.counts[visited], tally.rounding[visited]
    return combine(evidence, float(np.sum(visits * (rounded / visits) ** r)), r)


def quadratic_drift(now: float, phi: float, v: float, radius: float, pull: float) -> float:
    """What a round adds to the drift of a quadratic potential.

    It raises Q by at most 1 / (n + 1) - pull + 2 V Phi now. Of that, xi - xi^2 / 4 radius with xi = 2 V Phi at the draw
    is what Ville's inequality bounds, and the first term is the harmonic sum's; the rest drifts.
    """
    xi = 2.0 * v * phi
    return 2.0 * v * now - xi + xi * xi / (4.0 * radius) - pull


def quadratic_reserve(phi: float, radius: float) -> float:
    """The most that xi^2 / 4 radius - xi can be for any outcome."""
    return 2.0 * abs(phi) + phi * phi / radius


# --------
# The realized certificate: what the draws could have done, added to what they did (docs/guarantees.md, section 5).
#
# The draws are the only chance there is. So after some rounds everything else is known: the potential as it is, and U,
# what the draws have added to it. With probability 1 - delta, U never exceeds `most_luck`; had it been that large, the
# potential would be larger by the difference, and this larger potential is what the certificate promises from.

_SMALLEST, _LARGEST = -600, 60
_STEPS, _FINEST = 120, 1e-5


def most_luck(variance: float, delta: float) -> float:
    """What the sum of draws stays below, at all times at once, with probability 1 - delta.

    The draws X have E[X] <= 0 before each, and `variance` is the sum of X^2 / 6 + E[X^2] / 3, or more. For each rate L,
    exp(L sum X - L^2 variance) is a supermartingale; the rates 2^k share delta.

    Examples
    --------
    >>> most_luck(0.0, 0.05), 4.0 < most_luck(1.0, 0.05) < 5.0, round(most_luck(1e6, 0.05) / most_luck(1e4, 0.05))
    (0.0, True, 11)
    """
    if variance <= 0.0:
        return 0.0
    powers = np.arange(_SMALLEST, _LARGEST + 1, dtype=np.float64)
    shares = 0.5 / ((np.abs(powers) + 1.0) * (np.abs(powers) + 2.0))
    with np.errstate(over="ignore"):
        bounds = np.exp2(powers) * variance + (math.log(1.0 / delta) - np.log(shares)) / np.exp2(powers)
    return float(bounds.min())


def shared(
    deviation: Callable[[Float64Array], Float64Array],
    counts: Float64Array,
    known: Float64Array,
    rounding: Float64Array,
    budget: float,
    r: float,
) -> float:
    """The largest error that values can have which share one budget of potential.

    Parameters
    ----------
    deviation : callable
        For amounts e of shape (k,), of shape (values, k): the largest |S| of a value whose potential exceeds the least
        it can be by e.
    counts, known, rounding : array, shape (values,)
        Visits; what |S| cannot exceed in any case; the signed rounding.
    budget : float
        What all values together have.
    r : float
        Power of the error.

    Returns
    -------
    float
        At least max sum_i n_i min(1, (deviation_i(e_i) + rounding_i) / n_i)^r over e_i >= 0 with sum e_i <= budget.

    Notes
    -----
    For every price p, the maximum is at most p budget + sum_i max_e (error_i(e) - p e). On a grid of amounts, those
    between two grid points are charged the lower and credited the upper, so that any price gives a true bound; the best
    of a few is taken.
    """
    if not len(counts):
        return 0.0
    n = counts[:, None]
    if not math.isfinite(budget):
        return float(np.sum(counts * np.minimum((known + rounding) / counts, 1.0) ** r))
    budget = max(budget, 1e-12)
    amounts = budget * np.concatenate([[0.0], np.geomspace(_FINEST, 1.0, _STEPS)])
    reach = np.minimum(deviation(amounts[1:]), known[:, None]) + rounding[:, None]
    errors = n * np.minimum(reach / n, 1.0) ** r
    # Without a price nothing is saved: every value could have the whole budget.
    best = float(errors[:, -1].sum())
    for price in float(errors[:, -1].max()) / budget * np.geomspace(1e-3, 1e3, 61):
        best = min(best, price * budget + float((errors - price * amounts[:-1]).max(axis=1).sum()))
    return best


def certified_separately(
    potential: Any,
    sizes: Float64Array,
    spreads: Float64Array,
    counts: Float64Array,
    tally: Tally,
    r: float,
    *,
    unit: float = 1.0,
) -> float | None:
    """Theorem C for a potential that weighs functions by themselves; None if its least value is not known.

    `sizes` and `spreads` are those of all functions or blocks, by value, and are weighed in `unit`s.
    """
    if not hasattr(potential, "excess") or tally.rounding is None or tally.luck is None:
        return None
    budget = float(np.sum(potential.excess(sizes * unit, spreads * unit))) + tally.luck + tally.reserved
    visited = counts > 0
    largest, visits = np.max(spreads, axis=1)[visited], counts[visited]
    return shared(
        lambda amounts: potential.reach(amounts, largest[:, None] * unit) / unit,
        visits,
        potential.most(largest, visits),
        tally.rounding[visited],
        budget,
        r,
    )


# What every number rests on.
ALWAYS = (
    "an outcome does not depend on the draw of its own forecast, nor on later draws",
    "nobody who chooses outcomes knows the seed, or sees a forecast before its outcome is settled",
)

# What the draws themselves tell.
LUCKY = "outcomes have followed the draws more than chance allows, so this cannot be so"

UNKNOWN = (
    "nothing, as V's Lipschitz constant is not known, or V is not monotone: pass lipschitz= to a monotone property for "
    "a number below that of the rounds, or ask after some rounds, which needs none"
)


def so_far(rules: "Rules", state: "State", delta: float, *, said: bool = False) -> Guarantee:
    """The theorem on the rounds so far: with their visits, spread, rounding and draws, and no assumption on labels.

    Of what was shown, or `said`: how far the two lie apart counts as rounding.

    The smaller of theorem A' or B and, where the evidence knows how far its potential is from the least it can be,
    theorem C; each with half of delta.
    """
    n, ledger, counts = state.values.n, state.ledger, state.counts
    drift = ledger.drift.tolist()
    scaled = getattr(state.evidence, "scaled", False)
    moved = not said and bool(ledger.moved_sums.any() or ledger.moved_counts.any())
    between = ledger.rounding[:n] + ledger.moved_sums[:n] if moved else ledger.rounding[:n]
    half = 0.5 * delta
    variance = float(ledger.totals[VARIANCE]) + float(ledger.totals[LATEST])
    luck, most = float(ledger.totals[LUCK]), most_luck(variance, half)
    tally = Tally(
        n,
        _functions(rules, state),
        ledger.n_rounds + state.pending.open,
        counts=counts,
        spread=state.evidence.spread()[:n],
        rounding=rules.functions.supremum(between),
        drift=drift[DRIFT] + drift[RESERVED],
        peak=drift[PEAK],
        shown=counts + ledger.moved_counts[:n] if moved else None,
        luck=most - luck,
        reserved=drift[RESERVED],
        scale=state.scale.now if scaled else 1.0,
        doublings=state.scale.doublings if scaled else 0.0,
    )
    notes: tuple[str, ...] = ()
    if rules.jitter:
        notes = (f"labels are those spread by jitter={rules.jitter:g}, for which the error is counted too",)
    if moved:
        notes += ("what was shown counts in the cell of the value nearest to it",)
    value, theorem = state.evidence.bound(tally, rules.r, half), state.evidence.theorem
    # Theorem C is about what was said.
    certify = None if moved else getattr(state.evidence, "certified", None)
    certified = None if certify is None else certify(tally, rules.r)
    worst = min(value, float(ledger.n_rounds))
    if certified is not None and certified < value:
        value, theorem = certified, AFTER + theorem
    # The sign of an assumption that is not met is that the error, or the luck of the draws, is beyond its bound.
    found = observed(rules, state, rules.r, said=said)
    error = found if found.kind != "at most" else 0.0
    lucky = luck > most + drift[RESERVED] + 1e-9 * (1.0 + abs(luck)) or error > value * (1.0 + 1e-9) + 1e-9
    broken = (f"{LUCKY}: {ALWAYS[0]}",) if lucky else ()
    beyond = None if certified is None else max(min(certified, float(ledger.n_rounds)) - float(found), 0.0)
    known = {"error": found, "worst": worst, "luck": beyond}
    return _guarantee(value, rules, ledger.n_rounds, delta, notes, theorem=theorem, broken=broken, **known)


def ahead(rules: "Rules", state: "State", n_rounds: int, delta: float) -> Guarantee:
    """The theorem ahead of a run: with the values that were given, and the rounding that they can leave.

    Where values are added as rounds go by nothing is promised ahead; nor where V is not known to be Lipschitz, or not
    monotone. The assumptions name the number of bins with which the promise would be the smallest.
    """
    target = rules.property
    notes = ["each outcome comes before the next forecast", target.assumption]
    value = float(n_rounds)
    if target.lipschitz is None or not target.monotone:
        notes[-1] = UNKNOWN
    else:
        tried = np.unique(np.geomspace(1.0, 10.0 + 4.0 * n_rounds ** (1.0 / 3.0), 48).astype(int) | 1).tolist()
        numbers = {n: _ahead(rules, state, n, n_rounds, delta) for n in [*tried, rules.bins] if n is not None}
        best = min(tried, key=lambda n: numbers[n])
        value = numbers[rules.bins] if rules.fixed else value
        if not rules.fixed:
            notes.append("nothing yet: values are added as rounds go by, and the number comes with the rounds")
        if numbers[best] < value:
            notes.append(f"bins={rules.bins}; with bins={best} it would be {numbers[best]:.4g} ahead of so many rounds")
    if not state.hinted:
        notes.append("no hint is given; with hints the bound is larger, so ask again after the first one")
    used = rules.bins if value < n_rounds else None
    return _guarantee(value, rules, n_rounds, delta, tuple(notes), theorem=state.evidence.theorem, bins=used)


def _ahead(rules: "Rules", state: "State", n: int, n_rounds: int, delta: float) -> float:
    """What n values promise.

    Evidence is taken at most half a bin away. Of V itself Lipschitz that is all; where only the mean of a label's V is,
    a jump of V happens with that probability: with L = ln(n / delta') and any rate l, the sum of jumps at a value stays
    below (e^l - 1) / l times its mean, plus L / l.
    """
    functions, target = _functions(rules, state), rules.property
    trusted = 0.52 * functions * n_rounds * math.pow(math.e * n_rounds, rules.trust) if state.hinted else 0.0
    kernel, sizes, lipschitz = target.kernel, None, float(target.lipschitz or 0.0)
    if kernel["property"] and (kernel["label_low"], kernel["label_high"]) == target.domain:
        # V rises in the forecast and falls in the label, so it is largest at the ends of both.
        borders = np.linspace(*target.domain, n + 1)
        largest = np.abs(target.identification(borders[:, None], np.array(target.domain))).max(axis=1)
        sizes = np.maximum(largest[:-1], largest[1:])
    tally = Tally(n, functions, n_rounds, drift=trusted, peak=trusted, sizes=sizes)
    half_bin, r = min(lipschitz / (2.0 * n), 2.0), rules.r
    if kernel["property"] and target.continuous:
        own: Any = getattr(state.evidence, "ahead", None)
        found = None if own is None else own(tally, r, delta, half_bin)
        return combine(state.evidence.bound(tally, r, delta), n_rounds * half_bin**r, r) if found is None else found
    rates = np.geomspace(1e-3, 3.0, 60)
    jump, log_term = (1.0 if kernel["property"] else 2.0), math.log(2.0 * n / delta)
    rounded = [
        combine(n_rounds * (math.expm1(rate) / rate * half_bin) ** r, n * jump**r * log_term / rate, r)
        for rate in rates.tolist()
    ]
    return combine(state.evidence.bound(tally, r, 0.5 * delta), min(rounded), r)


def _functions(rules: "Rules", state: "State") -> int:
    return n_functions(rules.functions if state.hinted else rules.hypotheses)


def n_functions(functions: Any) -> int:
    """For how many functions a theorem counts: a block, all linear functions of a part of the context, is one."""
    known: int | None = getattr(functions, "n_functions", None)
    if known is not None:
        return known
    blocks = getattr(functions, "blocks", None)
    return int(functions.n) if blocks is None else int(blocks[-1]) + 1


def _guarantee(
    value: float, rules: "Rules", n_rounds: int, delta: float, notes: tuple[str, ...], **why: Any
) -> Guarantee:
    most = min(value, float(n_rounds))
    return Guarantee(most, delta=delta, r=rules.r, n_rounds=n_rounds, assumptions=(*ALWAYS, *notes), **why)

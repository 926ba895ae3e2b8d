"""What the theorems promise of a forecaster: of the rounds it has played, or of rounds to come."""

import math

from swapcal.engine import cuts
from swapcal.engine.bounds import Guarantee, Tally, combine
from swapcal.engine.certificates import most_luck
from swapcal.engine.ledger import DRIFT, LATEST, LUCK, PEAK, RESERVED, VARIANCE
from swapcal.engine.rules import Rules
from swapcal.engine.state import State

__all__ = ["ahead", "most_values", "so_far"]

ALWAYS = (
    "an outcome does not depend on the draw of its own forecast, nor on later draws",
    "nobody who chooses outcomes knows the seed, or sees a forecast before its outcome is settled",
)
"""What every number rests on."""

LUCKY = "outcomes have followed the draws more than chance allows, so this cannot be so"
"""What the draws themselves tell."""

UNKNOWN = (
    "nothing, as V's Lipschitz constant is not known: pass lipschitz= to the property for a number below that of the "
    "rounds, or ask after some rounds, which needs none"
)


def so_far(rules: Rules, state: State, delta: float) -> Guarantee:
    """The theorem on the rounds so far: with their visits, spread, rounding and draws, and no assumption on labels.

    The smaller of theorem A' or B and, where the evidence knows how far its potential is from the least it can be,
    theorem C; each with half of delta.
    """
    n, ledger, counts = state.values.n, state.ledger, state.counts
    drift = ledger.drift.tolist()
    stood_back = bool(ledger.apart.any())
    between = ledger.rounding[:n] + ledger.apart[:n] if stood_back else ledger.rounding[:n]
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
        shown=counts + ledger.moved[:n] if stood_back else None,
        luck=most - luck,
        reserved=drift[RESERVED],
    )
    notes: tuple[str, ...] = ()
    if rules.jitter:
        notes = (f"labels are those spread by jitter={rules.jitter:g}, for which the error is counted too",)
    if stood_back:
        notes += ("where the model's own number was shown, it counts in the cell of the value nearest to it",)
    value, theorem = state.evidence.bound(tally, rules.r, half), state.evidence.theorem
    # Theorem C is about what was said.
    certify = None if stood_back else getattr(state.evidence, "certified", None)
    certified = None if certify is None else certify(tally, rules.r)
    if certified is not None and certified < value:
        value, theorem = certified, f"theorem C, after {theorem}"
    # The sign of an assumption that is not met is that the error, or the luck of the draws, is beyond its bound.
    error = ledger.error(rules.functions, state.evidence.counts, rules.r)
    lucky = luck > most + drift[RESERVED] + 1e-9 * (1.0 + abs(luck)) or error > value * (1.0 + 1e-9) + 1e-9
    broken = (f"{LUCKY}: {ALWAYS[0]}",) if lucky else ()
    return _guarantee(
        min(value, float(ledger.n_rounds)), rules, state, ledger.n_rounds, delta, notes, theorem=theorem, broken=broken
    )


def ahead(rules: Rules, state: State, n_rounds: int, delta: float) -> Guarantee:
    """The theorem ahead of a run: with the most values that so many rounds can make, and the rounding they can leave.

    Between two cuts a gap gathers rounding of at most 4 sqrt(n) + 1 in n rounds, or the floor has refused the cut, and
    then |V| changes by less than that over the gap, times its Lipschitz constant; so n_i D_i^2 / n_i^2 summed over
    values is at most 40 (times the square of that, where it is above 1) for each value there can be. Without such a
    constant nothing is known ahead.
    """
    n = max(rules.bins or most_values(n_rounds), state.values.n)
    functions = _functions(rules, state)
    trusted = 0.52 * functions * n_rounds * math.pow(math.e * n_rounds, rules.trust) if state.hinted else 0.0
    tally = Tally(n, functions, n_rounds, drift=trusted, peak=trusted)
    lipschitz = math.inf if rules.property.lipschitz is None else rules.property.lipschitz
    squares = 40.0 * n * max(lipschitz, 1.0) ** 2
    rounded = squares if rules.r >= 2.0 else n_rounds ** (1.0 - rules.r / 2.0) * squares ** (rules.r / 2.0)
    if rules.fixed:
        rounded = n_rounds * min(lipschitz / (2.0 * n), 2.0) ** rules.r
    value = combine(state.evidence.bound(tally, rules.r, delta), rounded, rules.r)
    notes = ["each outcome comes before the next forecast", rules.property.assumption]
    if rules.property.lipschitz is None:
        notes[-1] = UNKNOWN
    if not state.hinted:
        notes.append("no hint is given; with hints the bound is larger, so ask again after the first one")
    return _guarantee(min(value, float(n_rounds)), rules, state, n_rounds, delta, tuple(notes))


def most_values(n_rounds: int) -> int:
    """The most values that `n_rounds` rounds can make.

    Gaps of a width between 2^-d and 2^(1-d) are disjoint, so there are at most 2^d of them; each is cut after 4^-d n >=
    FLOOR x (1 - x) rounds, a round counts in one gap, and the sum over d of the smaller of both numbers is at most 4.7
    (2 T / FLOOR)^(1/3), with logarithms near the ends. Hints add order T^(1/3) more by themselves.

    Examples
    --------
    >>> most_values(100), 40.0 < most_values(10**6) / 10**2 < 60.0
    (122, True)
    """
    cuts_made = 4.7 * math.pow(2.0 * n_rounds / cuts.FLOOR, 1.0 / 3.0) + 2.0 * math.log2(1.0 + n_rounds)
    return min(n_rounds, math.ceil(cuts_made + math.pow(n_rounds, 1.0 / 3.0))) + 2 * cuts.FIRST


def _functions(rules: Rules, state: State) -> int:
    return rules.functions.n if state.hinted else rules.hypotheses.n


def _guarantee(
    value: float,
    rules: Rules,
    state: State,
    n_rounds: int,
    delta: float,
    notes: tuple[str, ...],
    *,
    theorem: str | None = None,
    broken: tuple[str, ...] = (),
) -> Guarantee:
    return Guarantee(
        value,
        theorem=state.evidence.theorem if theorem is None else theorem,
        delta=delta,
        r=rules.r,
        n_rounds=n_rounds,
        assumptions=(*ALWAYS, *notes),
        broken=broken,
    )

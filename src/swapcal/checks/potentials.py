"""What every potential must be: odd and increasing weights, finite everywhere, and a bound that its game obeys."""

from itertools import pairwise

import numpy as np

from swapcal.checks.check_rules import apply, expect, missing
from swapcal.checks.plain import expect_plain
from swapcal.engine.bounds import Tally
from swapcal.potentials import Potential
from swapcal.typing import Float64Array

__all__ = ["POTENTIAL_RULES", "check_potential"]

_SUMS = (1e-200, 1e-9, 0.01, 0.5, 1.0, 2.0, 5.0, 17.0, 60.0, 200.0)
_SPREADS = (0.0, 1e-12, 0.3, 1.0, 7.0, 50.0, 400.0, 1e4)


def check_potential(potential: Potential) -> None:
    """Check that `potential` does what `swapcal.potentials.Potential` promises; `CheckFailed` says what it does not.

    The inequality of the proof is checked through its consequence: an adversary whose weighted gain is zero in every
    round must not push the sums beyond the bound. Takes about a tenth of a second.

    Parameters
    ----------
    potential : Potential
        Such as `Squint()`.

    Examples
    --------
    >>> from swapcal.potentials import Squint
    >>> check_potential(Squint())
    """
    apply(POTENTIAL_RULES, potential, potential)


def has_the_role(potential: Potential) -> None:
    """A potential has every member of `potentials.Potential`, and says where it comes from.

    A finite class uses all of them; the guarantee cites the reference.
    """
    lacking = missing(potential, Potential)
    expect(not lacking, f"it has no {', '.join(lacking)}")
    expect(isinstance(potential.reference, str) and potential.reference, "its reference is not said in words")


def weight_is_odd(potential: Potential) -> None:
    """The weight of -s is minus the weight of s, to the last bit, and zero at zero.

    A function and its negative are one entry; only so does the evidence of f cancel that of -f.
    """
    for c in _SPREADS:
        expect(potential.weight(0.0, c) == 0.0, f"weight(0, {c:g}) is {potential.weight(0.0, c)!r}")
        for s in _SUMS:
            plus, minus = potential.weight(s, c), potential.weight(-s, c)
            expect(plus == -minus, f"weight({s:g}, {c:g}) = {plus!r}, and {minus!r} for the negative sum")


def weight_increases(potential: Potential) -> None:
    """The weight increases with s, so it has the sign of s.

    The crossing is where the evidence of both signs balances; a weight of the wrong sign feeds the bias.
    """
    for c in _SPREADS[2:]:
        weights = [potential.weight(s, c) for s in _SUMS]
        expect(weights[0] >= 0.0, f"weight({_SUMS[0]:g}, {c:g}) is {weights[0]!r}")
        for (a, b), (s, t) in zip(pairwise(weights), pairwise(_SUMS), strict=True):
            expect(a < b, f"weight({s:g}, {c:g}) = {a!r} and weight({t:g}, {c:g}) = {b!r}")


def weight_is_finite(potential: Potential) -> None:
    """Weights stay finite for every sum of up to a billion gains, whatever its spread.

    Outcomes that come late in great numbers can push sums past what the theorem allows; Phi must survive that.
    """
    for s in (*_SUMS, 1e4, 1e6, 1e9):
        for c in (*_SPREADS, 1e6, 1e9):
            w = potential.weight(s, c)
            expect(isinstance(w, float) and np.isfinite(w), f"weight({s:g}, {c:g}) is {w!r}")


def spread_adds_up(potential: Potential) -> None:
    """`spread` gives each gain a finite number that is not negative, the same for g and -g, and none for no gain.

    c is a sum of spreads: it measures how much a sum could have moved, and must not shrink.
    """
    g = np.array([0.0, 1e-200, 1e-3, -1e-3, 0.5, -0.5, 1.0, -1.0])
    spread = potential.spread(g)
    expect(isinstance(spread, np.ndarray) and spread.shape == g.shape, "it is not an array of the same shape")
    expect(np.isfinite(spread).all() and spread.min() >= 0.0, f"it is {spread!r}")
    expect(spread[0] == 0.0 and np.array_equal(spread[2::2], spread[3::2]), f"it is {spread!r} for {g!r}")


def weights_of_a_bin_have_the_signs_of_its_sums(potential: Potential) -> None:
    """`row_weights`, where functions are weighed together, is finite, odd, and has the signs of the sums.

    It replaces the single weights of a bin, so the same is asked of it: no function may be pushed the wrong way.
    """
    for sums in (np.zeros(3), np.array([1e-9, 0.0, 0.0]), np.array([3.0, -40.0, 0.5]), np.array([1e9, -1e9, 1e-9])):
        for n in (1.0, 50.0, 1e9):
            weights, mirrored = (potential.row_weights(sign * sums, n) for sign in (1.0, -1.0))
            if weights is None or mirrored is None:
                expect(weights is None and mirrored is None, "it is None only for some sums")
                return
            expect(weights.shape == sums.shape and np.isfinite(weights).all(), f"it is {weights!r} for {sums!r}")
            expect(
                np.array_equal(weights, -mirrored), f"it is {weights!r} for {sums!r}, and {mirrored!r} for minus that"
            )
            expect((weights * sums >= 0.0).all(), f"it has other signs than the sums: {weights!r} for {sums!r}")
            expect(weights.any() or not sums.any(), f"it is zero for {sums!r}")


def level_rises(potential: Potential) -> None:
    """`level`, if there is one, starts at zero and rises with |s|.

    A hint is trusted while the level is low; it has to rise as evidence against the hint gathers.
    """
    s = np.array([0.0, 0.5, 1.0, 5.0, 40.0])
    for c in _SPREADS[2:]:
        level, mirrored = (potential.level(sign * s, np.full(len(s), c)) for sign in (1.0, -1.0))
        if level is None or mirrored is None:
            return
        expect(np.isfinite(level).all() and level[0] == 0.0, f"it is {level!r} at the spread {c:g}")
        expect((np.diff(level) > 0.0).all(), f"it is {level!r} for the sums {s!r} at the spread {c:g}")
        expect(np.array_equal(level, mirrored), f"it differs for s and -s at the spread {c:g}")


def bound_moves_as_it_should(potential: Potential) -> None:
    """The bound is positive and finite, grows with rounds, and grows as delta gets smaller.

    More rounds cannot have a smaller total error, and a promise that is kept more often has to be weaker.
    """
    for r in (1.0, 1.5, 2.0, 3.0):
        by_rounds = [potential.bound(Tally(10, 5, t), r, 0.05) for t in (1, 10, 100, 10_000, 1_000_000)]
        expect(np.isfinite(by_rounds).all() and min(by_rounds) > 0.0, f"for r={r:g} it is {by_rounds}")
        expect(np.diff(by_rounds).min() >= 0.0, f"for r={r:g} it falls as rounds increase: {by_rounds}")
        by_delta = [potential.bound(Tally(10, 5, 10_000), r, delta) for delta in (1.0, 0.5, 0.05, 1e-6, 1e-200)]
        expect(np.isfinite(by_delta).all(), f"for r={r:g} it is {by_delta}")
        expect(np.diff(by_delta).min() >= 0.0, f"for r={r:g} it falls as delta does: {by_delta}")


def zero_gain_stays_below_the_bound(potential: Potential) -> None:
    """Gains whose weighted sum is zero, in every round or on average, keep the sums below the bound.

    It is the potential's inequality at work: the forecaster makes the weighted gain zero on average, and only then
    does the bound follow.
    """
    for n, seed in ((2, 0), (2, 1), (5, 2), (20, 3)):
        for delta, adversary in ((1.0, True), (0.01, False)):
            rng = np.random.default_rng(seed)
            sums, spread, rounds = _played(potential, n, 400, rng) if adversary else _flipped(potential, n, 400, rng)
            tally = Tally(1, n, int(rounds), np.array([rounds]), np.array([spread]))
            reached, allowed = rounds * (np.abs(sums).max() / rounds) ** 2, potential.bound(tally, 2.0, delta)
            expect(reached <= allowed, f"{n} functions reach the error {reached:g}, and the bound is {allowed:g}")


def _flipped(
    potential: Potential, n: int, n_rounds: int, rng: np.random.Generator
) -> tuple[Float64Array, float, float]:
    """Sums of fair coins: the weighted gain is zero on average, whatever the weights."""
    gains = rng.choice([-1.0, 1.0], (n_rounds, n))
    return gains.sum(axis=0), float(potential.spread(gains).sum(axis=0).max()), float(n_rounds)


def _played(potential: Potential, n: int, n_rounds: int, rng: np.random.Generator) -> tuple[Float64Array, float, float]:
    """Sums after a game in one bin: all functions but one give up what they have to push that one further."""
    sums, spreads = np.zeros(n), np.zeros(n)
    for t in range(n_rounds):
        together = potential.row_weights(sums, float(max(t, 1)))
        single = [potential.weight(s, c) for s, c in zip(sums.tolist(), spreads.tolist(), strict=True)]
        w = np.array(single) if together is None else together
        favored = 0 if t < n_rounds // 2 else int(np.argmax(np.abs(sums)))
        gains = -np.sign(sums) * rng.uniform(0.5, 1.0, n)
        gains[sums == 0.0] = rng.choice([-1.0, 1.0], int(np.sum(sums == 0.0)))
        others = float(gains @ w) - float(gains[favored] * w[favored])
        # What the others give up pays for the favored one; what is left over of their gains is scaled away.
        gains[favored] = 1.0 if w[favored] == 0.0 else float(np.clip(-others / w[favored], -1.0, 1.0))
        if w[favored] != 0.0 and others != 0.0:
            gains[np.arange(n) != favored] *= min(1.0, abs(float(w[favored] * gains[favored]) / others))
        sums += gains
        spreads += potential.spread(gains)
    return sums, float(spreads.max()), float(n_rounds)


def spec_is_plain(potential: Potential) -> None:
    """`spec` is plain data.

    State files hold specs and never code.
    """
    expect_plain(potential.spec())


POTENTIAL_RULES = (
    has_the_role,
    weight_is_odd,
    weight_increases,
    weight_is_finite,
    spread_adds_up,
    weights_of_a_bin_have_the_signs_of_its_sums,
    level_rises,
    bound_moves_as_it_should,
    zero_gain_stays_below_the_bound,
    spec_is_plain,
)

"""What every property must be: an identification function, a loss and a value that belong together."""

from itertools import pairwise
from typing import Any

import numpy as np

from swapcal import properties
from swapcal.checks.rules import Rules, expect, expect_bound, expect_plain, expect_role, members
from swapcal.potentials import Potential
from swapcal.protocols import Elicitable, Tally
from swapcal.typing import Float64Array

# --------
# What every potential must be: odd and increasing weights, finite everywhere, and a bound that its game obeys.

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
    PotentialRules(potential).apply()


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


class PotentialRules(Rules[Potential]):
    """What every potential must be: odd and increasing weights, finite everywhere, and a bound that its game obeys."""

    def has_the_role(self) -> None:
        """A potential has every member of `potentials.Potential`, and all of them can be called.

        A finite class uses all of them.
        """
        expect_role(self.part, Potential)
        wrong = [name for name in members(Potential) if not callable(getattr(self.part, name))]
        expect(not wrong, f"its {', '.join(wrong)} cannot be called")

    def weight_is_odd(self) -> None:
        """The weight of -s is minus the weight of s, to the last bit, and zero at zero.

        A function and its negative are one entry; only so does the evidence of f cancel that of -f.
        """
        for c in _SPREADS:
            expect(self.part.weight(0.0, c) == 0.0, f"weight(0, {c:g}) is {self.part.weight(0.0, c)!r}")
            for s in _SUMS:
                plus, minus = self.part.weight(s, c), self.part.weight(-s, c)
                expect(plus == -minus, f"weight({s:g}, {c:g}) = {plus!r}, and {minus!r} for the negative sum")

    def weight_increases(self) -> None:
        """The weight increases with s, so it has the sign of s.

        The crossing is where the evidence of both signs balances; a weight of the wrong sign feeds the bias.
        """
        for c in _SPREADS[2:]:
            weights = [self.part.weight(s, c) for s in _SUMS]
            expect(weights[0] >= 0.0, f"weight({_SUMS[0]:g}, {c:g}) is {weights[0]!r}")
            for (a, b), (s, t) in zip(pairwise(weights), pairwise(_SUMS), strict=True):
                expect(a < b, f"weight({s:g}, {c:g}) = {a!r} and weight({t:g}, {c:g}) = {b!r}")

    def weight_is_finite(self) -> None:
        """Weights stay finite for every sum of up to a billion gains, whatever its spread.

        Outcomes that come late in great numbers can push sums past what the theorem allows; Phi must survive that.
        """
        for s in (*_SUMS, 1e4, 1e6, 1e9):
            for c in (*_SPREADS, 1e6, 1e9):
                w = self.part.weight(s, c)
                expect(isinstance(w, float) and np.isfinite(w), f"weight({s:g}, {c:g}) is {w!r}")

    def spread_adds_up(self) -> None:
        """`spread` gives each gain a finite number that is not negative, the same for g and -g, and none for no gain.

        c is a sum of spreads: it measures how much a sum could have moved, and must not shrink.
        """
        g = np.array([0.0, 1e-200, 1e-3, -1e-3, 0.5, -0.5, 1.0, -1.0])
        spread = self.part.spread(g)
        expect(isinstance(spread, np.ndarray) and spread.shape == g.shape, "it is not an array of the same shape")
        expect(np.isfinite(spread).all() and spread.min() >= 0.0, f"it is {spread!r}")
        expect(spread[0] == 0.0 and np.array_equal(spread[2::2], spread[3::2]), f"it is {spread!r} for {g!r}")

    def weights_of_a_bin_have_the_signs_of_its_sums(self) -> None:
        """`row_weights`, where functions are weighed together, is finite, odd, and has the signs of the sums.

        It replaces the single weights of a bin, so the same is asked of it: no function may be pushed the wrong way.
        """
        for sums in (np.zeros(3), np.array([1e-9, 0.0, 0.0]), np.array([3.0, -40.0, 0.5]), np.array([1e9, -1e9, 1e-9])):
            for n in (1.0, 50.0, 1e9):
                weights, mirrored = (self.part.row_weights(sign * sums, n) for sign in (1.0, -1.0))
                if weights is None or mirrored is None:
                    expect(weights is None and mirrored is None, "it is None only for some sums")
                    return
                expect(weights.shape == sums.shape and np.isfinite(weights).all(), f"it is {weights!r} for {sums!r}")
                odd = np.array_equal(weights, -mirrored)
                expect(odd, f"it is {weights!r} for {sums!r}, and {mirrored!r} for minus that")
                expect((weights * sums >= 0.0).all(), f"it has other signs than the sums: {weights!r} for {sums!r}")
                expect(weights.any() or not sums.any(), f"it is zero for {sums!r}")

    def level_rises(self) -> None:
        """`level`, if there is one, starts at zero and rises with |s|.

        A hint is trusted while the level is low; it has to rise as evidence against the hint gathers.
        """
        s = np.array([0.0, 0.5, 1.0, 5.0, 40.0])
        for c in _SPREADS[2:]:
            level, mirrored = (self.part.level(sign * s, np.full(len(s), c)) for sign in (1.0, -1.0))
            if level is None or mirrored is None:
                return
            expect(np.isfinite(level).all() and level[0] == 0.0, f"it is {level!r} at the spread {c:g}")
            expect((np.diff(level) > 0.0).all(), f"it is {level!r} for the sums {s!r} at the spread {c:g}")
            expect(np.array_equal(level, mirrored), f"it differs for s and -s at the spread {c:g}")

    def bound_moves_as_it_should(self) -> None:
        """The bound is positive and finite, grows with rounds, and grows as delta gets smaller.

        More rounds cannot have a smaller total error, and a promise that is kept more often has to be weaker.
        """
        for r in (1.0, 1.5, 2.0, 3.0):
            expect_bound(lambda t, delta, r=r: self.part.bound(Tally(10, 5, t), r, delta), np.nextafter(0.0, 1.0))  # type: ignore[misc]

    def zero_gain_stays_below_the_bound(self) -> None:
        """Gains whose weighted sum is zero, in every round or on average, keep the sums below the bound.

        It is the potential's inequality at work: the forecaster makes the weighted gain zero on average, and only then
        does the bound follow.
        """
        for n, seed in ((2, 0), (2, 1), (5, 2), (20, 3)):
            for delta, adversary in ((1.0, True), (0.01, False)):
                rng = np.random.default_rng(seed)
                sums, spread, rounds = (_played if adversary else _flipped)(self.part, n, 400, rng)
                tally = Tally(1, n, int(rounds), np.array([rounds]), np.array([spread]))
                reached, allowed = rounds * (np.abs(sums).max() / rounds) ** 2, self.part.bound(tally, 2.0, delta)
                expect(reached <= allowed, f"{n} functions reach the error {reached:g}, and the bound is {allowed:g}")

    def spec_is_plain(self) -> None:
        """`spec` is plain data.

        State files hold specs and never code.
        """
        expect_plain(self.part.spec())


# What a difference quotient may be wrong by; users' losses are differentiated numerically.
_SLACK = 1e-7


def check_property(property: Elicitable) -> None:
    """Check that `property` does what `swapcal.protocols.Elicitable` promises; `CheckFailed` says what it does not.

    Takes about a hundredth of a second, and a second where loss and value are found numerically.

    Parameters
    ----------
    property : Elicitable
        Such as `Mean()`, or a `Property` of your own functions.

    Examples
    --------
    >>> from swapcal import Mean, Property
    >>> check_property(Mean())
    >>> check_property(Property(lambda p, y: (p - y) ** 3, name="cubic"))
    """
    PropertyRules(property).apply()


class PropertyRules(Rules[Elicitable]):
    """What every property must be: an identification function, a loss and a value that belong together."""

    def has_the_role(self) -> None:
        """A property has every member of `protocols.Elicitable`.

        The forecaster, the audit and the bounds each use another part of it.
        """
        expect_role(self.part, Elicitable)
        (low, high), (bottom, top) = (self.part.low, self.part.high), self.part.domain
        finite = np.isfinite([low, high, bottom, top]).all()
        expect(finite and low < high and bottom < top, "a range is empty or infinite")
        expect(isinstance(self.part.assumption, str) and self.part.assumption, "its assumption is not said in words")

    def labels_are_judged(self) -> None:
        """`invalid_labels` finds nothing wrong with labels in the range, and says what is wrong with others.

        It is the one place where a forecaster asks whether a label may be used.
        """
        width = self.part.high - self.part.low
        y = np.array([self.part.low, self.part.high])
        expect(self.part.invalid_labels(y) is None, f"it refuses its own ends: {self.part.invalid_labels(y)}")
        for bad in (np.nan, np.inf, self.part.low - width, self.part.high + width):
            why = self.part.invalid_labels(np.array([self.part.low, bad]))
            expect(isinstance(why, str) and why, f"it allows the label {bad}")

    def identification_is_bounded(self) -> None:
        """|V(p, y)| is at most 1 for every forecast in the domain and every label.

        Gains are f(x) V with |f| <= 1, and every potential's inequality is for gains of size at most 1.
        """
        p, y = self._points(101)
        v = self._v(p[:, None], y)
        expect(v.shape == (len(p), len(y)), f"V of a column of {len(p)} and a row of {len(y)} has shape {v.shape}")
        expect(np.isfinite(v).all() and np.abs(v).max() <= 1.0, f"its largest size is {np.abs(v).max()!r}")

    def signs_at_the_ends(self) -> None:
        """V is at most 0 at the low end of the domain and at least 0 at the high end, for labels inside the range.

        Where all evidence has one sign the forecaster plays an end of the grid, and must be sure that this heals.
        """
        _, y = self._points(101)
        y = y[1:-1] if len(y) > 2 else y
        low, high = self.part.domain
        expect(self._v(low, y).max() <= _SLACK, f"V({low:g}, y) reaches {self._v(low, y).max():g}")
        expect(self._v(high, y).min() >= -_SLACK, f"V({high:g}, y) falls to {self._v(high, y).min():g}")

    def monotone_as_claimed(self) -> None:
        """If `monotone` is true, V never falls as the forecast rises.

        A monotone V lets the forecaster take evidence at the forecasts themselves instead of at a border.
        """
        p, y = self._points(201)
        falls = -np.diff(self._v(p[:, None], y), axis=0).min()
        expect(not self.part.monotone or falls <= _SLACK, f"V falls by {falls:g} between two forecasts")

    def lipschitz_as_claimed(self) -> None:
        """V, or the mean of V over spread-out labels where V jumps, is no steeper than `lipschitz`.

        The rounding term of the bound ahead of a run is computed from it.
        """
        if self.part.lipschitz is None:
            return
        p, y = self._points(401)
        v = self._v(p[:, None], y[1:-1] if len(y) > 2 else y)
        if not self.part.continuous:
            # Between forecasts ten steps apart, counting labels instead of measuring them matters less.
            v = v.mean(axis=1, keepdims=True)[::10]
        steepest = float(np.abs(np.diff(v, axis=0)).max()) * (len(v) - 1)
        allowed = self.part.lipschitz * (1.0 + 1e-6) + (0.0 if self.part.continuous else 0.2)
        expect(steepest <= allowed, f"a slope is {steepest:g} and lipschitz says {self.part.lipschitz:g}")

    def continuous_as_claimed(self) -> None:
        """If `continuous` is true, V does not jump.

        Where it does, labels that heap on one value break the guarantee, and users are warned of such labels.
        """
        p, y = self._points(101)
        cell = np.abs(np.diff(self._v(p[:, None], y), axis=0)).argmax(axis=0)
        left, right = p[cell], p[cell + 1]
        for _ in range(10):
            middle = 0.5 * (left + right)
            at_left, at, at_right = (self._v(q, y) for q in (left, middle, right))
            lower = np.abs(at - at_left) >= np.abs(at_right - at)
            left, right = np.where(lower, left, middle), np.where(lower, middle, right)
        jump = np.abs(self._v(right, y) - self._v(left, y)).max()
        expect(not self.part.continuous or jump <= 0.02, f"V changes by {jump:g} within 1e-5 widths of the domain")

    def loss_has_the_derivative(self) -> None:
        """The derivative of the loss in p is `loss_weight(p)` V(p, y), and the weight is not negative.

        Osband's principle: that is what makes the property's value the minimizer of the mean loss that people report.
        """
        low, high = self.part.domain
        step = 1e-5 * (high - low)
        _, y = self._points(15)
        # Off the ends, where a weight may be infinite, and off the labels, where a loss may have a kink.
        p = (low + (high - low) * (np.arange(40) + 0.527) / 40)[:, None]
        slopes = (np.asarray(self.part.loss(p + step, y)) - np.asarray(self.part.loss(p - step, y))) / (2.0 * step)
        weight = np.asarray(self.part.loss_weight(p))
        expected = weight * self._v(p, y)
        worst = float(np.max(np.abs(slopes - expected) - 3e-5 * np.abs(expected)))
        expect(worst <= 3e-6 * (1.0 + np.abs(expected).max()), f"they differ by {worst:g}")
        expect(weight.min() >= 0.0, f"a weight is {weight.min():g}")

    def value_is_the_root(self) -> None:
        """`value` of a sample lies in the domain, and the sample's mean identification changes its sign there.

        The identification function defines the property; a value elsewhere would be the value of another one.
        """
        low, high = self.part.domain
        for y in self._samples():
            value = float(self.part.value(y))
            expect(low <= value <= high, f"value {value!r} is outside [{low:g}, {high:g}]")
            near = 1e-6 * (high - low)
            below, above = (self._v(q, y).mean() for q in (max(value - near, low), min(value + near, high)))
            slack = 1e-12 if self.part.lipschitz is None or not self.part.continuous else 2e-6 * self.part.lipschitz
            # At the low end itself there is nothing below, and a step function is positive there.
            expect(
                value == low or below <= slack, f"the mean of V is {below:g} just below the value {value!r} of {y!r}"
            )
            expect(above >= -slack, f"the mean of V is {above:g} just above the value {value!r} of {y!r}")

    def value_minimizes_the_loss(self) -> None:
        """No forecast has a smaller mean loss on a sample than the sample's `value`.

        That is what it means that the loss elicits the property.
        """
        rivals = np.linspace(*self.part.domain, 57)[1:-1]
        for y in self._samples():
            best = float(np.mean(self.part.loss(np.array([self.part.value(y)]), y)))
            others = np.mean(self.part.loss(rivals[:, None], y), axis=1)
            gain = best - float(others.min())
            expect(gain <= 1e-9 * (1.0 + np.abs(others).max()), f"a forecast beats the value of {y!r} by {gain:g}")

    def numbers_equal_arrays(self) -> None:
        """Numbers give the same as arrays of them, but for rounding, and arrays that are passed in stay as they are.

        The forecaster calls with numbers, the audit with arrays, and what the one forecasts the other must recognize.
        """
        p, y = self._points(6)
        p = p[1:-1, None]
        before = p.copy(), y.copy()
        v, loss, weight = (
            np.asarray(a) for a in (self.part.identification(p, y), self.part.loss(p, y), self.part.loss_weight(p))
        )
        for i, forecast in enumerate(p[:, 0].tolist()):
            expect(np.isclose(self.part.loss_weight(forecast), weight[i, 0], rtol=1e-9), f"loss_weight({forecast!r})")
            for j, label in enumerate(y.tolist()):
                at = f"at p={forecast!r}, y={label!r}"
                expect(abs(float(self.part.identification(forecast, label)) - v[i, j]) <= 1e-12, f"V differs {at}")
                near = np.isclose(self.part.loss(forecast, label), loss[i, j], rtol=1e-9, atol=1e-12)
                expect(near, f"the loss differs {at}")
        expect(np.array_equal(p, before[0]) and np.array_equal(y, before[1]), "an argument was changed")

    def spec_is_plain(self) -> None:
        """`spec` is plain data, and if `properties.from_spec` knows it, rebuilds the property.

        State files hold specs and never code; a property of your own is passed to `load` again and compared by spec.
        """
        again, (p, y) = expect_plain(self.part.spec(), properties.from_spec), self._points(21)
        if again is not None:
            equal = np.array_equal(PropertyRules(again)._v(p[:, None], y), self._v(p[:, None], y))
            expect(equal, f"V of the rebuilt {again!r} differs")

    def _points(self, n: int) -> tuple[Float64Array, Float64Array]:
        """Forecasts over the domain and labels over the range; no forecast equals a label but for the ends."""
        inside = self.part.low + (self.part.high - self.part.low) * (np.arange(n) + 0.37) / n
        labels = np.concatenate([[self.part.low], inside, [self.part.high]])
        if self.part.invalid_labels(labels) is not None:
            labels = np.array([self.part.low, self.part.high])
        return np.linspace(*self.part.domain, n), labels

    def _samples(self) -> list[Float64Array]:
        rng = np.random.default_rng(0)
        _, labels = self._points(50)
        return [labels[:1], labels[-1:], *(rng.choice(labels, size) for size in (1, 2, 3, 10, 41))]

    def _v(self, p: Any, y: Any) -> Float64Array:
        return np.asarray(self.part.identification(p, y), dtype=np.float64)

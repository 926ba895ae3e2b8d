"""What every learning hint must be: pure forecasts inside the domain, and a state that is saved exactly."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from swapcal import inputs, learners
from swapcal.checks.rules import Rules, expect, expect_plain, expect_role, expect_saved, refusal, sample_rows, snapshot
from swapcal.errors import InvalidInput
from swapcal.hypotheses import Oracle
from swapcal.learners import Learner, Taught
from swapcal.properties import Expectile, Mean, Quantile
from swapcal.protocols import Elicitable, HintState, LearningHint, Row
from swapcal.typing import Float64Array

_INPUTS = 4
_PROPERTIES: tuple[Elicitable, ...] = (Mean(), Quantile(0.9, low=-10.0, high=20.0), Expectile(0.2, low=3.0, high=3.5))


def check_hint(hint: LearningHint) -> None:
    """Check that `hint` does what `swapcal.protocols.LearningHint` promises, and its state what `HintState` does.

    `CheckFailed` says what it does not. Takes a few hundredths of a second.

    Parameters
    ----------
    hint : LearningHint
        Such as `OnlineRegression()`.

    Examples
    --------
    >>> from swapcal import OnlineRegression
    >>> check_hint(OnlineRegression(n_features=2))
    """
    HintRules(hint).apply()


class _HintRound(NamedTuple):
    """One round of a stream for hints."""

    row: Row
    features: Float64Array | None
    base: float | None
    y: float


def _forecasts(state: HintState, cases: list[_HintRound]) -> list[float]:
    return [state.said(case.row, case.features, case.base)[0] for case in cases]


def _learn(state: HintState, cases: list[_HintRound]) -> None:
    for case in cases:
        state.update(*case)


class HintRules(Rules[LearningHint]):
    """What every learning hint must be: pure forecasts inside the domain, and a state that is saved exactly."""

    def has_the_role(self) -> None:
        """A learning hint has every member of `protocols.LearningHint`, and its state every one of `HintState`.

        The forecaster uses all of them.
        """
        for part, role in ((self.part, LearningHint), (self.part.start(Mean(), _INPUTS), HintState)):
            expect_role(part, role, type(part).__name__)
        n_features = self.part.n_features
        expect(isinstance(n_features, int) and n_features >= 0, f"n_features is {n_features!r}")

    def forecasts_stay_in_the_domain(self) -> None:
        """Every forecast is a number in the property's domain: before any outcome, and after wild features and labels.

        The engine plays near the hint, and a hint that is no forecast has no place on its grid.
        """
        for each in _PROPERTIES:
            low, high = each.domain
            state = self.part.start(each, _INPUTS)
            for t, case in enumerate(self._stream(each, 60, seed=2)):
                wild = None if case.features is None else case.features * (1e6 if t % 7 == 0 else 1.0)
                for base in (case.base, low, high, None):
                    value = state.said(case.row, wild, base)[0]
                    expect(isinstance(value, float) and low <= value <= high, f"it forecasts {value!r} for {each!r}")
                state.update(case.row, wild, case.base, each.high if t % 5 == 0 else case.y)

    def forecasting_changes_nothing(self) -> None:
        """`said` leaves the state, and its arguments, as they are.

        Forecasts whose outcome never comes must leave no trace.
        """
        state = self._taught(Mean())
        cases = self._stream(Mean(), 10, seed=3)
        before, values = snapshot(state), [case.row.values.copy() for case in cases]
        expect(_forecasts(state, cases) == _forecasts(state, cases), "the same round has two forecasts")
        expect(snapshot(state) == before, "the state has changed")
        same_values = (np.array_equal(case.row.values, v) for case, v in zip(cases, values, strict=True))
        expect(all(same_values), "a context was changed")

    def learns_from_outcomes(self) -> None:
        """With one label again and again, forecasts come nearer to it.

        A hint that does not learn the simplest stream is better given as a number.
        """
        for target in (0.9, 0.1):
            state, case = self.part.start(Mean(), _INPUTS), self._stream(Mean(), 3, seed=4)[2]
            first = abs(state.said(case.row, case.features, case.base)[0] - target)
            for _ in range(200):
                state.update(case.row, case.features, case.base, target)
            last = abs(state.said(case.row, case.features, case.base)[0] - target)
            expect(last < 0.5 * first, f"the distance from {target} goes from {first:g} to {last:g} in 200 rounds")

    def states_are_shared_with_nobody(self) -> None:
        """States from two calls of `start` have nothing in common, nor do they with the arrays they are given.

        One description of a hint serves many forecasters, and callers reuse their arrays.
        """
        one, two = self.part.start(Mean(), _INPUTS), self.part.start(Mean(), _INPUTS)
        before = snapshot(two)
        cases = self._stream(Mean(), 10, seed=6)
        _learn(one, cases)
        expect(snapshot(two) == before, "updating the one has changed the other")
        after = snapshot(one)
        for case in cases:
            case.row.values[:] = 0.123
            if case.features is not None:
                case.features[:] = 0.456
        expect(snapshot(one) == after, "changing an array after update has changed the state")

    def states_are_saved_exactly(self) -> None:
        """`restore` continues from `arrays` to the last bit, and shares nothing with them.

        A loaded forecaster has to draw the forecasts that the original would have drawn.
        """
        for each in _PROPERTIES:
            cases = self._stream(each, 12, seed=5)
            answers, learn = partial(_forecasts, cases=cases), partial(_learn, cases=cases)
            expect_saved(self._taught(each), self.part.start(each, _INPUTS), answers, learn)

    def bad_input_changes_nothing(self) -> None:
        """NaN and infinities in label, base or features are refused with a `SwapcalError`, and the state stays.

        One bad number in a weight spoils the hint for good.
        """
        state = self._taught(Mean())
        row, features, _, y = self._stream(Mean(), 4, seed=7)[3]
        refused = refusal(state)
        for wrong in (np.nan, np.inf, -np.inf):
            refused(f"update with the label {wrong}", state.update, row, features, 0.5, wrong)
            refused(f"update with the base {wrong}", state.update, row, features, wrong, y)
            refused(f"forecast with the base {wrong}", state.said, row, features, wrong)
            if features is not None:
                bad = np.full(len(features), wrong)
                refused(f"update with features {wrong}", state.update, row, bad, 0.5, y)
                refused(f"forecast with features {wrong}", state.said, row, bad, 0.5)

    def memory_is_bounded(self) -> None:
        """A stream ten times as long makes the state no larger.

        A hint runs beside a forecaster for as long as that does.
        """
        sizes = [sum(map(len, snapshot(self._taught(Mean(), rounds)).values())) for rounds in (30, 300)]
        expect(sizes[0] == sizes[1], f"after 30 rounds it takes {sizes[0]} bytes, after 300 {sizes[1]}")

    def spec_is_plain(self) -> None:
        """`spec` is plain data.

        State files hold specs and never code; a hint of your own is passed to `load` again and compared by spec.
        """
        expect_plain(self.part.spec())

    def _stream(self, property: Elicitable, n_rounds: int, seed: int) -> list[_HintRound]:
        """Rounds with and without a base forecast, with features of very different sizes."""
        rng = np.random.default_rng(seed)
        (low, high), sizes = property.domain, 10.0 ** rng.uniform(-3.0, 3.0, self.part.n_features)
        cases = []
        for t, row in enumerate(sample_rows(_INPUTS, n_rounds, seed)):
            features = rng.normal(size=self.part.n_features) * sizes if self.part.n_features else None
            base = None if t % 3 == 2 else float(rng.uniform(low, high))
            cases.append(_HintRound(row, features, base, float(rng.uniform(property.low, property.high))))
        return cases

    def _taught(self, property: Elicitable, n_rounds: int = 30) -> HintState:
        state = self.part.start(property, _INPUTS)
        _learn(state, self._stream(property, n_rounds, seed=1))
        return state


# What rounding may add to an answer; n times as much to a sum of n.
_SLACK = 1e-9


def check_learner(
    learner: Learner, *, contexts: Sequence[Any] | None = None, n_rounds: int = 300, seed: int = 0
) -> None:
    """Check that `learner` does what `swapcal.learners.Learner` promises; `CheckFailed` says what it does not.

    Where it knows its `supremum`, the regret is measured after every round of games against adversaries: one that
    contradicts each answer, one that alternates, one that never changes, one that is random, and one whose best
    function switches. A game that is won proves nothing; one that is lost shows that the declared bound is wrong.

    Parameters
    ----------
    learner
        The learner; it is left as it is.
    contexts
        Some contexts, for a learner that does not read vectors of length `n`.
    n_rounds
        Length of each game.
    seed
        Of the contexts and of the random game.

    Notes
    -----
    Thirty games, played four times: about a second for 300 rounds and a learner that takes 20 microseconds a round.

    Examples
    --------
    >>> from swapcal.learners import GradientDescent, MultiplicativeWeights
    >>> check_learner(GradientDescent(3), n_rounds=50)
    >>> check_learner(MultiplicativeWeights(3), n_rounds=50)
    """
    inputs.integer(n_rounds, "n_rounds", 1)
    inputs.integer(seed, "seed", 0)
    if contexts is None and not isinstance(getattr(learner, "n", None), int):
        raise InvalidInput(f"{learner!r} reads no vectors of a length n; pass contexts= that it reads")
    LearnerRules(learner, n_rounds, seed, contexts).apply()


# Adversaries. Each chooses kappa from the round, the answer that it gets, and luck.

_Adversary = Callable[[int, float, np.random.Generator], float]


def _switching(t: int, q: float, rng: np.random.Generator) -> float:
    """Blocks of growing length, in every other one the opposite: long blocks undo what short ones taught."""
    return 1.0 if int(np.sqrt(t)) % 2 else -1.0


_ADVERSARIES: dict[str, _Adversary] = {
    "contradicts each answer": lambda t, q, rng: -1.0 if q > 0.0 else 1.0,
    "alternates": lambda t, q, rng: 1.0 if t % 2 else -1.0,
    "never changes": lambda t, q, rng: 1.0,
    "is random": lambda t, q, rng: float(rng.uniform(-1.0, 1.0)),
    "switches the best function": _switching,
}


@dataclass(frozen=True)
class LearnerRules(Rules[Learner]):
    """What every online agnostic learner must be: answers in [-1, 1], a state of its own, the regret it declares."""

    n_rounds: int
    seed: int
    contexts: Sequence[Any] | None = None

    def has_the_role(self) -> None:
        """A learner can stand in an `Oracle`, and says plainly what it promises.

        What is said of the error rests on it: whether it is exact, at most, or over the answers alone.
        """
        learner: Any = self.part
        try:
            Oracle(learner)
        except InvalidInput as error:
            expect(False, str(error))
        expect(isinstance(getattr(learner, "odd", False), bool), f"odd is {getattr(learner, 'odd', False)!r}")

    def starts_anew(self) -> None:
        """`start` gives a state of its own in every call, all of them alike.

        Every value has copies of its own.
        """
        one, two = self.part.start(), self.part.start()
        expect(self._bytes(one) == self._bytes(two), f"it is {one!r} and then {two!r}")
        before = self._bytes(two)
        self.part.update(one, self._pools()["spread out"][0], 1.0)
        expect(self._bytes(two) == before, "two calls share their state")

    def predict_learns_nothing(self) -> None:
        """`predict` leaves the state as it is, and gives the same answer again.

        The forecaster asks the learners of several values in a round and plays one.
        """
        learner, state = self.part, self.part.start()
        for t, row in enumerate(self._pools()["spread out"][:50]):
            before = self._bytes(state)
            answers = {float(learner.predict(state, row)) for _ in range(3)}
            expect(len(answers) == 1, f"the answers are {sorted(answers)}")
            expect(self._bytes(state) == before, "the state has changed")
            learner.update(state, row, float(np.random.default_rng(t).uniform(-1.0, 1.0)))

    def states_are_separate(self) -> None:
        """What a copy learns is in its state and nowhere else, so copies that take turns learn as if they were alone.

        One learner object serves every value, and a state restored from a file must go on as before.
        """
        learner, pool = self.part, self._pools()["spread out"][:50]
        alone, first, second = learner.start(), learner.start(), learner.start()
        for t, row in enumerate(pool):
            learner.update(alone, row, np.cos(t))
        for t, row in enumerate(pool):
            learner.update(first, row, np.cos(t))
            learner.update(second, row, np.sin(t))
        expect(self._bytes(first) == self._bytes(alone), "a copy learns something else while another one learns too")
        expect(self._bytes(alone) != self._bytes(learner.start()), "update changes nothing; it has to change the state")
        again = Taught.load(learner, self._bytes(alone)).state
        answers = [(learner.predict(alone, row), learner.predict(again, row)) for row in pool]
        expect(all(a == b for a, b in answers), "a state that was saved and read gives other answers")

    def answers_are_bounded(self) -> None:
        """Answers are finite numbers in [-1, 1], but for rounding.

        The potential's argument is for gains of size at most 1.
        """
        for name, _, rounds in self._games():
            for _, q, _ in rounds:
                expect(abs(q) <= 1.0 + _SLACK, f"against {name} it answers {q!r}")

    def odd_as_claimed(self) -> None:
        """If `odd` is true, -kappa in every round gives exactly -q in every round.

        Then the copy for the negated errors is the mirror image of the other, and is not kept.
        """
        learner = self.part
        if not getattr(learner, "odd", False):
            return
        for name, _, rounds in self._games():
            mirrored = learner.start()
            for row, q, kappa in rounds:
                other = float(learner.predict(mirrored, row))
                learner.update(mirrored, row, -kappa)
                expect(other == -q, f"against {name} it answers {q!r}, and {other!r} with all signs changed")

    def regret_is_a_bound(self) -> None:
        """`regret`, where there is one, gives a number for each entry, not negative and nondecreasing.

        The guarantee ahead of a run takes the worst number of visits, between steps at which it asks for the bound.
        """
        if not hasattr(self.part, "regret"):
            return
        n = np.concatenate([np.arange(1.0, 200.0), np.geomspace(200.0, 1e9, 200)])
        bound = np.asarray(self.part.regret(n.copy()))
        expect(bound.shape == n.shape, f"for {len(n)} numbers it has shape {bound.shape}")
        expect(np.isfinite(bound).all() and bound.min() >= 0.0, f"it falls to {bound.min()!r} or is not finite")
        expect(np.diff(bound).min() >= 0.0, "it falls with the number of rounds")
        alone = [float(np.asarray(self.part.regret(n[k : k + 1]))[0]) for k in (0, 50, 300)]
        expect(np.allclose(alone, bound[[0, 50, 300]], rtol=1e-12), "one by one it differs")

    def regret_is_kept(self) -> None:
        """No game has a larger regret than declared, after any number of rounds; where `supremum` is known.

        The guarantee adds the declared regret to what the answers have found; were it too small, it would promise too
        much.
        """
        learner: Any = self.part
        if not (hasattr(learner, "regret") and hasattr(learner, "supremum")):
            return
        bound = np.asarray(learner.regret(np.arange(1.0, self.n_rounds + 1.0)))
        squares = getattr(learner, "contract", "correlation") == "squares"
        for name, state, rounds in self._games():
            gained = 0.0
            for t, (_, q, kappa) in enumerate(rounds):
                gained += 2.0 * q * kappa - q * q if squares else q * kappa
                best = float(learner.supremum(state))
                best = best * best / (t + 1.0) if squares else best * getattr(learner, "edge", 1.0)
                allowed = float(bound[t])
                expect(
                    best - gained <= allowed + _SLACK * (t + 1),
                    f"against {name} it is {best - gained:g} after {t + 1} rounds, and {allowed:g} was declared",
                )

    def spec_is_plain(self) -> None:
        """`spec` is plain data, and if `learners.from_spec` knows it, rebuilds the learner.

        State files hold specs and never code; a learner of your own is passed to `load` again, inside its `Oracle`.
        """
        expect_plain(self.part.spec(), learners.from_spec)

    def _bytes(self, state: Any) -> bytes:
        return Taught(self.part, state).dump()

    def _pools(self) -> dict[str, list[Any]]:
        """Contexts as the learner reads them: spread out, of one entry each, always the same; or those given."""
        oracle, rng = Oracle(self.part), np.random.default_rng(self.seed)
        if self.contexts is not None:
            drawn = [self.contexts[k] for k in rng.integers(len(self.contexts), size=self.n_rounds)]
            pools = {"spread out": drawn, "all the same": [self.contexts[0]] * self.n_rounds}
        else:
            n = oracle.n
            spread = rng.uniform(-1.0, 1.0, (self.n_rounds, n)) / np.sqrt(n)
            single = np.eye(n)[rng.integers(n, size=self.n_rounds)]
            same = np.tile(np.where(np.arange(n) % 2, -1.0, 1.0), (self.n_rounds, 1)) / np.sqrt(n)
            pools = {"spread out": list(spread), "of one entry each": list(single), "all the same": list(same)}
        return {name: [oracle.read(oracle.row(x)) for x in pool] for name, pool in pools.items()}

    def _games(self) -> Iterator[tuple[str, Any, Iterator[tuple[Any, float, float]]]]:
        """Every adversary on every pool, with kappa and with -kappa: a name, the learner's state, and the rounds."""
        for where, pool in self._pools().items():
            for who, adversary in _ADVERSARIES.items():
                for sign in (1.0, -1.0):
                    state = self.part.start()
                    name = f"an adversary that {who}{' (negated)' if sign < 0.0 else ''}, contexts {where}"
                    yield name, state, self._rounds(state, pool, adversary, sign)

    def _rounds(
        self, state: Any, pool: list[Any], adversary: _Adversary, sign: float
    ) -> Iterator[tuple[Any, float, float]]:
        rng = np.random.default_rng(self.seed + 1)
        for t, row in enumerate(pool):
            q = float(self.part.predict(state, row))
            kappa = sign * adversary(t, sign * q, rng)
            self.part.update(state, row, kappa)
            yield row, q, kappa

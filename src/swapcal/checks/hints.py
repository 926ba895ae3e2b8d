"""What every learning hint must be: pure forecasts inside the domain, and a state that is saved exactly."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from swapcal import learners
from swapcal.checks.rules import apply, copied, expect, expect_plain, expect_state, missing, same, sample_rows
from swapcal.errors import InvalidInput, StateFileError, SwapcalError
from swapcal.learners import Learner
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
    apply(HINT_RULES, hint, hint)


class _HintRound(NamedTuple):
    """One round of a stream for hints."""

    row: Row
    features: Float64Array | None
    base: float | None
    y: float


def _stream(hint: LearningHint, property: Elicitable, n_rounds: int, seed: int) -> list[_HintRound]:
    """Rounds with and without a base forecast, with features of very different sizes."""
    rng = np.random.default_rng(seed)
    (low, high), sizes = property.domain, 10.0 ** rng.uniform(-3.0, 3.0, hint.n_features)
    cases = []
    for t, row in enumerate(sample_rows(_INPUTS, n_rounds, seed)):
        features = rng.normal(size=hint.n_features) * sizes if hint.n_features else None
        base = None if t % 3 == 2 else float(rng.uniform(low, high))
        cases.append(_HintRound(row, features, base, float(rng.uniform(property.low, property.high))))
    return cases


def _taught(hint: LearningHint, property: Elicitable, n_rounds: int = 30) -> HintState:
    state = hint.start(property, _INPUTS)
    for case in _stream(hint, property, n_rounds, seed=1):
        state.update(*case)
    return state


def _forecasts(state: HintState, cases: list[_HintRound]) -> list[float]:
    return [state.said(case.row, case.features, case.base)[0] for case in cases]


def has_the_role(hint: LearningHint) -> None:
    """A learning hint has every member of `roles.LearningHint`, and starts a state with every one of `HintState`.

    The forecaster uses all of them.
    """
    for part, role in ((hint, LearningHint), (hint.start(Mean(), _INPUTS), HintState)):
        lacking = missing(part, role)
        expect(not lacking, f"{type(part).__name__} has no {', '.join(lacking)}")
    expect(isinstance(hint.n_features, int) and hint.n_features >= 0, f"n_features is {hint.n_features!r}")


def forecasts_stay_in_the_domain(hint: LearningHint) -> None:
    """Every forecast is a number in the property's domain: before any outcome, and after wild features and labels.

    The engine plays near the hint, and a hint that is no forecast has no place on its grid.
    """
    for each in _PROPERTIES:
        low, high = each.domain
        state = hint.start(each, _INPUTS)
        for t, case in enumerate(_stream(hint, each, 60, seed=2)):
            wild = None if case.features is None else case.features * (1e6 if t % 7 == 0 else 1.0)
            for base in (case.base, low, high, None):
                value = state.said(case.row, wild, base)[0]
                expect(isinstance(value, float) and low <= value <= high, f"it forecasts {value!r} for {each!r}")
            state.update(case.row, wild, case.base, each.high if t % 5 == 0 else case.y)


def forecasting_changes_nothing(hint: LearningHint) -> None:
    """`said` leaves the state, and its arguments, as they are.

    Forecasts whose outcome never comes must leave no trace.
    """
    state = _taught(hint, Mean())
    cases = _stream(hint, Mean(), 10, seed=3)
    before, values = copied(state.arrays()), [case.row.values.copy() for case in cases]
    expect(_forecasts(state, cases) == _forecasts(state, cases), "the same round has two forecasts")
    expect(same(state.arrays(), before), "the state has changed")
    expect(all(np.array_equal(c.row.values, v) for c, v in zip(cases, values, strict=True)), "a context was changed")


def learns_from_outcomes(hint: LearningHint) -> None:
    """With one label again and again, forecasts come nearer to it.

    A hint that does not learn the simplest stream is better given as a number.
    """
    for target in (0.9, 0.1):
        state, case = hint.start(Mean(), _INPUTS), _stream(hint, Mean(), 3, seed=4)[2]
        first = abs(state.said(case.row, case.features, case.base)[0] - target)
        for _ in range(200):
            state.update(case.row, case.features, case.base, target)
        last = abs(state.said(case.row, case.features, case.base)[0] - target)
        expect(last < 0.5 * first, f"the distance from {target} goes from {first:g} to {last:g} in 200 rounds")


def states_are_saved_exactly(hint: LearningHint) -> None:
    """`restore` continues from `arrays` to the last bit, and shares nothing with them.

    A loaded forecaster has to draw the forecasts that the original would have drawn.
    """
    for each in _PROPERTIES:
        state, again = _taught(hint, each), hint.start(each, _INPUTS)
        expect_state(state.arrays())
        handed, kept = copied(state.arrays()), copied(state.arrays())
        again.restore(handed)
        for case in _stream(hint, each, 12, seed=5):
            expect(_forecasts(again, [case]) == _forecasts(state, [case]), "forecasts differ after restore")
            state.update(*case)
            again.update(*case)
        expect(same(state.arrays(), again.arrays()), "the same rounds lead to another state")
        expect(same(handed, kept), "updating changed the arrays that were restored from")


def states_are_shared_with_nobody(hint: LearningHint) -> None:
    """States from two calls of `start` have nothing in common, nor do they with the arrays they are given.

    One description of a hint serves many forecasters, and callers reuse their arrays.
    """
    one, two = hint.start(Mean(), _INPUTS), hint.start(Mean(), _INPUTS)
    before = copied(two.arrays())
    cases = _stream(hint, Mean(), 10, seed=6)
    for case in cases:
        one.update(*case)
    expect(same(two.arrays(), before), "updating the one has changed the other")
    after = copied(one.arrays())
    for case in cases:
        case.row.values[:] = 0.123
        if case.features is not None:
            case.features[:] = 0.456
    expect(same(one.arrays(), after), "changing an array after update has changed the state")


def bad_input_changes_nothing(hint: LearningHint) -> None:
    """NaN and infinities in label, base or features are refused with a `SwapcalError`, and the state stays.

    One bad number in a weight spoils the hint for good.
    """
    state = _taught(hint, Mean())
    row, features, _, y = _stream(hint, Mean(), 4, seed=7)[3]
    before = copied(state.arrays())
    for wrong in (np.nan, np.inf, -np.inf):
        attempts: list[tuple[str, Callable[[], object]]] = [
            ("update with the label", lambda w=wrong: state.update(row, features, 0.5, w)),  # type: ignore[misc]
            ("update with the base", lambda w=wrong: state.update(row, features, w, y)),  # type: ignore[misc]
            ("forecast with the base", lambda w=wrong: state.said(row, features, w)),  # type: ignore[misc]
        ]
        if features is not None:
            bad = np.full(len(features), wrong)
            attempts.append(("update with features", lambda b=bad: state.update(row, b, 0.5, y)))  # type: ignore[misc]
            attempts.append(("forecast with features", lambda b=bad: state.said(row, b, 0.5)))  # type: ignore[misc]
        for what, attempt in attempts:
            try:
                attempt()
            except SwapcalError:
                expect(same(state.arrays(), before), f"{what} {wrong} was refused, and changed the state")
            else:
                expect(False, f"{what} {wrong} was taken")


def memory_is_bounded(hint: LearningHint) -> None:
    """A stream ten times as long makes the state no larger.

    A hint runs beside a forecaster for as long as that does.
    """
    sizes = [sum(a.nbytes for a in _taught(hint, Mean(), rounds).arrays().values()) for rounds in (30, 300)]
    expect(sizes[0] == sizes[1], f"after 30 rounds it takes {sizes[0]} bytes, after 300 {sizes[1]}")


def spec_is_plain(hint: LearningHint) -> None:
    """`spec` is plain data.

    State files hold specs and never code; a hint of your own is passed to `load` again and compared by spec.
    """
    expect_plain(hint.spec())


HINT_RULES = (
    has_the_role,
    forecasts_stay_in_the_domain,
    forecasting_changes_nothing,
    learns_from_outcomes,
    states_are_shared_with_nobody,
    states_are_saved_exactly,
    bad_input_changes_nothing,
    memory_is_bounded,
    spec_is_plain,
)


# --------
# What every online agnostic learner must be: answers in [-1, 1], a state of its own, and the regret it declares.

_SLACK = 1e-9
"""What rounding may add to an answer; n times as much to a sum of n."""


@dataclass(frozen=True)
class _Watched:
    """A learner, and the games in which it is watched."""

    learner: Learner
    n_rounds: int
    seed: int


def check_learner(learner: Learner, *, n_rounds: int = 300, seed: int = 0) -> None:
    """Check that `learner` does what `swapcal.learners.Learner` promises; `CheckFailed` says what it does not.

    The regret is measured after every round of games against adversaries: one that contradicts each answer, one that
    alternates, one that never changes, one that is random, and one whose best function switches. A game that is won
    proves nothing; one that is lost shows that the declared bound is wrong.

    Parameters
    ----------
    learner
        The learner; it is left as it is.
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
    for name, value, low in (("n_rounds", n_rounds, 1), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or value < low:
            raise InvalidInput(f"{name} must be a whole number, {low} or more; got {value!r}")
    apply(LEARNER_RULES, _Watched(learner, n_rounds, seed), learner)


# Adversaries. Each chooses kappa from the round, the context and the answer that it gets.

_Adversary = Callable[[int, Float64Array, float, np.random.Generator], float]


def _contrary(t: int, x: Float64Array, q: float, rng: np.random.Generator) -> float:
    return -1.0 if q > 0.0 else 1.0


def _alternating(t: int, x: Float64Array, q: float, rng: np.random.Generator) -> float:
    return 1.0 if t % 2 else -1.0


def _constant(t: int, x: Float64Array, q: float, rng: np.random.Generator) -> float:
    return 1.0


def _random(t: int, x: Float64Array, q: float, rng: np.random.Generator) -> float:
    return float(rng.uniform(-1.0, 1.0))


def _switching(t: int, x: Float64Array, q: float, rng: np.random.Generator) -> float:
    """Blocks of growing length, each with another entry of the context to follow, and in every other one its opposite.

    Long blocks undo what short ones taught.
    """
    block = int(np.sqrt(t))
    sign = 1.0 if block % 2 else -1.0
    return sign if x[block % len(x)] >= 0.0 else -sign


_ADVERSARIES: dict[str, _Adversary] = {
    "contradicts each answer": _contrary,
    "alternates": _alternating,
    "never changes": _constant,
    "is random": _random,
    "switches the best function": _switching,
}


def _contexts(case: _Watched) -> dict[str, Float64Array]:
    """Pools of contexts, all in the scale of the class: spread out, one entry at a time, and always the same."""
    n, rng = case.learner.n, np.random.default_rng(case.seed)
    spread = rng.uniform(-1.0, 1.0, (case.n_rounds, n))
    single = np.zeros((case.n_rounds, n))
    single[np.arange(case.n_rounds), rng.integers(n, size=case.n_rounds)] = 1.0
    same = np.tile(np.where(np.arange(n) % 2, -1.0, 1.0), (case.n_rounds, 1))
    if case.learner.dual == "euclidean":
        spread /= np.linalg.norm(spread, axis=1, keepdims=True)
        same = same / np.sqrt(n)
    else:
        spread[:, ::2] = np.where(spread[:, ::2] < 0.0, -1.0, 1.0)
    return {"spread out": spread, "of one entry each": single, "all the same": same}


def _row(x: Float64Array) -> Row:
    indices = np.flatnonzero(x)
    return Row(indices, x[indices])


def _games(case: _Watched) -> Iterator[tuple[str, Float64Array, Iterator[tuple[Float64Array, float, float]]]]:
    """Every adversary on every pool, with kappa and with -kappa: a name, the learner's state, and the rounds."""
    for where, pool in _contexts(case).items():
        for who, adversary in _ADVERSARIES.items():
            for sign in (1.0, -1.0):
                state = case.learner.start()
                name = f"an adversary that {who}{' (negated)' if sign < 0.0 else ''}, contexts {where}"
                yield name, state, _rounds(case, state, pool, adversary, sign)


def _rounds(
    case: _Watched, state: Float64Array, pool: Float64Array, adversary: _Adversary, sign: float
) -> Iterator[tuple[Float64Array, float, float]]:
    rng = np.random.default_rng(case.seed + 1)
    for t, x in enumerate(pool):
        row = _row(x)
        q = float(case.learner.predict(state, row))
        kappa = sign * adversary(t, x, sign * q, rng)
        case.learner.update(state, row, kappa)
        yield x, q, kappa


def has_the_role_of_a_learner(case: _Watched) -> None:
    """A learner has every member of `learners.Learner`, and says what its class is.

    `Oracle` uses all of them; the audit knows the class by its dual.
    """
    learner = case.learner
    lacking = missing(learner, Learner)
    expect(not lacking, f"it has no {', '.join(lacking)}")
    expect(isinstance(learner.n, int) and learner.n >= 1, f"its length n is {learner.n!r}")
    expect(isinstance(learner.odd, bool), f"odd is {learner.odd!r}")
    expect(learner.dual in ("max", "euclidean"), f"its dual is {learner.dual!r}")


def starts_anew(case: _Watched) -> None:
    """`start` gives a new flat array of finite float64 numbers, the same ones in every call.

    Every bin has copies of its own, a finer grid starts more of them, and a state file holds them as they are.
    """
    one, two = case.learner.start(), case.learner.start()
    flat = isinstance(one, np.ndarray) and one.dtype == np.float64 and one.ndim == 1
    expect(flat and np.isfinite(one).all(), f"it is {one!r}")
    expect(one.tobytes() == two.tobytes(), f"it is {one!r} and then {two!r}")
    expect(not np.shares_memory(one, two), "two calls share their array")


def predict_learns_nothing(case: _Watched) -> None:
    """`predict` leaves state and context as they are, and gives the same answer again.

    The forecaster asks the learners of several bins in a round and plays one.
    """
    learner, pool = case.learner, _contexts(case)["spread out"]
    state = learner.start()
    for t, x in enumerate(pool[:50]):
        row, before = _row(x), state.copy()
        values = row.values.copy()
        answers = {float(learner.predict(state, row)) for _ in range(3)}
        expect(len(answers) == 1, f"the answers are {sorted(answers)}")
        expect(state.tobytes() == before.tobytes(), "the state has changed")
        expect(np.array_equal(row.values, values), "the context has changed")
        learner.update(state, row, _random(t, x, 0.0, np.random.default_rng(t)))
        expect(np.array_equal(row.values, values), "update has changed the context")


def states_are_separate(case: _Watched) -> None:
    """What a copy learns is in its state and nowhere else, so copies that take turns learn as if they were alone.

    One learner object serves every bin, and a state restored from a file must go on as before.
    """
    learner, pool = case.learner, _contexts(case)["spread out"][:50]
    alone, first, second = learner.start(), learner.start(), learner.start()
    for t, x in enumerate(pool):
        learner.update(alone, _row(x), np.cos(t))
    for t, x in enumerate(pool):
        learner.update(first, _row(x), np.cos(t))
        learner.update(second, _row(-x), np.sin(t))
    expect(first.tobytes() == alone.tobytes(), "a copy learns something else while another one learns too")
    expect(alone.tobytes() != learner.start().tobytes(), "update changes nothing; it has to write into the state")


def answers_are_bounded(case: _Watched) -> None:
    """Answers are finite numbers in [-1, 1], but for rounding, for every context of the class, an empty one included.

    The potential's argument is for gains of size at most 1.
    """
    empty = Row(np.zeros(0, dtype=np.int64), np.zeros(0))
    for name, state, rounds in _games(case):
        for _, q, _ in rounds:
            expect(abs(q) <= 1.0 + _SLACK, f"against {name} it answers {q!r}")
        expect(abs(float(case.learner.predict(state, empty))) <= 1.0 + _SLACK, "the answer to an empty context")


def state_stays_finite(case: _Watched) -> None:
    """The state stays finite in every game, and as long as it was.

    A number that is not finite spoils its bin for good, and a state file would refuse it.
    """
    length = len(case.learner.start())
    for name, state, rounds in _games(case):
        for _ in rounds:
            if not (np.isfinite(state).all() and len(state) == length):  # a state is put into words only if need be
                expect(False, f"against {name} it becomes {state!r}")


def odd_as_claimed(case: _Watched) -> None:
    """If `odd` is true, -kappa in every round gives exactly -q in every round.

    Then the copy for the negated errors is the mirror image of the other, and is not kept.
    """
    learner = case.learner
    if not learner.odd:
        return
    for name, _, rounds in _games(case):
        mirrored = learner.start()
        for x, q, kappa in rounds:
            other = float(learner.predict(mirrored, _row(x)))
            learner.update(mirrored, _row(x), -kappa)
            expect(other == -q, f"against {name} it answers {q!r}, and {other!r} with all signs changed")


def regret_is_a_bound(case: _Watched) -> None:
    """`regret` gives a number for each entry of its argument, not negative and nondecreasing.

    The guarantee ahead of a run takes the worst number of visits, between steps at which it asks for the bound.
    """
    n = np.concatenate([np.arange(1.0, 200.0), np.geomspace(200.0, 1e9, 200)])
    bound = np.asarray(case.learner.regret(n.copy()))
    expect(bound.shape == n.shape, f"for {len(n)} numbers it has shape {bound.shape}")
    expect(np.isfinite(bound).all() and bound.min() >= 0.0, f"it falls to {bound.min()!r} or is not finite")
    expect(np.diff(bound).min() >= 0.0, "it falls with the number of rounds")
    alone = [float(np.asarray(case.learner.regret(n[k : k + 1]))[0]) for k in (0, 50, 300)]
    expect(np.allclose(alone, bound[[0, 50, 300]], rtol=1e-12), "one by one it differs")


def regret_is_kept(case: _Watched) -> None:
    """No game has a larger regret than declared, after any number of rounds.

    The guarantee adds the declared regret to what the answers have found; were it too small, it would promise too much.
    """
    bound = np.asarray(case.learner.regret(np.arange(1.0, case.n_rounds + 1.0)))
    for name, _, rounds in _games(case):
        sums, gained = np.zeros(case.learner.n), 0.0
        for t, (x, q, kappa) in enumerate(rounds):
            sums += kappa * x
            gained += q * kappa
            best = float(np.linalg.norm(sums) if case.learner.dual == "euclidean" else sums.max())
            allowed = float(bound[t])
            expect(
                best - gained <= allowed + _SLACK * (t + 1),
                f"against {name} it is {best - gained:g} after {t + 1} rounds, and {allowed:g} was declared",
            )


def learner_spec_is_plain(case: _Watched) -> None:
    """`spec` is plain data, and if `learners.from_spec` knows it, rebuilds the learner.

    State files hold specs and never code; a learner of your own is passed to `load` again, inside its `Oracle`.
    """
    spec: Any = case.learner.spec()
    expect_plain(spec)
    try:
        again = learners.from_spec(json.loads(json.dumps(dict(spec))))
    except StateFileError:
        return
    expect(again.spec() == spec, f"the rebuilt one is {again!r}")


LEARNER_RULES = (
    has_the_role_of_a_learner,
    starts_anew,
    predict_learns_nothing,
    states_are_separate,
    answers_are_bounded,
    state_stays_finite,
    odd_as_claimed,
    regret_is_a_bound,
    regret_is_kept,
    learner_spec_is_plain,
)

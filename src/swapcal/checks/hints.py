"""What every learning hint must be: pure forecasts inside the domain, and a state that is saved exactly."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from swapcal.checks.check_rules import apply, expect, missing
from swapcal.checks.plain import copied, expect_plain, expect_state, same, sample_rows
from swapcal.errors import SwapcalError
from swapcal.properties import Expectile, Mean, Quantile
from swapcal.roles import Elicitable, HintState, LearningHint, Row
from swapcal.typing import Float64Array

__all__ = ["HINT_RULES", "check_hint"]

_INPUTS = 4
_PROPERTIES: tuple[Elicitable, ...] = (Mean(), Quantile(0.9, low=-10.0, high=20.0), Expectile(0.2, low=3.0, high=3.5))


def check_hint(hint: LearningHint) -> None:
    """Check that `hint` does what `swapcal.roles.LearningHint` promises, and its state what `HintState` does.

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
    return [state.forecast(case.row, case.features, case.base) for case in cases]


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
                value = state.forecast(case.row, wild, base)
                expect(isinstance(value, float) and low <= value <= high, f"it forecasts {value!r} for {each!r}")
            state.update(case.row, wild, case.base, each.high if t % 5 == 0 else case.y)


def forecasting_changes_nothing(hint: LearningHint) -> None:
    """`forecast` leaves the state, and its arguments, as they are.

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
        first = abs(state.forecast(case.row, case.features, case.base) - target)
        for _ in range(200):
            state.update(case.row, case.features, case.base, target)
        last = abs(state.forecast(case.row, case.features, case.base) - target)
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
            ("forecast with the base", lambda w=wrong: state.forecast(row, features, w)),  # type: ignore[misc]
        ]
        if features is not None:
            bad = np.full(len(features), wrong)
            attempts.append(("update with features", lambda b=bad: state.update(row, b, 0.5, y)))  # type: ignore[misc]
            attempts.append(("forecast with features", lambda b=bad: state.forecast(row, b, 0.5)))  # type: ignore[misc]
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

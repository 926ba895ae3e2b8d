"""The compiled engine against its Python twin: streams made by hypothesis, compared bit for bit."""

import contextlib
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import swapcal as sc
from effort import some
from native_streams import CLASSES, FORMS, PROPERTIES, Game, Step, Twin, assert_twins, saved
from swapcal.engine import kernels
from swapcal.engine import schedule as replay
from swapcal.engine.kernels import safe_exp, short_sinh
from swapcal.engine.pending import Errors, Played, RoundInputs
from swapcal.potentials import AdaNormalHedge, Exponential, PNorm, Potential, Squint
from swapcal.protocols import Row
from swapcal.typing import Float64Array

pytestmark = pytest.mark.skipif(
    kernels.backend() == "python", reason="the compiled kernels are not installed, or switched off"
)

REGRESSIONS = [None, None, sc.OnlineRegression(), sc.OnlineRegression(n_features=2, most_full=3)]


@st.composite
def games(draw: st.DrawFn) -> Game:
    forecast = draw(st.sampled_from(PROPERTIES))
    options: dict[str, Any] = {
        "levels": draw(st.sampled_from([10, 0, 3])),
        "trust": draw(st.sampled_from([0.25, 0.0, 1.0])),
        "jitter": draw(st.sampled_from([0.0, 0.2])) * (forecast.high - forecast.low),
        "max_pending": draw(st.sampled_from([64, 3, 1])),
        "hint": draw(st.sampled_from(REGRESSIONS)),
        "outside": draw(st.sampled_from(["error", "clip"])),
        "r": draw(st.sampled_from([2.0, 1.0, 3.0])),
    }
    options |= draw(st.sampled_from([{}, {}, {}, {"horizon": 300}, {"bins": 1}, {"bins": 2}, {"bins": 7}]))
    return Game(forecast, draw(st.sampled_from(list(CLASSES))), options)


steps = st.builds(
    Step,
    kind=st.sampled_from(["rounds", "run", "late", "look"]),
    seed=st.integers(0, 2**32 - 1),
    form=st.sampled_from(list(FORMS)),
    hint=st.sampled_from(["none", "all", "some"]),
    n_rounds=st.integers(1, 12) | st.just(40),
)


def exchanged(twins: list[Twin]) -> list[Twin]:
    """Each is saved on its backend and goes on, from its file, on the other."""
    files = [saved(twin.forecaster) for twin in twins]
    others = [Twin(old.game, twin.backend, file) for old, twin, file in zip(twins, reversed(twins), files, strict=True)]
    for old, new in zip(twins, others, strict=True):
        new.waiting = old.waiting
    return others


@settings(max_examples=some(250), derandomize=True)
@given(game=games(), played=st.lists(steps | st.none(), min_size=1, max_size=12))
def test_both_backends_play_the_same_game(game: Game, played: list[Step | None]) -> None:
    twins = game.twins()
    for step in played:
        if step is None:
            twins = exchanged(twins)
        else:
            one, two = (twin.play(step) for twin in twins)
            assert one == two, step
        assert_twins(twins)
    assert math.isfinite(twins[1].forecaster.error())


@pytest.mark.parametrize("name", CLASSES)
def test_every_form_of_a_context_is_read_alike(name: str) -> None:
    twins = Game(sc.Mean(), name).twins()
    for seed, form in enumerate(FORMS):
        one, two = (twin.play(Step("rounds", seed, form, n_rounds=10)) for twin in twins)
        assert one == two, form


@pytest.mark.parametrize("name", CLASSES)
def test_a_run_in_chunks_while_room_grows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks end and arrays are replaced in the middle of a run; a hint learns all the while."""
    monkeypatch.setattr(replay, "_CHUNK", 97)
    twins = Game(sc.Mean(), name, {"hint": sc.OnlineRegression(n_features=1, most_full=2)}).twins()
    step = Step("run", 1, "csr", "some", 500)
    with pytest.warns(sc.GroupsWarning) if name == "Groups" else contextlib.nullcontext():
        one, two = (twin.play(step) for twin in twins)
    assert one == two
    assert twins[1].forecaster.state.values.capacity > 12
    assert_twins(twins)


# Numbers


def extremes(potential: Potential, n: int) -> tuple[Float64Array, Float64Array]:
    """Sums and spreads from the smallest to sizes that no stream reaches; |s| <= c wherever c is the sum of |g|."""
    rng = np.random.default_rng(5)
    c = 10.0 ** rng.uniform(-12.0, 9.0, n)
    s = rng.choice([-1.0, 1.0], n) * c * 10.0 ** rng.uniform(-6.0, 0.0, n)
    s[:20], c[10:30] = 0.0, 0.0
    return np.where(c == 0.0, 0.0, s), c


@pytest.mark.parametrize("potential", [AdaNormalHedge(), Exponential(), Squint(), PNorm(3.7), PNorm(60.0)], ids=repr)
def test_weights_have_the_same_bits_everywhere(potential: Potential) -> None:
    """Evidence that was put there by hand, weighed anew by a round that adds nothing to it."""
    forecaster = sc.Forecaster(sc.Mean(), sc.Finite(2000, potential=potential), bins=2, levels=0)
    evidence: Any = forecaster.state.evidence
    evidence.sums[1], evidence.spreads[1] = extremes(potential, 2000)
    t = forecaster.predict({}).round
    case = RoundInputs(Row(np.arange(2000), np.ones(2000)), None, None, None)
    forecaster._engine.learn(case, Played(1, 0.75, 0.75, "zero", 0.0, 0.75), Errors(0.0, 0.0, 0.0, 0.0), t)
    expected = potential.row_weights(evidence.sums[1], float(evidence.counts[1]))
    if expected is None:
        expected = potential.weights(evidence.sums[1], evidence.spreads[1])
    assert evidence.weights[1].tobytes() == expected.tobytes()
    assert np.isfinite(expected).all()
    assert len(set(expected.tolist())) > 200


def test_the_exponential_is_exact_to_two_bits_and_increases() -> None:
    rng = np.random.default_rng(6)
    a = np.sort(np.concatenate([rng.uniform(-700.0, 300.0, 40_000), rng.uniform(-1.0, 1.0, 40_000)]))
    ours, theirs = safe_exp(a), np.array([math.exp(x) for x in a])
    assert np.max(np.abs(ours - theirs) / theirs) < 4e-16
    assert (np.diff(ours) >= 0.0).all()
    # Where the power of two changes, to the last bit.
    turns: Float64Array = (np.arange(-1009.0, 432.0) + 0.5) * math.log(2.0)
    for _ in range(20):
        after = np.nextafter(turns, np.inf)
        assert (safe_exp(after) >= safe_exp(turns)).all()
        turns = after
    ends = safe_exp(np.array([-math.inf, -1e9, -700.0, -699.9, 300.0, 300.1, 1e9]))
    assert ends[0] == ends[1] == ends[2] > 0.0
    assert (np.diff(ends[2:]) > 0.0).all()


def test_the_short_hyperbolic_sine_is_exact_to_two_bits_increases_and_is_odd() -> None:
    z = np.sort(np.concatenate([np.random.default_rng(7).uniform(0.0, 1.0, 40_000), 10.0 ** np.arange(-300.0, 1.0)]))
    ours, theirs = short_sinh(z), np.array([math.sinh(x) for x in z])
    assert np.max(np.abs(ours - theirs) / theirs) < 5e-16
    assert (np.diff(ours) >= 0.0).all()
    assert (short_sinh(np.nextafter(z, 2.0)) >= ours).all()
    assert (short_sinh(-z) == -ours).all()

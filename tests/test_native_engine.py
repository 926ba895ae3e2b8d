"""The compiled engine against its Python twin: streams made by hypothesis, compared bit for bit."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import swapcal as sc
from native_streams import CLASSES, FORMS, PROPERTIES, Game, Step, Twin, assert_twins, saved
from swapcal import kernels

pytestmark = pytest.mark.skipif(
    kernels.backend() == "python", reason="the compiled kernels are not installed, or switched off"
)

REGRESSIONS = [None, None, sc.OnlineRegression(), sc.OnlineRegression(n_features=2, rates=[1.0, 0.1])]


@st.composite
def games(draw: st.DrawFn) -> Game:
    property = draw(st.sampled_from(PROPERTIES))
    options: dict[str, Any] = {
        "levels": draw(st.sampled_from([10, 0, 3])),
        "trust": draw(st.sampled_from([1.0 / 3.0, 0.0, 50.0])),
        "jitter": draw(st.sampled_from([0.0, 0.2])) * (property.high - property.low),
        "max_pending": draw(st.sampled_from([64, 3, 1])),
        "hint": draw(st.sampled_from(REGRESSIONS)),
        "outside": draw(st.sampled_from(["error", "clip"])),
        "r": draw(st.sampled_from([2.0, 1.0, 3.0])),
    }
    options |= draw(st.sampled_from([{}, {"horizon": 300}, {"bins": 1}, {"bins": 2}, {"bins": 7}]))
    return Game(property, draw(st.sampled_from(list(CLASSES))), options)


steps = st.builds(
    Step,
    kind=st.sampled_from(["rounds", "run", "late", "look"]),
    seed=st.integers(0, 2**32 - 1),
    form=st.sampled_from(FORMS),
    hint=st.sampled_from(["none", "all", "some"]),
    n_rounds=st.integers(1, 12) | st.just(40),
)


def exchanged(twins: list[Twin]) -> list[Twin]:
    """Each is saved on its backend and goes on, from its file, on the other."""
    files = [saved(twin.forecaster) for twin in twins]
    others = [
        Twin(old.game, twin.backend, file) for old, twin, file in zip(twins, reversed(twins), files, strict=True)
    ]
    for old, new in zip(twins, others, strict=True):
        new.waiting = old.waiting
    return others


@settings(max_examples=250, deadline=None)
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

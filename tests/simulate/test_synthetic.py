"""Streams with known truth: the truth they state is the truth."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

from swapcal.errors import InvalidInput
from swapcal.properties import Expectile, Quantile
from swapcal.protocols import Elicitable
from swapcal.simulate import streams
from swapcal.simulate.streams import Stream
from swapcal.typing import Float64Array

MAKERS: dict[str, Callable[[int, int], Stream]] = {
    "miscalibrated": streams.miscalibrated,
    "interacting": streams.interacting,
    "oscillating": streams.oscillating,
    "noisy": streams.noisy,
    "drifting": streams.drifting,
    "drifting binary": lambda n_rounds, seed: streams.drifting(n_rounds, seed, binary=True),
}


@pytest.mark.parametrize("name", MAKERS)
def test_streams_are_what_they_say(name: str) -> None:
    stream, again = MAKERS[name](3000, 7), MAKERS[name](3000, 7)
    assert stream.x.shape == (3000, 20)
    assert stream.features.shape == (3000, streams.N_FEATURES)
    assert set(np.unique(stream.x)) == {0.0, 1.0}
    assert stream.x[:, 0].all()
    assert (stream.x[:, 1:].mean(axis=0) < 1).all()
    assert all(np.all((a >= 0) & (a <= 1)) for a in (stream.y, stream.hint, stream.truth_mean))
    for field in ("x", "y", "hint", "features", "truth_mean"):
        assert np.array_equal(getattr(stream, field), getattr(again, field))
    assert not np.array_equal(stream.y, MAKERS[name](3000, 8).y)
    # 3,000 labels around their means: four standard errors of at most 0.5 / sqrt(3000).
    assert abs(float(np.mean(stream.y - stream.truth_mean))) < 4 * 0.5 / np.sqrt(3000)


@pytest.mark.parametrize("name", ["noisy", "drifting"])
@pytest.mark.parametrize("level", [0.1, 0.5, 0.8])
def test_truth_identifies(name: str, level: float) -> None:
    stream = MAKERS[name](100_000, 9)
    assert len(np.unique(stream.y)) == stream.n_rounds
    pairs: list[tuple[Elicitable, Float64Array]] = [
        (Quantile(level), stream.truth_quantile(level)),
        (Expectile(level), stream.truth_expectile(level)),
    ]
    for elicitable, truth in pairs:
        v = cast(Float64Array, elicitable.identification(truth, stream.y))
        assert abs(float(np.mean(v))) < 4 * float(np.std(v)) / np.sqrt(len(v))


def test_binary_truth() -> None:
    stream = streams.drifting(100_000, 9, binary=True)
    v = cast(Float64Array, Expectile(0.7).identification(stream.truth_expectile(0.7), stream.y))
    assert abs(float(np.mean(v))) < 4 * float(np.std(v)) / np.sqrt(len(v))
    real = streams.drifting(100_000, 9)
    assert np.array_equal(stream.truth_mean, real.truth_mean)
    assert np.array_equal(stream.hint, real.hint)
    with pytest.raises(InvalidInput):
        stream.truth_quantile(0.9)


@pytest.mark.parametrize("n_groups", [1, 2, 3, 40])
def test_any_number_of_groups(n_groups: int) -> None:
    x = streams.drifting(50, 0, n_groups).x
    assert x.shape == (50, n_groups)
    assert x[:, 0].all()


def test_bad_streams() -> None:
    for arguments in ((0, 0), (10, -1), (10.0, 0), (10, 0, 0), (True, 0)):
        with pytest.raises(InvalidInput):
            streams.drifting(*cast(Any, arguments))
    with pytest.raises(InvalidInput):
        streams.interacting(10, 0, 6)
    with pytest.raises(InvalidInput):
        streams.oscillating(10, 0, period=0.0)
    with pytest.raises(InvalidInput):
        streams.noisy(10, 0).truth_quantile(1.0)

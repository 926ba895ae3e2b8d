"""Outcomes that are missing when a recorded stream is played, and filled in later."""

import io
from typing import Any

import numpy as np
import pytest

import swapcal as sc
from swapcal.engine import kernels
from swapcal.engine.pending import Chunk
from swapcal.engine.schedule import NEVER, Schedule, learn_order, play_alone
from swapcal.errors import AlreadyUpdated, ExpiredForecast, InvalidInput, UnknownForecast

N = 700
BACKENDS = [None] if kernels.native is None else [None, kernels.native]


def stream(seed: int = 1) -> tuple[Any, ...]:
    """Contexts, outcomes, the model, and outcomes with blanks: a tenth of them, and all of the last hundred."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(N), rng.integers(0, 2, (N, 3))]).astype(float)
    p = rng.uniform(0.1, 0.9, N)
    y = (rng.random(N) < np.clip(p + 0.2 * x[:, 1] - 0.1, 0.0, 1.0)).astype(float)
    seen = np.where((rng.random(N) < 0.1) | (np.arange(N) >= N - 100), np.nan, y)
    return x, y, p, seen


def made(learns: bool, **settings: Any) -> sc.Forecaster:
    return sc.Forecaster(sc.Mean(), sc.Finite(4), seed=3, hint=sc.OnlineRegression() if learns else None, **settings)


@pytest.mark.parametrize("native", BACKENDS)
@pytest.mark.parametrize("learns", [False, True])
@pytest.mark.parametrize("saved", [False, True])
def test_filled_in_later_is_update_in_that_order(
    monkeypatch: pytest.MonkeyPatch, native: Any, learns: bool, saved: bool
) -> None:
    """Bit for bit, on both backends, through a file: predict without update, then update, then more rows."""
    monkeypatch.setattr(kernels, "native", native)
    x, y, p, seen = stream()
    order = np.random.default_rng(5).permutation(np.flatnonzero(np.isnan(seen)))
    forecaster, own = made(learns), made(learns)
    shown = forecaster.run(x, seen, p, missing="skip", waits=np.isnan(seen))
    forecasts = []
    for t in range(N):
        forecasts.append(own.predict(x[t], p[t]))
        if not np.isnan(seen[t]):
            own.update(forecasts[t], y[t])
    assert shown.tolist() == [float(each) for each in forecasts]
    if saved:
        file = io.BytesIO()
        forecaster.save(file)
        file.seek(0)
        forecaster = sc.Forecaster.load(file)
    half = len(order) // 2
    for part in (order[:half], order[half:]):
        assert forecaster.fill_in(part, y[part]).tolist() == shown[part].tolist()
    for t in order:
        own.update(forecasts[t], y[t])
    assert forecaster.n_pending == own.n_pending == 0
    assert forecaster.lateness() == own.lateness()
    again = [own.predict(x[t], p[t]) for t in range(20)]
    assert forecaster.run(x[:20], np.full(20, np.nan), p[:20], missing="skip", waits=np.ones(20, bool)).tolist() == [
        float(each) for each in again
    ]
    assert forecaster.error() == own.error()


@pytest.mark.parametrize("native", BACKENDS)
def test_with_known_moments_it_is_learned_when_that_is_due(monkeypatch: pytest.MonkeyPatch, native: Any) -> None:
    """A blank that is filled in with a moment is as one that was there from the start."""
    monkeypatch.setattr(kernels, "native", native)
    x, y, p, seen = stream()
    seen[: N // 2] = y[: N // 2]
    blank = np.isnan(seen[: N - 100]) & (np.arange(N - 100) >= N // 2)
    known = np.arange(N) + 150.0
    one, two = made(True), made(True)
    both = [one.run(x[:600], np.where(blank, np.nan, y[:600]), p[:600], known=known[:600], missing="skip", waits=blank)]
    # Moments of a second call are counted from its own first row.
    rows = np.flatnonzero(blank)
    late = rows[known[rows] >= 600]
    one.fill_in(late, y[late], known=known[late])
    both.append(one.run(x[600:], y[600:], p[600:], known=known[600:] - 600.0))
    whole = np.where(blank & (known[:600] < 600), np.nan, y[:600])
    first = two.run(x[:600], whole, p[:600], known=known[:600], missing="skip", waits=np.isnan(whole))
    second = two.run(x[600:], y[600:], p[600:], known=known[600:] - 600.0)
    assert len(late)
    assert both[0].tolist() == first.tolist()
    assert both[1].tolist() == second.tolist()


def test_what_cannot_be_filled_in_says_why_and_changes_nothing() -> None:
    x, _, p, seen = stream()
    forecaster = made(False, max_pending=400)
    forecaster.run(x, seen, p, missing="skip", waits=np.isnan(seen))
    waiting = np.flatnonzero(np.isnan(seen))
    expired, open_ = waiting[waiting < N - 400], waiting[waiting >= N - 400]
    assert forecaster.lateness().n_expired == len(expired)
    assert forecaster.n_pending == len(open_)
    before = forecaster.to_bytes()
    good = [int(open_[0]), int(open_[1])]
    known = next(t for t in range(N - 400, N) if not np.isnan(seen[t]))
    for bad, error in (
        (int(expired[0]), ExpiredForecast),
        (known, AlreadyUpdated),
        (N, UnknownForecast),
        (good[0], InvalidInput),
        (0.5, InvalidInput),
    ):
        with pytest.raises(error):
            forecaster.fill_in([*good, bad], [0.0, 1.0, 1.0])
    with pytest.raises(InvalidInput):
        forecaster.fill_in(good, [0.0, 7.0])
    assert forecaster.to_bytes() == before
    forecaster.fill_in(good, [0.0, 1.0])
    with pytest.raises(AlreadyUpdated):
        forecaster.fill_in(good[:1], [0.0])
    mine = forecaster.predict(x[0], p[0])
    with pytest.raises(InvalidInput, match="given to the caller"):
        forecaster.fill_in([mine.round], [1.0])
    with pytest.raises(InvalidInput, match="True or False for each"):
        forecaster.run(x, seen, p, missing="skip", waits=[True])


def test_rows_that_will_never_have_an_outcome_hold_up_nobody() -> None:
    """In the order of the forecasts, missing outcomes that are not waited for are passed over."""
    x, y, p, _ = stream()
    gone = np.where(np.arange(N) % 5 == 0, np.nan, y)
    forecaster = made(False)
    forecaster.run(x, gone, p, missing="skip", known=np.arange(N) + 10.0, order="forecast")
    assert forecaster.n_rounds == np.count_nonzero(~np.isnan(gone[: N - 10]))


@pytest.mark.skipif(kernels.native is None, reason="the compiled kernels are not installed, or switched off")
def test_the_compiled_plan_is_that_of_numpy() -> None:
    """What is learned before which row, with lines from before, ties, and outcomes that never come."""
    rng = np.random.default_rng(1)
    for n, carried in ((0, 0), (0, 3), (1, 0), (7, 2), (200, 30), (500, 0)):
        for spread in (1, 4, 300):
            own = np.arange(n) + 1 + rng.integers(0, spread, n)
            own[rng.random(n) < 0.1] = NEVER
            arrive = np.concatenate([rng.integers(0, max(n, 1), carried), own]).astype(np.int64)
            lines = rng.permutation(50)[:carried].astype(np.int64)
            for ours, twin in zip(kernels.native.planned(arrive, lines), learn_order(arrive, lines), strict=True):
                assert ours.dtype == twin.dtype
                assert ours.tolist() == twin.tolist()


@pytest.mark.skipif(kernels.native is None, reason="the compiled kernels are not installed, or switched off")
def test_a_plan_that_cannot_be_is_refused_by_the_kernel() -> None:
    x, y, p, _ = stream()
    forecaster = made(False)
    rows = forecaster.hypotheses.rows(x, N)
    ends = np.minimum(np.arange(N + 1), 1)
    for code in (5, -99):
        plan = Schedule(np.array([code]), ends, np.ones(N, dtype=np.uint8), np.full(N, np.nan))
        with pytest.raises((ValueError, RuntimeError), match=r"before its forecast|no such round"):
            play_alone(forecaster._round, Chunk(rows, y, p, None, np.empty(N), plan))

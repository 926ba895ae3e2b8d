"""Recorded streams whose truth is known, and delays of their outcomes.

The truth is known so that the best possible forecaster can be scored beside the real ones. All streams share one
context: ten standard normal features and overlapping groups cut out of the feature space by half-spaces and their
intersections, with the all-ones group first. What differs is how the label depends on them.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from swapcal import inputs
from swapcal.errors import InvalidInput
from swapcal.typing import Float64Array

N_FEATURES = 10


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """A recorded stream with labels in [0, 1] and its truth; row t of every array is round t.

    A real label is y = truth_mean + truth_scale * e, where e has the triangular density 1 - |e| on [-1, 1] and
    truth_scale <= truth_mean <= 1 - truth_scale. So it lies in [0, 1] without any clipping, has no atoms, and every
    quantile and expectile is truth_mean plus truth_scale times a number that depends on the level alone.

    Parameters
    ----------
    x : array of shape (T, n_groups)
        Group membership, 0 or 1; the first group holds all rows.
    y : array of shape (T,)
        Labels: 0 or 1 if `truth_scale` is None, else real numbers in [0, 1].
    hint : array of shape (T,)
        The forecast of somebody's imperfect model, in [0, 1].
    features : array of shape (T, 10)
        Standard normal features.
    truth_mean : array of shape (T,)
        E[y] given everything up to round t.
    truth_scale : array of shape (T,), or None
        Half-width of the noise; None for a binary label.

    Examples
    --------
    >>> stream = drifting(1000, seed=0)
    >>> stream.x.shape, bool(stream.x[:, 0].all()), bool(np.all((0 < stream.y) & (stream.y < 1)))
    ((1000, 20), True, True)
    >>> round(float(np.mean(stream.y <= stream.truth_quantile(0.9))), 1)
    0.9
    """

    x: Float64Array
    y: Float64Array
    hint: Float64Array
    features: Float64Array
    truth_mean: Float64Array
    truth_scale: Float64Array | None

    @property
    def n_rounds(self) -> int:
        """Number of rounds."""
        return len(self.y)

    def truth_quantile(self, level: float) -> Float64Array:
        """The true conditional quantile; real labels only, because a binary label has atoms."""
        inputs.level(level)
        if self.truth_scale is None:
            raise InvalidInput("a binary label has no quantile to calibrate; use a stream with real labels")
        # F(e) = (1 + e)^2 / 2 below zero, and 1 - (1 - e)^2 / 2 above.
        unit = math.sqrt(2.0 * level) - 1.0 if level < 0.5 else 1.0 - math.sqrt(2.0 * (1.0 - level))
        return self.truth_mean + unit * self.truth_scale

    def truth_expectile(self, level: float) -> Float64Array:
        """The true conditional expectile: the e with level E(y - e)^+ = (1 - level) E(e - y)^+."""
        inputs.level(level)
        if self.truth_scale is None:
            up, down = level * self.truth_mean, (1.0 - level) * (1.0 - self.truth_mean)
            return up / (up + down)
        return self.truth_mean + _unit_expectile(level) * self.truth_scale


def drifting(n_rounds: int, seed: int, n_groups: int = 20, *, binary: bool = False) -> Stream:
    """A general-purpose stream: the mean moves with time, features and groups, the noise with the groups.

    The hint is the mean of the first round's world, pulled to the middle and shifted in some groups. With one seed the
    binary and the real stream have the same contexts, hints and `truth_mean`; the truth is not linear under any link.

    Parameters
    ----------
    n_rounds : int
        T.
    seed : int
        Of everything that is drawn.
    n_groups : int
        Groups, the first of which holds all rows.
    binary : bool
        Labels 0 or 1 instead of real ones.

    Returns
    -------
    Stream
        Contexts, labels, hints and the truth.

    Examples
    --------
    >>> stream = drifting(500, seed=0, n_groups=4, binary=True)
    >>> stream.x.shape, sorted(set(stream.y.tolist())), stream.truth_scale
    ((500, 4), [0.0, 1.0], None)
    """
    rng, features, x = context(n_rounds, seed, n_groups)
    scale = 0.04 + 0.24 * _sigmoid(x[:, 1:] @ rng.normal(0.0, 0.9, x.shape[1] - 1) - 0.5)
    slopes, tilts = rng.normal(0.0, 0.4, N_FEATURES), rng.normal(0.0, 0.5, x.shape[1])
    still = _centered(features @ slopes + x @ tilts + 0.5 * np.sin(2.0 * features[:, 0]))
    moving = _wave(rng, features, 0.25, cycles=2.0) + _wave(rng, x, 0.25, cycles=3.0)
    mean = scale + (1.0 - 2.0 * scale) * _sigmoid(still + moving)
    hint = 0.2 + 0.6 * _sigmoid(still + x @ rng.normal(0.0, 0.2, x.shape[1]))
    y = _bernoulli(rng, mean) if binary else mean + scale * _triangular(rng, n_rounds)
    return Stream(x, y, hint, features, mean, None if binary else scale)


def miscalibrated(n_rounds: int, seed: int, n_groups: int = 20) -> Stream:
    """S1: a binary label, additive in the log-odds and drifting; the hint is a frozen, badly overconfident model.

    Parameters
    ----------
    n_rounds, seed, n_groups : int
        As in `drifting`.

    Returns
    -------
    Stream
        With binary labels, so that `truth_scale` is None.

    Examples
    --------
    >>> stream = miscalibrated(2000, seed=0)
    >>> bool(np.std(stream.hint) > np.std(stream.truth_mean))
    True
    """
    rng, features, x = context(n_rounds, seed, n_groups)
    slopes, tilts = rng.normal(0.0, 0.22, N_FEATURES), rng.normal(0.0, 0.35, x.shape[1])
    still = _centered(features @ slopes + x @ tilts)
    odds = still + _wave(rng, features, 0.08, cycles=1.0) + _wave(rng, x, 0.2, cycles=1.0)
    hint = _sigmoid(1.9 * (features @ slopes) + x @ (0.5 * tilts + rng.normal(0.0, 0.3, x.shape[1])))
    return _binary(rng, features, x, odds, hint)


def noisy(n_rounds: int, seed: int, n_groups: int = 20) -> Stream:
    """S2: a real label whose noise depends on the groups; the hint is a point forecast of the mean, biased by group.

    Parameters
    ----------
    n_rounds, seed, n_groups : int
        As in `drifting`.

    Returns
    -------
    Stream
        With real labels.

    Examples
    --------
    >>> stream = noisy(2000, seed=0)
    >>> bool(np.all((0.0 < stream.y) & (stream.y < 1.0)))
    True
    """
    rng, features, x = context(n_rounds, seed, n_groups)
    widths = rng.exponential(0.022, x.shape[1]) * rng.choice([0.0, 1.0], x.shape[1])
    scale = np.minimum(0.05 + x @ widths, 0.4)
    odds = features @ rng.normal(0.0, 0.4, N_FEATURES) + x @ rng.normal(0.0, 0.2, x.shape[1])
    mean = scale + (1.0 - 2.0 * scale) * _sigmoid(odds + _wave(rng, x, 0.1, cycles=1.0))
    bias = x @ rng.normal(0.0, 0.015, x.shape[1]) + _wave(rng, x, 0.01, cycles=1.0)
    hint = np.clip(mean + bias, 0.0, 1.0)
    return Stream(x, mean + scale * _triangular(rng, n_rounds), hint, features, mean, scale)


def interacting(n_rounds: int, seed: int, n_groups: int = 20) -> Stream:
    """S1n: as S1, with pairs of groups that matter through their exclusive or, which no additive model can follow.

    Parameters
    ----------
    n_rounds, seed, n_groups : int
        As in `drifting`; at least 7 groups.

    Returns
    -------
    Stream
        With binary labels.

    Examples
    --------
    >>> interacting(100, seed=0).n_rounds
    100
    """
    if n_groups < 7:
        raise InvalidInput(f"the interacting stream pairs up six groups besides the first; got n_groups={n_groups!r}")
    rng, features, x = context(n_rounds, seed, n_groups)
    slopes, tilts = rng.normal(0.0, 0.3, N_FEATURES), rng.normal(0.0, 0.25, x.shape[1])
    # The first groups are half-spaces, so the pairs cross each other.
    exclusive = np.abs(x[:, 1:4] - x[:, 4:7]) - 0.5
    still = _centered(features @ slopes + x @ tilts)
    odds = still + exclusive @ np.array([1.6, -1.6, 1.6]) + _wave(rng, x, 0.15, cycles=1.0)
    return _binary(rng, features, x, odds, _overconfident(rng, features, x, slopes, tilts))


def oscillating(n_rounds: int, seed: int, n_groups: int = 20, *, period: float = 2000.0) -> Stream:
    """S1o: as S1, with group effects that swing to and fro every `period` rounds, however long the stream is.

    Parameters
    ----------
    n_rounds, seed, n_groups : int
        As in `drifting`.
    period : float
        Rounds of one swing.

    Returns
    -------
    Stream
        With binary labels, and a truth that comes back to where it was.

    Examples
    --------
    >>> oscillating(100, seed=0, period=50.0).truth_mean.shape
    (100,)
    """
    positive(period, "period")
    rng, features, x = context(n_rounds, seed, n_groups)
    slopes, tilts = rng.normal(0.0, 0.35, N_FEATURES), rng.normal(0.0, 0.25, x.shape[1])
    odds = _centered(features @ slopes + x @ tilts) + _wave(rng, x, 0.7, cycles=n_rounds / period)
    return _binary(rng, features, x, odds, _overconfident(rng, features, x, slopes, tilts))


def context(n_rounds: int, seed: int, n_groups: int) -> tuple[np.random.Generator, Float64Array, Float64Array]:
    """What all streams here share: features, and groups cut out of their space; and the generator, to draw on from.

    Parameters
    ----------
    n_rounds, n_groups : int
        1 or more.
    seed : int
        0 or more.

    Examples
    --------
    >>> rng, features, x = context(100, 0, 5)
    >>> features.shape, x.shape
    ((100, 10), (100, 5))
    """
    for name, value, least in (("n_rounds", n_rounds, 1), ("n_groups", n_groups, 1), ("seed", seed, 0)):
        inputs.integer(value, name, least)
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n_rounds, N_FEATURES))
    # About two thirds of the groups are half-spaces; the others are intersections of neighboring half-spaces.
    n_half = max(1, min(n_groups - 1, 1 + 2 * (n_groups - 1) // 3))
    directions = rng.normal(size=(N_FEATURES, n_half))
    directions /= np.sqrt(np.sum(directions**2, axis=0))
    half = (features @ directions > rng.uniform(-0.5, 0.7, n_half)).astype(np.float64)
    first = rng.permutation(n_half)
    x = np.ones((n_rounds, n_groups))
    x[:, 1 : 1 + n_half] = half[:, : n_groups - 1]
    for j in range(1 + n_half, n_groups):
        a = first[(j - 1) % n_half]
        x[:, j] = half[:, a] * half[:, (a + 1) % n_half]
    return rng, features, x


def _binary(
    rng: np.random.Generator, features: Float64Array, x: Float64Array, odds: Float64Array, hint: Float64Array
) -> Stream:
    """Labels 0 and 1 with these log-odds."""
    mean = _sigmoid(odds)
    return Stream(x, _bernoulli(rng, mean), hint, features, mean, None)


def _overconfident(rng: np.random.Generator, features: Float64Array, x: Float64Array, slopes: Any, tilts: Any) -> Any:
    """A frozen model with too large slopes and half of the groups' effects, shifted."""
    return _sigmoid(1.6 * (features @ slopes) + x @ (0.5 * tilts + rng.normal(0.0, 0.2, x.shape[1])))


def _wave(rng: np.random.Generator, columns: Float64Array, amplitude: float, *, cycles: float) -> Float64Array:
    """Sum over columns of the column times a sine of time, with its own amplitude, phase and near-common frequency."""
    n_rounds: int = columns.shape[0]
    n: int = columns.shape[1]
    time = np.arange(n_rounds) / n_rounds
    total = np.zeros(n_rounds)
    sizes, phases = rng.normal(0.0, amplitude, n), rng.uniform(0.0, 2.0 * np.pi, n)
    speeds = 2.0 * np.pi * cycles * rng.uniform(0.7, 1.3, n)
    for j in range(n):
        total += columns[:, j] * (sizes[j] * np.sin(speeds[j] * time + phases[j]))
    return total


def _centered(odds: Float64Array) -> Float64Array:
    # Otherwise the sum of the group effects makes the label rare under some seeds.
    return odds - float(np.mean(odds))


def _bernoulli(rng: np.random.Generator, mean: Float64Array) -> Float64Array:
    return (rng.random(len(mean)) < mean).astype(np.float64)


def _triangular(rng: np.random.Generator, n: int) -> Float64Array:
    noise: Float64Array = rng.random(n) - rng.random(n)
    return noise


def _sigmoid(z: Float64Array) -> Float64Array:
    half: Float64Array = np.tanh(0.5 * z)
    return 0.5 + 0.5 * half


def _unit_expectile(level: float) -> float:
    """The expectile of the density 1 - |e| on [-1, 1], by bisection; E(e - c)^+ = (1 - c)^3 / 6 for c >= 0."""
    if level < 0.5:
        return -_unit_expectile(1.0 - level)
    low, high = 0.0, 1.0
    for _ in range(60):
        c = 0.5 * (low + high)
        above = (1.0 - c) ** 3 / 6.0
        if level * above > (1.0 - level) * (c + above):
            low = c
        else:
            high = c
    return 0.5 * (low + high)


# When outcomes are known: row numbers for `Forecaster.run(known=...)`, as they come about in the field. Entry t is the
# row before which the outcome of row t is learned: t + 1 where it is known at once, and never less.


def fixed(n_rounds: int, rows: int) -> Float64Array:
    """Every outcome after the same number of rows.

    Parameters
    ----------
    n_rounds, rows : int
        Rows of the stream, and of the delay, 1 or more.

    Returns
    -------
    array
        Row numbers.

    Examples
    --------
    >>> fixed(3, 10)
    array([10., 11., 12.])
    """
    return _from_start(n_rounds, np.full(n_rounds, positive(rows, "rows")))


def geometric(n_rounds: int, mean: float, seed: int) -> Float64Array:
    """An outcome that is out is known before the next row with the same chance, however long it has been out.

    Parameters
    ----------
    n_rounds : int
        Rows.
    mean : float
        Of the delay, in rows, 1 or more.
    seed : int
        Of the draws.

    Returns
    -------
    array
        Row numbers.

    Examples
    --------
    >>> known = geometric(10_000, 300.0, seed=0)
    >>> bool(280.0 < np.mean(known - np.arange(10_000)) < 320.0)
    True
    """
    rng = np.random.default_rng(seed)
    return _from_start(n_rounds, rng.geometric(1.0 / max(positive(mean, "mean"), 1.0), n_rounds))


def by_day(n_rounds: int, day: int) -> Float64Array:
    """All outcomes of a day are known when the next one begins.

    Parameters
    ----------
    n_rounds, day : int
        Rows of the stream, and of a day.

    Returns
    -------
    array
        Row numbers.

    Examples
    --------
    >>> by_day(5, 2)
    array([2., 2., 4., 4., 6.])
    """
    day = int(positive(day, "day"))
    return np.asarray((np.arange(n_rounds) // day + 1) * day, dtype=np.float64)


def heavy_tailed(n_rounds: int, scale: float, seed: int, *, tail: float = 1.2) -> Float64Array:
    """Most outcomes soon, some after very long: delays of a Pareto law, whose variance is infinite for tails below 2.

    Parameters
    ----------
    n_rounds : int
        Rows.
    scale : float
        In rows: the chance to be out longer than d is (1 + d / scale)^-tail.
    seed : int
        Of the draws.
    tail : float
        Exponent of the tail.

    Returns
    -------
    array
        Row numbers.

    Examples
    --------
    >>> late = heavy_tailed(10_000, 50.0, seed=0) - np.arange(10_000)
    >>> bool(np.median(late) < 50.0 and late.max() > 5_000.0)
    True
    """
    drawn = np.random.default_rng(seed).pareto(positive(tail, "tail"), n_rounds)
    return _from_start(n_rounds, 1.0 + np.floor(positive(scale, "scale") * drawn))


def by_outcome(y: Float64Array, high: float, low: float, seed: int) -> Float64Array:
    """The delay depends on the outcome: about `high` rows for those above the mean, about `low` for the others.

    Parameters
    ----------
    y : array
        Outcomes; NaN counts as low.
    high, low : float
        Mean delays, in rows; each is spread by half of itself (a gamma law of shape 4).
    seed : int
        Of the draws.

    Returns
    -------
    array
        Row numbers.

    Examples
    --------
    >>> known = by_outcome(np.array([1.0, 0.0] * 500), 20.0, 3000.0, seed=0)
    >>> late = known - np.arange(1000)
    >>> bool(late[::2].mean() < 25.0), bool(late[1::2].mean() > 2800.0)
    (True, True)
    """
    mean = np.where(_above_mean(y), positive(high, "high"), positive(low, "low"))
    spread = np.random.default_rng(seed).gamma(4.0, 0.25, len(y))
    return _from_start(len(y), 1.0 + np.floor(mean * spread))


def _above_mean(y: Float64Array) -> Any:
    return np.nan_to_num(y) > np.nanmean(y)


def _from_start(n_rounds: int, delays: Any) -> Float64Array:
    known: Float64Array = np.arange(n_rounds, dtype=np.float64) + np.maximum(np.asarray(delays, dtype=np.float64), 1.0)
    return known


def positive(value: float, name: str) -> float:
    """A number above 0."""
    if isinstance(value, bool) or not (math.isfinite(value) and value > 0.0):
        raise InvalidInput(f"{name} must be a positive number; got {value!r}")
    return value

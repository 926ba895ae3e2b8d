"""Simulated streams whose truth is known: right models, biased ones, and worlds that move.

Contexts have three labels (2, 4 and 8 values), each value a group, beside all rows. Streams with an odd seed are for
tuning, those with an even one are reported.
"""

from collections.abc import Iterator

import numpy as np

from swapcal.properties import Mean, Quantile
from swapcal.protocols import Rows
from swapcal.typing import Float64Array, IntArray
from swapcal_benchmarks.late.late_delays import AT_ONCE, delays
from swapcal_benchmarks.late.late_stream import EVENT, MEAN, QUANTILE, REPORTED, TUNING, LateSource, LateStream

__all__ = ["SHARP", "WEEKLY_NARROW", "WEEKLY_RIGHT", "simulated_streams"]

N_ROUNDS = 20_000
SEEDS = (1, 2)
SHARP, WEEKLY_RIGHT, WEEKLY_NARROW = "right and sharp", "weekly, right", "weekly, too narrow"
_SHARP_ROUNDS, _SHARP_NOISE = 30_000, 0.005
_LABELS = (2, 4, 8)
_DAY, _TURN, _PERIOD = 200, 3000, 8000
_LEVEL, _NORMAL = 0.9, 1.2815515655446004
_WEEKS, _REGIONS, _HORIZONS, _WEEKLY_SEEDS = 85, 50, 3, range(1, 7)
_WEEKLY_LEVELS = {0.05: -1.6448536269514722, 0.5: 0.0, 0.95: 1.6448536269514722}
_NARROW = 0.6568
"""The 0.95 quantile of the narrow model is that of 0.86 in truth."""


def simulated_streams(n_rounds: int = N_ROUNDS) -> Iterator[LateStream]:
    """Every simulated source with every delay; sharp ones at once only, weekly ones with their own delay only."""
    for seed in SEEDS:
        for source in (*_events(n_rounds, seed), *_quantities(n_rounds, seed)):
            yield from delays(source)
        for source in _sharp(min(_SHARP_ROUNDS, 3 * n_rounds // 2), seed):
            yield next(stream for stream in delays(source) if stream.delay == AT_ONCE)
    for seed in _WEEKLY_SEEDS:
        yield from _weekly(seed)


class _World:
    """Labels, an additive score of them, and a generator to draw on from."""

    def __init__(self, n_rounds: int, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.seed, self.half = seed, TUNING if seed % 2 else REPORTED
        self.labels = [self.rng.integers(k, size=n_rounds) for k in _LABELS]
        self.score = self.rng.standard_normal(n_rounds) + self.effects(0.5)

    def effects(self, size: float) -> Float64Array:
        """A normal effect of each label's value, added up."""
        drawn = [self.rng.normal(0.0, size, k) for k in _LABELS]
        total: Float64Array = np.sum([each[label] for each, label in zip(drawn, self.labels, strict=True)], axis=0)
        return total

    def source(
        self, name: str, kind: str, property: Mean | Quantile, y: Float64Array, p: Float64Array, *, right: bool = False
    ) -> LateSource:
        """The stream of these outcomes and forecasts."""
        rows = _rows(self.labels, _LABELS)
        n_groups, segments = 1 + sum(_LABELS), self.labels[-1]
        label = f"{name}, seed {self.seed % 100}"
        return LateSource(label, kind, property, y, p, rows, n_groups, segments, self.half, right=right)


def _rows(labels: list[IntArray], sizes: tuple[int, ...]) -> Rows:
    """Everybody, and the group of each label's value."""
    n, active = len(labels[0]), 1 + len(labels)
    firsts = 1 + np.concatenate([[0], np.cumsum(sizes)[:-1]])
    columns = np.column_stack([np.zeros(n), *(first + each for first, each in zip(firsts, labels, strict=True))])
    return Rows(np.arange(n + 1) * active, columns.astype(np.int64).ravel(), np.ones(n * active))


def _sigmoid(z: Float64Array) -> Float64Array:
    half: Float64Array = np.tanh(0.5 * z)
    return 0.5 + 0.5 * half


def _events(n: int, seed: int) -> Iterator[LateSource]:
    time = np.arange(n)

    def event(name: str, world: _World, truth: Float64Array, p: Float64Array, *, right: bool = False) -> LateSource:
        y = (world.rng.random(n) < truth).astype(np.float64)
        return world.source(f"{name}, event", EVENT, Mean(), y, p, right=right)

    world = _World(n, seed)
    yield event("right", world, _sigmoid(world.score), _sigmoid(world.score), right=True)
    world = _World(n, 100 + seed)
    yield event("group bias", world, _sigmoid(world.score), _sigmoid(world.score + world.effects(0.4)))
    world = _World(n, 200 + seed)
    sine = np.sin(2.0 * np.pi * time / _PERIOD)
    yield event("slow sine", world, _sigmoid(world.score + 1.2 * sine), _sigmoid(world.score))
    world = _World(n, 300 + seed)
    turning = np.where(time // _TURN % 2 == 0, 1.0, -1.0) * world.effects(0.4)
    yield event("turning", world, _sigmoid(world.score + turning), _sigmoid(world.score))
    world = _World(n, 400 + seed)
    shocks = world.rng.normal(0.0, 0.5, n // _DAY + 1)[time // _DAY]
    nodes, weights = np.polynomial.hermite_e.hermegauss(15)
    expected = _sigmoid(world.score[:, None] + 0.5 * nodes) @ (weights / weights.sum())
    # Right before the day begins; who knows its first outcomes knows more.
    yield event("shocks by day", world, _sigmoid(world.score + shocks), expected)


def _quantities(n: int, seed: int) -> Iterator[LateSource]:
    def both(
        name: str, world: _World, noise: Float64Array, upper: float, bias: Float64Array, *, right: bool
    ) -> Iterator[LateSource]:
        truth = 0.3 + 0.4 * _sigmoid(world.score)
        y = truth + noise
        yield world.source(f"{name}, mean", MEAN, Mean(), y, truth + bias, right=right)
        yield world.source(
            f"{name}, {_LEVEL} quantile", QUANTILE, Quantile(_LEVEL), y, truth + upper + bias, right=right
        )

    world = _World(n, 500 + seed)
    noise = np.clip(world.rng.normal(0.0, 0.08, n), -0.3, 0.3)
    yield from both("right", world, noise, 0.08 * _NORMAL, np.zeros(n), right=True)
    world = _World(n, 600 + seed)
    noise = np.clip(world.rng.normal(0.0, 0.08, n), -0.3, 0.3)
    yield from both("group bias", world, noise, 0.08 * _NORMAL, world.effects(0.012), right=False)
    world = _World(n, 700 + seed)
    noise = np.clip(0.02 * world.rng.standard_t(2.0, n), -0.3, 0.3)
    upper = 0.02 * (2.0 * _LEVEL - 1.0) / np.sqrt(2.0 * _LEVEL * (1.0 - _LEVEL))
    yield from both("heavy tail", world, noise, float(upper), np.zeros(n), right=True)


def _sharp(n: int, seed: int) -> Iterator[LateSource]:
    world = _World(n, 800 + seed)
    truth = 0.2 + 0.6 * _sigmoid(world.score)
    y = truth + world.rng.normal(0.0, _SHARP_NOISE, n)
    yield world.source(f"{SHARP}, mean", MEAN, Mean(), y, truth, right=True)
    upper = truth + _NORMAL * _SHARP_NOISE
    yield world.source(f"{SHARP}, {_LEVEL} quantile", QUANTILE, Quantile(_LEVEL), y, upper, right=True)


def _weekly(seed: int) -> Iterator[LateStream]:
    """Each week every region is forecast for the next three weeks; all regions share the shock of a week."""
    rng = np.random.default_rng(900 + seed)
    week, region, ahead = (
        each.ravel() for each in np.meshgrid(*map(np.arange, (_WEEKS, _REGIONS, _HORIZONS)), indexing="ij")
    )
    target = week + ahead + 1
    usual = rng.normal(0.0, 1.0, _REGIONS)[region] + np.sin(2.0 * np.pi * target / 52.0)
    own = rng.normal(0.0, 0.6, (_REGIONS, _WEEKS + _HORIZONS + 1))[region, target]
    y = usual + rng.normal(0.0, 0.8, _WEEKS + _HORIZONS + 1)[target] + own
    known = (target * _REGIONS * _HORIZONS).astype(np.float64)
    sizes = (_HORIZONS, _REGIONS)
    rows, n_groups = _rows([ahead, region], sizes), 1 + sum(sizes)
    # The range of everything that is drawn, in round numbers.
    low, high = -8.0, 8.0
    for level, normal in _WEEKLY_LEVELS.items():
        for name, factor in ((WEEKLY_RIGHT, 1.0), (WEEKLY_NARROW, _NARROW)):
            if name == WEEKLY_NARROW and normal == 0.0:
                continue
            source = LateSource(
                f"{name}, {level} quantile, seed {seed}",
                QUANTILE,
                Quantile(level, low=low, high=high),
                y,
                usual + factor * normal,
                rows,
                n_groups,
                region,
                TUNING if seed % 2 else REPORTED,
                right=name == WEEKLY_RIGHT,
            )
            yield LateStream(source, "one to three weeks", known)

"""The engine against its oracle, `naive.py`: the same forecasts in every round, and the same probabilities."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import naive_audit
import swapcal as sc
from naive import Naive
from swapcal.engine.trust import trusted
from swapcal.roles import Elicitable
from swapcal.typing import Float64Array


def wave(p: float, y: float) -> float:
    """Rises and falls in p, with the sign of p - y."""
    return (p - y) * math.exp(-4.0 * abs(p - y))


PROPERTIES: dict[str, Elicitable] = {
    "mean": sc.Mean(),
    "mean in units": sc.Mean(low=-3.0, high=5.0),
    "quantile": sc.Quantile(0.75),
    "quantile, not dyadic": sc.Quantile(0.9, low=10.0, high=13.0),
    "expectile": sc.Expectile(0.8),
    "probability": sc.Probability(),
    "moment": sc.Moment(2, low=-1.0, high=2.0),
    "not monotone": sc.Property(wave, name="wave"),
}
HINTS = ("none", "good", "hostile")


@dataclass(frozen=True)
class Class:
    """A class of the package beside its formula in the oracle."""

    hypotheses: Callable[[int], sc.Finite | sc.Linear]
    weights: Callable[[int], naive.Weights]
    level: Callable[[list[float]], float] | None

    @property
    def linear(self) -> bool:
        return isinstance(self.hypotheses(1), sc.Linear)


CLASSES: dict[str, Class] = {
    "AdaNormalHedge": Class(sc.Finite, lambda n: naive.ada_normal_hedge, naive.ada_normal_hedge_level),
    "Exponential": Class(
        lambda n: sc.Finite(n, potential=sc.potentials.Exponential()),
        lambda n: naive.exponential,
        naive.exponential_level,
    ),
    "Squint": Class(
        lambda n: sc.Finite(n, potential=sc.potentials.Squint()), lambda n: naive.squint, naive.squint_level
    ),
    "PNorm": Class(
        lambda n: sc.Finite(n, potential=sc.potentials.PNorm()),
        lambda n: naive.p_norm(max(2.0, 2.0 * math.log(n))),
        None,
    ),
    "Linear": Class(sc.Linear, lambda n: naive.linear, None),
}


@dataclass(frozen=True)
class Stream:
    x: Float64Array
    y: Float64Array
    hints: list[float | None]


def stream_of(property: Elicitable, n_rounds: int, n: int, hints: str, seed: int, *, unit_ball: bool) -> Stream:
    """Contexts with zeros, fractions and negative values; labels that depend on them and drift; a few at the ends."""
    rng = np.random.default_rng(seed)
    fractions = rng.integers(-8, 9, (n_rounds, n)) / 8.0
    groups = rng.integers(0, 2, (n_rounds, n)).astype(float)
    x = np.where(rng.random((n_rounds, 1)) < 0.5, groups, fractions) * (rng.random((n_rounds, n)) < 0.7)
    if unit_ball:
        x /= np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True)) * 1.0001
    center = np.clip(0.5 + 0.3 * x[:, 0] + 0.2 * np.sin(np.arange(n_rounds) / 40.0), 0.05, 0.95)
    unit = np.clip(center + 0.15 * rng.standard_normal(n_rounds), 0.001, 1.0)
    if property.continuous:
        unit[rng.random(n_rounds) < 0.05] = 1.0
    else:
        # Labels of a quantile must not heap, as those cut off at an end would.
        unit = np.where((unit == 0.001) | (unit == 1.0), rng.uniform(0.001, 1.0, n_rounds), unit)
    y = property.low + (property.high - property.low) * unit
    if isinstance(property, sc.Probability):
        y = (rng.random(n_rounds) < unit).astype(float)
    guess = np.clip(center + 0.1 * rng.standard_normal(n_rounds), 0.0, 1.0)
    if hints == "hostile":
        guess = np.where(rng.random(n_rounds) < 0.5, np.round(1.0 - center), rng.random(n_rounds))
    low, high = property.domain
    given = [min(max(low + (high - low) * float(g), low), high) for g in guess]
    mixed: list[float | None] = [None if hints == "none" or rng.random() < 0.1 else hint for hint in given]
    return Stream(x, y, mixed)


def pair(
    kind: str,
    property: Elicitable,
    n: int,
    n_bins: int | None,
    seed: int,
    *,
    levels: int = 10,
    trust: float = 1.0 / 3.0,
    first: int = 11,
) -> tuple[sc.Forecaster, Naive]:
    """The engine and the oracle with the same settings; `n_bins` None is anytime, from `first` bins on."""
    each = CLASSES[kind]
    engine = sc.Forecaster(property, each.hypotheses(n), bins=n_bins, seed=seed, levels=levels, trust=trust)
    oracle = Naive(
        property,
        n,
        each.weights(n if each.linear else n + levels),
        each.level,
        seed,
        first if n_bins is None else n_bins,
        anytime=n_bins is None,
        n_levels=0 if each.linear else levels,
        trust=trust,
    )
    return engine, oracle


def is_tied(oracle: Naive, x: list[float]) -> bool:
    """Whether some Phi, or the sum of gains of an active function, is zero up to rounding, so its sign is anyone's."""
    for i in range(oracle.n_bins):
        sums = [each for each, value in zip(oracle.gains(i), x, strict=True) if value != 0.0]
        for terms in (oracle.terms(i, x), *sums):
            size = math.fsum(map(abs, terms))
            if size > 0.0 and abs(math.fsum(terms)) <= 1e-12 * size:
                return True
    return False


def check_same(forecast: sc.Forecast, opened: naive.Opened, oracle: Naive) -> bool:
    """Whether the engine did what the oracle says; a tie in the evidence is the one excuse for anything else."""
    choice = opened.choice
    other = oracle.middle(choice.lower + choice.upper - opened.bin)
    probability = choice.p_lower if opened.bin == choice.lower else 1.0 - choice.p_lower
    same = (
        forecast.value == opened.forecast
        and forecast.other == other
        and forecast.evidence_at == opened.evidence_at
        and abs(forecast.probability - probability) <= 1e-9
    )
    assert same or is_tied(oracle, opened.x), (forecast.round, forecast, forecast.evidence_at, opened)
    return same


def check_healing(property: Elicitable, opened: naive.Opened, oracle: Naive) -> None:
    """The inequality behind every theorem: E[Phi V] <= 0 over the draw, whatever the label; hints aside."""
    choice = opened.choice
    if choice.trusted:
        return
    played = ((choice.lower, choice.p_lower), (choice.upper, 1.0 - choice.p_lower))
    phi = {i: math.fsum(oracle.terms(i, opened.x)) for i, _ in played}
    for share in (0.001, 0.1, 0.25, 0.4, 0.5, 0.7, 0.9, 1.0):
        y = property.low + (property.high - property.low) * share
        if isinstance(property, sc.Probability):
            y = round(share)
        gain = 0.0
        for i, p in played:
            at = oracle.middle(i) if choice.evidence_at is None else choice.evidence_at
            gain += p * phi[i] * float(property.identification(at, y))
        assert gain <= 1e-12 * (1.0 + max(map(abs, phi.values())))


def followed(opened: naive.Opened, forecast: sc.Forecast, oracle: Naive) -> naive.Opened:
    """The oracle's round with the engine's play in it: after a tie, both go on from the same past."""
    i = [oracle.middle(i) for i in range(oracle.n_bins)].index(forecast.value)
    return replace(opened, bin=i, middle=oracle.name(i), forecast=forecast.value, evidence_at=forecast.evidence_at)


def compare(engine: sc.Forecaster, oracle: Naive, stream: Stream, *, delays: Float64Array | None = None) -> int:
    """Run both side by side; the number of rounds in which a tie made them differ, which is 0 as a rule."""
    contexts: list[list[float]] = []
    forecasts: list[float] = []
    labels: list[float] = []
    waiting: list[tuple[float, sc.Forecast, naive.Opened, float]] = []
    n_ties = 0
    for t in range(len(stream.y)):
        x, hint = stream.x[t].tolist(), stream.hints[t]
        distribution = engine.distribution(x, hint)
        forecast, opened = engine.predict(x, hint), oracle.predict(x, hint)
        assert distribution[forecast.value] == forecast.probability
        if check_same(forecast, opened, oracle):
            check_healing(engine.property, opened, oracle)
        else:
            n_ties += 1
            opened = followed(opened, forecast, oracle)
        waiting.append((t + (0.0 if delays is None else delays[t]), forecast, opened, float(stream.y[t])))
        for item in sorted(waiting, key=lambda item: item[0]):
            due, given, back, y = item
            if due <= t or t == len(stream.y) - 1:
                waiting.remove(item)
                engine.update(given, y)
                oracle.update(back, y)
                contexts.append(back.x)
                forecasts.append(back.forecast)
                labels.append(y)
    identification = engine.property.identification

    def v(p: float, y: float) -> float:
        return float(identification(p, y))

    error = naive_audit.swap_multicalibration(labels, forecasts, naive_audit.columns(contexts), v, 3.0)
    if isinstance(engine.hypotheses, sc.Linear):
        error = naive_audit.linear_swap_multicalibration(labels, forecasts, contexts, v, 3.0)
    assert engine.error(3.0) == pytest.approx(error, rel=1e-9, abs=1e-12)
    assert engine.grid.n == oracle.n_bins
    assert engine.n_rounds == len(stream.y)
    assert engine.n_pending == 0
    return n_ties


@pytest.mark.parametrize("hints", HINTS)
@pytest.mark.parametrize("name", PROPERTIES)
@pytest.mark.parametrize("kind", CLASSES)
def test_every_class_property_and_hint(kind: str, name: str, hints: str) -> None:
    target = PROPERTIES[name]
    seed = 1000 * list(CLASSES).index(kind) + 10 * list(PROPERTIES).index(name) + HINTS.index(hints)
    n, n_bins = 1 + seed % 5, 3 + seed % 7
    stream = stream_of(target, 90, n, hints, seed, unit_ball=CLASSES[kind].linear)
    ties = compare(*pair(kind, target, n, n_bins, seed), stream)
    # Sums of multiples of 1/8 are exact; those of 0.1 and -0.9 need not be zero where they should.
    assert ties <= (2 if name == "quantile, not dyadic" else 0)


@pytest.mark.parametrize(
    ("levels", "trust", "n_bins"), [(0, 0.0, 1), (0, 0.0, 2), (3, 0.0, 9), (0, 1.0 / 6.0, 5), (4, 1.0, 7)]
)
@pytest.mark.parametrize("kind", CLASSES)
def test_levels_trust_and_tiny_grids(kind: str, levels: int, trust: float, n_bins: int) -> None:
    target = PROPERTIES["mean"]
    stream = stream_of(target, 80, 2, "hostile", n_bins, unit_ball=CLASSES[kind].linear)
    assert compare(*pair(kind, target, 2, n_bins, 7, levels=levels, trust=trust), stream) == 0


DENSE = sc.Quantile(0.75, density=20.0)
"""Its labels may be 20 times as dense as uniform ones: 4 T^(1/3) bins, the most there are, so that grids grow early."""


@pytest.mark.parametrize(
    ("target", "horizon", "n_bins"),
    [(sc.Mean(), 200, 11), (DENSE, 20, 11), (DENSE, 21, 13), (DENSE, 27, 13), (DENSE, 64, 17), (DENSE, 77, 19)],
)
def test_horizon_sets_the_grid(target: Elicitable, horizon: int, n_bins: int) -> None:
    """0.75 T^(1/3) bins, or 4 T^(1/3), and the next odd number from 11 on; so the middle is one of the forecasts."""
    _, oracle = pair("AdaNormalHedge", target, 3, n_bins, 5)
    engine = sc.Forecaster(target, sc.Finite(3), horizon=horizon, seed=5)
    assert compare(engine, oracle, stream_of(target, horizon, 3, "good", 5, unit_ball=False)) == 0
    assert oracle.middle(n_bins // 2) == 0.5


@pytest.mark.usefixtures("three_bins")
@pytest.mark.parametrize("hints", ["none", "good"])
@pytest.mark.parametrize("kind", CLASSES)
def test_anytime_across_a_refinement(kind: str, hints: str) -> None:
    """Three bins become nine when 0.75 T^(1/3), or T^(1/3) for a quantile, is 3 sqrt(3): after round 333 or 141."""
    target = PROPERTIES["quantile" if hints == "none" else "mean"]
    engine, oracle = pair(kind, target, 2, None, 11, levels=2, first=3)
    assert compare(engine, oracle, stream_of(target, 450, 2, hints, 3, unit_ball=CLASSES[kind].linear)) == 0
    assert engine.grid.n == 9


@pytest.mark.parametrize("hints", ["none", "good"])
@pytest.mark.parametrize("kind", CLASSES)
def test_anytime_starts_with_eleven_bins(kind: str, hints: str) -> None:
    """They become 33 when 4 T^(1/3) is 11 sqrt(3): after round 109."""
    engine, oracle = pair(kind, DENSE, 2, None, 12, levels=2)
    assert engine.grid.n == 11
    assert compare(engine, oracle, stream_of(DENSE, 180, 2, hints, 6, unit_ball=CLASSES[kind].linear)) == 0
    assert engine.grid.n == 33


@pytest.mark.usefixtures("three_bins")
@pytest.mark.parametrize("kind", ["AdaNormalHedge", "Linear"])
def test_outcomes_late_and_out_of_order(kind: str) -> None:
    """Delays of up to 60 rounds across the refinement: forecasts of the old grid are updated on the new one."""
    delays = np.random.default_rng(0).integers(0, 60, 374).astype(float)
    engine, oracle = pair(kind, sc.Mean(), 2, None, 2, levels=2, first=3)
    stream = stream_of(sc.Mean(), 374, 2, "good", 8, unit_ball=CLASSES[kind].linear)
    assert compare(engine, oracle, stream, delays=delays) == 0
    assert engine.grid.n == 9


def test_linear_contexts_are_shrunk_to_the_unit_ball() -> None:
    stream = stream_of(sc.Mean(), 100, 3, "good", 4, unit_ball=False)
    engine, oracle = pair("Linear", sc.Mean(), 3, 6, 4)
    for t in range(100):
        x = (3.0 * stream.x[t]).tolist()
        length = max(1.0, math.hypot(*x))
        forecast, opened = engine.predict(x, stream.hints[t]), oracle.predict([e / length for e in x], stream.hints[t])
        assert check_same(forecast, opened, oracle)
        engine.update(forecast, stream.y[t])
        oracle.update(opened, stream.y[t])


@settings(max_examples=25, deadline=None)
@given(
    kind=st.sampled_from(sorted(CLASSES)),
    name=st.sampled_from(sorted(set(PROPERTIES) - {"quantile, not dyadic"})),
    hints=st.sampled_from(HINTS),
    n=st.integers(1, 5),
    n_bins=st.integers(1, 12),
    n_rounds=st.integers(20, 70),
    seed=st.integers(0, 2**32),
)
def test_anything_goes(kind: str, name: str, hints: str, n: int, n_bins: int, n_rounds: int, seed: int) -> None:
    target = PROPERTIES[name]
    stream = stream_of(target, n_rounds, n, hints, seed, unit_ball=CLASSES[kind].linear)
    assert compare(*pair(kind, target, n, n_bins, seed), stream) <= 1


@pytest.mark.parametrize("kind", ["AdaNormalHedge", "Exponential", "Squint"])
def test_a_hint_at_its_word(kind: str) -> None:
    """The rule of trust on evidence made up so that each of its outcomes occurs."""
    rng, grid = np.random.default_rng(1), sc.Grid(0.0, 1.0, 5)
    outcomes = {"not trusted": 0, "its own bin": 0, "the other side": 0}
    for _ in range(400):
        hypotheses = CLASSES[kind].hypotheses(2)
        oracle = Naive(sc.Mean(), 2, CLASSES[kind].weights(2), CLASSES[kind].level, 0, 5, n_levels=0, trust=0.2)
        assert isinstance(hypotheses, sc.Finite)
        evidence, record = hypotheses.start(5), hypotheses.start_record(5)
        for i in range(5):
            for state, past, bias in ((evidence, oracle.past, 0.6), (record, oracle.hint_past, 0.3)):
                drift = rng.normal(0.0, bias)
                for v in np.clip(drift + 0.3 * rng.standard_normal(rng.integers(0, 25)), -1.0, 1.0).tolist():
                    x = rng.integers(-1, 3, 2) / 2.0
                    state.record(i, hypotheses.row(x), v)
                    past.setdefault(oracle.name(i), []).append((x.tolist(), v))
        x, hint = rng.integers(-2, 3, 2) / 2.0, float(rng.random())
        play = trusted(evidence, record, hypotheses.row(x), grid, hint, 0.2)
        phi = [naive.total(oracle.terms(i, x.tolist())) for i in range(5)]
        expected = oracle.at_its_word(phi, x.tolist(), hint)
        assert (None if play is None else (play.lower, play.upper, play.border)) == (
            None if expected is None else (expected, expected, None)
        )
        outcomes[
            "not trusted" if expected is None else "its own bin" if expected == oracle.home(hint) else "the other side"
        ] += 1
    assert min(outcomes.values()) >= 10, outcomes


@pytest.mark.parametrize("n_bins", [1, 2, 5, 9, 48, 49, 1000])
@pytest.mark.parametrize("ends", [(0.0, 1.0), (-3.0, 5.0), (10.0, 13.0)])
def test_bins_of_hints(ends: tuple[float, float], n_bins: int) -> None:
    """Bin i is [border(i), border(i + 1)), but for the last digit of numbers next to a border."""
    grid, oracle = sc.Grid(*ends, n_bins), Naive(sc.Mean(low=ends[0], high=ends[1]), 1, naive.linear, None, 0, n_bins)
    for i in range(n_bins):
        assert grid.border(i) == oracle.border(i)
        assert grid.midpoint(i) == oracle.middle(i)
        for share in (1e-9, 0.5, 1.0 - 1e-9):
            assert grid.bin(grid.border(i) + share * grid.width) == i
    assert grid.bin(ends[0]) == 0
    assert grid.bin(ends[1]) == n_bins - 1

"""Do the theorems hold? Their per-round inequalities for every label, and their totals against adversaries."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from effort import ALL, some
from games import CLASSES, SOUGHT, STRATEGIES, Watched, branches, every_label, evidence_of, game, row_of
from instances import PROPERTIES
from swapcal.audits import swap_multicalibration_error
from swapcal.forecast import Forecast
from swapcal.forecaster import Forecaster
from swapcal.hypotheses import Finite, Linear
from swapcal.hypotheses.finite import FiniteEvidence
from swapcal.potentials import AdaNormalHedge, Exponential, PNorm, Squint
from swapcal.properties import Mean, Probability, Quantile
from swapcal.protocols import Elicitable
from swapcal.simulate.adversaries import AntiHint, Arena, Far, Greedy, ball, play, rounds, signed
from swapcal.simulate.streams import drifting
from swapcal.typing import Float64Array

HINTS = (None, "constant", "alternating", "random")


class WeightedGain:
    """E[Phi V] over the draw, the conditional mean of sum_e w_e g_e: never positive, whatever the label is.

    Phi may be as large as exp(20), so the tolerance for rounding is relative to it. `seen` counts the kinds of play.
    """

    def __init__(self) -> None:
        self.seen = {"zero": 0, "pair": 0, "low": 0, "high": 0, "trusted": 0}

    def __call__(self, forecaster: Forecaster, forecast: Forecast) -> None:
        self.seen[forecast.kind] += 1
        if forecast.kind == "trusted":
            return
        row = row_of(forecast)
        labels = every_label(forecaster.property, np.append(forecaster.values, forecast.evidence_at))
        v = evidence_of(forecaster.property, forecast, labels)
        expected, size = np.zeros(len(labels)), 1.0
        for slot, probability in branches(forecaster, forecast):
            phi = forecaster.state.evidence.phi(slot, row)
            expected += probability * phi * v
            size = max(size, abs(phi))
        assert expected.max() <= 1e-9 * size


@pytest.mark.parametrize("hints", HINTS)
@pytest.mark.parametrize("hypotheses", CLASSES)
def test_no_label_gains_in_expectation(hypotheses: str, hints: str | None) -> None:
    """Pathwise, for labels at both ends of the range too: both values of a draw have one evidence point."""
    look = WeightedGain()
    for sought, strategy in zip(("mean", "quantile", "expectile", "moment"), STRATEGIES, strict=False):
        rules = {"trust": 0.0, "protect": "nothing"}
        # Where values are added as rounds go by, forecasts without a hint seldom come to an end of the range.
        for bins, n_rounds in ((None, 250), (2, 50)):
            forecaster, adversary = game(
                sought, hypotheses, strategy, n_rounds, seed=7, hints=hints, bins=bins, **rules
            )
            play(Watched(forecaster, look), adversary, n_rounds)
    assert look.seen["pair"] > 100
    assert min(look.seen["zero"], look.seen["low"] + look.seen["high"]) > 0
    # A hint that becomes a value has no evidence against it, so none needs to be trusted.
    assert look.seen["trusted"] == 0 or hints is not None


@pytest.mark.parametrize("property", PROPERTIES, ids=repr)
def test_no_label_gains_in_expectation_for_any_property(property: Elicitable) -> None:
    width = None if isinstance(property, Probability) else 0.2
    look = WeightedGain()
    for hints in (None, "random"):
        arena = Arena(signed(4, seed=2), width=width, hints=hints, seed=2)
        forecaster = Forecaster(property, Finite(4), horizon=300, seed=2, trust=0.0)
        play(Watched(forecaster, look), Greedy(arena), 150)
        arena = Arena(ball(3, seed=2), width=width, hints=hints, seed=2)
        play(Watched(Forecaster(property, Linear(3), horizon=300, seed=2), look), Far(arena), 150)
    assert look.seen["pair"] > 50


def theorem_b(p: float, radius: float) -> type:
    """The one-step change of Q = sum_i ||S_i||_p^2 / n_i, enumerated over the draw and over every label."""

    class Step:
        steps = 0

        def __call__(self, forecaster: Forecaster, forecast: Forecast) -> None:
            evidence, row = forecaster.state.evidence, row_of(forecast)
            sums = evidence.arrays()["sums"]
            labels = every_label(forecaster.property, forecaster.values)
            change, allowed = np.zeros(len(labels)), 0.0
            v = evidence_of(forecaster.property, forecast, labels)[:, np.newaxis]
            for i, probability in branches(forecaster, forecast):
                n = evidence.counts[i]
                x = np.zeros(sums.shape[1])
                x[row.indices] = row.values
                before = np.linalg.norm(sums[i], p) ** 2 / n if n else 0.0
                change += probability * (np.linalg.norm(sums[i] + v * x, p, axis=1) ** 2 / (n + 1.0) - before)
                allowed += probability * (p - 1.0) * radius / (n + 1.0)
            assert change.max() <= allowed + 1e-9
            Step.steps += 1

    return Step


@pytest.mark.parametrize("sought", SOUGHT)
def test_one_round_raises_the_quadratic_potential_by_at_most_one_over_n(sought: str) -> None:
    """Theorem B: E[Q_t+1 - Q_t] <= (p - 1) radius E[1 / (n + 1)]; p = 2 and radius 1 for the linear class."""
    for hypotheses, strategy in product(("quadratic", "p-norm"), ("greedy", "far", "anti-hint")):
        members, contexts = CLASSES[hypotheses]
        evidence = members.start(1)
        potential = evidence.potential if isinstance(evidence, FiniteEvidence) else None
        p = potential.exponent if isinstance(potential, PNorm) else 2.0
        radius = 1.0 if p == 2.0 else contexts.shape[1] ** (2.0 / p)
        assert p == 2.0 or radius <= math.e + 1e-12
        step = theorem_b(p, radius)()
        forecaster, adversary = game(sought, hypotheses, strategy, 120, seed=3, levels=0)
        play(Watched(forecaster, step), adversary, 120)
        assert step.steps >= 120


def test_the_negative_term_carries_theorem_b_to_high_probability() -> None:
    """With xi = 2 v Phi, xi^2 / 4 <= A and E exp(xi / 4 - xi^2 / 16) <= 1: that makes 4 ln(1 / delta) of it."""
    n, a, direction, v = np.meshgrid(
        np.arange(0.0, 50.0), np.linspace(0.0, 1.0, 41), np.linspace(-1.0, 1.0, 21), np.linspace(-1.0, 1.0, 21)
    )
    decrease = a * a * n / (n + 1.0)
    xi = 2.0 * v * direction * a * n / (n + 1.0)
    assert np.all(xi * xi / 4.0 <= decrease + 1e-12)
    z = np.linspace(-0.5, 0.5, 1001)
    assert np.all(np.exp(z - z * z) <= 1.0 + z + 1e-15)


def test_the_additive_terms_of_adanormalhedge_sum_to_its_mass() -> None:
    """sum_t 3 |g_t| / (2 (c_t + 1)) <= 3/2 (1 + ln(1 + T)), however the gains are spread over the rounds."""
    rng = np.random.default_rng(0)
    for power in (0.0, 0.5, 2.0, 8.0):
        g = rng.random(3000) ** power
        before = np.concatenate([[0.0], np.cumsum(g)[:-1]])
        assert 1.5 * np.sum(g / (before + 1.0)) <= 1.5 * (1.0 + math.log1p(len(g)))


def test_the_scale_free_terms_sum_to_its_mass() -> None:
    """With b doubled where |g| exceeds it: 3/2 (1 + J + ln(1 + 2^J T)) over J doublings since the first gain."""
    rng = np.random.default_rng(1)
    for _ in range(some(200)):
        grown = np.cumsum(rng.random(400) < rng.choice([0.0, 0.01, 0.1]))
        g = rng.random(400) ** rng.choice([0.0, 1.0, 6.0]) * 2.0 ** np.minimum(grown, 20) * 2.0**-20
        b = np.maximum(2.0 ** np.ceil(np.log2(np.maximum.accumulate(g))), 2.0**-20)
        before = np.concatenate([[0.0], np.cumsum(g)[:-1]])
        doublings = math.log2(b[-1] / b[0])
        terms = 1.5 * np.sum(g / (before + b))
        assert terms <= 1.5 * (1.0 + doublings + math.log1p(2.0**doublings * len(g)))


def test_a_larger_size_of_v_never_raises_the_potential() -> None:
    """And in units of b a gain of at most b raises it by no more than w g / b + 3 |g| / 2 (c + b)."""
    rng = np.random.default_rng(2)
    b = 2.0 ** rng.integers(-6, 3, 20_000)
    c = b * rng.random(20_000) * 300.0
    s = c * rng.uniform(-1.0, 1.0, 20_000)
    g = b * rng.uniform(-1.0, 1.0, 20_000)

    def psi(sums: Float64Array, spreads: Float64Array) -> Float64Array:
        return np.exp(np.maximum(sums, 0.0) ** 2 / np.maximum(3.0 * spreads, 1e-300))

    assert np.all(psi(s / (2.0 * b), c / (2.0 * b)) <= psi(s / b, c / b))
    potential = AdaNormalHedge()
    # Both signs at once, as the weights are.
    before, after = (psi(x, y) + psi(-x, y) for x, y in ((s / b, c / b), ((s + g) / b, (c + np.abs(g)) / b)))
    most = before + potential.weights(s / b, c / b) * g / b + 3.0 * np.abs(g) / (c + b)
    assert np.all(after <= most * (1.0 + 1e-9))


@pytest.mark.parametrize("delay", [0, 7])
def test_the_promise_holds_while_the_size_of_v_doubles(delay: int) -> None:
    """Labels that spread by a factor of two every 40 rounds: loud rounds, some of whose outcomes are late."""
    rng = np.random.default_rng(delay)
    forecaster = Forecaster(Mean(), Finite(3), seed=4, protect="nothing")
    waiting: list[tuple[Any, float]] = []
    for t in range(400):
        x = rng.integers(0, 2, 3).astype(float)
        spread = 2.0 ** (t // 40 - 11)
        hint = 0.5 + 0.1 * spread
        forecast = forecaster.predict(x, hint if t % 3 else None)
        waiting.append((forecast, 0.5 + spread * float(np.sign(float(forecast) - 0.5) * rng.random())))
        if len(waiting) > delay:
            forecaster.update(*waiting.pop(int(rng.integers(len(waiting)))))
        if forecaster.n_rounds:
            assert forecaster.error(said=True) <= forecaster.guarantee(0.05, said=True)
    scale = forecaster.state.scale
    assert scale.now == 0.25 if delay else scale.now >= 0.125
    assert scale.n >= 5
    twin = Forecaster.from_bytes(forecaster.to_bytes())
    assert twin.state.scale.arrays()["since"].tolist() == scale.arrays()["since"].tolist()
    assert float(twin.predict([1.0, 1.0, 0.0])) == float(forecaster.predict([1.0, 1.0, 0.0]))


NODES, WEIGHTS = np.polynomial.legendre.leggauss(400)
ETA, ETA_WEIGHTS = (NODES + 1.0) / 4.0, WEIGHTS / 4.0


def squint_potential(s: float, c: float) -> float:
    """One sign, by quadrature over the rates."""
    return float(ETA_WEIGHTS @ (np.expm1(ETA * s - ETA**2 * c) / ETA))


def test_squint_never_falls_below_its_mass_and_its_bound_inverts_it() -> None:
    """Psi >= -(1/2 + ln(1 + T)); and |s| beyond sqrt(2c) (1 + sqrt(2 ln M)) + 5 ln(1 + 2M) needs Psi >= M."""
    for n_rounds in (1, 10, 1000, 100_000):
        assert squint_potential(-float(n_rounds), float(n_rounds)) >= -0.5 - math.log1p(n_rounds)
    for c, log_mass in product((0.0, 1.0, 10.0, 300.0, 5000.0), (1.0, 5.0, 15.0, 25.0)):
        s = math.sqrt(2.0 * c) * (1.0 + math.sqrt(2.0 * log_mass)) + 5.0 * math.log1p(2.0 * math.exp(log_mass))
        assert squint_potential(s, c) >= math.exp(log_mass)


STREAMS = [
    (sought, hypotheses, list(STRATEGIES)[(i + j) % len(STRATEGIES)], HINTS[(i + 2 * j) % len(HINTS)])
    for (i, sought), (j, hypotheses) in product(enumerate(SOUGHT), enumerate(CLASSES))
    if ALL or (i + 2 * j) % 3 < 2  # two of three, with every property, class, strategy and kind of hint among them
]


@pytest.mark.parametrize(("sought", "hypotheses", "strategy", "hints"), STREAMS)
def test_the_error_stays_below_the_guarantee(sought: str, hypotheses: str, strategy: str, hints: str | None) -> None:
    """The realized guarantee, at several times; and the one ahead of the run, from the Lipschitz constant alone."""
    n_rounds = 2000
    for seed in (11, 12) if ALL else (11,):
        forecaster, adversary = game(sought, hypotheses, strategy, n_rounds, seed=seed, hints=hints)
        for t, _ in enumerate(rounds(forecaster, adversary, n_rounds), start=1):
            if t in (10, 100, 400, n_rounds):
                assert forecaster.error() <= forecaster.guarantee(0.05) * (1.0 + 1e-12)
        # Asked for at the end, because only then the forecaster knows whether hints and their level sets count.
        assert forecaster.error() <= forecaster.guarantee(0.05, n_rounds=n_rounds)


@pytest.mark.parametrize("r", [1.0, 1.5, 3.0])
@pytest.mark.parametrize("hypotheses", ["groups", "exponential", "squint", "p-norm", "linear", "quadratic"])
def test_the_guarantee_holds_for_other_exponents(hypotheses: str, r: float) -> None:
    for sought, strategy in (("mean", "greedy"), ("expectile", "far")):
        forecaster, adversary = game(sought, hypotheses, strategy, 600, seed=5, r=r)
        ahead = forecaster.guarantee(0.05)
        play(forecaster, adversary, 600)
        assert forecaster.error() <= forecaster.guarantee(0.05)
        assert forecaster.error() <= ahead


@pytest.mark.parametrize("potential", [AdaNormalHedge(), Exponential(), Squint()], ids=lambda p: type(p).__name__)
def test_a_trusted_value_passes_its_allowance_by_one_step_only(
    potential: AdaNormalHedge | Exponential | Squint,
) -> None:
    """A value played at the hint's word has Psi <= (e n)^trust before, and little more after one round.

    (s + g)^2 / (c + spread) <= s^2 / c + 1, so that the logarithm of Psi grows by at most 1/3, 1/2 or 1/4.
    """
    trust, seen = 0.25, 0
    step = {"AdaNormalHedge": 1.0 / 3.0, "Exponential": 0.5, "Squint": 0.25}[type(potential).__name__]
    forecaster = Forecaster(Mean(), Finite(3, potential=potential), seed=6, trust=trust, protect="nothing")
    for hints in ("constant", "random"):
        for each in rounds(forecaster, AntiHint(Arena(signed(3, seed=6), hints=hints, seed=6)), 400):
            if each.forecast.kind == "trusted":
                seen += 1
                assert each.forecast.probability == 1.0
                assert each.forecast.value == each.forecast.evidence_at
                slot = forecaster.state.values.find(each.forecast.value)
                allowed = trust * (1.0 + math.log(max(forecaster.state.counts[slot] - 1.0, 1.0)))
                assert forecaster.state.evidence.level(slot, row_of(each.forecast)) <= allowed + step + 1e-12
        assert forecaster.error() <= forecaster.guarantee(0.05)
    assert 5 < seen < 800


def test_what_a_trusted_round_injects() -> None:
    """The weight of a function whose potential is at most e^L is at most 0.52 e^L: the J of the guarantee."""
    for s in np.linspace(0.0, 40.0, some(161)).tolist():
        for c in np.geomspace(max(s, 0.01), max(s, 0.01) * 400.0, 60).tolist():
            assert AdaNormalHedge().weight(s, c) <= 0.52 * math.exp(s * s / (3.0 * c))
            assert Squint().weight(s, c) <= 0.52 * math.exp(s * s / (4.0 * c))
            # The exponential potential's shares 1 / n_rates are left out of its weights.
            assert Exponential().weight(s, c) / Exponential().n_rates <= 0.52 * math.exp(s * s / (2.0 * c))


@pytest.mark.parametrize("hypotheses", ["groups", "linear"])
@pytest.mark.parametrize("sought", ["mean", "quantile"])
def test_exponents_are_ordered_as_hoelder_says(sought: str, hypotheses: str) -> None:
    members, _ = CLASSES[hypotheses]
    forecaster, adversary = game(sought, hypotheses, "greedy", 800, seed=9)
    played = play(forecaster, adversary, 800)
    error: dict[float, float] = {r: forecaster.error(r) for r in (1.0, 1.5, 2.0, 3.0, 4.0)}
    for r, value in error.items():
        direct = swap_multicalibration_error(
            played.y, played.p, played.x, property=forecaster.property, hypotheses=members, r=r
        )
        assert value == pytest.approx(direct, rel=1e-10)
    assert 0.0 < error[1.0] <= math.sqrt(800 * error[2.0])
    for r, s in ((1.0, 1.5), (1.5, 2.0), (2.0, 3.0), (3.0, 4.0)):
        assert error[s] <= error[r] <= 800 ** (1.0 - r / s) * error[s] ** (r / s) * (1.0 + 1e-12)
    assert error[2.0] ** 2 <= error[1.0] * error[3.0] * (1.0 + 1e-12)


@pytest.mark.parametrize(("property", "most"), [(Mean(), 0.75), (Quantile(0.9), 0.5)], ids=["mean", "quantile"])
def test_the_constant_on_a_drifting_stream(property: Elicitable, most: float) -> None:
    n_rounds = 20_000
    stream = drifting(n_rounds, seed=1, n_groups=20, binary=isinstance(property, Mean))
    forecaster = Forecaster(property, Finite(20), horizon=n_rounds, seed=1)
    forecaster.run(stream.x, stream.y)
    assert forecaster.error() <= most * n_rounds ** (1.0 / 3.0)

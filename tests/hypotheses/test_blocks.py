"""Blocks: linear functions as one, unions, products; the one-step property, loops, and adversaries."""

import math
from typing import Any

import numpy as np
import pytest

import swapcal as sc
from swapcal.errors import InvalidInput
from swapcal.hypotheses.blocks import BlocksEvidence
from swapcal.potentials import AdaNormalHedge, Exponential, PNorm, Quadratic, Squint
from swapcal.protocols import Row
from swapcal.simulate.adversaries import Arena, Far, Greedy, Sweep, ball, play
from swapcal.typing import Float64Array


def dense(x: Float64Array) -> Row:
    return Row(np.arange(len(x)), x)


def potential(s: Any, c: float) -> Any:
    return np.exp(s * s / (3.0 * c)) + 1.0


@pytest.mark.parametrize("m", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("c", [0.5, 3.0, 40.0])
def test_one_step_for_every_direction(c: float, m: float) -> None:
    """At cosine 1 and -1 it is the step of one function; between them the left side is convex, the right one a line."""
    weight = AdaNormalHedge().weight
    for s in np.linspace(0.0, c, 12):
        u = np.linspace(-1.0, 1.0, 81)
        left = potential(np.sqrt(s * s + 2.0 * s * m * u + m * m), c + m)
        right = potential(s, c) + weight(float(s), c) * m * u + 3.0 * m / (c + 1.0)
        assert (left <= right + 1e-12).all()
        ends = potential(np.array([s - m, s + m]), c + m)
        assert left[[0, -1]] == pytest.approx(ends, rel=1e-12)


def taught(evidence: Any, X: Any, v: Any) -> Any:
    for x, each in zip(X, v, strict=True):
        evidence.record(0, dense(x), float(each))
    return evidence


@pytest.mark.parametrize("made", [AdaNormalHedge(), Exponential(n_rates=5), Squint()], ids=repr)
def test_against_loops_a_finite_class_and_turned_contexts(made: Any) -> None:
    rng = np.random.default_rng(1)
    X, v = rng.uniform(-0.5, 0.5, (60, 4)), rng.uniform(-1.0, 1.0, 60)
    x = rng.uniform(-0.5, 0.5, 4)
    singles = taught(BlocksEvidence(np.arange(4), made, 1), X, v)
    finite = taught(sc.Finite(4, potential=made).start(1), X, v)
    assert singles.phi(0, dense(x)) == pytest.approx(finite.phi(0, dense(x)), rel=1e-12)
    assert singles.level(0, dense(x)) == pytest.approx(finite.level(0, dense(x)), rel=1e-12)
    one = np.zeros(4, dtype=np.int64)
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    straight, turned = (taught(BlocksEvidence(one, made, 1), Z, v) for Z in (X, X @ turn))
    assert turned.phi(0, dense(x @ turn)) == pytest.approx(straight.phi(0, dense(x)), rel=1e-9)
    mixed = taught(BlocksEvidence(np.array([0, 1, 1, 1]), made, 1), X, v)
    expected = 0.0
    for part in ([0], [1, 2, 3]):
        S = sum(each[part] * e for each, e in zip(X, v, strict=True))
        c = sum(float(made.spread(np.array([np.linalg.norm(each[part]) * e]))[0]) for each, e in zip(X, v, strict=True))
        norm = float(np.linalg.norm(S))
        expected += made.weight(norm, c) * float(S @ x[part]) / norm
    assert mixed.phi(0, dense(x)) == pytest.approx(expected, rel=1e-9)
    again = BlocksEvidence(np.array([0, 1, 1, 1]), made, 1)
    again.restore({name: array.copy() for name, array in mixed.arrays().items()})
    assert again.phi(0, dense(x)) == mixed.phi(0, dense(x))


@pytest.mark.parametrize("strategy", [Greedy, Far, Sweep])
def test_adversaries_stay_below_the_guarantee(strategy: Any) -> None:
    for seed in (1, 2):
        arena = Arena(ball(3, seed=seed), seed=seed)
        forecaster = sc.Forecaster(sc.Mean(), sc.Linear(3), seed=seed)
        play(forecaster, strategy(arena, period=40) if strategy is Sweep else strategy(arena), 300)
        assert forecaster.error() <= forecaster.guarantee(0.05)
        assert not forecaster.guarantee(0.05).broken


def stream(n_rounds: int = 400) -> tuple[Float64Array, Float64Array, Float64Array]:
    rng = np.random.default_rng(5)
    X = rng.uniform(-0.7, 0.7, (n_rounds, 2))
    y = np.clip(0.5 + 0.4 * X[:, 0] + rng.normal(size=n_rounds) * 0.05, 0.0, 1.0)
    return X, y, np.full(n_rounds, 0.5)


def test_a_linear_class_trusts_a_good_hint_and_finds_a_bad_one() -> None:
    X, y, flat = stream(4000)
    right = np.clip(0.5 + 0.4 * X[:, 0], 0.0, 1.0)
    losses = {}
    for name, potential_of in (("block", AdaNormalHedge()), ("quadratic", Quadratic())):
        for hint_name, hint in (("right", right), ("flat", flat)):
            forecaster = sc.Forecaster(sc.Mean(), sc.Linear(2, potential=potential_of), seed=1, protect="nothing")
            forecasts = forecaster.run(X, y, hints=hint)
            losses[name, hint_name] = float(np.mean((forecasts - y)[1000:] ** 2))
            if name == "block" and hint_name == "right":
                assert np.mean(forecasts == right) > 0.1 or losses[name, hint_name] < 0.004
    assert losses["block", "right"] < losses["quadratic", "right"]
    assert losses["block", "flat"] < 0.5 * float(np.mean((y - 0.5) ** 2))


def test_union_is_the_worst_of_its_parts_by_value() -> None:
    X, y, _ = stream()
    for parts in ((sc.Finite(2), sc.Linear(2)), (sc.Linear(2), sc.Linear(2, radius=0.5))):
        both = parts[0] | parts[1]
        forecaster = sc.Forecaster(sc.Mean(), both, seed=1, levels=0)
        forecasts = forecaster.run(X, y)
        errors, total = [0.0, 0.0], 0.0
        for value in np.unique(forecasts):
            here = forecasts == value
            sums = [
                float(part.supremum(sum(_whole(part, x) * (value - e) for x, e in zip(X[here], y[here], strict=True))))
                for part in parts
            ]
            n = int(here.sum())
            errors = [one + s * s / n for one, s in zip(errors, sums, strict=True)]
            total += max(sums) ** 2 / n
        assert forecaster.error() == pytest.approx(total, rel=1e-9)
        assert [float(one) for one in forecaster.error().parts.values()] == pytest.approx(errors, rel=1e-9)
        assert forecaster.error() <= forecaster.guarantee(0.05)
    twice = sc.Forecaster(sc.Mean(), sc.Linear(2) | sc.Linear(2), seed=1, levels=0)
    twice.run(X, y)
    assert [*twice.error().parts.values()] == [float(twice.error())]


def _whole(part: Any, x: Float64Array) -> Float64Array:
    row = part.row(x)
    whole = np.zeros(part.n)
    whole[row.indices] = row.values
    return whole


def test_a_product_with_one_group_is_its_features() -> None:
    X, y, flat = stream(300)
    records = [{"a": float(a), "b": float(b)} for a, b in X]
    for alone, both, contexts in (
        (sc.Numeric(["a", "b"]), sc.Groups([], limit=1) * sc.Numeric(["a", "b"]), records),
        (sc.Numeric(["a", "b"]), sc.Trees(["a"], first=1000) * sc.Numeric(["a", "b"]), records),
    ):
        one, two = (sc.Forecaster(sc.Mean(), each, seed=1) for each in (alone, both))
        assert np.array_equal(one.run(contexts, y, flat), two.run(contexts, y, flat))
        assert one.error() == two.error() > 0.0


def test_products_and_names() -> None:
    product = sc.Groups(["c"], limit=2) * sc.Numeric(["a", "b"])
    assert product.n == 3 * 3
    assert product.names[:3] == ("all * all", "all * a", "all * b")
    union = sc.Finite(1, names=["all"]) | sc.Linear(1) | sc.Finite(1, names=["all"])
    assert len(set(union.names)) == 3
    pair = sc.Finite(2) * sc.Linear(2)
    x, z = np.array([1.0, -0.5]), np.array([1.0, -0.5]) / max(math.hypot(1.0, 0.5), 1.0)
    assert _whole(pair, x) == pytest.approx(np.kron(x, z))


def test_what_cannot_stand_together_is_refused() -> None:
    makes: list[Any] = [
        lambda: sc.Finite(2, potential=PNorm()) | sc.Finite(2),
        lambda: sc.Linear(2, potential=Quadratic()) | sc.Finite(2),
        lambda: sc.Finite(2, potential=Squint()) | sc.Finite(2),
        lambda: sc.Linear(2) * sc.Finite(2),
    ]
    for make in makes:
        with pytest.raises(InvalidInput):
            make()


@pytest.mark.parametrize("late", [0, 9])
def test_saved_late_and_by_hand_they_are_the_same(late: int) -> None:
    X, y, flat = stream(200)
    for made in (sc.Finite(2) | sc.Linear(2), sc.Finite(2) * sc.Linear(2)):
        forecaster, waiting = sc.Forecaster(sc.Mean(), made, seed=1, hint=sc.OnlineRegression()), []
        for t in range(200):
            waiting.append((forecaster.predict(X[t], flat[t]), y[t]))
            if len(waiting) > late:
                forecaster.update(*waiting.pop(0))
            if t == 100:
                forecaster = sc.Forecaster.from_bytes(forecaster.to_bytes())
        whole = sc.Forecaster(sc.Mean(), made, seed=1, hint=sc.OnlineRegression())
        if not late:
            whole.run(X, y, hints=flat)
            assert whole.error() == forecaster.error()
        assert forecaster.error() <= forecaster.guarantee(0.05)

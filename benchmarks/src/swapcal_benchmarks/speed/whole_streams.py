"""`run` beside a bare loop: how much more than the necessary memory traffic a round costs."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from swapcal import simulate
from swapcal.engine.pending import Chunk
from swapcal.engine.schedule import play_alone
from swapcal.forecaster import Forecaster
from swapcal.hints import OnlineRegression
from swapcal.hypotheses import Finite, Linear
from swapcal.potentials import Quadratic
from swapcal.properties import Mean
from swapcal.simulate import streams
from swapcal.typing import Float64Array
from swapcal_benchmarks.speed import timed_streams
from swapcal_benchmarks.speed.ratio import Side, compare
from swapcal_benchmarks.speed.speed_sizes import SpeedSizes
from swapcal_benchmarks.speed.target_row import TargetRow
from swapcal_benchmarks.speed.yardsticks import compiled

__all__ = ["measure"]

_BARE = "the bare loop"


def measure(sizes: SpeedSizes) -> list[TargetRow]:
    """Dense rows against the bare loops, sparse rows of a wide class against those of a narrow one."""
    quadratic = Linear(10, potential=Quadratic())
    rows = _dense("Linear(10), the quadratic potential", quadratic, 2.5, sizes)
    rows += _dense("Linear(10)", Linear(10), None, sizes) + _dense("Finite(20), dense", Finite(20), 2.5, sizes)
    return rows + _sparse(sizes) + _late(sizes)


def _late(sizes: SpeedSizes) -> list[TargetRow]:
    """Outcomes that are known later against the same outcomes at once."""
    T = sizes.rounds
    stream = simulate.miscalibrated(T, 1)
    X: Float64Array = np.concatenate([stream.x, np.zeros((T, 20 - stream.x.shape[1]))], axis=1)
    why = {
        "no hint": "a line written and read again, and Phi once more",
        "the model as hint": "besides: the shares, and the hint's place among the values once more",
        "learning": "besides: all experts once more, at the weights of now",
    }

    def played(name: str, delay: int | None) -> Side:
        def ready() -> Any:
            hint = OnlineRegression() if name == "learning" else None
            forecaster = Forecaster(Mean(), Finite(20), seed=1, hint=hint)
            known = None if delay is None else streams.fixed(T, delay)
            return lambda: forecaster.run(X, stream.y, None if name == "no hint" else stream.hint, known=known)

        return ready

    rows = []
    for name, note in why.items():
        for delay in (100, 5_000):
            ratio = compare(played(name, delay), played(name, None), sizes.repeats)
            what = f"Finite(20), {name}, outcomes known {delay:,} rows later"
            rows.append(ratio.row("run", what, "the same at once", 1.2, note=note))
    return rows


def _dense(name: str, hypotheses: Linear | Finite, target: float | None, sizes: SpeedSizes) -> list[TargetRow]:
    n, T = hypotheses.n, sizes.rounds
    X, y = timed_streams.dense(T, n)
    if isinstance(hypotheses, Finite):
        X = X * math.sqrt(n)  # values of functions fill [-1, 1]

    def ours() -> Any:
        forecaster = Forecaster(Mean(), hypotheses, horizon=T, seed=1)
        return lambda: forecaster.run(X, y)

    # The bare loops search the engine's own rows, as they are after this stream, in the order of the values.
    played = Forecaster(Mean(), hypotheses, horizon=T, seed=1)
    played.run(X, y)
    evidence: Any = played.state.evidence
    own = evidence.weights if isinstance(hypotheses, Finite) else evidence.sums
    values = played.state.values
    kept: Float64Array = np.ascontiguousarray(own[values.order[: values.n], :n])
    trail = trails(T, len(played.values))

    def bare(loop: Any, *more: Any) -> Side:
        def ready() -> Any:
            rows = kept.copy()
            return lambda: loop(X, rows, *more)

        return ready

    yardsticks = (
        (_BARE, bare(compiled.bare_loop), target),
        ("the same with rows known in advance", bare(compiled.bare_known, trail), None),
        ("and with sums in any order", bare(compiled.bare_known_any_order, trail), None),
    )
    return [compare(ours, side, sizes.repeats).row("run", name, against, asked) for against, side, asked in yardsticks]


def trails(n_rounds: int, n_rows: int, *, seed: int = 0) -> npt.NDArray[np.int32]:
    """Bisections with random outcomes: the two outer rows, then log2 N middle ones.

    Examples
    --------
    >>> trails(2, 9).shape, set(trails(2, 9)[:, 2].tolist())
    ((2, 5), {4})
    """
    rng = np.random.default_rng(seed)
    n_steps = max(math.ceil(math.log2(max(n_rows - 1, 1))), 0)
    trail = np.zeros((n_rounds, n_steps + 2), dtype=np.int32)
    left, right = np.zeros(n_rounds, dtype=np.int32), np.full(n_rounds, n_rows - 1, dtype=np.int32)
    trail[:, 1] = right
    for k in range(n_steps):
        middle = trail[:, k + 2] = (left + right) // 2
        moves_left = rng.random(n_rounds) < 0.5
        left, right = np.where(moves_left, left, middle), np.where(moves_left, middle, right)
    return trail


def _sparse(sizes: SpeedSizes) -> list[TargetRow]:
    T = sizes.rounds
    (wide, y), (narrow, y_narrow) = timed_streams.sparse(T, 10_000, 10), timed_streams.sparse(T, 100, 10)

    def whole(n: int, X: timed_streams.Compressed, labels: Float64Array) -> Side:
        def ready() -> Any:
            forecaster = Forecaster(Mean(), Finite(n), horizon=T, seed=1)
            return lambda: forecaster.run(X, labels)

        return ready

    def rounds_only(n: int, X: timed_streams.Compressed, labels: Float64Array) -> Side:
        rows = Finite(n).rows(X, T)
        out = np.empty(T)

        def ready() -> Any:
            forecaster = Forecaster(Mean(), Finite(n), horizon=T, seed=1)
            part = Chunk(rows, labels, None, None, out)
            return lambda: play_alone(forecaster._round, part)

        return ready

    what, against = "Finite(10,000), 10 entries active", "Finite(100), 10 entries active"
    both = compare(whole(10_000, wide, y), whole(100, narrow, y_narrow), sizes.repeats)
    rounds = compare(rounds_only(10_000, wide, y), rounds_only(100, narrow, y_narrow), sizes.repeats)
    return [
        both.row("run", what, against, 2.5),
        rounds.row("run", f"{what}, without reading the input", f"{against}, without it"),
    ]

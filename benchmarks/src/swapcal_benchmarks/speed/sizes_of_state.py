"""How many bytes a forecaster holds: a formula of its settings that `tests/benchmarks/test_state_size.py` confirms."""

from typing import Any, cast

import numpy as np

from swapcal.forecaster import Forecaster
from swapcal.hints import OnlineRegression
from swapcal.hints.regression import N_EXPERTS
from swapcal.hypotheses import Finite, Linear, Oracle
from swapcal.hypotheses.oracle import OracleEvidence
from swapcal.learners import GradientDescent, MultiplicativeWeights
from swapcal.potentials import Quadratic
from swapcal.properties import Mean
from swapcal_benchmarks.speed.speed_sizes import SpeedSizes
from swapcal_benchmarks.speed.target_row import TargetRow

__all__ = ["FILE_EXTRA", "FORMULAS", "array_bytes", "file_bound", "formula", "measure"]

FORMULAS = (
    (
        "`Finite`",
        "8 (C (6 m + 10) + 2 m + 1)",
        "m = n + levels: functions with the level sets of the hint, 10 by default",
    ),
    (
        "`Linear`",
        "8 (C (4 m + 3 b + 10) + 2 m + 2 b + 1)",
        "n: length of the context, m = n + levels, b = 1 + levels blocks; n numbers more without levels",
    ),
    ("`Linear`, `Quadratic()`", "8 (C (4 n + 10) + 2 n)", "levels do not join"),
    (
        "`Oracle`",
        "8 (C (7 l + 6 k + 13) + V k s + 5 l + 2 k + 1)",
        "l levels; k copies (1 if the learner is odd, else 2) of s numbers each for V values that were taught",
    ),
    (
        "`OnlineRegression`",
        "8 (16 N + 2 F (F - 1) + 4 f + 54)",
        "f extra features, N = n + f + 3 weights, F of them, 128 at the most, with covariances; K = 11 experts",
    ),
    ("waiting in `run`", "W (8 (14 + 2 w + f) + 2 K)", "W lines of w entries, 16 and 4 at first, doubled when needed"),
    ("shares", "16 (13 B + 481)", "B blocks of rounds, 512 by default"),
    ("always", "4 P + 616", "P: four bytes for each forecast that may wait, 1,024 at first, and 77 counters"),
)
"""Part, bytes, and what the letters mean; C is for how many values there is room."""

FILE_EXTRA = 32_768
"""Bytes that a state file may take beyond the arrays in it: header, labels that are looked at, names of arrays."""


def formula(forecaster: Forecaster) -> int:
    """Bytes of all arrays of a forecaster, by `FORMULAS`."""
    state, hypotheses, levels = forecaster.state, forecaster.hypotheses, forecaster.rules.levels
    C, n, m = state.values.capacity, hypotheses.n, hypotheses.n + levels
    if isinstance(hypotheses, Finite):
        numbers = C * (6 * m + 10) + 2 * m + 1
    elif isinstance(hypotheses, Oracle):
        k, evidence = len(hypotheses.signs), cast(OracleEvidence, state.evidence)
        taught = len(evidence.copies) * k * len(hypotheses.learner.start())
        numbers = C * (7 * levels + 6 * k + 13) + taught + 5 * levels + 2 * k + 1
    elif isinstance(getattr(hypotheses, "potential", None), Quadratic):
        numbers = C * (4 * n + 10) + 2 * n
    else:
        b = 1 + levels
        numbers = C * (4 * m + 3 * b + 10) + 2 * m + 2 * b + 1 + (0 if levels else n)
    experts = features = 0
    hint = forecaster.hint
    if isinstance(hint, OnlineRegression):
        experts, features = N_EXPERTS, hint.n_features
        weights = n + features + 3
        full = min(weights, hint.most_full)
        numbers += 16 * weights + 2 * full * (full - 1) + 4 * features + 54
    lines, width = (int(size) for size in state.waiting.indices.shape)
    waiting = lines * (8 * (14 + 2 * width + features) + 2 * experts)
    shares = 16 * (13 * forecaster.rules.blocks + 481)
    return 8 * numbers + waiting + shares + 4 * len(state.pending.flags) + 616


def array_bytes(item: Any) -> int:
    """Bytes of every array that can be reached from an object through its attributes; views count as their bases."""
    waiting: list[Any] = [item]
    arrays: dict[int, int] = {}
    seen: set[int] = set()
    while waiting:
        part = waiting.pop()
        if id(part) in seen or isinstance(part, type):
            continue
        seen.add(id(part))
        if isinstance(part, np.ndarray):
            while isinstance(part.base, np.ndarray):
                part = part.base
            arrays[id(part)] = part.nbytes
        elif isinstance(part, (list, tuple)):
            waiting += part
        elif isinstance(part, dict):
            waiting += part.values()
        else:
            waiting += getattr(part, "__dict__", {}).values()
            slots = [name for kind in type(part).__mro__ for name in getattr(kind, "__slots__", ())]
            waiting += [getattr(part, name) for name in slots if hasattr(part, name)]
    return sum(arrays.values())


def file_bound(forecaster: Forecaster) -> int:
    """The most bytes that `save` writes; files are compressed, and usually far smaller."""
    return formula(forecaster) + FILE_EXTRA


def measure(sizes: SpeedSizes) -> list[TargetRow]:
    """The formula beside the arrays that are there, for each kind of class."""
    rows = []
    cases: tuple[tuple[str, Any, Any], ...] = (
        ("Finite(20)", Finite(20), None),
        ("Finite(20), OnlineRegression()", Finite(20), OnlineRegression()),
        ("Linear(10)", Linear(10), None),
        ("Linear(10, potential=Quadratic())", Linear(10, potential=Quadratic()), None),
        ("Oracle(GradientDescent(10))", Oracle(GradientDescent(10)), None),
        ("Oracle(MultiplicativeWeights(20))", Oracle(MultiplicativeWeights(20)), None),
    )
    for name, hypotheses, hint in cases:
        forecaster = Forecaster(Mean(), hypotheses, hint=hint)
        rows.append(
            TargetRow(
                section="state",
                what=f"{name}, room for {forecaster.state.values.capacity} values",
                against=f"formula: {formula(forecaster):,} bytes",
                measured=array_bytes(forecaster),
                target=formula(forecaster),
                unit="bytes",
            )
        )
    return rows

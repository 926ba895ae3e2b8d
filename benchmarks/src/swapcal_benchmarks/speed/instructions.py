"""Instructions that a round takes, beside those that the repository remembers; and what float32 would gain."""

import json
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from swapcal_benchmarks.speed import driver
from swapcal_benchmarks.speed.speed_sizes import SpeedSizes
from swapcal_benchmarks.speed.target_row import TargetRow

__all__ = ["FILE", "KEPT", "count", "counted", "float32", "grown", "kept", "measure", "rows"]

FILE = "instructions.json"
KEPT = driver.SOURCES.parent / "docs" / FILE
"""The numbers in the repository."""

_TARGET = 1.02
"""A change that costs more instructions than this is a miss; smaller ones are what a compiler may do by itself."""

_EQUAL_BINS: dict[str, Any] = {
    "compiler": "c++ (Debian 12.2.0-14+deb12u1) 12.2.0",
    "vectors": "avx2",
    "instructions_per_round": {"finite": 3013.4, "linear": 1506.1, "sparse": 1999.2, "hint": 4680.0},
}
"""Counted with swapcal 0.1.0, whose grid was about T^(1/3) equal bins."""

_MOST = 1.5
"""What a grid that follows the forecasts may cost, over equal bins."""


def measure(sizes: SpeedSizes) -> list[TargetRow]:
    """Counts beside the kept ones; nothing is random, so that one run is enough."""
    why = driver.missing(counting=True)
    if why is not None:
        return [TargetRow(section="instructions", what="instructions of a round", note=why)]
    try:
        return [*rows(counted(), kept()), *grown(counted())]
    except (subprocess.CalledProcessError, RuntimeError) as error:
        return [TargetRow(section="instructions", what="instructions of a round", note=f"it failed: {error}")]


@cache
def counted() -> dict[str, Any]:
    """`count` of a driver made for it; once in a process."""
    with tempfile.TemporaryDirectory() as folder:
        return count(driver.Driver.built(Path(folder)))


def count(program: driver.Driver) -> dict[str, Any]:
    """Instructions of a round for every workload, with what they depend on."""
    return {
        "compiler": driver.compiler(),
        "vectors": program.play("linear", 1)[1],
        "instructions_per_round": {name: round(program.instructions(name), 1) for name in driver.WORKLOADS},
    }


def kept() -> dict[str, Any] | None:
    """What the repository remembers, if it is there."""
    return json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else None


def rows(found: dict[str, Any], before: dict[str, Any] | None) -> list[TargetRow]:
    """The change of every count; judged only where compiler and vector instructions are the same."""
    result = []
    same = before is not None and all(before[name] == found[name] for name in ("compiler", "vectors"))
    for name, what in driver.WORKLOADS.items():
        now = found["instructions_per_round"][name]
        then = None if before is None else before["instructions_per_round"].get(name)
        if then is None:
            against, note = "nothing kept yet", ""
        else:
            change = 100.0 * (now / then - 1.0)
            against = f"kept: {then:,.0f}"
            note = f"change {change:+.1f} %" + ("" if same else "; counted by another compiler or processor")
        result.append(
            TargetRow(
                section="instructions",
                what=what,
                against=against,
                measured=now,
                target=round(_TARGET * then, 1) if same and then is not None else None,
                unit="instructions",
                note=note,
            )
        )
    return result


def grown(found: dict[str, Any]) -> list[TargetRow]:
    """Every count over that of the engine with equal bins."""
    same = all(_EQUAL_BINS[name] == found[name] for name in ("compiler", "vectors"))
    return [
        TargetRow(
            section="instructions",
            what=f"{what}: over equal bins",
            against=f"then: {then:,.0f}",
            measured=found["instructions_per_round"][name] / then,
            target=_MOST if same else None,
            note="" if same else "counted by another compiler or processor",
        )
        for name, what in driver.WORKLOADS.items()
        for then in [_EQUAL_BINS["instructions_per_round"][name]]
    ]


def float32(sizes: SpeedSizes) -> list[TargetRow]:
    """Time with float64 state over time with float32 state, of the engine itself, in the driver."""
    why = driver.missing(counting=False)
    cases = ("Finite(20), dense", "Finite(10,000), 10 entries active")
    gains: tuple[float | None, float | None] = None, None
    if why is None:
        try:
            with tempfile.TemporaryDirectory() as folder:
                gains = driver.Driver.built(Path(folder)).single_precision_gain(2 if sizes.repeats > 3 else 1)
        except subprocess.CalledProcessError as error:
            why = f"it failed: {error}"
    return [
        TargetRow(
            section="float32", what=f"{what}: float64 state", against="float32 state", measured=gain, note=why or ""
        )
        for what, gain in zip(cases, gains, strict=True)
    ]

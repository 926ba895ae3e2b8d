"""Audits and monitors: every number that they give."""

from typing import Any

import numpy as np

import swapcal as sc
from plays import PROPERTIES, N, Played, Run, Runs, streams

T = 600


def rounds(property: str, seed: int = 3) -> tuple[Any, Any, Any, Any, Any]:
    """The property, outcomes, forecasts of few values, contexts and weights."""
    part = PROPERTIES[property]()
    stream = streams(part, T, seed)
    rng = np.random.default_rng(seed + 1)
    low, high = part.domain
    p = np.clip(np.round((stream["model"] - low) / (high - low) * 9.0) / 9.0 * (high - low) + low, low, high)
    return part, stream["y"], p, stream["x"], rng.choice([0.2, 0.5, 1.0], T)


def numbers_of(audit: Any, r: float = 2.0) -> dict[str, Any]:
    """Errors, the worst cells, everybody's cells, the witness."""
    witness, worst, curve = audit.witness(r=r), audit.worst(5, r=r), audit.reliability(r=r)
    bounds = audit.multicalibration_bounds(r)
    figures = {
        "rounds": audit.n_rounds,
        "values": audit.values,
        "calibration": audit.calibration(r),
        "multicalibration": [bounds.lower, bounds.upper],
        "swap": audit.swap_multicalibration(r),
        "contributions": audit.contributions(r),
        "worst": {name: list(column) for name, column in worst.to_dict().items()},
        "curve": {name: list(column) for name, column in curve.to_dict().items()},
        "witness": [witness.value, witness.name, witness.count],
    }
    if witness.direction is not None:
        figures["direction"] = witness.direction
    return figures


def audited(property: str, *, weights: bool = False, bins: Any = None, linear: bool = False, r: float = 2.0) -> Played:
    """Two thirds at once, the rest one by one into another audit, merged; bytes in between."""
    part, y, p, x, w = rounds(property)
    functions: Any = sc.Linear(N, radius=2.0) if linear else sc.Finite(N, names=[f"g{k}" for k in range(N)])
    first, second = (sc.Audit(part, functions, bins=bins) for _ in range(2))
    first.update_many(y[:400], p[:400], x[:400], weights=w[:400] if weights else None)
    for t in range(400, T):
        second.update(float(y[t]), float(p[t]), x[t], weight=float(w[t]) if weights else None)
    first = sc.Audit.from_bytes(first.to_bytes(), property=part, hypotheses=functions)
    total = first + sc.Audit.from_bytes(second.to_bytes(), property=part, hypotheses=functions)
    return Played(figures=numbers_of(total, r))


def functions() -> Played:
    """The three errors as functions."""
    _, y, p, x, _ = rounds("probability")
    errors = {
        "calibration": sc.calibration_error(y, p),
        "multicalibration": sc.multicalibration_error(y, p, x),
        "swap": sc.swap_multicalibration_error(y, p, x),
    }
    return Played(figures=errors)


def assumed_independent() -> Played:
    part, y, p, x, _ = rounds("probability")
    audit = sc.Audit(part, sc.Finite(N))
    audit.update_many(y, p, x)
    cells = audit.cells(0.9, rounds="independent")
    return Played(figures={name: list(column) for name, column in cells.to_dict().items()})


def alarms(property: str, promise: dict[str, Any], clusters: bool) -> Played:
    """A monitor: alarms, and the evidence at the end; saved in the middle."""
    part, y, p, x, _ = rounds(property)
    low, high = part.domain
    p = np.clip(p + 0.2 * (high - low), low, high)
    groups = sc.Finite(N, names=[f"g{k}" for k in range(N)])
    member = (np.abs(x) > 0).astype(float)
    monitor = sc.Monitor(part, groups, tolerance=0.01, **promise)
    found: list[Any] = []
    for start in range(0, T, 50):
        here = slice(start, start + 50)
        ids = (np.arange(T) // 3)[here].tolist() if clusters else None
        found += monitor.update_many(y[here], p[here], member[here], clusters=ids)
        monitor = sc.Monitor.from_bytes(monitor.to_bytes(), property=part, groups=groups)
    for t in range(20):
        found += monitor.update(float(y[t]), float(p[t]), member[t], clusters=f"last {t}" if clusters else None)
    found += monitor.close()
    return Played(figures={"alarms": [list(alarm) for alarm in found], "evidence": dict(monitor.evidence())})


def runs() -> Runs:
    """Name and play of every run."""
    yield Run("audit: mean", lambda: audited("mean"))
    yield Run("audit: mean of a range, weights", lambda: audited("mean of a range", weights=True))
    yield Run("audit: probability, weights, bins", lambda: audited("probability", weights=True, bins=7))
    yield Run("audit: probability, edges, r = 1", lambda: audited("probability", bins=[0.2, 0.4, 0.6], r=1.0))
    yield Run("audit: quantile", lambda: audited("quantile"))
    yield Run("audit: expectile, r = 3", lambda: audited("expectile", r=3.0))
    yield Run("audit: mean, Linear", lambda: audited("mean", linear=True))
    yield Run("audit: quantile, Linear, bins", lambda: audited("quantile", linear=True, bins=6))
    yield Run("audit: functions", functions)
    yield Run("audit: independent rounds", assumed_independent)
    yield Run("monitor: probability, ever", lambda: alarms("probability", {"alpha": 0.05}, False))
    yield Run("monitor: mean, every", lambda: alarms("mean", {"every": 400.0}, False))
    yield Run("monitor: quantile, ever, clusters", lambda: alarms("quantile", {"alpha": 0.2}, True))

"""What the audits say, in numbers for the page, for JSON and for the report alike."""

from typing import Annotated

import numpy as np
from msgspec import Meta, Struct

import swapcal as sc

__all__ = ["AuditReading", "GroupReading", "SideErrors", "read_audits"]

GROUPS_SHOWN = 1000


class SideErrors(Struct, frozen=True):
    """The errors of one side, as totals over its rounds; see `Audit`."""

    rounds: int
    calibration: float
    multicalibration: float
    swap_multicalibration: float
    groups_off: Annotated[
        int, Meta(description="Groups with a cell whose 95 % interval, for all cells together, is off 0.")
    ]
    witness: str | None


class GroupReading(Struct, frozen=True):
    """One group: mean identification before and after; positive says that forecasts are too high."""

    name: str
    rounds: int
    before: float | None
    after: float | None
    off_before: bool
    off_after: bool


class AuditReading(Struct, frozen=True):
    """The model's hints (`before`) and the forecasts (`after`), over the same groups and bins."""

    stream: str
    property: str
    before: SideErrors
    after: SideErrors
    groups: list[GroupReading]


def read_audits(stream: str, before: sc.Audit, after: sc.Audit) -> AuditReading:
    """Both audits as numbers; the groups that are furthest off before come first."""
    sides = _by_group(before), _by_group(after)
    names = dict.fromkeys([*sides[1], *sides[0]])
    groups = []
    for name in names:
        rounds_before, mean_before, off_before = sides[0].get(name, (0, None, False))
        rounds_after, mean_after, off_after = sides[1].get(name, (0, None, False))
        rounds = max(rounds_before, rounds_after)
        groups.append(GroupReading(name, rounds, mean_before, mean_after, off_before, off_after))
    groups.sort(key=lambda one: -one.rounds * (one.before or 0.0) ** 2)
    return AuditReading(
        stream=stream,
        property=repr(after.property),
        before=_errors(before, sides[0]),
        after=_errors(after, sides[1]),
        groups=groups[:GROUPS_SHOWN],
    )


_Sides = dict[str, tuple[int, float | None, bool]]


def _by_group(audit: sc.Audit) -> _Sides:
    """Rounds, mean identification, and whether a cell is off beyond chance, for each group."""
    if not audit.n_rounds:
        return {}
    cells = audit.cells()
    off = (cells.low > 0.0) | (cells.high < 0.0)
    found: _Sides = {}
    for function in np.unique(cells.function).tolist():
        here = np.flatnonzero(cells.function == function)
        weight = float(cells.weight[here].sum())
        mean = float((cells.mean[here] * cells.weight[here]).sum() / weight) if weight else None
        found[cells.name[int(here[0])]] = (int(cells.count[here].sum()), mean, bool(off[here].any()))
    return found


def _errors(audit: sc.Audit, groups: _Sides) -> SideErrors:
    some = audit.n_rounds > 0
    return SideErrors(
        rounds=audit.n_rounds,
        calibration=audit.calibration() if some else 0.0,
        multicalibration=audit.multicalibration() if some else 0.0,
        swap_multicalibration=audit.swap_multicalibration() if some else 0.0,
        groups_off=sum(off for _, _, off in groups.values()),
        witness=str(audit.witness()) if some else None,
    )

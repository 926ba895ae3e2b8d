"""What the audits say, in numbers for the page, for JSON and for the report alike."""

from typing import Annotated

import numpy as np
from msgspec import Meta, Struct

import swapcal as sc
from swapcal.audit.group_bias import group_bias, group_sums

__all__ = ["AuditReading", "GroupReading", "SideBias", "SideErrors", "read_audits"]

GROUPS_SHOWN = 1000
EVERYBODY = "all"


class SideErrors(Struct, frozen=True):
    """The errors of one side, as totals over its rounds; see `Audit`."""

    rounds: int
    calibration: float
    multicalibration: float
    swap_multicalibration: float
    groups_off: Annotated[int, Meta(description="Groups that are biased over all their rounds, beyond doubt.")]
    witness: str | None


class SideBias(Struct, frozen=True):
    """One group on one side: its mean identification, where positive says that forecasts are too high."""

    bias: float
    low: Annotated[float, Meta(description="Of an interval; those of all groups hold together with 97 %.")]
    high: float
    off: Annotated[bool, Meta(description="Biased beyond doubt.")]


class GroupReading(Struct, frozen=True):
    """One group: the hints (`before`) and the forecasts (`after`); "all" is everybody."""

    name: str
    rounds: int
    before: SideBias | None
    after: SideBias | None


class AuditReading(Struct, frozen=True):
    """The model's hints (`before`) and the forecasts (`after`), over the same groups and bins."""

    stream: str
    property: str
    before: SideErrors
    after: SideErrors
    groups: list[GroupReading]


def read_audits(stream: str, before: sc.Audit, after: sc.Audit) -> AuditReading:
    """Both audits as numbers; the groups for which there is most evidence against the model come first."""
    sides = [_groups(before), _groups(after)]
    ranked = {name: -evidence for name, (_, _, evidence) in reversed([*sides[1].items(), *sides[0].items()])}
    groups = []
    for name in sorted(ranked, key=lambda name: ranked[name])[:GROUPS_SHOWN]:
        model, ours = (side.get(name) for side in sides)
        rounds = max(one[0] for one in (model, ours) if one is not None)
        groups.append(GroupReading(name, rounds, model and model[1], ours and ours[1]))
    return AuditReading(
        stream=stream,
        property=repr(after.property),
        before=_errors(before, sides[0]),
        after=_errors(after, sides[1]),
        groups=groups,
    )


_Sides = dict[str, tuple[int, SideBias, float]]


def _groups(audit: sc.Audit) -> _Sides:
    """Rounds, bias and evidence of each group that has rounds, everybody included."""
    if not audit.n_rounds:
        return {}
    table, kind = audit.table(), audit.property
    forecasts, centers = None, table.value
    if isinstance(kind, sc.Quantile):
        forecasts, centers = (1.0 - kind.level) * table.active, np.full(len(table.value), 1.0 - kind.level)
    elif isinstance(kind, sc.Probability):
        forecasts = table.value[:, None] * table.active
    error = table.count @ (table.xv / table.count[:, None]) ** 2
    found = group_bias(group_sums(table, forecasts, centers), audit.function_names, error)
    return {
        found.name[k]: (
            int(found.rows[k]),
            SideBias(float(found.mean[k]), float(found.low[k]), float(found.high[k]), bool(found.off[k])),
            float(found.evidence[k]),
        )
        for k in np.flatnonzero(found.rows > 0).tolist()
    }


def _errors(audit: sc.Audit, groups: _Sides) -> SideErrors:
    some = audit.n_rounds > 0
    return SideErrors(
        rounds=audit.n_rounds,
        calibration=audit.calibration() if some else 0.0,
        multicalibration=audit.multicalibration() if some else 0.0,
        swap_multicalibration=audit.swap_multicalibration() if some else 0.0,
        groups_off=sum(bias.off for name, (_, bias, _) in groups.items() if name != EVERYBODY),
        witness=str(audit.witness()) if some else None,
    )

"""What a verdict decides: of one column of forecasts, or of a model's own and swapcal's beside it; no words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from swapcal.audits.scores import Paired
from swapcal.audits.summary import ColumnSummary

Name = Literal[
    "CALIBRATED", "BIASED", "TOO FEW ROWS", "RETRAIN", "IMPROVED", "NO CHANGE NEEDED", "NOT CORRECTED", "COMPARED"
]

# Why: of a bias, the most that can be named; of a correction, what speaks for or against it.
Reason = Literal[
    "",
    "all rows",  # all rows together are biased, or groups as well
    "groups",
    "ranges",  # ranges of forecasts are biased, and no group over all its rows
    "together",  # the global test alone says that there is bias: no group and no range can be named
    "few clusters",  # fewer clusters than an interval takes
    "loss",  # the loss is smaller
    "bias",  # there is less bias, or none
    "unchanged",  # no forecast was changed
    "cost",  # the loss has become larger
    "log loss",  # the log loss has become larger
    "bias left",  # more than half of the bias is left
]

# Forecasts that take less than this part off the loss of the best constant, however recalibrated, know nothing.
LITTLE = 0.01

# An AUC above it says that forecasts tell cases apart, also where events are too rare to show in the Brier score.
ORDERED = 0.55

# A run has taken bias away if at most this part of it is left; a log loss that rises by more than this is a price.
HEALED, DEARER = 0.5, 0.005

# Too few rows: a bias of this part of a row's typical error could be missed in all rows, or in half of the groups. For
# events of 50 % these are 5 and 10 points.
MISSED, MISSED_IN_GROUPS = 0.1, 0.2


@dataclass(frozen=True, slots=True)
class Findings:
    """What one column of forecasts shows.

    A group is biased where its interval leaves out 0: the one that is shown, which holds for all groups together.

    overall: whether all rows together are biased. groups: names of the biased groups besides these, the worst first;
    n_groups: of how many. ranges: biased ranges of forecasts, of all rows or of a group. together: whether the global
    test says that there is bias. detectable, detectable_in_groups: the smallest bias, in units of V, that shows in all
    rows, and in half of the groups (None without groups): half the widths of their intervals. few_rows: whether these
    are large. few_clusters: whether there are too few clusters to name a group. knows: whether the forecasts know more
    than a constant does.
    """

    overall: bool
    groups: tuple[str, ...]
    n_groups: int
    ranges: int
    together: bool
    detectable: float
    detectable_in_groups: float | None
    few_rows: bool
    few_clusters: bool = False
    knows: bool = True

    @property
    def biased(self) -> bool:
        """Whether there is bias at all."""
        return self.overall or bool(self.groups) or self.ranges > 0 or self.together

    @property
    def reason(self) -> Reason:
        """The most that can be named of the bias, or why none can."""
        if self.overall or self.groups:
            return "all rows" if self.overall else "groups"
        if self.ranges or self.together:
            return "ranges" if self.ranges else "together"
        return "few clusters" if self.few_clusters else ""


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict without its words.

    name: of an audit CALIBRATED, BIASED, TOO FEW ROWS or RETRAIN; of a run that has a model's forecasts to start from
    IMPROVED, NO CHANGE NEEDED, NOT CORRECTED or TOO FEW ROWS. reason: why. before, after: what the model's forecasts
    and swapcal's show. left: the part that is left of the bias of all rows and groups that were biased, None where none
    was. log_loss: the part by which the log loss has changed, None where there is none. changed: forecasts that differ
    from the model's, None where nobody counted.
    """

    name: Name
    reason: Reason = ""
    before: Findings | None = None
    after: Findings | None = None
    left: float | None = None
    log_loss: float | None = None
    changed: int | None = None

    @property
    def leading(self) -> Findings | None:
        """Of the model's own forecasts; of swapcal's where there is no model."""
        return self.after if self.before is None else self.before


def find(side: ColumnSummary) -> Findings:
    """What a column shows."""
    groups = side.groups
    half, used = (groups.high - groups.low) / 2, np.flatnonzero(groups.rows[1:] > 0) + 1
    typical = float(np.median(half[used])) if len(used) else None
    few = not half[0] <= MISSED * side.typical
    few = few or (typical is not None and not typical <= MISSED_IN_GROUPS * side.typical)
    return Findings(
        overall=bool(groups.biased[0]),
        groups=tuple(groups.name[j] for j in groups.ranked().tolist() if groups.biased[j]),
        n_groups=groups.n_used,
        ranges=len(side.ranges) + side.n_biased,
        together=side.together,
        detectable=float(half[0]),
        detectable_in_groups=typical,
        few_rows=few,
        few_clusters=groups.few_clusters,
        knows=not know_nothing(side),
    )


def united(findings: Sequence[Findings]) -> Findings:
    """What several columns show together, such as those of all classes; the first one says for what it is enough."""
    first = findings[0]
    return Findings(
        overall=any(one.overall for one in findings),
        groups=tuple(dict.fromkeys(name for one in findings for name in one.groups)),
        n_groups=first.n_groups,
        ranges=sum(one.ranges for one in findings),
        together=any(one.together for one in findings),
        detectable=first.detectable,
        detectable_in_groups=first.detectable_in_groups,
        few_rows=first.few_rows,
        few_clusters=first.few_clusters,
        knows=first.knows,
    )


def decide(
    before: Sequence[ColumnSummary],
    after: Sequence[ColumnSummary] = (),
    change: Paired | None = None,
    changed: int | None = None,
) -> Decision:
    """The verdict on a model's forecasts, on swapcal's, or on swapcal's beside the model's.

    Parameters
    ----------
    before, after : sequence of ColumnSummary
        The columns of either: one, or several where probabilities of classes are judged. Empty: there are none.
    change : Paired, optional
        The loss before and after, on the same rows.
    changed : int, optional
        How many forecasts differ from the model's.

    Notes
    -----
    Of one side alone: BIASED where anything is biased, RETRAIN where also the forecasts know little: with the best
    value in the place of each they would take less than 1 % off the loss of the best constant (and, for outcomes 0 or
    1, their AUC is below 0.55), or higher forecasts go with lower outcomes. Not biased: TOO FEW ROWS where a bias of a
    tenth of a row's typical error could be missed in all rows, or of a fifth in half of the groups; else CALIBRATED.

    Of both: a model that is not biased gets IMPROVED if the loss is smaller for sure, else TOO FEW ROWS or NO CHANGE
    NEEDED. One that is biased gets IMPROVED if the loss is smaller for sure, or if at most half of its bias is left at
    no cost, or nothing is biased any more at no cost; else NOT CORRECTED.
    """
    if not before or not after:
        found = united([find(side) for side in before or after])
        name: Name = "TOO FEW ROWS" if found.few_rows or found.few_clusters else "CALIBRATED"
        if found.biased:
            name = "BIASED" if found.knows else "RETRAIN"
        return Decision(name, found.reason, found if before else None, None if before else found)
    was, now = united([find(side) for side in before]), united([find(side) for side in after])
    rise, left = _log_loss(before[0], after[0]), bias_left(before, after)
    better, worse = change is not None and change.high < 0, change is not None and change.low > 0
    name, reason = _of_both(was, now, left, rise, better=better, worse=worse, changed=changed)
    return Decision(name, reason, was, now, left, rise, changed)


def _of_both(
    was: Findings,
    now: Findings,
    left: float | None,
    rise: float | None,
    *,
    better: bool,
    worse: bool,
    changed: int | None,
) -> tuple[Name, Reason]:
    if better:
        return "IMPROVED", "loss"
    if not was.biased:
        return ("TOO FEW ROWS" if was.few_rows or was.few_clusters else "NO CHANGE NEEDED"), was.reason
    if changed == 0:
        return "NOT CORRECTED", "unchanged"
    dear = rise is not None and rise > DEARER
    healed = left is None or left <= HEALED
    if (healed and not (worse or dear)) or not now.biased:
        return "IMPROVED", "bias"
    return "NOT CORRECTED", "cost" if worse else "log loss" if dear else "bias left"


def explained(side: ColumnSummary) -> float | None:
    """The part of the best constant's loss that ideally recalibrated forecasts take off; None if there is no loss."""
    if not side.constant_loss or side.ideal_loss is None:
        return None
    return 1.0 - side.ideal_loss / side.constant_loss


def know_nothing(side: ColumnSummary) -> bool:
    """Whether a constant would do about as well, or higher forecasts go with lower outcomes."""
    return idle(side) or (explained(side) is not None and side.slope is not None and side.slope < 0)


def idle(side: ColumnSummary) -> bool:
    """Whether a constant would do about as well, by the loss and by how cases are ordered."""
    known, auc = explained(side), None if side.scores is None else side.scores.auc
    return known is not None and known < LITTLE and (auc is None or auc < ORDERED)


def bias_left(before: Sequence[ColumnSummary], after: Sequence[ColumnSummary]) -> float | None:
    """The part that is left of the bias of all rows and groups that were biased; None where none was."""
    was = left = 0.0
    for one, other in zip(before, after, strict=True):
        now = dict(zip(other.groups.name, np.abs(np.nan_to_num(other.groups.mean)).tolist(), strict=True))
        for j in np.flatnonzero(one.groups.biased).tolist():
            was += float(one.groups.rows[j] * abs(one.groups.mean[j]))
            left += float(one.groups.rows[j]) * now.get(one.groups.name[j], 0.0)
    return left / was if was > 0 else None


def _log_loss(before: ColumnSummary, after: ColumnSummary) -> float | None:
    """The part by which the log loss has risen: the Brier score of rare events hardly moves."""
    if before.scores is None or after.scores is None or not before.scores.log_loss > 0.0:
        return None
    return after.scores.log_loss / before.scores.log_loss - 1.0

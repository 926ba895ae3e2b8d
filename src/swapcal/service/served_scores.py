"""How a stream does: the audits of hints and forecasts, losses, and counts; brought up to date many rounds at once."""

from typing import Any

import msgspec
import numpy as np

import swapcal as sc
from swapcal.roles import Row
from swapcal.service.group_watch import columns

__all__ = ["AUDIT_BINS", "StreamScores", "Totals"]

AUDIT_BINS = 33
"""Hints and forecasts are audited in the bins of the forecaster's grid; in so many, where that is refined on the way.

The values of its first grids are mid-points of these bins too, so that auditing does not move them.
"""
SETTLE_EVERY = 1000
RECENT = 1000
"""Losses on the live page are means over so many outcomes."""


class Totals(msgspec.Struct):
    """Counts and sums over the stream."""

    forecasts: int = 0
    outcomes: int = 0
    forgotten: int = 0
    compared: int = 0
    loss_before: float = 0.0
    loss_after: float = 0.0


class StreamScores:
    """Audits before and after, totals, and recent losses.

    Parameters
    ----------
    property, groups, bins
        Of the audits; `bins` of a forecaster that keeps to them, or None.
    """

    def __init__(self, property: Any, groups: sc.Groups, bins: int | None) -> None:
        self.property, self.groups, self.bins = property, groups, bins or AUDIT_BINS
        self.before, self.after, self.totals = self._audit(), self._audit(), Totals()
        self.recent_before, self.recent_after = _Recent(RECENT), _Recent(RECENT)
        self._waiting: list[tuple[float, float | None, float, Row]] = []

    def add(self, y: float, hint: float | None, forecast: float, row: Row) -> None:
        """An outcome, the model's hint, the forecast, and the case's groups."""
        self._waiting.append((y, hint, forecast, row))
        if len(self._waiting) >= SETTLE_EVERY:
            self.bring_up_to_date()
        totals = self.totals
        totals.outcomes += 1
        if hint is not None:
            before, after = float(self.property.loss(hint, y)), float(self.property.loss(forecast, y))
            totals.compared += 1
            totals.loss_before += before
            totals.loss_after += after
            self.recent_before.add(before)
            self.recent_after.add(after)

    def bring_up_to_date(self) -> None:
        """Add what waits to the audits: many rounds at once cost a tenth, and give the same bits."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            self.after.update_many(*columns([(y, p, row) for y, _, p, row in waiting]))
        hinted = [(y, hint, row) for y, hint, _, row in waiting if hint is not None]
        if hinted:
            self.before.update_many(*columns(hinted))

    def audits(self) -> tuple[sc.Audit, sc.Audit]:
        """Copies of the audits before and after, for other threads to read."""
        self.bring_up_to_date()
        return self._audit() + self.before, self._audit() + self.after

    def _audit(self) -> sc.Audit:
        return sc.Audit(self.property, self.groups, bins=self.bins)

    def to_dict(self) -> dict[str, Any]:
        """All but the recent losses, as plain data."""
        self.bring_up_to_date()
        return {"before": self.before.to_dict(), "after": self.after.to_dict(), "totals": self.totals}

    def restore(self, state: dict[str, Any]) -> None:
        """What `to_dict` wrote."""
        self.before = sc.Audit.from_dict(state["before"], self.property, self.groups)
        self.after = sc.Audit.from_dict(state["after"], self.property, self.groups)
        self.totals = msgspec.convert(state["totals"], Totals)


class _Recent:
    """The mean of the last so many numbers. For the eye only: it starts empty after a restart."""

    __slots__ = ("_at", "_kept", "_n")

    def __init__(self, n: int) -> None:
        self._kept, self._at, self._n = np.zeros(n), 0, 0

    def add(self, number: float) -> None:
        """One more."""
        self._kept[self._at] = number
        self._at = (self._at + 1) % len(self._kept)
        self._n = min(self._n + 1, len(self._kept))

    def mean(self) -> float | None:
        """Their mean, or None without any."""
        return float(self._kept[: self._n].mean()) if self._n else None

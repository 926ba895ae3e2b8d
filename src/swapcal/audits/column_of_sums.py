"""A column of forecasts from the sums of its audit alone, without its rows: for audits that were added up."""

import numpy as np

from swapcal.audits.audit import Audit
from swapcal.audits.column import Column
from swapcal.audits.histograms import MOST_CURVES, OutcomeBins
from swapcal.audits.scores import ScoreSums, fine_edges
from swapcal.audits.sums import SumTable
from swapcal.errors import InvalidInput
from swapcal.typing import Float64Array

_SMALL = 1e-9


def column_of_sums(audit: Audit, *, label: str, shown: Float64Array) -> Column:
    """What the rows would have given, as far as V tells their outcomes: V = (p - y) / width, at a p that is known.

    Parameters
    ----------
    audit : Audit
        Of a mean or a probability, over groups of 0 and 1, each row counted once; each forecast by itself, or rounded
        to one of `bins` mid-points, at which it is then judged.
    label : str
        Whose forecasts they are.
    shown : array
        Edges of the bins of the pictures.

    Returns
    -------
    ColumnAudit
        For `summarize`: without a timeline, and without a sample of rows, so that chance is drawn for each group by
        itself, which gives too much where groups overlap.
    """
    target, table = audit.property, audit.table()
    if target.outcome(target.low, 0.0) is None:
        raise InvalidInput(
            f"a verdict needs the loss, which sums of V do not tell for {target!r}; they do for a mean and a "
            "probability. The audit's own errors, cells and witness are there for any property"
        )
    if isinstance(audit.bins, np.ndarray):
        raise InvalidInput(
            "between edges of bins forecasts differ, and their sums do not tell the outcomes: give bins= a number"
        )
    if not np.array_equal(table.count, table.rounds) or not np.array_equal(table.active, table.weight):
        raise InvalidInput("a verdict from sums needs groups of 0 and 1 and rows that count once each; these differ")
    width = target.high - target.low
    p, n, v, vv = table.value, table.count, width * table.v, width * width * table.vv
    ones, squares = n * p - v, n * p * p - 2.0 * p * v + vv
    column = Column(audit, label=label, shown=shown, fine=None)
    column._totals[:] = [n.sum(), vv.sum(), table.vv.sum(), ones.sum(), squares.sum(), 0.0]
    # Within [0, 1], y^2 is below y unless y is 0 or 1.
    events = target.domain == (0.0, 1.0) and abs(float(ones.sum() - squares.sum())) <= _SMALL * max(float(n.sum()), 1.0)
    column._forecasts, column._binary = None, events
    if events:
        _count_events(column, table, np.clip(np.round(ones), 0.0, n))
    else:
        column.histograms.settle(np.array([target.low, target.high]))
        column.histograms.by_slot = np.zeros((int(table.slot.max(initial=-1)) + 1, 2))
        column.histograms.forecasts += np.bincount(column.histograms.bins(p), n, len(shown) - 1)
    return column


def _count_events(column: Column, table: SumTable, ones: Float64Array) -> None:
    """Outcomes 0 and 1 of each place and each group, which the sums tell exactly."""
    p, n = table.value, table.count
    bins, n_bins = column.histograms.bins(p), len(column.histograms.forecasts)
    outcomes = OutcomeBins(np.array([0.0, 1.0]), 0.0, 1.0)
    outcomes.add(np.array([0.0, 1.0]), np.array([float((n - ones).sum()), float(ones.sum())]))
    by_slot = np.zeros((int(table.slot.max(initial=-1)) + 1, 2))
    by_slot[table.slot] = np.stack([n - ones, ones], axis=1)
    n_groups = table.xv.shape[1]
    in_cells = np.clip(np.round(p[:, None] * table.active - table.xv), 0.0, table.active)
    members = table.active.sum(axis=0)
    followed = np.sort(np.argsort(-members, kind="stable")[:MOST_CURVES])
    tracks = np.full(n_groups, -1.0)
    tracks[followed] = np.arange(len(followed))
    by_group = np.zeros((n_bins, len(followed), 2))
    np.add.at(by_group, bins, np.stack([table.active - in_cells, in_cells], axis=2)[:, followed])
    arrays = {f"outcomes.{name}": array for name, array in outcomes.arrays().items()}
    arrays |= {"by_slot": by_slot, "by_group": by_group, "tracks": tracks, "members": members}
    column.histograms.restore({**arrays, "forecasts": np.bincount(bins, n, n_bins).astype(np.float64)})
    scores = ScoreSums(fine_edges(np.repeat(p, 2)))
    twice, labels = np.repeat(p, 2), np.tile([0.0, 1.0], len(p))
    scores.add(labels, twice, np.stack([n - ones, ones], axis=1).reshape(-1))
    column.scores = scores

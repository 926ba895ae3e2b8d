"""What is asked of late outcomes, beside what was measured."""

from collections.abc import Mapping, Sequence

import numpy as np

from swapcal_benchmarks.late.late_delays import REAL
from swapcal_benchmarks.late.late_rivals import REFIT
from swapcal_benchmarks.late.late_rows import OURS, LateRow
from swapcal_benchmarks.late.late_simulations import SHARP, WEEKLY_NARROW, WEEKLY_RIGHT
from swapcal_benchmarks.late.late_stream import MEAN
from swapcal_benchmarks.report import Target

__all__ = ["late_targets"]

_SLOWER = 1.2


def late_targets(rows: Sequence[LateRow], ratios: Mapping[str, float]) -> list[Target]:
    """Each target whose rows are there; simulations are judged on the reported half, files on all of them."""
    files = [row for row in rows if row.recorded]
    simulated = [row for row in rows if not row.recorded and row.reported]
    weekly = [row for row in simulated if row.stream.startswith("weekly")]
    right = [row for row in simulated if row.right and row not in weekly and not row.stream.startswith(SHARP)]
    targets = [
        *_never_behind(files),
        *_as_good_as_refit([row for row in files if row.stream == "no_shows" and row.delay == REAL]),
        *_losses("a right model, independent delays", [row for row in right if not row.depends], 0.02, 0.10),
        *_losses("a right model, delays dependent on the outcome", [row for row in right if row.depends], 0.15, 0.40),
    ]
    sharp = [row for row in simulated if row.stream.startswith(SHARP)]
    targets += _losses("right and sharp at once, mean", [row for row in sharp if row.kind == MEAN], None, 0.2)
    targets += _losses("right and sharp at once, quantile", [row for row in sharp if row.kind != MEAN], None, 0.3)
    targets += _losses("turning", [row for row in simulated if row.stream.startswith("turning")], None, 1.4)
    targets += _losses(WEEKLY_RIGHT, [row for row in weekly if row.stream.startswith(WEEKLY_RIGHT)], 0.3, 1.6)
    targets += _narrow([row for row in weekly if row.stream.startswith(f"{WEEKLY_NARROW}, 0.95")])
    targets += _channels([row for row in files if row.stream == "searches, channel unseen"])
    targets += [
        Target(f"`run(known=)`, {name}: at most {_SLOWER} times the time at once", f"{ratio:.2f}", ratio <= _SLOWER)
        for name, ratio in ratios.items()
    ]
    return targets


def _never_behind(rows: Sequence[LateRow]) -> list[Target]:
    behind = tuple(row.label for row in rows if row.pairs[REFIT].behind)
    asked = "files: no row behind the refit beyond two standard errors"
    return [Target(asked, f"{len(behind)} of {len(rows)}", not behind, behind)] if rows else []


def _as_good_as_refit(rows: Sequence[LateRow]) -> list[Target]:
    return [
        Target(
            "real delays of no-shows: at least the refit's gain",
            f"{row.loss():+.2f} %, refit {row.loss(REFIT):+.2f} %",
            row.loss() <= row.loss(REFIT),
        )
        for row in rows
    ]


def _losses(what: str, rows: Sequence[LateRow], mean: float | None, worst: float) -> list[Target]:
    """Loss above the model's in percent, its mean and its largest."""
    if not rows:
        return []
    found = [row.loss() for row in rows]
    low = "" if mean is None else f"mean at most {mean:+.2f} %, "
    met = max(found) <= worst and (mean is None or float(np.mean(found)) <= mean)
    measured = f"mean {np.mean(found):+.2f} %, worst {max(found):+.2f} %"
    missed = tuple(row.label for row in rows if row.loss() > worst)
    return [Target(f"{what}: {low}worst {worst:+.2f} %", measured, met, missed)]


def _narrow(rows: Sequence[LateRow]) -> list[Target]:
    scores = [score for row in rows if (score := row.scores[OURS]) is not None]
    if not scores:
        return []
    loss = float(np.mean([score.loss for score in scores]))
    coverage = float(np.mean([score.late_coverage or 0.0 for score in scores]))
    asked = f"{WEEKLY_NARROW}, 0.95: mean at most -5 %, coverage at least 0.90 in the last third"
    return [Target(asked, f"{loss:+.2f} %, {coverage:.3f}", loss <= -5.0 and coverage >= 0.9)]


def _channels(rows: Sequence[LateRow]) -> list[Target]:
    biases = [score.worst_bias for row in rows if (score := row.scores[OURS]) and score.worst_bias is not None]
    asked = "searches, channel unseen: bias of the worst channel of at least 1,000 rows at most 0.015"
    return [Target(asked, f"{min(biases):.3f} to {max(biases):.3f}", max(biases) <= 0.015)] if biases else []

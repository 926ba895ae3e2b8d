"""Everything that was measured, for other programs: JSON with the reasons, CSV with a line for each run."""

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from swapcal_benchmarks.rivals.match import Result
from swapcal_benchmarks.rivals.scores import Scores
from swapcal_benchmarks.rivals.standings import Summary

__all__ = ["to_csv", "to_data"]

_KEYS = ("board", "stream", "method", "horizon", "seed", "groups")
_SCORES = tuple(Scores.__dataclass_fields__)


def to_data(summary: Summary, results: Sequence[Result]) -> dict[str, Any]:
    """Cards, exponents, refusals with their reasons, and all runs."""
    boards: dict[str, Any] = {}
    for board in summary.plan.boards:
        streams = board.streams
        boards[board.name] = {
            "title": board.title,
            "property": repr(board.property),
            "streams": list(streams),
            "methods": [
                {
                    "method": row.contestant.name,
                    "uses_hint": row.uses_hint,
                    "horizon": row.horizon or None,
                    "refused": row.refused,
                    "smcal": {each: row.at(each, "smcal") for each in streams},
                    "exponents": {
                        name: None if (fit := row.exponent(_played(row.cells, streams), name)) is None else list(fit)
                        for name in ("smcal", "mcal", "cal", "mcal_1", "largest")
                    },
                }
                for row in summary.rows[board.name]
            ],
        }
    plan = summary.plan
    return {
        "horizons": list(plan.horizons),
        "slow": plan.slow,
        "cards": {each.name: asdict(each.card) for each in plan.contestants},
        "refused": [
            {"board": board, "method": method, "stream": stream or None, "reason": why}
            for (board, method, stream), why in sorted(plan.refusals.items())
        ],
        "failed": [{**each["key"], "reason": each["failed"]} for each in summary.failures],
        "boards": boards,
        "runs": [{**each["key"], **(each["scores"] or {}), "notes": each["notes"]} for each in results],
    }


def _played(cells: dict[tuple[str, int], Any], streams: Sequence[str]) -> list[str]:
    met = {stream for stream, _ in cells}
    return [each for each in streams if each in met]


def to_csv(results: Sequence[Result]) -> str:
    """A header and one line for each run that has scores; empty where a score does not apply."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([*_KEYS, *_SCORES])
    for each in results:
        if each["scores"] is not None:
            key, scores = each["key"], each["scores"]
            cells = [*(key[name] for name in _KEYS), *(scores[name] for name in _SCORES)]
            writer.writerow(["" if cell is None else cell for cell in cells])
    return buffer.getvalue()

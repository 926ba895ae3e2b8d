"""Who is drawn in color: ours, the paper's, the limit, and the best of the others."""

from dataclasses import dataclass

from swapcal_benchmarks.rivals.duels import ADVERSARIES
from swapcal_benchmarks.rivals.standings import Standing, Summary, geometric

__all__ = ["GRAY", "Style", "featured"]

# Okabe and Ito's colors, which color-blind readers can tell apart; markers differ too.
_FIXED = {
    "swapcal": ("#0072B2", "o"),
    "swapcal + model": ("#56B4E9", "s"),
    "swapcal + regression": ("#009E73", "^"),
    "Algorithm 1": ("#D55E00", "D"),
    "Algorithm 2": ("#8C3B00", "d"),
    "clairvoyant": ("#000000", "*"),
    "raw model": ("#7f6a00", "X"),
}
_OTHERS = (("#CC79A7", "P"), ("#E69F00", "v"))
GRAY = "#b5b5b5"


@dataclass(frozen=True, slots=True)
class Style:
    """Color and marker."""

    color: str
    marker: str


def featured(summary: Summary, board: str) -> dict[str, Style]:
    """Styles by method: the fixed ones that take part, the best other, and the best other on recorded streams."""
    rows: list[Standing] = [row for row in summary.rows[board] if row.refused is None]
    names = [row.contestant.name for row in rows]
    others = [row for row in rows if row.contestant.name not in _FIXED]
    calm = [stream for stream in summary.streams(board) if stream not in ADVERSARIES]
    scored = [
        (score, row.contestant.name) for row in others if (score := row.over(calm, "smcal", geometric)) is not None
    ]
    best = list(dict.fromkeys([row.contestant.name for row in others[:1]] + [name for _, name in sorted(scored)]))
    styles = {name: Style(*_FIXED[name]) for name in names if name in _FIXED}
    return styles | {name: Style(*look) for name, look in zip(best, _OTHERS, strict=False)}

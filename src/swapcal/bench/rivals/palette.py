"""Who is drawn in color: ours, the paper's, the limit, and the best of the others."""

from dataclasses import dataclass

from swapcal.bench.rivals.summary import Row, Summary

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
    """Styles by method: the fixed ones that take part, and the two best of the others by SMCal."""
    rows: list[Row] = [row for row in summary.rows[board] if row.refused is None]
    names = [row.contestant.name for row in rows]
    best = [name for name in names if name not in _FIXED][: len(_OTHERS)]
    styles = {name: Style(*_FIXED[name]) for name in names if name in _FIXED}
    return styles | {name: Style(*look) for name, look in zip(best, _OTHERS, strict=False)}

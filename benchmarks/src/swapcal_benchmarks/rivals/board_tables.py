"""Tables as lists of strings: what the terminal, the page and the tests show."""

import numpy as np

from swapcal_benchmarks.exponents import ConfidenceInterval
from swapcal_benchmarks.report import Table, table_number
from swapcal_benchmarks.rivals.standings import Standing, Summary, geometric

__all__ = ["cards_table", "claims_table", "reasons", "scores_table", "streams_table"]

_ERRORS = {"smcal": "SMCal_2", "mcal": "MCal_2", "mcal_1": "MCal_1", "cal": "Cal_2", "largest": "largest |sum|"}


def streams_table(summary: Summary, board: str) -> Table:
    """SMCal_2 on each stream, at the largest horizon; refused methods have dashes."""
    streams = summary.streams(board)
    rows = [
        (_name(row, summary), *(table_number(row.at(each, "smcal")) for each in streams)) for row in summary.rows[board]
    ]
    top = summary.plan.horizons[-1]
    return Table(
        f"{_title(summary, board)}: SMCal_2 after {top:,} rounds",
        ("method", *(_short(each) for each in streams)),
        tuple(rows),
        "Lower is better; means over seeds." + _slow_note(summary),
    )


def scores_table(summary: Summary, board: str) -> Table:
    """All scores, over all streams."""
    streams = summary.streams(board)
    rows = [
        (
            _name(row, summary),
            table_number(row.over(streams, "smcal", geometric)),
            table_number(row.over(streams, "mcal", geometric)),
            table_number(row.over(streams, "cal", geometric)),
            _digits(row.over(streams, "worst", _mean)),
            _digits(row.over(streams, "loss", _mean)),
            _digits(row.over(streams, "excess", _mean)),
            table_number(row.over(streams, "microseconds", _median)),
            _bytes(row.over(streams, "state_bytes", max)),
        )
        for row in summary.rows[board]
    ]
    gap = "gap" if board == "quantile" else "bias"
    return Table(
        f"{_title(summary, board)}: all scores",
        ("method", "SMCal", "MCal", "Cal", gap, "loss", "excess", "us", "state"),
        tuple(rows),
        "SMCal, MCal, Cal (r = 2): geometric means over the streams; the clairvoyant's over those with a truth.\n"
        f"{gap}: worst group with 50 cases or more. excess: loss above the truth's, where there is one.\n"
        "us: processor time a round.",
    )


def claims_table(summary: Summary, board: str) -> Table:
    """What is claimed of T, of which error, and what was measured of that error and of SMCal_2."""
    streams = summary.streams(board)
    rows = []
    for row in summary.rows[board]:
        card = row.contestant.card
        if row.refused is not None:
            continue
        claimed = row.claimed_score()
        mine = None if claimed is None else row.exponent(_played(row, streams), claimed)
        rows.append(
            (
                _name(row, summary),
                "-" if card.exponent is None else f"{card.exponent:.2f}",
                "-" if card.exponent is None else _ERRORS.get(claimed or "", "another error"),
                _interval(mine),
                "altered" if row.contestant.altered and mine is not None else verdict(mine, card.exponent),
                _interval(row.exponent(_played(row, streams), "smcal")),
            )
        )
    return Table(
        f"{_title(summary, board)}: exponents of T",
        ("method", "claimed", "of", "measured", "agrees", "SMCal_2"),
        tuple(rows),
        "Slopes of the mean over all streams of the board, with 95 % intervals over seeds. Claims are upper bounds, "
        "up to constants and logarithms. altered: speaks mid-points here, to which its claim does not apply.",
    )


def cards_table(summary: Summary) -> Table:
    """What each method declares, in short, and whether it was seen to use hints; the page has the whole cards."""
    rows = []
    for each in summary.plan.contestants:
        card = each.card
        rows.append(
            (
                each.name,
                ", ".join(card.properties),
                ", ".join(card.classes),
                hint_word(summary, each.name),
                "-" if card.exponent is None else f"{card.exponent:.2f}",
                "partly" if card.reconstructed else "no",
                card.cost,
            )
        )
    header = ("method", "for", "classes", "hint", "claims", "rebuilt", "cost")
    return Table("What each method declares", header, tuple(rows), "claims: exponent of T, of its own error.")


def hint_word(summary: Summary, method: str) -> str:
    """Whether a method was seen to use hints, in a word."""
    given = next(each.hint for each in summary.plan.contestants if each.name == method)
    uses = any(seen.uses_hint for (_, name), seen in summary.plan.probes.items() if name == method)
    return {"truth": "truth", "none": "no"}.get(given, "yes" if uses else "no")


def reasons(summary: Summary, board: str) -> list[str]:
    """Why methods have dashes."""
    return [f"{row.contestant.name}: {row.refused}" for row in summary.rows[board] if row.refused is not None]


def verdict(measured: ConfidenceInterval | None, claimed: float | None) -> str:
    """Whether the interval leaves room for the claim, which is an upper bound."""
    if measured is None or claimed is None:
        return "-"
    if measured.value <= claimed:
        return "yes"
    return "within noise" if measured.low <= claimed else "above"


def _played(row: Standing, streams: tuple[str, ...]) -> list[str]:
    return [each for each in streams if (each, row.horizon) in row.cells]


def _title(summary: Summary, board: str) -> str:
    return next(each.title for each in summary.plan.boards if each.name == board)


def _name(row: Standing, summary: Summary) -> str:
    return row.contestant.name + ("*" if row.contestant.name in summary.plan.slow else "")


def _slow_note(summary: Summary) -> str:
    return " * slow, so at a smaller horizon." if summary.plan.slow else ""


_SHORT = {
    "drifting": "drift",
    "interacting": "pairs",
    "overconfident": "over",
    "group-noise": "groups",
    "heavy-tailed": "heavy",
    "targeted": "target",
    "anti-hint": "anti",
}


def _short(stream: str) -> str:
    return _SHORT.get(stream, stream)[:12]


def _interval(interval: ConfidenceInterval | None) -> str:
    return "-" if interval is None else f"{interval.value:.2f} ±{0.5 * (interval.high - interval.low):.2f}"


def _digits(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _bytes(value: float | None) -> str:
    if value is None:
        return "-"
    return (
        f"{value:.0f} B" if value < 1000.0 else f"{value / 1000.0:.3g} kB" if value < 1e6 else f"{value / 1e6:.3g} MB"
    )


def _mean(values: list[float]) -> float:
    return float(np.mean(values))


def _median(values: list[float]) -> float:
    return float(np.median(values))

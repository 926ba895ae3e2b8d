"""What the numbers say, in sentences: where this package loses, and what one would not have guessed."""

from collections.abc import Iterable

from swapcal_benchmarks.report import table_number
from swapcal_benchmarks.rivals.board_tables import verdict
from swapcal_benchmarks.rivals.duels import ADVERSARIES
from swapcal_benchmarks.rivals.standings import Standing, Summary, geometric

__all__ = ["losses", "surprises"]


def losses(summary: Summary) -> list[str]:
    """Every comparison in which somebody else is ahead of all of our entries, board by board."""
    found = []
    for board in summary.plan.boards:
        rows = _players(summary, board.name)
        ours, others = [r for r in rows if r.contestant.ours], [r for r in rows if not r.contestant.ours]
        if not ours or not others:
            continue
        found += _behind(board.title, "SMCal over all streams", ours, others, board.streams, "smcal")
        found.append(f"{board.title}: somebody else has a lower SMCal than {_entries(ours, others, board.streams)}.")
        behind = []
        for stream in board.streams:
            mine, theirs = _best(ours, [stream], "smcal"), _best(others, [stream], "smcal")
            if mine is not None and theirs is not None and theirs[0] < mine[0]:
                behind.append(f"{stream} ({theirs[1]} {table_number(theirs[0])}, ours {table_number(mine[0])})")
        if behind:
            found.append(
                f"{board.title}: lower SMCal than all our entries on {len(behind)} of {len(board.streams)} streams: "
                f"{'; '.join(behind)}."
            )
        for name, words in (("excess", "loss above the truth's"), ("worst", "bias of the worst group")):
            found += _behind(board.title, words, ours, others, board.streams, name)
        fast = [r.contestant.name for r in others if _less(r, ours, board.streams, "microseconds")]
        if fast:
            found.append(f"{board.title}: faster a round than our fastest entry: {', '.join(fast)}.")
        small = [r.contestant.name for r in others if _less(r, ours, board.streams, "state_bytes")]
        if small:
            found.append(
                f"{board.title}: {len(small)} of {len(others)} other methods need less memory than our smallest."
            )
        found += [
            f"{board.title}: the error of {row.contestant.name} grows faster than it claims at these T, "
            f"with exponent {slope.value:.2f} instead of 0.33."
            for row in ours
            if (slope := row.exponent(_met(row, board.streams), "smcal")) is not None
            and verdict(slope, row.contestant.card.exponent) == "above"
        ]
    return found


def _entries(ours: list[Standing], others: list[Standing], streams: tuple[str, ...]) -> str:
    """Entry by entry, as the best of three on each stream is nothing that one can use."""
    counts = []
    for row in ours:
        played = [s for s in streams if row.at(s, "smcal") is not None]
        behind = [s for s in played if (best := _best(others, [s], "smcal")) and best[0] < (row.at(s, "smcal") or 0.0)]
        counts.append(f"{row.contestant.name} on {len(behind)} of {len(played)} streams")
    return ", than ".join(counts)


def surprises(summary: Summary) -> list[str]:
    """Claims that do not show, order that turns around under attack, bounds that do not pay, a limit that is none."""
    found = []
    for board in summary.plan.boards:
        rows = _players(summary, board.name)
        found += _claims(board.title, rows, board.streams)
        found += _turned(board.title, rows, board.streams)
        found += _useless(board.title, rows, board.streams)
        limit = next((r for r in summary.rows[board.name] if r.contestant.hint == "truth" and r.cells), None)
        if limit is not None:
            beaten = []
            for stream in board.streams:
                best, truth = _best(rows, [stream], "smcal"), limit.at(stream, "smcal")
                if best is not None and truth is not None and best[0] < truth:
                    beaten.append(f"{stream} ({best[1]} {table_number(best[0])}, truth {table_number(truth)})")
            if beaten:
                found.append(
                    f"{board.title}: lower SMCal than the clairvoyant, who rounds the truth, on {', '.join(beaten)}."
                )
    return found


def _claims(title: str, rows: list[Standing], streams: tuple[str, ...]) -> list[str]:
    found = []
    for row in rows:
        name, claim = row.claimed_score(), row.contestant.card.exponent
        slope = None if name is None else row.exponent(_met(row, streams), name)
        tested = not (row.contestant.ours or row.contestant.altered)
        if not tested or slope is None or claim is None or verdict(slope, claim) != "above":
            continue
        found.append(
            f"{title}: {row.contestant.name} claims the exponent {claim:.2f} for {row.contestant.card.error}; "
            f"measured at these T: {slope.value:.2f}, from {slope.low:.2f} to {slope.high:.2f}."
        )
    return found


def _turned(title: str, rows: list[Standing], streams: tuple[str, ...]) -> list[str]:
    """The method that falls most places from recorded streams to adversaries."""
    calm, hostile = [s for s in streams if s not in ADVERSARIES], [s for s in streams if s in ADVERSARIES]
    full = [r for r in rows if all(r.at(s, "smcal") is not None for s in streams)]
    if not calm or not hostile or len(full) < 4:
        return []
    first = sorted(full, key=lambda r: r.over(calm, "smcal", geometric) or 0.0)
    second = sorted(full, key=lambda r: r.over(hostile, "smcal", geometric) or 0.0)
    falls = {row.contestant.name: second.index(row) - first.index(row) for row in full}
    name = max(falls, key=lambda key: falls[key])
    if falls[name] < 3:
        return []
    places = {row.contestant.name: (first.index(row) + 1, second.index(row) + 1) for row in full}
    return [
        f"{title}: {name} is number {places[name][0]} of {len(full)} by SMCal on recorded streams, and number "
        f"{places[name][1]} against adversaries; {first[0].contestant.name} leads the former, "
        f"{second[0].contestant.name} the latter."
    ]


def _useless(title: str, rows: list[Standing], streams: tuple[str, ...]) -> list[str]:
    """Proved methods that are worse than the frozen model which every method was handed."""
    raw = next((r for r in rows if r.contestant.name == "raw model"), None)
    proved = [r for r in rows if r.contestant.card.exponent is not None and not r.contestant.ours]
    calm = [s for s in streams if s not in ADVERSARIES]
    if raw is None or not calm or not proved:
        return []
    base = raw.over(calm, "loss", _mean)
    worse = [r for r in proved if base is not None and (r.over(calm, "loss", _mean) or 0.0) > base]
    if not worse:
        return []
    deaf, names = sum(not r.uses_hint for r in worse), ", ".join(r.contestant.name for r in worse)
    return [
        f"{title}: larger loss on recorded streams than the frozen model that every method is handed: {names} "
        f"({len(worse)} of {len(proved)} published methods with a proved rate; {deaf} of these do not use the model)."
    ]


def _players(summary: Summary, board: str) -> list[Standing]:
    return [row for row in summary.rows[board] if row.refused is None and row.contestant.hint != "truth"]


def _met(row: Standing, streams: Iterable[str]) -> list[str]:
    return [each for each in streams if (each, row.horizon) in row.cells]


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _best(rows: list[Standing], streams: Iterable[str], name: str) -> tuple[float, str] | None:
    wanted = list(streams)
    mean = geometric if name == "smcal" else _mean
    values = [(v, row.contestant.name) for row in rows if (v := row.over(wanted, name, mean)) is not None]
    return min(values) if values else None


def _behind(
    title: str, words: str, ours: list[Standing], others: list[Standing], streams: Iterable[str], name: str
) -> list[str]:
    wanted = list(streams)
    mine, theirs = _best(ours, wanted, name), _best(others, wanted, name)
    if mine is None or theirs is None or mine[0] <= theirs[0]:
        return []
    return [
        f"{title}: {words}: {theirs[1]} {table_number(theirs[0])}, ours at best {table_number(mine[0])} ({mine[1]})."
    ]


def _less(row: Standing, ours: list[Standing], streams: Iterable[str], name: str) -> bool:
    wanted = list(streams)
    mine, theirs = _best(ours, wanted, name), _best([row], wanted, name)
    return mine is not None and theirs is not None and theirs[0] < mine[0]

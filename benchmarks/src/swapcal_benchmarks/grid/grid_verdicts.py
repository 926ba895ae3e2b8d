"""The targets, what was measured of each, and every miss by name."""

import math
from collections.abc import Sequence

from swapcal_benchmarks.grid import kept
from swapcal_benchmarks.grid.fresh import against
from swapcal_benchmarks.grid.grid_row import GridRow
from swapcal_benchmarks.grid.measuring import GridResult
from swapcal_benchmarks.report import Target
from swapcal_benchmarks.rivals.duels import ADVERSARIES

__all__ = ["geometric", "verdicts"]

MEANS = {"none": 0.6, "frozen": 0.5, "learning": 0.65}
"""Swap error over the old one, in the geometric mean, at most; by kind of hint."""

WORSE, SHARE = 1.1, 0.1
"""Above this ratio a row is worse; so many rows may be."""


OWN = 10
"""So many forecasts at the start are to be the hint's own."""


def geometric(rows: Sequence[GridRow]) -> float:
    """The geometric mean of the ratios of swap errors."""
    return math.exp(sum(math.log(row.ratio) for row in rows) / len(rows))


def verdicts(result: GridResult) -> list[Target]:
    """All targets that can be judged."""
    found = []
    for groups, words in (((kept.TUNED, kept.RECORDED), "seeds 1 to 9 and files"), ((kept.FRESH,), kept.FRESH)):
        rows = [row for row in result.rows if row.group in groups]
        if rows:
            found += _swap(rows, words)
    rare = [row for row in result.rows if row.new.log_loss is not None]
    quiet = [row for row in result.rows if row.stream.startswith("noise 0.005") and row.hint == "truth"]
    found += _rare(rare) if rare else []
    found += [_quiet(quiet)] if quiet else []
    found.append(Target("without a horizon within 15 % of the run that knew it", _equal(result.same), result.same))
    found += _games(result)
    found += against(result.fresh, result.before)[1] if result.before else []
    return [*found, _first([row for row in result.rows if row.hint in ("frozen", "truth")])]


def _first(rows: Sequence[GridRow]) -> Target:
    near = [row.new.near or 0 for row in rows]
    names = tuple(f"{_name(row)}: {rounds}" for row, rounds in zip(rows, near, strict=True) if rounds < OWN)
    asked = f"the first {OWN} forecasts are within 1 % of the hint, a model's or the truth"
    return Target(
        asked, f"in {len(rows) - len(names)} of {len(rows)} rows; the fewest are {min(near)}", not names, names
    )


def _equal(same: bool) -> str:
    return "the same forecasts, bit for bit" if same else "other forecasts"


def _swap(rows: Sequence[GridRow], words: str) -> list[Target]:
    found = []
    for kind, most in MEANS.items():
        mean = geometric([row for row in rows if row.hint == kind])
        asked = f"swap error over the old one, geometric mean, hint: {kind}; {words}: at most {most:g}"
        found.append(Target(asked, f"{mean:.2f}", mean <= most))
    worse = [row for row in rows if row.ratio > WORSE]
    asked = f"swap error at most 10 % above the old one in nine rows of ten; {words}"
    names = tuple(
        f"{row.stream}, {row.hint}: {row.old.swap / row.unit:.3g} to {row.new.swap / row.unit:.3g} T^(1/3), "
        f"loss {row.change:+.2f} %"
        for row in worse
    )
    return [
        *found,
        Target(asked, f"{len(worse)} of {len(rows)} are worse", len(worse) <= SHARE * len(rows), names),
    ]


def _rare(rows: Sequence[GridRow]) -> list[Target]:
    mean = [row for row in rows if abs(row.new.mean / row.new.rate - 1.0) > 0.05]
    grouped = [row for row in rows if row.new.worst_group is not None]
    groups = [row for row in grouped if (row.new.worst_group or 0.0) > 0.15]
    kept_loss = [row for row in rows if row.hint in ("learning", "truth")]
    above = [row for row in kept_loss if _above(row) > 0.5]
    biased = [row for row in rows if row.hint == "frozen"]
    not_below = [row for row in biased if _above(row) >= 0.0]

    def one(asked: str, missed: list[GridRow], rows: Sequence[GridRow], words: list[str]) -> Target:
        names = tuple(f"{_name(row)}: {text}" for row, text in zip(missed, words, strict=True))
        return Target(asked, f"{len(rows) - len(missed)} of {len(rows)} rows", not missed, names)

    return [
        one(
            "rare events: mean forecast within 5 % of the rate",
            mean,
            rows,
            [f"{row.new.mean / row.new.rate:.3f} times, {row.new.rate * row.n_rounds:.0f} events" for row in mean],
        ),
        one(
            "rare events: within 15 % in groups with 500 events",
            groups,
            grouped,
            [f"off by {100.0 * (row.new.worst_group or 0.0):.0f} %" for row in groups],
        ),
        one(
            "rare events: log loss at most 0.5 % above the hint's, learning or the truth",
            above,
            kept_loss,
            [f"{_above(row):+.2f} %" for row in above],
        ),
        one(
            "rare events: log loss below that of a biased hint",
            not_below,
            biased,
            [f"{_above(row):+.2f} %" for row in not_below],
        ),
    ]


def _above(row: GridRow) -> float:
    """Log loss above the hint's, in percent."""
    assert row.new.log_loss is not None
    assert row.new.hint_log_loss is not None
    return 100.0 * (row.new.log_loss / row.new.hint_log_loss - 1.0)


def _name(row: GridRow) -> str:
    return f"{row.stream}, {row.hint}, {row.group}"


def _quiet(quiet: Sequence[GridRow]) -> Target:
    above = [row.new.above_hint() or 0.0 for row in quiet]
    names = tuple(f"{_name(row)}: {x:+.2f} %" for row, x in zip(quiet, above, strict=True) if x > 2.0)
    asked = "noise of 0.5 % of the range: loss at most 2 % above the truth's, which is the hint"
    return Target(asked, ", ".join(f"{x:+.2f} %" for x in above), not names, names)


def _games(result: GridResult) -> list[Target]:
    arena = [game for game in result.games if game.name.split(", ", 1)[1].rsplit(", T", 1)[0] in ADVERSARIES]
    others = [game for game in result.games if game not in arena and ", lure," not in game.name]
    lures = [game for game in result.games if ", lure," in game.name]
    found = []
    for asked, games in (("adversaries of the arena", arena), ("the others, but for the lure", others)):
        over = tuple(f"{g.name}: {g.old:.3g} to {g.new:.3g} T^(1/3)" for g in games if g.ratio > WORSE)
        most = max(game.ratio for game in games)
        found.append(Target(f"{asked}: at most 1.1 times the old error", f"at most {most:.2f} times", not over, over))
    over = tuple(f"{g.name}: {g.new:.2f} T^(1/3), {g.old:.3g} before" for g in lures if g.new > 1.0)
    most = max(game.new for game in lures)
    return [*found, Target("the lure: at most 1.0 T^(1/3)", f"at most {most:.2f} T^(1/3)", not over, over)]

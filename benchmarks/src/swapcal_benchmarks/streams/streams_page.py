"""What the terminal and the page show of the rows: tables, and a sentence for every row that misses."""

from collections.abc import Sequence

from swapcal_benchmarks.report import Table, document, table_number
from swapcal_benchmarks.streams.stream_row import FLOOR, LOSS, StreamRow
from swapcal_benchmarks.streams.stream_scores import HINTS, N_SEEDS

__all__ = ["misses", "page", "summary", "tables"]


def tables(rows: Sequence[StreamRow]) -> list[Table]:
    """Errors and losses for each kind of hint, and the details of all rows."""
    made = []
    for hint in HINTS:
        mine = [row for row in rows if row.hint == hint]
        made += [_error_table(hint, mine), _loss_table(hint, mine)]
    return [*made, _measures_table(rows), _settings_table(rows)]


def summary(rows: Sequence[StreamRow]) -> list[str]:
    """How many rows meet the criterion, for each kind of hint."""
    lines = []
    for hint in HINTS:
        mine = [row for row in rows if row.hint == hint]
        met = sum(row.halved and row.loss_kept for row in mine)
        halved = [row for row in mine if row.to_halve is not None]
        lines.append(
            f"hint = {hint}: {met} of {len(mine)} rows meet the criterion; swap error at least halved in "
            f"{sum(row.halved for row in halved)} of the {len(halved)} where it must be, loss kept in "
            f"{sum(row.loss_kept for row in mine)} of {len(mine)}"
        )
    return lines


def misses(rows: Sequence[StreamRow]) -> list[str]:
    """A sentence for each row that misses the criterion."""
    return [_miss(row) for row in rows if not (row.halved and row.loss_kept)]


def _miss(row: StreamRow) -> str:
    parts = []
    if not row.halved and row.to_halve is not None:
        parts.append(f"swap error {table_number(row.to_halve)} before and {table_number(row.swap_after)} after")
    if not row.loss_kept:
        parts.append(
            f"loss {row.loss_ratio:.4f} times the model's, {row.rounding:.4f} by rounding it to our values alone"
        )
    return f"{', '.join(_head(row))}, hint = {row.hint}: " + "; ".join(parts)


_HEAD = ("stream", "question", "model")


def _head(row: StreamRow) -> tuple[str, str, str]:
    return row.stream, row.question, row.model


def _error_table(hint: str, rows: Sequence[StreamRow]) -> Table:
    header = (*_HEAD, "T", "T^(1/3)", "before", "after", "ratio", "guaranteed", "criterion")
    lines = []
    for row in rows:
        before = min(each.swap for each in row.before.values()) if row.to_halve is None else row.to_halve
        ratio = "-" if row.swap_ratio is None else f"{row.swap_ratio:.2f}"
        numbers = table_number(before), table_number(row.swap_after), ratio, table_number(row.guaranteed)
        met = "-" if row.to_halve is None else _met(row.halved)
        lines.append((*_head(row), f"{row.n_rounds:,}", f"{row.unit:.1f}", *numbers, met))
    note = (
        "Swap error SMCal_2, a total over the rounds; after: mean over seeds. "
        f"A dash: nothing to halve, as no error before is above {FLOOR:g} T^(1/3)."
    )
    return Table(f"Swap error, hint = {hint}", header, tuple(lines), note)


def _loss_table(hint: str, rows: Sequence[StreamRow]) -> Table:
    header = (*_HEAD, "before", "after", "ratio", "change, 95 %", "criterion")
    lines = []
    for row in rows:
        low, high = (100.0 * end / row.loss_before for end in row.interval)
        losses = _loss(row.loss_before), _loss(row.loss_ratio * row.loss_before), f"{row.loss_ratio:.4f}"
        lines.append((*_head(row), *losses, f"{low:+.1f} to {high:+.1f} %", _met(row.loss_kept)))
    note = f"Mean losses, in squares of the outcome's unit or in its unit; the ratio may be {LOSS:g}."
    return Table(f"Loss, hint = {hint}", header, tuple(lines), note)


_WAYS = ("our cells", "our values", "48 cells", "48 bins")


def _measures_table(rows: Sequence[StreamRow]) -> Table:
    header = (*_HEAD, "values", *_WAYS, "after", "group error", "overall error", "rounding")
    lines = []
    for row in rows:
        theirs = row.before["our cells"]
        group, overall = (sum(getattr(e, name) for e in row.after) / len(row.after) for name in ("group", "overall"))
        lines.append(
            (
                *_head(row),
                str(row.values),
                *(table_number(row.before[way].swap) for way in _WAYS),
                table_number(row.swap_after),
                f"{table_number(theirs.group)} → {table_number(group)}",
                f"{table_number(theirs.overall)} → {table_number(overall)}",
                f"{row.rounding:.4f}",
            )
        )
    note = (
        "For each question and model, first hint = the model, then the hint that learns. values: how many swapcal can "
        f"speak at the end. {', '.join(_WAYS)}: the model's swap error in four ways. group, overall: MCal_2 and Cal_2, "
        "the model's in our cells and ours. rounding: loss of the model rounded to our values over its own."
    )
    return Table("Ways of measuring", header, tuple(lines), note)


def _settings_table(rows: Sequence[StreamRow]) -> Table:
    header = (*_HEAD, "outcome", "groups", "range", "outcomes outside", "forecasts outside", "jitter")
    lines = [
        (
            *_head(row),
            row.outcome,
            str(row.n_groups),
            f"{row.low:g} to {row.high:g}",
            str(row.clipped),
            str(row.hints_clipped),
            f"{row.jitter:g}",
        )
        for row in rows
    ]
    note = "Outcomes and forecasts of the model outside the range were moved to its end for swapcal and for the errors."
    return Table("Settings", header, tuple(dict.fromkeys(lines)), note)


def _met(kept: bool) -> str:
    return "met" if kept else "MISSED"


def _loss(value: float) -> str:
    return f"{value:.4f}" if value < 10.0 else f"{value:.1f}" if value < 1000.0 else f"{value:,.0f}"


def page(rows: Sequence[StreamRow], command: str) -> str:
    """The whole page, in Markdown."""
    return document(
        "Five recorded streams",
        f"Made by `{command}`; every number below comes from that run. The files are not part of this project.",
        _RULES,
        "## Result",
        "\n".join(f"- {line}." for line in summary(rows)),
        "## Where the criterion is missed",
        "\n".join(f"- {each}." for each in misses(rows)) or "Nowhere in this run.",
        *tables(rows),
    )


_RULES = f"""The criterion: with a frozen model as the hint, the swap error is at least halved wherever it is above
{FLOOR:g} T^(1/3), and the loss is at most {LOSS:g} times the model's.

- Each file in its own order. The first fifth trains the model (scikit-learn's histogram gradient boosting with its
  defaults; an expectile by reweighting) and gives the label range, 0 to the largest outcome, and the bands of numbers.
  The model is then frozen, and the other four fifths are forecast. `fte_games` has a forecast that was published
  before each game, and no model is trained.
- Where rows follow each other in time there are two models: `trees` sees the columns of the file, `trees + past` also
  the last outcome and that of a day ago. The second is the harder test: it was added after trial runs, in which the
  first was easy to beat. Also added after them: a group for each hour, where there had been bands of hours, and the
  model's error without rounding it.
- Groups, through `swapcal.Groups`: adult by age band, sex, race, education, marital status and work class; elec2 by
  hour, weekday and demand quartile; fte_games by league, season, both teams and forecast band; bike_hour by hour,
  weekday, season, weather and working day; beijing_pm25 by hour, season, wind direction and year; and all rows.
- swapcal runs with its defaults and {N_SEEDS} seeds; a quantile of whole numbers with `jitter=1`. No setting was
  chosen for a stream. Outcomes come right after each forecast, which favors a hint that learns where outcomes change
  slowly.
- Swap error: SMCal_2 over the groups and all rows. Ours is that of what it showed, each forecast at the nearest value
  that the engine spoke. The model's is measured in four ways: as it speaks, in the cells of our values (of the first
  seed, at the end; each forecast belongs to the nearest) and in 48 equal cells; and rounded, to our values and to 48
  equal bins. The one to halve is the smallest of those above {FLOOR:g} T^(1/3). Outcomes outside the range count as its
  end here.
- Loss: on outcomes and the model's forecasts as they are, nothing moved; squared error, pinball loss or asymmetric
  squared error. The interval of its change, in percent of the model's loss, is Student's over blocks of neighboring
  rows.
- A row meets the criterion if it does with every seed. Rows without an outcome are forecast, and not scored."""

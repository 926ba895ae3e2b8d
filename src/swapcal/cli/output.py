"""Results in the terminal: the verdict first, then the groups, then the numbers behind it."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import typer
from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from swapcal.audit.summary import ColumnSummary
from swapcal.cli.groups_view import groups_view
from swapcal.cli.plain_text import cleaned, printable
from swapcal.errors import DataError, MissingExtra
from swapcal.jobs.result import Result
from swapcal.jobs.storage import to_json
from swapcal.jobs.threshold import above, parse_threshold
from swapcal.words.names import group_name
from swapcal.words.numbers import aligned, count, counted, interval, number, precise
from swapcal.words.property_words import PropertyWords, property_words
from swapcal.words.quantities import QUANTITIES, rate_name
from swapcal.words.verdicts import headline_below_badge, per_round

__all__ = ["MARKS", "STYLES", "bullet", "facts", "failed", "n_groups", "plain", "printed", "save_page", "tell", "view"]

WIDTH = 80
N_WORST = 5
MARKS = {"fine": "FINE", "recalibrate": "RECALIBRATE", "refit": "REFIT"}
ERRORS = ("swap_error", "group_error", "overall_error", "chance_mean")
STYLES = {"fine": "bold white on green", "recalibrate": "bold black on yellow", "refit": "bold white on red"}


def tell(result: Result, *, report: Path | None, json: bool, fail_above: str | None, last: str | None = None) -> None:
    """The end of a command: the page, the result as JSON or as tables with a `last` line, and the exit code 1."""
    page = None if report is None else save_page(result, report)
    if json:
        typer.echo(to_json(result))
    else:
        printed(lambda width: view(cleaned(result), width), page, last)
    if fail_above is not None:
        failed([above(result, parse_threshold(fail_above))])


def printed(view: Callable[[int], RenderableType], page: Path | None, last: str | None = None) -> None:
    """Print what is viewed, as wide as the terminal is, where the page is, and a `last` line."""
    console = Console(highlight=False)
    console.print(view(console.width))
    for line in (None if page is None else f"The page is {page}", last):
        if line is not None:
            console.print(Text(printable(line)), soft_wrap=True)


def failed(sentences: Iterable[str | None]) -> None:
    """Say what is above a threshold, and end with exit code 1 if anything is."""
    said = [sentence for sentence in sentences if sentence is not None]
    for sentence in said:
        typer.echo(sentence, err=True)
    if said:
        raise typer.Exit(1)


def view(result: Result, width: int = WIDTH) -> RenderableType:
    """The result as something that rich prints, within `width` columns: verdict, groups, scores, then the rest."""
    said, words = result.verdict, property_words(result.property)
    columns = list(result.columns.values())
    shown = columns[-1] if result.kind == "run" else columns[0]
    head = Text.assemble((f" {MARKS[said.kind]} ", STYLES[said.kind]), " ", (headline_below_badge(said), "bold"))
    sentences = [Padding(bullet(each), (0, 1)) for each in said.sentences]
    parts: list[RenderableType] = [head, facts(result), Text(), *sentences]
    table = groups_view(result, width)
    if table is not None:
        parts += [table]
    parts += _scores(result)
    if shown.worst:
        parts.append(_worst(shown, words, width))
    parts += _notes(result)
    totals = _beside(result, columns[0], columns[1], words) if len(columns) == 2 else _totals(result, shown, words)
    parts += [Text(), totals]
    return Group(*parts)


def _scores(result: Result) -> list[RenderableType]:
    """The scores that people know, a line for each column of forecasts."""
    lines = []
    for side in result.columns.values():
        if side.scores is not None:
            one = side.scores
            auc = "" if one.auc is None else f", AUC {number(one.auc)}"
            lines.append(
                f"{side.label}: Brier score {precise(one.brier)}, log loss {precise(one.log_loss)}{auc}; of the Brier "
                f"score, miscalibration {number(one.miscalibration)}, discrimination {number(one.discrimination)}, "
                f"uncertainty {number(one.uncertainty)}"
            )
        else:
            lines.append(f"{side.label}: {result.loss_name} {precise(side.loss)}")
    return [Text(), *(Padding(Text(line), (0, 1)) for line in lines)]


def bullet(sentence: str) -> Table:
    """A sentence behind a dash, its lines below each other."""
    grid = Table.grid(padding=(0, 1))
    grid.add_row("-", Text(sentence))
    return grid


def facts(result: Result) -> Text:
    """The file, what was forecast, and for how many."""
    what = f"{property_words(result.property).name} of {result.settings.get('y', 'the outcome')}"
    source = result.source if len(result.source) <= WIDTH // 3 else Path(result.source).name
    return Text(f" {source}: {what}, {counted(result.n_rounds)}, {n_groups(result)}", style="dim")


def n_groups(result: Result) -> str:
    """How many groups there are, besides everybody."""
    n = len(result.groups) - 1
    return counted(n, "group") if n else "no groups"


def _totals(result: Result, side: ColumnSummary, words: PropertyWords) -> Table:
    """Errors of one column of forecasts: total, in units of T^(1/(r+1)), and as a bias per row."""
    r = result.r
    table = _errors_table(r)
    for name in ("total", f"x {rate_name(r)}", f"{words.heading} per row*"):
        table.add_column(name, justify="right", no_wrap=True)
    rows = [(QUANTITIES[each], getattr(side, each)) for each in ERRORS]
    rows.append((QUANTITIES["guarantee"], result.guarantee))
    scale = (side.weight or 1.0) ** (1 / (r + 1))
    for name, error in rows:
        if error is not None:
            table.add_row(name, number(error), number(error / scale), _per_row(error, side, r, words))
    return table


def _beside(result: Result, before: ColumnSummary, after: ColumnSummary, words: PropertyWords) -> Table:
    """The same for two columns of forecasts, before and after beside each other, and their losses."""
    r = result.r
    table = _errors_table(r)
    for name in (before.label, after.label, f"{words.heading} per row*"):
        table.add_column(name, justify="right", no_wrap=True)
    sides = (before, after)
    for each in ERRORS:
        errors = [getattr(side, each) for side in sides]
        if None not in errors:
            rates = [_per_row(error, side, r, words) for error, side in zip(errors, sides, strict=True)]
            table.add_row(QUANTITIES[each], *map(number, errors), " to ".join(rates))
    scaled = (side.swap_error / (side.weight or 1.0) ** (1 / (r + 1)) for side in sides)
    table.add_row(f"{QUANTITIES['swap_error']}, times {rate_name(r)}", *map(number, scaled))
    if result.guarantee is not None:
        table.add_row(QUANTITIES["guarantee"], "", number(result.guarantee))
    table.add_row(result.loss_name, precise(before.loss), precise(after.loss))
    return table


def _per_row(error: float, side: ColumnSummary, r: float, words: PropertyWords) -> str:
    return number(words.scale * per_round(error, side, r), 2)


def _errors_table(r: float) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), show_edge=False, caption_justify="left", title_justify="left")
    table.title, table.title_style = "Totals over forecast values and groups (see docs/guarantees.md)", "bold"
    table.caption = "* root mean square bias" if r == 2.0 else f"* mean bias of power {r:g}"
    table.add_column("error")
    return table


def _worst(side: ColumnSummary, words: PropertyWords, width: int) -> Table:
    """The cells with the largest contributions; names are cut, numbers never."""
    cells = side.worst[:N_WORST]
    table = Table(
        box=box.SIMPLE_HEAD,
        padding=(0, 1),
        title=f"\nWorst ranges of forecasts of {side.label}, those beyond doubt first",
        title_justify="left",
        title_style="bold",
    )
    numbers = {
        "forecast": [number(cell.value) for cell in cells],
        "rows": [count(cell.count) for cell in cells],
        words.heading: aligned((words.scale * cell.mean for cell in cells), sign=True),
        "95 % interval": [interval(words.scale * cell.low, words.scale * cell.high) for cell in cells],
    }
    # Three columns of blanks stand between two columns; what numbers leave is for the names, which give way.
    room = width - sum(3 + max(map(len, [head, *column])) for head, column in numbers.items()) - 2
    for head in numbers:
        table.add_column(head, justify="right", no_wrap=True)
        if head == "forecast":
            table.add_column("group", overflow="ellipsis", no_wrap=True, max_width=max(room, len("group")))
    for k, cell in enumerate(cells):
        sure = cell.low > 0 or cell.high < 0
        first, *others = (
            Text(column[k], style="bold" if sure and head == words.heading else "") for head, column in numbers.items()
        )
        table.add_row(first, Text(group_name(cell.name)), *others)
    table.show_edge = False
    return table


def _notes(result: Result) -> list[RenderableType]:
    """What was assumed and what was left out."""
    settings = result.settings
    notes = (
        [f"outcomes in [{number(result.low)}, {number(result.high)}]: {settings['range']}"]
        if "range" in settings
        else []
    )
    notes += [str(settings[name]) for name in ("binning", "clusters", "decisions") if settings.get(name)]
    bands = settings.get("bands") or {}
    if bands:
        listed = ",".join(bands)
        notes.append(f"numbers of many values are in bands; for a group of every value: --categories {listed}")
    if settings.get("jitter"):
        notes.append(f"outcomes heap up and were spread over {number(float(settings['jitter']))}, as --jitter does")
    for n_rows, what in (
        (result.n_missing, "rows without an outcome, not scored"),
        (settings.get("rows_without_forecast", 0), "rows without a forecast, not scored"),
        (result.n_clipped, "outcomes outside the range, moved to its end"),
        (settings.get("forecasts_outside", 0), "forecasts outside the range, moved to its end"),
        (settings.get("weights_outside", 0), "weights above the largest at the start, cut"),
    ):
        if n_rows:
            notes.append(f"{count(n_rows)} {what}")
    if settings.get("guarantee"):
        notes.append(f"guarantee: {settings['guarantee']}")
    notes.append("bias above 0: forecasts too high; intervals hold for all groups, and for all ranges, together (95 %)")
    return [Text(), *(Padding(Text(note, style="dim"), (0, 1)) for note in notes)]


def plain(data: dict[str, Any]) -> str:
    """Plain data as JSON."""
    return json.dumps(data, ensure_ascii=False)


def save_page(result: Result, path: Path) -> Path:
    """Write the page; its directory must be there."""
    try:
        from swapcal.report.page import write
    except ImportError as error:
        raise MissingExtra(
            f"the page needs {error.name or 'more packages'}: install with  pip install 'swapcal[cli]'"
        ) from None
    try:
        write(result, path)
    except OSError as error:
        raise DataError(f"the page cannot be written to {path}: {error.strerror or error}") from None
    return path

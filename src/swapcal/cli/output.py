"""Results in the terminal: the verdict first, then the numbers behind it, within 80 columns."""

import json
import math
from pathlib import Path
from typing import Any

import typer
from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from swapcal.errors import DataError, MissingExtra
from swapcal.jobs.result import Result, Side
from swapcal.jobs.storage import to_json
from swapcal.words.sentences import Unit, counted, number, unit_of
from swapcal.words.verdicts import per_round

__all__ = ["above", "decimals", "plain", "save_page", "show", "tell", "view"]

WIDTH = 80
N_WORST = 8
MARKS = {"fine": "FINE", "recalibrate": "RECALIBRATE", "refit": "REFIT"}
ERRORS = {
    "swap_error": "swap (worst group for each forecast)",
    "group_error": "group (worst single group)",
    "overall_error": "overall (everybody)",
    "chance_mean": "swap error by chance alone",
}
STYLES = {"fine": "bold white on green", "recalibrate": "bold black on yellow", "refit": "bold white on red"}


def tell(result: Result, *, report: Path | None, json: bool, fail_above: float | None, last: str | None = None) -> None:
    """The end of a command: the page, the result as JSON or as tables with a `last` line, and the exit code 1."""
    page = None if report is None else save_page(result, report)
    if json:
        typer.echo(to_json(result))
    else:
        show(result, page)
        if last is not None:
            typer.echo(last)
    sentence = None if fail_above is None else above(result, fail_above)
    if sentence is not None:
        typer.echo(sentence, err=True)
        raise typer.Exit(1)


def show(result: Result, page: Path | None = None) -> None:
    """Print the result."""
    console = Console(highlight=False)
    console = Console(highlight=False, width=min(console.width, WIDTH))
    console.print(view(result))
    if page is not None:
        console.print(f"The page is {page}", soft_wrap=True)


def view(result: Result) -> RenderableType:
    """The result as something that rich prints."""
    words = result.words
    sides = [side for side in (result.before, result.after) if side is not None]
    r = float(result.settings.get("r", 2.0))
    unit = unit_of(result.property, result.low, result.high)
    shown = sides[-1] if result.kind == "run" else sides[0]
    head = Text.assemble((f" {MARKS[words.kind]} ", STYLES[words.kind]), " ", (words.headline, "bold"))
    sentences = [Padding(_bullet(each), (0, 1)) for each in words.sentences]
    parts: list[RenderableType] = [head, _facts(result), Text(), *sentences, Text()]
    if len(sides) == 2:
        parts.append(_beside(result, sides[0], sides[1], r, unit))
    else:
        parts.append(_totals(result, shown, r, unit))
    parts += [_worst(shown, unit), Text(), Padding(Text(shown.witness), (0, 1)), *_notes(result)]
    return Group(*parts)


def _bullet(sentence: str) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_row("-", Text(sentence))
    return grid


def _facts(result: Result) -> Text:
    groups = f"{len(result.groups):,} groups" if len(result.groups) != 1 else "no groups"
    what = f"{result.settings.get('property', result.property)} of {result.settings.get('y', 'the outcome')}"
    source = result.source if len(result.source) <= WIDTH // 3 else Path(result.source).name
    return Text(f" {source}: {what}, {counted(result.n_rounds)}, {groups}", style="dim")


def _totals(result: Result, side: Side, r: float, unit: Unit) -> Table:
    """Errors of one column of forecasts: total, in units of T^(1/(r+1)), and as a bias per row."""
    table = _errors_table(r)
    for name in ("total", f"x T^(1/{r + 1:g})", "per row*" if unit.short == "bias" else f"{unit.short} per row*"):
        table.add_column(name, justify="right", no_wrap=True)
    rows = [(name, getattr(side, each)) for each, name in ERRORS.items()]
    rows.append(("guaranteed swap error", result.guarantee))
    scale = (side.weight or 1.0) ** (1 / (r + 1))
    for name, error in rows:
        if error is not None:
            rate = number(unit.scale * per_round(error, side, r))
            table.add_row(name, number(error), number(error / scale), rate)
    return table


def _beside(result: Result, before: Side, after: Side, r: float, unit: Unit) -> Table:
    """The same for two columns of forecasts, before and after beside each other, and their losses."""
    table = _errors_table(r)
    for name in (before.label, after.label, "per row*" if unit.short == "bias" else f"{unit.short} per row*"):
        table.add_column(name, justify="right", no_wrap=True)
    sides = (before, after)
    for each, name in ERRORS.items():
        errors = [getattr(side, each) for side in sides]
        if None not in errors:
            rates = [unit.scale * per_round(error, side, r) for error, side in zip(errors, sides, strict=True)]
            table.add_row(name, *map(number, errors), " to ".join(f"{rate:.2g}" for rate in rates))
    scaled = (side.swap_error / (side.weight or 1.0) ** (1 / (r + 1)) for side in sides)
    table.add_row(f"swap error, times T^(1/{r + 1:g})", *map(number, scaled))
    if result.guarantee is not None:
        table.add_row("guaranteed swap error", "", number(result.guarantee))
    table.add_row(result.loss_name, number(before.loss), number(after.loss))
    return table


def _errors_table(r: float) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), show_edge=False, caption_justify="left")
    table.caption = "* root mean square bias" if r == 2.0 else f"* mean bias of power {r:g}"
    table.add_column("error")
    return table


def _worst(side: Side, unit: Unit) -> Table:
    """The cells with the largest contributions; names are cut, numbers never."""
    cells = side.worst[:N_WORST]
    digits = decimals(max((abs(unit.scale * cell.mean) for cell in cells), default=0.0))
    table = Table(
        box=box.SIMPLE_HEAD,
        padding=(0, 1),
        title=f"\nWorst cells of {side.label}, those beyond doubt first",
        title_justify="left",
        title_style="bold",
    )
    table.add_column("forecast", justify="right", no_wrap=True)
    table.add_column("group", overflow="ellipsis", no_wrap=True, ratio=1)
    numbers = [("rows", [f"{cell.count:,}" for cell in cells])]
    numbers.append((unit.short, [f"{unit.scale * cell.mean:+.{digits}f}" for cell in cells]))
    ends = [(unit.scale * cell.low, unit.scale * cell.high) for cell in cells]
    numbers.append(("95 % interval", [f"{low:+.{digits}f} to {high:+.{digits}f}" for low, high in ends]))
    numbers.append(("error", [f"{cell.contribution:,.{decimals(cell.contribution)}f}" for cell in cells]))
    for head, column in numbers:
        # A least width, so that a long name gives way and a number does not.
        table.add_column(head, justify="right", no_wrap=True, min_width=max(map(len, [head, *column])))
    for k, cell in enumerate(cells):
        group = Text("everybody" if cell.name == "all" else cell.name)
        sure = cell.low > 0 or cell.high < 0
        figures = [Text(column[k], style="bold" if sure and head == unit.short else "") for head, column in numbers]
        table.add_row(number(cell.value), group, *figures)
    table.show_edge = False
    return table


def decimals(value: float) -> int:
    """Digits behind the point that show three figures of `value`, 6 at most."""
    return 2 if value <= 0.0 else min(max(2 - math.floor(math.log10(value)), 0), 6)


def _notes(result: Result) -> list[RenderableType]:
    """What was assumed and what was left out."""
    settings = result.settings
    notes = (
        [f"outcomes in [{number(result.low)}, {number(result.high)}]: {settings['range']}"]
        if "range" in settings
        else []
    )
    if "binning" in settings:
        notes.append(str(settings["binning"]))
    for count, what in (
        (result.n_missing, "rows without an outcome, not scored"),
        (settings.get("rows_without_forecast", 0), "rows without a forecast, not scored"),
        (result.n_clipped, "outcomes outside the range, moved to its end"),
        (settings.get("forecasts_outside", 0), "forecasts outside the range, moved to its end"),
        (settings.get("weights_outside", 0), "weights above the largest at the start, cut"),
    ):
        if count:
            notes.append(f"{count:,} {what}")
    notes.append("bias above 0: forecasts too high; intervals hold for all cells together")
    return [Text(), *(Padding(Text(note, style="dim"), (0, 1)) for note in notes)]


def above(result: Result, threshold: float) -> str | None:
    """The sentence for --fail-above, if the last column of forecasts is above it."""
    side = result.after or result.before
    if side is None:
        return None
    r = float(result.settings.get("r", 2.0))
    error = side.swap_error / (side.weight or 1.0) ** (1 / (r + 1))
    if error <= threshold:
        return None
    return f"the swap error of {side.label} is {number(error)} times T^(1/{r + 1:g}), above --fail-above {threshold:g}"


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

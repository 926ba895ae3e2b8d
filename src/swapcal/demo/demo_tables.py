"""Before and after beside each other: errors, losses, the worst groups, and what they come to in words."""

import math

import numpy as np
from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from swapcal.audit.group_bias import GroupBias
from swapcal.audit.paired import Paired
from swapcal.audit.summary import ColumnSummary
from swapcal.demo.play import Answer
from swapcal.demo.scene import Scene
from swapcal.report.worst_groups import WorstGroups
from swapcal.typing import IntArray
from swapcal.words.names import group_name
from swapcal.words.numbers import count, counted, number, percent, precise, relative, signed
from swapcal.words.property_words import property_words
from swapcal.words.quantities import QUANTITIES

__all__ = ["findings", "view"]

LEARNING = "swapcal, learning"
N_WORST = 6


def view(scene: Scene, answer: Answer) -> RenderableType:
    """All that the terminal shows of one question."""
    result = answer.result
    scored = f"{count(result.n_rounds)} {scene.rows} with an outcome, {counted(len(result.groups), 'group')}"
    missing = f"{count(result.n_missing)} without one are forecast and not learned from" if result.n_missing else ""
    were = "was" if result.n_clipped == 1 else "were"
    clipped = f"{counted(result.n_clipped, 'outcome')} {were} outside the range" if result.n_clipped else ""
    binned = f"swap error of the model: {result.settings.get('binning', 'as it is')}; other bins give other totals"
    notes = [*answer.task.notes, *([clipped] if clipped else []), binned]
    return Group(
        Text(answer.task.title, style="bold"),
        Text("; ".join(part for part in (scored, missing) if part), style="dim"),
        *(Text(note, style="dim") for note in notes),
        Text(),
        _totals(answer),
        Text(),
        _groups(answer),
        Text(),
        *(Padding(_bullet(sentence), (0, 1)) for sentence in findings(answer)),
        Text(),
    )


def findings(answer: Answer) -> list[str]:
    """What came out, good or bad, in sentences."""
    before, after, learned = _sides(answer)
    found, biases = [], _biases(answer)
    runs = (("swapcal", answer.result, after, biases[1]), (LEARNING, answer.learning, learned, biases[2]))
    for who, run, side, bias in runs:
        parts = [_error(before, side), _left(answer, bias)]
        if run.paired is not None:
            parts.append(_loss(run.loss_name, run.paired))
        found.append(f"{who}: {'; '.join(parts)}.")
    return found


def _sides(answer: Answer) -> tuple[ColumnSummary, ColumnSummary, ColumnSummary]:
    before, after, learned = answer.result.before, answer.result.after, answer.learning.after
    assert before is not None
    assert after is not None
    assert learned is not None
    return before, after, learned


def _totals(answer: Answer) -> Table:
    result = answer.result
    before, after, learned = _sides(answer)
    off = [len(_off(bias)) for bias in _biases(answer)]
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), show_edge=False)
    table.add_column("forecasts by", no_wrap=True)
    for head in (QUANTITIES["swap_error"], "groups off*", result.loss_name, "change"):
        table.add_column(head, justify="right", no_wrap=True)
    if before.constant_loss is not None:
        table.add_row("best constant", "", "", precise(before.constant_loss), "")
    table.add_row("the model", number(before.swap_error), count(off[0]), precise(before.loss), "")
    rows = (("swapcal", after, off[1], result.paired), (LEARNING, learned, off[2], answer.learning.paired))
    for who, side, groups, paired in rows:
        changed = "" if paired is None else relative(paired.difference, paired.before)
        table.add_row(who, number(side.swap_error), count(groups), precise(side.loss), changed)
    if after.chance_mean is not None:
        table.add_row("chance alone", number(after.chance_mean), "", "", "")
    if result.guarantee is not None:
        table.add_row(QUANTITIES["guarantee"], number(result.guarantee), "", "", "")
    table.caption, table.caption_justify = f"* biased beyond chance, of {count(len(result.groups))}", "left"
    return table


def _groups(answer: Answer) -> RenderableType:
    """The groups with the largest error of the model; "everybody" first."""
    figure, words = WorstGroups.of(answer.result, N_WORST), property_words(answer.result.property)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), show_edge=False)
    table.add_column("group", overflow="ellipsis", no_wrap=True)
    for head in ("rows", "the model", "swapcal", LEARNING):
        table.add_column(head, justify="right", no_wrap=True)
    sides = _biases(answer)
    for j in figure.order():
        name = Text(group_name(answer.result.groups[j]))
        biases = [signed(round(words.scale * float(side.mean[j]), 2)) for side in sides]
        table.add_row(name, count(float(sides[0].rows[j])), *biases)
    what = "coverage less the level" if words.noun else "forecast less outcome"
    return Group(Text(f"Groups with the largest error of the model: {what}, in {words.unit}"), table)


def _biases(answer: Answer) -> tuple[GroupBias, GroupBias, GroupBias]:
    first, second = (WorstGroups.of(run).sides() for run in (answer.result, answer.learning))
    return first["before"], first["after"], second["after"]


def _off(bias: GroupBias) -> IntArray:
    """Positions of the groups that are off beyond doubt."""
    return np.flatnonzero(bias.off > 0)


def _error(before: ColumnSummary, after: ColumnSummary) -> str:
    """How the swap error changed."""
    if not before.swap_error > 0.0:
        return f"swap error {number(after.swap_error)}"
    ratio = after.swap_error / before.swap_error
    if ratio > 1.0:
        return f"swap error {100 * (ratio - 1.0):.0f} % HIGHER than the model's"
    return f"swap error {100 * (1.0 - ratio):.0f} % lower than the model's"


def _left(answer: Answer, bias: GroupBias) -> str:
    """The worst of the groups that are still biased, and how the model was there."""
    off = _off(bias)
    if not len(off):
        return "no group is off beyond chance"
    worst, words = off[np.argmax(np.abs(bias.mean[off]))], property_words(answer.result.property)
    then, now = (signed(round(words.scale * float(each.mean[worst]), 2)) for each in (_biases(answer)[0], bias))
    name = group_name(answer.result.groups[worst])
    return f"the group most off beyond chance is {name}, by {now} {words.unit} (the model: {then})"


def _loss(name: str, paired: Paired) -> str:
    """How the loss changed, with its interval."""
    low, difference, high = (relative(value, paired.before) for value in (paired.low, paired.difference, paired.high))
    if not math.isfinite(paired.high - paired.low):
        return f"{name} {difference}, of too few rows for an interval"
    changed = "lower" if paired.high < 0.0 else "HIGHER" if paired.low > 0.0 else "not shown to differ"
    return f"{name} {changed}: {difference} ({percent(paired.confidence)} interval {low} to {high})"


def _bullet(sentence: str) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_row("-", Text(sentence))
    return grid

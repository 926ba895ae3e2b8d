"""Before and after beside each other: errors, losses, the worst groups, and what they come to in words."""

import numpy as np
from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from swapcal.demo.play import Answer
from swapcal.demo.scene import Scene
from swapcal.report.group_bias import GroupBias
from swapcal.report.names import group_name
from swapcal.report.numbers import count, interval, number, precise, signed
from swapcal.report.reading import reading
from swapcal.report.worst_groups import WorstGroups
from swapcal.verdict.result import Paired, Result, Side

__all__ = ["findings", "view"]

LEARNING = "swapcal, learning"
N_WORST = 6


def view(scene: Scene, answer: Answer) -> RenderableType:
    """All that the terminal shows of one question."""
    result = answer.result
    scored = f"{count(result.n_rounds)} {scene.rows} with an outcome, {count(len(result.groups))} groups"
    missing = f"{count(result.n_missing)} without one are forecast and not learned from" if result.n_missing else ""
    clipped = f"{count(result.n_clipped)} outcomes were outside the range" if result.n_clipped else ""
    notes = [*answer.task.notes, *([clipped] if clipped else [])]
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
    found = [_errors("swapcal", before, after), _errors(LEARNING, before, learned)]
    for who, run in (("swapcal", answer.result), (LEARNING, answer.learning)):
        if run.paired is not None:
            found.append(_loss(who, run.loss_name, run.paired))
    return found


def _sides(answer: Answer) -> tuple[Side, Side, Side]:
    before, after, learned = answer.result.before, answer.result.after, answer.learning.after
    assert before is not None
    assert after is not None
    assert learned is not None
    return before, after, learned


def _totals(answer: Answer) -> Table:
    result = answer.result
    before, after, learned = _sides(answer)
    off = _biased(answer)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), show_edge=False)
    table.add_column("forecasts by")
    for head in ("swap error", "biased groups*", result.loss_name, "change, 95 % interval"):
        table.add_column(head, justify="right", no_wrap=True)
    if before.constant_loss is not None:
        table.add_row("best constant, in hindsight", "", "", precise(before.constant_loss), "")
    table.add_row("the model", number(before.swap_error), count(off[0]), precise(before.loss), "")
    rows = (("swapcal", after, off[1], result.paired), (LEARNING, learned, off[2], answer.learning.paired))
    for who, side, groups, paired in rows:
        changed = "" if paired is None else _change(paired)
        table.add_row(who, number(side.swap_error), count(groups), precise(side.loss), changed)
    if after.chance_mean is not None:
        table.add_row("chance alone", number(after.chance_mean), "", "", "")
    if result.guarantee is not None:
        table.add_row("guaranteed at most", number(result.guarantee), "", "", "")
    table.caption, table.caption_justify = f"* beyond chance, of {count(len(result.groups))}", "left"
    return table


def _groups(answer: Answer) -> Table:
    """The groups with the largest error of the model; "everybody" first."""
    figure, words = WorstGroups.of(answer.result, N_WORST), reading(answer.result.property)
    what = "share below the forecast, less the level" if words.noun else "forecast less outcome"
    table = Table(
        box=box.SIMPLE_HEAD,
        padding=(0, 1),
        show_edge=False,
        title=f"Worst groups of the model: {what}, in points",
        title_justify="left",
        title_style="",
    )
    table.add_column("group", overflow="ellipsis", no_wrap=True)
    for head in ("rows", "the model", "swapcal", LEARNING):
        table.add_column(head, justify="right", no_wrap=True)
    sides = _biases(answer)
    for j in figure.order():
        name = Text(group_name(answer.result.groups[j]))
        biases = [signed(round(words.scale * float(side.mean[j]), 2)) for side in sides]
        table.add_row(name, count(float(sides[0].count[j])), *biases)
    return table


def _biases(answer: Answer) -> tuple[GroupBias, GroupBias, GroupBias]:
    first, second = (WorstGroups.of(run).sides() for run in (answer.result, answer.learning))
    return first["before"], first["after"], second["after"]


def _biased(answer: Answer) -> list[int]:
    """How many groups have an interval that leaves out 0, for the model, swapcal, and swapcal with learning."""
    return [int(np.sum((side.low > 0.0) | (side.high < 0.0))) for side in _biases(answer)]


def _errors(who: str, before: Side, after: Side) -> str:
    ratio = after.swap_error / before.swap_error if before.swap_error > 0 else 1.0
    changed = f"{100 * abs(1 - ratio):.0f} % {'below' if ratio < 1 else 'ABOVE'}"
    return f"{who}: swap error {changed} the model's, {number(after.swap_error)} after {number(before.swap_error)}."


def _loss(who: str, name: str, paired: Paired) -> str:
    share = number(100 * abs(paired.difference) / paired.before) if paired.before > 0 else "0"
    if paired.high < 0:
        return f"{who}: {name} {share} % lower than the model's, beyond doubt."
    if paired.low > 0:
        return f"{who}: {name} {share} % HIGHER than the model's: that is what it costs here."
    return f"{who}: {name} as the model's; no difference is shown."


def _change(paired: Paired) -> str:
    """The difference of losses, in percent of the model's."""
    if not paired.before > 0:
        return ""
    difference, low, high = (100 * value / paired.before for value in (paired.difference, paired.low, paired.high))
    return f"{signed(difference, 2)} % ({interval(low, high)})"


def _bullet(sentence: str) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_row("-", Text(sentence))
    return grid

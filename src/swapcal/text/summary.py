"""What a result comes to in at most 20 lines of 80 columns and plain characters, and what is behind it in some more."""

import shlex
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from swapcal.text.numbers import (
    MINUS,
    MISSING,
    QUANTITIES,
    capitalized,
    cleaned,
    count,
    counted,
    group_name,
    number,
    percent,
    precise,
    shortened,
)
from swapcal.text.sentences import BAD, notes

if TYPE_CHECKING:
    from swapcal.tasks.result import Result

WIDTH, LINES = 80, 20
# Rates of events below it are told with two decimals.
RARE = 0.05

_PLAIN = str.maketrans({MINUS: "-", MISSING: "-", "…": "~", "→": "->", "\u00d7": "x"})


def summary(result: "Result", *, every: bool = False, wrote: Sequence[str] = (), fresh: bool = True) -> list[str]:
    """The verdict, the groups that matter, losses, and what to do next.

    Parameters
    ----------
    result : Result
        Of an audit, a run or a comparison.
    every : bool
        All groups, however many.
    wrote : sequence of str
        Lines for the end: which files were written.
    fresh : bool
        Whether it comes from a command, whose options are named.
    """
    from swapcal.tasks.result import section_rows

    result = cleaned(result)
    kind = result.verdict.kind
    head = _wrapped(headline(result), len(kind) + 2)
    head += [line for text in below(result) for line in _wrapped(" " * (len(kind) + 2) + text, len(kind) + 2)]
    if result.kind == "comparison" or result.task == "classes":
        rows, table = section_rows(result), _models if result.kind == "comparison" else _classes
    else:
        rows, table = _group_rows(result), _groups
    tail = [line for text in (*_tail(result), *wrote) for line in (_command if " --y " in text else _wrapped)(text, 0)]
    room = len(rows) if every else max(3, LINES - len(head) - len(tail) - 4)
    room += len(rows) == room + 1
    shown = table(result, rows[:room])
    left = len(rows) - room
    more = f"  {count(left)} more{': --all, or --report page.html' if fresh else ''}"
    return [*head, "", *shown, *([more] if left > 0 else []), "", *tail]


def headline(result: "Result") -> str:
    """The verdict and its sentence, in one line."""
    return ascii_text(f"{result.verdict.kind}  {cleaned(result.verdict.headline)}")


def ascii_text(text: str) -> str:
    """`text` with plain signs for a minus, a dash and what was left out."""
    return text.translate(_PLAIN)


def _wrapped(text: str, indent: int) -> list[str]:
    """Lines of a sentence; a number and its percent sign stay together."""
    whole = ascii_text(text).replace(" %", "\0%")
    lines = textwrap.wrap(whole, WIDTH, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\0", " ") for line in lines] or [""]


def _command(text: str, indent: int) -> list[str]:
    """A command, which can be copied whole, also where it takes several lines: none ends inside of quotes."""
    lines = [""]
    for word in map(shlex.quote, shlex.split(text)):
        fits = len(lines[-1]) + len(word) < WIDTH - 2
        lines = [*lines[:-1], f"{lines[-1]} {word}".strip()] if fits or not lines[-1] else [*lines, word]
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]


class _Units:
    """How numbers of one result are printed: percent and points, or the unit of the outcome."""

    def __init__(self, result: "Result", rows: Sequence[Any]) -> None:
        self.words = result.wording
        values = [abs(v) for v in _numbers(rows) if v == v and abs(v) != float("inf")]
        most = max(values, default=1.0)
        if self.words.scale == 100.0:
            rate = None if result.before is None or result.before.scores is None else result.before.scores.base_rate
            self.places = 2 if rate is not None and rate < RARE else 1
        else:
            self.places = 0 if most >= 1000 else 1 if most >= 100 else 2 if most >= 1.0 else 4

    def level(self, value: float | None) -> str:
        """A prediction or what came."""
        if value is None or value != value:
            return "-"
        if self.words.scale == 100.0:
            return f"{self._plain(100.0 * value)} %"
        return self._plain(value)

    def bias(self, value: float) -> str:
        """A bias with its sign."""
        return self._plain(value, sign=True)

    def span(self, low: float, high: float) -> str:
        """An interval of a bias; an end that is nearly 0 keeps its sign where 0 is outside."""
        if not (abs(low) < float("inf") and abs(high) < float("inf")):
            return "-"
        return f"{self.bias(low)} to {self.bias(high)}"

    def _plain(self, value: float, *, sign: bool = False) -> str:
        text = f"{value:{'+' if sign else ''},.{self.places}f}"
        return text.replace("-", "").replace("+", "") if float(text.replace(",", "")) == 0.0 else text


def _numbers(rows: Sequence[Any]) -> list[float]:
    return [
        float(side[name])
        for row in rows
        for side in (row.get("before"), row.get("after"))
        if side is not None
        for name in ("bias", "low", "high")
    ]


def _grid(names: Sequence[str], columns: dict[str, list[str]], marks: Sequence[bool], head: str) -> list[str]:
    """Lines of a table: a star where something is biased, names that are cut, numbers that are not."""
    widths = {name: max(len(name), *map(len, cells)) for name, cells in columns.items()}
    room = WIDTH - 2 - sum(2 + width for width in widths.values())
    room = max(8, min(room, max(len(head), *map(len, names))))
    lines = [(f"  {head:<{room}}" + "".join(f"  {name:>{widths[name]}}" for name in columns)).rstrip()]
    for k, name in enumerate(names):
        cells = "".join(f"  {columns[each][k]:>{widths[each]}}" for each in columns)
        cut = shortened(name, room - 2) if len(name) > room else name
        lines.append(f"{'*' if marks[k] else ' '} {ascii_text(cut)[:room]:<{room}}{ascii_text(cells)}".rstrip())
    return lines


def _groups(result: "Result", rows: Sequence[Any]) -> list[str]:
    """All rows and the groups with the most bias, the worst first."""
    units, sides, covers = _Units(result, rows), list(result.columns), result.wording.coverage is not None
    last = [row.get(sides[-1]) for row in rows]
    columns = {"rows": [count(row["rows"]) for row in rows]}
    for which in sides:
        cells, name = [row.get(which) for row in rows], which if len(sides) > 1 else ""
        if covers:
            columns[f"covered {name}".strip()] = [units.level(cell["coverage"]) if cell else "-" for cell in cells]
            if result.task == "interval":
                columns[f"width {name}".strip()] = [precise(cell["width"]) if cell else "-" for cell in cells]
        else:
            told = [units.level(cell.get("predicted", cell.get("confidence"))) if cell else "-" for cell in cells]
            columns[name or "predicted"] = told
    if not covers:
        firsts = [row.get(sides[0]) or {} for row in rows]
        observed = [units.level(cell.get("observed", cell.get("right"))) for cell in firsts]
        columns = {"rows": columns.pop("rows"), **columns, "observed": observed}
    name = "bias" if len(sides) == 1 else "bias now"
    if result.task != "interval":
        columns[name] = [units.bias(cell["bias"]) if cell else "-" for cell in last]
    columns["95 % CI"] = [units.span(cell["low"], cell["high"]) if cell else "-" for cell in last]
    # Columns give way where names would have no room.
    names = [group_name(row["group"]) for row in rows]
    for spare in ("width before", name, "covered before") if len(sides) > 1 else ():
        taken = sum(2 + max(len(each), *map(len, cells)) for each, cells in columns.items())
        if taken > WIDTH - 2 - min(max(map(len, names)), 34):
            columns.pop(spare, None)
    marks = [bool(cell and cell["off"]) for cell in last]
    return _grid(names, columns, marks, "group")


def _classes(result: "Result", rows: Sequence[Any]) -> list[str]:
    """The likeliest class and each class: how often it came, what was predicted, and how many groups are biased."""
    from swapcal.text.verdict import class_title

    units, sides = _Units(result, rows), list(result.columns)
    last = [row[sides[-1]] for row in rows]
    columns = {}
    for which in sides:
        cells = [row[which] for row in rows]
        predicted = [None if c["base_rate"] is None else c["base_rate"] + c["bias"] / 100.0 for c in cells]
        columns[which if len(sides) > 1 else "predicted"] = [units.level(each) for each in predicted]
    columns["came up"] = [units.level(cell["base_rate"]) for cell in last]
    columns["95 % CI of bias"] = [units.span(cell["low"], cell["high"]) for cell in last]
    if result.n_groups:
        columns["groups biased"] = [f"{cell['groups_off']:,} of {cell['groups']:,}" for cell in last]
    marks = [cell["off"] or cell["groups_off"] > 0 for cell in last]
    return _grid([class_title(row["title"]) for row in rows], columns, marks, "class")


def _models(result: "Result", rows: Sequence[Any]) -> list[str]:
    """A line for each model."""
    units, cells = _Units(result, rows), [row["before"] for row in rows]
    pairs = [result.paired.get(row["title"]) for row in rows]
    columns = {
        "verdict": [row.get("verdict", "") for row in rows],
        "biased groups": [f"{cell['groups_off']:,} of {cell['groups']:,}" for cell in cells],
        "bias": [units.bias(cell["bias"]) for cell in cells],
        result.wording.loss: [precise(cell["loss"]) for cell in cells],
        "change": ["" if pair is None else pair.relative[1] for pair in pairs],
    }
    if any(cell["auc"] is not None for cell in cells):
        columns["AUC"] = ["-" if cell["auc"] is None else f"{cell['auc']:.3f}" for cell in cells]
    return _grid([row["title"] for row in rows], columns, [cell["off"] for cell in cells], "model")


def below(result: "Result") -> list[str]:
    """What stands below the headline: the loss before and after, or what could have been missed."""
    if result.kind == "comparison":
        return []
    if result.paired:
        name, pair = next(iter(result.paired.items()))
        low, middle, high = pair.relative
        span = f" (95 % CI {low.removesuffix(' %')} to {high})" if abs(pair.low) < float("inf") else ""
        line = f"{name[:1].upper()}{name[1:]} {precise(pair.before)} → {precise(pair.after)}: {middle}{span}."
        others = [f"{each} {precise(one.after)} ({one.relative[1]})" for each, one in result.against.items()]
        return [line, *([f"The usual way instead: {', '.join(others)}."] if others else [])]
    found = None if result.verdict.decision is None else result.verdict.decision.leading
    if found is None or found.biased or result.task == "classes":
        return []
    words = result.wording
    typical = found.detectable_in_groups
    more = f" overall, {words.size(typical)} in a typical group" if typical is not None else ""
    return [f"Could have been missed: {words.size(found.detectable)}{more}."]


def _tail(result: "Result") -> list[str]:
    """Scores, what was assumed, what the intervals mean, and what to do next."""
    lines = [_scores(result)]
    lines += [one for one in result.verdict.sentences if one.startswith(("Assumed: ", "Learned ", "Outcomes came "))]
    lines += [f"{counted(result.counts.bad_rows)} {BAD.removeprefix('rows ')}."] if result.counts.bad_rows else []
    lines += _unshown(result)
    lines.append(_reading(result))
    lines.append(f"Next: {next_step(result)}")
    return [line for line in lines if line]


def _unshown(result: "Result") -> tuple[str, ...]:
    """Why a model that is biased is shown as it is."""
    made, late = result.verdict.decision, result.lateness
    if made is None or made.reason != "unchanged" or late is None or late.since is None:
        return ()
    return late.sentences[:1]


def _reading(result: "Result") -> str:
    if result.kind == "comparison":
        return ""
    counted_rows = ""
    if result.clusters is not None:
        per = f"day of {result.clusters.column}" if result.clusters.by_day else result.clusters.column
        counted_rows = f"; rows of one {per} count together ({count(result.clusters.count)})"
    elif result.config.time is not None:
        counted_rows = "; every row counts by itself"
    unit = f" ({result.wording.unit})" if result.wording.unit else ""
    asked = result.wording.coverage
    bias = "predicted - observed" if asked is None else f"coverage - {percent(asked)}"
    return f"* biased: the 95 % CI of {bias}{unit} leaves out 0, jointly{counted_rows}."


def _scores(result: "Result") -> str:
    sides = list(result.columns.values())
    if result.kind == "comparison" or result.task != "scalar":
        return ""
    known = [side.scores for side in sides if side.scores is not None]
    constant = sides[0].constant_loss
    best = "" if constant is None or len(sides) > 1 else f" (best constant {precise(constant)})"
    parts = [] if result.paired else [f"{result.wording.loss} {precise(sides[0].loss)}{best}"]
    if len(known) == len(sides):
        parts.append("log loss " + " -> ".join(precise(one.log_loss) for one in known))
        ordered = [f"{one.auc:.3f}" for one in known if one.auc is not None]
        parts += [f"AUC {' -> '.join(ordered)}"] if len(ordered) == len(known) else []
    text = ", ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def next_step(result: "Result") -> str:
    """What to do now, in a sentence."""
    made = result.verdict.decision
    command = next((one[6:] for one in result.verdict.sentences if one.startswith("Next: ")), "")
    kind = result.verdict.kind
    if kind == "TOO FEW ROWS" and made is not None and made.leading is not None:
        needed = result.counts.scored * (made.leading.detectable / 0.05) ** 2
        if result.wording.scale == 100.0 and needed > 1.5 * result.counts.scored:
            rows = count(float(f"{needed:.2g}"))
            return f"about {rows} rows would show a bias of 5 points overall; fewer, larger groups help."
        return "more rows, or fewer and larger groups, show smaller biases."
    steps = {
        "CALIBRATED": "nothing to fix. To be told when that changes: swapcal watch --help",
        "NO CHANGE NEEDED": "keep the model's predictions. To be told when that changes: swapcal watch --help",
        "BIASED": "fewer and larger groups, or another model: this is corrected already."
        if result.kind == "run"
        else command or "correct it: swapcal run, or sc.recalibrate, and see what is left.",
        "RETRAIN": "fit the model again, with other features or newer rows.",
        "COMPARED": "audit the one that is to be used by itself.",
    }
    if kind not in ("IMPROVED", "NOT CORRECTED"):
        return steps[kind]
    better = {name: pair for name, pair in result.against.items() if result.change and pair.after < result.change.after}
    best = min(better, key=lambda name: better[name].after, default="")
    if kind == "IMPROVED":
        poor = made is not None and made.before is not None and not made.before.knows
        instead = f", or the {best}, whose loss is lower here" if best else ""
        until = " until there is another model: this one says little more than a constant"
        return f"use the corrected predictions{until if poor else instead}."
    early = any(words in each for each in _unshown(result) for words in ("needed to judge", "that it takes"))
    way = "wait for more outcomes, or " if early else ""
    if result.n_groups and not (early or result.config.learns):
        way = "let a regression learn the groups as well (--learn), or "
    return f"{f'try the {best}, whose loss is lower here, or ' if best else way}fit the model again."


def title(result: "Result") -> str:
    """The file, what was predicted, and for how many."""
    rows = (result.first.counts or result.counts).scored
    return f"{result.source}: {result.y}, {counted(rows)}"


# --------
# What is behind a verdict: sentences, ranges of forecasts, scores, errors, what was assumed and left out.

N_WORST = 5
ERRORS = ("swap_error", "group_error", "overall_error", "chance_mean")


def behind(result: "Result") -> list[str]:
    """The lines that `-v` adds."""
    result = cleaned(result)
    lines = [*_wrapped(_facts(result), 0), ""]
    lines += [line for each in result.verdict.sentences if not each.startswith("Next: ") for line in _item(each)]
    if result.kind == "comparison":
        return [*lines, "", *_groups_of_models(result)]
    if result.task == "classes" and result.n_groups:
        title, rows = result.first.title, _group_rows(result)
        lines += [
            "",
            "Likeliest class:",
            *_groups(result, [row | row["sections"][title] for row in rows if title in row["sections"]]),
            "",
        ]
    if result.task == "scalar":
        lines += [line for each in _score_lines(result) for line in _item(each)]
    lines += [line for each in notes(result) for line in _item(capitalized(each))]
    return [*lines, *_ranges(result), *(_totals(result) if result.task == "scalar" else [])]


def _item(text: str) -> list[str]:
    return _wrapped(f"- {text}", 2)


def _facts(result: "Result") -> str:
    what = {
        "scalar": result.wording.name,
        "interval": f"{percent(result.wording.coverage or 0.0)} intervals",
        "classes": counted(len(result.sections) - 1, "class", "classes"),
    }[result.task]
    rows = (result.first.counts or result.counts).scored
    groups = counted(result.n_groups, "group") if result.n_groups else "no groups"
    return f"{result.source}: {what} of {result.y}, {counted(rows)}, {groups}"


def _group_rows(result: "Result") -> list[dict[str, Any]]:
    from swapcal.tasks.result import group_rows

    return group_rows(result)


def _groups_of_models(result: "Result") -> list[str]:
    """The bias of each model in the groups that some model is worst for."""
    rows, titles = _group_rows(result)[: LINES - 5], [section.title for section in result.sections]
    cells = {title: [(row["sections"].get(title) or {}).get("before") for row in rows] for title in titles}
    units = _Units(result, [{"before": cell} for column in cells.values() for cell in column])
    columns = {"rows": [count(row["rows"]) for row in rows]}
    for title, column in cells.items():
        texts = ["-" if cell is None else f"{units.bias(cell['bias'])}{'*' if cell['off'] else ' '}" for cell in column]
        columns[shortened(title, 16)] = texts
    return _grid([group_name(row["group"]) for row in rows], columns, [False] * len(rows), "bias by group (* biased)")


def _score_lines(result: "Result") -> list[str]:
    """The scores that people know, a sentence for each column of forecasts."""
    lines = []
    for side in result.columns.values():
        one = side.scores
        line = f"{capitalized(side.label)}: {result.wording.loss} {precise(side.loss)}"
        if one is not None:
            line += f", of it miscalibration {number(one.miscalibration)}, discrimination {number(one.discrimination)}"
            line += f", uncertainty {number(one.uncertainty)}; log loss {precise(one.log_loss)}"
            line += "" if one.auc is None else f", AUC {one.auc:.3f}"
        lines.append(f"{line}.")
    return lines


def _ranges(result: "Result") -> list[str]:
    """The worst ranges of forecasts whose interval leaves out 0, of all rows or of a group."""
    words, side = result.wording, list(result.columns.values())[-1]
    cells = [cell for cell in (*side.ranges, *side.worst) if cell.low > 0 or cell.high < 0][:N_WORST]
    if result.task != "scalar" or not cells:
        return []
    scaled = [{each: words.scale * getattr(cell, each) for each in ("mean", "low", "high")} for cell in cells]
    units = _Units(result, [{"before": {"bias": cell["mean"], **cell}} for cell in scaled])
    columns = {
        "forecast": [units.level(cell.value) if words.coverage is None else number(cell.value) for cell in cells],
        "rows": [count(cell.count) for cell in cells],
        "bias": [units.bias(cell["mean"]) for cell in scaled],
        "95 % CI": [units.span(cell["low"], cell["high"]) for cell in scaled],
    }
    names = [group_name(cell.name) for cell in cells]
    return ["", *_grid(names, columns, [True] * len(cells), f"biased ranges of {side.label}")]


def _totals(result: "Result") -> list[str]:
    """Errors over all values and groups, before and after, as totals and as a bias per row."""
    from swapcal.text.verdict import per_round

    sides, words, r = result.columns, result.wording, result.r
    shown = [each for each in ERRORS if all(getattr(side, each) is not None for side in sides.values())]
    columns = {}
    for side in sides.values():
        columns[side.label] = [number(getattr(side, each)) for each in shown]
        per_row = [number(words.scale * per_round(getattr(side, each), side, r), 2) for each in shown]
        columns["per row" + " " * (side is not result.first.leading)] = per_row
    names = [QUANTITIES[each] for each in shown]
    if result.guarantee is not None and result.guarantee.bound is not None:
        names.append(QUANTITIES["guarantee"])
        for k, column in enumerate(columns.values()):
            column.append(number(result.guarantee.bound) if k == len(columns) - 2 else "")
    mean = "root mean square bias" if r == 2.0 else f"mean bias of power {r:g}"
    unit = f" in {words.unit}" if words.unit else ""
    note = f"per row: {mean}{unit}. What these are: docs/guarantees.md"
    return ["", *_grid(names, columns, [False] * len(names), "error, in all"), note]

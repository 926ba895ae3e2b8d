"""The verdict in words, for forecasts, intervals, classes and models: use it, keep it, fit again; and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from swapcal.audits.decision import LITTLE, Decision, Name, decide, explained, find, idle
from swapcal.audits.discovery import Discovery
from swapcal.audits.scores import Paired
from swapcal.audits.summary import ColumnSummary
from swapcal.errors import InvalidInput
from swapcal.properties import Probability
from swapcal.properties.base import Wording
from swapcal.text.numbers import (
    MINUS,
    capitalized,
    change,
    counted,
    group_name,
    number,
    percent,
    precise,
    readable,
    shortened,
)
from swapcal.text.sentences import groups_off, seen_sentence, worst_groups

if TYPE_CHECKING:
    from swapcal.tasks.result import Section


# What a colour or a mark says of each: all is well, look closer, or something is wrong.
TONES = {"CALIBRATED": "good", "IMPROVED": "good", "NO CHANGE NEEDED": "good", "TOO FEW ROWS": "unsure"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do: `kind`, one headline, and sentences that say why; and what was decided, in numbers."""

    kind: Name
    headline: str
    sentences: tuple[str, ...]
    decision: Decision | None = None

    @property
    def tone(self) -> str:
        """Whether this is good news ("good"), bad news ("bad"), or no news ("unsure")."""
        return TONES.get(self.kind, "bad")


def verdict(
    before: ColumnSummary | None,
    after: ColumnSummary | None = None,
    *,
    wording: Wording,
    paired: Paired | None = None,
    changed: int | None = None,
    command: str | None = None,
) -> Verdict:
    """What to make of one column of forecasts (an audit), or of a model's own and swapcal's beside it (a run).

    Parameters
    ----------
    before, after : ColumnSummary, optional
        The model's own forecasts, and swapcal's.
    wording : Wording
        Of the property that was forecast.
    paired : Paired, optional
        Losses before and after.
    changed : int, optional
        How many forecasts differ from the model's own.
    command : str, optional
        The command that takes bias away.

    Notes
    -----
    What is decided, and why, says `audits.decision.decide`; this puts it into words.
    """
    if before is None or after is None:
        side = before or after
        if side is None:
            raise InvalidInput("a verdict needs forecasts: before, after or both")
        return _alone(side, wording, command, ours=after is not None)
    made = decide((before,), (after,), paired, changed)
    left = what_is_off(after, wording) if find(after).biased else ""
    outlook = _Outlook(
        "forecasts",
        wording.loss,
        paired,
        counts=_counts(before, after),
        losses=(f"{_became(f'The {wording.loss}', before.loss, after.loss, paired)}.",),
        still=(f"Some bias is left: {left}.",) if left else (),
    )
    if made.before is None or not made.before.biased:
        nothing = _nothing(before, wording, "")
        seen = tuple(text for text in (*_where(before, wording), *nothing.sentences) if text)
        holding = f"{nothing.headline[0].lower()}{nothing.headline[1:-1]}"
        return replace(outlook, holding=holding, seen=seen).advice(made)
    off = what_is_off(before, wording)
    ours = off.replace("forecasts are", "forecasts were", 1) if off.startswith("forecasts are") else off
    return replace(outlook, off=ours, named=_where(before, wording)).advice(made)


# Why a model that is biased was not corrected.
_NOT_CORRECTED = {
    "unchanged": "no prediction was changed",
    "cost": "the {loss} has become larger, by {gain}",
    "log loss": "the log loss is {log_loss:.1f} % higher",
    "bias left": "more than half of the bias is left",
}


@dataclass(frozen=True, slots=True)
class _Outlook:
    """What a model's forecasts, intervals or probabilities were and what swapcal's are, in clauses and sentences.

    off: what is wrong with the model's; empty where nothing is, and then `holding` says so. price: what goes with ours.
    now, counts, named, losses, still, seen: sentences.
    """

    things: str
    loss: str
    paired: Paired | None
    off: str = ""
    holding: str = ""
    price: str = ""
    now: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    losses: tuple[str, ...] = ()
    still: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()

    def advice(self, made: Decision) -> Verdict:
        """To use ours, to keep the model's, or to wait."""
        gain = "" if self.paired is None else self.paired.relative[1]
        sentences = (*self.now, *self.counts, *self.named, *self.losses, *self.still, *self.seen)
        counted_groups = self.counts[0].removesuffix(".") if self.counts else ""
        nobody = made.before is not None and made.before.reason in ("ranges", "together")
        if made.name == "IMPROVED" and (not self.off or (nobody and made.reason == "loss")):
            headline = f"Use the corrected {self.things}: the {self.loss} is {gain.lstrip(MINUS)} lower."
        elif made.name == "IMPROVED":
            headline = f"Use the corrected {self.things}. {counted_groups or capitalized(self.off)}{self.price}."
        elif made.name == "NOT CORRECTED":
            why = _NOT_CORRECTED[made.reason].format(loss=self.loss, gain=gain, log_loss=100 * (made.log_loss or 0.0))
            headline = f"{capitalized(why)}, and the model is biased: {self.off}."
        else:
            worse = self.paired is not None and self.paired.low > 0
            price = f"; corrected ones would cost {gain} of the {self.loss}" if worse else ""
            headline = f"Keep the model's {self.things}: {self.holding}{price}."
        return Verdict(made.name, headline, sentences, made)


def with_discovery(verdict: Verdict, discovery: Discovery, sentences: tuple[str, ...]) -> Verdict:
    """The verdict with what a search has found: confirmed bias of a subgroup is bias, whoever listed it."""
    confirmed = discovery.confirmed
    both = (*sentences, *verdict.sentences)
    if verdict.kind not in ("CALIBRATED", "TOO FEW ROWS") or not confirmed:
        return replace(verdict, sentences=both if confirmed else (*verdict.sentences, *sentences))
    name, side = shortened(confirmed[0].name, 70), "high" if confirmed[0].bias > 0 else "low"
    return replace(
        verdict, kind="BIASED", headline=f"Too {side} where {name}, which a search has found.", sentences=both
    )


def per_round(error: float, side: ColumnSummary, r: float) -> float:
    """An error as a bias per round: (error / T)^(1/r), which at r = 2 is a root mean square."""
    return float((max(error, 0.0) / side.weight) ** (1 / r)) if side.weight else 0.0


def _knowledge_sentence(side: ColumnSummary, wording: Wording) -> str:
    known, name = explained(side), wording.loss
    if known is None:
        return f"All outcomes are the same; the {name} is {precise(side.loss)} where 0 is possible."
    if side.slope is not None and side.slope < 0 and known >= LITTLE:
        return "Higher forecasts go with lower outcomes: the forecasts are upside down."
    constant = "" if side.constant is None else f", {number(side.constant)},"
    return (
        f"The {name} is {precise(side.loss)}; the best constant{constant} has "
        f"{precise(side.constant_loss or 0.0)}, and these forecasts, each value replaced by the best one, would have "
        f"{precise(side.ideal_loss or 0.0)}, {100 * known:.1f} % less than the constant."
    )


def what_is_off(side: ColumnSummary, wording: Wording) -> str:
    """The bias in a clause, the part that matters most first."""
    words, groups, found = wording, side.groups, find(side)
    if found.overall or found.groups:
        everybody = f"forecasts are {words.bias(float(groups.mean[0]))} on average" if found.overall else ""
        if words.noun and everybody:
            everybody = everybody.removeprefix("forecasts are ")
        some = groups_off(groups) if found.groups else ""
        worst = [j for j in groups.ranked().tolist() if groups.biased[j]][:1]
        named = "".join(f", worst {group_name(groups.name[j])}: {words.bias(float(groups.mean[j]))}" for j in worst)
        return "; ".join(part for part in (everybody, some + named) if part)
    if found.ranges:
        many = f"{found.ranges:,} ranges of forecasts are" if found.ranges > 1 else "a range of forecasts is"
        return f"right on average for every group, but {many} biased"
    return f"groups differ by more than chance, though none of {counted(found.n_groups, 'group')} can be named"


def _where(side: ColumnSummary, wording: Wording) -> tuple[str, ...]:
    """The worst groups with intervals and since when; or the worst range of forecasts, if no group stands out."""
    return worst_groups(side, wording) or ((side.witness,) if side.n_biased else ())


# Headlines of one column that is biased, by whose it is and what is to be done; the bias goes into the braces.
_ALONE = {
    ("model", "RETRAIN"): "Fit the model again: {}.",
    ("model", "BIASED"): "{}.",
    ("swapcal", "RETRAIN"): "The groups alone say little: a model is needed ({}).",
    ("swapcal", "BIASED"): "Some bias is left: {}.",
}

_FIT_AGAIN = "Fit the model again with other features or newer rows; recalibrated, it is hardly more than a constant."
_RUN = "correct it: swapcal run, or sc.recalibrate, and see what is left."


def _alone(side: ColumnSummary, wording: Wording, command: str | None, *, ours: bool) -> Verdict:
    """One column: that of a model, or `ours` of a run without a model to start from."""
    knowledge, made = _knowledge_sentence(side, wording), decide((side,))
    if made.name in ("CALIBRATED", "TOO FEW ROWS"):
        return replace(_nothing(side, wording, knowledge), decision=made)
    headline = capitalized(_ALONE["swapcal" if ours else "model", made.name].format(what_is_off(side, wording)))
    where = _where(side, wording)
    sentences = (knowledge, *where) if made.name == "RETRAIN" else (*where, knowledge)
    advice = _FIT_AGAIN if made.name == "RETRAIN" else f"Next: {command or _RUN}"
    return Verdict(made.name, headline, sentences if ours else (*sentences, advice), made)


def _nothing(side: ColumnSummary, wording: Wording, knowledge: str) -> Verdict:
    """No bias that shows."""
    found, words = find(side), wording
    more = ("They say little, though: a constant would do as well.",) if idle(side) else ()
    sentences = (seen_sentence(side.groups, words), knowledge, *more)
    if found.few_clusters:
        return Verdict("TOO FEW ROWS", "There are too few clusters to say anything of any group.", sentences)
    n = found.n_groups
    whom = "" if n == 0 else f" in {n:,} groups" if n > 1 else " in the group"
    if found.few_rows:
        rows = counted(side.groups.rows[0])
        return Verdict("TOO FEW ROWS", f"No bias shows{whom}, but {rows} can show only a large one.", sentences)
    return Verdict("CALIBRATED", f"No bias found{whom}.", sentences)


def _became(what: str, before: float, after: float, paired: Paired | None) -> str:
    """What a loss was and is, with the interval of the change where that is known."""
    change = "" if paired is None else f": {paired.change}"
    return f"{what} was {precise(before)} and is {precise(after)}{change}"


def _counts(before: ColumnSummary, after: ColumnSummary, what: str = "Biased groups") -> tuple[str, ...]:
    """Groups that are off, before and after."""
    if not before.groups.n_used:
        return ()
    first, last = before.groups.n_biased, after.groups.n_biased
    n = max(before.groups.n_used, after.groups.n_used)
    return (f"{what}: {first:,} of {n:,} before, {last:,} after.",)


# --------
# Probabilities of classes: whether to use the recalibrated ones, and which classes were off.

BRIER, TOP = "Brier score of all classes", "top"
N_NAMED = 3

_NO_CLASS = "no class is biased"


def class_title(name: str) -> str:
    """The name of a class, or of the likeliest one, for the head of a row."""
    return "likeliest class" if name == TOP else shortened(readable(name), 40)


def class_verdict(sections: "Sequence[Section]", paired: Mapping[str, Paired], changed: int | None = None) -> Verdict:
    """What to make of probabilities of classes, the model's own and swapcal's.

    Parameters
    ----------
    sections : sequence of Section
        The likeliest class, with its means, and then each class.
    paired : mapping
        Losses before and after on the same rows: the Brier score of all classes, and the log loss.
    changed : int, optional
        How many rows have other probabilities than the model's own.

    Notes
    -----
    The probabilities are biased where those of the likeliest class or of any class are.
    """
    top, classes = sections[0], sections[1:]
    if top.after is None:
        raise InvalidInput("a verdict needs the forecasts of a run")
    left, now, losses = _what_is_off_in_classes(sections, "after"), (_confidence(top),), (_class_losses(top, paired),)
    sides = [[one.columns[which] for one in sections if which in one.columns] for which in ("before", "after")]
    made = decide(sides[0], sides[1], paired.get(BRIER), changed)
    if top.before is None and left:
        return Verdict(made.name, _ALONE["swapcal", "BIASED"].format(left), (*now, *losses), made)
    if top.before is None:
        return Verdict(made.name, f"The probabilities hold: {_NO_CLASS}.", (*now, *losses), made)
    off, were_off, log = _what_is_off_in_classes(sections, "before"), _off(classes, "before"), paired.get("log loss")
    words, others = Probability().wording, len(were_off) - N_NAMED
    named = [f"Class {class_title(one.title)}: {what_is_off(one.leading, words)}." for one in were_off[:N_NAMED]]
    if others > 0:
        named.append(f"{others:,} more {'class was' if others == 1 else 'classes were'} biased.")
    return _Outlook(
        "probabilities",
        BRIER,
        paired.get(BRIER),
        off=off,
        holding=_NO_CLASS,
        price=f", but mind the log loss, {log.relative[1]}" if log and log.low > 0 else "",
        now=now,
        counts=_class_counts(top.before, top.after, classes),
        named=tuple(named),
        losses=losses,
        still=(f"Left: {left}.",) if left else (),
    ).advice(made)


def _off(classes: "Sequence[Section]", which: str) -> "list[Section]":
    """Classes with significant bias, the largest bias of all rows first."""
    off = [one for one in classes if which in one.columns and find(one.columns[which]).biased]
    return sorted(off, key=lambda one: -abs(float(one.columns[which].groups.mean[0])))


def _what_is_off_in_classes(sections: "Sequence[Section]", which: str) -> str:
    """The bias in a clause: of the likeliest class, and how many classes are off."""
    top, off, parts = sections[0].columns.get(which), _off(sections[1:], which), []
    if top is not None and find(top).biased:
        reason, whose = what_is_off(top, Probability().wording), "the probability of the likeliest class is "
        direct = reason.startswith(("forecasts are ", "right on average", "off by"))
        parts.append(
            f"{whose}{reason.removeprefix('forecasts are ')}" if direct else f"of the likeliest class, {reason}"
        )
    if off:
        names = ", ".join(class_title(one.title) for one in off[:N_NAMED]) + (", ..." if len(off) > N_NAMED else "")
        parts.append(
            f"{len(off):,} of {len(sections) - 1:,} classes {'is' if len(off) == 1 else 'are'} biased ({names})"
        )
    return "; ".join(parts)


def _confidence(top: "Section") -> str:
    shares = {
        which: f"{coverage_text(means['confidence'][0])} on average, and came up in {coverage_text(means['right'][0])}"
        for which, means in top.means.items()
    }
    was = f"{shares['before']} of the rows; now it is given " if "before" in shares else ""
    return f"The likeliest class was given {was}{shares['after']}{'' if was else ' of the rows'}."


def _class_counts(before: ColumnSummary, after: ColumnSummary, classes: "Sequence[Section]") -> tuple[str, ...]:
    """Groups that are off, before and after, over the likeliest class and all classes."""
    n = max(before.groups.n_used, after.groups.n_used)
    if not n:
        return ()
    first, last = (
        sum(one.columns[which].groups.n_biased for one in classes if which in one.columns)
        for which in ("before", "after")
    )
    return (
        f"Biased groups: for the likeliest class {before.groups.n_biased:,} of {n:,} before, "
        f"{after.groups.n_biased:,} after; over all classes {first:,} of {n * len(classes):,} before, "
        f"{last:,} after.",
    )


def _class_losses(top: "Section", paired: Mapping[str, Paired]) -> str:
    if not paired:
        brier, log_loss = (precise(float(top.means["after"][name][0])) for name in ("brier", "log_loss"))
        return f"The {BRIER} is {brier}, the log loss {log_loss}."
    texts = (_became(f"the {name}", pair.before, pair.after, pair) for name, pair in paired.items())
    return f"{capitalized('; '.join(texts))}."


# --------
# Intervals: whether to use the recalibrated ones, coverage before and after, width and score.

SCORE = "interval score"


def coverage_text(share: float) -> str:
    """A share of outcomes covered.

    Examples
    --------
    >>> coverage_text(0.8951)
    '89.5 %'
    """
    return f"{100.0 * share:.1f} %"


def interval_verdict(
    section: "Section", wording: Wording, paired: Paired | None, changed: int | None = None
) -> Verdict:
    """What to make of intervals, the model's own and swapcal's.

    Parameters
    ----------
    section : Section
        The audits of coverage, and mean widths.
    wording : Wording
        Of a quantile at the level that was asked for.
    paired : Paired, optional
        Interval scores before and after, on the same rows.
    changed : int, optional
        How many intervals differ from the model's own.
    """
    before, after, level = section.before, section.after, wording.coverage
    if after is None or level is None:
        raise InvalidInput("a verdict on intervals needs those of a run, and the coverage that was asked for")
    widths = {which: float(some["width"][0]) for which, some in section.means.items()}
    sizes = _width_sentence(widths.get("before"), widths["after"]), _score_sentence(paired, after)
    now = (_coverage_sentence(before, after, level),)
    found, seen = find(after), (seen_sentence(after.groups, wording),)
    left = what_is_off(after, wording) if found.biased else ""
    if before is None:
        made = decide((), (after,))
        if left:
            sentences = (*now, *worst_groups(after, wording), *sizes)
            return Verdict(made.name, f"The intervals are still learning: {left}.", sentences, made)
        return Verdict(made.name, f"The intervals hold: {_holding(after, level)}.", (*now, *sizes, *seen), made)
    made, off = (
        decide((before,), (after,), paired, changed),
        what_is_off(before, wording) if find(before).biased else "",
    )
    if off.startswith("coverage too"):
        off = f"the model's coverage is{off.removeprefix('coverage')}"
    return _Outlook(
        "intervals",
        SCORE,
        paired,
        off=off,
        holding=_holding(before, level),
        now=now,
        counts=_counts(before, after, "Groups whose coverage is biased"),
        named=worst_groups(before, wording),
        losses=sizes,
        still=(f"Not there yet: {left}.",) if left else (),
        seen=() if off else seen,
    ).advice(made)


def _width_sentence(before: float | None, after: float) -> str:
    """The mean width, and what it was."""
    if before is None:
        return f"The mean width is {precise(after)}."
    text = change(before, after)
    more = f" ({text})" if text else ""
    return f"The mean width was {precise(before)} and is {precise(after)}{more}."


def _score_sentence(paired: Paired | None, after: ColumnSummary) -> str:
    start = f"The {SCORE}, width plus a price for misses,"
    if paired is None:
        return f"{start} is {precise(after.loss)}; lower is better."
    return f"{_became(start, paired.before, paired.after, paired)}."


def _coverage_sentence(before: ColumnSummary | None, after: ColumnSummary, level: float) -> str:
    """Coverage of all rows and of the group that is furthest away, before and after."""
    now = coverage_text(level + float(after.groups.mean[0]))
    was = "" if before is None else f"was {coverage_text(level + float(before.groups.mean[0]))} and "
    text = f"Coverage of all rows {was}is {now}; {percent(level)} was asked for."
    sides = [(which, side) for which, side in (("before", before), ("after", after)) if side is not None]
    worst = [f"{_worst(side, level)} {which}" if before is not None else _worst(side, level) for which, side in sides]
    if any(worst) and after.groups.n_used:
        text += f" Furthest from it: {', '.join(worst)}."
    return text


def _worst(side: ColumnSummary, level: float) -> str:
    """The group that is furthest from the level beyond what chance explains, or, without any, by itself."""
    groups = side.groups
    chosen = groups.ranked()
    if not len(chosen):
        return ""
    j = int(chosen[np.argmax(np.abs(groups.near[chosen]))]) if groups.n_biased else int(chosen[0])
    return f"{shortened(group_name(groups.name[j]), 40)} with {coverage_text(level + float(groups.mean[j]))}"


def _holding(side: ColumnSummary, level: float) -> str:
    groups = side.groups
    covered = (
        f"{coverage_text(level + float(groups.mean[0]))} of the outcomes are covered where {percent(level)} was asked"
    )
    if not groups.n_used:
        return covered
    return f"{covered}, and {groups_off(groups) if groups.n_biased else 'no group is biased'}"


# --------
# Several models: which is best, and where.


def comparison_verdict(sections: "Sequence[Section]", paired: Mapping[str, Paired], loss: str, n_rows: int) -> Verdict:
    """Which model is best, and every model beside the first; nothing is claimed that an interval does not bear out.

    Parameters
    ----------
    sections : sequence of Section
        The audit of each model; those of all but the first with the differences of their losses by group.
    paired : mapping
        For every model but the first, its loss and that of the first on the same rows.
    loss : str
        How people call the loss.
    n_rows : int
        Rows with a forecast of every model.
    """
    first, off = sections[0].title, {one.title: one.leading.groups.n_biased for one in sections}
    names = {model: shortened(model, 40) for model in off}
    better = {model: pair for model, pair in paired.items() if pair.high < 0.0}
    fewest = min(off, key=lambda model: off[model])
    if better:
        best = min(better, key=lambda model: better[model].difference)
        groups = f"biased groups {off[best]:,} instead of {off[first]:,}"
        headline = f"{names[best]} is better than {names[first]}: {loss} {better[best].relative[1]}, {groups}."
    elif paired and all(pair.low > 0.0 for pair in paired.values()):
        verb = "is" if off[first] == 1 else "are"
        groups = counted(off[first], "group")
        headline = f"{names[first]} has the lowest {loss}; {groups} {verb} biased."
    else:
        more = f"; fewest biased groups: {off[fewest]:,} with {names[fewest]}, {off[first]:,} with {names[first]}"
        more = more if off[fewest] < off[first] else ""
        headline = f"No model has a significantly lower {loss} than {names[first]}{more}."
    sentences = [_model_sentence(one, first, paired[one.title], loss) for one in sections[1:] if one.title in paired]
    sentences.append(f"Losses were compared on the {counted(n_rows)} with a forecast of every model.")
    return Verdict("COMPARED", headline, tuple(sentences))


def _model_sentence(section: "Section", first: str, pair: Paired, loss: str) -> str:
    """The difference of a model's loss from that of the first, where it is better and where it is worse."""
    low, middle, high = pair.relative
    text = f"{section.title}: {loss} {middle} against {first} (95 % CI {low} to {high})"
    difference = section.difference
    if difference is None or len(difference.mean) < 2:
        return f"{text}."
    sure = {group: difference.sure(group) for group in difference.mean if group != "all"}
    better, worse = ([group for group, value in sure.items() if value == sign] for sign in (-1, 1))
    text += f"; significantly lower in {len(better):,} of {counted(len(sure), 'group')}, higher in {len(worse):,}"
    if worse:
        worst = max(worse, key=lambda group: difference.low[group])
        text += f", most for {group_name(worst)}, by {number(difference.mean[worst])}"
    return f"{text}."

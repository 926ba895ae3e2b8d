"""The verdict in words, for forecasts, intervals, classes and models: use it, keep it, fit again; and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from swapcal.audits.discovery import Discovery
from swapcal.audits.scores import Paired
from swapcal.audits.summary import NEGLIGIBLE, ColumnSummary
from swapcal.errors import InvalidInput
from swapcal.properties import Probability
from swapcal.properties.base import Wording
from swapcal.text.numbers import capitalized, change, counted, group_name, number, percent, precise, readable, shortened
from swapcal.text.sentences import groups_off, seen_sentence, worst_groups

if TYPE_CHECKING:
    from swapcal.tasks.result import Section

# Forecasts that take less than this part off the loss of the best constant, however recalibrated, know nothing.
LITTLE = 0.01

# An AUC above it says that forecasts tell cases apart, also where events are too rare to show in the Brier score.
ORDERED = 0.55

# A run has taken bias away if at most this part of it is left; a log loss that rises by more than this is a price.
HEALED, DEARER = 0.5, 0.005

LESS_THAN_HALF = "and so far less than half of that is gone"

# If chance alone gives a bias of this part of a row's typical error, there are too few rows to tell anything.
HOPELESS = 0.5


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do: `kind`, one headline, and sentences that say why. Several models are "compared"."""

    kind: Literal["fine", "recalibrate", "refit", "compared"]
    headline: str
    sentences: tuple[str, ...]


def verdict(
    before: ColumnSummary | None,
    after: ColumnSummary | None = None,
    *,
    wording: Wording,
    r: float = 2.0,
    paired: Paired | None = None,
    command: str | None = None,
) -> Verdict:
    """What to make of one column of forecasts (an audit), or of a model's own and swapcal's beside it (a run).

    Parameters
    ----------
    before, after : ColumnSummary, optional
        The model's own forecasts, and swapcal's.
    wording : Wording
        Of the property that was forecast.
    r : float
        Power of the swap error.
    paired : Paired, optional
        Losses before and after.
    command : str, optional
        The command that takes bias away.

    Notes
    -----
    *Biased*: everybody or a group, over all its rows, is off beyond doubt and by more than 2 % of a row's typical
    error; or a cell is, its interval leaving out 0 by more than 5 % of that; or the swap error is more than chance
    would give in 95 streams of 100, and its excess over chance, as a root mean square bias, is more than those 5 %.
    Everybody, groups and cells share an error rate of 5 %. Smaller bias is real, perhaps, but not worth a correction,
    and where groups are off by less the headline says so.

    *fine*: not biased. *refit*: biased, and the forecasts know little: with the best value put in the place of each,
    they would take less than 1 % off the loss of the best constant forecast (and, for outcomes 0 or 1, their AUC is
    below 0.55: the Brier score of rare events hardly moves whatever one knows), or higher forecasts go with lower
    outcomes. *recalibrate*: biased otherwise; or, in a run, the new forecasts have the smaller loss beyond doubt.
    A run advises to use its forecasts unless some bias is left, or more than half of what was there, and it has a
    price or has not healed: then it says "not yet".
    """
    if before is None or after is None:
        side = before or after
        if side is None:
            raise InvalidInput("a verdict needs forecasts: before, after or both")
        return _alone(side, wording, r, command, ours=after is not None)
    name = wording.loss
    losses = f"{_became(f'The {name}', before.loss, after.loss, paired)}."
    left = what_is_off(after, wording, r) if biased(after, r) else ""
    common = _Outlook("forecasts", name, paired, counts=_counts(before, after), losses=(losses,))
    if not biased(before, r):
        nothing = _nothing(before, wording, r, "")
        seen = tuple(text for text in (*_where(before, wording), *nothing.sentences) if text)
        return replace(common, holding=f"{nothing.headline[0].lower()}{nothing.headline[1:-1]}", seen=seen).advice()
    off = what_is_off(before, wording, r)
    if _know_nothing(after):
        advice = "Recalibrated, the forecasts are honest but say little; a better model is needed."
        sentences = (_knowledge_sentence(after, wording), losses, *common.counts, advice)
        return Verdict("refit", f"Fit the model again: {off}.", sentences)
    price = f"recalibrated forecasts cost {common.gain} of the {name}" if common.worse else _dearer(before, after)
    mended = healed(before, after)
    not_yet = ""
    if not common.better and (price or not mended) and (left or not mended):
        not_yet = f"but {price}" if price else LESS_THAN_HALF
    ours = off.replace("forecasts are", "the model's are", 1) if off.startswith("forecasts are") else off
    still = (f"Some bias is left, and falls with more rows: {left}.",) if left else ()
    return replace(
        common,
        off=ours,
        not_yet=f"the model is off ({off}), {not_yet}" if not_yet else "",
        still=still,
        named=_where(before, wording),
    ).advice()


@dataclass(frozen=True, slots=True)
class _Outlook:
    """What a model's forecasts, intervals or probabilities were and what swapcal's are, in clauses and sentences.

    off: what is wrong with the model's; empty where nothing is, and then `holding` says so. not_yet: why ours are not
    better so far. price: what goes with them. now, counts, named, losses, still, seen: sentences.
    """

    things: str
    loss: str
    paired: Paired | None
    off: str = ""
    holding: str = ""
    not_yet: str = ""
    price: str = ""
    now: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    losses: tuple[str, ...] = ()
    still: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()

    @property
    def better(self) -> bool:
        """Whether the loss is smaller beyond doubt."""
        return self.paired is not None and self.paired.high < 0

    @property
    def worse(self) -> bool:
        """Whether the loss is larger beyond doubt."""
        return self.paired is not None and self.paired.low > 0

    @property
    def gain(self) -> str:
        """The change of the loss."""
        return "" if self.paired is None else self.paired.relative[1]

    def advice(self) -> Verdict:
        """To use ours, to keep the model's, or to wait."""
        if not self.off and self.better:
            headline = f"Use the recalibrated {self.things}: the {self.loss} changes by {self.gain}."
            return Verdict("recalibrate", headline, (*self.now, *self.counts, *self.losses, *self.still))
        if not self.off:
            price = f"; recalibrated ones would cost {self.gain} of the {self.loss}" if self.worse else ""
            headline = f"Keep the model's {self.things}: {self.holding}{price}."
            return Verdict("fine", headline, (*self.now, *self.counts, *self.losses, *self.seen))
        if self.not_yet:
            sentences = (*self.now, *self.still, *self.counts, *self.losses, *self.named)
            return Verdict("recalibrate", f"Not yet better: {self.not_yet}.", sentences)
        headline = f"Use the recalibrated {self.things}: {self.off}{self.price}."
        sentences = (*self.now, *self.counts, *self.named, *self.losses, *self.still)
        return Verdict("recalibrate", headline, sentences)


def with_discovery(verdict: Verdict, discovery: Discovery, sentences: tuple[str, ...]) -> Verdict:
    """The verdict with what a search has found: confirmed bias of a subgroup is bias, whoever listed it."""
    confirmed = discovery.confirmed
    both = (*sentences, *verdict.sentences)
    if verdict.kind != "fine" or not confirmed:
        return Verdict(verdict.kind, verdict.headline, both if confirmed else (*verdict.sentences, *sentences))
    name, side = shortened(confirmed[0].name, 70), "high" if confirmed[0].bias > 0 else "low"
    return Verdict("recalibrate", f"Recalibrate: too {side} where {name}, which a search has found.", both)


def headline_below_badge(verdict: Verdict) -> str:
    """The headline where a badge has said already what to do."""
    rest = verdict.headline.removeprefix("Recalibrate: ")
    return rest if rest == verdict.headline else capitalized(rest)


def per_round(error: float, side: ColumnSummary, r: float) -> float:
    """An error as a bias per round: (error / T)^(1/r), which at r = 2 is a root mean square."""
    return float((max(error, 0.0) / side.weight) ** (1 / r)) if side.weight else 0.0


def biased(side: ColumnSummary, r: float = 2.0) -> bool:
    """Whether there is bias beyond chance that is worth a correction."""
    return bool(side.worth_correcting().any()) or bool(side.n_worth_correcting) or _spread(side, r)


def explained(side: ColumnSummary) -> float | None:
    """The part of the best constant's loss that ideally recalibrated forecasts take off; None if there is no loss."""
    if not side.constant_loss or side.ideal_loss is None:
        return None
    return 1.0 - side.ideal_loss / side.constant_loss


def _spread(side: ColumnSummary, r: float) -> bool:
    """Whether all cells together show more than chance would, by more than is negligible."""
    excess = per_round(side.swap_error - (side.chance_mean or 0.0), side, r)
    return side.swap_error > (side.chance_high or 0.0) and excess > NEGLIGIBLE * side.typical


def _know_nothing(side: ColumnSummary) -> bool:
    return _idle(side) or (explained(side) is not None and side.slope is not None and side.slope < 0)


def _idle(side: ColumnSummary) -> bool:
    """Whether a constant would do about as well, by the loss and by how cases are ordered."""
    known, auc = explained(side), None if side.scores is None else side.scores.auc
    return known is not None and known < LITTLE and (auc is None or auc < ORDERED)


def _knowledge_sentence(side: ColumnSummary, wording: Wording) -> str:
    known, name = explained(side), wording.loss
    if known is None:
        return f"All outcomes are the same; the {name} is {precise(side.loss)} where 0 is possible."
    if side.slope is not None and side.slope < 0 and known >= LITTLE:
        return "Higher forecasts go with lower outcomes: the forecasts are upside down."
    constant = "" if side.constant is None else f", {number(side.constant)},"
    return (
        f"The {name} is {precise(side.loss)}; the best constant forecast{constant} has "
        f"{precise(side.constant_loss or 0.0)}, and these forecasts, each value replaced by the best one, would have "
        f"{precise(side.ideal_loss or 0.0)}, {100 * known:.1f} % less than the constant."
    )


def what_is_off(side: ColumnSummary, wording: Wording, r: float = 2.0) -> str:
    """The bias in a clause, the part that matters most first."""
    words, groups = wording, side.groups
    material = side.worth_correcting()
    if material.any():
        everybody = f"forecasts are {words.bias(float(groups.mean[0]))} on average" if material[0] else ""
        if words.noun and everybody:
            everybody = everybody.removeprefix("forecasts are ")
        some = groups_off(groups) if material[1:].any() else ""
        worst = [j for j in groups.ranked().tolist() if material[j]][:1]
        named = "".join(f", worst {group_name(groups.name[j])}: {words.bias(float(groups.mean[j]))}" for j in worst)
        return "; ".join(part for part in (everybody, some + named) if part)
    if side.n_worth_correcting:
        n = side.n_worth_correcting
        many = f"{n:,} ranges of forecasts are" if n > 1 else "a range of forecasts is"
        return f"right on average for every group, but {many} off"
    excess = per_round(side.swap_error - (side.chance_mean or 0.0), side, r)
    return f"off by {words.size(excess)} in a typical row, spread over many groups and forecasts"


def _where(side: ColumnSummary, wording: Wording) -> tuple[str, ...]:
    """The worst groups with intervals and since when; or the worst range of forecasts, if no group stands out."""
    return worst_groups(side, wording) or ((side.witness,) if side.n_worth_correcting else ())


# Headlines of one column that is off, by whose it is and what is to be done; the bias goes into the braces.
_ALONE = {
    ("model", "refit"): "Fit the model again: {}.",
    ("model", "recalibrate"): "Recalibrate: {}.",
    ("swapcal", "refit"): "The groups alone say little: a model is needed ({}).",
    ("swapcal", "recalibrate"): "Some bias is left, which more rows take away: {}.",
}

_FIT_AGAIN = "Fit the model again with other features or newer rows; recalibrated, it is hardly more than a constant."
_RUN = "swapcal run with these forecasts takes that bias away."


def _alone(side: ColumnSummary, wording: Wording, r: float, command: str | None, *, ours: bool) -> Verdict:
    """One column: that of a model, or `ours` of a run without a model to start from."""
    knowledge = _knowledge_sentence(side, wording)
    if not biased(side, r):
        verdict = _nothing(side, wording, r, knowledge)
        headline = verdict.headline.replace("Nothing to correct", "The forecasts hold") if ours else verdict.headline
        return Verdict("fine", headline, verdict.sentences)
    kind: Literal["refit", "recalibrate"] = "refit" if _know_nothing(side) else "recalibrate"
    headline = _ALONE["swapcal" if ours else "model", kind].format(what_is_off(side, wording, r))
    where = _where(side, wording)
    sentences = (knowledge, *where) if kind == "refit" else (*where, knowledge)
    advice = _FIT_AGAIN if kind == "refit" else f"Next: {command or _RUN}"
    return Verdict(kind, headline, sentences if ours else (*sentences, advice))


def _nothing(side: ColumnSummary, wording: Wording, r: float, knowledge: str) -> Verdict:
    """No bias that is worth a correction."""
    words, groups = wording, side.groups
    if per_round(side.chance_high or 0.0, side, r) > HOPELESS * side.typical:
        return Verdict("fine", "No bias is shown, but these are too few rows to tell.", (knowledge,))
    more = ("They say little, though: a constant would do as well.",) if _idle(side) else ()
    seen = (seen_sentence(groups, words),)
    if groups.significant.any():
        most = float(np.max(np.abs(groups.mean[groups.significant > 0])))
        who = groups_off(groups) if groups.n_significant else "all rows together are off beyond doubt"
        headline = f"Nothing worth correcting: {who}, but by {words.size(most)} at most."
        return Verdict("fine", headline, (*_where(side, wording), knowledge, *seen, *more))
    n = groups.n_used
    whom = "" if n == 0 else f" in any of {n:,} groups" if n > 1 else " in the group"
    return Verdict("fine", f"Nothing to correct: no bias beyond chance{whom}.", (*seen, knowledge, *more))


def healed(before: ColumnSummary, after: ColumnSummary) -> bool:
    """Whether groups that were off beyond doubt, and by more than is negligible, are off by half of that at most."""
    material = before.worth_correcting()
    if not material.any():
        return True
    now = dict(zip(after.groups.name, np.abs(np.nan_to_num(after.groups.mean)).tolist(), strict=True))
    places = np.flatnonzero(material).tolist()
    was = sum(float(before.groups.rows[j] * abs(before.groups.mean[j])) for j in places)
    left = sum(float(before.groups.rows[j]) * now.get(before.groups.name[j], 0.0) for j in places)
    return bool(left <= HEALED * was)


def _became(what: str, before: float, after: float, paired: Paired | None) -> str:
    """What a loss was and is, with the interval of the change where that is known."""
    change = "" if paired is None else f": {paired.change}"
    return f"{what} was {precise(before)} and is {precise(after)}{change}"


def _dearer(before: ColumnSummary, after: ColumnSummary) -> str:
    """What the log loss has become, where it has risen: the Brier score of rare events hardly moves."""
    if before.scores is None or after.scores is None or not before.scores.log_loss > 0.0:
        return ""
    rise = after.scores.log_loss / before.scores.log_loss - 1.0
    return f"the log loss is {100 * rise:.1f} % higher" if rise > DEARER else ""


def _counts(before: ColumnSummary, after: ColumnSummary, what: str = "Groups off") -> tuple[str, ...]:
    """Groups that are off, before and after."""
    if not before.groups.n_used:
        return ()
    first, last = before.groups.n_significant, after.groups.n_significant
    n = max(before.groups.n_used, after.groups.n_used)
    return (f"{what} beyond doubt: {first:,} of {n:,} before, {last:,} after.",)


# --------
# Probabilities of classes: whether to use the recalibrated ones, and which classes were off.

BRIER, TOP = "Brier score of all classes", "top"
N_NAMED = 3

_NO_CLASS = "no class is off beyond chance"


def class_title(name: str) -> str:
    """The name of a class, or of the likeliest one, for the head of a row."""
    return "likeliest class" if name == TOP else shortened(readable(name), 40)


def class_verdict(sections: "Sequence[Section]", paired: Mapping[str, Paired]) -> Verdict:
    """What to make of probabilities of classes, the model's own and swapcal's.

    Parameters
    ----------
    sections : sequence of Section
        The likeliest class, with its means, and then each class.
    paired : mapping
        Losses before and after on the same rows: the Brier score of all classes, and the log loss.

    Notes
    -----
    The probabilities are off where those of the likeliest class or of any class are, as `verdict` has it.
    """
    top, classes = sections[0], sections[1:]
    if top.after is None:
        raise InvalidInput("a verdict needs the forecasts of a run")
    left, now, losses = _what_is_off_in_classes(sections, "after"), (_confidence(top),), (_class_losses(top, paired),)
    if top.before is None and left:
        return Verdict("recalibrate", _ALONE["swapcal", "recalibrate"].format(left), (*now, *losses))
    if top.before is None:
        return Verdict("fine", f"The probabilities hold: {_NO_CLASS}.", (*now, *losses))
    off, were_off, log = _what_is_off_in_classes(sections, "before"), _off(classes, "before"), paired.get("log loss")
    outlook = _Outlook(
        "probabilities",
        BRIER,
        paired.get(BRIER),
        off=off,
        holding=_NO_CLASS,
        price=f", but mind the log loss, {log.relative[1]}" if log and log.low > 0 else "",
        now=now,
        counts=_class_counts(top.before, top.after, classes),
        losses=losses,
        still=(f"Left, and falling with more rows: {left}.",) if left else (),
    )
    pairs = ((one.before, one.after) for one in (top, *were_off))
    mended = all(healed(was, now) for was, now in pairs if was is not None and now is not None)
    if left and not mended and not outlook.better:
        return replace(outlook, not_yet=f"the model is off ({off}), {LESS_THAN_HALF}").advice()
    words, others = Probability().wording, len(were_off) - N_NAMED
    named = [f"Class {class_title(one.title)}: {what_is_off(one.leading, words)}." for one in were_off[:N_NAMED]]
    if others > 0:
        named.append(f"{others:,} more {'class was' if others == 1 else 'classes were'} off.")
    return replace(outlook, named=tuple(named)).advice()


def _off(classes: "Sequence[Section]", which: str) -> "list[Section]":
    """Classes with bias beyond chance, the largest bias of everybody first."""
    off = [one for one in classes if which in one.columns and biased(one.columns[which])]
    return sorted(off, key=lambda one: -abs(float(one.columns[which].groups.mean[0])))


def _what_is_off_in_classes(sections: "Sequence[Section]", which: str) -> str:
    """The bias in a clause: of the likeliest class, and how many classes are off."""
    top, off, parts = sections[0].columns.get(which), _off(sections[1:], which), []
    if top is not None and biased(top):
        reason, whose = what_is_off(top, Probability().wording), "the probability of the likeliest class is "
        direct = reason.startswith(("forecasts are ", "right on average", "off by"))
        parts.append(
            f"{whose}{reason.removeprefix('forecasts are ')}" if direct else f"of the likeliest class, {reason}"
        )
    if off:
        names = ", ".join(class_title(one.title) for one in off[:N_NAMED]) + (", ..." if len(off) > N_NAMED else "")
        parts.append(f"{len(off):,} of {len(sections) - 1:,} classes {'is' if len(off) == 1 else 'are'} off ({names})")
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
        sum(one.columns[which].groups.n_significant for one in classes if which in one.columns)
        for which in ("before", "after")
    )
    return (
        f"Groups off beyond doubt: for the likeliest class {before.groups.n_significant:,} of {n:,} before, "
        f"{after.groups.n_significant:,} after; over all classes {first:,} of {n * len(classes):,} before, "
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


def interval_verdict(section: "Section", wording: Wording, paired: Paired | None) -> Verdict:
    """What to make of intervals, the model's own and swapcal's.

    Parameters
    ----------
    section : Section
        The audits of coverage, and mean widths.
    wording : Wording
        Of a quantile at the level that was asked for.
    paired : Paired, optional
        Interval scores before and after, on the same rows.

    Notes
    -----
    Coverage is off where everybody or a group is off beyond doubt, and by more than 2 % of the standard deviation of a
    row. Keep the model's intervals if they are not off and ours do not have the smaller score beyond doubt; "not yet"
    if ours are off and half of what was off is left.
    """
    before, after, level = section.before, section.after, wording.coverage
    if after is None or level is None:
        raise InvalidInput("a verdict on intervals needs those of a run, and the coverage that was asked for")
    widths = {which: float(some["width"][0]) for which, some in section.means.items()}
    sizes = _width_sentence(widths.get("before"), widths["after"]), _score_sentence(paired, after)
    now = (_coverage_sentence(before, after, level),)
    left = what_is_off(after, wording) if after.worth_correcting().any() else ""
    seen = (seen_sentence(after.groups, wording),)
    if before is None:
        if left:
            sentences = (*now, *worst_groups(after, wording), *sizes)
            return Verdict("recalibrate", f"The intervals are still learning: {left}.", sentences)
        return Verdict("fine", f"The intervals hold: {_holding(after, level)}.", (*now, *sizes, *seen))
    off = what_is_off(before, wording) if before.worth_correcting().any() else ""
    if off.startswith("coverage too"):
        off = f"the model's coverage is{off.removeprefix('coverage')}"
    return _Outlook(
        "intervals",
        SCORE,
        paired,
        off=off,
        holding=_holding(before, level),
        not_yet=f"{off}, {LESS_THAN_HALF}" if left and not healed(before, after) else "",
        now=now,
        counts=_counts(before, after, "Groups whose coverage is off"),
        named=worst_groups(before, wording),
        losses=sizes,
        still=(f"Not there yet, and falling with more rows: {left}.",) if left else (),
        seen=seen,
    ).advice()


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
    """Coverage of everybody and of the group that is furthest away, before and after."""
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
    j = int(chosen[np.argmax(np.abs(groups.near[chosen]))]) if groups.n_significant else int(chosen[0])
    return f"{shortened(group_name(groups.name[j]), 40)} with {coverage_text(level + float(groups.mean[j]))}"


def _holding(side: ColumnSummary, level: float) -> str:
    groups = side.groups
    covered = (
        f"{coverage_text(level + float(groups.mean[0]))} of the outcomes are covered where {percent(level)} was asked"
    )
    if not groups.n_used:
        return covered
    if not groups.significant.any():
        return f"{covered}, and no group is off beyond doubt"
    most = number(100.0 * float(np.max(np.abs(groups.mean[groups.significant > 0]))))
    return f"{covered}, and {groups_off(groups)}, by {most} points at most"


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
    first, off = sections[0].title, {one.title: one.leading.groups.n_significant for one in sections}
    names = {model: shortened(model, 40) for model in off}
    better = {model: pair for model, pair in paired.items() if pair.high < 0.0}
    fewest = min(off, key=lambda model: off[model])
    if better:
        best = min(better, key=lambda model: better[model].difference)
        groups = f"groups off beyond doubt {off[best]:,} instead of {off[first]:,}"
        headline = f"{names[best]} is better than {names[first]}: {loss} {better[best].relative[1]}, {groups}."
    elif paired and all(pair.low > 0.0 for pair in paired.values()):
        verb = "is" if off[first] == 1 else "are"
        groups = counted(off[first], "group")
        headline = f"{names[first]} has the lowest {loss} beyond doubt; {groups} {verb} off."
    else:
        more = f"; fewest groups off: {off[fewest]:,} with {names[fewest]}, {off[first]:,} with {names[first]}"
        more = more if off[fewest] < off[first] else ""
        headline = f"No model has a lower {loss} than {names[first]} beyond doubt{more}."
    sentences = [_model_sentence(one, first, paired[one.title], loss) for one in sections[1:] if one.title in paired]
    sentences.append(f"Losses were compared on the {counted(n_rows)} with a forecast of every model.")
    return Verdict("compared", headline, tuple(sentences))


def _model_sentence(section: "Section", first: str, pair: Paired, loss: str) -> str:
    """The difference of a model's loss from that of the first, where it is better and where it is worse."""
    low, middle, high = pair.relative
    text = f"{section.title}: {loss} {middle} against {first} (95 % interval {low} to {high})"
    difference = section.difference
    if difference is None or len(difference.mean) < 2:
        return f"{text}."
    sure = {group: difference.sure(group) for group in difference.mean if group != "all"}
    better, worse = ([group for group, value in sure.items() if value == sign] for sign in (-1, 1))
    text += f"; lower beyond doubt in {len(better):,} of {counted(len(sure), 'group')}, higher in {len(worse):,}"
    if worse:
        worst = max(worse, key=lambda group: difference.low[group])
        text += f", most for {group_name(worst)}, by {number(difference.mean[worst])}"
    return f"{text}."

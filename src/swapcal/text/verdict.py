"""Intervals in words: whether to use the recalibrated ones, coverage before and after, width and score."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from swapcal.audits.scores import Paired
from swapcal.audits.summary import NEGLIGIBLE, ColumnSummary
from swapcal.errors import InvalidInput
from swapcal.properties import Probability, Quantile
from swapcal.protocols import Elicitable
from swapcal.text.numbers import (
    change,
    count,
    group_name,
    guarantee_sentence,
    number,
    percent,
    precise,
    readable,
    relative,
    shortened,
)
from swapcal.text.property_words import loss_name, property_words
from swapcal.text.sentences import groups_off, seen_sentence, worst_groups

# --------
# The verdict in words: nothing to correct, recalibrate, or the model itself is off.

LITTLE = 0.01
"""Forecasts that take less than this part off the loss of the best constant, however recalibrated, know nothing."""

ORDERED = 0.55
"""An AUC above it says that forecasts tell cases apart, also where events are too rare to show in the Brier score."""

HEALED, DEARER = 0.5, 0.005
"""A run has taken bias away if at most this part of it is left; a log loss that rises by more than this is a price."""

HOPELESS = 0.5
"""If chance alone gives a bias of this part of a row's typical error, there are too few rows to tell anything."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do: `kind`, one headline, and sentences that say why."""

    kind: Literal["fine", "recalibrate", "refit"]
    headline: str
    sentences: tuple[str, ...]


def verdict(
    before: ColumnSummary | None,
    after: ColumnSummary | None = None,
    *,
    property: Elicitable,
    r: float = 2.0,
    paired: Paired | None = None,
    command: str | None = None,
) -> Verdict:
    """What to make of one column of forecasts (an audit), or of a model's own and swapcal's beside it (a run).

    Parameters
    ----------
    before, after : ColumnSummary, optional
        The model's own forecasts, and swapcal's.
    property : Elicitable
        What was forecast.
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
    if before is None and after is None:
        raise InvalidInput("a verdict needs forecasts: before, after or both")
    if after is None and before is not None:
        return _of_audit(before, property, r, command)
    if after is None:
        raise InvalidInput("a verdict needs forecasts: before, after or both")
    if before is None:
        return _of_forecasts(after, property, r)
    return _of_run(before, after, property, r, paired)


def with_discovery(said: Verdict, found: dict[str, Any], sentences: tuple[str, ...]) -> Verdict:
    """The verdict with what a search has found: confirmed bias of a subgroup is bias, whoever listed it."""
    confirmed = [one for one in found["subgroups"] if one["confirmed"]]
    both = (*sentences, *said.sentences)
    if said.kind != "fine" or not confirmed:
        return Verdict(said.kind, said.headline, both if confirmed else (*said.sentences, *sentences))
    name = shortened(str(confirmed[0]["name"]), 70)
    side = "high" if confirmed[0]["bias"] > 0 else "low"
    return Verdict("recalibrate", f"Recalibrate: too {side} where {name}, which a search has found.", both)


def headline_below_badge(said: Verdict) -> str:
    """The headline where a badge has said already what to do."""
    rest = said.headline.removeprefix("Recalibrate: ")
    return rest[:1].upper() + rest[1:]


def per_round(error: float, side: ColumnSummary, r: float) -> float:
    """An error as a bias per round: (error / T)^(1/r), which at r = 2 is a root mean square."""
    return float((max(error, 0.0) / side.weight) ** (1 / r)) if side.weight else 0.0


def biased(side: ColumnSummary, r: float = 2.0) -> bool:
    """Whether there is bias beyond chance that is worth a correction."""
    return bool(side.material().any()) or bool(side.n_material) or _spread(side, r)


def explained(side: ColumnSummary) -> float | None:
    """The part of the best constant's loss that ideally recalibrated forecasts take off; None if there is no loss."""
    if not side.constant_loss or side.ideal_loss is None:
        return None
    return 1.0 - side.ideal_loss / side.constant_loss


def _spread(side: ColumnSummary, r: float) -> bool:
    """Whether all cells together show more than chance would, by more than is negligible."""
    excess = per_round(side.swap_error - (side.chance_mean or 0.0), side, r)
    return side.swap_error > (side.chance_high or 0.0) and excess > NEGLIGIBLE * (side.typical or 0.0)


def _know_nothing(side: ColumnSummary) -> bool:
    return _idle(side) or (explained(side) is not None and side.slope is not None and side.slope < 0)


def _idle(side: ColumnSummary) -> bool:
    """Whether a constant would do about as well, by the loss and by how cases are ordered."""
    known, auc = explained(side), None if side.scores is None else side.scores.auc
    return known is not None and known < LITTLE and (auc is None or auc < ORDERED)


def _knowledge_sentence(side: ColumnSummary, property: Elicitable) -> str:
    known, name = explained(side), loss_name(property)
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


def what_is_off(side: ColumnSummary, property: Elicitable, r: float = 2.0) -> str:
    """The bias in a clause, the part that matters most first."""
    words, groups = property_words(property), side.groups
    material = side.material()
    if groups is not None and material.any():
        everybody = f"forecasts are {words.bias(float(groups.mean[0]))} on average" if material[0] else ""
        if words.noun and everybody:
            everybody = everybody.removeprefix("forecasts are ")
        some = groups_off(groups) if material[1:].any() else ""
        worst = [j for j in groups.ranked().tolist() if material[j]][:1]
        named = "".join(f", worst {group_name(groups.name[j])}: {words.bias(float(groups.mean[j]))}" for j in worst)
        return "; ".join(part for part in (everybody, some + named) if part)
    if side.n_material:
        many = f"{side.n_material:,} ranges of forecasts are" if side.n_material > 1 else "a range of forecasts is"
        return f"right on average for every group, but {many} off"
    excess = per_round(side.swap_error - (side.chance_mean or 0.0), side, r)
    return f"off by {words.size(excess)} in a typical row, spread over many groups and forecasts"


def _where(side: ColumnSummary, property: Elicitable) -> tuple[str, ...]:
    """The worst groups with intervals and since when; or the worst range of forecasts, if no group stands out."""
    groups = worst_groups(side, property)
    if groups:
        return (groups,)
    return (side.witness,) if side.n_material else ()


def _of_audit(side: ColumnSummary, property: Elicitable, r: float, command: str | None) -> Verdict:
    knowledge = _knowledge_sentence(side, property)
    if not biased(side, r):
        return _nothing(side, property, r, knowledge)
    off = what_is_off(side, property, r)
    where = _where(side, property)
    if _know_nothing(side):
        advice = (
            "Fit the model again with other features or newer rows; recalibrated, it is hardly more than a constant."
        )
        return Verdict("refit", f"Fit the model again: {off}.", (knowledge, *where, advice))
    advice = "Next: swapcal run with these forecasts takes that bias away." if command is None else f"Next: {command}"
    return Verdict("recalibrate", f"Recalibrate: {off}.", (*where, knowledge, advice))


def _nothing(side: ColumnSummary, property: Elicitable, r: float, knowledge: str) -> Verdict:
    """No bias that is worth a correction."""
    words, groups = property_words(property), side.groups
    if per_round(side.chance_high or 0.0, side, r) > HOPELESS * (side.typical or 0.0):
        return Verdict("fine", "No bias is shown, but these are too few rows to tell.", (knowledge,))
    more = ("They say little, though: a constant would do as well.",) if _idle(side) else ()
    seen = () if groups is None else (seen_sentence(groups, words),)
    if groups is not None and groups.off.any():
        most = float(np.max(np.abs(groups.mean[groups.off > 0])))
        who = groups_off(groups) if groups.n_off else "all rows together are off beyond doubt"
        headline = f"Nothing worth correcting: {who}, but by {words.size(most)} at most."
        return Verdict("fine", headline, (*_where(side, property), knowledge, *seen, *more))
    n = 0 if groups is None else groups.n_used
    whom = "" if n == 0 else f" in any of {n:,} groups" if n > 1 else " in the group"
    return Verdict("fine", f"Nothing to correct: no bias beyond chance{whom}.", (*seen, knowledge, *more))


def _of_forecasts(side: ColumnSummary, property: Elicitable, r: float) -> Verdict:
    """A run without a model to start from."""
    knowledge, where = _knowledge_sentence(side, property), _where(side, property)
    if not biased(side, r):
        said = _nothing(side, property, r, knowledge)
        return Verdict("fine", said.headline.replace("Nothing to correct", "The forecasts hold"), said.sentences)
    off = what_is_off(side, property, r)
    if _know_nothing(side):
        return Verdict("refit", f"The groups alone say little: a model is needed ({off}).", (knowledge, *where))
    return Verdict("recalibrate", f"Some bias is left, which more rows take away: {off}.", (*where, knowledge))


def _of_run(
    before: ColumnSummary, after: ColumnSummary, property: Elicitable, r: float, paired: Paired | None
) -> Verdict:
    name = loss_name(property)
    loss, gain = f"The {name} was {precise(before.loss)} and is {precise(after.loss)}.", ""
    if paired is not None:
        low, difference, high = (relative(v, paired.before) for v in (paired.low, paired.difference, paired.high))
        loss = f"{loss[:-1]}: {difference} ({percent(paired.confidence)} interval {low} to {high})."
        gain = difference
    better, worse = paired is not None and paired.high < 0, paired is not None and paired.low > 0
    counts = _counts(before, after)
    was = _where(before, property)
    if not biased(before, r):
        if better:
            return Verdict(
                "recalibrate", f"Use the recalibrated forecasts: the {name} changes by {gain}.", (loss, *counts)
            )
        kept = _nothing(before, property, r, "")
        more = f"; recalibrated ones would cost {gain} of the {name}" if worse else ""
        headline = f"Keep the model's forecasts: {kept.headline[0].lower()}{kept.headline[1:-1]}{more}."
        return Verdict("fine", headline, tuple(text for text in (loss, *counts, *was, *kept.sentences) if text))
    off = what_is_off(before, property, r)
    if _know_nothing(after):
        advice = "Recalibrated, the forecasts are honest but say little; a better model is needed."
        return Verdict(
            "refit",
            f"Fit the model again: {off}.",
            (_knowledge_sentence(after, property), loss, *counts, advice),
        )
    left = biased(after, r)
    still = (f"Some bias is left, and falls with more rows: {what_is_off(after, property, r)}.",) if left else ()
    better_now, dearer = healed(before, after), _dearer(before, after)
    price = f"recalibrated forecasts cost {gain} of the {name}" if worse else dearer
    if not better and (price or not better_now) and (left or not better_now):
        reason = f"but {price}" if price else "and so far less than half of that is gone"
        return Verdict(
            "recalibrate", f"Not yet better: the model is off ({off}), {reason}.", (*still, loss, *counts, *was)
        )
    off = off.replace("forecasts are", "the model's are", 1) if off.startswith("forecasts are") else off
    return Verdict("recalibrate", f"Use the recalibrated forecasts: {off}.", (*counts, *was, loss, *still))


def healed(before: ColumnSummary, after: ColumnSummary) -> bool:
    """Whether groups that were off beyond doubt, and by more than is negligible, are off by half of that at most."""
    material = before.material()
    if before.groups is None or after.groups is None or not material.any():
        return True
    now = dict(zip(after.groups.name, np.abs(np.nan_to_num(after.groups.mean)).tolist(), strict=True))
    places = np.flatnonzero(material).tolist()
    was = sum(float(before.groups.rows[j] * abs(before.groups.mean[j])) for j in places)
    left = sum(float(before.groups.rows[j]) * now.get(before.groups.name[j], 0.0) for j in places)
    return bool(left <= HEALED * was)


def _dearer(before: ColumnSummary, after: ColumnSummary) -> str:
    """What the log loss has become, where it has risen: the Brier score of rare events hardly moves."""
    if before.scores is None or after.scores is None or not before.scores.log_loss > 0.0:
        return ""
    rise = after.scores.log_loss / before.scores.log_loss - 1.0
    return f"the log loss is {100 * rise:.1f} % higher" if rise > DEARER else ""


def _counts(before: ColumnSummary, after: ColumnSummary) -> tuple[str, ...]:
    """Groups that are off, before and after."""
    if before.groups is None or after.groups is None or not before.groups.n_used:
        return ()
    first, last, n = before.groups.n_off, after.groups.n_off, max(before.groups.n_used, after.groups.n_used)
    return (f"Groups off beyond doubt: {first:,} of {n:,} before, {last:,} after.",)


# --------
# Probabilities of classes in words: whether to use the recalibrated ones, and which classes were off.

BRIER = "Brier score of all classes"
N_NAMED = 3

Sides = tuple[ColumnSummary | None, ColumnSummary | None]


def class_title(name: str) -> str:
    """The name of a class, or of the likeliest one, for the head of a row."""
    return "likeliest class" if name == "top" else shortened(readable(name), 40)


def class_verdict(
    top: Sides,
    classes: Mapping[str, Sides],
    everybody: Mapping[str, Mapping[str, float]],
    brier: Paired | None,
    log: Paired | None,
) -> Verdict:
    """What to make of probabilities of classes, the model's own and swapcal's.

    Parameters
    ----------
    top : pair of ColumnSummary
        The audits of the likeliest class, before and after.
    classes : mapping
        The audits of each class, before and after.
    everybody : mapping
        For "before" and "after", means over all rows: right, confidence, brier, log_loss.
    brier, log : Paired, optional
        Losses before and after on the same rows.

    Notes
    -----
    The probabilities are off where those of the likeliest class or of any class are, as `verdict` has it.
    """
    top_before, top_after = top
    if top_after is None:
        raise InvalidInput("a verdict needs the forecasts of a run")
    losses = _losses(brier, log, everybody)
    confidence = _confidence(everybody)
    off_after = _off(classes, 1)
    left = biased(top_after) or bool(off_after)
    still = (f"Left, and falling with more rows: {_what(top_after, classes, 1)}.",) if left else ()
    if top_before is None:
        if left:
            headline = f"Some bias is left, which more rows take away: {_what(top_after, classes, 1)}."
            return Verdict("recalibrate", headline, (*confidence, *losses))
        return Verdict("fine", "The probabilities hold: no class is off beyond chance.", (*confidence, *losses))
    counts = _class_counts(top_before, top_after, classes)
    better, worse = brier is not None and brier.high < 0, brier is not None and brier.low > 0
    gain = "" if brier is None else relative(brier.difference, brier.before)
    off_before = _off(classes, 0)
    if not biased(top_before) and not off_before:
        if better:
            headline = f"Use the recalibrated probabilities: the {BRIER} changes by {gain}."
            return Verdict("recalibrate", headline, (*confidence, *counts, *losses, *still))
        price = f"; recalibrated ones would cost {gain} of the {BRIER}" if worse else ""
        headline = f"Keep the model's probabilities: no class is off beyond chance{price}."
        return Verdict("fine", headline, (*confidence, *counts, *losses))
    what = _what(top_before, classes, 0)
    pairs = [top, *(classes[name] for name in off_before)]
    mended = all(healed(was, now) for was, now in pairs if was is not None and now is not None)
    if left and not mended and not better:
        headline = f"Not yet better: the model is off ({what}), and so far less than half of that is gone."
        return Verdict("recalibrate", headline, (*confidence, *counts, *still, *losses))
    named = tuple(
        f"Class {class_title(name)}: {what_is_off(side, Probability())}."
        for name in off_before[:N_NAMED]
        if (side := classes[name][0]) is not None
    )
    others = len(off_before) - N_NAMED
    more = (f"{others:,} more {'class was' if others == 1 else 'classes were'} off.",) if others > 0 else ()
    dearer = log is not None and log.low > 0
    price = f", but mind the log loss, {relative(log.difference, log.before)}" if log is not None and dearer else ""
    headline = f"Use the recalibrated probabilities: {what}{price}."
    return Verdict("recalibrate", headline, (*confidence, *counts, *named, *more, *losses, *still))


def class_notes(settings: Mapping[str, Any], n_missing: int, guarantee: float | None) -> list[str]:
    """What was assumed and what was left out, for below the tables."""
    notes = []
    bands = settings.get("bands") or {}
    if bands:
        notes.append(f"numbers of many values are in bands; for a group of every value: --categories {','.join(bands)}")
    for n_rows, what in (
        (n_missing, "rows without an outcome: forecast, not scored"),
        (settings["rows_of_no_class"], "rows whose outcome is none of the classes: forecast, not scored"),
        (settings["rows_without_hint"], "rows without probabilities of the model"),
        (settings["rows_divided_by_their_sum"], "rows whose probabilities did not add up to 1, divided by their sum"),
    ):
        if n_rows:
            notes.append(f"{count(n_rows)} {what}")
    if guarantee is not None and guarantee < settings["rows"]:
        notes.append(
            f"guaranteed: the swap error of the likeliest class's probability is {count(guarantee)} at most, "
            f"{guarantee_sentence(0.05).removeprefix('holds ')}"
        )
    notes.append("bias above 0: probabilities too high; intervals hold for all groups of one class together (95 %)")
    return notes


def _off(classes: Mapping[str, Sides], at: int) -> list[str]:
    """Classes with bias beyond chance, the largest bias of everybody first."""
    found = {name: side for name, sides in classes.items() if (side := sides[at]) is not None and biased(side)}
    return sorted(found, key=lambda name: -abs(float(found[name].known_groups.mean[0])))


def _what(top: ColumnSummary, classes: Mapping[str, Sides], at: int) -> str:
    """The bias in a clause: of the likeliest class, and how many classes are off."""
    off = _off(classes, at)
    parts = []
    if biased(top):
        told, whose = what_is_off(top, Probability()), "the probability of the likeliest class is "
        direct = told.startswith(("forecasts are ", "right on average", "off by"))
        parts.append(f"{whose}{told.removeprefix('forecasts are ')}" if direct else f"of the likeliest class, {told}")
    if off:
        names = ", ".join(class_title(name) for name in off[:N_NAMED]) + (", ..." if len(off) > N_NAMED else "")
        parts.append(f"{len(off):,} of {len(classes):,} classes {'is' if len(off) == 1 else 'are'} off ({names})")
    return "; ".join(parts)


def _confidence(everybody: Mapping[str, Mapping[str, float]]) -> tuple[str, ...]:
    def told(which: str) -> str:
        some = everybody[which]
        return f"{100.0 * some['confidence']:.1f} % on average, and came up in {100.0 * some['right']:.1f} %"

    if "before" not in everybody:
        return (f"The likeliest class was given {told('after')} of the rows.",)
    return (f"The likeliest class was given {told('before')} of the rows; now it is given {told('after')}.",)


def _class_counts(before: ColumnSummary, after: ColumnSummary, classes: Mapping[str, Sides]) -> tuple[str, ...]:
    """Groups that are off, before and after, over the likeliest class and all classes."""
    n = max(before.known_groups.n_used, after.known_groups.n_used)
    first, last = (sum(side.known_groups.n_off for one in classes.values() if (side := one[k])) for k in (0, 1))
    if not n:
        return ()
    return (
        f"Groups off beyond doubt: for the likeliest class {before.known_groups.n_off:,} of {n:,} before, "
        f"{after.known_groups.n_off:,} after; over all classes {first:,} of {n * len(classes):,} before, {last:,} "
        "after.",
    )


def _losses(brier: Paired | None, log: Paired | None, everybody: Mapping[str, Mapping[str, float]]) -> tuple[str, ...]:
    if brier is None or log is None:
        some = everybody["after"]
        return (f"The {BRIER} is {precise(some['brier'])}, the log loss {precise(some['log_loss'])}.",)
    told = []
    for name, pair in ((BRIER, brier), ("log loss", log)):
        low, middle, high = (relative(v, pair.before) for v in (pair.low, pair.difference, pair.high))
        told.append(
            f"the {name} was {precise(pair.before)} and is {precise(pair.after)}: {middle} "
            f"({percent(pair.confidence)} interval {low} to {high})"
        )
    text = "; ".join(told)
    return (f"{text[0].upper()}{text[1:]}.",)


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
    before: ColumnSummary | None,
    after: ColumnSummary,
    property: Quantile,
    paired: Paired | None,
    widths: dict[str, float],
) -> Verdict:
    """What to make of intervals, the model's own and swapcal's.

    Parameters
    ----------
    before, after : ColumnSummary
        The audits of coverage.
    property : Quantile
        At the level that was asked for.
    paired : Paired, optional
        Interval scores before and after, on the same rows.
    widths : dict
        Mean widths of all rows, by "before" and "after".

    Notes
    -----
    Coverage is off where everybody or a group is off beyond doubt, and by more than 2 % of the standard deviation of a
    row. Keep the model's intervals if they are not off and ours do not have the smaller score beyond doubt; "not yet"
    if ours are off and half of what was off is left.
    """
    level = property.level
    now = _coverage_sentence(before, after, level)
    width, score = width_sentence(widths), _score_sentence(paired, after)
    left = bool(after.material().any())
    still = (f"Not there yet, and falling with more rows: {what_is_off(after, property)}.",) if left else ()
    seen = (seen_sentence(after.known_groups, property_words(property)),)
    if before is None:
        if left:
            headline = f"The intervals are still learning: {what_is_off(after, property)}."
            return Verdict("recalibrate", headline, (now, *_named(after, property), width, score))
        return Verdict("fine", f"The intervals hold: {_holding(after, level)}.", (now, width, score, *seen))
    gain = "" if paired is None else relative(paired.difference, paired.before)
    better, worse = paired is not None and paired.high < 0, paired is not None and paired.low > 0
    counts = _interval_counts(before, after)
    if not before.material().any():
        if better:
            headline = f"Use the recalibrated intervals: the {SCORE} changes by {gain}."
            return Verdict("recalibrate", headline, (now, *counts, width, score, *still))
        price = f"; recalibrated ones would cost {gain} of the {SCORE}" if worse else ""
        headline = f"Keep the model's intervals: {_holding(before, level)}{price}."
        return Verdict("fine", headline, (now, *counts, width, score, *seen))
    off = what_is_off(before, property)
    if off.startswith("coverage too"):
        off = f"the model's coverage is{off.removeprefix('coverage')}"
    if left and not healed(before, after):
        return Verdict(
            "recalibrate",
            f"Not yet better: {off}, and so far less than half of that is gone.",
            (now, *still, *counts, width, score),
        )
    return Verdict(
        "recalibrate",
        f"Use the recalibrated intervals: {off}.",
        (now, *counts, *_named(before, property), width, score, *still),
    )


def interval_notes(settings: Mapping[str, Any], n_missing: int, n_clipped: int) -> list[str]:
    """What was assumed and what was left out, for below the tables."""
    notes = []
    bands = settings.get("bands") or {}
    if bands:
        notes.append(f"numbers of many values are in bands; for a group of every value: --categories {','.join(bands)}")
    for n_rows, what in (
        (n_missing, "rows without an outcome: an interval, not scored"),
        (settings["rows_without_interval_yet"], "rows at the start without an interval, not scored"),
        (settings["rows_without_hint"], "rows without a forecast of the model"),
        (settings["intervals_crossed_before"], "intervals of the model with the lower end above the upper"),
        (n_clipped, "outcomes outside the range, moved to its end"),
    ):
        if n_rows:
            notes.append(f"{count(n_rows)} {what}")
    bound, rows = float(settings["miscovered_rows_at_most"]), int(settings["rows"])
    if bound < rows:
        notes.append(
            f"guaranteed in every group at once: the number of covered rows is off by {count(bound)} at most, "
            f"{guarantee_sentence(0.05).removeprefix('holds ')}"
        )
    notes.append(
        "an outcome equal to an end counts as covered; intervals of points hold for all groups together (95 %)"
    )
    return notes


def width_sentence(widths: dict[str, float]) -> str:
    """The mean width, and what it was.

    Examples
    --------
    >>> width_sentence({"before": 4.0, "after": 3.0}), width_sentence({"after": 3.0})
    ('The mean width was 4 and is 3 (25 % smaller).', 'The mean width is 3.')
    """
    if "before" not in widths:
        return f"The mean width is {precise(widths['after'])}."
    told = change(widths["before"], widths["after"])
    more = f" ({told})" if told else ""
    return f"The mean width was {precise(widths['before'])} and is {precise(widths['after'])}{more}."


def _score_sentence(paired: Paired | None, after: ColumnSummary) -> str:
    if paired is None:
        return f"The {SCORE}, width plus a price for misses, is {precise(after.loss)}; lower is better."
    low, middle, high = (relative(v, paired.before) for v in (paired.low, paired.difference, paired.high))
    return (
        f"The {SCORE}, width plus a price for misses, was {precise(paired.before)} and is {precise(paired.after)}: "
        f"{middle} ({percent(paired.confidence)} interval {low} to {high})."
    )


def _coverage_sentence(before: ColumnSummary | None, after: ColumnSummary, level: float) -> str:
    """Coverage of everybody and of the group that is furthest away, before and after."""
    now = coverage_text(level + float(after.known_groups.mean[0]))
    was = "" if before is None else f"was {coverage_text(level + float(before.known_groups.mean[0]))} and "
    text = f"Coverage of all rows {was}is {now}; {percent(level)} was asked for."
    sides = [(which, side) for which, side in (("before", before), ("after", after)) if side is not None]
    worst = [f"{_worst(side, level)} {which}" if before is not None else _worst(side, level) for which, side in sides]
    if any(worst) and after.known_groups.n_used:
        text += f" Furthest from it: {', '.join(worst)}."
    return text


def _worst(side: ColumnSummary, level: float) -> str:
    """The group that is furthest from the level beyond what chance explains, or, without any, by itself."""
    groups = side.known_groups
    chosen = groups.ranked()
    if not len(chosen):
        return ""
    j = int(chosen[np.argmax(np.abs(groups.near[chosen]))]) if groups.n_off else int(chosen[0])
    return f"{shortened(group_name(groups.name[j]), 40)} with {coverage_text(level + float(groups.mean[j]))}"


def _holding(side: ColumnSummary, level: float) -> str:
    groups = side.known_groups
    covered = (
        f"{coverage_text(level + float(groups.mean[0]))} of the outcomes are covered where {percent(level)} was asked"
    )
    if not groups.n_used:
        return covered
    if not groups.off.any():
        return f"{covered}, and no group is off beyond doubt"
    most = number(100.0 * float(np.max(np.abs(groups.mean[groups.off > 0]))))
    return f"{covered}, and {groups_off(groups)}, by {most} points at most"


def _named(side: ColumnSummary, property: Quantile) -> tuple[str, ...]:
    told = worst_groups(side, property)
    return (told,) if told else ()


def _interval_counts(before: ColumnSummary, after: ColumnSummary) -> tuple[str, ...]:
    first, last = before.known_groups, after.known_groups
    if not first.n_used:
        return ()
    n = max(first.n_used, last.n_used)
    return (f"Groups whose coverage is off beyond doubt: {first.n_off:,} of {n:,} before, {last.n_off:,} after.",)

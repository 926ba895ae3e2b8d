"""The verdict in words: nothing to correct, recalibrate, or the model itself is off."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from swapcal.audit.paired import Paired
from swapcal.audit.summary import NEGLIGIBLE, ColumnSummary
from swapcal.errors import InvalidInput
from swapcal.roles import Elicitable
from swapcal.words.group_sentences import groups_off, seen_sentence, worst_groups
from swapcal.words.names import group_name, shortened
from swapcal.words.numbers import number, percent, precise, relative
from swapcal.words.property_words import loss_name, property_words

__all__ = [
    "Verdict",
    "biased",
    "explained",
    "headline_below_badge",
    "healed",
    "per_round",
    "verdict",
    "what_is_off",
    "with_discovery",
]

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

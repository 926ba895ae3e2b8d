"""Probabilities of classes in words: whether to use the recalibrated ones, and which classes were off."""

from collections.abc import Mapping
from typing import Any

from swapcal.audit.paired import Paired
from swapcal.audit.summary import ColumnSummary
from swapcal.errors import InvalidInput
from swapcal.properties import Probability
from swapcal.words.names import readable, shortened
from swapcal.words.numbers import count, percent, precise, relative
from swapcal.words.quantities import guarantee_sentence
from swapcal.words.verdicts import Verdict, biased, healed, what_is_off

__all__ = ["BRIER", "class_notes", "class_title", "class_verdict"]

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
    counts = _counts(top_before, top_after, classes)
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


def _counts(before: ColumnSummary, after: ColumnSummary, classes: Mapping[str, Sides]) -> tuple[str, ...]:
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

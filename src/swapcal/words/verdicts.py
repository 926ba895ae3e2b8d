"""The verdict in words: nothing to correct, recalibrate, or the model itself is off."""

from dataclasses import dataclass
from typing import Literal

from swapcal.audit.paired import Paired
from swapcal.audit.summary import NEGLIGIBLE, ColumnSummary
from swapcal.errors import InvalidInput
from swapcal.roles import Elicitable
from swapcal.words.numbers import counted, number, percent, precise, signed
from swapcal.words.property_words import loss_name, property_words
from swapcal.words.quantities import rate_name

__all__ = ["Verdict", "biased", "explained", "per_round", "verdict"]

LITTLE = 0.01
"""Forecasts that take less than this part off the loss of the best constant, however recalibrated, know nothing."""


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
    guarantee: float | None = None,
) -> Verdict:
    """What to make of one column of forecasts (an audit), or of a model's own and swapcal's beside it (a run).

    Notes
    -----
    *Biased*: an interval, which allows for all cells, leaves out 0 by more than 5 % of a row's typical error; or the
    swap error is more than chance would give in 95 streams of 100, and its excess over chance, as a root mean square
    bias, is more than those 5 %. Smaller bias is real, perhaps, but not worth a correction: it is 0.25 % of the loss.

    *fine*: not biased. *refit*: biased, and the forecasts know little: with the best value put in the place of each,
    they would take less than 1 % off the loss of the best constant forecast, or higher forecasts go with lower
    outcomes. *recalibrate*: biased otherwise.
    """
    if before is None and after is None:
        raise InvalidInput("a verdict needs forecasts: before, after or both")
    if after is None and before is not None:
        return _of_audit(before, property, r)
    return _of_run(before, after or before, property, r, paired, guarantee)  # type: ignore[arg-type]


def per_round(error: float, side: ColumnSummary, r: float) -> float:
    """An error as a bias per round: (error / T)^(1/r), which at r = 2 is a root mean square."""
    return float((max(error, 0.0) / side.weight) ** (1 / r)) if side.weight else 0.0


def biased(side: ColumnSummary, r: float = 2.0) -> bool:
    """Whether there is bias beyond chance that is worth a correction."""
    excess = per_round(side.swap_error - (side.chance_mean or 0.0), side, r)
    above = side.swap_error > (side.chance_high or 0.0) and excess > NEGLIGIBLE * (side.typical or 0.0)
    return bool(side.n_material) or above


def explained(side: ColumnSummary) -> float | None:
    """The part of the best constant's loss that ideally recalibrated forecasts take off; None if there is no loss."""
    if not side.constant_loss or side.ideal_loss is None:
        return None
    return 1.0 - side.ideal_loss / side.constant_loss


def _error_sentence(side: ColumnSummary, r: float, whose: str) -> str:
    rounds = side.weight or 0.0
    unit = rounds ** (1 / (r + 1))
    return (
        f"The swap error{whose} is {number(side.swap_error)} over {counted(rounds)}, {number(side.swap_error / unit)} "
        f"times {rate_name(r)}; calibrated forecasts would show {number(side.chance_mean or 0.0)} by chance, and "
        f"{number(side.chance_high or 0.0)} at most in 95 of 100 files."
    )


def _know_nothing(side: ColumnSummary) -> bool:
    known = explained(side)
    return known is not None and (known < LITTLE or (side.slope is not None and side.slope < 0))


def _knowledge_sentence(side: ColumnSummary, property: Elicitable) -> str:
    known, name = explained(side), loss_name(property)
    if known is None:
        return f"All outcomes are the same; the {name} is {precise(side.loss)} where 0 is possible."
    if side.slope is not None and side.slope < 0 and known >= LITTLE:
        return "Higher forecasts go with lower outcomes: the forecasts are upside down."
    return (
        f"The {name} is {precise(side.loss)}; the best constant forecast has {precise(side.constant_loss or 0.0)}, "
        f"and these forecasts, each value replaced by the best one, would have {precise(side.ideal_loss or 0.0)}, "
        f"{100 * known:.1f} % less."
    )


def _of_audit(side: ColumnSummary, property: Elicitable, r: float) -> Verdict:
    errors, knowledge = _error_sentence(side, r, ""), _knowledge_sentence(side, property)
    if not biased(side, r):
        unseen = per_round(side.chance_high or 0.0, side, r)
        if unseen > HOPELESS * (side.typical or 0.0):
            headline = "No bias is shown, but these are too few rows to tell."
            return Verdict("fine", headline, (errors, knowledge))
        seen = f"Bias of more than about {property_words(property).size(unseen)} in every row would have been seen."
        known = explained(side)
        idle = known is not None and known < LITTLE
        more = ("They say little, though: a constant would do as well.",) if idle else ()
        return Verdict(
            "fine", "Nothing to correct: no bias beyond chance that is worth it.", (errors, seen, knowledge, *more)
        )
    excess = per_round(side.swap_error - (side.chance_mean or 0.0), side, r)
    part = f", {100 * excess / side.typical:.0f} % of a row's typical error" if side.typical else ""
    cells = "No single cell is biased beyond doubt; together they are."
    if side.n_material:
        many = "is" if side.n_material == 1 else "are"
        cells = (
            f"{side.n_material:,} of {side.n_cells:,} cells (forecasts near a value, for a group) {many} biased beyond "
            "doubt and by more than is negligible."
        )
    off = property_words(property).size(excess)
    bias = f"Beyond chance, forecasts are off by {off} (root mean square over rows{part}). {cells}"
    if r != 2.0:
        bias = bias.replace("root mean square", f"mean of power {r:g}")
    if _know_nothing(side):
        advice = (
            "Fit the model again with other features or newer rows; recalibrated, it is hardly more than a constant."
        )
        return Verdict("refit", "The model itself is off: fit it again.", (errors, bias, knowledge, advice))
    advice = "swapcal run with these forecasts as --hint takes that bias away."
    return Verdict(
        "recalibrate", "Recalibrate: there is bias that can be taken away.", (errors, bias, knowledge, advice)
    )


def _of_run(
    before: ColumnSummary | None,
    after: ColumnSummary,
    property: Elicitable,
    r: float,
    paired: Paired | None,
    guarantee: float | None,
) -> Verdict:
    promised = "" if guarantee is None else f" At most {number(guarantee)} was guaranteed."
    now = _error_sentence(after, r, " of swapcal's forecasts") + promised
    knowledge = _knowledge_sentence(after, property)
    if before is None:
        if _know_nothing(after) and biased(after, r):
            return Verdict("refit", "The groups alone say little: a model is needed.", (now, knowledge))
        if biased(after, r):
            headline = "Some bias is left: more rows will take it away."
            return Verdict("recalibrate", headline, (now, knowledge))
        return Verdict(
            "fine", "The forecasts hold: no bias beyond chance that is worth a correction.", (now, knowledge)
        )
    then = (
        f"The model's swap error was {number(before.swap_error)}, swapcal's is {number(after.swap_error)}; calibrated "
        f"forecasts would show {number(after.chance_mean or 0.0)} by chance.{promised}"
    )
    loss = f"The {loss_name(property)} was {precise(before.loss)} and is {precise(after.loss)}."
    if paired is not None:
        interval = f"{percent(paired.confidence)} interval {signed(paired.low)} to {signed(paired.high)}"
        loss = f"{loss[:-1]}, a difference of {signed(paired.difference)} ({interval})."
    if not biased(before, r):
        headline = "Nothing to correct: the model's forecasts can be kept."
        return Verdict("fine", headline, (then, loss))
    if _know_nothing(after):
        headline = "The model itself is off: fit it again."
        advice = "Recalibrated, the forecasts are honest but say little; a better model is needed."
        return Verdict("refit", headline, (then, loss, knowledge, advice))
    left = "" if not biased(after, r) else " Some bias is left; it falls with more rows."
    return Verdict("recalibrate", "Use the recalibrated forecasts.", (then + left, loss))

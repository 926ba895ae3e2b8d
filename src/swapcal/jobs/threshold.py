"""A threshold for a pipeline: what of a result may not be larger than what."""

from typing import Literal, NamedTuple

import numpy as np

from swapcal.errors import InvalidInput
from swapcal.jobs.result import Result
from swapcal.words.names import group_name
from swapcal.words.numbers import counted, number
from swapcal.words.property_words import property_words
from swapcal.words.verdicts import per_round

__all__ = ["Threshold", "above", "parse_threshold"]


class Threshold(NamedTuple):
    """What is compared, and with what.

    bias: the largest bias of a group beyond doubt, which is the end of its interval nearest to 0; points for
    probabilities and quantiles, else units of the outcome. groups: how many groups are off. rms: the root mean square
    bias over all cells, in the units of a bias.
    """

    what: Literal["bias", "groups", "rms"]
    most: float


def parse_threshold(text: str) -> Threshold:
    """The threshold that `text` spells: 2, bias:2, groups:0 or rms:1.5.

    Examples
    --------
    >>> parse_threshold("2"), parse_threshold("groups:3")
    (Threshold(what='bias', most=2.0), Threshold(what='groups', most=3.0))
    """
    what, most = text.split(":", 1) if ":" in text else ("bias", text)
    try:
        value = float(most)
    except ValueError:
        value = -1.0
    known: dict[str, Literal["bias", "groups", "rms"]] = {"bias": "bias", "groups": "groups", "rms": "rms"}
    if not value >= 0.0 or what.strip() not in known:
        raise InvalidInput(
            f"--fail-above must be a number of points (or units of the outcome), such as 2, or groups:0, or rms:1.5; "
            f"got {text!r}"
        )
    return Threshold(known[what.strip()], value)


def above(result: Result, threshold: Threshold) -> str | None:
    """The sentence that says how the last column of forecasts is above the threshold; None if it is not."""
    side = result.after or result.before
    if side is None or side.groups is None:
        return None
    words, groups, limit = property_words(result.property), side.groups, f"above --fail-above {threshold.most:g}"
    if threshold.what == "groups":
        if groups.n_off <= threshold.most:
            return None
        verb = "is" if groups.n_off == 1 else "are"
        return f"{groups.n_off:,} of {counted(groups.n_used, 'group')} of {side.label} {verb} off beyond doubt, {limit}"
    if threshold.what == "rms":
        error = words.scale * per_round(side.swap_error, side, result.r)
        unit = f" {words.unit}" if words.unit else ""
        return (
            f"the root mean square bias of {side.label} is {number(error)}{unit}, {limit}"
            if error > threshold.most
            else None
        )
    near = np.abs(groups.near) * words.scale
    worst = int(np.argmax(near))
    if near[worst] <= threshold.most:
        return None
    said, least = words.bias(float(groups.mean[worst])), words.size(float(groups.near[worst]))
    return f"{side.label}, {group_name(groups.name[worst])}: {said}, by {least} at least, {limit}"

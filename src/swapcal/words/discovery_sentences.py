"""Subgroups that nobody listed, in sentences."""

from typing import Any

from swapcal.roles import Elicitable
from swapcal.words.names import shortened
from swapcal.words.numbers import counted, number, percent
from swapcal.words.property_words import property_words

__all__ = ["discovery_sentences"]

N_TOLD = 3


def discovery_sentences(found: dict[str, Any], property: Elicitable) -> tuple[str, ...]:
    """What was found, confirmed ones only, and which columns give the outcome away.

    `found` is what `jobs.discovering.discovered` returns.
    """
    words, told = property_words(property), []
    confirmed = [one for one in found["subgroups"] if one["confirmed"]]
    for one in confirmed[:N_TOLD]:
        bias = words.bias(float(one["bias"]) / words.scale)
        least = words.size(float(one["bound"]) / words.scale)
        told.append(f"{shortened(one['name'], 80)}: {bias}, by {least} at least ({counted(one['rows'], 'fresh row')})")
    if told:
        more = f"; and {len(confirmed) - len(told)} more" if len(confirmed) > len(told) else ""
        sentences = [f"Searched and confirmed on rows that were not searched: {'; '.join(told)}{more}."]
    else:
        sentences = [f"A search of {counted(found['rows'])} for other subgroups confirmed none."]
    leaks = [f"{shortened(leak['name'])} ({percent(round(leak['share'], 2))})" for leak in found["leaks"]]
    if leaks:
        sentences.append(
            f"These give the outcome away, and cannot have been known in time, or say how it was made: "
            f"{', '.join(leaks[:N_TOLD])} of the error is known from them."
        )
    if told and found["explained"] > 0:
        share = number(100 * found["explained"], 2)
        sentences.append(f"Correcting them takes {share} % off the mean square error of a row.")
    return tuple(sentences)

"""The witness: the forecast value and the function that show the largest error, in numbers and in a sentence."""

from dataclasses import dataclass

import numpy as np

from swapcal.audit.functions import Functions
from swapcal.audit.sums import SumTable
from swapcal.audit.totals import swap_contributions
from swapcal.errors import InvalidInput
from swapcal.roles import Elicitable
from swapcal.typing import Float64Array
from swapcal.words.worst_cell import worst_cell_sentence

__all__ = ["Witness", "find_witness"]


@dataclass(frozen=True, eq=False)
class Witness:
    """The worst function at the forecast value that adds most to the swap multicalibration error.

    Parameters
    ----------
    value : float
        Forecast value.
    function : int or None
        Index in a finite class; None for the linear class.
    name : str
        Name of the function.
    direction : array or None
        Unit vector theta, in the scale of the class, for the linear class; None for a finite one.
    count : int
        Rounds in which `value` was forecast, and, in a finite class, the function was not 0.
    mean : float
        Mean identification: sum of f V over sum of |f|, or over the rounds for the linear class. Positive: too high.
    low, high : float
        Interval of `mean`. It holds for every function and value at once, so it is fair to the one that was picked.
    contribution, share : float
        What this value adds to SMCal_r, and the part of the total that this is.
    confidence : float
        Probability with which the interval holds.
    sentence : str
        All of that in words, in the property's own units where it has any; also what `str` gives.

    Examples
    --------
    >>> from swapcal.audit import Audit
    >>> audit = Audit(n=1, names=["everybody"])
    >>> audit.update_many([0, 0], [0.5, 0.5], [[1], [1]])
    >>> audit.witness().name, audit.witness().mean
    ('everybody', 0.5)
    """

    value: float
    function: int | None
    name: str
    direction: Float64Array | None
    count: int
    mean: float
    low: float
    high: float
    contribution: float
    share: float
    confidence: float
    sentence: str

    def __str__(self) -> str:
        return self.sentence


def find_witness(
    table: SumTable,
    radii: Float64Array,
    functions: Functions,
    names: tuple[str, ...],
    r: float,
    confidence: float,
    property: Elicitable,
) -> Witness:
    """Find the witness of a stream with at least one round.

    For the linear class the interval follows from those of the coordinates: if all of them hold, then the deviation
    along theta is at most sum_j |theta_j| R_j, for every theta, also one that was picked with the data in view.
    """
    contributions = swap_contributions(table, functions, r)
    i = int(np.argmax(contributions))
    sums, radius_of = table.xv[i], radii[i]
    dual = functions.dual
    function: int | None = None
    direction: Float64Array | None = None
    members = False
    if dual == "max":
        function = int(np.argmax(np.abs(sums)))
        members = bool(table.weight[i, function] == table.active[i, function])
        name, count, weight = names[function], int(table.active[i, function]), float(table.weight[i, function])
        total, radius = float(sums[function]), float(radius_of[function])
    elif dual == "euclidean":
        length = float(np.linalg.norm(sums))
        direction = sums / length if length > 0 else np.zeros_like(sums)
        largest = int(np.argmax(np.abs(direction)))
        name = f"the linear function with largest weight {direction[largest]:+.2f} on {names[largest]}"
        count, weight = int(table.rounds[i]), float(table.count[i])
        total, radius = length, float(np.abs(direction) @ radius_of)
    else:
        raise InvalidInput(f"a witness is known for classes with dual 'max' or 'euclidean'; {functions!r} has {dual!r}")
    # A function that was 0 all along has no mean; nothing was observed, so the interval is everything.
    mean, spread = (total / weight, radius / weight) if weight > 0 else (0.0, np.inf)
    error = float(np.sum(contributions))
    value, low, high = float(table.value[i]), max(mean - spread, -1.0), min(mean + spread, 1.0)
    share = float(contributions[i]) / error if error > 0 else 0.0
    return Witness(
        value=value,
        function=function,
        name=name,
        direction=direction,
        count=count,
        mean=mean,
        low=low,
        high=high,
        contribution=float(contributions[i]),
        share=share,
        confidence=float(confidence),
        sentence=worst_cell_sentence(
            property, value, name, (mean, low, high), share, float(confidence), members=members
        ),
    )

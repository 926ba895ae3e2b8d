"""The witness: the forecast value and the function that show the largest error, in numbers and in a sentence."""

from dataclasses import dataclass

import numpy as np

from swapcal.audit.functions import Functions
from swapcal.audit.sums import Table
from swapcal.audit.totals import swap_contributions
from swapcal.errors import InvalidInput
from swapcal.typing import Float64Array

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

    def __str__(self) -> str:
        interval = f"{100 * self.confidence:g} % interval {self.low:+.3f} to {self.high:+.3f}"
        if self.mean == 0:
            return f"forecasts near {self.value:.4g} are neither too high nor too low for {self.name} ({interval})"
        side = "too high" if self.mean > 0 else "too low"
        chance = "" if self.low > 0 or self.high < 0 else "; that may be chance"
        return (
            f"forecasts near {self.value:.4g} are {side} for {self.name} by {abs(self.mean):.3f} in mean "
            f"identification ({interval}{chance}); {100 * self.share:.0f} % of the swap multicalibration error"
        )


def find_witness(
    table: Table, radii: Float64Array, functions: Functions, names: tuple[str, ...], r: float, confidence: float
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
    if dual == "max":
        function = int(np.argmax(np.abs(sums)))
        name, count, weight = names[function], int(table.active[i, function]), float(table.weight[i, function])
        total, radius = float(sums[function]), float(radius_of[function])
    elif dual == "euclidean":
        length = float(np.linalg.norm(sums))
        direction = sums / length if length > 0 else np.zeros_like(sums)
        largest = int(np.argmax(np.abs(direction)))
        name = f"the linear function with largest weight {direction[largest]:+.2f} on {names[largest]}"
        count, weight = int(table.count[i]), float(table.count[i])
        total, radius = length, float(np.abs(direction) @ radius_of)
    else:
        raise InvalidInput(f"a witness is known for classes with dual 'max' or 'euclidean'; {functions!r} has {dual!r}")
    # A function that was 0 all along has no mean; nothing was observed, so the interval is everything.
    mean, spread = (total / weight, radius / weight) if weight > 0 else (0.0, np.inf)
    error = float(np.sum(contributions))
    return Witness(
        value=float(table.value[i]),
        function=function,
        name=name,
        direction=direction,
        count=count,
        mean=mean,
        low=max(mean - spread, -1.0),
        high=min(mean + spread, 1.0),
        contribution=float(contributions[i]),
        share=float(contributions[i]) / error if error > 0 else 0.0,
        confidence=float(confidence),
    )

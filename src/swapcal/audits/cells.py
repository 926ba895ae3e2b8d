"""Cells: one row per forecast value and function, with an interval that is honest for all of them together."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Literal, overload

import numpy as np

from swapcal.audits.sums import SumTable, swap_contributions
from swapcal.errors import InvalidInput
from swapcal.inputs import real
from swapcal.protocols import Elicitable, Hypotheses
from swapcal.text.numbers import aligned, count, group_name, interval, number, percent, range_text
from swapcal.typing import Float64Array, IntArray

# --------
# Confidence radii for sums of bounded numbers, from their count, sum and sum of squares alone.
#
# Notation: z_1, z_2, ... in [-1, 1] are the terms f(x_t) V(p_t, y_t) of one cell, m their number, s their sum, q the
# sum of their squares; a radius R says |s - sum of the expected terms| <= R.

# The mixture over tilts lambda. The best tilt is near sqrt(2 log(1/delta) / q), so halving from 0.95 down to 1e-4
# serves every q up to about 1e9.
TILTS = 0.95 * 2.0 ** -np.arange(14)
CURVATURES = -np.log1p(-TILTS) - TILTS


def adaptive_radius(squares: Float64Array, delta: float) -> Float64Array:
    """Radius that holds with probability 1 - delta at all times at once, for any adaptive sequence in [-1, 1].

    Guarantee: let mu_t = E[z_t | everything before z_t is drawn]. With probability at least 1 - delta, for every
    number of terms, |sum_t (z_t - mu_t)| <= adaptive_radius(q, delta). Nothing else is assumed: terms need not be
    independent, their number may depend on them, and one may look after every term.

    Notes
    -----
    For z >= -1 and 0 <= lambda < 1, exp(lambda z - psi(lambda) z^2) <= 1 + lambda z with psi(lambda) = -log(1 -
    lambda) - lambda (Fan, Grama and Liu 2015, Lemma 4.1). Taking means and using 1 + u <= exp(u), the process
    exp(lambda sum(z_t - mu_t) - psi(lambda) sum z_t^2) is a supermartingale that starts at 1 (Howard et al. 2021,
    Theorem 4, with the prediction 0, which is what a calibrated cell has). So is its average over a fixed set of
    lambdas, and Ville's inequality keeps that below 2 / delta; the radius is the deviation at which it gets there.
    The other side is the same for -z.

    The average is convex and increasing in the deviation, so Newton's steps from above stay above: every iterate is
    valid. Cost: O(number of cells) with a constant near 200.

    References
    ----------
    Fan, Grama, Liu (2015), Exponential inequalities for martingales with applications, EJP 20. Howard, Ramdas,
    McAuliffe, Sekhon (2021), Time-uniform, nonparametric, nonasymptotic confidence sequences, Annals of Statistics
    49(2), Theorem 4.

    Examples
    --------
    >>> adaptive_radius(np.array([25.0]), 0.05).round(1)
    array([21.8])
    """
    level = math.log(2 / delta)
    # Each tilt on its own, at its share of delta, is a valid radius; the least of them is where Newton starts.
    radius: Float64Array = np.full(squares.shape, np.inf)
    for tilt, curvature in zip(TILTS, CURVATURES, strict=True):
        radius = np.minimum(radius, (level + math.log(len(TILTS)) + curvature * squares) / tilt)
    for _ in range(6):
        # log of the sum over tilts of exp(tilt * radius - curvature * q), and of its derivative in the radius.
        total, slope = np.full(squares.shape, -np.inf), np.full(squares.shape, -np.inf)
        for tilt, curvature in zip(TILTS, CURVATURES, strict=True):
            exponent = tilt * radius - curvature * squares
            total, slope = np.logaddexp(total, exponent), np.logaddexp(slope, exponent + math.log(tilt))
        excess = total - math.log(len(TILTS)) - level
        radius = radius - np.maximum(excess, 0.0) * np.exp(total - slope)
    return radius


def independent_radius(count: Float64Array, total: Float64Array, squares: Float64Array, delta: float) -> Float64Array:
    r"""Radius that holds with probability 1 - delta for `count` independent terms in [-1, 1]; infinite for one term.

    Guarantee: if the terms are independent and their number is fixed, |sum_t (z_t - E z_t)| <= R with probability at
    least 1 - delta, where

    .. math:: R = \sqrt{2 m \hat\sigma^2 \ln(4/\delta)} + \frac{14\, m \ln(4/\delta)}{3 (m - 1)}

    and sigma-hat^2 is the sample variance with m - 1 below the line.

    Notes
    -----
    Maurer and Pontil (2009) bound one side at delta by sqrt(2 var ln(2/delta) / m) + 7 ln(2/delta) / (3 (m - 1)) for
    numbers in [0, 1] (Theorem 4 for equal, Theorem 11 for different distributions). The range here is 2, which
    doubles the second term; two sides at delta/2 each turn ln(2/delta) into ln(4/delta).

    Examples
    --------
    >>> independent_radius(np.array([100.0]), np.array([0.0]), np.array([25.0]), 0.05).round(1)
    array([35.5])
    """
    level = math.log(4 / delta)
    several = np.maximum(count, 2.0)
    variance = np.maximum(squares - total**2 / several, 0.0) / (several - 1)
    radius = np.sqrt(2 * several * variance * level) + 14 * several * level / (3 * (several - 1))
    return np.where(count >= 2, radius, np.inf)


# What an interval assumes of the rounds: nothing, or independent labels given all contexts and forecasts.
Assumption = Literal["adaptive", "independent"]

N_PRINTED = 20


@dataclass(frozen=True, slots=True)
class Cell:
    """What happened when `value` was forecast and the function was not zero.

    mean = sum of f V / sum of |f| (for a group, the mean of V over its members): positive says that forecasts were
    too high. [low, high] is its interval; contribution = n_p |sum of f V / n_p|^r, what the cell alone would add to
    the error.

    Parameters
    ----------
    value, function, name, count, weight, mean, low, high, contribution
        As above: the forecast, which function, its name, rounds, the sum of |f|, and the numbers.

    Examples
    --------
    >>> Cell(0.3, 0, "all", 100, 100.0, 0.02, -0.01, 0.05, 0.04).name
    'all'
    """

    value: float
    function: int
    name: str
    count: int
    weight: float
    mean: float
    low: float
    high: float
    contribution: float


COLUMNS = tuple(field.name for field in fields(Cell))


@dataclass(frozen=True, eq=False, repr=False)
class Cells:
    """Cells in columns, the largest contribution first. Iterate, index or slice it; `to_dict` feeds any data frame.

    The intervals hold for all cells of the audit at once with probability `confidence`, so picking the worst ones is
    fair.

    Parameters
    ----------
    value, function, name, count, weight, mean, low, high, contribution
        The columns; see `Cell`.
    confidence : float
        Probability with which all intervals hold together.
    rounds : {"adaptive", "independent"}
        What they assume of the rounds.

    Examples
    --------
    >>> from swapcal.audits import Audit
    >>> audit = Audit(n=1)
    >>> audit.update_many([1, 0], [0.5, 0.5], [[1], [1]])
    >>> len(audit.cells()), audit.cells()[0].mean
    (1, 0.0)
    """

    value: Float64Array
    function: IntArray
    name: tuple[str, ...]
    count: IntArray
    weight: Float64Array
    mean: Float64Array
    low: Float64Array
    high: Float64Array
    contribution: Float64Array
    confidence: float
    rounds: Assumption

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[Cell]:
        return (Cell(*row) for row in zip(*self.to_dict().values(), strict=True))

    @overload
    def __getitem__(self, key: int) -> Cell: ...
    @overload
    def __getitem__(self, key: slice) -> "Cells": ...
    def __getitem__(self, key: int | slice) -> "Cell | Cells":
        chosen = range(len(self))[key]
        return next(iter(self._taken([chosen]))) if isinstance(chosen, int) else self._taken(list(chosen))

    @property
    def biased(self) -> "Cells":
        """The cells whose interval leaves out 0: bias that chance does not explain."""
        return self._taken(np.flatnonzero((self.low > 0) | (self.high < 0)).tolist())

    def to_dict(self) -> dict[str, list[Any]]:
        """One list per column, of plain Python values."""
        return {
            name: list(self.name) if name == "name" else getattr(self, name).tolist()  # the names are a tuple already
            for name in COLUMNS
        }

    def _taken(self, chosen: list[int]) -> "Cells":
        columns = {name: getattr(self, name)[chosen] for name in COLUMNS if name != "name"}
        names = tuple(self.name[i] for i in chosen)
        return Cells(**columns, name=names, confidence=self.confidence, rounds=self.rounds)

    def __repr__(self) -> str:
        shown = self[:N_PRINTED]
        columns = {
            "forecast": [number(value, 6) for value in shown.value.tolist()],
            "function": list(shown.name),
            "rounds": [count(rounds) for rounds in shown.count.tolist()],
            "mean V": aligned(shown.mean.tolist(), sign=True),
            f"{percent(self.confidence)} interval": [interval(cell.low, cell.high) for cell in shown],
            "contribution": [number(value) for value in shown.contribution.tolist()],
        }
        rows = [tuple(columns), *zip(*columns.values(), strict=True)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)) for row in rows]
        if len(self) > N_PRINTED:
            lines.append(f"... and {len(self) - N_PRINTED} more cells")
        return "\n".join(lines)


def cell_radii(table: SumTable, confidence: float, rounds: Assumption, n_possible: int | None) -> Float64Array:
    """Radii of the sums of f V in every cell, shape (n_values, n), that hold together; 0 where f was always 0.

    K cells are not empty, and `n_possible` says how many there can ever be, if that is known. "independent": each gets
    (1 - confidence) / K. "adaptive": K may depend on the labels, so each gets (1 - confidence) / n_possible. If that is
    unknown, the k-th cell to appear gets (1 - confidence) / (k (k + 1)), which adds up for any number of cells; all are
    given the last one's share, which is no larger.
    """
    level = real(confidence, "confidence")
    if not 0 < level < 1:
        raise InvalidInput(f"confidence must be between 0 and 1, both left out; got {level!r}")
    occupied = table.active > 0
    n_cells = max(int(np.count_nonzero(occupied)), 1)
    if rounds == "adaptive":
        radii = adaptive_radius(table.xvxv, (1 - level) / (n_possible or n_cells * (n_cells + 1)))
    elif rounds == "independent":
        radii = independent_radius(table.active, table.xv, table.xvxv, (1 - level) / n_cells)
    else:
        raise InvalidInput(f"rounds must be 'adaptive' or 'independent'; got {rounds!r}")
    return np.where(occupied, radii, 0.0)


def ends_of(table: SumTable, radii: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Intervals of the means of all cells, from the radii of their sums."""
    weight = np.where(table.weight > 0, table.weight, 1.0)
    mean = table.xv / weight
    with np.errstate(over="ignore"):  # tiny weights: the interval is everything, and is cut to [-1, 1]
        radius = radii / weight
    return np.maximum(mean - radius, -1.0), np.minimum(mean + radius, 1.0)


def make_cells(
    table: SumTable,
    ends: tuple[Float64Array, Float64Array],
    names: tuple[str, ...],
    r: float,
    confidence: float,
    rounds: Assumption,
) -> Cells:
    """All cells that are not empty; `ends` are those of the intervals, shape (values, functions) each."""
    at, function = np.nonzero(table.active > 0)
    weight, count = table.weight[at, function], table.count[at]
    mean = table.xv[at, function] / weight
    low, high = (end[at, function] for end in ends)
    contribution = count * np.abs(table.xv[at, function] / count) ** r
    order = np.argsort(-contribution, kind="stable")
    return Cells(
        value=table.value[at][order],
        function=function[order],
        name=tuple(names[j] for j in function[order]),
        count=table.active[at, function][order].astype(np.int64),
        weight=weight[order],
        mean=mean[order],
        low=low[order],
        high=high[order],
        contribution=contribution[order],
        confidence=float(confidence),
        rounds=rounds,
    )


# --------
# The sentence about where forecasts are most wrong: for `Audit.witness`, the terminal and the page.


def worst_cell_sentence(
    property: Elicitable,
    value: float,
    name: str,
    bias: tuple[float, float, float],
    share: float,
    confidence: float,
    *,
    members: bool = True,
) -> str:
    """Where the forecasts are most wrong, in the property's own units where it has any.

    Parameters
    ----------
    property : Elicitable
        What was forecast.
    value : float
        The forecast.
    name : str
        The group or function.
    bias : tuple of 3 floats
        Mean identification, and both ends of its interval.
    share : float
        The part of the swap error that comes from this cell.
    confidence : float
        Of the interval.
    members : bool
        Whether the function is 0 or 1, so that the mean is one over members: then it says what their outcomes were.
    """
    (mean, low, high), near = bias, f"orecasts near {number(value)}"
    if mean == 0.0:
        return f"No f{near} are too high or too low for any group."
    chance = "" if low > 0 or high < 0 else "; that may be chance"
    sure = f"{percent(confidence)} interval"
    words, (bottom, top) = property.wording, property.domain
    outcomes = [property.outcome(value, v) for v in (mean, high, low)]
    if members and None not in outcomes:
        outcome, least, most = (min(max(float(y), bottom), top) for y in outcomes if y is not None)
        what = f"the mean outcome was {number(outcome)} ({sure} {range_text(least, most)}{chance})"
    elif members and words.coverage is not None:
        below, least, most = (100 * min(max(words.coverage + v, 0.0), 1.0) for v in (mean, low, high))
        what = (
            f"{number(below)} % of outcomes stayed at or below them instead of {number(100 * words.coverage)} % "
            f"({sure} {range_text(least, most)} %{chance})"
        )
    else:
        what = f"by {words.size(mean)} ({sure} {words.interval(low, high)}{chance})"
    side = "too high" if mean > 0 else "too low"
    return f"F{near} are {side} for {group_name(name)}: {what}; {100 * share:.0f} % of the swap error comes from there."


# --------
# The witness: the forecast value and the function that show the largest error, in numbers and in a sentence.


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
    >>> from swapcal.audits import Audit
    >>> audit = Audit(n=1, names=["all"])
    >>> audit.update_many([0, 0], [0.5, 0.5], [[1], [1]])
    >>> audit.witness().name, audit.witness().mean
    ('all', 0.5)
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
    functions: Hypotheses,
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

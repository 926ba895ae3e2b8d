"""When the outcomes of a recorded stream are learned: before the first row at or after the moment they are known."""

from typing import Any, NamedTuple

import numpy as np

from swapcal import checked
from swapcal.engine import kernels
from swapcal.errors import InvalidInput
from swapcal.typing import Float64Array, IntArray

__all__ = ["NOT_YET", "Arrivals", "arrivals", "moments", "nothing_late", "planned"]

NEVER = np.iinfo(np.int64).max
NOT_YET = 2
"""In `Arrivals.late`: the outcome is missing, and waited for."""


class Arrivals(NamedTuple):
    """What is learned before each row: `codes[ends[i]:ends[i + 1]]` before row i, and the rest behind the last.

    A code of 0 or more is a row of the stream; below that, -1 - code is a line of those that wait from before. `late`
    tells the rows whose outcome is not simply learned next, 2 for those that wait though it is missing, and `due` until
    when they wait.
    """

    codes: IntArray
    ends: IntArray
    late: Any
    due: Float64Array


def nothing_late(n: int) -> Arrivals:
    """The plan of `n` rows whose outcomes are all learned at once."""
    none = np.zeros(0, dtype=np.int64)
    return Arrivals(none, np.zeros(n + 1, dtype=np.int64), np.zeros(n, dtype=np.uint8), np.full(n, np.nan))


def moments(values: Any, name: str, n: int) -> Float64Array:
    """Times or row numbers as seconds or counts; NaN for never.

    Examples
    --------
    >>> moments(np.array(["1970-01-02", "NaT"], dtype="datetime64[D]"), "known", 2)
    array([86400.,    nan])
    """
    array = np.asarray(values)
    if array.dtype.kind == "M":
        seconds = array.astype("datetime64[us]").astype(np.int64) / 1e6
        result = np.where(np.isnat(array), np.nan, seconds)
    else:
        result = checked.floats(values, name, "times or row numbers").astype(np.float64)
    if result.shape != (n,):
        raise InvalidInput(f"{name} must have one entry for each of the {n} rows; got shape {result.shape}")
    return result


def arrivals(
    known: Any,
    times: Any,
    n: int,
    first: int,
    waiting: tuple[IntArray, IntArray, Float64Array],
    order: str,
    settle: int | None,
    gone: Any,
) -> Arrivals:
    """The plan of a stream of `n` rows whose first has the round number `first`.

    Parameters
    ----------
    known : array
        When the outcome of each row is known; NaN: never. Row numbers, counted from 0 at the first row here, or times.
    times : array or None
        The time of each row, not falling; None for row numbers.
    n, first : int
        Rows, and the round number of the first.
    waiting : tuple
        Lines, round numbers and due moments of rounds from before.
    order : {"arrival", "forecast"}
        "arrival": an outcome is learned when it is known. "forecast": not before those of all earlier forecasts are
        known, or have waited for `settle` rounds.
    settle : int or None
        After how many rounds nobody waits for an outcome any more; None: always.
    gone : array of bool
        Rows whose outcome will not come, so that nobody waits for it.

    Returns
    -------
    Arrivals
        Whatever is known only after the last row waits for the next stream.
    """
    rows = np.arange(n, dtype=np.int64)
    if times is None:
        clock = (first + rows).astype(np.float64)
        due = moments(known, "known", n) + first
    else:
        clock, due = moments(times, "times", n), moments(known, "known", n)
        wrong = np.isnan(clock) | (np.diff(clock, prepend=-np.inf) < 0.0)
        if wrong.any():
            at = int(np.argmax(wrong))
            raise InvalidInput(f"times must not fall; the time of row {at} is missing or before that of the row above")
    early = due < clock
    if early.any():
        at = int(np.argmax(early))
        raise InvalidInput(f"the outcome of row {at} is known before the row itself; check known= and times=")
    lines, rounds, dues = waiting
    n_carried = len(lines)
    arrive = np.empty(n_carried + n, dtype=np.int64)
    for moments_of, part in ((dues, arrive[:n_carried]), (due, arrive[n_carried:])):
        part[:] = _rows(clock, moments_of) if times is not None else _row_numbers(moments_of, first, n)
    np.maximum(arrive[n_carried:], rows + 1, out=arrive[n_carried:])
    if order == "forecast":
        waited_for = np.concatenate([np.ones(n_carried, dtype=bool), ~gone])
        numbers = np.concatenate([rounds, first + rows])
        arrive[waited_for] = _in_order(arrive[waited_for], numbers[waited_for], first, settle)
    plan = planned if kernels.native is None else kernels.native.planned
    codes, ends, late = plan(arrive, lines)
    return Arrivals(codes, ends, late, due)


def planned(arrive: IntArray, lines: IntArray) -> tuple[IntArray, IntArray, Any]:
    """Codes, ends and late rows of `Arrivals`; has a compiled twin.

    Parameters
    ----------
    arrive : array
        Before which row each outcome is learned, those of the lines first; behind the last: not here.
    lines : array
        Rounds from before that wait.

    Returns
    -------
    tuple
        The first three parts of `Arrivals`.

    Examples
    --------
    >>> [part.tolist() for part in planned(np.array([1, 3, 2, NEVER]), np.array([7]))]
    [[-8], [0, 0, 1, 1], [1, 0, 1]]
    """
    n_carried, n = len(lines), len(arrive) - len(lines)
    rows = np.arange(n, dtype=np.int64)
    codes = np.concatenate([-1 - lines, rows])
    # Round numbers increase, so ties keep their order; what is nearly sorted is sorted in linear time.
    sorted_by = np.argsort(arrive, kind="stable")
    arrive_sorted = arrive[sorted_by]
    inside = arrive_sorted < n
    codes = codes[sorted_by][inside]
    counts = np.bincount(arrive_sorted[inside], minlength=n + 1)
    # A row that is alone in being learned before the next one is learned at once.
    own = arrive[n_carried:]
    at_once = (own == rows + 1) & (own < n) & (counts[np.minimum(own, n)] == 1)
    kept = ~((codes >= 0) & at_once[np.maximum(codes, 0)])
    counts = np.bincount(arrive_sorted[inside][kept], minlength=n)
    ends = np.concatenate([[0], np.cumsum(counts[:n])]).astype(np.int64)
    return np.ascontiguousarray(codes[kept]), ends, (~at_once).astype(np.uint8)


def _rows(clock: Float64Array, due: Float64Array) -> IntArray:
    """The first row at or after a moment; far behind the last for those that never come."""
    found = np.searchsorted(clock, due, side="left").astype(np.int64)
    found[np.isnan(due) | (found == len(clock))] = NEVER
    return found


def _row_numbers(due: Float64Array, first: int, n: int) -> IntArray:
    """The same where the clock counts rows from `first` on."""
    numbers = np.ceil(due) - first
    with np.errstate(invalid="ignore"):
        numbers = np.where(numbers < n, numbers, n)  # and those that are NaN
    found: IntArray = np.maximum(numbers, 0.0).astype(np.int64)
    return found


def _in_order(arrive: IntArray, numbers: IntArray, first: int, settle: int | None) -> IntArray:
    """Every outcome not before those of all earlier forecasts, or their deadline; `numbers` increase."""
    deadline = arrive if settle is None else np.minimum(arrive, np.maximum(numbers - first + settle, 0))
    before = np.concatenate([[0], np.maximum.accumulate(deadline)[:-1]]) if len(deadline) else deadline
    result: IntArray = np.maximum(arrive, before)
    return result

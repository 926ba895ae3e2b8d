"""Late outcomes in sentences: standing back, and delays that depend on outcomes."""

from swapcal.words.numbers import count, counted

__all__ = ["dependent_delays", "expired", "standing_back"]


def standing_back(since: int, judged: int, cost: float | None) -> str:
    """Why the model's own numbers are shown.

    Parameters
    ----------
    since : int
        The round, from 0.
    judged : int
        Outcomes that speak for or against the corrections.
    cost : float or None
        What the corrections that were shown have cost, as a share of the model's loss; None: nothing was judged yet.

    Examples
    --------
    >>> print(standing_back(12339, 9800, 0.0131)[:80])
    Standing back since row 12,340: on the 9,800 outcomes judged so far, the correct
    """
    head = f"Standing back since row {count(since + 1)}: "
    tail = (
        " The model's own numbers are shown while score is kept, and the corrections come back by themselves once they "
        "gain."
    )
    if cost is None:
        return head + "outcomes come late, and none could be judged so far." + tail
    on = f"on the {counted(judged, 'outcome')} judged so far, "
    if cost > 0.0:
        spent = f"the corrections that were shown have cost {100.0 * cost:.2g} % of the model's loss"
        return f"{head}{on}{spent}, with the worst assumed of outcomes that are out.{tail}"
    return f"{head}{on}the corrections have not proved a gain that covers those whose outcomes are out.{tail}"


def dependent_delays(log_e: float, slope: float, scale: float | None) -> str:
    """That outcomes which come late are not like those that come early.

    Parameters
    ----------
    log_e : float
        Logarithm of the e-value.
    slope : float
        How much larger V is for outcomes that come ten times as late.
    scale : float or None
        Outcomes for each unit of V; None where V does not tell.

    Examples
    --------
    >>> dependent_delays(20.0, 0.31, 1.0)[:108]
    'Outcomes that come late are not like those that come early: among forecasts made at the same time, those tha'
    """
    way = "lower" if slope > 0.0 else "higher"
    size = "" if scale is None else f" by {abs(slope) * scale:.2g}"
    return (
        "Outcomes that come late are not like those that come early: among forecasts made at the same time, those that "
        f"came ten times as late were {way}{size} on average (odds of {_odds(log_e)} against chance). What is learned "
        "in the order of arrival is learned from a biased sample, so no correction is shown before it has proved a "
        "gain, or what is held back is little beside what is known; order='forecast' (--order forecast) waits for the "
        "slow ones."
    )


def expired(n: int) -> str:
    """How many forecasts have waited for too long.

    Examples
    --------
    >>> expired(1)
    '1 forecast waited for its outcome for too long and has expired; give max_pending= a larger value.'
    """
    what = f"{counted(n, 'forecast')} waited for {'its outcome' if n == 1 else 'their outcomes'}"
    return f"{what} for too long and {'has' if n == 1 else 'have'} expired; give max_pending= a larger value."


def _odds(log_e: float) -> str:
    return "more than a million to one" if log_e > 13.8 else f"{count(round(2.718281828459045**log_e, -2))} to one"

"""What a forecaster can tell about late outcomes: a look at its book, for people."""

from dataclasses import dataclass

from swapcal.engine import gate
from swapcal.engine.state import Rules, State
from swapcal.text.numbers import count, counted

# --------
# Late outcomes in sentences: standing back, and delays that depend on outcomes.


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


@dataclass(frozen=True, slots=True)
class Lateness:
    """How late outcomes come, and what follows from it.

    Parameters
    ----------
    n_late, n_pending, n_expired : int
        Outcomes that came after a later forecast, forecasts that wait, and those that have waited for too long.
    mean_delay : float
        Forecasts made between a forecast and its outcome, on average over the outcomes of rounds with a hint since the
        first was late.
    standing_back : bool
        Whether hints are shown as they are.
    since : int or None
        The round since which that is so, from 0.
    n_stood_back : int
        Rounds in which a hint was shown in place of what the engine said.
    spent : float
        What the corrections that were shown have cost, as a share of the model's loss on the outcomes judged, the worst
        assumed of those that are not known; negative: gained.
    log_e : float
        Logarithm of the e-value against delays that do not depend on outcomes.
    dependent_since : int or None
        The round before which that exceeded ln 1000.
    sentences : tuple of str
        All of this that somebody should know.
    """

    n_late: int
    n_pending: int
    n_expired: int
    mean_delay: float
    standing_back: bool
    since: int | None
    n_stood_back: int
    spent: float
    log_e: float
    dependent_since: int | None
    sentences: tuple[str, ...]


def lateness_report(rules: Rules, state: State) -> Lateness:
    """The book of `state`, in words and numbers."""
    totals, counts, ledger = state.gate.totals, state.gate.counts.tolist(), state.ledger
    since = counts[gate.BACK_SINCE] if state.gate.shut else None
    flagged = counts[gate.FLAGGED] if counts[gate.FLAGGED] >= 0 else None
    judged, loss = int(totals[gate.JUDGED]), float(totals[gate.MODEL])
    spent = float(totals[gate.SPENT]) / loss if loss > 0.0 else 0.0
    book = totals[gate.SIZE + 1 :]
    log_e = gate.log_evidence(book)
    sentences = []
    if since is not None:
        sentences.append(standing_back(since, judged, spent if judged else None))
    if flagged is not None:
        sentences.append(dependent_delays(log_e, gate.slope(book), _scale(rules)))
    if ledger.n_expired:
        sentences.append(expired(ledger.n_expired))
    return Lateness(
        ledger.n_late,
        state.pending.open,
        ledger.n_expired,
        float(totals[gate.LAGS]) / max(float(totals[gate.KNOWN]), 1.0),
        since is not None,
        since,
        counts[gate.N_BACK],
        spent,
        log_e,
        flagged,
        tuple(sentences),
    )


def _scale(rules: Rules) -> float | None:
    """Outcomes for each unit of V, where V is linear in them."""
    low, high = rules.property.low, rules.property.high
    return None if rules.property.outcome(low, 0.0) is None else high - low

"""What a forecaster can tell about late outcomes: a look at its book, for people."""

from dataclasses import dataclass

from swapcal.engine import gate, lateness
from swapcal.engine.rules import Rules
from swapcal.engine.state import State
from swapcal.properties import Mean, Probability
from swapcal.words import late_words

__all__ = ["Lateness", "look"]


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


def look(rules: Rules, state: State) -> Lateness:
    """The book of `state`, in words and numbers."""
    totals, counts, ledger = state.gate.totals, state.gate.counts.tolist(), state.ledger
    since = counts[gate.BACK_SINCE] if state.gate.shut else None
    flagged = counts[gate.FLAGGED] if counts[gate.FLAGGED] >= 0 else None
    judged, loss = int(totals[gate.JUDGED]), float(totals[gate.MODEL])
    spent = float(totals[gate.SPENT]) / loss if loss > 0.0 else 0.0
    book = totals[gate.SIZE + 1 :]
    log_e = lateness.log_e(book)
    sentences = []
    if since is not None:
        sentences.append(late_words.standing_back(since, judged, spent if judged else None))
    if flagged is not None:
        sentences.append(late_words.dependent_delays(log_e, lateness.slope(book), _scale(rules)))
    if ledger.n_expired:
        sentences.append(late_words.expired(ledger.n_expired))
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
    if isinstance(rules.property, (Mean, Probability)):
        return rules.property.high - rules.property.low
    return None

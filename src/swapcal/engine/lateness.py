"""What a forecaster can tell about its corrections and about late outcomes: a look at its books, for people."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from swapcal.engine import share as shares
from swapcal.engine.share import Share
from swapcal.engine.state import Rules, State
from swapcal.text.numbers import count, counted


@dataclass(frozen=True, slots=True)
class Lateness:
    """How late outcomes come, and how much of the corrections is shown.

    Parameters
    ----------
    n_late, n_pending, n_expired : int
        Outcomes that came after a later forecast, forecasts that wait, and those that have waited for too long.
    mean_delay : float
        Forecasts made between a forecast and its outcome, on average over the outcomes of rounds with a hint.
    share : float
        How much of the correction of the caller's own number is shown now, from 0 to 1: of the learning hint's, or of
        the engine's where no hint learns. Of this and the next two: 1 where nothing is protected.
    mean_share : float
        The same on average over all rounds.
    engine_share : float
        How much of the engine's correction of that is shown now.
    since : int or None
        The round, from 0, since which corrections are shown, or since which they are not; None before the first.
    gained : float
        What was shown has gained over the caller's own numbers, as a share of their loss on outcomes that are known;
        negative: lost.
    log_e : float
        Logarithm of the e-value against delays that do not depend on outcomes.
    sentences : tuple of str
        All of this that somebody should know.
    """

    n_late: int
    n_pending: int
    n_expired: int
    mean_delay: float
    share: float
    mean_share: float
    engine_share: float
    since: int | None
    gained: float
    log_e: float
    sentences: tuple[str, ...]

    @property
    def dependent(self) -> bool:
        """Whether delays were found to depend on outcomes."""
        return self.log_e > shares.ALARM


def lateness_report(rules: Rules, state: State) -> Lateness:
    """The books of `state`, in words and numbers."""
    ledger = state.ledger
    first = state.shares[0 if rules.hint is not None else 1]
    totals, rounds = first.totals, float(first.blocks[:, shares.N].sum())
    known = float(totals[shares.KNOWN])
    log_e, slope = shares.dependence(first)
    since = int(totals[shares.SINCE]) if rounds else None
    # Each rung has gained over its own base.
    gained, protected = -sum(float(each.totals[shares.SPENT]) for each in state.shares), rules.protect != "nothing"
    loss = float(totals[shares.MODEL])
    report = Lateness(
        ledger.n_late,
        state.pending.open,
        ledger.n_expired,
        float(totals[shares.LAG]) / max(known, 1.0),
        first.now,
        float(first.blocks[:, shares.SHARES].sum()) / rounds if rounds else 0.0,
        state.shares[1].now,
        since,
        gained / loss if loss > 0.0 else 0.0,
        log_e,
        (),
    )
    if not protected:
        report = replace(report, share=1.0, mean_share=1.0, engine_share=1.0)
    sentences = [shown(report, first)] if rounds and protected else []
    if report.dependent:
        sentences.append(dependent_delays(log_e, slope, _scale(rules)))
    if ledger.n_expired:
        sentences.append(expired(ledger.n_expired))
    return replace(report, sentences=tuple(sentences))


# Of several forecasters so many are named; of their numbers some are means, and others the largest.
N_NAMED = 6
_MEANS = ("mean_delay", "share", "mean_share", "engine_share", "gained")
_MOST = ("n_late", "n_pending", "n_expired", "log_e")


def lateness_together(parts: Mapping[str, Lateness]) -> Lateness:
    """Of forecasters by name that forecast the same rounds: means of what they tell, and sentences about all.

    Examples
    --------
    >>> one = Lateness(3, 1, 0, 2.0, 0.4, 0.2, 0.4, 512, 0.05, 0.0, ("Corrections are shown since row 513.",))
    >>> print(lateness_together({"lower end": one, "upper end": replace(one, share=0.9)}).sentences[0])
    Corrections are shown since row 513: a share of 0.40 (lower end) and 0.90 (upper end) now, 0.20 on average; what was
    shown has gained 5 % of the model's loss.
    """
    each = tuple(parts.values())
    means: dict[str, Any] = {name: math.fsum(getattr(one, name) for one in each) / len(each) for name in _MEANS}
    most: dict[str, Any] = {name: max(getattr(one, name) for one in each) for name in _MOST}
    told = [one.sentences[0] for one in each if one.since is not None and one.sentences]
    since = min((one.since for one in each if one.since is not None and one.share > 0.0), default=each[0].since)
    if len(told) > 1 and means["share"] > 0.0:
        named = [f"{one.share:.2f} ({name})" for name, one in list(parts.items())[:N_NAMED]]
        named[-1:] = [f"{len(parts) - N_NAMED + 1} more"] if len(parts) > N_NAMED else named[-1:]
        told = [
            f"Corrections are shown since row {count((since or 0) + 1)}: a share of {', '.join(named[:-1])} and "
            f"{named[-1]} now, {means['mean_share']:.2f} on average; {_gain(means['gained'])} of the model's loss."
        ]
    last = max(each, key=lambda one: one.log_e)
    warned = last.sentences[last.since is not None :]
    return Lateness(**most, **means, since=since, sentences=(*told[:1], *warned))


def shown(report: Lateness, rung: Share) -> str:
    """How much of the corrections is shown, since when, and what was gained or is missing."""
    known = int(rung.totals[shares.KNOWN])
    if known < shares.WAIT:
        return (
            f"The model's own numbers are shown: {counted(known, 'outcome')} of the {int(shares.WAIT)} that it takes "
            f"{'is' if known == 1 else 'are'} known."
        )
    since = f"since row {count((report.since or 0) + 1)}"
    on = f"{_gain(report.gained)} of the model's loss on the {counted(known, 'outcome')} known so far"
    if report.share > 0.0:
        return (
            f"Corrections are shown {since}: a share of {report.share:.2f} now, {report.mean_share:.2f} on average; "
            f"{on}."
        )
    # The block that is under way is not judged yet.
    last = int(rung.totals[shares.LAST])
    blocks = rung.blocks[:last][rung.blocks[:last, shares.N] > 0.0]
    half = int((2.0 * blocks[:, shares.KNOWN_OF] >= blocks[:, shares.N]).sum())
    if half < shares.BLOCKS:
        more = max(int((shares.BLOCKS - half) * rung.totals[shares.SPAN] - rung.blocks[last, shares.N]), 1)
        needed = f"outcomes of {counted(more, 'more row')} are needed to judge"
        return f"The model's own numbers are shown {since}: {needed}."
    if rung.totals[shares.SHARE] > 0.0:
        return (
            f"The model's own numbers are shown {since}: {on}, those pending may cost more, and together that is "
            f"beyond the {100.0 * max(rung.budget, rung.tolerance):.2g} % that may be spent."
        )
    return f"The model's own numbers are shown {since}: no correction has been found that gains; {on}."


def _gain(gained: float) -> str:
    return f"what was shown has {'gained' if gained >= 0.0 else 'lost'} {100.0 * abs(gained):.2g} %"


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
        f"came ten times as late were {way}{size} on average ({_p_value(log_e)}). What is "
        "known first is a biased sample of the outcomes."
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


def _p_value(log_e: float) -> str:
    """The smallest of a few levels that an e-value passes, which by Markov's inequality is a bound of a p-value."""
    passed = [level for level in (1e-6, 1e-4, 0.001, 0.01, 0.05) if log_e >= -math.log(level)]
    return f"p < {passed[0]:.6f}".rstrip("0") if passed else "p > 0.05"


def _scale(rules: Rules) -> float | None:
    """Outcomes for each unit of V, where V is linear in them."""
    low, high = rules.property.low, rules.property.high
    return None if rules.property.outcome(low, 0.0) is None else high - low

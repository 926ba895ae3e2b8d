"""One pure function, on which the adapters of every engine rest."""

from typing import Any

from swapcal.stepping.case_events import Events, PlayedEvents
from swapcal.stepping.event_stream import EventStream

__all__ = ["step"]


def step(state: bytes, events: Events, **parts: Any) -> tuple[bytes, PlayedEvents]:
    """The state after some events, and what came of each; the same for the same bytes and events, wherever it runs.

    Parameters
    ----------
    state : bytes
        What the last step returned; at first `Forecaster.to_bytes()`, or `EventStream.to_bytes()`.
    events : Events
        Cases and outcomes, in order.
    **parts
        Parts of your own making, as for `Forecaster.from_bytes`.

    Returns
    -------
    tuple of bytes and PlayedEvents
        The next state, and what came of each event.

    Examples
    --------
    >>> import swapcal as sc
    >>> first = sc.Forecaster(sc.Probability(), sc.Finite(1), seed=1, identity="store 7").to_bytes()
    >>> state, played = step(first, Events([1, 2], [float("nan")] * 2, [[1.0], [1.0]], [0.2, 0.7]))
    >>> played.forecast
    array([0.2, 0.7])
    >>> step(state, Events([2, 1, 3], [1.0, 0.0, 1.0], []))[1].status
    ['learned', 'learned', 'unknown']
    """
    stream = EventStream.from_bytes(state, **parts)
    played = stream.play(events)
    return stream.to_bytes(), played

"""How much is measured: a size for the page, and one for a look."""

from dataclasses import dataclass

__all__ = ["FULL", "QUICK", "SpeedSizes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedSizes:
    """Rounds and repeats.

    Parameters
    ----------
    rounds : int
        Of a recorded stream.
    events : int
        Of a stream that is played event by event; the twin and the peers play a part of it.
    slow_events : int
        Of that part.
    short, long : int
        Horizons whose rounds are compared.
    repeats : int
        Of each ratio; the median is shown.
    starts : int
        Processes started for each command.
    """

    rounds: int
    events: int
    slow_events: int
    short: int
    long: int
    repeats: int
    starts: int


FULL = SpeedSizes(
    rounds=100_000, events=20_000, slow_events=2_000, short=10_000, long=10_000_000, repeats=21, starts=11
)
QUICK = SpeedSizes(rounds=20_000, events=4_000, slow_events=400, short=10_000, long=500_000, repeats=3, starts=3)

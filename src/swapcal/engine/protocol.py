"""What an engine is: the two steps of a round that cost time, and whole calls where it can take them over.

There are two, with the same numbers to the last bit: `PythonEngine`, the specification, and `NativeEngine`, compiled.
An engine works on the state in place. It is asked first, and may leave any call to Python by answering None or False,
with nothing changed: arguments that are not plain numbers and arrays are read, and refused, in one place.
"""

from typing import Any, NamedTuple, Protocol

from swapcal.engine.arrivals import Arrivals
from swapcal.engine.crossing import Play
from swapcal.forecast import Forecast
from swapcal.roles import Row, Rows
from swapcal.typing import Float64Array, IntArray

__all__ = ["Case", "Engine", "Errors", "Learned", "StreamPart"]


class Case(NamedTuple):
    """What is known of a round before its forecast: the context with the hint's level set, the hint, its inputs.

    `scores` are what the learning hint's update will need of its forecast.
    """

    row: Row
    hint: float | None
    base: float | None
    features: Float64Array | None
    scores: bytes | None = None


class Learned(NamedTuple):
    """What an update needs to know of the play: the slot, the other value, the evidence point, how, Phi at the draw.

    And whether what was said was shown, or the model's own number.
    """

    slot: int
    other: float
    evidence_at: float
    kind: str
    phi: float
    followed: bool = True


class Errors(NamedTuple):
    """V of a round at the forecast, at the evidence point, at the hint, and at the value nearest to the hint."""

    forecast: float
    evidence: float
    hint: float
    nearest: float


class StreamPart(NamedTuple):
    """Some rounds of a recorded stream, checked. A label that is NaN is not known; a hint that is NaN is none."""

    contexts: Rows | Float64Array
    labels: Float64Array
    hints: Float64Array | None
    features: Float64Array | None
    out: Float64Array
    arrivals: Arrivals | None = None


class Engine(Protocol):
    """Plays and learns."""

    def predict(self, x: Any, hint: Any, features: Any) -> Forecast | None:
        """A whole round up to its forecast, where the arguments are plain; else None, and nothing has changed."""

    def update(self, forecast: Any, y: Any) -> bool:
        """Learn an outcome, where the arguments are plain; else False, and nothing has changed."""

    def due(self) -> bool:
        """Whether the last update has left something to Python: the first hint, more room, a label to be looked at."""

    def predict_many(self, X: Any, hints: list[Any], features: list[Any], made: list[Forecast]) -> None:
        """`predict` for each context behind those that are `made`, appended to it, up to one that would be None."""

    def update_many(self, forecasts: list[Any], y: list[float], begin: int) -> int:
        """`update` from number `begin` on; where it stopped, behind a first hint or before what it does not take.

        Labels are left to be looked at.
        """

    def mark(self, forecast: Forecast) -> int:
        """By which the round of a forecast is known, see `marks`."""

    def play(self, case: Case) -> Play:
        """Which values to play, with which probabilities."""

    def learn(self, case: Case, played: Learned, errors: Errors, t: int) -> float | None:
        """The played value records what happened in round `t`, which is closed; a new value, if a gap is to be cut."""

    def plays(self, X: Any, n_rounds: int) -> bool:
        """Whether `run` takes these contexts as they are, without being told their rows."""

    @property
    def alone(self) -> bool:
        """Whether `run` plays whole rounds without Python."""

    def takes(self, features: Float64Array | None) -> bool:
        """Whether `run` takes these features."""

    def run(self, part: StreamPart, progress: IntArray) -> None:
        """Play rounds until all are played or more room is needed.

        `progress` counts rows that are done and codes of arrivals that are learned; behind it are the lines of rows
        that wait, and the number of active entries for which there was no room.
        """

    def hold(self, held: bool) -> None:
        """While it is held, whole calls are left to Python."""

    def assemble(self) -> None:
        """Take up the state's arrays anew, after they were replaced."""

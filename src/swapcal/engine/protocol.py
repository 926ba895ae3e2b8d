"""What an engine is: the two steps of a round that cost time, and whole calls where it can take them over.

There are two, with the same numbers to the last bit: `PythonEngine`, the specification, and `NativeEngine`, compiled.
An engine works on the state in place. It is asked first, and may leave any call to Python by answering None or False,
with nothing changed: arguments that are not plain numbers and arrays are read, and refused, in one place.
"""

from typing import Any, NamedTuple, Protocol

from swapcal.engine.crossing import Play
from swapcal.forecast import Forecast
from swapcal.roles import Row, Rows
from swapcal.typing import Float64Array

__all__ = ["Case", "Engine", "Errors", "StreamPart"]


class Case(NamedTuple):
    """What is known of a round before its forecast: the context with the hint's level set, the hint, its inputs."""

    row: Row
    hint: float | None
    base: float | None
    features: Float64Array | None


class Errors(NamedTuple):
    """V of a round at the forecast, at the evidence point, and at the value of the hint's own bin."""

    forecast: float
    evidence: float
    hint: float


class StreamPart(NamedTuple):
    """Some rounds of a recorded stream, checked. A label that is NaN is not known; a hint that is NaN is none."""

    contexts: Rows | Float64Array
    labels: Float64Array
    hints: Float64Array | None
    features: Float64Array | None
    out: Float64Array


class Engine(Protocol):
    """Plays and learns."""

    def predict(self, x: Any, hint: Any, features: Any) -> Forecast | None:
        """A whole round up to its forecast, where the arguments are plain; else None, and nothing has changed."""

    def update(self, forecast: Any, y: Any) -> bool:
        """Learn an outcome, where the arguments are plain; else False, and nothing has changed."""

    def due(self) -> bool:
        """Whether the last update has left something to Python: the grid is to be refined, a label to be looked at."""

    def play(self, case: Case) -> Play:
        """Which bins to play, with which probabilities."""

    def learn(self, case: Case, bin: int, errors: Errors, t: int) -> None:
        """The played bin records what happened in round `t`, which is closed."""

    def plays(self, X: Any, n_rounds: int) -> bool:
        """Whether `run` takes these contexts as they are, without being told their rows."""

    @property
    def alone(self) -> bool:
        """Whether `run` plays whole rounds without Python."""

    def takes(self, features: Float64Array | None) -> bool:
        """Whether `run` takes these features."""

    def run(self, part: StreamPart, start: int, until: int) -> int:
        """Play rounds from `start` on, up to `until` outcomes; returns where it stopped. Only if it is `alone`."""

    def hold(self, held: bool) -> None:
        """While it is held, whole calls are left to Python."""

    def assemble(self) -> None:
        """Take up the state's arrays anew, after they were replaced."""

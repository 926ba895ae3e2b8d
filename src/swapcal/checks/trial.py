"""A stream on which to check a forecaster, and the state of one as bytes."""

import inspect
import io
import pickle
import zipfile
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from swapcal.typing import Float64Array

__all__ = ["Snapshot", "Trial", "default_stream", "saved", "state", "takes_hints"]

_FILE = ""
"""Name of the one part of a snapshot that is a file."""


class Trial(NamedTuple):
    """Rounds for a forecaster: contexts, labels and, where it takes them, hints and features for a learning hint.

    Parameters
    ----------
    contexts : array of shape (T, n)
        What `predict` is given.
    labels : array of shape (T,)
        The outcomes.
    hints : array of shape (T,), optional
        Somebody's own forecasts.
    features : array of shape (T, d), optional
        Inputs of a learning hint.

    Examples
    --------
    >>> trial = Trial(np.ones((2, 3)), np.array([0.0, 1.0]), hints=np.array([0.2, 0.7]))
    >>> trial.options(1)
    {'hint': 0.7}
    """

    contexts: Float64Array
    labels: Float64Array
    hints: Float64Array | None = None
    features: Float64Array | None = None

    def options(self, t: int) -> dict[str, Any]:
        """The further arguments of `predict` in round `t`."""
        hint = {} if self.hints is None else {"hint": float(self.hints[t])}
        return hint if self.features is None else hint | {"features": self.features[t].copy()}

    def predict(self, forecaster: Any, t: int) -> Any:
        """The forecast of round `t`."""
        return forecaster.predict(self.contexts[t].copy(), **self.options(t))

    def distribution(self, forecaster: Any, t: int) -> Any:
        """What that forecast would be drawn from."""
        return forecaster.distribution(self.contexts[t].copy(), **self.options(t))

    def play(self, forecaster: Any, start: int, stop: int) -> list[float]:
        """The loop: predict and update, round by round."""
        values = []
        for t in range(start, stop):
            forecast = self.predict(forecaster, t)
            forecaster.update(forecast, float(self.labels[t]))
            values.append(float(forecast))
        return values

    def run(self, forecaster: Any, start: int, stop: int) -> list[float]:
        """The same rounds in one call."""
        part = slice(start, stop)
        options = {} if self.hints is None else {"hints": self.hints[part]}
        if self.features is not None:
            options["features"] = self.features[part]
        found = np.asarray(forecaster.run(self.contexts[part], self.labels[part], **options))
        return [float(value) for value in found]


def default_stream(forecaster: Any, n_rounds: int, *, hinted: bool) -> Trial:
    """Contexts that are sparse and inside the unit ball, labels that depend on them, and hints that are biased.

    Their sizes come from `forecaster.hypotheses.n` (or `n_functions`), `forecaster.property` and `forecaster.hint`.
    """
    rng = np.random.default_rng(7)
    target = forecaster.property
    n = forecaster.hypotheses.n if hasattr(forecaster, "hypotheses") else forecaster.n_functions
    contexts = rng.uniform(-1.0, 1.0, (n_rounds, n)) * (rng.random((n_rounds, n)) < 0.6)
    contexts /= np.maximum(np.linalg.norm(contexts, axis=1, keepdims=True), 1.0)
    unit = np.clip(0.5 + 0.4 * contexts[:, 0] + 0.1 * rng.normal(size=n_rounds), 0.0, 1.0)
    # Inside the ends, where labels that were clipped would heap.
    labels = target.low + (target.high - target.low) * (0.02 + 0.96 * (0.7 * unit + 0.3 * rng.random(n_rounds)))
    if target.invalid_labels(labels) is not None:
        labels = np.where(rng.random(n_rounds) < unit, target.high, target.low)
    (low, high), k = target.domain, int(getattr(getattr(forecaster, "hint", None), "n_features", 0))
    hints = low + (high - low) * np.clip(unit + 0.2, 0.0, 1.0) if hinted else None
    return Trial(contexts, labels, hints, rng.normal(size=(n_rounds, k)) if k else None)


def takes_hints(forecaster: Any) -> bool:
    """Whether `predict` has a parameter `hint`."""
    return "hint" in inspect.signature(forecaster.predict).parameters


def saved(forecaster: Any) -> bytes:
    """What `save` writes."""
    buffer = io.BytesIO()
    forecaster.save(buffer)
    return buffer.getvalue()


@dataclass(frozen=True)
class Snapshot:
    """What a forecaster holds at some moment: the file that it writes, or its pickled attributes without one."""

    parts: dict[str, bytes]

    @property
    def n_bytes(self) -> int:
        """How much that is, unpacked."""
        return sum(len(part) for part in _entries(self.parts).values())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Snapshot):
            return NotImplemented
        # The same file holds the same; only files that differ are opened, as time stamps make no difference.
        return self.parts == other.parts or _entries(self.parts) == _entries(other.parts)

    __hash__ = None  # type: ignore[assignment]


def state(forecaster: Any) -> Snapshot:
    """What `save` writes, to be compared with what it writes at another moment.

    Of a forecaster without `save`, its attributes are pickled instead: they are compared and never read.
    """
    if not hasattr(forecaster, "save"):
        return Snapshot({name: pickle.dumps(value) for name, value in vars(forecaster).items()})
    return Snapshot({_FILE: saved(forecaster)})


def _entries(parts: dict[str, bytes]) -> dict[str, bytes]:
    """The parts, with those of an archive in its place."""
    if _FILE not in parts or not zipfile.is_zipfile(io.BytesIO(parts[_FILE])):
        return parts
    with zipfile.ZipFile(io.BytesIO(parts[_FILE])) as archive:
        return {name: archive.read(name) for name in archive.namelist()}

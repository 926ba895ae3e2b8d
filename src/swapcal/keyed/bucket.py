"""Keys in a piece of state, for engines that keep it: bytes in, events by key, bytes out."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from swapcal.cases import Answers, Cases, Events
from swapcal.errors import InvalidInput, StateFileError, SwapcalError
from swapcal.forecaster import Forecaster
from swapcal.keyed.keyed import configuration, forecaster_for_key, key_text
from swapcal.lifecycle import STATUSES
from swapcal.state import Packed, Saved, Stateful
from swapcal.typing import Float64Array

Key = str | int


class KeyBucket(Stateful):
    """The streams of some keys, each as bytes, with the time of its last event.

    Parameters
    ----------
    template : Forecaster
        The configuration of every key.
    idle : float, optional
        A key without an event for longer than this starts anew, in the unit of the times.
    remember, order, settle
        Of the `Cases` of a key.

    Examples
    --------
    >>> import swapcal as sc
    >>> template = sc.Forecaster(sc.Probability(), sc.Finite(1), seed=1, max_pending=64)
    >>> bucket = KeyBucket(template)
    >>> case = Events(["case 1"], [float("nan")], [[1.0]], [0.3])
    >>> bucket.play("Paris", np.array([0.0]), 1, lambda some: case).forecast
    array([0.3])
    >>> again = KeyBucket(template).filled(bucket.to_bytes())
    >>> again.play("Paris", np.array([5.0]), 1, lambda some: Events(["case 1"], [1.0], [])).status
    ['learned']
    """

    kind = "keys"

    def __init__(
        self,
        template: Forecaster,
        *,
        idle: float | None = None,
        remember: int = 256,
        order: str = "arrival",
        settle: int | None = None,
    ) -> None:
        self.template, self.idle = template, idle
        self.rules: dict[str, Any] = {"remember": remember, "order": order, "settle": settle}
        self.states: dict[Key, tuple[float, bytes]] = {}
        # Of the events that were played last and are invalid, by their positions: why.
        self.reasons: dict[int, str] = {}
        made = {**configuration(template), **self.rules, "hypotheses": dict(template.hypotheses.spec())}
        self.digest = hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()[:32]

    def play(self, key: Key, times: Float64Array, n: int, events: Callable[[slice], Events]) -> Answers:
        """The next events of a key, in the order of their times; `events(slice)` gives some of the `n` of them.

        An event that cannot be played is invalid, changes nothing, and has its reason in `reasons`.
        """
        if len(times) != n or np.isnan(times).any() or (n and np.diff(times).min(initial=0.0) < 0.0):
            raise InvalidInput(f"the events of key {key!r} need one time each, in order and without gaps")
        gaps = [] if self.idle is None else (1 + np.flatnonzero(np.diff(times) > self.idle)).tolist()
        self.reasons = {}
        parts: list[Answers] = []
        for start, stop in zip([0, *gaps], [*gaps, n], strict=True):
            parts += self._played(key, times, events, start, stop)
        return Answers(np.concatenate([p.forecast for p in parts]), np.concatenate([p.codes for p in parts]))

    def _played(
        self, key: Key, times: Float64Array, events: Callable[[slice], Events], start: int, stop: int
    ) -> list[Answers]:
        """Some events at once; where one of them is refused, each half by itself."""
        stream = self._stream(key, float(times[start]))
        try:
            answers = stream.play(events(slice(start, stop)))
        except SwapcalError as error:
            if stop - start == 1:
                self.reasons[start] = str(error)
                return [Answers(np.array([np.nan]), np.array([STATUSES.index("invalid")], dtype=np.uint8))]
            middle = (start + stop) // 2
            halves = ((start, middle), (middle, stop))
            return [each for some in halves for each in self._played(key, times, events, *some)]
        for at in np.flatnonzero(answers.codes == STATUSES.index("invalid")).tolist():
            self.reasons[start + at] = f"the outcome is not in the range of {self.template.property!r}"
        self.states[key] = float(times[stop - 1]), stream.to_bytes()
        return [answers]

    def _stream(self, key: Key, now: float) -> Cases:
        used, state = self.states.get(key, (now, None))
        if state is None or (self.idle is not None and now - used > self.idle):
            return Cases(forecaster_for_key(self.template, "key", key_text(str(key))), **self.rules)
        return Cases.from_bytes(state)

    def forget(self, before: float) -> list[Key]:
        """Forget keys whose last event was before this time; which ones."""
        gone = [key for key, (used, _) in self.states.items() if used < before]
        for key in gone:
            del self.states[key]
        return gone

    def to_state(self) -> Saved:
        """All keys with their times; what they have in common is not saved."""
        keys = [[key, used] for key, (used, _) in self.states.items()]
        return Saved([self.digest, keys], {}, {str(k): state for k, (_, state) in enumerate(self.states.values())})

    @classmethod
    def from_state(cls, packed: Packed, *, bucket: "KeyBucket | None" = None) -> "KeyBucket":
        """The bucket, with the keys that were saved."""
        digest, keys = packed.plain
        if bucket is not None and digest != bucket.digest:
            made = "this saved state was made with another property, seed, groups or settings"
            raise StateFileError(f"{made}: give the same ones, or begin anew with another checkpoint")
        if bucket is None or len(packed.parts) != len(keys):
            raise StateFileError("this saved state is damaged: its keys and states do not fit")
        for k, (key, used) in enumerate(keys):
            if type(key) not in (str, int):
                raise StateFileError(f"this saved state is damaged: {key!r} is no key")
            bucket.states[key] = float(used), packed.parts[str(k)]
        return bucket

    def filled(self, data: bytes) -> "KeyBucket":
        """Itself, with the states that `to_bytes` wrote."""
        return self.from_bytes(data, bucket=self)

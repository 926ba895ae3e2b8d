"""A forecaster as bytes: what `save` writes, a third as large and many times faster; for stores that hold many.

The header is JSON: first the rules (specs, and settings that differ from the defaults), which many forecasters share
word for word, then the counters of this one. Of the arrays nothing is stored that follows from the rest: weights follow
from the sums, values from a number of bins, a derived identity from its seed, and the ledger differs from the evidence
only where rounding was owed.
"""

import inspect
import json
import struct
from functools import lru_cache
from typing import Any

import numpy as np

from swapcal import hints, hypotheses, properties
from swapcal.engine import soundness
from swapcal.engine.grid import Grid
from swapcal.engine.rules import Rules
from swapcal.engine.state import Arrays, State
from swapcal.errors import StateFileError
from swapcal.forecast import Identity
from swapcal.packing import Layout, Shape, packed, unpacked
from swapcal.roles import Elicitable, Hypotheses, LearningHint

__all__ = ["from_bytes", "to_bytes"]

_DEFAULTS = {
    name: each.default
    for name, each in inspect.signature(Rules).parameters.items()
    if name not in ("property", "hypotheses", "hint", "seed")
}
_LENGTH = struct.Struct("<I")
_MOST_ATOMS = 1 << 11
_LINES = tuple(f"waiting.{name}" for name in ("whole", "numbers", "scores", "features", "indices", "entries"))
_LOOSE = ("ledger.sums", "waiting.numbers")
"""Arrays that are checked when they are what they stand for: a difference of bits, and numbers that may be missing."""

_SIZES = ("n_values", "open", "n_waiting", "width", "n_cohorts", "n_apart")
_MOST_LAYOUTS = 256


class _Configuration:
    """Rules with some seed, and where the arrays of states of so many values and waiting rounds lie."""

    __slots__ = ("_layouts", "rules")

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self._layouts: dict[tuple[int, ...], Layout] = {}

    def layout(self, state: State, counters: dict[str, Any], n_atoms: int, *, older: bool = False) -> Layout:
        """Where the arrays of a state lie; `older` as for `soundness.expected`."""
        sizes = (n_atoms, older, *(counters[name] for name in _SIZES))
        found = self._layouts.get(sizes)
        if found is None:
            shapes = soundness.expected(self.rules, state, counters, older=older) | {"atoms.labels": (n_atoms,)}
            for name in _implied(self.rules, counters):
                del shapes[name]
            kinds = soundness.KINDS
            typed = {name: Shape(shapes[name], kinds.get(name, np.float64)) for name in sorted(shapes)}
            found = Layout.of(typed, loose=_LOOSE)
            if len(self._layouts) >= _MOST_LAYOUTS:
                self._layouts.clear()
            self._layouts[sizes] = found
        return found


def to_bytes(rules: Rules, state: State) -> bytes:
    """Rules and state; they are not changed, and nothing in the result refers to them."""
    counters, arrays = state.snapshot(copies=False)
    settings = {name: value for name, value in rules.settings().items() if value != _DEFAULTS.get(name, value)}
    hint = None if rules.hint is None else dict(rules.hint.spec())
    shared = _json([dict(rules.property.spec()), dict(rules.hypotheses.spec()), hint, settings])
    derived = state.identity.key == Identity.derived(state.identity, rules.seed).key
    own = [counters[name] for name in soundness.COUNTERS]
    own += [counters["hinted"], rules.seed, str(state.identity), None if derived else counters["key"]]
    own += [counters["former_keys"], len(arrays["atoms.labels"])]
    header = b"".join((_LENGTH.pack(len(shared)), shared, _json(own)))
    for name in _implied(rules, counters):
        del arrays[name]
    _against_evidence(arrays)
    return packed("forecaster", header, [arrays[name] for name in sorted(arrays)])


def from_bytes(
    data: bytes,
    *,
    property: Elicitable | None = None,
    hypotheses: Hypotheses | None = None,
    hint: LearningHint | None = None,
) -> tuple[Rules, State]:
    """The rules and the state that `to_bytes` wrote; parts of the user's own making are passed in again."""
    header, words = unpacked("forecaster", data)
    try:
        (n_shared,) = _LENGTH.unpack_from(header)
        shared, own = header[4 : 4 + n_shared], json.loads(header[4 + n_shared :])
        n_counters = len(soundness.COUNTERS)
        counters: dict[str, Any] = dict(zip(soundness.COUNTERS, own[:n_counters], strict=True))
        hinted, seed, identity, key, former, n_atoms = own[n_counters:]
        soundness.check_counters(counters)
        known, learned = _known(shared, property, hypotheses, hint)
        soundness.check_room(known.rules.hypotheses.n, known.rules.max_pending, len(data))
        rules = known.rules.reseeded(seed, learned)
        n, n_values = rules.functions.n, counters["n_values"]
        if n > words.n or n_values * n > words.n or (rules.bins is not None and rules.bins != n_values):
            raise StateFileError("these bytes are damaged: their arrays do not fit their settings")
        own_key = Identity.derived(identity, seed).key.hex() if key is None else key
        counters |= {"hinted": hinted, "identity": identity, "key": own_key, "former_keys": former}
        soundness.check_identity(counters)
        if type(n_atoms) is not int or not 2 <= n_atoms <= _MOST_ATOMS:
            raise StateFileError("these bytes are damaged: they hold too many labels")
        who = Identity(identity, bytes.fromhex(own_key), tuple(bytes.fromhex(each) for each in former))
        state = State(rules, 1 << max(n_values - 1, 0).bit_length(), who)
        layout = known.layout(state, counters, n_atoms)
        if words.n == layout.n - 1:
            layout = known.layout(state, counters, n_atoms, older=True)
        arrays = words.arrays(layout)
        _against_evidence(arrays)
        if not np.isfinite(arrays["ledger.sums"]).all():
            raise StateFileError("these bytes are damaged: they hold something other than finite numbers")
        if rules.bins is not None:
            arrays["values.born"] = Grid(*rules.property.domain, rules.bins).midpoints
        soundness.check_values(rules, counters, arrays)
        state.fill(counters, arrays)
    except StateFileError:
        raise
    except Exception as error:
        # The checksum is right, so these bytes were made by hand; json and our own constructors raise nearly anything.
        raise StateFileError(f"these bytes hold no forecaster ({type(error).__name__}: {error})") from error
    return rules, state


def _json(data: Any) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode()


def _known(
    shared: bytes, property: Elicitable | None, own: Hypotheses | None, hint: LearningHint | None
) -> tuple[_Configuration, Hypotheses | None]:
    """The rules, from a cache if all parts are our own; and the class of functions, where it has learned something."""
    if property is not None or own is not None or hint is not None or b'"kind":"Numeric"' in shared:
        return _read(shared, property, own, hint), None
    if b'"kind":"Groups"' not in shared:
        return _cached(shared), None
    specs = json.loads(shared)
    learned = specs[1]
    known = _cached(_json([specs[0], hypotheses.unlearned(learned), *specs[2:]]))
    return known, hypotheses.from_spec(learned)


def _read(
    shared: bytes, property: Elicitable | None, own: Hypotheses | None, hint: LearningHint | None
) -> _Configuration:
    specs = json.loads(shared)
    resumed = getattr(own, "resumed", None)
    parts = (
        properties.from_spec(specs[0]) if property is None else property,
        hypotheses.from_spec(specs[1]) if own is None else own if resumed is None else resumed(specs[1]),
        hint if hint is not None or specs[2] is None else hints.OnlineRegression.from_spec(specs[2]),
    )
    soundness.check_specs(parts, specs[:3])
    settings = {str(name): value for name, value in specs[3].items()}
    if not settings.keys() <= _DEFAULTS.keys():
        raise StateFileError(f"these bytes are damaged: their settings are {sorted(settings)}")
    return _Configuration(Rules(*parts, **settings))


@lru_cache(maxsize=64)
def _cached(shared: bytes) -> _Configuration:
    return _read(shared, None, None, None)


def _implied(rules: Rules, counters: dict[str, Any]) -> tuple[str, ...]:
    """Arrays that are not stored: values that are given by their number, and the lines of no rounds that wait."""
    return (() if rules.bins is None else ("values.born",)) + (() if counters["n_waiting"] else _LINES)


def _against_evidence(arrays: Arrays) -> None:
    """The ledger's sums as the bits in which they differ from the evidence's; done twice, it is undone."""
    evidence, sums = arrays.get("evidence.sums"), arrays["ledger.sums"]
    if evidence is not None and evidence.shape == sums.shape:
        bits = np.ascontiguousarray(sums).view(np.uint64) ^ np.ascontiguousarray(evidence).view(np.uint64)
        arrays["ledger.sums"] = bits.view(np.float64)

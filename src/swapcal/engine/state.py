"""The state of a forecaster: everything that changes from round to round, and nothing else."""

import inspect
import json
import secrets
import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from swapcal import hints, hypotheses, properties
from swapcal.engine import gate
from swapcal.engine.crossing import HintRecord
from swapcal.engine.gate import COHORT, WIDTH, Gate, LossBounds
from swapcal.engine.ledger import Ledger
from swapcal.engine.pending import HeldRounds, OpenRounds
from swapcal.engine.rules import Rules
from swapcal.engine.ties import TieDetector
from swapcal.engine.values import ROOM, Grid, Values
from swapcal.errors import StateFileError
from swapcal.forecast import KINDS as PLAYED
from swapcal.forecast import SHORTEST, Identity
from swapcal.protocols import Elicitable, Evidence, HintState, Hypotheses, LearningHint, Row
from swapcal.stored_words import Layout, Shape, packed, unpacked
from swapcal.typing import Float64Array

Arrays = dict[str, npt.NDArray[Any]]

PARTS = ("values", "evidence", "record", "atoms", "hint", "waiting")
_NOTHING = Row(np.zeros(0, dtype=np.int64), np.zeros(0))


class State:
    """Values, evidence, the hint's record, ledger, open rounds, the gate, the learning hint, labels that heap.

    `hinted` says whether a hint has been learned from. The identity is that of the forecaster, which its forecasts
    carry. All but the last two are arrays that kernels change in place; after `grow` and `restore` they are others.
    """

    __slots__ = (
        "atoms",
        "evidence",
        "gate",
        "hint",
        "hinted",
        "identity",
        "ledger",
        "pending",
        "record",
        "values",
        "waiting",
    )

    def __init__(self, rules: Rules, capacity: int | None = None, identity: Identity | None = None) -> None:
        self.identity = Identity(secrets.token_hex(8), secrets.token_bytes(32)) if identity is None else identity
        self.start(rules, capacity)

    def start(self, rules: Rules, capacity: int | None = None) -> None:
        """Before the first round: nothing has been seen, and nothing learned."""
        room = max(ROOM if rules.bins is None else rules.bins, capacity or 0)
        self.values = Values(*rules.property.domain, room)
        if rules.bins is not None:
            self.values.spread(rules.bins)
        self.evidence: Evidence = rules.functions.start(room)
        self.record = HintRecord(rules.functions.n)
        self.ledger = Ledger(room, rules.functions.n)
        self.hint: HintState | None = None
        if rules.hint is not None:
            self.hint = rules.hint.start(rules.property, rules.hypotheses.n)
        self.pending = OpenRounds(rules.max_pending)
        self.gate = Gate(LossBounds(rules.property), rules.stand_back)
        if "n_scores" not in rules.settled:
            said = None if self.hint is None else self.hint.said(_NOTHING, np.zeros(rules.n_features), None)
            rules.settled["n_scores"] = 0 if said is None else len(said[1])
        self.waiting = HeldRounds(rules.settled["n_scores"], rules.n_features)
        self.atoms = TieDetector()
        self.hinted = rules.hint is not None

    @property
    def counts(self) -> npt.NDArray[np.float64]:
        """Visits of the values there are, by slot."""
        return self.evidence.counts[: self.values.n]

    def grow(self) -> None:
        """Make room for twice as many values."""
        capacity = 2 * self.values.capacity
        for part in (self.values, self.evidence, self.ledger):
            part.grow(capacity)

    def snapshot(self, *, copies: bool = True) -> tuple[dict[str, Any], Arrays]:
        """Counters and arrays, as copies or as they are, without the room behind them."""
        self.waiting.let_go(self.pending.issued - self.pending.window)
        n, ledger, rounds = self.values.n, self.ledger, self.pending.waiting()
        counters = {
            "n_values": n,
            "issued": self.pending.issued,
            "open": self.pending.open,
            "n_rounds": ledger.n_rounds,
            "n_late": ledger.n_late,
            "n_expired": ledger.n_expired,
            "n_waiting": self.waiting.n,
            "n_cohorts": len(self.gate.cohorts(self.pending.issued)),
            "n_apart": n if len(ledger.apart) else 0,
            "width": self.waiting.indices.shape[1],
            "hinted": self.hinted,
            "identity": str(self.identity),
            "key": self.identity.key.hex(),
            "former_keys": [key.hex() for key in self.identity.former],
        }
        arrays: Arrays = {
            "ledger.sums": ledger.sums[:n],
            "ledger.rounding": ledger.rounding[:n],
            "ledger.apart": ledger.apart[:n],
            "ledger.moved": ledger.moved[:n],
            "ledger.drift": ledger.drift,
            "ledger.totals": ledger.totals,
            "pending.rounds": rounds,
            "pending.marks": self.pending.marks(rounds),
        }
        arrays |= {f"gate.{key}": each for key, each in self.gate.arrays(self.pending.issued).items()}
        for name in PARTS:
            part = getattr(self, name)
            if part is not None:
                by_slot = name == "evidence"
                arrays |= {f"{name}.{k}": a[:n] if by_slot else a for k, a in part.arrays().items()}
        return counters, {name: a.copy() for name, a in arrays.items()} if copies else arrays

    def restore(self, rules: Rules, counters: dict[str, Any], arrays: Arrays) -> None:
        """Put a `snapshot` back."""
        self.start(rules, 1 << max(counters["n_values"] - 1, 0).bit_length())
        key, *former = (bytes.fromhex(each) for each in (counters["key"], *counters["former_keys"]))
        self.identity = Identity(counters["identity"], key, tuple(former))
        self.fill(counters, arrays)

    def fill(self, counters: dict[str, Any], arrays: Arrays) -> None:
        """Put a `snapshot` into a state that has just been started, with room for its values."""
        n, room = counters["n_values"], self.values.capacity
        parts: dict[str, Arrays] = {name: {} for name in (*PARTS, "ledger", "pending", "gate")}
        for name, array in arrays.items():
            owner, _, key = name.partition(".")
            parts[owner][key] = array
        for name in PARTS:
            part = getattr(self, name)
            if part is not None and parts[name]:
                part.restore(parts[name])
        if len(self.evidence.counts) < room:
            self.evidence.grow(room)
        ledger = self.ledger
        ledger.sums[:n], ledger.rounding[:n] = arrays["ledger.sums"], arrays["ledger.rounding"]
        ledger.drift[:] = arrays["ledger.drift"]
        ledger.totals[: len(arrays["ledger.totals"])] = arrays["ledger.totals"]
        ledger.moved[:n] = arrays["ledger.moved"]
        self.gate.restore(parts["gate"])
        if self.gate.open:
            ledger.spread_out()
            ledger.apart[: counters["n_apart"]] = arrays["ledger.apart"]
        ledger.rounds[:] = counters["n_rounds"], counters["n_late"], counters["n_expired"]
        self.pending.restore(counters["issued"], arrays["pending.rounds"], arrays["pending.marks"])
        self.hinted = counters["hinted"]


# --------
# What must be true of a stored state: no file may take much memory, or become a forecaster that fails later.

KINDS: dict[str, type[np.generic]] = {
    "pending.rounds": np.int64,
    "pending.marks": np.uint32,
    "gate.counts": np.int64,
    "waiting.whole": np.int64,
    "waiting.indices": np.int64,
    "waiting.scores": np.uint8,
}
"""Arrays that are not of float64."""

COUNTERS = (
    "n_values",
    "issued",
    "open",
    "n_rounds",
    "n_late",
    "n_expired",
    "n_waiting",
    "width",
    "n_cohorts",
    "n_apart",
)
"""Those that are whole numbers."""

SMALL = 1 << 21
"""What may be made from nothing: 2 MB a row of the tables."""

_LARGEST_WINDOW = 1 << 40
_LARGEST_ROOM = 1 << 30
_MOST = 1 << 62
_ROOM = 32
_PARTS = ("property", "hypotheses", "hint")


def check_counters(counters: dict[str, Any]) -> None:
    """All are whole numbers of a possible size."""
    for name in COUNTERS:
        if type(counters[name]) is not int or not 0 <= counters[name] < _MOST:
            raise StateFileError(f"this state is damaged: {name} is {counters[name]!r}")


def check_room(n: int, max_pending: Any, size: int) -> None:
    """What is not stored but follows from the settings is small beside what is, or it is not taken."""
    small = 8 * n <= max(SMALL, size) and 8 * _ROOM * n <= _LARGEST_ROOM
    if not 0 < max_pending <= _LARGEST_WINDOW or not small:
        raise StateFileError("this state is damaged: its arrays do not fit its settings")


def check_parts(rules: Rules, header: dict[str, Any]) -> None:
    """The parts are those that the header describes, whether they were passed in or made from it."""
    check_specs((rules.property, rules.hypotheses, rules.hint), [header[name] for name in _PARTS])
    check_identity(header["counters"])


def check_identity(counters: dict[str, Any]) -> None:
    """A name, keys that are long enough, and a flag."""
    key, former = counters["key"], counters["former_keys"]
    kept = isinstance(former, list) and all(len(bytes.fromhex(each)) >= SHORTEST for each in (key, *former))
    if not kept or not isinstance(counters["identity"], str) or not isinstance(counters["hinted"], bool):
        raise StateFileError("this state is damaged: the identity or a flag has the wrong type")


def check_specs(parts: Sequence[Any], specs: Sequence[Any]) -> None:
    """Property, hypotheses and hint have the specs that were stored."""
    for name, part, stored in zip(_PARTS, parts, specs, strict=True):
        spec = None if part is None else json.loads(json.dumps(dict(part.spec())))
        if spec is not None and isinstance(stored, dict) and "vocabulary" in stored and stored["vocabulary"] is None:
            spec = dict(hypotheses.unlearned(spec))
        if spec != stored:
            raise StateFileError(f"the {name} passed in, {part!r}, is not the one that was stored: {stored}")


def expected(
    rules: Rules, state: State, counters: dict[str, Any], *, older: bool = False
) -> dict[str, tuple[int, ...]]:
    """The shapes of all arrays but the atoms', whose number varies.

    `older` files have no number for the latest draw: they had counted it in full.
    """
    n_values, n = counters["n_values"], rules.functions.n
    shapes: dict[str, tuple[int, ...]] = {
        "ledger.sums": (n_values, n),
        "ledger.rounding": (n_values, n),
        "ledger.apart": (counters["n_apart"], n),
        "ledger.moved": (n_values,),
        "ledger.drift": state.ledger.drift.shape,
        "ledger.totals": (len(state.ledger.totals) - older,),
        "pending.rounds": (counters["open"],),
        "pending.marks": (counters["open"],),
        "gate.totals": state.gate.totals.shape,
        "gate.counts": state.gate.counts.shape,
        "gate.cohorts": (counters["n_cohorts"], WIDTH),
        "waiting.whole": (counters["n_waiting"], 5),
        "waiting.numbers": (counters["n_waiting"], 7),
        "waiting.scores": (counters["n_waiting"], state.waiting.scores.shape[1]),
        "waiting.features": (counters["n_waiting"], rules.n_features),
        "waiting.indices": (counters["n_waiting"], counters["width"]),
        "waiting.entries": (counters["n_waiting"], counters["width"]),
        "values.born": (n_values,),
        "values.gaps": (n_values + 1, 3),
    }
    # Evidence has a row for each value that there is room for.
    shapes |= {f"evidence.{key}": (n_values, *array.shape[1:]) for key, array in state.evidence.arrays().items()}
    for name, part in (("record", state.record), ("hint", state.hint)):
        if part is not None:
            shapes |= {f"{name}.{key}": array.shape for key, array in part.arrays().items()}
    return shapes


def check_values(rules: Rules, counters: dict[str, Any], arrays: Arrays) -> None:
    """Damaged data must not become a forecaster that fails later: sums stay within what the rounds can have added."""
    rounds, most, waiting = counters["n_rounds"], 1.0 + 1e-9, arrays["pending.rounds"]
    sound = counters["n_late"] <= rounds and rounds + counters["open"] <= counters["issued"]
    if len(waiting):
        sound = sound and bool((np.diff(waiting) > 0).all()) and waiting[-1] < counters["issued"]
        sound = sound and waiting[0] >= 0 and counters["issued"] - waiting[0] <= rules.max_pending
        sound = sound and bool((arrays["pending.marks"] > 0).all())
    low, high = rules.property.domain
    born = arrays["values.born"]
    ranked = np.sort(born)
    # Where they rise, the first and the last are the ends of them all.
    sound = sound and bool((ranked[1:] > ranked[:-1]).all())
    sound = sound and (not len(ranked) or bool(low <= ranked[0] and ranked[-1] <= high))
    if rules.bins is not None:
        sound = sound and bool((born == Grid(low, high, rules.bins).midpoints).all())
    sound = sound and bool(arrays["values.gaps"].min() >= 0.0) and bool((arrays["ledger.totals"][2:] >= 0.0).all())
    visits = arrays.get("evidence.counts")
    if visits is not None and visits.shape == born.shape and len(born):
        limits = most * visits[:, None]
        sound = sound and visits.min() >= 0.0 and visits.sum() == rounds
        sound = sound and _within(arrays["ledger.sums"], limits) and _within(arrays["ledger.rounding"], 2.0 * limits)
    if isinstance(rules.functions, (hypotheses.Finite, hypotheses.Linear, hypotheses.Numeric)):
        counts = arrays.get("evidence.counts", np.zeros(0))[:, None]
        sums, spreads = arrays.get("evidence.sums", counts), arrays.get("evidence.spreads", counts)
        sound = sound and _within(sums, most * counts) and _within(2.0 * spreads - counts, most * counts)
    sound = sound and _learned(rules, arrays)
    hinted = float(arrays["record.totals"][0])
    sound = sound and 0.0 <= hinted <= rounds and _within(arrays["record.sums"], most * hinted)
    sound = sound and _within(2.0 * arrays["record.squares"] - hinted, most * hinted)
    sound = sound and _waits(rules, counters, arrays) and _gated(counters, arrays)
    # `run` looks at the labels of rounds that wait, too.
    atoms = arrays["atoms.labels"]
    sound = sound and len(atoms) >= 2 and 0.0 <= atoms[0] <= counters["issued"] and len(atoms) - 2 <= atoms[0]
    if not sound:
        raise StateFileError("this state is damaged: its sums and counters contradict each other")


def _within(numbers: Float64Array, limits: Float64Array | float) -> bool:
    return bool((np.abs(numbers) <= limits).all())


def _learned(rules: Rules, arrays: Arrays) -> bool:
    """Whether learners can have learned in the rounds of their values; nobody knows that of a user's own."""
    possible = getattr(getattr(rules.functions, "learner", None), "possible", None)
    states, visits = arrays.get("evidence.states"), arrays.get("evidence.counts")
    if possible is None or states is None or visits is None or not len(visits):
        return True
    n_copies = states.shape[1]
    return bool(possible(states.reshape(-1, states.shape[2]), np.repeat(visits, n_copies)))


_POSITIVE = [
    gate.MODEL,
    gate.JUDGED,
    gate.SQUARES,
    gate.LAGS,
    gate.LAG_SQUARES,
    gate.KNOWN,
    gate.DISTANCE,
    gate.SIZE,
]


def _gated(counters: dict[str, Any], arrays: Arrays) -> bool:
    """Whether the gate's book is about rounds that there were."""
    begin, front, since, marker, tried, back, back_since, flagged = arrays["gate.counts"].tolist()
    issued, cohorts, totals = counters["issued"], arrays["gate.cohorts"], arrays["gate.totals"]
    if begin < 0:
        idle = begin == -1 and not (front or since or marker or tried or back) and back_since == flagged == -1
        quiet = not counters["n_apart"] and not np.delete(totals, gate.NOTED).any() and not arrays["ledger.moved"].any()
        noted = totals[gate.JUDGED] <= min(counters["n_rounds"], gate.MEMORY - 1) and (totals[_POSITIVE] >= 0.0).all()
        return bool(idle and quiet and noted and not len(cohorts))
    sound = begin <= issued and begin // COHORT <= since <= front <= issued // COHORT + 1 and tried in (0, 1)
    sound = sound and begin <= marker <= issued and 0 <= back <= issued - begin
    sound = sound and -1 <= back_since < max(issued, 1) and -1 <= flagged <= issued
    sound = sound and len(cohorts) == max((issued - 1) // COHORT - front + 1, 0)
    apart, moved = arrays["ledger.apart"], arrays["ledger.moved"]
    sound = sound and (counters["n_apart"] == counters["n_values"] or not (counters["n_apart"] or moved.any()))
    sound = sound and moved.sum() == 0.0 and np.abs(moved).max(initial=0.0) <= back
    sound = sound and np.abs(apart).max(initial=0.0) <= 2.0 * (1.0 + 1e-9) * back
    return bool(sound and (totals[_POSITIVE] >= 0.0).all() and totals[gate.KNOWN] <= counters["n_rounds"])


def _waits(rules: Rules, counters: dict[str, Any], arrays: Arrays) -> bool:
    """Whether the rounds that wait are open ones, of values and functions that there are."""
    if not counters["n_waiting"]:
        return True
    whole, numbers, width = arrays["waiting.whole"], arrays["waiting.numbers"], counters["width"]
    rounds, slots, kinds, lengths, followed = whole.T
    low, high = rules.property.domain
    active = np.arange(width) < lengths[:, None]
    indices = np.where(active, arrays["waiting.indices"], np.arange(width) + (1 << 62))
    points = numbers[:, :2]
    # NaN, which stands for none in the last four columns, fails no comparison with "not outside".
    outside = (numbers[:, 3:5] < low) | (numbers[:, 3:5] > high)
    return bool(
        np.isin(rounds, arrays["pending.rounds"]).all()
        and len(np.unique(rounds)) == len(rounds)
        and (slots >= 0).all()
        and (slots < counters["n_values"]).all()
        and ((kinds >= 0) & (kinds < len(PLAYED))).all()
        and ((lengths >= 0) & (lengths <= width)).all()
        and ((followed == 1) | ((followed == 0) & ~np.isnan(numbers[:, 4]))).all()
        and (np.diff(indices, axis=1) > 0).all()
        and (indices[active] >= 0).all()
        and (indices[active] < rules.functions.n).all()
        and np.abs(arrays["waiting.entries"]).max(initial=0.0) <= 1.0
        and ((points >= low) & (points <= high)).all()
        and np.isfinite(numbers[:, 2]).all()
        and not outside.any()
        and not np.isinf(numbers[:, :6]).any()
    )


# --------
# A forecaster as bytes: what `save` writes, a third as large and many times faster; for stores that hold many.
#
# The header is JSON: first the rules (specs, and settings that differ from the defaults), which many forecasters share
# word for word, then the counters of this one. Of the arrays nothing is stored that follows from the rest: weights
# follow
# from the sums, values from a number of bins, a derived identity from its seed, and the ledger differs from the
# evidence
# only where rounding was owed.

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
            shapes = expected(self.rules, state, counters, older=older) | {"atoms.labels": (n_atoms,)}
            for name in _implied(self.rules, counters):
                del shapes[name]
            kinds = KINDS
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
    own = [counters[name] for name in COUNTERS]
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
        n_counters = len(COUNTERS)
        counters: dict[str, Any] = dict(zip(COUNTERS, own[:n_counters], strict=True))
        hinted, seed, identity, key, former, n_atoms = own[n_counters:]
        check_counters(counters)
        known, learned = _known(shared, property, hypotheses, hint)
        check_room(known.rules.hypotheses.n, known.rules.max_pending, len(data))
        rules = known.rules.reseeded(seed, learned)
        n, n_values = rules.functions.n, counters["n_values"]
        if n > words.n or n_values * n > words.n or (rules.bins is not None and rules.bins != n_values):
            raise StateFileError("these bytes are damaged: their arrays do not fit their settings")
        own_key = Identity.derived(identity, seed).key.hex() if key is None else key
        counters |= {"hinted": hinted, "identity": identity, "key": own_key, "former_keys": former}
        check_identity(counters)
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
        check_values(rules, counters, arrays)
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
    check_specs(parts, specs[:3])
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

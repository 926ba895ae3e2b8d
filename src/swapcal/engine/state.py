"""Rules and state of a forecaster: what is settled before the first round, and all that changes from round to round."""

import inspect
import json
import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from swapcal import hints, hypotheses, inputs, properties
from swapcal.engine.kernels import mix64, uniform
from swapcal.engine.ledger import SMALLEST, START, Ledger, Scale, TieDetector
from swapcal.engine.pending import (
    DUE,
    GUIDED,
    HINT,
    LENGTH,
    OTHER,
    POINT,
    ROUND,
    SHOWN,
    HeldRounds,
    OpenRounds,
)
from swapcal.engine.share import BEHIND_A_HINT, LAST, MOST_BLOCKS, SPAN, SPAN_AT_FIRST, Losses, Share
from swapcal.engine.values import OF_A_GAP, ROOM, Grid, HintRecord, Values
from swapcal.errors import InvalidInput, StateFileError, SwapcalError
from swapcal.forecast import KINDS, SHORTEST, Identity
from swapcal.protocols import Elicitable, Evidence, HintState, Hypotheses, LearningHint, Row
from swapcal.sparse import parted
from swapcal.state import Layout, Packed, Saved, Shape, check_bounds
from swapcal.typing import Float64Array

# What may be protected, and the share of the base's loss that may be spent for it.
BUDGETS = {"loss": 0.002, "calibration": 0.01, "nothing": 1.0}


def can_follow(property: Elicitable) -> bool:
    """Whether the range of a property can be doubled: V takes any numbers, and there is a range."""
    return bool(property.kernel["property"]) and hasattr(property, "doubled")


@dataclass(frozen=True, eq=False)
class Rules:
    """The arguments of a `Forecaster`, checked, and what follows from them; its docstring says what they mean."""

    property: Elicitable
    hypotheses: Hypotheses
    hint: LearningHint | None = None
    horizon: int | None = None
    r: float = 2.0
    bins: int | None = None
    seed: int = 0
    levels: int = 10
    trust: float = 0.25
    outside: str = "error"
    jitter: float = 0.0
    max_pending: int = 1 << 20
    protect: str = "loss"
    budget: float | None = None
    blocks: int = MOST_BLOCKS
    # The class with the level sets of the hint behind its own functions.
    functions: Hypotheses = field(init=False)
    # What an engine has worked out from the rules, whatever their seed is; shared with those of another seed.
    settled: dict[str, Any] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        inputs.role(self.property, ("identification", "domain"), "property", "sc.Quantile(0.9)")
        inputs.role(self.hypotheses, ("start", "row", "n"), "hypotheses", "sc.Finite(20)")
        if self.hint is not None:
            inputs.role(self.hint, ("start",), "hint", "sc.OnlineRegression()")
        settled: dict[str, Any] = {
            "horizon": None if self.horizon is None else inputs.integer(self.horizon, "horizon", 1),
            "r": inputs.number(self.r, "r", 1.0, 100.0),
            "bins": None if self.bins is None else inputs.integer(self.bins, "bins", 1),
            "seed": inputs.integer(self.seed, "seed", 0),
            "levels": inputs.integer(self.levels, "levels", 0),
            "trust": inputs.number(self.trust, "trust", 0.0, 1.0),
            "outside": inputs.one_of(self.outside, "outside", ("error", "clip", "follow")),
            "jitter": inputs.number(self.jitter, "jitter", 0.0, self.property.high - self.property.low),
            "max_pending": inputs.integer(self.max_pending, "max_pending", 1),
            "protect": inputs.one_of(self.protect, "protect", tuple(BUDGETS)),
            "budget": None if self.budget is None else inputs.number(self.budget, "budget", 0.0, 1.0),
            "blocks": min(inputs.integer(self.blocks, "blocks", 8), MOST_BLOCKS),
        }
        extended = getattr(self.hypotheses, "extended", None)
        levels = settled["levels"]
        joins = levels or self.hypotheses.dual == "learner"
        settled["functions"] = extended(levels) if extended is not None and joins else self.hypotheses
        for name, value in settled.items():
            object.__setattr__(self, name, value)
        if self.follows and self.hidden is not None:
            raise InvalidInput("what a learner was taught cannot be put into a wider range; pass outside='clip'")
        if self.follows and (self.fixed or not can_follow(self.property)):
            raise InvalidInput(
                "outside='follow' is for outcomes with a range, as of sc.Mean(), and without bins=; pass outside='clip'"
            )

    def reseeded(self, seed: Any, hypotheses: Hypotheses | None = None) -> "Rules":
        """The same rules with another seed; their parts, which never change, are shared and not checked again.

        A class that learns belongs to one forecaster: `hypotheses` is a twin of it, made alike.
        """
        twin = object.__new__(Rules)
        own = self.hypotheses if hypotheses is None else hypotheses
        twin.__dict__.update(self.__dict__, seed=inputs.integer(seed, "seed", 0), hypotheses=own)
        return twin

    def settings(self) -> dict[str, Any]:
        """The plain ones, by name."""
        parts = ("property", "hypotheses", "hint", "functions", "settled")
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name not in parts}

    @cached_property
    def clips(self) -> bool:
        """Whether the engine takes the end of the range for what lies beyond it."""
        return self.outside != "error"

    @cached_property
    def follows(self) -> bool:
        """Whether the range is doubled when a label lies beyond it."""
        return self.outside == "follow"

    @cached_property
    def level_grid(self) -> Grid | None:
        """Where the level sets of the hint lie; None if there are none."""
        n_levels = self.functions.n - self.hypotheses.n
        return Grid(*self.property.domain, n_levels) if n_levels else None

    @cached_property
    def hidden(self) -> tuple[int, int] | None:
        """The positions of a context that a learner reads, which are no functions."""
        found: tuple[int, int] | None = getattr(self.functions, "hidden", None)
        return found

    @cached_property
    def n_columns(self) -> int:
        """How many positions of a context are functions."""
        return self.functions.n - (0 if self.hidden is None else self.hidden[1] - self.hidden[0])

    def columns(self, row: Row) -> Row:
        """The entries of a row that are functions."""
        return row if self.hidden is None else parted(row, self.hidden)[0]

    @cached_property
    def n_inputs(self) -> int:
        """How many of the first positions a learning hint sees: groups and columns, but no boxes of several."""
        return int(getattr(self.hypotheses, "n_inputs", self.hypotheses.n))

    @cached_property
    def fixed(self) -> bool:
        """Whether the values that can be forecast were given, as a number of bins."""
        return self.bins is not None

    @cached_property
    def size(self) -> float:
        """What |V| is taken to reach before the first outcome: 1 where that is known.

        It is for events and quantiles; and what is promised ahead of a run for values that were given asks for it.
        """
        known = self.property.kernel["property"] in ("Probability", "Quantile")
        return 1.0 if known or self.fixed else SMALLEST

    @cached_property
    def n_features(self) -> int:
        """Length of the learning hint's extra feature vector."""
        return 0 if self.hint is None else self.hint.n_features

    @cached_property
    def checks_ties(self) -> bool:
        """Whether labels that heap on a value would do harm."""
        return not self.property.continuous and self.jitter == 0.0

    def given(self, hint: Any, features: Any) -> tuple[float | None, Float64Array | None]:
        """The user's own forecast and the extra features of a round, checked."""
        return None if hint is None else self.hint_value(hint), inputs.features(features, self.n_features)

    def hint_values(self, hints: Float64Array) -> Float64Array:
        """Hints as they are, or the error of the first that is not allowed; NaN is none."""
        low, high = self.property.domain
        if self.clips:
            return hints if self._compiled else np.clip(hints, low, high)
        for hint in hints[(hints < low) | (hints > high)][:1].tolist():
            self.hint_value(hint)
        return hints

    def hint_value(self, hint: Any) -> float:
        """A hint as it is, if it is allowed; what is shown may be it, and the engine takes the end of the domain."""
        value = inputs.real(hint, "hint")
        low, high = self.property.domain
        if self.clips:
            return value if self._compiled else min(max(value, low), high)
        if not low <= value <= high:
            raise InvalidInput(
                f"hint {value:g} is outside [{low:g}, {high:g}]; pass outside='clip' to move it to the end"
            )
        return value

    @cached_property
    def _compiled(self) -> bool:
        """Whether V takes any numbers; one of a user's own is asked inside the ranges alone."""
        return bool(self.property.kernel["property"])

    def label(self, y: Any) -> float:
        """A label that the property allows."""
        return float(self.labels(inputs.real(y, "label")))

    def labels(self, labels: Any) -> Any:
        """Labels as they are, if the property allows them, or their range's end, where it clips."""
        inside = np.clip(labels, self.property.low, self.property.high) if self.clips else labels
        labels = labels if self._compiled else inside
        why = self.property.invalid_labels(inside)
        if why is not None:
            raise InvalidInput(f"{why}; set low= and high= of the property, or pass outside='clip' to move such labels")
        return labels

    def inside(self, label: float) -> float:
        """A label, or the end of the range beyond which it lies."""
        return min(max(label, self.property.low), self.property.high)

    def jittered(self, label: float, t: int) -> float:
        """The label moved by at most half the jitter, reflected at the ends so that no atom forms there."""
        label = self.inside(label)
        if self.jitter == 0.0:
            return label
        moved = label + self.jitter * (uniform(mix64(self.seed), t) - 0.5)
        moved = max(moved, 2.0 * self.property.low - moved)
        return min(moved, 2.0 * self.property.high - moved)


# --------
# Everything that changes, and nothing else.

Arrays = dict[str, npt.NDArray[Any]]

PARTS = ("values", "evidence", "record", "scale", "ties", "hint", "waiting")
# Those of them that may hold learners, whose states are bytes.
_LEARNERS = ("evidence", "hint")
_NOTHING = Row(np.zeros(0, dtype=np.int64), np.zeros(0))


class State:
    """Values, evidence, the hint's record, ledger, size of V, open rounds, shares, the learning hint, labels that heap.

    `hinted` says whether a hint has been learned from. The identity is that of the forecaster, which its forecasts
    carry. All but the last two are arrays that kernels change in place; after `grow` and `restore` they are others.
    """

    __slots__ = (
        "evidence",
        "hint",
        "hinted",
        "identity",
        "ledger",
        "pending",
        "record",
        "scale",
        "shares",
        "ties",
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
        self.scale = Scale(rules.size)
        self.measure()
        self.record = HintRecord(rules.n_columns, getattr(rules.functions, "blocks", None))
        self.ledger = Ledger(room, rules.n_columns)
        if hasattr(self.evidence, "values"):
            self.evidence.values = self.values
        self.hint: HintState | None = None
        if rules.hint is not None:
            self.hint = rules.hint.start(rules.property, rules.n_inputs)
        self.pending = OpenRounds(rules.max_pending)
        budget = BUDGETS[rules.protect] if rules.budget is None else rules.budget
        losses, tolerance = Losses(rules.property), budget if rules.protect == "calibration" else 0.0
        # Of the learning hint over the model's own number, and of the engine over that, or over the model.
        cautions = (0.0, BEHIND_A_HINT if rules.hint is not None else 0.0)
        self.shares = tuple(
            Share(losses, caution, budget, tolerance, rules.blocks, rules.n_columns) for caution in cautions
        )
        if "n_scores" not in rules.settled:
            answer = None if self.hint is None else self.hint.said(_NOTHING, np.zeros(rules.n_features), None)
            rules.settled["n_scores"] = 0 if answer is None else len(answer[1])
        self.waiting = HeldRounds(rules.settled["n_scores"], rules.n_features)
        self.ties = TieDetector()
        self.hinted = rules.hint is not None

    def measure(self) -> None:
        """Weigh the evidence by the size of V in force, where it is weighed by that."""
        measure = getattr(self.evidence, "measure", None)
        if measure is not None:
            measure(self.scale.now)

    @property
    def counts(self) -> npt.NDArray[np.float64]:
        """Visits of the values there are, by slot."""
        return self.evidence.counts[: self.values.n]

    @property
    def origin(self) -> float:
        """Where the search for a forecast without a hint starts: the property of all outcomes so far."""
        low, high = self.values.low, self.values.high
        return min(low + (high - low) * float(self.ledger.totals[START]), high)

    def grow(self) -> None:
        """Make room for twice as many values."""
        capacity = 2 * self.values.capacity
        for part in (self.values, self.evidence, self.ledger):
            part.grow(capacity)

    def follow(self, before: Rules, rules: Rules) -> None:
        """Go on with a wider range: what counts in units of V counts in those of the new range from now on."""
        old, new = before.property, rules.property
        low = old.domain[0]
        v = float(old.loss_weight(low) / new.loss_weight(low))
        at = self.origin
        self.values.widen(*new.domain, v)
        c = (old.domain[1] - low) / (new.domain[1] - new.domain[0])
        self.ledger.totals[START:] *= 1.0, v / c, v, c, 1.0
        self.ledger.totals[START] = self.values.unit(at)
        parts: Any = (self.evidence, self.record, self.ledger)
        for part in parts:
            part.rescale(v)
        if self.scale.full:
            self.scale.grow()
        self.scale.rescale(v, self.pending.issued)
        self.measure()
        for share in self.shares:
            share.rescale(Losses(new), v)
        if self.hint is not None and rules.hint is not None:
            rescaled = getattr(self.hint, "rescaled", None)
            self.hint = rules.hint.start(new, rules.n_inputs) if rescaled is None else rescaled(new, v)

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
            "n_sizes": self.scale.n,
            "n_moved": n if ledger.moved_counts.any() or ledger.moved_sums.any() else 0,
            **{f"n_blocks{k}": share.n_blocks for k, share in enumerate(self.shares)},
            "width": self.waiting.indices.shape[1],
            "hinted": self.hinted,
            "identity": str(self.identity),
            "key": self.identity.key.hex(),
            "former_keys": [key.hex() for key in self.identity.former],
        }
        for name in _LEARNERS:
            dumped = getattr(getattr(self, name), "dumped", bytes)()
            if dumped:
                counters[f"{name}.learned"] = dumped
        arrays: Arrays = {
            "ledger.sums": ledger.sums[:n],
            "ledger.rounding": ledger.rounding[:n],
            "ledger.drift": ledger.drift,
            "ledger.totals": ledger.totals,
            "pending.rounds": rounds,
            "pending.marks": self.pending.marks(rounds),
        }
        n_moved = counters["n_moved"]
        arrays["ledger.moved_sums"], arrays["ledger.moved_counts"] = (
            ledger.moved_sums[:n_moved],
            ledger.moved_counts[:n_moved],
        )
        for k, share in enumerate(self.shares):
            arrays |= {f"share{k}.{key}": each for key, each in share.arrays().items()}
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
        parts: dict[str, Arrays] = {name: {} for name in (*PARTS, "ledger", "pending", "share0", "share1")}
        for name, array in arrays.items():
            owner, _, key = name.partition(".")
            parts[owner][key] = array
        self.scale.restore(parts["scale"])
        self.measure()
        for name in PARTS:
            part = getattr(self, name)
            if part is not None and parts[name]:
                part.restore(parts[name])
        if len(self.evidence.counts) < room:
            self.evidence.grow(room)
        for name in _LEARNERS:
            if f"{name}.learned" in counters:
                getattr(self, name).load(counters[f"{name}.learned"])
        ledger = self.ledger
        ledger.sums[:n], ledger.rounding[:n] = arrays["ledger.sums"], arrays["ledger.rounding"]
        ledger.drift[:] = arrays["ledger.drift"]
        ledger.totals[: len(arrays["ledger.totals"])] = arrays["ledger.totals"]
        n_moved = counters["n_moved"]
        ledger.moved_sums[:n_moved], ledger.moved_counts[:n_moved] = (
            arrays[f"ledger.moved_{name}"] for name in ("sums", "counts")
        )
        for k, share in enumerate(self.shares):
            share.restore(parts[f"share{k}"])
        ledger.rounds[:] = counters["n_rounds"], counters["n_late"], counters["n_expired"]
        self.pending.restore(counters["issued"], arrays["pending.rounds"], arrays["pending.marks"])
        self.hinted = counters["hinted"]


# --------
# Saved: what many forecasters share word for word, their rules, is a part, which a cache knows by its bytes. Of the
# arrays nothing is stored that follows from the rest: weights follow from the sums, values from a number of bins, a
# derived identity from its seed, and the ledger differs from the evidence only where rounding was owed.

# Of arrays that are not of float64.
_DTYPES: dict[str, type[np.generic]] = {
    "pending.rounds": np.int64,
    "pending.marks": np.uint32,
    "scale.since": np.int64,
    "waiting.whole": np.int64,
    "waiting.indices": np.int64,
    "waiting.scores": np.uint8,
}

_SIZES = ("n_values", "open", "n_waiting", "width", "n_moved", "n_sizes", "n_blocks0", "n_blocks1")
_COUNTERS = (*_SIZES, "issued", "n_rounds", "n_late", "n_expired")
_LINES = tuple(f"waiting.{name}" for name in ("whole", "numbers", "scores", "features", "indices", "entries"))
# Stored as a difference of bits, and numbers that may be missing.
_NOT_FINITE = ("ledger.sums", "waiting.numbers")

_DEFAULTS = {
    name: each.default
    for name, each in inspect.signature(Rules).parameters.items()
    if name not in ("property", "hypotheses", "hint", "seed")
}
_MOST = 1 << 62
_MOST_TIES = 1 << 11
_MOST_LAYOUTS = 256
_LARGEST_WINDOW = 1 << 40
_LARGEST_ROOM = 1 << 30
# What may be made from nothing: 2 MB a row of the tables.
_SMALL = 1 << 21

_UNFIT = "this saved state is damaged: its arrays do not fit its settings"


def saved(rules: Rules, state: State) -> Saved:
    """What rules and state are made of; the arrays are their own."""
    counters, arrays = state.snapshot(copies=False)
    settings = {name: value for name, value in rules.settings().items() if value != _DEFAULTS.get(name, value)}
    hint = None if rules.hint is None else dict(rules.hint.spec())
    shared = _json([dict(rules.property.spec()), dict(rules.hypotheses.spec()), hint, settings])
    derived = state.identity.key == Identity.derived(state.identity, rules.seed).key
    plain = [counters[name] for name in _COUNTERS]
    plain += [counters["hinted"], rules.seed, str(state.identity), None if derived else counters["key"]]
    plain += [counters["former_keys"], len(arrays["ties.labels"])]
    for name in _implied(rules, counters):
        del arrays[name]
    _against_evidence(arrays)
    learned = {name: data for name, data in counters.items() if name.endswith(".learned")}
    return Saved(plain, arrays, {"rules": shared, **learned})


def read(
    packed: Packed, property: Elicitable | None, hypotheses: Hypotheses | None, hint: LearningHint | None
) -> tuple[Rules, State]:
    """The rules and the state that were `saved`; parts of the user's own making are passed in again."""
    n_counters = len(_COUNTERS)
    counters: dict[str, Any] = dict(zip(_COUNTERS, packed.plain[:n_counters], strict=True))
    hinted, seed, identity, key, former, n_ties = packed.plain[n_counters:]
    for name, value in (*counters.items(), ("n_ties", n_ties)):
        if type(value) is not int or not 0 <= value < _MOST:
            raise StateFileError(f"this saved state is damaged: {name} is {value!r}")
    configuration, learned = _known(bytes(packed.parts["rules"]), property, hypotheses, hint)
    n_values, max_pending = counters["n_values"], configuration.rules.max_pending
    # What is not stored but follows from the settings is small beside what is, or it is not taken.
    n = configuration.rules.hypotheses.n + configuration.rules.n_features
    small = 8 * n <= max(_SMALL, packed.size) and 8 * ROOM * n <= _LARGEST_ROOM
    if not small or not 0 < max_pending <= _LARGEST_WINDOW or not 2 <= n_ties <= _MOST_TIES:
        raise StateFileError(_UNFIT)
    rules = configuration.rules.reseeded(seed, learned)
    n = rules.n_columns
    if max(n, n_values * n) > packed.n_words or (rules.bins is not None and rules.bins != n_values):
        raise StateFileError(_UNFIT)
    keys = [Identity.derived(identity, seed).key if key is None else bytes.fromhex(key), *map(bytes.fromhex, former)]
    if not isinstance(identity, str) or type(hinted) is not bool or min(map(len, keys)) < SHORTEST:
        raise StateFileError("this saved state is damaged: the identity or a flag has the wrong type")
    state = State(rules, 1 << max(n_values - 1, 0).bit_length(), Identity(identity, keys[0], tuple(keys[1:])))
    arrays = packed.arrays(configuration.layout(state, counters, n_ties))
    _against_evidence(arrays)
    if rules.bins is not None:
        arrays["values.by_slot"] = Grid(*rules.property.domain, rules.bins).midpoints
    _check_bounds(rules, counters, arrays)
    own = {name: bytes(data) for name, data in packed.parts.items() if name.endswith(".learned")}
    if own.keys() != {f"{name}.learned" for name in _LEARNERS if getattr(getattr(state, name), "dumped", bytes)()}:
        raise StateFileError("this saved state is damaged: what a learner has learned is missing, or too much")
    state.fill({**counters, **own, "hinted": hinted}, arrays)
    return rules, state


_READERS: dict[str, Callable[[Any], Any]] = {
    "property": properties.from_spec,
    "hypotheses": hypotheses.from_spec,
    "hint": hints.OnlineRegression.from_spec,
}


def in_bytes(name: str, part: Any) -> bool:
    """Whether the bytes of a forecaster hold all of a part of it, so that an equal one is made of them."""
    if part is None or "__eq__" not in type(part).__dict__:  # what cannot be compared is carried along
        return part is None
    try:
        twin = _READERS[name](part.spec())
    except SwapcalError:
        return False
    return type(twin) is type(part) and bool(twin == part)


class _Configuration:
    """Rules with some seed, and where the arrays of states of so many values and waiting rounds lie."""

    __slots__ = ("_layouts", "rules")

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self._layouts: dict[tuple[int, ...], Layout] = {}

    def layout(self, state: State, counters: dict[str, Any], n_ties: int) -> Layout:
        """Where the arrays of a state lie."""
        sizes = (n_ties, *(counters[name] for name in _SIZES))
        layout = self._layouts.get(sizes)
        if layout is None:
            dims = _dims(self.rules, state, counters) | {"ties.labels": (n_ties,)}
            for name in _implied(self.rules, counters):
                del dims[name]
            layout = Layout.of(
                {
                    name: Shape(each, _DTYPES.get(name, np.float64), finite=name not in _NOT_FINITE)
                    for name, each in dims.items()
                }
            )
            if len(self._layouts) >= _MOST_LAYOUTS:
                self._layouts.clear()
            self._layouts[sizes] = layout
        return layout


def _dims(rules: Rules, state: State, counters: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """The dimensions of all arrays but the atoms', whose number varies."""
    n, (n_values, n_open, n_waiting, width, n_moved, n_sizes, *n_blocks) = (
        rules.n_columns,
        (counters[name] for name in _SIZES),
    )
    dims: dict[str, tuple[int, ...]] = {
        "ledger.sums": (n_values, n),
        "ledger.rounding": (n_values, n),
        "ledger.moved_sums": (n_moved, n),
        "ledger.moved_counts": (n_moved,),
        "ledger.drift": state.ledger.drift.shape,
        "ledger.totals": state.ledger.totals.shape,
        "pending.rounds": (n_open,),
        "pending.marks": (n_open,),
        "waiting.whole": (n_waiting, LENGTH + 1),
        "waiting.numbers": (n_waiting, DUE + 1),
        "waiting.scores": (n_waiting, state.waiting.scores.shape[1]),
        "waiting.features": (n_waiting, rules.n_features),
        "waiting.indices": (n_waiting, width),
        "waiting.entries": (n_waiting, width),
        "values.by_slot": (n_values,),
        "values.gaps": (n_values + 1, OF_A_GAP),
        "scale.since": (n_sizes,),
        "scale.sizes": (n_sizes,),
    }
    for k, share in enumerate(state.shares):
        dims |= {f"share{k}.{key}": array.shape for key, array in share.arrays().items()}
        dims[f"share{k}.blocks"] = (n_blocks[k], share.blocks.shape[1])
    # Evidence has a row for each value that there is room for.
    dims |= {f"evidence.{key}": (n_values, *array.shape[1:]) for key, array in state.evidence.arrays().items()}
    for name, part in (("record", state.record), ("hint", state.hint)):
        if part is not None:
            dims |= {f"{name}.{key}": array.shape for key, array in part.arrays().items()}
    return dims


def _check_bounds(rules: Rules, counters: dict[str, Any], arrays: Arrays) -> None:
    """No position, slot or round number leads a kernel to memory that is not its own."""
    issued, n_values, rounds = counters["issued"], counters["n_values"], arrays["pending.rounds"]
    low, high = rules.property.domain
    check_bounds("values.by_slot", arrays["values.by_slot"], low, high)
    if not np.isfinite(arrays["ledger.sums"]).all():
        raise StateFileError("this saved state is damaged: it holds something other than finite numbers")
    sound = counters["n_rounds"] + counters["open"] <= issued and counters["n_moved"] in (0, n_values)
    sizes, since = arrays["scale.sizes"], arrays["scale.since"]
    sound = sound and len(sizes) > 0 and bool((sizes > 0.0).all()) and math.frexp(float(sizes[-1]))[0] == 0.5
    sound = sound and bool((np.diff(sizes) > 0.0).all() and (np.diff(since) >= 0).all())
    if len(rounds):
        check_bounds("pending.rounds", rounds, max(issued - rules.max_pending, 0), issued - 1)
        check_bounds("pending.marks", arrays["pending.marks"], 1)
        sound = sound and bool((np.diff(rounds) > 0).all())
    for k in range(2):
        span, last = arrays[f"share{k}.totals"][[SPAN, LAST]].tolist()
        sound = sound and SPAN_AT_FIRST <= span < _MOST and math.log2(span) % 1.0 == 0.0
        sound = sound and counters[f"n_blocks{k}"] <= rules.blocks and 0.0 <= last < rules.blocks and last % 1.0 == 0.0
    if counters["n_waiting"]:
        whole, indices, width = arrays["waiting.whole"], arrays["waiting.indices"], counters["width"]
        highest = (issued - 1, n_values - 1, len(KINDS) - 1, width)
        check_bounds("waiting.whole", whole, 0, highest)
        check_bounds("waiting.indices", indices, 0, rules.functions.n - 1)
        numbers = arrays["waiting.numbers"]
        check_bounds("waiting.numbers", numbers[:, (OTHER, POINT, HINT)], low, high)
        sound = sound and bool(np.isfinite(numbers[:, : SHOWN + 1]).all())
        sound = sound and not np.isinf(numbers[:, : GUIDED + 1]).any()
        active = np.arange(1, width) < whole[:, LENGTH, None]
        sound = sound and bool((np.diff(indices, axis=1)[active] > 0).all())
        sound = sound and bool(np.isin(whole[:, ROUND], rounds).all() and (np.diff(whole[:, ROUND]) > 0).all())
    if not sound:
        raise StateFileError("this saved state is damaged: its counters contradict each other")


def _json(data: Any) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode()


# Classes that learn, and are read anew from every file.
_LEARNING = (b'"kind":"Numeric"', b'"kind":"Trees"', b'"kind":"Union"', b'"kind":"Product"')


def _known(
    shared: bytes, property: Elicitable | None, own: Hypotheses | None, hint: LearningHint | None
) -> tuple[_Configuration, Hypotheses | None]:
    """The rules, from a cache if all parts are our own; and the class of functions, where it has learned something."""
    if property is not None or own is not None or hint is not None or any(kind in shared for kind in _LEARNING):
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
    for name, spec in (("n", specs[1]), ("n", specs[1].get("learner") or {}), ("n_features", specs[2] or {})):
        if 8 * ROOM * spec.get(name, 0) > _LARGEST_ROOM:
            raise StateFileError(_UNFIT)
    resumed = getattr(own, "resumed", None)
    parts = (
        properties.from_spec(specs[0]) if property is None else property,
        hypotheses.from_spec(specs[1]) if own is None else own if resumed is None else resumed(specs[1]),
        hint if hint is not None or specs[2] is None else hints.OnlineRegression.from_spec(specs[2]),
    )
    for name, part, stored in zip(("property", "hypotheses", "hint"), parts, specs, strict=False):
        spec = None if part is None else json.loads(_json(dict(part.spec())))
        if spec is not None and isinstance(stored, dict) and "vocabulary" in stored and stored["vocabulary"] is None:
            spec = dict(hypotheses.unlearned(spec))
        if spec != stored:
            raise StateFileError(f"the {name} passed in, {part!r}, is not the one that was stored: {stored}")
    if not specs[3].keys() <= _DEFAULTS.keys():
        raise StateFileError(f"this saved state is damaged: its settings are {sorted(specs[3])}")
    return _Configuration(Rules(*parts, **specs[3]))


@lru_cache(maxsize=64)
def _cached(shared: bytes) -> _Configuration:
    return _read(shared, None, None, None)


def _implied(rules: Rules, counters: dict[str, Any]) -> tuple[str, ...]:
    """Arrays that are not stored: values that are given by their number, and the lines of no rounds that wait."""
    return (() if rules.bins is None else ("values.by_slot",)) + (() if counters["n_waiting"] else _LINES)


def _against_evidence(arrays: Arrays) -> None:
    """The ledger's sums as the bits in which they differ from the evidence's; done twice, it is undone."""
    evidence, sums = arrays.get("evidence.sums"), arrays["ledger.sums"]
    if evidence is not None and evidence.shape == sums.shape:
        bits = np.ascontiguousarray(sums).view(np.uint64) ^ np.ascontiguousarray(evidence).view(np.uint64)
        arrays["ledger.sums"] = bits.view(np.float64)

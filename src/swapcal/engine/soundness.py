"""What must be true of a stored state: no file may take much memory, or become a forecaster that fails later."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from swapcal import hypotheses
from swapcal.engine import gate
from swapcal.engine.gate import COHORT, WIDTH
from swapcal.engine.grid import Grid
from swapcal.engine.rules import Rules
from swapcal.engine.state import Arrays, State
from swapcal.errors import StateFileError
from swapcal.forecast import KINDS as PLAYED
from swapcal.forecast import SHORTEST
from swapcal.typing import Float64Array

__all__ = [
    "COUNTERS",
    "KINDS",
    "SMALL",
    "check_counters",
    "check_identity",
    "check_parts",
    "check_room",
    "check_specs",
    "check_values",
    "expected",
]

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

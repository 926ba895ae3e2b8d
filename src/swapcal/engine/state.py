"""The state of a forecaster: everything that changes from round to round, and nothing else."""

import secrets
from typing import Any

import numpy as np
import numpy.typing as npt

from swapcal.engine.atoms import Atoms
from swapcal.engine.gate import Gate
from swapcal.engine.ledger import Ledger
from swapcal.engine.pending import Pending
from swapcal.engine.record import HintRecord
from swapcal.engine.rules import Rules
from swapcal.engine.stakes import Stakes
from swapcal.engine.values import ROOM, Values
from swapcal.engine.waiting import Waiting
from swapcal.forecast import Identity
from swapcal.roles import Evidence, HintState, Row

__all__ = ["Arrays", "State"]

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
        self.pending = Pending(rules.max_pending)
        self.gate = Gate(Stakes(rules.property), rules.stand_back)
        if "n_scores" not in rules.settled:
            said = None if self.hint is None else self.hint.said(_NOTHING, np.zeros(rules.n_features), None)
            rules.settled["n_scores"] = 0 if said is None else len(said[1])
        self.waiting = Waiting(rules.settled["n_scores"], rules.n_features)
        self.atoms = Atoms()
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

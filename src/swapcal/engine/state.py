"""The state of a forecaster: everything that changes from round to round, and nothing else."""

import secrets
from typing import Any

import numpy as np
import numpy.typing as npt

from swapcal.engine import schedule
from swapcal.engine.atoms import Atoms
from swapcal.engine.grid import Grid
from swapcal.engine.ledger import Ledger
from swapcal.engine.pending import Pending
from swapcal.engine.rules import Rules
from swapcal.roles import Evidence, HintRecord, HintState

__all__ = ["Arrays", "State"]

Arrays = dict[str, npt.NDArray[Any]]


class State:
    """Grid, evidence, the hint's record, ledger, open rounds, the learning hint, labels that heap.

    `hinted` says whether a hint has been learned from. The identity is that of the forecaster, which its forecasts
    carry. Evidence, record, ledger and open rounds are arrays that kernels change in place; after `refine` and
    `restore` they are others.
    """

    __slots__ = ("atoms", "evidence", "grid", "hint", "hinted", "identity", "ledger", "pending", "record")

    def __init__(self, rules: Rules, n_bins: int) -> None:
        self.identity = secrets.token_hex(8)
        self.start(rules, n_bins)

    def start(self, rules: Rules, n_bins: int) -> None:
        """Before the first round: nothing has been seen, and nothing learned."""
        self.grid = Grid(*rules.property.domain, n_bins)
        self.evidence: Evidence = rules.functions.start(n_bins)
        self.record: HintRecord | None = rules.functions.start_record(n_bins)
        self.ledger = Ledger(n_bins, rules.functions.n)
        self.hint: HintState | None = None
        if rules.hint is not None:
            self.hint = rules.hint.start(rules.property, rules.hypotheses.n)
        self.pending = Pending(rules.max_pending)
        self.atoms = Atoms()
        self.hinted = rules.hint is not None

    def refine(self) -> None:
        """Cut every bin; the middle part keeps its value and all that it has gathered."""
        factor = schedule.REFINEMENT
        self.grid = self.grid.refined(factor)
        for part in (self.evidence, self.ledger, self.record):
            if part is not None:
                part.refine(factor)

    def snapshot(self) -> tuple[dict[str, Any], Arrays]:
        """Counters and arrays, as copies."""
        counters = {
            "n_bins": self.grid.n,
            "issued": self.pending.issued,
            "open": self.pending.open,
            "n_rounds": self.ledger.n_rounds,
            "n_late": self.ledger.n_late,
            "hinted": self.hinted,
            "identity": self.identity,
        }
        arrays: Arrays = {"ledger.sums": self.ledger.sums.copy(), "ledger.rounding": self.ledger.rounding.copy()}
        arrays["pending.flags"] = self.pending.flags.copy()
        for name in ("evidence", "atoms", "hint", "record"):
            part = getattr(self, name)
            if part is not None:
                arrays |= {f"{name}.{key}": array.copy() for key, array in part.arrays().items()}
        return counters, arrays

    def restore(self, rules: Rules, counters: dict[str, Any], arrays: Arrays) -> None:
        """Put a `snapshot` back."""
        self.grid = Grid(*rules.property.domain, counters["n_bins"])
        self.evidence, self.record = rules.functions.start(self.grid.n), rules.functions.start_record(self.grid.n)
        for name in ("evidence", "atoms", "hint", "record"):
            part = getattr(self, name)
            if part is not None:
                own = {key.partition(".")[2]: each for key, each in arrays.items() if key.startswith(f"{name}.")}
                part.restore(own)
        self.ledger.sums, self.ledger.rounding = arrays["ledger.sums"].copy(), arrays["ledger.rounding"].copy()
        self.ledger.rounds[:] = counters["n_rounds"], counters["n_late"]
        self.pending.flags = np.array(arrays["pending.flags"])
        self.pending.numbers[:] = counters["issued"], counters["open"]
        self.hinted, self.identity = counters["hinted"], counters["identity"]

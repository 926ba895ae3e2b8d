"""The engine in Python: the specification, which reads beside the pseudocode."""

from typing import Any

from swapcal.engine.crossing import Play, bisect, bracket
from swapcal.engine.protocol import Case, Errors, StreamPart
from swapcal.engine.rules import Rules
from swapcal.engine.state import State
from swapcal.engine.trust import trusted

__all__ = ["PythonEngine"]


class PythonEngine:
    """Plays and learns with the parts themselves; takes over no whole calls."""

    __slots__ = ("rules", "state")

    alone = False

    def __init__(self, rules: Rules, state: State) -> None:
        self.rules, self.state = rules, state

    def predict(self, x: Any, hint: Any, features: Any) -> None:
        """Left to the round."""

    def update(self, forecast: Any, y: Any) -> bool:
        """Left to the round."""
        return False

    def due(self) -> bool:
        """Nothing is left over, as whole updates are not taken over."""
        return False

    def play(self, case: Case) -> Play:
        """A zero, a sign change or an end of the evidence: near the hint where there is one, at its word if trusted."""
        state, monotone = self.state, self.rules.property.monotone

        def phi(bin: int) -> float:
            return state.evidence.phi(bin, case.row)

        if case.hint is None:
            return bisect(phi, state.grid, monotone)
        play = trusted(state.evidence, state.record, case.row, state.grid, case.hint, self.rules.trust)
        return play or bracket(phi, state.grid, case.hint, monotone)

    def learn(self, case: Case, bin: int, errors: Errors, t: int) -> None:
        """Evidence at the evidence point, error at the forecast, and what the hint would have erred by itself."""
        state = self.state
        state.evidence.record(bin, case.row, errors.evidence)
        state.ledger.record(bin, case.row, errors.forecast, errors.evidence)
        if state.record is not None and case.hint is not None:
            state.record.record(state.grid.bin(case.hint), case.row, errors.hint)
        state.pending.close(t)

    def plays(self, X: Any, n_rounds: int) -> bool:
        """False: rows are read first."""
        return False

    def takes(self, features: Any) -> bool:
        """False: they are looked at round by round."""
        return False

    def run(self, part: StreamPart, start: int, until: int) -> int:
        """Not by itself: `stream.run` plays round after round."""
        raise NotImplementedError("the engine in Python plays round by round")

    def hold(self, held: bool) -> None:
        """Nothing to do: whole calls are left to Python anyway."""

    def assemble(self) -> None:
        """Nothing to do: the parts are looked up in the state in every round."""

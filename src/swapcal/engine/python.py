"""The engine in Python: the specification, which reads beside the pseudocode."""

from typing import Any

from swapcal.engine import cuts, marks
from swapcal.engine.crossing import Play, outright, search
from swapcal.engine.protocol import Case, Errors, Learned, StreamPart
from swapcal.engine.rules import Rules
from swapcal.engine.state import State
from swapcal.engine.trust import trusted
from swapcal.forecast import Forecast

__all__ = ["FRESH", "PythonEngine"]

FRESH = -1
"""The slot of a hint that is to become a value itself."""


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

    def predict_many(self, X: Any, hints: list[Any], features: list[Any], made: list[Forecast]) -> None:
        """Left to the round."""

    def update_many(self, forecasts: list[Any], y: list[float], begin: int) -> int:
        """Left to the round."""
        return begin

    def mark(self, forecast: Forecast) -> int:
        """By which a round is known, see `marks`."""
        return marks.mark(forecast)

    def play(self, case: Case) -> Play:
        """A hint at its word where it is trusted; else a zero, a sign change or an end of the evidence near it.

        Without a hint the search starts at the mean of the forecasts so far, or in the middle of the domain. A hint
        with no value near it may become one itself: nothing speaks against it yet.
        """
        state, row, hint = self.state, case.row, case.hint
        values, evidence = state.values, state.evidence
        if hint is not None and not self.rules.fixed and cuts.adds(values, state.record, hint):
            return outright(FRESH, "trusted")
        play = None
        if hint is not None and self.rules.trust > 0.0:
            play = trusted(evidence, state.record, row, values, hint, self.rules.trust)
        if play is not None:
            return play
        start = state.ledger.mean_forecast if hint is None else hint
        return search(
            lambda slot: evidence.phi(slot, row),
            lambda slot: state.ledger.owed(slot, row, float(evidence.counts[slot])),
            values,
            values.nearest(0.5 * (values.low + values.high) if start is None else start),
        )

    def learn(self, case: Case, played: Learned, errors: Errors, t: int) -> float | None:
        """Evidence at the evidence point, error at the forecast, the hint's own record, and the rounding of a gap."""
        state, slot, row = self.state, played.slot, case.row
        ledger, evidence, values = state.ledger, state.evidence, state.values
        value = float(values.born[slot])
        latest = t == state.pending.issued - 1
        ledger.settle(evidence, slot, row, played.phi, errors.evidence, state.pending.open, latest=latest)
        evidence.record(slot, row, errors.evidence)
        ledger.record(slot, row, value, errors.forecast, errors.evidence)
        state.pending.close(t)
        at, rounding, noise, factor = None, abs(errors.forecast - errors.evidence), errors.evidence, cuts.PAIR
        if played.kind == "pair":
            at = 0.5 * (value + played.other)
            if played.evidence_at in (value, played.other):
                rounding = 0.0
        elif played.kind in ("low", "high"):
            at = 0.5 * (value + played.evidence_at)
        if case.hint is not None:
            overruled = None
            if played.kind == "trusted":
                at, rounding, noise = case.hint, abs(errors.nearest - errors.hint), errors.hint
                factor = cuts.HINTED
            else:
                overruled = 0.5 * (value - case.hint) * (errors.forecast + errors.hint)
            state.record.add(row, errors.hint, overruled)
        if at is None or self.rules.fixed:
            return None
        return cuts.cut(values, at, rounding, noise * noise, factor)

    def plays(self, X: Any, n_rounds: int) -> bool:
        """False: rows are read first."""
        return False

    def takes(self, features: Any) -> bool:
        """False: they are looked at round by round."""
        return False

    def run(self, part: StreamPart, progress: Any) -> None:
        """Not by itself: `stream.run` plays round after round."""
        raise NotImplementedError("the engine in Python plays round by round")

    def hold(self, held: bool) -> None:
        """Nothing to do: whole calls are left to Python anyway."""

    def assemble(self) -> None:
        """Nothing to do: the parts are looked up in the state in every round."""

"""The round: a context, a play, a draw, an outcome. Each method names the lines of the paper's Algorithm 1 that it is.

| Algorithm 1 | here |
| --- | --- |
| 1: for t = 1, ..., T | `Forecaster.predict` and `update`, or `Forecaster.run` |
| 2: receive the context x_t | `Round.see` |
| 3: obtain the weights from the expert algorithm | kept up to date by `Evidence.record`, per bin and function |
| 4: Phi_t, and P_t on an end, or on two neighbors of opposite signs | `Evidence.phi` and `Engine.play` |
| 5: sample from P_t and predict | `Round.draw` |
| 6: observe y_t | `Round.update` |
| 7: feed the gains to the expert algorithm | `Round.learn` and `Evidence.record` |
"""

from typing import Any

import numpy as np

from swapcal import checked
from swapcal.engine.crossing import Play
from swapcal.engine.native import NativeEngine, has_kernel
from swapcal.engine.protocol import Case, Engine, Errors
from swapcal.engine.python import PythonEngine
from swapcal.engine.randomness import uniform
from swapcal.engine.rules import Rules
from swapcal.engine.state import State
from swapcal.errors import InvalidInput, UnknownForecast
from swapcal.forecast import Forecast
from swapcal.hypotheses import levels as level_sets
from swapcal.roles import Row
from swapcal.typing import Float64Array

__all__ = ["Round"]


class Round:
    """Plays rounds by the `rules` on a `state`, through the `engine` that suits both."""

    __slots__ = ("engine", "rules", "state")

    def __init__(self, rules: Rules, state: State, *, native: Any) -> None:
        self.rules, self.state = rules, state
        self.engine: Engine = PythonEngine(rules, state)
        if native is not None and has_kernel(state):
            self.engine = NativeEngine(rules, state, native)

    def predict(self, x: Any, hint: Any, features: Any) -> Forecast:
        """Open a round: its forecast, which knows all that the update will need."""
        base, extra = self.rules.given(hint, features)
        # Last of what may fail, as a class that reads records learns its groups from them.
        case = self.see(self.rules.hypotheses.row(x), base, extra)
        play = self.engine.play(case)
        t = self.state.pending.issue()
        played, midpoint = self.draw(play, t), self.state.grid.midpoint
        value = midpoint(played)
        return Forecast(
            value=value,
            round=t,
            forecaster=self.state.identity,
            other=midpoint(play.lower + play.upper - played),
            probability=play.p_lower if played == play.lower else 1.0 - play.p_lower,
            evidence_at=play.evidence_at(value),
            context=Forecast.packed(*case.row),
            hint=case.hint,
            base=case.base,
            features=None if case.features is None else tuple(case.features.tolist()),
        )

    def distribution(self, x: Any, hint: Any, features: Any) -> dict[float, float]:
        """The forecasts that `predict` would draw from, with their probabilities; changes nothing."""
        look = getattr(self.rules.hypotheses, "peek", self.rules.hypotheses.row)
        play = self.engine.play(self.see(look(x), *self.rules.given(hint, features)))
        lower, upper = self.state.grid.midpoint(play.lower), self.state.grid.midpoint(play.upper)
        return {lower: 1.0} if lower == upper else {lower: play.p_lower, upper: 1.0 - play.p_lower}

    def update(self, forecast: Any, y: Any) -> None:
        """Learn the outcome of a forecast that was made here and has not had one."""
        state = self.state
        if not isinstance(forecast, Forecast):
            raise UnknownForecast(
                f"update takes what predict returned or Forecast.from_json read; got {checked.shown(forecast)}"
            )
        if forecast.forecaster != state.identity:
            raise UnknownForecast(f"{forecast!r} was made by another forecaster; update the one that made it")
        state.pending.check(forecast.round)
        played = state.grid.bin(forecast.value)
        row = checked.stored_row(forecast.indices, forecast.values, self.rules.functions.n)
        low, high = self.rules.property.domain
        inside = low <= forecast.evidence_at <= high and (forecast.hint is None or low <= forecast.hint <= high)
        if state.grid.midpoint(played) != forecast.value or not inside:
            raise UnknownForecast(f"{forecast!r} is not on this forecaster's grid; it was changed after it was made")
        extra = None if forecast.features is None else np.array(forecast.features)
        case = Case(row, forecast.hint, forecast.base, extra)
        late = forecast.round != state.pending.issued - 1
        label = self.rules.label(y)
        self.learn(case, played, forecast.evidence_at, label, forecast.round)
        state.ledger.rounds[1] += late
        self.notice(label)

    def see(self, row: Row, base: float | None, extra: Float64Array | None) -> Case:
        """All that is known before the forecast: the learning hint's word, and its level set in the context."""
        state = self.state
        guide = base if state.hint is None else state.hint.forecast(row, extra, base)
        if guide is not None and not state.grid.low <= guide <= state.grid.high:
            raise InvalidInput(
                f"the learning hint {self.rules.hint!r} forecast {guide!r}, outside the property's domain"
            )
        own = self.rules.hypotheses.n
        return Case(level_sets.active(row, guide, self.rules.level_grid, own), guide, base, extra)

    def draw(self, play: Play, t: int) -> int:
        """The bin that round `t` plays."""
        return play.lower if uniform(self.rules.seed, t) < play.p_lower else play.upper

    def learn(self, case: Case, bin: int, evidence_at: float, label: float, t: int) -> None:
        """The played bin records what happened. Everything that can fail comes before the first change."""
        errors = self._errors(case, bin, evidence_at, self.rules.jittered(label, t))
        if self.state.hint is not None:
            own = case.row.indices < self.rules.hypotheses.n
            row = Row(case.row.indices[own], case.row.values[own])
            self.state.hint.update(row, case.features, case.base, label)
        self.engine.learn(case, bin, errors, t)
        self.follow(case.hint)

    def _errors(self, case: Case, bin: int, evidence_at: float, label: float) -> Errors:
        grid, target = self.state.grid, self.rules.property
        value = grid.midpoint(bin)
        v = checked.identified(target, value, label)
        v_evidence = v if evidence_at == value else checked.identified(target, evidence_at, label)
        if case.hint is None or self.state.record is None:
            return Errors(v, v_evidence, 0.0)
        return Errors(v, v_evidence, checked.identified(target, grid.midpoint(grid.bin(case.hint)), label))

    def follow(self, hint: float | None) -> None:
        """What an outcome may change besides the arrays: the first hint, and a grid that is due to be refined."""
        state = self.state
        if hint is not None and not state.hinted:
            state.hinted = True
            self.engine.assemble()
        if state.ledger.n_rounds >= self.rules.refined_at(state.grid.n):
            state.refine()
            self.engine.assemble()

    def notice(self, label: float) -> None:
        """Watch for labels that heap up; last of all, as the warning may be an error to the caller."""
        if self.rules.notices:
            self.state.atoms.add(label)

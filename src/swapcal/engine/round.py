"""The round: a context, a play, a draw, an outcome. Each method names the lines of the paper's Algorithm 1 that it is.

| Algorithm 1 | here |
| --- | --- |
| 1: for t = 1, ..., T | `Forecaster.predict` and `update`, or `Forecaster.run` |
| 2: receive the context x_t | `Round.inputs` |
| 3: obtain the weights from the expert algorithm | kept up to date by `Evidence.record`, per bin and function |
| 4: Phi_t, and P_t on an end, or on two neighbors of opposite signs | `Evidence.phi`, `Engine.play` |
| 5: sample from P_t and predict | `Round.draw` |
| 6: observe y_t | `Round.update` |
| 7: feed the gains to the expert algorithm | `Round.learn` and `Evidence.record` |
"""

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import numpy as np

from swapcal import inputs
from swapcal.engine import pending
from swapcal.engine.kernels import uniform
from swapcal.engine.ledger import RESERVED
from swapcal.engine.native import NativeEngine, has_kernel
from swapcal.engine.pending import Chunk, Errors, Played, RoundInputs
from swapcal.engine.share import Share
from swapcal.engine.state import Rules, State
from swapcal.engine.values import FIRST, Play, Rounded, Values, adds, cut, lacking, outright, search, trusted
from swapcal.errors import InvalidInput, UnknownForecast
from swapcal.forecast import Forecast
from swapcal.properties.base import RangeProperty
from swapcal.protocols import Row, Rows
from swapcal.sparse import each
from swapcal.typing import Float64Array

# --------
# What an engine is: the two steps of a round that cost time, and whole calls where it can take them over.
#
# There are two, with the same numbers to the last bit: `PythonEngine`, the specification, which reads beside the
# pseudocode, and `NativeEngine`, compiled. An engine works on the state in place. It is asked first, and may leave any
# call to Python by answering None or False, with nothing changed: arguments that are not plain numbers and arrays are
# read, and refused, in one place.

# So many labels find a range that follows. Later each doubles it once, so that one wild label does little.
FIRST_LABELS = 20
# The range does not follow labels beyond: squares of their distances would overflow.
LARGEST = 1e100

# The slot of a hint that is to become a value itself.
FRESH = -1


class PythonEngine:
    """Plays and learns with the parts themselves; takes over no whole calls."""

    __slots__ = ("rules", "state")

    # Whether `run` plays whole rounds without Python; and a label at which it would have stopped.
    alone, beyond = False, math.nan

    def __init__(self, rules: Rules, state: State) -> None:
        self.rules, self.state = rules, state

    def predict(self, x: Any, hint: Any, features: Any) -> Forecast | None:
        """A whole round up to its forecast, where the arguments are plain; here it is left to the round."""
        return None

    def update(self, forecast: Any, y: Any) -> bool:
        """Learn an outcome, where the arguments are plain; here it is left to the round."""
        return False

    def due(self) -> bool:
        """Whether the last update has left something to Python: the first hint, more room, a label to be looked at."""
        return False

    def predict_many(self, X: Any, hints: list[Any], features: list[Any], forecasts: list[Forecast]) -> None:
        """`predict` for each context behind those in `forecasts`, appended, up to one that is left to the round."""

    def update_many(self, forecasts: list[Any], y: list[float], begin: int) -> int:
        """`update` from number `begin` on; where it stopped, behind a first hint or before what it does not take.

        Labels are left to be looked at.
        """
        return begin

    def round_tag(self, forecast: Forecast) -> int:
        """By which the round of a forecast is known."""
        return pending.round_tag(forecast)

    def play(self, case: RoundInputs) -> Play:
        """A hint at its word where it is trusted; else a zero, a sign change or an end of the evidence near it.

        Without a hint the search starts at the property of all outcomes so far. A hint with no value near it may become
        one itself: nothing speaks against it yet.
        """
        state, row, hint = self.state, case.row, case.hint
        values, evidence = state.values, state.evidence
        if hint is not None and not self.rules.fixed and adds(values, state.record, hint):
            return outright(FRESH, "trusted")
        play = None
        if hint is not None and self.rules.trust > 0.0:
            columns, size = self.rules.columns(row), state.scale.now
            play = trusted(evidence, state.record, row, columns, values, hint, self.rules.trust, size)
        if play is not None:
            return play
        # Half-way between two values rounding is smallest whatever the class is.
        border = self.rules.fixed or hasattr(evidence, "learn")
        return search(
            lambda slot: evidence.phi(slot, row),
            # Of values that were given the border is taken always: what is promised ahead of a run rests on it.
            lambda slot: 0.0 if border else state.ledger.rounding_owed(slot, row, float(evidence.counts[slot])),
            values,
            values.nearest(state.origin if hint is None else hint),
        )

    def look(self, rows: Rows, hints: Float64Array | None, guides: Float64Array, means: Float64Array) -> bool:
        """Fill in the hint in force and the mean of what would be said, where it can; here it is left to the round."""
        return False

    def learn(self, case: RoundInputs, played: Played, errors: Errors, t: int) -> float | None:
        """Evidence at the evidence point, error at the forecast, the hint's own record, and the rounding of a gap."""
        state, slot, row = self.state, played.slot, case.row
        ledger, evidence, values = state.ledger, state.evidence, state.values
        value = float(values.by_slot[slot])
        latest = t == state.pending.issued - 1
        units = self._units(max(abs(errors.evidence), abs(errors.hint)), t)
        ledger.settle(evidence, slot, row, played.phi, errors.evidence, state.pending.open, units=units, latest=latest)
        # A class that is known through its learner alone is taught where the forecast counts.
        teach = getattr(evidence, "learn", None)
        if teach is None:
            evidence.record(slot, row, errors.evidence)
        elif errors.cell < 0:
            teach(slot, row, errors.evidence, slot, errors.forecast)
        else:
            teach(slot, row, errors.evidence, errors.cell, errors.shown)
        columns = self.rules.columns(row)
        ledger.record(slot, columns, errors.forecast, errors.evidence)
        state.pending.close(t)
        rounded, rounding, noise = None, abs(errors.forecast - errors.evidence), errors.evidence * errors.evidence
        if played.kind == "pair":
            healed = played.evidence_at in (value, played.other)
            rounded = Rounded(0.5 * (value + played.other), 0.0 if healed else rounding, noise)
        elif played.kind in ("low", "high"):
            rounded = Rounded(0.5 * (value + played.evidence_at), rounding, noise)
        if case.hint is not None:
            overruled = None
            if played.kind == "trusted":
                rounding = abs(errors.nearest - errors.hint)
                cost = 0.5 * (abs(values.value(values.nearest(case.hint)) - case.hint) * rounding)
                rounded = Rounded(case.hint, rounding, errors.hint * errors.hint, cost, errors.lost)
            else:
                overruled = 0.5 * (value - case.hint) * (errors.forecast + errors.hint)
            state.record.add(columns, errors.hint, overruled)
        elif not self.rules.fixed:
            missing = lacking(values, state.record, state.origin, ledger.reach, ledger.n_rounds)
            if missing is not None:
                values.add(missing)
                state.record.totals[4] += 1.0
        if rounded is None or self.rules.fixed:
            return None
        return cut(values, played.kind, rounded, state.scale.now)

    def _units(self, size: float, t: int) -> tuple[float, float]:
        """In which V is weighed now, and at the draw of round `t`; the latter 0 where |V| was beyond what held then."""
        state = self.state
        doubled = state.scale.cover(size, state.pending.issued, first=not state.ledger.n_rounds)
        if not getattr(state.evidence, "scaled", False):
            return 1.0, 1.0
        if doubled:
            state.measure()
        then = state.scale.at(t)
        return 1.0 / state.scale.now, 0.0 if size > then else 1.0 / then

    def accepts(self, X: Any, n_rounds: int) -> bool:
        """Whether `run` takes these contexts as they are; here rows are read first."""
        return False

    def accepts_features(self, features: Any) -> bool:
        """Whether `run` takes these features; here they are looked at round by round."""
        return False

    def run(self, part: Chunk, progress: Any) -> None:
        """Play rounds until all are played or more room is needed; only an engine that is `alone` does.

        `progress` counts rows that are done and codes of arrivals that are learned; behind it are the lines of rows
        that wait, and the number of active entries for which there was no room.
        """
        raise NotImplementedError("the engine in Python plays round by round")

    def pause(self, paused: bool) -> None:
        """While it is paused, whole calls are left to Python; here they always are."""

    def assemble(self) -> None:
        """Take up the state's arrays anew, after they were replaced; here they are looked up in every round."""


Engine = PythonEngine | NativeEngine


class Round:
    """Plays rounds by the `rules` on a `state`, through the `engine` that suits both."""

    __slots__ = ("_fallible", "engine", "rules", "state")

    def __init__(self, rules: Rules, state: State, *, native: Any) -> None:
        self.rules, self.state = rules, state
        # A learner, a hint or a V of the user's own may fail where ours do not.
        own_hint = rules.hint is not None and getattr(rules.hint, "model", rules.hint) is not None
        self._fallible = not has_kernel(state) or own_hint or not rules.property.kernel["property"]
        self.engine: Engine = PythonEngine(rules, state)
        if native is not None and has_kernel(state):
            self.engine = NativeEngine(rules, state, native)

    def predict(self, x: Any, hint: Any, features: Any) -> Forecast:
        """Open a round: its forecast, which knows all that the update will need."""
        base, extra = self.rules.given(hint, features)
        # Last of what may fail, as a class that reads records learns its groups from them.
        case = self.inputs(self.rules.hypotheses.row(x), base, extra)
        t, played, probability = self.play(case)
        value = float(self.state.values.by_slot[played.slot])
        forecast = Forecast(
            value=played.shown,
            round=t,
            forecaster=self.state.identity,
            other=played.other,
            probability=probability,
            evidence_at=played.evidence_at,
            context=Forecast.packed(*case.row),
            kind=played.kind,
            phi=played.phi,
            hint=case.hint,
            base=case.base,
            features=None if case.features is None else tuple(case.features.tolist()),
            scores=case.scores,
            guided=played.guided,
            said=None if played.shown == value else value,
        )
        object.__setattr__(forecast, "forecaster", self.state.identity)
        self.state.pending.tag(t, self.engine.round_tag(forecast))
        return forecast

    def distribution(self, x: Any, hint: Any, features: Any) -> dict[float, float]:
        """The forecasts that `predict` would draw from, with their probabilities; changes nothing."""
        look = getattr(self.rules.hypotheses, "peek", self.rules.hypotheses.row)
        case = self.inputs(look(x), *self.rules.given(hint, features))
        shares, t = self.state.shares, self.state.pending.issued
        chances: dict[float, float] = {}
        for value, chance in self._said(case):
            number = self._show(case, value, lambda k, said, base: shares[k].peek(t, said, base))[1]
            chances[number] = chances.get(number, 0.0) + chance
        return chances

    def expected(self, rows: Rows, hints: Float64Array | None) -> Float64Array:
        """The mean of the `distribution` of each row; changes nothing."""
        n, learns, t = len(rows.indptr) - 1, self.state.hint is not None, self.state.pending.issued
        guides, means = np.empty(n), np.empty(n)
        if not self.engine.look(rows, hints, guides, means):
            for i, row in enumerate(each(rows)):
                case = self.inputs(row, None if hints is None else float(hints[i]), None)
                guides[i] = np.nan if case.hint is None else case.hint
                means[i] = sum(value * chance for value, chance in self._said(case))
        if self.rules.protect == "nothing" or (hints is None and not learns):
            return means
        first, second = self.state.shares
        base = guides if hints is None else first.peek(t, guides, hints) if learns else hints
        return second.peek(t, means, base)

    def _said(self, case: RoundInputs) -> list[tuple[float, float]]:
        """The values that the engine would draw from in the next round, with their probabilities; changes nothing."""
        values = self.state.values
        if not values.n and case.hint is None:
            first = Values(values.low, values.high)
            first.spread(FIRST)
            return [(first.value(first.nearest(self.state.origin)), 1.0)]
        play = self.engine.play(case)
        if play.lower == FRESH and case.hint is not None:
            return [(case.hint, 1.0)]
        pairs = ((play.lower, play.p_lower), (play.upper, 1.0 - play.p_lower))
        return [(float(values.by_slot[slot]), chance) for slot, chance in pairs if chance > 0.0]

    def update(self, forecast: Any, y: Any) -> None:
        """Learn the outcome of a forecast that was made here and has not had one."""
        case, played = self.reopen(forecast)
        label = self.rules.label(y)
        self.learn(case, played, label, forecast.round)
        self.check_ties(label)

    def reopen(self, forecast: Any) -> tuple[RoundInputs, Played]:
        """The round of a forecast that was made here and is open."""
        state = self.state
        if not isinstance(forecast, Forecast):
            raise UnknownForecast(
                f"update takes what predict returned or Forecast.from_json read; got {inputs.short_repr(forecast)}"
            )
        if forecast.forecaster != state.identity:
            raise UnknownForecast(f"{forecast!r} was made by another forecaster; update the one that made it")
        outside = forecast.forecaster is not state.identity
        if outside and not state.identity.sealed(forecast.signed, forecast.sealed):
            raise UnknownForecast(
                f"{forecast!r} is not as this forecaster made it: its seal is broken or missing, or of a key that "
                "was forgotten. Store what to_json or to_dict give, unchanged, and do not build or edit forecasts"
            )
        state.pending.check(forecast.round)
        if outside and state.pending.flags[forecast.round % len(state.pending.flags)] != self.engine.round_tag(
            forecast
        ):
            raise UnknownForecast(
                f"{forecast!r} was made by a copy of this forecaster (a copy, a fork, or one loaded from its file) "
                f"after the two had parted: round {forecast.round} was another one here. Give the outcome to the one "
                "that made it. To go on elsewhere, save, load there, and forecast with one of the two only; where "
                "several processes forecast, give each a forecaster of its own or let all ask one service"
            )
        value = forecast.value if forecast.said is None else forecast.said
        slot, (low, high) = state.values.find(value), self.rules.property.domain
        # A learner of any class reads numbers of any size.
        largest = float(np.finfo(np.float64).max) if hasattr(state.evidence, "learn") else 1.0
        row = inputs.stored_row(forecast.indices, forecast.values, self.rules.functions.n, largest)
        points = (forecast.evidence_at, forecast.hint)
        inside = all(each is None or low <= each <= high for each in points)
        if slot < 0 or state.values.find(forecast.other) < 0 or not inside:
            raise UnknownForecast(f"{forecast!r} is not on this forecaster's grid; it was changed after it was made")
        extra = None if forecast.features is None else np.array(forecast.features)
        case = RoundInputs(row, forecast.hint, forecast.base, extra, forecast.scores)
        shown, guided = forecast.value, forecast.guided
        return case, Played(slot, forecast.other, forecast.evidence_at, forecast.kind, forecast.phi, shown, guided)

    def inputs(self, row: Row, base: float | None, extra: Float64Array | None) -> RoundInputs:
        """All that is known before the forecast: the learning hint's word, and its level set in the context."""
        values, model = self.state.values, self.state.hint
        guide, scores = (base, None) if model is None else model.said(self._seen(row), extra, base)
        if model is None and guide is not None:
            guide = min(max(guide, values.low), values.high)
        if guide is not None and not values.low <= guide <= values.high:
            raise InvalidInput(
                f"the learning hint {self.rules.hint!r} forecast {guide!r}, outside the property's domain"
            )
        levels = self.rules.level_grid
        if guide is not None and levels is not None:
            level = self.rules.hypotheses.n + levels.bin(guide)
            row = Row(np.append(row.indices, level), np.append(row.values, 1.0))
        return RoundInputs(row, guide, base, extra, scores)

    def _seen(self, row: Row) -> Row:
        """What the learning hint sees of a row."""
        end = int(np.searchsorted(row.indices, self.rules.n_inputs))
        return row if end == len(row.indices) else Row(row.indices[:end], row.values[:end])

    def play(self, case: RoundInputs) -> tuple[int, Played, float]:
        """Open a round: its number, what it plays, and how likely that was.

        A first grid, or a value for a hint that has none near it, is made on the way. All that may fail, such as a V of
        the user's own, comes before the round is open.
        """
        values = self.state.values
        if not values.n and case.hint is None:
            values.spread(FIRST)
        play = self.engine.play(case)
        fresh = case.hint if play.lower == FRESH else None
        lower = uniform(self.rules.seed, self.state.pending.issued) < play.p_lower
        value = float(values.by_slot[play.lower if lower else play.upper]) if fresh is None else fresh
        shares, now = self.state.shares, self.state.pending.issued
        with self._undone():
            guided, number = self._show(case, value, lambda k, said, base: shares[k].show(now, said, base))
        if fresh is not None:
            play = outright(self.add(value), play.kind)
            self.state.record.totals[4] += 1.0
        t = self.open()
        slot, phi = self.draw(play, lower)
        other = float(values.by_slot[play.lower + play.upper - slot])
        point = value if play.evidence_at is None else play.evidence_at
        probability = play.p_lower if slot == play.lower else 1.0 - play.p_lower
        return t, Played(slot, other, point, play.kind, phi, number, guided), probability

    def _show(
        self, case: RoundInputs, value: float, show: Callable[[int, float, float], float]
    ) -> tuple[float | None, float]:
        """What the hint makes of the model, and what is shown, where `value` is said; `show` asks a share."""
        if self.rules.protect == "nothing" or case.hint is None:
            return None, value
        guided = None
        if self.rules.hint is not None:
            guided = case.hint if case.base is None else show(0, case.hint, case.base)
        base = case.base if guided is None else guided
        return guided, value if base is None else show(1, value, base)

    def _rungs(self, case: RoundInputs, played: Played) -> Iterator[tuple[Share, float, float, float]]:
        """The shares that a round has met: each with what was said, its base, and what was shown."""
        if self.rules.protect == "nothing" or case.hint is None:
            return
        shares, value = self.state.shares, float(self.state.values.by_slot[played.slot])
        if played.guided is not None and case.base is not None:
            yield shares[0], case.hint, case.base, played.guided
        base = case.base if played.guided is None else played.guided
        if base is not None:
            yield shares[1], value, base, played.shown

    @contextmanager
    def _undone(self) -> Iterator[None]:
        """What fails in between, as a V or a learner of the user's own may, leaves no trace."""
        state = self.state
        if not self._fallible:
            yield
            return
        drift, totals = state.ledger.drift.copy(), state.ledger.totals.copy()
        hint = None if state.hint is None else {name: array.copy() for name, array in state.hint.arrays().items()}
        shares = [copy.deepcopy(share.arrays()) for share in state.shares]
        try:
            yield
        except BaseException:
            state.ledger.drift[:], state.ledger.totals[:] = drift, totals
            if state.hint is not None and hint is not None:
                state.hint.restore(hint)
            for share, arrays in zip(state.shares, shares, strict=True):
                share.restore(arrays)
            raise

    def open(self) -> int:
        """The number of a new round. One that has waited for too long expires for it."""
        self.make_room()
        t, expired = self.state.pending.issue()
        self.state.ledger.rounds[2] += expired
        return t

    def draw(self, play: Play, lower: bool) -> tuple[int, float]:
        """The slot that was drawn, and the evidence that the draw has canceled there."""
        phi, other = (play.phi_lower, play.phi_upper) if lower else (play.phi_upper, play.phi_lower)
        self.state.ledger.draw(self.state.evidence, phi, other)
        return (play.lower if lower else play.upper), phi

    def learn(self, case: RoundInputs, played: Played, label: float, t: int) -> None:
        """The played value records what happened. Everything that can fail comes before the first change."""
        self.make_room()
        state = self.state
        errors = self._errors(case, played, self.rules.jittered(label, t))
        lag = state.pending.issued - 1 - t
        moved = played.shown != float(state.values.by_slot[played.slot])
        cell = state.values.slot(state.values.nearest(played.shown)) if moved else -1
        outcome = self.rules.jittered(label, t) if self.rules.inside(label) == label else label
        losses, inside = state.shares[1].losses, self.rules.inside(label)
        v = losses.v(played.shown, outcome) if moved else 0.0
        with self._undone():
            state.ledger.see(losses.property, losses.point(inside), inside)
            for share, said, base, shown in self._rungs(case, played):
                share.learn(t, said, base, shown, label, lag, self.rules.columns(case.row))
            if state.hint is not None:
                state.hint.update(self._seen(case.row), case.features, case.base, inside, case.hint, case.scores)
            middle = self.engine.learn(case, played, errors._replace(cell=cell, shown=v) if moved else errors, t)
        state.ledger.rounds[1] += lag > 0
        if moved:
            state.ledger.move(played.slot, cell, self.rules.columns(case.row), errors.forecast, v)
        if middle is not None:
            self.add(middle)
        self.after_update(case.hint)
        if self.rules.follows:
            self.follow(label)

    def _errors(self, case: RoundInputs, played: Played, label: float) -> Errors:
        values, target = self.state.values, self.rules.property
        value = float(values.by_slot[played.slot])
        v = inputs.identified(target, value, label)
        v_evidence = v if played.evidence_at == value else inputs.identified(target, played.evidence_at, label)
        # Labels at an end of the domain may give V the sign that does not heal there; what is left out is rounding.
        if played.kind == "low":
            v_evidence = min(v_evidence, 0.0)
        elif played.kind == "high":
            v_evidence = max(v_evidence, 0.0)
        if case.hint is None:
            return Errors(v, v_evidence, 0.0, 0.0)
        nearest = values.value(values.nearest(case.hint))
        v_hint = inputs.identified(target, case.hint, label)
        v_nearest = v_hint if nearest == case.hint else inputs.identified(target, nearest, label)
        losses = self.state.shares[1].losses
        lost = losses.share * ((case.hint - losses.point(label)) * v_hint)
        return Errors(v, v_evidence, v_hint, v_nearest, lost)

    def add(self, value: float) -> int:
        """A new value, with no evidence yet, and its slot."""
        self.make_room()
        return self.state.values.add(value)

    def forget(self, case: RoundInputs, played: Played, t: int) -> None:
        """Close a round whose outcome is not known and will not be."""
        state = self.state
        with self._undone():
            for share, said, base, shown in self._rungs(case, played):
                share.drop(t, said, base, shown)
        reserved = state.ledger.drift[RESERVED] - state.evidence.reserve(played.phi)
        state.ledger.drift[RESERVED] = reserved if state.pending.open > 1 else 0.0
        state.pending.close(t)

    def after_update(self, hint: float | None) -> None:
        """What an outcome may change besides the arrays: a first hint, and room before there is need."""
        if hint is not None and not self.state.hinted:
            self.state.hinted = True
            self.engine.assemble()
        self.make_room()

    def follow(self, label: float) -> None:
        """Double the range if a label lies beyond it: once, or until it does not while few are known."""
        before, target = self.rules, cast(RangeProperty, self.rules.property)
        if target.low <= label <= target.high or not abs(label) <= LARGEST:
            return
        few = self.state.ledger.n_rounds <= FIRST_LABELS
        wider: Any = target.covering(label) if few else target.doubled(label)
        self.adopt(replace(before, property=wider))
        self.state.follow(before, self.rules)
        self.engine.assemble()

    def adopt(self, rules: Rules) -> None:
        """Go on by other rules."""
        self.rules = self.engine.rules = rules

    def learn_held(self, line: int) -> None:
        """Learn the outcome of a round that waited; one that has expired meanwhile is let go."""
        case, played, t, label = self.state.waiting.take(line)
        if self.state.pending.is_open(t):
            self.learn(case, played, label, t)

    def make_room(self, n_entries: int = 0) -> None:
        """For two values more, for a round more that waits, and for so many active entries of one."""
        state = self.state
        crowded = state.values.n >= state.values.capacity - 1 and not self.rules.fixed
        if crowded:
            state.grow()
        if n_entries:
            state.waiting.room(n_entries)
            crowded = True
        for part in (state.pending, state.scale):
            if part.full:
                part.grow()
                crowded = True
        if crowded:
            self.engine.assemble()

    def check_ties_many(self, labels: Float64Array) -> None:
        """`check_ties` for each of them."""
        if self.rules.checks_ties:
            self.state.ties.add_many(labels)

    def check_ties(self, label: float) -> None:
        """Watch for labels that heap up; last of all, as the warning may be an error to the caller."""
        if self.rules.checks_ties:
            self.state.ties.add(label)

"""The round: evidence, a crossing, a draw, an outcome. Everything else is a part that is plugged in."""

import secrets
import threading
from os import PathLike
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from swapcal import checked
from swapcal.checked import shown
from swapcal.engine import kernels, ledger, persistence
from swapcal.engine import schedule as horizons
from swapcal.engine import stream as replay
from swapcal.engine.atoms import Atoms
from swapcal.engine.bounds import Guarantee
from swapcal.engine.crossing import Play, bisect, bracket
from swapcal.engine.grid import Grid
from swapcal.engine.native import assemble
from swapcal.engine.pending import Pending
from swapcal.engine.randomness import mix64, uniform
from swapcal.engine.trust import ALLOWANCE, trusted
from swapcal.errors import InvalidInput, UnknownForecast
from swapcal.forecast import Forecast
from swapcal.hypotheses import levels as level_sets
from swapcal.roles import Elicitable, HintState, Hypotheses, LearningHint, Row
from swapcal.typing import Float64Array

__all__ = ["Forecaster"]


class _Case(NamedTuple):
    """What is known of a round before its forecast."""

    row: Row
    hint: float | None
    base: float | None
    features: Float64Array | None


class Forecaster:
    """Forecasts of a property, calibrated given the forecast itself and given every function of a class.

    Guarantee: whatever the stream does, the swap multicalibration error of the forecasts stays below
    `guarantee(delta)` with probability 1 - delta, a number of order T^(1/(r+1)) with logarithms. The proofs are in
    docs/guarantees.md.

    Parameters
    ----------
    property : Elicitable
        What is forecast: `Mean()`, `Quantile(0.9)`, `Expectile(0.8)`, `Probability()`, ...
    hypotheses : Hypotheses
        For whom: `Finite(n)` or `Linear(n)`.
    horizon : int, optional
        Number of rounds T, which sets the number of bins. None: anytime; the grid is refined as rounds go by and keeps
        its evidence.
    r : float
        Exponent of the error, 1 or more.
    bins : int, optional
        Number of bins, instead of about T^(1/(r+1)), odd and at least 11; the factor depends on the property and on the
        hint.
    seed : int
        Of the draws. Whoever knows it knows the draws: keep it to yourself where somebody plays against you.
    hint : LearningHint, optional
        A model that learns beside the engine, such as `OnlineRegression()`; it takes `predict`'s hint as an input.
    levels : int
        How many level sets of the hint join a finite class; 0 for none.
    trust : float
        How long a hint is played at its word: while its own record, in its bin and for every active function, has a
        potential of at most (e n)^trust. With 0 it must lie at a zero or a sign change of the evidence, like any
        forecast.
    outside : {"error", "clip"}
        What to do with a label or hint outside its range.
    jitter : float
        Labels are spread uniformly over an interval of this width around them before they count as evidence.
    max_pending : int
        How many rounds a forecast can wait for its outcome before it expires; costs as many bytes.

    Notes
    -----
    Cost per round: O(active entries) for each of O(log N) evaluations of the evidence and for one update. Memory: O(N)
    times the length of the context.

    Examples
    --------
    >>> import swapcal as sc
    >>> forecaster = sc.Forecaster(sc.Mean(), sc.Finite(2), horizon=1000, seed=1)
    >>> for t in range(1000):
    ...     forecast = forecaster.predict([1.0, t % 2])
    ...     forecaster.update(forecast, 0.9 if t % 2 else 0.2)
    >>> bool(forecaster.error() < forecaster.guarantee(0.05) < 1000)
    True
    """

    def __init__(
        self,
        property: Elicitable,
        hypotheses: Hypotheses,
        *,
        horizon: int | None = None,
        r: float = 2.0,
        bins: int | None = None,
        seed: int = 0,
        hint: LearningHint | None = None,
        levels: int = 10,
        trust: float = 1.0 / 3.0,
        outside: str = "error",
        jitter: float = 0.0,
        max_pending: int = 65_536,
    ) -> None:
        self.property = checked.role(property, ("identification", "domain"), "property", "sc.Quantile(0.9)")
        self.hypotheses = checked.role(hypotheses, ("start", "row", "n"), "hypotheses", "sc.Finite(20)")
        self.hint = None if hint is None else checked.role(hint, ("start",), "hint", "sc.OnlineRegression()")
        self.horizon = None if horizon is None else checked.whole(horizon, "horizon", 1)
        self.r = checked.number(r, "r", 1.0, 100.0)
        self.bins = None if bins is None else checked.whole(bins, "bins", 1)
        self.seed = checked.whole(seed, "seed", 0)
        self.levels = checked.whole(levels, "levels", 0)
        self.trust = checked.number(trust, "trust", 0.0, 100.0)
        self.outside = checked.one_of(outside, "outside", ("error", "clip"))
        self.jitter = checked.number(jitter, "jitter", 0.0, property.high - property.low)
        self.max_pending = checked.whole(max_pending, "max_pending", 1)

        self._share = horizons.share_for(property.lipschitz, self.r, learning=hint is not None)
        self._class = level_sets.joined(hypotheses, self.levels)
        n_levels = self._class.n - hypotheses.n
        self._levels = Grid(*property.domain, n_levels) if n_levels else None
        self._kernels = kernels.native
        self._running = threading.Lock()
        self._identity = secrets.token_hex(8)
        kernels.remind()
        self._start(self.bins or horizons.first_bins(self.horizon, self.r, self._share))

    def _start(self, n_bins: int) -> None:
        """Before the first round: nothing has been seen, and nothing learned."""
        self.grid = Grid(*self.property.domain, n_bins)
        self._evidence = self._class.start(n_bins)
        self._record = self._class.start_record(n_bins)
        self._ledger = ledger.Ledger(n_bins, self._class.n)
        self._hint_state: HintState | None = None
        if self.hint is not None:
            self._hint_state = self.hint.start(self.property, self.hypotheses.n)
        self._pending = Pending(self.max_pending)
        self._atoms = Atoms()
        self._hinted = self.hint is not None
        self._engine = assemble(self)

    def __repr__(self) -> str:
        return (
            f"Forecaster({self.property!r}, {self.hypotheses!r}, horizon={self.horizon}, seed={self.seed}): "
            f"{self.n_rounds} rounds, {self.grid.n} bins"
        )

    def __getstate__(self) -> dict[str, Any]:
        """For `copy` and `pickle`: without the lock and the kernels, which own nothing."""
        return {name: part for name, part in self.__dict__.items() if name not in ("_engine", "_kernels", "_running")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._running = threading.Lock()
        self._kernels = kernels.native
        self._engine = assemble(self)

    def predict(self, x: Any, hint: float | None = None, *, features: Any = None) -> Forecast:
        """The forecast for context `x`, near `hint` where that keeps the guarantee; opens a round, learns nothing."""
        engine = self._engine
        if engine is not None:
            forecast: Forecast | None = engine.predict(x, hint, features)
            if forecast is not None:
                return forecast
        base, extra = self._given(hint, features)
        # Last of what may fail, as a class that reads records learns its groups from them.
        case = self._case(self.hypotheses.row(x), base, extra)
        play = self._play(case)
        t = self._pending.issue()
        played = self._draw(play, t)
        value = self.grid.midpoint(played)
        return Forecast(
            value=value,
            round=t,
            forecaster=self._identity,
            other=self.grid.midpoint(play.lower + play.upper - played),
            probability=play.p_lower if played == play.lower else 1.0 - play.p_lower,
            evidence_at=play.evidence_at(value),
            context=Forecast.packed(*case.row),
            hint=case.hint,
            base=case.base,
            features=None if case.features is None else tuple(case.features.tolist()),
        )

    def distribution(self, x: Any, hint: float | None = None, *, features: Any = None) -> dict[float, float]:
        """The forecasts that `predict` would draw from, with their probabilities. Changes nothing."""
        look = getattr(self.hypotheses, "peek", self.hypotheses.row)
        play = self._play(self._case(look(x), *self._given(hint, features)))
        lower, upper = self.grid.midpoint(play.lower), self.grid.midpoint(play.upper)
        return {lower: 1.0} if lower == upper else {lower: play.p_lower, upper: 1.0 - play.p_lower}

    def update(self, forecast: Forecast, y: float) -> None:
        """Learn the outcome `y` of a forecast: in any order, once each."""
        done = 0 if self._engine is None else self._engine.update(forecast, y)
        if done == 1:
            return
        if done:
            self._after(forecast.hint)
            self._notice(float(y))
            return
        if not isinstance(forecast, Forecast):
            raise UnknownForecast(
                f"update takes what predict returned or Forecast.from_json read; got {shown(forecast)}"
            )
        if forecast.forecaster != self._identity:
            raise UnknownForecast(f"{forecast!r} was made by another forecaster; update the one that made it")
        self._pending.check(forecast.round)
        played = self.grid.bin(forecast.value)
        row = checked.stored_row(forecast.indices, forecast.values, self._class.n)
        low, high = self.property.domain
        inside = low <= forecast.evidence_at <= high and (forecast.hint is None or low <= forecast.hint <= high)
        if self.grid.midpoint(played) != forecast.value or not inside:
            raise UnknownForecast(f"{forecast!r} is not on this forecaster's grid; it was changed after it was made")
        extra = None if forecast.features is None else np.array(forecast.features)
        case = _Case(row, forecast.hint, forecast.base, extra)
        late = forecast.round != self._pending.issued - 1
        label = self._label(y)
        self._learn(case, played, forecast.evidence_at, label, forecast.round)
        self._ledger.rounds[1] += late
        self._notice(label)

    def run(self, X: Any, y: Any, hints: Any = None, *, features: Any = None, missing: str = "error") -> Float64Array:
        """Forecast and update a whole recorded stream: the loop's numbers, and all of them or, on an error, none.

        With `missing="skip"`, rounds whose label is NaN are forecast and not learned from, and a hint that is NaN means
        that there is none.
        """
        return replay.run(self, X, y, hints, features, missing)

    def _given(self, hint: float | None, features: Any) -> tuple[float | None, Float64Array | None]:
        """The user's own forecast and the extra features, checked."""
        base = None if hint is None else self._hint_value(hint)
        return base, checked.features(features, self._n_features)

    def _case(self, row: Row, base: float | None, extra: Float64Array | None) -> _Case:
        """All that the round knows before its forecast: the learning hint's word, and its level set in the context."""
        guide = base if self._hint_state is None else self._hint_state.forecast(row, extra, base)
        if guide is not None and not self.grid.low <= guide <= self.grid.high:
            raise InvalidInput(f"the learning hint {self.hint!r} forecast {guide!r}, outside the property's domain")
        return _Case(level_sets.active(row, guide, self._levels, self.hypotheses.n), guide, base, extra)

    def _play(self, case: _Case) -> Play:
        """Which bins to play, with which probabilities: near the hint where there is one."""
        if self._engine is not None:
            return Play(*self._engine.play(case.row.indices, case.row.values, case.hint))

        def phi(bin: int) -> float:
            return self._evidence.phi(bin, case.row)

        if case.hint is None:
            return bisect(phi, self.grid, self.property.monotone)
        play = trusted(self._evidence, self._record, case.row, self.grid, case.hint, self.trust)
        return play or bracket(phi, self.grid, case.hint, self.property.monotone)

    def _draw(self, play: Play, t: int) -> int:
        """The bin that round `t` plays."""
        return play.lower if uniform(self.seed, t) < play.p_lower else play.upper

    def _learn(self, case: _Case, bin: int, evidence_at: float, label: float, t: int) -> None:
        """The played bin records what happened. Everything that can fail comes before the first change."""
        value = self.grid.midpoint(bin)
        spread = self._jittered(label, t)
        v = checked.identified(self.property, value, spread)
        v_evidence = v if evidence_at == value else checked.identified(self.property, evidence_at, spread)
        hinted = None if case.hint is None or self._record is None else self.grid.bin(case.hint)
        v_hint = 0.0 if hinted is None else checked.identified(self.property, self.grid.midpoint(hinted), spread)
        if self._hint_state is not None:
            own = case.row.indices < self.hypotheses.n
            self._hint_state.update(Row(case.row.indices[own], case.row.values[own]), case.features, case.base, label)
        if self._engine is not None:
            self._engine.learn(case.row.indices, case.row.values, bin, v, v_evidence, v_hint, t, case.hint)
        else:
            self._evidence.record(bin, case.row, v_evidence)
            self._ledger.record(bin, case.row, v, v_evidence)
            if self._record is not None and hinted is not None:
                self._record.record(hinted, case.row, v_hint)
            self._pending.close(t)
        self._after(case.hint)

    def _rounds_to_refinement(self) -> int:
        """How many outcomes are left before the grid is refined."""
        if self.horizon is not None or self.bins is not None:
            return 2**62
        return horizons.next_refinement(self.grid.n, self.r, self._share) - self._ledger.n_rounds

    def _after(self, hint: float | None) -> None:
        """What a round may change outside the arrays."""
        if hint is not None and not self._hinted:
            self._hinted = True
            self._engine = assemble(self)
        self._refine_if_due()

    def _refine_if_due(self) -> None:
        if self._rounds_to_refinement() > 0:
            return
        self.grid = self.grid.refined(horizons.REFINEMENT)
        self._evidence.refine(horizons.REFINEMENT)
        self._ledger.refine(horizons.REFINEMENT)
        if self._record is not None:
            self._record.refine(horizons.REFINEMENT)
        self._engine = assemble(self)

    def _notice(self, label: float) -> None:
        """Watch for labels that heap up; last of all, as the warning may be an error to the caller."""
        if not self.property.continuous and self.jitter == 0.0:
            self._atoms.add(label)

    def _jittered(self, label: float, t: int) -> float:
        """The label moved by at most half the jitter, reflected at the ends so that no atom forms there."""
        if self.jitter == 0.0:
            return label
        moved = label + self.jitter * (uniform(mix64(self.seed), t) - 0.5)
        moved = max(moved, 2.0 * self.property.low - moved)
        return min(moved, 2.0 * self.property.high - moved)

    @property
    def _n_features(self) -> int:
        return 0 if self.hint is None else self.hint.n_features

    def _hint_value(self, hint: Any) -> float:
        value = checked.real(hint, "hint")
        low, high = self.property.domain
        if self.outside == "clip":
            return min(max(value, low), high)
        if not low <= value <= high:
            raise InvalidInput(
                f"hint {value:g} is outside [{low:g}, {high:g}]; pass outside='clip' to move it to the end"
            )
        return value

    def _label(self, y: Any) -> float:
        return float(self._labels(checked.real(y, "label")))

    def _labels(self, labels: Any) -> Any:
        if self.outside == "clip":
            labels = np.clip(labels, self.property.low, self.property.high)
        why = self.property.invalid_labels(labels)
        if why is not None:
            raise InvalidInput(f"{why}; set low= and high= of the property, or pass outside='clip' to move such labels")
        return labels

    @property
    def n_rounds(self) -> int:
        """Rounds that have had their outcome."""
        return self._ledger.n_rounds

    @property
    def n_pending(self) -> int:
        """Forecasts that wait for their outcome."""
        return self._pending.open

    def error(self, r: float | None = None) -> float:
        """The swap multicalibration error so far, over the class and the hint's levels (and jittered labels)."""
        exponent = self.r if r is None else checked.number(r, "r", 1.0, 100.0)
        return self._ledger.error(self._class, self._evidence.counts, exponent)

    def guarantee(self, delta: float = 0.05, *, n_rounds: int | None = None) -> Guarantee:
        """What the theorem in force promises of `error()`, with probability 1 - delta.

        Once outcomes have come, for the rounds so far: with the visits, spread and rounding they had, and without an
        assumption on the labels. Before that, or with `n_rounds`, ahead of the run: for the horizon or for that many
        rounds, from the property's Lipschitz constant.
        """
        delta = checked.number(delta, "delta", 1e-300, 1.0)
        functions, trust = (self._class.n, ALLOWANCE * self.trust) if self._hinted else (self.hypotheses.n, 0.0)
        if n_rounds is None and self.n_rounds:
            return self._ledger.guarantee(self._evidence, functions, trust, self.r, delta)
        total = self.horizon if n_rounds is None else checked.whole(n_rounds, "n_rounds", 1)
        if total is None:
            raise InvalidInput("without a horizon, say for how many rounds: guarantee(n_rounds=...), or ask after some")
        fixed = self.bins is not None or self.horizon is not None
        grids = [(self.grid.n, total)] if fixed else horizons.stages(total, self.r, self._share)
        return ledger.ahead(self._evidence, self.property, grids, functions, trust, self.r, delta, hinted=self._hinted)

    def save(self, path: str | PathLike[str] | BinaryIO) -> None:
        """Write the whole state to a file (or a binary stream): plain data, no pickle."""
        persistence.save(self, path)

    @classmethod
    def load(
        cls,
        path: str | PathLike[str] | BinaryIO,
        *,
        property: Elicitable | None = None,
        hypotheses: Hypotheses | None = None,
        hint: LearningHint | None = None,
    ) -> "Forecaster":
        """The forecaster that `save` wrote; it continues bit for bit. Parts of your own making are passed in again."""
        return persistence.load(cls, path, property=property, hypotheses=hypotheses, hint=hint)

"""Loss and swap error at once and late: the model, the model as hint, learning, and a recalibrator refitted daily."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from swapcal.audits import Audit
from swapcal.forecaster import Forecaster
from swapcal.hints import OnlineRegression
from swapcal.hypotheses import Finite
from swapcal.typing import Float64Array
from swapcal_benchmarks.delay.late_cases import LateCase

__all__ = ["LATE_RATES", "LateRow", "LateScore", "measure_late", "refitted"]

LATE_RATES = tuple(2.5**-k for k in range(9))
"""Fixed rates, the best of which in hindsight is the yardstick at a delay of 100 rows."""

N_SEEDS = 3
_FEWEST = 50


@dataclass(frozen=True, slots=True)
class LateScore:
    """Loss over the model's, less 1, and swap error over the model's: means over seeds, and the worst seed."""

    loss: float
    swap: float
    worst_loss: float
    worst_swap: float


@dataclass(frozen=True, slots=True)
class LateRow:
    """A stream, a delay, and what every way of forecasting makes of them; `best` is the best fixed rate, at 100 rows.

    shown: share of rounds in which what learning said was shown. found: round before which the delays were found to
    depend on outcomes, if they were.
    """

    stream: str
    delay: str
    depends: bool
    n_rounds: int
    model_loss: float
    model_swap: float
    hint_at_once: LateScore
    hint_late: LateScore
    learning_at_once: LateScore
    learning_late: LateScore
    ungated: LateScore
    refitted: LateScore
    best: float | None
    best_rate: float | None
    shown: float
    found: int | None

    @property
    def kept(self) -> float | None:
        """What learning keeps of the gain of the best fixed rate."""
        return None if self.best is None or self.best >= 0.0 else self.learning_late.loss / self.best

    def data(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "kept": self.kept}


def measure_late(
    cases: Iterable[LateCase], *, seeds: int = N_SEEDS, done: Callable[[LateCase], None] | None = None
) -> list[LateRow]:
    """All rows, one for each case; `done` is told each case when it is finished."""
    rows: list[LateRow] = []
    at_once: dict[str, tuple[LateScore, LateScore]] = {}
    for case in cases:
        judge = _Judge(case)
        if case.stream not in at_once:
            at_once[case.stream] = judge.played(None, None, seeds)[0], judge.played(OnlineRegression(), None, seeds)[0]
        hint, learning = at_once[case.stream]
        late, forecaster = judge.played(OnlineRegression(), case.known, seeds)
        best, rate = None, None
        if case.delay == "100 rows" and not case.depends:
            found = [
                judge.played(OnlineRegression(rates=(each,)), case.known, 1, stand_back=False)[0].loss
                for each in LATE_RATES
            ]
            best, rate = min(found), LATE_RATES[int(np.argmin(found))]
        lateness = forecaster.lateness()
        rows.append(
            LateRow(
                case.stream,
                case.delay,
                case.depends,
                len(case.y),
                judge.loss,
                judge.swap(case.model),
                hint,
                judge.played(None, case.known, seeds)[0],
                learning,
                late,
                judge.played(OnlineRegression(), case.known, seeds, stand_back=False)[0],
                judge.scored([refitted(case)]),
                best,
                rate,
                1.0 - lateness.n_stood_back / len(case.y),
                lateness.dependent_since,
            )
        )
        if done is not None:
            done(case)
    return rows


class _Judge:
    """How forecasts of a case are scored: in 48 equal cells, over the groups, on the outcomes that there are."""

    def __init__(self, case: LateCase) -> None:
        self.case = case
        self.there = ~np.isnan(case.y)
        self.loss = self._loss(case.model)

    def _loss(self, p: Float64Array) -> float:
        return float(np.mean((p[self.there] - self.case.y[self.there]) ** 2))

    def swap(self, p: Float64Array) -> float:
        """SMCal_2 in 48 equal cells."""
        case = self.case
        audit = Audit(case.property, Finite(case.x.shape[1]), bins=np.linspace(*case.property.domain, 49))
        audit.update_many(case.y[self.there], p[self.there], case.x[self.there])
        return audit.swap_multicalibration()

    def scored(self, forecasts: list[Float64Array]) -> LateScore:
        """Loss and swap error beside the model's."""
        model = self.swap(self.case.model)
        losses = [self._loss(each) / self.loss - 1.0 for each in forecasts]
        swaps = [self.swap(each) / model for each in forecasts]
        return LateScore(float(np.mean(losses)), float(np.mean(swaps)), max(losses), max(swaps))

    def played(
        self, hint: OnlineRegression | None, known: Float64Array | None, seeds: int, *, stand_back: bool = True
    ) -> tuple[LateScore, Forecaster]:
        """Our forecasts, with the defaults; and the forecaster of the last seed."""
        case, made = self.case, []
        for seed in range(seeds):
            forecaster = Forecaster(
                case.property, Finite(case.x.shape[1]), seed=seed, hint=hint, outside="clip", stand_back=stand_back
            )
            made.append(forecaster.run(case.x, case.y, case.model, missing="skip", known=known))
        return self.scored(made), forecaster


def refitted(case: LateCase) -> Float64Array:
    """Logistic recalibration of the model, refitted every day on what is known by then."""
    low, high = case.property.domain
    share = np.clip((case.model - low) / (high - low), 1e-6, 1.0 - 1e-6)
    y, odds = (case.y - low) / (high - low), np.log(share / (1.0 - share))
    known = np.where(np.isnan(y), np.inf, case.known)
    weights, result = np.array([0.0, 1.0]), case.model.copy()
    for start in range(0, len(y), case.every):
        seen = np.flatnonzero(known[:start] <= start)
        if len(seen) >= _FEWEST:
            weights = _logistic(odds[seen], y[seen], weights)
        part = slice(start, start + case.every)
        result[part] = low + (high - low) * _sigmoid(weights[0] + weights[1] * odds[part])
    return result


def _sigmoid(z: Float64Array) -> Float64Array:
    half: Float64Array = np.tanh(0.5 * z)
    return 0.5 + 0.5 * half


def _logistic(odds: Float64Array, y: Float64Array, weights: Float64Array) -> Float64Array:
    """Newton's steps from the last weights, held to (0, 1) by a little."""
    columns = np.column_stack([np.ones(len(odds)), odds])
    for _ in range(6):
        p = _sigmoid(columns @ weights)
        curvature = (columns * (p * (1.0 - p))[:, None]).T @ columns + 1e-3 * np.eye(2)
        step = np.linalg.solve(curvature, columns.T @ (y - p) - 1e-3 * (weights - np.array([0.0, 1.0])))
        weights = weights + step
        if np.abs(step).max() < 1e-4:
            break
    return weights

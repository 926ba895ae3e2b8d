"""Intervals: each row's from the rows before it, with coverage and width of every group."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from swapcal.audits.column import Column
from swapcal.audits.scores import Paired
from swapcal.audits.summary import ColumnSummary
from swapcal.errors import DataError
from swapcal.intervals.interval import Interval, interval_score
from swapcal.properties import Quantile
from swapcal.properties.base import Wording
from swapcal.tables.batch import Batch
from swapcal.tasks.checkpoint import Checkpoint
from swapcal.tasks.columns import ColumnReader, known_outcomes
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.evaluation import DELTA, ContextColumns, ContextRows, Evaluation
from swapcal.tasks.result import Guarantee, Section
from swapcal.tasks.task import Inputs, Task, weighted
from swapcal.text.verdict import SCORE, Verdict, interval_verdict
from swapcal.typing import Float64Array


class IntervalColumns(ColumnReader):
    """Reads the columns that a run of intervals uses.

    Parameters
    ----------
    question : TaskConfig
        The outcomes, and their range where that is given.
    model : sequence of str
        None; a forecast, around which intervals are made; lower and upper ends of the model's own intervals, which
        are then corrected, and whose middle counts as the forecast; or lower end, forecast, upper end.

    Attributes
    ----------
    n_outside, n_crossed : int
        Outcomes outside the range so far, and rows whose lower end lies above the upper.
    """

    outside = "such outcomes count as the nearest end"

    def __init__(self, config: TaskConfig, first: Sequence[Batch], source: str) -> None:
        super().__init__(config, source, first)
        model = config.model
        self.model = model
        self.ends = (0, len(model) - 1) if len(model) > 1 else None
        self.n_crossed = 0
        self.low = self.low if config.low is None else config.low
        self.high = self.high if config.high is None else config.high
        self._check(first)

    def _check(self, first: Sequence[Batch]) -> None:
        """Refuse ends that are the wrong way round, and outcomes without numbers."""
        source = self.source
        known = np.concatenate([known_outcomes(self.config, batch) for batch in first])
        rows = f"the first {len(known):,} rows of {source}"
        if np.isnan(known).all():
            raise DataError(f"column {self.config.y!r} has no outcome in {rows}; give another column")
        if self.ends is None:
            return
        lower, upper = (np.concatenate([batch.numbers(self.model[at]) for batch in first]) for at in self.ends)
        hinted, names = ~(np.isnan(lower) | np.isnan(upper)), f"{self.model[0]!r} and {self.model[-1]!r}"
        if not hinted.any():
            raise DataError(f"{rows} have no interval in {names}; check the columns")
        if 2 * np.count_nonzero(lower[hinted] > upper[hinted]) > np.count_nonzero(hinted):
            way = f"name the lower end first: --p {','.join(reversed(self.model))}"
            raise DataError(f"most rows of {source} have the larger number first in {names}; {way}")

    def forecasts(self, batch: Batch) -> tuple[Float64Array | None, dict[str, Float64Array]]:
        """What the intervals of a batch start from, None for nothing; and what else the model says."""
        numbers = [batch.numbers(name) for name in self.model]
        if self.ends is None:
            return (numbers[0], {"before": numbers[0]}) if numbers else (None, {})
        lower, upper = numbers[0], numbers[-1]
        crossed = lower > upper
        if crossed.any() and not self.n_crossed:
            self.warn(batch, crossed, "has its lower end above the upper; such an interval covers nothing")
        self.n_crossed += int(np.count_nonzero(crossed))
        center = numbers[1] if len(numbers) == 3 else lower + (upper - lower) / 2
        return np.column_stack([lower, upper]), {"before": center, "before_lower": lower, "before_upper": upper}

    def learned(self, raw: Float64Array) -> Float64Array:
        """Outcomes, moved into the range where one was given: intervals keep to it."""
        return np.clip(raw, self.low, self.high)


class IntervalTask(Task):
    """A run of intervals around the model's forecast, or of corrections of its own intervals, beside these."""

    doing = "making intervals"
    needs = "an interval needs at least 21 outcomes"
    columns: IntervalColumns
    model: Interval
    evaluation: "IntervalEvaluation"

    @property
    def outputs(self) -> tuple[str, ...]:
        """The model's forecast and its own ends beside the ends that are made."""
        center = ("before",) if self.columns.model else ()
        own = ("before_lower", "before_upper") if self.columns.ends is not None else ()
        return ("row", *center, *own, "lower", "upper")

    def _reader(self, first: Sequence[Batch]) -> IntervalColumns:
        return IntervalColumns(self.config, first, self.source)

    def _settle(self, first: Sequence[Batch], saved: Checkpoint | None) -> None:
        config, groups = self.config, self.contexts.groups
        coverage = config.interval or 0.0
        if saved is not None:
            self.model = Interval.from_bytes(saved.forecaster, hypotheses=groups)
        else:
            settings: dict[str, Any] = {"horizon": config.horizon, "seed": config.seed, "learn": config.learns}
            settings |= config.given("max_pending", "protect", "budget")
            self.model = Interval(coverage, groups, low=config.low, high=config.high, **settings)
        self.evaluation = IntervalEvaluation(self.contexts, coverage, hinted=self.columns.ends is not None)

    def _read(self, batch: Batch) -> Inputs:
        return Inputs(batch.rows, self.columns.labels(batch), *self.columns.forecasts(batch))

    def play(self, inputs: Inputs) -> Float64Array:
        """Forecast rows, learn from them, and score them."""
        rows = weighted(inputs.rows.groups, inputs.weights)
        settings: dict[str, Any] = {"waits": inputs.waits, "order": self.config.order, **inputs.more}
        return self.scored(inputs, self.model.run(rows, inputs.y, inputs.hints, **settings))

    def scored(self, inputs: Inputs, forecasts: Float64Array) -> Float64Array:
        """Count rows with an outcome and both ends, and show no other ends."""
        return super().scored(inputs, _whole(forecasts))

    def own(self, inputs: Inputs) -> Float64Array | None:
        """The ends of the model's intervals."""
        return None if self.columns.ends is None else inputs.hints

    def output(self, inputs: Inputs, forecasts: Float64Array) -> dict[str, Any]:
        """The columns of the output but the first."""
        return {**inputs.own, "lower": forecasts[:, 0], "upper": forecasts[:, 1]}

    @property
    def target(self) -> Quantile:
        """A quantile at the level of the coverage, as which it is audited."""
        return Quantile(self.evaluation.coverage)

    def _sections(self) -> tuple[Section, ...]:
        return (self.evaluation.section(),)

    def _counts(self) -> dict[str, int]:
        moved = {"outcomes_outside": self.columns.n_outside, "crossed": self.columns.n_crossed}
        return {"without_interval": self.evaluation.n_early, **moved}

    def _verdict(self, sections: tuple[Section, ...], paired: dict[str, Paired]) -> Verdict:
        return interval_verdict(sections[0], self._wording, paired.get(SCORE), self.evaluation.n_changed)

    def _guarantee(self) -> Guarantee | None:
        """Of the rows that count here: those with an infinite end, which cover as promised, are left out."""
        return None if self.config.by else Guarantee(self.model.miscoverage(DELTA) + self.evaluation.n_early)

    @property
    def _wording(self) -> Wording:
        return replace(self.target.wording, loss=SCORE)

    def _facts(self) -> dict[str, Any]:
        return {"wording": self._wording}


def _whole(ends: Float64Array) -> Float64Array:
    """Intervals with both ends; those with an infinite one are missing."""
    whole: Float64Array = np.where(np.isfinite(ends).all(axis=1, keepdims=True), ends, np.nan)
    return whole


_INSIDE, _OUTSIDE, _EDGE = 0.0, 1.0, 0.5


class IntervalEvaluation(Evaluation):
    """The intervals of the model and of swapcal, each as a column, and their scores in pairs.

    Whether an outcome is inside its interval is the question whether a number, 0 inside and 1 outside, lies at or below
    1/2: the audit of a quantile at the level `coverage`, whose bias is the coverage beyond what was asked for.

    Parameters
    ----------
    audience : ContextColumns
        For whom.
    coverage : float
        The share of outcomes that was to be covered.
    hinted : bool
        Whether the model has intervals of its own.
    """

    def __init__(self, audience: ContextColumns, coverage: float, *, hinted: bool) -> None:
        self.coverage = coverage
        options: dict[str, Any] = {"first": np.array([_INSIDE, _OUTSIDE]), "means": ("width", "score")}
        labels = {**({"before": "the model"} if hinted else {}), "after": "swapcal"}
        target = Quantile(coverage)
        sides = {which: {"": audience.column(target, None, label, 2, **options)} for which, label in labels.items()}
        super().__init__(sides, (SCORE,))

    def score(
        self, columns: Mapping[str, Column], y: Any, p: Any, rows: ContextRows, weights: Any, **more: Any
    ) -> tuple[Float64Array, ...]:
        """Add rows to a column, nothing missing; their interval scores."""
        lower, upper = p.T
        scores = interval_score(y, lower, upper, self.coverage)
        shown = np.where((lower <= y) & (y <= upper), _INSIDE, _OUTSIDE)
        edges, numbers = np.full(len(y), _EDGE), (upper - lower, scores)
        columns[""].add(shown, edges, rows.groups, weights=weights, numbers=numbers, **more)
        return (scores,)

    def summary(self, column: Column) -> ColumnSummary:
        """The audit of coverage, with the mean interval score as the loss."""
        assert column.means is not None
        score = float(column.means.of("score")[0])
        return replace(column.summary(), loss=score, constant_loss=None, ideal_loss=None, slope=None, constant=None)

"""One number a row: every row is forecast from the rows before it, and the result is compared with the model's own."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from swapcal.decisions import lost, saved
from swapcal.errors import DataError
from swapcal.forecaster import Forecaster
from swapcal.hypotheses.numeric import Numeric
from swapcal.protocols import Hypotheses, Rows
from swapcal.tables.batch import Batch
from swapcal.tasks.checkpoint import Checkpoint
from swapcal.tasks.columns import Columns
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.evaluation import DELTA, ContextColumns, ContextRows, Evaluation
from swapcal.tasks.result import Costs, Counts, Guarantee, Range, Result, Section, versions
from swapcal.tasks.survey import Binning, binning
from swapcal.tasks.task import Inputs, Task, numbers_of, weighted
from swapcal.text.numbers import guarantee_sentence
from swapcal.text.sentences import late_sentences
from swapcal.text.verdict import verdict
from swapcal.typing import Float64Array


class ScalarTask(Task):
    """A run of one number a row: a `Forecaster`, guided by the model's forecast or one that is learned."""

    doing = "forecasting"
    columns: Columns
    model: Forecaster
    evaluation: Evaluation

    @property
    def outputs(self) -> tuple[str, ...]:
        """The model's forecast beside swapcal's."""
        return ("row", "forecast") if self.config.p is None else ("row", "before", "forecast")

    def _reader(self, first: Sequence[Batch]) -> Columns:
        return Columns(self.config, first, self.source)

    def _settle(self, first: Sequence[Batch], saved: Checkpoint | None) -> None:
        config, columns = self.config, self.columns
        labels, hints = self._first(first, "labels"), None if config.p is None else self._first(first, "hints")
        hinted = None if hints is None else hints[~np.isnan(hints)]
        self.jitter = columns.spacing if config.jitter is None else config.jitter
        if self.jitter == 0.0:
            columns.warn_of_heaps()
        self.binning = None if hinted is None else self._binning(hinted)
        self.model = self._forecaster(saved)
        known = labels[~np.isnan(labels)]
        self.evaluation = Evaluation(
            columns.property, self.contexts, self.binning, known, config.r, hinted, config.costs, late=config.late
        )

    def _resume(self, saved: Checkpoint) -> None:
        super()._resume(saved)
        if self.waiting is not None and not np.array_equal(self.waiting.waiting, self.model.state.waiting.blank):
            raise ValueError("the rows that wait for their outcomes are not those of the forecaster")

    def _read(self, batch: Batch) -> Inputs:
        y = self.columns.labels(batch)
        return Inputs(numbers_of(batch), y, None if self.config.p is None else self.columns.hints(batch))

    def more(self, batch: Batch, inputs: Inputs) -> dict[str, Float64Array]:
        """What else the model takes of the rows of a batch, by name."""
        return {} if self.features is None else {"features": _dense(self.features, batch)}

    def play(self, inputs: Inputs) -> Float64Array:
        """Forecast rows, learn from them, and score them."""
        forecasts = np.empty(len(inputs.y))
        for part in self.evaluation.parts(~np.isnan(inputs.y)):
            some = inputs.part(part)
            # The forecaster's class is the linear one where there is one, and else the groups.
            rows = some.rows.groups if some.rows.linear is None else some.rows.linear
            forecasts[part] = self.model.run(
                weighted(rows, some.weights),
                some.y,
                some.hints,
                missing="skip",
                waits=some.waits,
                order=self.config.order,
                **some.more,
            )
            self.score(some, forecasts[part])
        return forecasts

    def score(self, inputs: Inputs, forecasts: Float64Array) -> None:
        """Count rows that have an outcome."""
        self.evaluation.add(inputs.y, inputs.hints, forecasts, inputs.rows, inputs.weights)
        self.evaluation.note(self.model)

    def output(self, inputs: Inputs, forecasts: Float64Array) -> dict[str, Any]:
        """The columns of the output but the first."""
        return {**({} if inputs.hints is None else {"before": inputs.hints}), "forecast": forecasts}

    def _unhinted(self, inputs: Inputs) -> int:
        return 0 if inputs.hints is None else int(np.count_nonzero(np.isnan(inputs.hints) & ~np.isnan(inputs.y)))

    _unhinted_late = _unhinted

    def _as_held(self, inputs: Inputs) -> Inputs:
        if self.contexts.numeric is None:
            return inputs
        held, n = self.model.state.waiting, len(inputs.y)
        linear = held.contexts(held.find(inputs.numbers), self.model.hypotheses.n)
        linear = linear if inputs.weights is None else weighted(linear, 1.0 / inputs.weights)
        everybody = Rows(np.arange(n + 1), np.zeros(n, dtype=np.int64), np.ones(n))
        return inputs._replace(contexts=ContextRows(everybody, linear))

    def result(self, asked: TaskConfig, time: str | None) -> Result:
        """What the run has found."""
        return _result(self, asked, time)

    def _plain(self) -> dict[str, Any]:
        return {"features": None if self.features is None else self.features.spec()}

    def _binning(self, hints: Float64Array) -> Binning:
        if not len(hints):
            raise DataError(
                f"the hint {self.config.p!r} is missing in all of the first {self.settled:,} rows of "
                f"{self.source}; check the column"
            )
        return binning(self.columns.property, hints, None)

    def _contexts(self, first: Sequence[Batch], saved: Checkpoint | None) -> ContextColumns:
        config, self.features = self.config, None
        if config.linear and config.learns:
            self.features = Numeric(config.linear)
            if saved is not None:
                self.features = self.features.resumed(saved.plain["features"])
            config = replace(config, linear=())
        if saved is not None:
            return ContextColumns.resumed(config, saved.plain["audience"])
        return ContextColumns.fitted(config, first).with_room(config)

    def _forecaster(self, saved: Checkpoint | None) -> Forecaster:
        config, numeric = self.config, self.contexts.numeric
        hypotheses: Hypotheses = self.contexts.groups if numeric is None else numeric
        if saved is not None:
            # A property or hint of the user's own is not in the file.
            return Forecaster.from_bytes(saved.forecaster, property=self.columns.property, hypotheses=hypotheses)
        n_features = 0 if self.features is None else len(self.features.columns)
        return config.forecaster(self.columns.property, hypotheses, n_features, jitter=self.jitter)


def _dense(features: Numeric, batch: Batch) -> Float64Array:
    """The columns as a learning hint takes them: standardized, the mean where one is missing."""
    rows = features.rows(batch, batch.n)
    dense = np.zeros((batch.n, features.n))
    dense[np.repeat(np.arange(batch.n), np.diff(rows.indptr)), rows.indices] = rows.values
    standardized: Float64Array = dense[:, 1:] / dense[0, 0]
    return standardized


def _binning(current: ScalarTask) -> str:
    """What was taken together, in words."""
    stated = "" if current.binning is None else current.binning.stated
    if not current.config.late:
        return stated
    return f"{stated}, the model's and swapcal's alike, as swapcal may show the model's own"


def _result(current: ScalarTask, asked: TaskConfig, time: str | None) -> Result:
    comparison, values, question, source = current.evaluation, current.columns, current.config, current.source
    if not comparison.after.weight > 0:
        raise DataError(
            f"{source} has no row with an outcome in {question.y!r}"
            + ("" if question.weight is None else f" and a weight above 0 in {question.weight!r}")
            + "; forecasts can be made, but nothing can be learned or scored"
        )
    before = None
    if comparison.before is not None and comparison.before.weight > 0:
        before = comparison.before.summary(question.r)
    after = comparison.after.summary(question.r)
    lateness = current.model.lateness()
    paired, history = comparison.losses.paired(), comparison.history(current.model)
    wording, why_not = values.property.wording, _no_guarantee(question.weight, current.jitter)
    outcome = verdict(before, after, wording=wording, r=question.r, paired=paired)
    outcome = replace(outcome, sentences=(*outcome.sentences, *late_sentences(question.late, lateness, time)))
    section = Section(
        title="",
        before=before,
        after=after,
        groups=comparison.after.names,
        binning="" if current.binning is None else _binning(current),
        history=replace(history, guarantee=None) if why_not else history,
    )
    rules, groups = current.model.rules, current.contexts.groups
    return Result(
        kind="run",
        task="scalar",
        source=source,
        y=question.y,
        property=repr(values.property),
        wording=wording,
        counts=Counts(
            scored=comparison.after.n_rounds,
            rows=current.n_rows,
            without_outcome=current.n_missing,
            without_hint=current.n_unhinted,
            outcomes_outside=values.n_clipped,
            forecasts_outside=values.n_clipped_forecasts,
            weights_outside=values.n_clipped_weights,
        ),
        verdict=outcome,
        sections=(section,),
        config=replace(
            asked,
            horizon=rules.horizon,
            seed=rules.seed,
            trust=rules.trust,
            bins=len(current.model.values),
            limit=groups.limit,
        ),
        versions=versions(),
        r=question.r,
        range=Range(values.low, values.high, values.stated),
        bands={column: tuple(edges) for column, edges in groups.edges.items()},
        lateness=lateness,
        guarantee=Guarantee(None, why_not)
        if why_not
        else Guarantee(float(current.model.guarantee(DELTA)), guarantee_sentence(DELTA)),
        seed=rules.seed,
        jitter=current.jitter,
        paired={} if paired is None else {wording.loss: paired},
        costs=_costs(comparison, question.costs),
    )


def _costs(comparison: Evaluation, costs: str | None) -> Costs | None:
    """What those who act on the forecasts lose, as a sentence and as numbers."""
    if costs is None:
        return None
    before, after = comparison.acted["before"], comparison.acted["after"]
    if not before.weight > 0.0:
        return Costs(lost(after, costs))
    return Costs(saved(before, after, costs), before.mean_loss, after.mean_loss)


def _no_guarantee(weight: str | None, jitter: float) -> str:
    """Why the errors of a run have no guarantee, as a sentence; empty where they have one."""
    if weight is not None:
        return f"none is stated: it is about rows counted once each, and here they are weighted by {weight!r}"
    if jitter:
        return (
            f"none is stated: it is about outcomes spread over {jitter:g}, as --jitter does, and the errors are about "
            "those in the file"
        )
    return ""

"""One number a row: every row is forecast from the rows before it, and the result is compared with the model's own."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from swapcal.audits.scores import Paired, fine_edges
from swapcal.decisions import lost, saved
from swapcal.errors import DataError
from swapcal.forecaster import Forecaster
from swapcal.hypotheses.numeric import Numeric
from swapcal.protocols import Elicitable, Hypotheses, Rows
from swapcal.tables.batch import Batch
from swapcal.tasks.against import Against
from swapcal.tasks.checkpoint import Checkpoint
from swapcal.tasks.columns import Columns
from swapcal.tasks.evaluation import (
    DELTA,
    TOLD,
    Binning,
    ContextColumns,
    ContextRows,
    Evaluation,
    binning,
    binning_by_outcomes,
)
from swapcal.tasks.result import Costs, Guarantee, Range, Section
from swapcal.tasks.task import Inputs, Task, weighted
from swapcal.text.numbers import guarantee_sentence
from swapcal.text.verdict import Verdict, verdict
from swapcal.typing import Float64Array


class ScalarTask(Task):
    """A run of one number a row: a `Forecaster`, guided by the model's forecast or one that is learned."""

    doing = "forecasting"
    columns: Columns
    model: Forecaster
    evaluation: "ScalarEvaluation"

    @property
    def outputs(self) -> tuple[str, ...]:
        """The model's forecast beside swapcal's."""
        return ("row", "forecast") if self.config.p is None else ("row", "before", "forecast")

    def _reader(self, first: Sequence[Batch]) -> Columns:
        return Columns(self.config, first, self.source)

    def _settle(self, first: Sequence[Batch], saved: Checkpoint | None) -> None:
        config, columns = self.config, self.columns
        labels, hints = self._first(first, "labels"), None if config.p is None else self._first(first, "hints")
        hinted = None if hints is None else np.clip(hints[~np.isnan(hints)], *columns.property.domain)
        self.jitter = columns.spacing if config.jitter is None else config.jitter
        if self.jitter == 0.0:
            columns.warn_of_heaps()
        known = labels[~np.isnan(labels)]
        before = None if hinted is None else self._binning(hinted)
        # What is shown is a share of a correction, and on no grid.
        shares, after = config.protect != "nothing", before
        if shares and before is None and config.learns:
            after = binning_by_outcomes(columns.property, known)
        self.stated = "" if after is None else after.stated
        if shares and before is not None:
            self.stated += ", the model's and swapcal's alike"
        self.model = self._forecaster(saved)
        self.evaluation = ScalarEvaluation(
            columns.property, self.contexts, before, after if shares else None, known, config.r, hinted, config.costs
        )

    def _resume(self, saved: Checkpoint) -> None:
        super()._resume(saved)
        if self.waiting is not None and not np.array_equal(self.waiting.waiting, self.model.state.waiting.blank):
            raise ValueError("the rows that wait for their outcomes are not those of the forecaster")

    def _read(self, batch: Batch) -> Inputs:
        y = self.columns.labels(batch)
        return Inputs(batch.rows, y, None if self.config.p is None else self.columns.hints(batch))

    def more(self, batch: Batch, inputs: Inputs) -> dict[str, Float64Array]:
        """What else the model takes of the rows of a batch, by name."""
        return {} if self.features is None else {"features": _dense(self.features, batch)}

    def play(self, inputs: Inputs) -> Float64Array:
        """Forecast rows, learn from them, and score them."""
        forecasts = np.empty(len(inputs.y))
        for part in self.evaluation.parts(~np.isnan(inputs.y)):
            some = inputs.part(part)
            # The forecaster's class is its own or the linear one where there is one, and else the groups.
            rows = next(one for one in reversed(some.rows) if one is not None)
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
        """Count rows that have an outcome, and note the errors where that is due."""
        super().score(inputs, forecasts)
        self.evaluation.note(self._bound)

    def keep_rows(self) -> None:
        """Remember the rows, which are all of the run, for what practitioners do instead."""
        if self.config.p is not None and self.config.by is None:
            self.against = Against(self.target, self.config.against)

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

    @property
    def target(self) -> Elicitable:
        """What is asked about, on the range that was settled."""
        return self.columns.property

    @property
    def seed(self) -> int:
        """Of the draws."""
        return self.model.rules.seed

    def _bound(self) -> float:
        return self.model.guarantee(DELTA).worst

    def _sections(self) -> tuple[Section, ...]:
        history = self.evaluation.history(self._bound)
        if self._no_guarantee():
            history = replace(history, guarantee=None)
        return (self.evaluation.section(binning=self.stated, history=history),)

    def _counts(self) -> dict[str, int]:
        columns = self.columns
        moved = {"outcomes": columns.n_outside, "forecasts": columns.n_forecasts_outside}
        moved["weights"] = columns.n_clipped_weights
        return {f"{name}_outside": n for name, n in moved.items()}

    def _verdict(self, sections: tuple[Section, ...], paired: dict[str, Paired]) -> Verdict:
        (one,), words = sections, self.target.wording
        return verdict(
            one.before, one.after, wording=words, paired=paired.get(words.loss), changed=self.evaluation.n_changed
        )

    def _guarantee(self) -> Guarantee:
        why_not = self._no_guarantee()
        return Guarantee(None, why_not) if why_not else Guarantee(self._bound(), guarantee_sentence(DELTA))

    def _no_guarantee(self) -> str:
        """Why the errors of a run have no guarantee, as a sentence; empty where they have one."""
        if self.config.weight is not None:
            weight = self.config.weight
            return f"none is stated: it is about rows counted once each, and here they are weighted by {weight!r}"
        if self.model.property != self.target:
            return "none is stated: the range has followed the outcomes, and the errors are in units of the first one"
        spread = f"outcomes spread over {self.jitter:g}, as --jitter does, and the errors are about those in the file"
        return f"none is stated: it is about {spread}" if self.jitter else ""

    def _settings(self) -> dict[str, Any]:
        rules = self.model.rules
        settings = {"horizon": rules.horizon, "seed": rules.seed, "trust": rules.trust}
        return {
            **settings,
            "bins": len(self.model.values),
            "limit": getattr(self.contexts.groups, "limit", self.config.limit),
        }

    def _facts(self) -> dict[str, Any]:
        columns, costs = self.columns, self.evaluation.costs(self.config.costs)
        now = self.model.property
        grown = (
            "" if (now.low, now.high) == (columns.low, columns.high) else f", followed to {now.low:g} to {now.high:g}"
        )
        facts = {"range": Range(columns.low, columns.high, columns.stated + grown)}
        against, stretches = ({}, {}) if self.against is None else self.against.compared()
        return {**facts, "jitter": self.jitter, "costs": costs, "against": against, "stretches": stretches}

    def _plain(self) -> dict[str, Any]:
        return {"features": None if self.features is None else self.features.spec()}

    def _binning(self, hints: Float64Array) -> Binning:
        if not len(hints):
            rows = f"all of the first {self.settled:,} rows of {self.source}"
            raise DataError(f"the hint {self.config.p!r} is missing in {rows}; check the column")
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
        if config.learner is not None:
            hypotheses = self.contexts.own = config.with_learner(self.contexts.groups)
            self.contexts.told = frozenset(name for name in (config.y, config.known) if name)
        if saved is not None:
            # A property or hint of the user's own is not in the file; one on a range that was found is.
            target = None if self.columns.found else self.columns.property
            return Forecaster.from_bytes(saved.forecaster, property=target, hypotheses=hypotheses)
        n_features = 0 if self.features is None else len(self.features.columns)
        found = self.columns.found
        return config.forecaster(self.columns.property, hypotheses, n_features, found, jitter=self.jitter)


def _dense(features: Numeric, batch: Batch) -> Float64Array:
    """The columns as a learning hint takes them: standardized, the mean where one is missing."""
    rows = features.rows(batch, batch.n)
    dense = np.zeros((batch.n, features.n))
    dense[rows.numbers, rows.indices] = rows.values
    standardized: Float64Array = dense[:, 1:] / dense[0, 0]
    return standardized


# Fine bins of forecasts that are on a grid, for AUC.
N_EVEN = 2000


class ScalarEvaluation(Evaluation):
    """One number a row: swapcal's forecasts and, with a hint, the hint's own.

    Parameters
    ----------
    property : Elicitable
        What is forecast.
    audience : ContextColumns
        For whom.
    before, after : Binning, optional
        How the hint's forecasts are taken together, None without a hint; and those of swapcal, None where they are on a
        grid already.
    first : array
        The first outcomes, which settle the bins of the outcomes' histograms.
    r : float
        Power of the error.
    hints : array, optional
        The first forecasts of the hint, none missing, from which fine bins for AUC are made.
    costs : str, optional
        Of those who act on the forecasts, as `Decisions.parsed` takes them.
    """

    def __init__(
        self,
        property: Elicitable,
        audience: ContextColumns,
        before: Binning | None,
        after: Binning | None,
        first: Float64Array,
        r: float = 2.0,
        hints: Float64Array | None = None,
        costs: str | None = None,
    ) -> None:
        even = np.linspace(*property.domain, N_EVEN + 1)[1:-1]
        bins = after if before is None else before
        shown = 20 if bins is None else bins.shown
        ours: dict[str, Any] = {"first": first, "fine": even, "means": TOLD, "adaptive": True}
        sides = {"after": {"": audience.column(property, after, "swapcal", shown, **ours)}}
        if before is not None:
            fine = even if hints is None else fine_edges(hints)
            model = audience.column(property, before, "the model", shown, first=first, fine=fine, means=TOLD)
            sides = {"before": {"": model}, **sides}
        super().__init__(sides, (property.wording.loss,), r, costs)

    def costs(self, costs: str | None) -> Costs | None:
        """What those who act on the forecasts lose, as a sentence and as numbers."""
        if costs is None:
            return None
        before, after = self.acted.get("before"), self.acted["after"]
        if before is None or not before.weight > 0.0:
            return Costs(lost(after, costs))
        return Costs(saved(before, after, costs), before.mean_loss, after.mean_loss)

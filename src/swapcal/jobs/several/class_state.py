"""A run of classes between two batches; it can be saved, and resumed later."""

import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from swapcal.audit.named_parts import joined
from swapcal.audit.paired import PairedLosses
from swapcal.classes.probabilities import Classes
from swapcal.errors import StateFileError
from swapcal.hints import OnlineRegression
from swapcal.jobs.binning import Binning, binning
from swapcal.jobs.checkpoint import Checkpoint
from swapcal.jobs.fingerprint import Fingerprint
from swapcal.jobs.rowcuts import taken
from swapcal.jobs.several.class_columns import MISSING, STRANGE, ClassColumns
from swapcal.jobs.several.class_side import ClassSide
from swapcal.jobs.several.seen_rows import SeenRows, resume
from swapcal.properties import Probability
from swapcal.roles import Row, Rows
from swapcal.tables.batch import Batch
from swapcal.typing import Float64Array, IntArray

__all__ = ["ClassState"]


class ClassState:
    """Everything that changes as rows go by.

    Parameters
    ----------
    columns : ClassColumns
        What is read.
    first : sequence of Batch
        The first rows of the source.
    source : str
        What messages call it.
    horizon, seed
        As for `Classes`.
    learn : bool
        Put a model that learns between the hints and the engine, for each class.
    saved : Checkpoint, optional
        Go on from there.
    """

    def __init__(
        self,
        columns: ClassColumns,
        first: Sequence[Batch],
        source: str,
        *,
        horizon: int | None = None,
        seed: int | None = None,
        learn: bool = True,
        saved: Checkpoint | None = None,
    ) -> None:
        self.columns = columns
        self.seen = SeenRows(columns.question, columns.names, first, source, saved)
        columns.settle(first, self.seen.settled, source)
        groups, n = self.seen.audience.groups, len(columns.classes)
        if saved is None:
            hint = OnlineRegression() if learn else None
            self.forecaster = Classes(n, groups, horizon=horizon, seed=seed, hint=hint)
        else:
            self.forecaster = Classes.load(io.BytesIO(saved.forecaster))
            if self.forecaster.n_classes != n or saved.plain["classes"] != list(columns.classes):
                raise StateFileError(
                    f"the state file is about the classes {saved.plain['classes']}, and those of {source} are "
                    f"{list(columns.classes)}; give the file it was made with, another --state, or --fresh"
                )
        binnings = self._binnings(first)
        self.after = ClassSide(self.seen.audience, binnings, "swapcal")
        self.before = ClassSide(self.seen.audience, binnings, "the model") if columns.model else None
        self.brier, self.log = PairedLosses(), PairedLosses()
        self.n_missing = self.n_unhinted = 0
        columns.n_strange = columns.n_rescaled = 0
        if saved is not None:
            resume(self._kept(), saved.arrays, groups.n)

    @property
    def n_rows(self) -> int:
        """Rows that are done."""
        return self.seen.n_rows

    @property
    def fingerprint(self) -> Fingerprint:
        """Of these rows."""
        return self.seen.fingerprint

    @property
    def output(self) -> tuple[str, ...]:
        """Names of the columns of the output."""
        return ("row", *(f"p_{name}" for name in self.columns.classes), "top", "confidence")

    def advance(self, batch: Batch) -> dict[str, Any]:
        """Forecast the rows of a batch and learn from them; the columns of the output."""
        labels, hints = self._count(batch)
        rows = self.seen.audience.rows(batch).groups
        probabilities, top, sure = self._played(labels, hints, rows)
        self._score(labels, hints, probabilities, top, sure, rows)
        numbers = np.arange(batch.first + 1, batch.first + batch.n + 1)
        columns = {f"p_{name}": probabilities[:, k] for k, name in enumerate(self.columns.classes)}
        named = np.array(self.columns.classes, dtype=object)[top]
        return {"row": numbers, **columns, "top": named, "confidence": sure}

    def pass_over(self, batch: Batch) -> None:
        """Count rows that are done."""
        self._count(batch)

    def save(
        self, asked: dict[str, Any], out: str | None, output: dict[str, Any] | None, *, finished: bool
    ) -> Checkpoint:
        """All that it takes to go on."""
        stream = io.BytesIO()
        self.forecaster.save(stream)
        return Checkpoint(
            asked=asked,
            rows=self.n_rows,
            digest=self.fingerprint.value(),
            out=out,
            output=output,
            finished=finished,
            plain={**self.seen.plain(), "classes": list(self.columns.classes)},
            forecaster=stream.getvalue(),
            arrays=joined(self._kept()),
        )

    def _count(self, batch: Batch) -> tuple[IntArray, Float64Array | None]:
        source = self.seen.source
        labels, hints = self.columns.labels(batch, source), self.columns.probabilities(batch, source)
        self.seen.add(batch)
        self.n_missing += int(np.count_nonzero(labels == MISSING))
        if hints is not None:
            self.n_unhinted += int(np.count_nonzero(np.isnan(hints).any(axis=1)))
        return labels, hints

    def _played(
        self, labels: IntArray, hints: Float64Array | None, rows: Rows
    ) -> tuple[Float64Array, IntArray, Float64Array]:
        """Probabilities of every row, the likeliest class, and how sure that is."""
        n, indptr = len(labels), rows.indptr.tolist()
        probabilities = np.empty((n, len(self.columns.classes)))
        top, sure = np.empty(n, dtype=np.int64), np.empty(n)
        for t, label in enumerate(labels.tolist()):
            inside = slice(indptr[t], indptr[t + 1])
            given = None if hints is None or np.isnan(hints[t]).any() else hints[t]
            forecast = self.forecaster.predict(Row(rows.indices[inside], rows.values[inside]), given)
            probabilities[t], top[t], sure[t] = forecast.probabilities, forecast.top, forecast.confidence
            if label > MISSING:
                self.forecaster.update(forecast, label)
            else:
                self.forecaster.forget(forecast)  # or it would wait for ever, as for an outcome that is late
        return probabilities, top, sure

    def _score(
        self,
        labels: IntArray,
        hints: Float64Array | None,
        probabilities: Float64Array,
        top: IntArray,
        sure: Float64Array,
        rows: Rows,
    ) -> None:
        known = (labels != MISSING) & (labels != STRANGE)
        at = np.flatnonzero(known)
        after = self.after.add(labels[at], probabilities[at], top[at], sure[at], taken(rows, at))
        if self.before is None or hints is None:
            return
        hinted = ~np.isnan(hints[at]).any(axis=1)
        own = at[hinted]
        likeliest = np.argmax(hints[own], axis=1)
        before = self.before.add(labels[own], hints[own], likeliest, hints[own].max(axis=1), taken(rows, own))
        self.brier.add(before.brier, after.brier[hinted])
        self.log.add(before.log, after.log[hinted])

    def _binnings(self, first: Sequence[Batch]) -> list[Binning]:
        """Of each class, and last of the likeliest: after the model's first probabilities, or even ones."""
        even = np.linspace(0.0, 1.0, 1001)
        samples = [even] * (len(self.columns.classes) + 1)
        if self.columns.model:
            parts = [self.columns.probabilities(batch, self.seen.source) for batch in first]
            given = np.concatenate([part for part in parts if part is not None])[: self.seen.settled]
            given = given[~np.isnan(given).any(axis=1)]
            if len(given):
                samples = [*given.T, given.max(axis=1)]
        return [binning(Probability(), np.clip(each, 0.0, 1.0), None) for each in samples]

    def _kept(self) -> dict[str, ClassSide | PairedLosses]:
        before: dict[str, Any] = {} if self.before is None else {"before": self.before}
        return {"after": self.after, **before, "brier.losses": self.brier, "log.losses": self.log}

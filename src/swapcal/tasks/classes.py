"""From records to probabilities of classes: each row's from the rows before it, audited class by class."""

import io
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from swapcal.audits.column import Column
from swapcal.audits.scores import GroupMeans, PairedLosses
from swapcal.audits.summary import ColumnSummary
from swapcal.classes import Classes
from swapcal.errors import DataError, StateFileError
from swapcal.hints import OnlineRegression
from swapcal.properties import Probability
from swapcal.protocols import Row, Rows
from swapcal.sparse import taken
from swapcal.state import joined, take_over
from swapcal.tables.batch import Batch
from swapcal.tasks.checkpoint import Checkpoint, Fingerprint, Path_, claim
from swapcal.tasks.columns import MISSING, STRANGE, ClassColumns
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.contexts import ContextColumns
from swapcal.tasks.evaluation import DELTA
from swapcal.tasks.result import TOP, ClassResult, Result, versions
from swapcal.tasks.runner import Progress, run_batches, settings_of
from swapcal.tasks.survey import Binning, binning
from swapcal.text.property_words import loss_name
from swapcal.text.verdict import class_verdict, verdict
from swapcal.typing import Float64Array, IntArray

# --------
# Probabilities of one origin, the model's or swapcal's: an audit of each class, and one of the likeliest class.

N_FINE = 500
_TINY = 1e-12
"""A class that came up is taken to have had at least this probability, so that the log loss is a number."""


class ClassLosses(NamedTuple):
    """Of each row: the Brier score over all classes, and the log loss."""

    brier: Float64Array
    log: Float64Array


class ClassSide:
    """What is counted of probabilities of classes.

    Parameters
    ----------
    audience : Audience
        For whom.
    binnings : sequence of Binning
        How the probabilities of each class are taken together, and last those of the likeliest.
    label : str
        Whose probabilities they are.
    """

    def __init__(self, audience: ContextColumns, binnings: list[Binning], label: str) -> None:
        fine = np.linspace(0.0, 1.0, N_FINE + 1)[1:-1]
        names = [() for _ in binnings[1:]] + [("right", "confidence", "brier", "log_loss")]
        columns = [
            audience.column(Probability(), each, label, each.shown, first=np.array([0.0, 1.0]), fine=fine, means=means)
            for each, means in zip(binnings, names, strict=True)
        ]
        self.classes: list[Column] = columns[:-1]
        self.top: Column = columns[-1]

    def add(
        self, labels: IntArray, probabilities: Float64Array, top: IntArray, sure: Float64Array, rows: Rows
    ) -> ClassLosses:
        """Add rows, nothing missing: their class, the probabilities, the likeliest class and its probability."""
        came = np.zeros_like(probabilities)
        came[np.arange(len(labels)), labels] = 1.0
        for k, column in enumerate(self.classes):
            column.add(came[:, k], np.clip(probabilities[:, k], 0.0, 1.0), rows)
        right = (labels == top).astype(np.float64)
        brier: Float64Array = ((probabilities - came) ** 2).sum(axis=1)
        given = probabilities[np.arange(len(labels)), labels]
        losses = ClassLosses(brier, -np.log(np.maximum(given, _TINY)))
        self.top.add(right, np.clip(sure, 0.0, 1.0), rows, numbers=(right, sure, *losses))
        return losses

    @property
    def means(self) -> GroupMeans:
        """How often the likeliest class was right, its probability, and losses of groups."""
        assert self.top.means is not None
        return self.top.means

    def arrays(self) -> dict[str, Float64Array]:
        """The whole state."""
        return joined(self._columns())

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Go on from what `arrays` held."""
        take_over(self._columns(), arrays)

    def _columns(self) -> dict[str, Column]:
        return {"top": self.top, **{f"class{k}": column for k, column in enumerate(self.classes)}}


# --------
# A run of classes between two batches; it can be saved, and resumed later.


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
        self.seen = Progress(columns.question, columns.names, first, source, saved)
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
            take_over(self._kept(), saved.arrays)

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


def run_classes(
    source: Any,
    question: TaskConfig,
    *,
    model: Sequence[str] = (),
    learn: bool = True,
    out: Path_ | None = None,
    state: Path_ | None = None,
    horizon: int | None = None,
    seed: int | None = None,
    fresh: bool = False,
    overwrite: bool = False,
    progress: Callable[[int], None] | None = None,
    stop: Callable[[], bool] | None = None,
    say: Callable[[str], None] | None = None,
) -> ClassResult:
    """Probabilities of classes for a table as a stream, calibrated in every group, beside the model's own.

    Parameters
    ----------
    source : Records or anything that `records.read` takes
        The table.
    question : Question
        The column whose values are the classes, and the groups; its property is not looked at.
    model : sequence of str
        Columns of the model's probabilities, named after the classes, or "class=column"; see `ClassColumns`. Without
        them, forecasts start from what came up in each group.
    learn : bool
        Put a model that learns between the hints and the engine, for each class.
    horizon, seed
        As for `Classes`.
    out : path, optional
        Of every row: row, p_<class> for each class, top (the likeliest class) and confidence (its probability, which is
        calibrated by itself and need not be p_<top>); .csv, .jsonl or .parquet.
    state, fresh, overwrite, progress, stop, say
        As for `running.run`.

    Returns
    -------
    ClassResult
        The audits of the likeliest class and of each class, for every group.

    Notes
    -----
    Without a model, the classes are the outcomes of the first 10,000 rows. Later outcomes that are no class are counted
    and not learned from. Cost: a forecaster for each class, and one more.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> table = {"y": rng.choice(["a", "b", "c"], 3000, p=[0.6, 0.3, 0.1])}
    >>> table |= {f"p_{name}": np.full(3000, 1 / 3) for name in "abc"}
    >>> found = run_classes(table, TaskConfig("y"), model=["p_a", "p_b", "p_c"], seed=1)
    >>> found.verdict.headline[:34]
    'Use the recalibrated probabilities'
    """
    columns = ClassColumns(question, model)
    asked = {**settings_of(question), "classes": True, "model": list(model), "learn": learn}
    asked |= {"horizon": horizon, "seed": seed}
    with claim(source, columns.names, asked, (), out, state, fresh=fresh, overwrite=overwrite) as (records, files):

        def make(first: list[Batch], expected: int | None, begun: Checkpoint | None) -> ClassState:
            made = ClassState(columns, first, records.name, horizon=expected, seed=seed, learn=learn, saved=begun)
            files.name_columns(made.output)
            return made

        played = run_batches(
            records, question.prefix, make, files, horizon=horizon, progress=progress, stop=stop, say=say
        )
        return _result(records.name, played.run, files.asked)


def _result(source: str, current: ClassState, asked: dict[str, Any]) -> ClassResult:
    columns = current.columns
    if not current.after.top.n_rounds:
        raise DataError(
            f"{source} has no row whose outcome in {columns.question.y!r} is one of the classes; nothing can be scored"
        )
    sides = {"before": current.before, "after": current.after}
    used = {which: side for which, side in sides.items() if side is not None and side.top.n_rounds}
    means = {which: {name: side.means.of(name) for name in side.means.names} for which, side in used.items()}
    bounds = current.forecaster.guarantee(DELTA)
    settings = {
        **asked,
        "class_names": list(columns.classes),
        "seed": current.forecaster.seed,
        "rows": current.n_rows,
        "rows_without_hint": current.n_unhinted,
        "rows_of_no_class": columns.n_strange,
        "rows_divided_by_their_sum": columns.n_rescaled,
        "bands": {name: list(edges) for name, edges in current.seen.audience.groups.edges.items()},
    }

    def audited(name: str, at: int | None, guarantee: float) -> Result:
        found: dict[str, ColumnSummary] = {
            which: (side.top if at is None else side.classes[at]).summary() for which, side in used.items()
        }
        before, after = found.get("before"), found["after"]
        return Result(
            kind="run",
            source=source,
            property=Probability(),
            loss_name=loss_name(Probability()),
            low=0.0,
            high=1.0,
            groups=current.after.top.names,
            n_rounds=current.after.top.n_rounds,
            n_missing=current.n_missing,
            n_clipped=0,
            before=before,
            after=after,
            history=None,
            paired=None,
            verdict=verdict(before, after, property=Probability()),
            guarantee=guarantee,
            settings={**settings, "class": name},
            versions=versions(),
        )

    top = audited(TOP, None, bounds[-1])
    classes = {name: audited(name, k, bounds[k]) for k, name in enumerate(columns.classes)}
    brier, log = current.brier.paired(), current.log.paired()
    shown = {name: (one.before, one.after) for name, one in classes.items()}
    everybody = {which: {name: float(values[0]) for name, values in some.items()} for which, some in means.items()}
    said = class_verdict((top.before, top.after), shown, everybody, brier, log)
    return ClassResult(top, classes, means, brier, log, said, current.n_rows, columns.n_strange)

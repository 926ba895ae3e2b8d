"""From records to intervals: each row's from the rows before it, with coverage and width of every group."""

import io
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import Any

import numpy as np

from swapcal.audits.scores import GroupMeans, PairedLosses
from swapcal.audits.summary import ColumnSummary
from swapcal.errors import DataError
from swapcal.inputs import level
from swapcal.intervals.interval import Interval, interval_score
from swapcal.properties import Quantile
from swapcal.protocols import Row, Rows
from swapcal.sparse import taken
from swapcal.state import joined, take_over
from swapcal.tables.batch import Batch
from swapcal.tasks.checkpoint import Checkpoint, Fingerprint, Path_, claim
from swapcal.tasks.columns import IntervalColumns, IntervalRows
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.contexts import ContextColumns
from swapcal.tasks.evaluation import DELTA
from swapcal.tasks.result import IntervalResult, Result, versions
from swapcal.tasks.runner import Progress, run_batches, settings_of
from swapcal.text.verdict import SCORE, interval_verdict
from swapcal.typing import Float64Array

# --------
# Intervals of one origin, the model's or swapcal's: coverage of every group by an audit, widths and scores beside.

_INSIDE, _OUTSIDE, _EDGE = 0.0, 1.0, 0.5


class IntervalSide:
    """What is counted of intervals.

    Whether an outcome is inside its interval is the question whether a number, 0 inside and 1 outside, lies at or below
    1/2: the audit of a quantile at the level `coverage`, whose bias is the coverage beyond what was asked for.

    Parameters
    ----------
    audience : Audience
        For whom.
    coverage : float
        The share of outcomes that was to be covered.
    label : str
        Whose intervals they are.
    """

    def __init__(self, audience: ContextColumns, coverage: float, label: str) -> None:
        self.coverage = coverage
        first = np.array([_INSIDE, _OUTSIDE])
        self.column = audience.column(Quantile(coverage), None, label, 2, first=first, means=("width", "score"))

    def add(self, y: Float64Array, lower: Float64Array, upper: Float64Array, rows: Rows) -> Float64Array:
        """Add rows, nothing missing; their interval scores."""
        scores = interval_score(y, lower, upper, self.coverage)
        inside = (lower <= y) & (y <= upper)
        numbers = (upper - lower, scores)
        self.column.add(np.where(inside, _INSIDE, _OUTSIDE), np.full(len(y), _EDGE), rows, numbers=numbers)
        return scores

    @property
    def means(self) -> GroupMeans:
        """Widths and scores of groups."""
        assert self.column.means is not None
        return self.column.means

    def summary(self) -> ColumnSummary:
        """The audit of coverage, with the mean interval score as the loss."""
        found = self.column.summary()
        score = float(self.means.of("score")[0])
        return replace(found, loss=score, constant_loss=None, ideal_loss=None, slope=None, constant=None)

    def arrays(self) -> dict[str, Float64Array]:
        """The whole state."""
        return self.column.arrays()

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Go on from what `arrays` held."""
        self.column.restore(arrays)


# --------
# A run of intervals between two batches; it can be saved, and resumed later.

_LEAST, _MOST = 0.02, 50.0
"""Widths of the model count from a fiftieth to fifty times its usual one."""


class IntervalState:
    """Everything that changes as rows go by.

    Parameters
    ----------
    coverage : float
        The share of outcomes to cover.
    columns : IntervalColumns
        What is read.
    first : sequence of Batch
        The first rows of the source.
    source : str
        What messages call it.
    horizon, seed, learn
        As for `Interval`.
    saved : Checkpoint, optional
        Go on from there.

    Notes
    -----
    Where the model has intervals of its own, half of their width, divided by what it would be for a normal distribution
    with standard deviation 1, is the unit of each row: certain and uncertain rows stay apart as the model sees them.
    """

    def __init__(
        self,
        coverage: float,
        columns: IntervalColumns,
        first: Sequence[Batch],
        source: str,
        *,
        horizon: int | None = None,
        seed: int | None = None,
        learn: bool = True,
        saved: Checkpoint | None = None,
    ) -> None:
        self.columns = columns
        question: TaskConfig = columns.question
        self.seen = Progress(question, columns.names, first, source, saved)
        columns.check(first, source)
        self._usual = self._usual_unit(first)
        groups = self.seen.audience.groups
        if saved is None:
            settings: dict[str, Any] = {"horizon": horizon, "seed": seed, "learn": learn}
            spread = None if self._usual is None else 1.0
            self.interval = Interval(coverage, groups, spread=spread, low=question.low, high=question.high, **settings)
        else:
            self.interval = Interval.load(io.BytesIO(saved.forecaster), hypotheses=groups)
        self._deviations = NormalDist().inv_cdf(0.5 + coverage / 2)
        audience = self.seen.audience
        self.after = IntervalSide(audience, coverage, "swapcal")
        self.before = None if columns.ends is None else IntervalSide(audience, coverage, "the model")
        self.losses = PairedLosses()
        self.n_missing = self.n_early = self.n_unhinted = 0
        if saved is not None:
            take_over(self._kept(), saved.arrays)
            self.n_early = int(saved.plain["early"])

    @property
    def n_rows(self) -> int:
        """Rows that are done."""
        return self.seen.n_rows

    @property
    def fingerprint(self) -> Fingerprint:
        """Of these rows."""
        return self.seen.fingerprint

    def advance(self, batch: Batch) -> dict[str, Any]:
        """Make an interval for each row of a batch and learn from its outcome; the columns of the output."""
        given = self._count(batch)
        rows = self.seen.audience.rows(batch).groups
        lower, upper = self._played(given, rows)
        self._score(given, lower, upper, rows)
        own = {} if given.lower is None else {"before_lower": given.lower, "before_upper": given.upper}
        center = {} if given.center is None else {"before": given.center}
        numbers = np.arange(batch.first + 1, batch.first + batch.n + 1)
        return {"row": numbers, **center, **own, "lower": lower, "upper": upper}

    @staticmethod
    def output(columns: IntervalColumns) -> tuple[str, ...]:
        """Names of the columns of the output."""
        center = ("before",) if columns.model else ()
        own = ("before_lower", "before_upper") if columns.ends is not None else ()
        return ("row", *center, *own, "lower", "upper")

    def pass_over(self, batch: Batch) -> None:
        """Count rows that are done."""
        self._count(batch)

    def save(
        self, asked: dict[str, Any], out: str | None, output: dict[str, Any] | None, *, finished: bool
    ) -> Checkpoint:
        """All that it takes to go on."""
        stream = io.BytesIO()
        self.interval.save(stream)
        return Checkpoint(
            asked=asked,
            rows=self.n_rows,
            digest=self.fingerprint.value(),
            out=out,
            output=output,
            finished=finished,
            plain={**self.seen.plain(), "early": self.n_early},
            forecaster=stream.getvalue(),
            arrays=joined(self._kept()),
        )

    def _count(self, batch: Batch) -> IntervalRows:
        given = self.columns.read(batch, self.seen.source)
        self.seen.add(batch)
        self.n_missing += int(np.count_nonzero(np.isnan(given.y)))
        if given.center is not None:
            self.n_unhinted += int(np.count_nonzero(np.isnan(given.center)))
        return given

    def _played(self, given: IntervalRows, rows: Rows) -> tuple[Float64Array, Float64Array]:
        """The ends of every row, infinite ones as missing."""
        n = len(given.y)
        ends, indptr = np.full((n, 2), np.nan), rows.indptr.tolist()
        labels = given.y.tolist()
        centers = [None] * n if given.center is None else _or_none(given.center)
        for t, (y, center, unit) in enumerate(zip(labels, centers, self._units(given), strict=True)):
            inside = slice(indptr[t], indptr[t + 1])
            forecast = self.interval.predict(Row(rows.indices[inside], rows.values[inside]), center, unit=unit)
            ends[t] = forecast.lower, forecast.upper
            if math.isnan(y):
                self.interval.forget(forecast)  # or it would wait for ever, as for an outcome that is late
            else:
                self.interval.update(forecast, y)
        whole = np.isfinite(ends).all(axis=1)
        ends[~whole] = np.nan
        return ends[:, 0], ends[:, 1]

    def _score(self, given: IntervalRows, lower: Float64Array, upper: Float64Array, rows: Rows) -> None:
        known, made = ~np.isnan(given.y), ~np.isnan(lower)
        self.n_early += int(np.count_nonzero(known & ~made))
        at = np.flatnonzero(known & made)
        after = np.full(len(known), np.nan)
        after[at] = self.after.add(given.y[at], lower[at], upper[at], taken(rows, at))
        if self.before is None or given.lower is None or given.upper is None:
            return
        at = np.flatnonzero(known & ~np.isnan(given.lower) & ~np.isnan(given.upper))
        before = self.before.add(given.y[at], given.lower[at], given.upper[at], taken(rows, at))
        both = ~np.isnan(after[at])
        self.losses.add(before[both], after[at][both])

    def _usual_unit(self, first: Sequence[Batch]) -> float | None:
        """The median half-width of the model in the first rows; None where it has no intervals."""
        if self.columns.ends is None:
            return None
        lower, upper = (
            np.concatenate([batch.numbers(self.columns.model[at]) for batch in first])[: self.seen.settled]
            for at in self.columns.ends
        )
        widths = (upper - lower)[upper > lower]
        return float(np.median(widths)) / 2 if len(widths) else None

    def _units(self, given: IntervalRows) -> list[float | None]:
        """How uncertain the model is in each row; its usual width where it has none."""
        if self._usual is None or given.lower is None or given.upper is None:
            return [None] * len(given.y)
        half = (given.upper - given.lower) / 2
        half = np.where(half > 0, half, self._usual)  # which a missing one is not, either
        units: list[float | None] = (
            np.clip(half, _LEAST * self._usual, _MOST * self._usual) / self._deviations
        ).tolist()
        return units

    def _kept(self) -> dict[str, IntervalSide | PairedLosses]:
        before: dict[str, Any] = {} if self.before is None else {"before": self.before}
        return {"after": self.after, **before, "losses": self.losses}


def _or_none(values: Float64Array) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]


def run_interval(
    source: Any,
    question: TaskConfig,
    coverage: float,
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
) -> IntervalResult:
    """Intervals that cover a share of outcomes in every group, for a table as a stream, beside the model's own.

    Parameters
    ----------
    source : Records or anything that `records.read` takes
        The table.
    question : Question
        Outcomes, groups, and the range of outcomes if there is one (`low`, `high`); its property is not looked at.
    coverage : float
        The share of outcomes to cover.
    model : sequence of str
        Columns: a forecast; or the lower and the upper end of the model's own intervals; or lower, forecast, upper.
    learn, horizon, seed
        As for `Interval`.
    out : path, optional
        Intervals of every row: .csv, .jsonl or .parquet, with the columns row, before (the model's forecast),
        before_lower, before_upper, lower and upper. Before 20 outcomes are known, and without intervals of the model,
        there is none.
    state, fresh, overwrite, progress, stop, say
        As for `running.run`.

    Returns
    -------
    IntervalResult
        Coverage, width and interval score of every group.

    Notes
    -----
    An interval covers an outcome that is equal to one of its ends. Cost: three forecasters.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> noisy = rng.random(3000) < 0.3
    >>> table = {"y": rng.normal(0.0, 1.0 + 2.0 * noisy), "noisy": noisy, "low": np.full(3000, -1.6)}
    >>> table["high"] = -table["low"]
    >>> found = run_interval(table, TaskConfig("y", groups=["noisy"]), 0.9, model=["low", "high"], seed=1)
    >>> found.covered.verdict.headline[:30]
    'Use the recalibrated intervals'
    """
    columns = IntervalColumns(question, model)
    asked_coverage = level(coverage)
    asked = {**settings_of(question), "interval": asked_coverage, "model": list(model), "learn": learn}
    asked |= {"horizon": horizon, "seed": seed}
    names = IntervalState.output(columns)
    with claim(source, columns.names, asked, names, out, state, fresh=fresh, overwrite=overwrite) as (records, files):

        def make(first: list[Batch], expected: int | None, begun: Checkpoint | None) -> IntervalState:
            seen = (asked_coverage, columns, first, records.name)
            return IntervalState(*seen, horizon=expected, seed=seed, learn=learn, saved=begun)

        played = run_batches(
            records, question.prefix, make, files, horizon=horizon, progress=progress, stop=stop, say=say
        )
        return _result(records.name, played.run, asked_coverage, files.asked)


def _result(source: str, current: IntervalState, coverage: float, asked: dict[str, Any]) -> IntervalResult:
    columns, question = current.columns, current.columns.question
    if not current.after.column.n_rounds:
        raise DataError(
            f"{source} has no row with an outcome in {question.y!r} and an interval; at least 21 outcomes are needed"
        )
    before = None
    if current.before is not None and current.before.column.n_rounds:
        before = current.before.summary()
    after = current.after.summary()
    sides = {"before": current.before, "after": current.after}
    used = {which: side for which, side in sides.items() if side is not None and side.column.n_rounds}
    widths = {which: side.means.of("width") for which, side in used.items()}
    paired = current.losses.paired()
    asked_for = Quantile(coverage)
    said = interval_verdict(before, after, asked_for, paired, {which: float(w[0]) for which, w in widths.items()})
    quantiles = current.interval.quantiles
    covered = Result(
        kind="run",
        source=source,
        property=asked_for,
        loss_name=SCORE,
        low=0.0,
        high=1.0,
        groups=current.after.column.names,
        n_rounds=current.after.column.n_rounds,
        n_missing=current.n_missing,
        n_clipped=columns.n_clipped,
        before=before,
        after=after,
        history=None,
        paired=paired,
        verdict=said,
        guarantee=None,
        settings={
            **asked,
            "seed": quantiles.seed,
            "miscovered_rows_at_most": current.interval.miscoverage(DELTA),
            "rows": current.n_rows,
            "rows_without_interval_yet": current.n_early,
            "rows_without_hint": current.n_unhinted,
            "intervals_crossed_before": columns.n_crossed,
            "bands": {name: list(edges) for name, edges in current.seen.audience.groups.edges.items()},
        },
        versions=versions(),
    )
    scores = {which: side.means.of("score") for which, side in used.items()}
    return IntervalResult(covered, coverage, widths, scores)

"""A run of intervals between two batches; it can be saved, and resumed later."""

import io
import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np

from swapcal.audit.named_parts import joined
from swapcal.audit.paired import PairedLosses
from swapcal.intervals.interval import Interval
from swapcal.jobs.checkpoint import Checkpoint
from swapcal.jobs.fingerprint import Fingerprint
from swapcal.jobs.question import Question
from swapcal.jobs.rowcuts import taken
from swapcal.jobs.several.interval_columns import IntervalColumns, IntervalRows
from swapcal.jobs.several.interval_side import IntervalSide
from swapcal.jobs.several.seen_rows import SeenRows, resume
from swapcal.roles import Row, Rows
from swapcal.tables.batch import Batch
from swapcal.typing import Float64Array

__all__ = ["IntervalState"]

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
        question: Question = columns.question
        self.seen = SeenRows(question, columns.names, first, source, saved)
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
            resume(self._kept(), saved.arrays, groups.n)
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

"""From records to a verdict on a model's forecasts."""

import os
import platform
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from swapcal.audit.binary_scores import fine_edges
from swapcal.audit.column import ColumnAudit
from swapcal.audit.outcomes import root
from swapcal.audit.summary import ColumnSummary, summarize
from swapcal.audit.timeline import Times
from swapcal.decisions import Decisions, lost
from swapcal.errors import DataError, InvalidInput
from swapcal.jobs.audience import Audience
from swapcal.jobs.binning import Binning, binning
from swapcal.jobs.discovering import discovered
from swapcal.jobs.history import ErrorHistory
from swapcal.jobs.next_command import next_command
from swapcal.jobs.passes import Passes
from swapcal.jobs.question import Question
from swapcal.jobs.result import History, Result
from swapcal.jobs.row_times import ClusterNumbers, day_of, times_of
from swapcal.jobs.row_values import RangeWarning, RowValues, finite, known_outcomes, raw_weights
from swapcal.jobs.survey import Survey
from swapcal.tables.records import Batch, Records
from swapcal.typing import Float64Array, IntArray
from swapcal.version import __version__
from swapcal.words.discovery_sentences import discovery_sentences
from swapcal.words.property_words import loss_name
from swapcal.words.verdicts import verdict, with_discovery

__all__ = ["audit", "audited", "clusters_of", "opening", "surveyed", "versions"]


def audit(
    source: Any, question: Question, *, discover: bool = False, progress: Callable[[int], None] | None = None
) -> Result:
    """Whether the forecasts in a table can be trusted for everybody.

    Parameters
    ----------
    source : Passes, Records or anything that `records.read` takes
        The table: a path, a frame, a mapping of arrays, ...
    question : Question
        Which columns; `p` must be one of them.
    discover : bool
        Search all columns of the table for subgroups with bias that nobody listed, in a third pass.
    progress : callable, optional
        Called with the number of rows done after each batch.

    Notes
    -----
    Rows without an outcome or without a forecast are not scored, and counted. The table is read twice: the first pass
    settles the range of outcomes, the bands of numbers and the bins of forecasts from all rows or a uniform sample of
    50,000 (see `Survey`), the second counts. What can be read only once, such as a pipe, is copied to a temporary file
    on the way. Memory does not depend on the number of rows.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> score = rng.random(4000)
    >>> table = {"late": rng.random(4000) < 0.7 * score, "score": score}
    >>> result = audit(table, Question("late", "score"))
    >>> result.verdict.kind, result.verdict.headline
    ('recalibrate', 'Recalibrate: forecasts are too high by 17 points on average.')
    """
    if question.p is None:
        raise InvalidInput("an audit needs the column of forecasts: give p= (--p)")
    columns = None if discover else question.columns
    with source if isinstance(source, Passes) else Passes(source, columns) as passes:
        return audited(passes, question, question.p, progress, discover=discover)


def audited(
    passes: Passes,
    question: Question,
    p_column: str,
    progress: Callable[[int], None] | None = None,
    *,
    discover: bool = False,
) -> Result:
    """As `audit`, of a source that stays open."""
    survey = surveyed(passes, question, p_column, progress)
    values = RowValues(question, (), passes.name, survey)
    values.warn_of_heaps()
    audience = Audience.seen(question, lambda names: survey.sample())
    bins = _binning(question, values, survey, p_column)
    clusters = clusters_of(question, survey)
    column = audience.column(
        values.property,
        bins,
        "the model",
        bins.shown,
        constant=_constant(values, survey),
        fine=fine_edges(np.clip(survey.p, *values.property.domain)),
        clusters=clusters is not None,
    )
    column.acted = None if question.costs is None else Decisions.parsed(question.costs)
    column.histograms.settle(np.clip(survey.y, values.low, values.high))
    history, counts = ErrorHistory(), _Counts()
    for batch in passes.batches():
        _add(batch, question, p_column, values, audience, column, clusters, history, counts)
        if progress is not None:
            progress(survey.n_rows)
    if not column.weight > 0:
        raise DataError(
            f"{passes.name} has no row with both an outcome in {question.y!r} and a forecast in {p_column!r}"
            + ("" if question.weight is None else f" and a weight above 0 in {question.weight!r}")
            + "; check the columns"
        )
    if clusters is not None and clusters.returns > 0.01 * clusters.count:
        warnings.warn(
            f"rows of {passes.name} are not sorted by {clusters.name!r}: {clusters.returns:,} of {clusters.count:,} "
            "clusters came again later, which makes intervals too narrow; sort the file by that column",
            RangeWarning,
            stacklevel=2,
        )
    summary = summarize(column, question.r)
    settings = {
        **question.settings(),
        "range": values.stated,
        "binning": bins.stated,
        "bands": {column: list(edges) for column, edges in audience.groups.edges.items()},
        "rows": counts.rows,
        "rows_without_forecast": counts.unforecast,
        "forecasts_outside": values.n_clipped_forecasts,
        "weights_outside": values.n_clipped_weights,
        "clusters": _stated(clusters),
        **({} if column.acted is None else {"decisions": lost(column.acted, str(question.costs))}),
    }
    result = _result(passes.name, question, values, column, summary, history, counts, settings)
    return _searched(result, passes, question, values) if discover else result


def _result(
    source: str,
    question: Question,
    values: RowValues,
    column: ColumnAudit,
    summary: ColumnSummary,
    history: ErrorHistory,
    counts: "_Counts",
    settings: dict[str, Any],
) -> Result:
    rounds, errors = history.series(column.n_rounds, summary.swap_error)
    command = next_command(source, settings, "run") if os.path.isfile(source) else None
    said = verdict(summary, property=values.property, r=question.r, command=command)
    return Result(
        kind="audit",
        source=source,
        property=values.property,
        loss_name=loss_name(values.property),
        low=values.low,
        high=values.high,
        groups=column.names,
        n_rounds=column.n_rounds,
        n_missing=counts.missing,
        n_clipped=values.n_clipped,
        before=summary,
        after=None,
        history=History(rounds, before=errors, after=None, guarantee=None),
        paired=None,
        verdict=said,
        guarantee=None,
        settings=settings,
        versions=versions(),
    )


def _searched(result: Result, passes: Passes, question: Question, values: RowValues) -> Result:
    """The result with subgroups that nobody listed, and a sentence about them."""
    days = str(result.settings["clusters"]).startswith("rows of one day of")
    clusters = (
        ClusterNumbers(question.cluster or question.time or "", by_day=days) if question.cluster or days else None
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RangeWarning)  # said by the audit
        found = discovered(passes, question, values, clusters, int(result.settings["rows"]))
    sentences = discovery_sentences(found, values.property)
    said = with_discovery(result.verdict, found, sentences)
    return replace(result, discovery=found, verdict=said)


class _Counts:
    """Rows so far: all, those without an outcome, and those with one and without a forecast."""

    def __init__(self) -> None:
        self.rows = self.missing = self.unforecast = 0


def _add(
    batch: Batch,
    question: Question,
    p_column: str,
    values: RowValues,
    audience: Audience,
    column: ColumnAudit,
    clusters: ClusterNumbers | None,
    history: ErrorHistory,
    counts: _Counts,
) -> None:
    """Count the rows of a batch that have an outcome and a forecast."""
    y, p, w = values.labels(batch), values.forecasts(batch, p_column), values.weights(batch)
    rows = audience.rows(batch)
    numbers = None if clusters is None else clusters.numbers(batch)
    missing, unforecast = np.isnan(y), np.isnan(p)
    without = unforecast & ~missing
    if without.any() and not counts.unforecast:
        warnings.warn(
            f"row {batch.first + int(np.argmax(without)) + 1} of {values.source} has no forecast in column "
            f"{p_column!r}; such rows are not scored",
            RangeWarning,
            stacklevel=5,
        )
    counts.rows += batch.n
    counts.missing += int(np.count_nonzero(missing))
    counts.unforecast += int(np.count_nonzero(without))
    scored = np.arange(batch.n)
    if missing.any() or unforecast.any():
        scored = np.flatnonzero(~(missing | unforecast))
        y, p, rows = y[scored], p[scored], rows.taken(scored)
        w = None if w is None else w[scored]
        numbers = None if numbers is None else numbers[scored]
    time = None if question.time is None else times_of(batch, question.time)
    for part in history.parts(column.n_rounds, np.ones(len(y), dtype=bool)):
        column.add(
            y[part],
            p[part],
            *rows.part(part),
            None if w is None else w[part],
            clusters=None if numbers is None else numbers[part],
            time=None if time is None else _shifted(time, scored[part]),
        )
        if history.due(column.n_rounds):
            history.note(column.n_rounds, column.swap_error(question.r))


def _shifted(time: Times, rows: IntArray) -> Times:
    """The times of some rows of a batch, by their numbers among these."""
    return lambda t: time(int(rows[t]))


def surveyed(passes: Passes, question: Question, p_column: str, progress: Callable[[int], None] | None) -> Survey:
    """The first pass: what settles range, bands and bins."""
    named = () if question.time is None else (question.time,)
    survey = Survey(tuple(dict.fromkeys((*question.grouping().columns, *named))))
    for batch in passes.batches():
        weights = None if question.weight is None else raw_weights(batch, question.weight, passes.name)
        p = finite(batch.numbers(p_column), batch, p_column, passes.name)
        survey.add(batch, known_outcomes(question, batch, passes.name), p, weights)
        if progress is not None:
            progress(survey.n_rows)
    if not survey.n_rows:
        raise DataError(f"{passes.name} has no rows; give a file with a line of column names and rows below it")
    return survey


def _constant(values: RowValues, survey: Survey) -> float | None:
    """The best constant forecast of the sample, whose loss is then summed up over all rows."""
    known = np.clip(survey.y, values.low, values.high)
    if not len(known):
        return None
    if values.question.weight is None:
        return float(values.property.value(known))
    weights = survey.weights
    return float(root(values.property, weights[None, :], known[:, None])[0]) if weights.any() else None


def clusters_of(question: Question, survey: Survey) -> ClusterNumbers | None:
    """Which rows hang together: those of one value of a column, or of one day where a time is known."""
    if question.cluster:
        return ClusterNumbers(question.cluster, by_day=False)
    if question.time is None or question.cluster == "":
        return None
    days = [day_of(value) for value in survey.sample()[question.time][:100]]
    return ClusterNumbers(question.time, by_day=True) if days and None not in days else None


def _stated(clusters: ClusterNumbers | None) -> str:
    if clusters is None:
        return "every row counts by itself"
    what = f"one day of {clusters.name}" if clusters.by_day else f"one {clusters.name}"
    return f"rows of {what} count together: {clusters.count:,} clusters"


def opening(records: Records, prefix: int) -> tuple[list[Batch], Iterator[Batch]]:
    """The batches that hold the first `prefix` rows, and an iterator over the others."""
    batches, first, n_rows = iter(records), [], 0
    for batch in batches:
        first.append(batch)
        n_rows += batch.n
        if n_rows >= prefix:
            break
    if not n_rows:
        raise DataError(f"{records.name} has no rows; give a file with a line of column names and rows below it")
    return first, batches


def _binning(question: Question, values: RowValues, survey: Survey, p_column: str) -> Binning:
    if not len(survey.p):
        raise DataError(f"column {p_column!r} of {values.source} has no forecast at all; check the column")
    domain = values.property.domain
    distinct: Float64Array | None = None
    if survey.values is not None:
        distinct = np.clip(np.array(sorted(survey.values)), *domain)
    return binning(values.property, np.clip(survey.p, *domain), question.bins, distinct)


def versions() -> dict[str, str]:
    """Versions of what took part."""
    loaded = {"swapcal": __version__, "python": platform.python_version(), "numpy": np.__version__}
    for name in ("pyarrow", "narwhals"):
        if name in sys.modules:
            loaded[name] = str(getattr(sys.modules[name], "__version__", ""))
    return loaded

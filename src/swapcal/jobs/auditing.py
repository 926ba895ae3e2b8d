"""From records to a verdict on a model's forecasts."""

import platform
import sys
import warnings
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from swapcal.audit.summary import summarize
from swapcal.errors import DataError, InvalidInput
from swapcal.jobs.audience import Audience
from swapcal.jobs.binning import Binning, binning
from swapcal.jobs.history import ErrorHistory
from swapcal.jobs.question import Question
from swapcal.jobs.result import History, Result
from swapcal.jobs.row_values import RangeWarning, RowValues
from swapcal.tables.records import Batch, Records, read
from swapcal.version import __version__
from swapcal.words.property_words import loss_name
from swapcal.words.verdicts import verdict

__all__ = ["audit", "opening", "versions"]


def audit(source: Any, question: Question, *, progress: Callable[[int], None] | None = None) -> Result:
    """Whether the forecasts in a table can be trusted for everybody.

    Parameters
    ----------
    source : Records or anything that `records.read` takes
        The table: a path, a frame, a mapping of arrays, ...
    question : Question
        Which columns; `p` must be one of them.
    progress : callable, optional
        Called with the number of rows done after each batch.

    Notes
    -----
    Rows without an outcome or without a forecast are not scored, and counted. The first `question.prefix` rows settle
    the range of outcomes, the bands of numbers and the bins of forecasts (see `binning`); the stream is read once, in
    memory that does not depend on its length.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> score = rng.random(4000)
    >>> table = {"late": rng.random(4000) < 0.7 * score, "score": score}
    >>> result = audit(table, Question("late", "score"))
    >>> result.verdict.kind, result.verdict.headline
    ('recalibrate', 'Recalibrate: there is bias that can be taken away.')
    """
    if question.p is None:
        raise InvalidInput("an audit needs the column of forecasts: give p= (--p)")
    records = source if isinstance(source, Records) else read(source, columns=question.columns)
    try:
        return _audit(records, question, question.p, progress)
    finally:
        records.close()


def _audit(records: Records, question: Question, p_column: str, progress: Callable[[int], None] | None) -> Result:
    first, rest = opening(records, question.prefix)
    values = RowValues(question, first, records.name)
    audience = Audience.fitted(question, first)
    bins = _binning(question, values, first, p_column)
    column = audience.column(values.property, bins, "the model", bins.shown)
    history = ErrorHistory()
    n_rows = n_missing = n_unforecast = 0
    for batch in chain(first, rest):
        y, p, w = values.labels(batch), values.forecasts(batch, p_column), values.weights(batch)
        rows = audience.rows(batch)
        missing, unforecast = np.isnan(y), np.isnan(p)
        n_missing += int(np.count_nonzero(missing))
        without = unforecast & ~missing
        if without.any() and not n_unforecast:
            warnings.warn(
                f"row {batch.first + int(np.argmax(without)) + 1} of {records.name} has no forecast in column "
                f"{p_column!r}; such rows are not scored",
                RangeWarning,
                stacklevel=3,
            )
        n_unforecast += int(np.count_nonzero(without))
        scored = np.flatnonzero(~(missing | unforecast))
        if len(scored) < batch.n:
            y, p, rows = y[scored], p[scored], rows.taken(scored)
            w = None if w is None else w[scored]
        for part in history.parts(column.n_rounds, np.ones(len(y), dtype=bool)):
            column.add(y[part], p[part], *rows.part(part), None if w is None else w[part])
            if history.due(column.n_rounds):
                history.note(column.n_rounds, column.swap_error(question.r))
        n_rows += batch.n
        if progress is not None:
            progress(n_rows)
    if not column.weight > 0:
        raise DataError(
            f"{records.name} has no row with both an outcome in {question.y!r} and a forecast in {p_column!r}"
            + ("" if question.weight is None else f" and a weight above 0 in {question.weight!r}")
            + "; check the columns"
        )
    summary = summarize(column, question.r)
    rounds, errors = history.series(column.n_rounds, summary.swap_error)
    return Result(
        kind="audit",
        source=records.name,
        property=values.property,
        loss_name=loss_name(values.property),
        low=values.low,
        high=values.high,
        groups=column.names,
        n_rounds=column.n_rounds,
        n_missing=n_missing,
        n_clipped=values.n_clipped,
        before=summary,
        after=None,
        history=History(rounds, before=errors, after=None, guarantee=None),
        paired=None,
        verdict=verdict(summary, property=values.property, r=question.r),
        guarantee=None,
        settings={
            **question.settings(),
            "range": values.stated,
            "binning": bins.stated,
            "bands": {column: list(edges) for column, edges in audience.groups.edges.items()},
            "rows": n_rows,
            "rows_without_forecast": n_unforecast,
            "forecasts_outside": values.n_clipped_forecasts,
            "weights_outside": values.n_clipped_weights,
        },
        versions=versions(),
    )


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


def _binning(question: Question, values: RowValues, first: list[Batch], p_column: str) -> Binning:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RangeWarning)  # said when the rows are counted
        p = np.concatenate([values.forecasts(batch, p_column) for batch in first])[: question.prefix]
    values.n_clipped_forecasts = 0  # counted again with all rows
    p = p[~np.isnan(p)]
    if not len(p):
        raise DataError(
            f"column {p_column!r} has no forecast in the first {question.prefix:,} rows of {values.source}; "
            "check the column"
        )
    return binning(values.property, p, question.bins)


def versions() -> dict[str, str]:
    """Versions of what took part."""
    loaded = {"swapcal": __version__, "python": platform.python_version(), "numpy": np.__version__}
    for name in ("pyarrow", "narwhals"):
        if name in sys.modules:
            loaded[name] = str(getattr(sys.modules[name], "__version__", ""))
    return loaded

"""From records to alarms: which group's forecasts have gone wrong, as soon as that is sure."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from swapcal.errors import InvalidInput
from swapcal.inputs import inside
from swapcal.monitor import Alarm, Monitor
from swapcal.tables.batch import Batch
from swapcal.tables.records import opening
from swapcal.tasks.columns import Columns, times_of
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.evaluation import ContextColumns


def watch(
    batches: Iterable[Batch],
    question: TaskConfig,
    *,
    tolerance: float = 0.0,
    alpha: float | None = None,
    every: float | None = None,
    source: str = "the stream",
) -> Iterator[dict[str, Any]]:
    """Alarms of a stream, as plain data, each as soon as it is sure.

    Parameters
    ----------
    batches : iterable of Batch
        The stream.
    question : TaskConfig
        Which columns; `p` must be one of them. `cluster` or `time` are the columns whose values make clusters of rows.
    tolerance : float
        Bias to ignore, in units of the outcome; for quantiles, in shares of rows.
    alpha, every : float, optional
        As for `Monitor`: the probability of a false alarm ever, or the rows in which there is one on average. Default
        alpha = 0.01.
    source : str
        What messages call the stream.

    Yields
    ------
    dict
        group, side ("too high" or "too low"), row (of the stream, from 1, where it was known), group_rows, log_e, time
        (if a column of times was named), message.

    Notes
    -----
    The first `question.prefix` rows, or as many as come with them, settle the range of outcomes and the groups. Rows
    without an outcome or a forecast are passed over. Memory does not grow with the stream.

    Examples
    --------
    >>> from swapcal.tables.records import read
    >>> rng = np.random.default_rng(0)
    >>> p = np.full(6000, 0.3)
    >>> new = rng.random(6000) < 0.5
    >>> y = rng.random(6000) < np.where(new & (np.arange(6000) > 3000), 0.6, 0.3)
    >>> found = watch(read({"y": y, "p": p, "new": new}), TaskConfig("y", "p", ["new"], prefix=1000))
    >>> sorted({(alarm["group"], alarm["side"]) for alarm in found})
    [('all rows', 'too low'), ('new=True', 'too low')]
    """
    if question.p is None:
        raise InvalidInput("a watch needs the column of forecasts: give p= (--p)")
    if question.weight is not None:
        raise InvalidInput("a watch takes every row once; leave weight= (--weight) out")
    first, rest = opening(batches, question.prefix, source)
    values = Columns(question, first, source)
    audience = ContextColumns.fitted(question, first)
    cluster = question.cluster or None
    monitor = Monitor(
        values.property,
        audience.groups,
        tolerance=tolerance,
        alpha=0.01 if alpha is None and every is None else alpha,
        every=every,
        cluster=cluster,
    )
    words = values.property.wording
    for batch in chain(first, rest):
        y, p = values.labels(batch), values.forecasts(batch, question.p)
        scored = np.flatnonzero(~(np.isnan(y) | np.isnan(p)))
        rows = audience.rows(batch).taken(scored).groups
        ids = None if cluster is None else _texts(batch, cluster, scored)
        before = monitor.n_rows
        for alarm in monitor.update_many(*inside(values.property, y[scored], p[scored]), rows, clusters=ids):
            at = int(scored[min(max(alarm.rows - before - 1, 0), len(scored) - 1)]) if len(scored) else 0
            yield _told(alarm, batch, at, question, words.noun)
    for alarm in monitor.close():
        yield _told(alarm, batch, batch.n - 1, question, words.noun)


def _texts(batch: Batch, name: str, rows: Any) -> list[str]:
    time = times_of(batch, name)
    return [str(time(int(row))) for row in rows.tolist()]


def _told(alarm: Alarm, batch: Batch, at: int, question: TaskConfig, noun: str) -> dict[str, Any]:
    group = "all rows" if alarm.group == "all" else alarm.group
    fields: dict[str, Any] = {
        "group": group,
        "side": alarm.side,
        "row": batch.first + at + 1,
        "group_rows": alarm.group_rows,
        "log_e": round(alarm.log_e, 3),
    }
    if question.time is not None:
        fields["time"] = times_of(batch, question.time)(at)
    what = f"{noun} " if noun else "forecasts "
    fields["message"] = f"row {fields['row']:,}: {what}{alarm.side} for {group}, after {alarm.group_rows:,} of its rows"
    return fields

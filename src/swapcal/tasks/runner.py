"""The rows of a source, played one batch after the other: forecasts to the output, and a state that can go on."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from itertools import chain
from typing import Any

from swapcal.errors import DataError, InvalidInput, StateFileError
from swapcal.inputs import integer
from swapcal.tables.batch import Batch, by_value, text
from swapcal.tables.records import Records, opening, read
from swapcal.tasks.checkpoint import START_OVER, Path_, RunFiles, understood
from swapcal.tasks.classes import ClassesTask
from swapcal.tasks.columns import day_of
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.interval import IntervalTask
from swapcal.tasks.outputs import regular
from swapcal.tasks.result import Result
from swapcal.tasks.scalar import ScalarTask
from swapcal.tasks.task import LATER, Task
from swapcal.text.numbers import counted

TASKS: dict[str, type[Task]] = {"scalar": ScalarTask, "interval": IntervalTask, "classes": ClassesTask}

# Bytes of a file that are looked at to guess its number of rows.
_HEAD = 1 << 20

Progress = Callable[[int], None] | None
Stop = Callable[[], bool] | None
Tell = Callable[[str], None]
# Called with the columns of the output, batch by batch.
Take = Callable[[Mapping[str, Any]], None] | None


class Stopped(KeyboardInterrupt):
    """The run was asked to stop, and has: `rows` rows are done, and kept if there is a state file."""

    def __init__(self, rows: int) -> None:
        super().__init__(f"stopped after {counted(rows)}")
        self.rows = rows


def run(
    source: Any,
    config: TaskConfig,
    *,
    out: Path_ | None = None,
    state: Path_ | None = None,
    outcomes: Any = None,
    fresh: bool = False,
    overwrite: bool = False,
    progress: Progress = None,
    stop: Stop = None,
    say: Tell | None = None,
    take: Take = None,
) -> Result:
    """Forecast a table as a stream, each row from the rows before it, and compare with the model's own forecasts.

    Parameters
    ----------
    source : Records or anything that `records.read` takes
        The table: a path, a frame, a mapping of arrays, ... Open records are closed at the end.
    config : TaskConfig
        Which columns, which groups, what a row gets, and how.
    out : path, optional
        Forecasts of every row: .csv, .jsonl or .parquet, with the columns row (from 1), those of the file that
        `config.keep` names, before (the model's) and forecast. Of intervals: before, before_lower, before_upper, lower
        and upper; before 20 outcomes are known, and without intervals of the model, there is none. Of classes:
        p_<class> for each, top (the likeliest class) and confidence (its probability, which is calibrated by itself and
        need not be p_<top>).
    state : path, optional
        Keeps how far the run has come. With the same file, input and settings it goes on after a stop or a kill; when
        all is done it goes on with rows that the input has gained since. With `config.later`, outcomes that were
        blank when their rows were forecast are learned from first, once each, where the input has them by now.
    outcomes : path, or anything that `records.read` takes, optional
        A second table of such outcomes, with the columns `config.y` and `config.id`, which names the rows.
    fresh : bool
        Start over, whatever is in `state`.
    overwrite : bool
        Replace an `out` that is there already and does not belong to `state`.
    progress : callable, optional
        Called with the number of rows done after each batch.
    stop : callable, optional
        Asked after each batch; True ends the run with `Stopped`, all rows so far committed.
    say : callable, optional
        Called with sentences about where the run goes on.
    take : callable, optional
        Called with the columns of the output of each batch.

    Returns
    -------
    Result
        What came of it, for the model and for swapcal.

    Notes
    -----
    Rows without an outcome are forecast, and not learned from; rows without a hint are forecast without one. Output is
    written and synced to disk before the state file is replaced: a kill at any moment loses no row and repeats none.
    The horizon is what the source says, or for a file of text what its size suggests; where neither is known, as in a
    pipe, anytime.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> score, old = rng.random(4000), rng.random(4000) < 0.3
    >>> table = {"late": rng.random(4000) < (0.5 + 0.4 * old) * score, "score": score, "old": old}
    >>> result = run(table, TaskConfig("late", "score", ["old"], learn=False))
    >>> bool(result.after.swap_error < result.before.swap_error / 3), result.verdict.headline[:30]
    (True, 'Use the corrected forecasts. B')
    """
    if config.by is not None:
        raise InvalidInput("a run by key (by=) is one of run_by_key")
    if state is None and config.later:
        raise InvalidInput("outcomes that come later (--later, --id) need a file that remembers the rows: --state")
    if outcomes is not None and config.id is None:
        raise InvalidInput("a second file of outcomes (--outcomes) names its rows by a column: add --id COLUMN")
    if state is not None and config.against is not None:
        raise InvalidInput("--against cannot be combined with --state: it keeps the rows of one run")
    tell = (lambda _: None) if say is None else say
    whole = state is not None
    records = source if isinstance(source, Records) else read(source, columns=config.columns, whole_lines=whole)
    asked, records.lenient = config.settings(), config.bad_rows == "skip"
    with records, closing(RunFiles(asked, out, state, records.file, fresh=fresh, overwrite=overwrite)) as files:
        if files.begun is None and outcomes is not None:
            raise InvalidInput("--outcomes are of rows that were forecast before, and none was; run without it first")
        task, first, batches = _begun(records, config, files, outcomes)
        filled, sentences = task.fill_in() if files.begun is not None else (0, ())
        if filled:
            tell(f"learned from {counted(filled, 'outcome')} that {'has' if filled == 1 else 'have'} come since")
        for sentence in sentences:
            tell(sentence)
        if state is None and not config.later:
            task.keep_rows()
        files.name_columns(task.written)
        files.open()
        _play(task, batches, files, filled, progress, stop, tell, take)
        if records.held is not None:
            tell(records.held)
        result = task.result(config, time_column(records.file, first, config.time))
        return replace(result, details={"out": files.asked["out"], **result.details})


def _begun(
    records: Records, config: TaskConfig, files: RunFiles, outcomes: Any
) -> tuple[Task, list[Batch], Iterator[Batch]]:
    """The task, new or where the state file stands, the batches that settle it, and those that are to be played."""
    begun, kind = files.begun, TASKS[config.task]
    expected = records.n_rows or _expected_rows(records) if config.horizon is None else config.horizon
    with understood(files.state):
        settled = config.prefix if begun is None else integer(begun.plain["settled"], "settled", 1)
        if settled > config.prefix:
            raise ValueError(f"{settled} rows have settled the range, and {config.prefix} can")
    first, rest = opening(records, settled, records.name)
    asked = replace(config, horizon=expected)
    if begun is None:
        return kind(asked, first, records.name), first, chain(first, rest)
    with understood(files.state):
        task = kind(asked, first, records.name, begun, outcomes)
    batches = behind(chain(first, rest), task, begun.rows, files.state, records.name)
    if task.digest(then=True) != begun.digest:
        aside, hint = ("", LATER) if not config.later else (", blank outcomes that were filled in aside", "")
        rows = f"the first {begun.rows:,} rows of {records.name}"
        seen = f"are not those that the state file {files.state} has seen{aside}"
        raise StateFileError(f"{rows} {seen}; {START_OVER}{hint}")
    return task, first, batches


def _play(
    task: Task,
    batches: Iterator[Batch],
    files: RunFiles,
    filled: int,
    progress: Progress,
    stop: Stop,
    tell: Tell,
    take: Take,
) -> None:
    """Play batches, and commit between them; `filled` outcomes have been learned before."""
    begun, new, between = files.begun, 0, True
    try:
        for batch in batches:
            if begun is not None and not new:
                tell(f"going on after row {task.n_rows:,}")
            between = False
            columns = task.advance(batch)
            files.append(columns)
            if take is not None:
                take(columns)
            new, between = new + batch.n, True
            files.commit(task)
            if progress is not None:
                progress(task.n_rows)
            if stop is not None and stop():
                raise Stopped(task.n_rows)
        if new or begun is None or not begun.finished:
            files.commit(task, finished=True)
        elif filled:
            files.keep(task)
        else:
            tell(f"nothing to do: all {task.n_rows:,} rows of {task.source} are done")
    except KeyboardInterrupt:
        if between:
            files.commit(task, force=True, finished=files.state is None)
        raise


def _expected_rows(records: Records) -> int | None:
    """About how many rows a file of text has, from its size and its first lines; None for anything else.

    Not from how much has been read of it so far: that depends on threads, and two runs must have the same horizon. Only
    a regular file may be opened again: what is read from a pipe is gone.
    """
    path = records.file
    if not isinstance(path, str) or not regular(path):
        return None
    try:
        with open(path, "rb") as file:
            head, size = file.read(_HEAD), os.path.getsize(path)
    except OSError:
        return None
    if not head or b"\0" in head:
        return None  # packed, so that its size says little
    if size <= len(head):
        return max(1, head.count(b"\n") - 1)
    rows = head.count(b"\n") * size / len(head)
    return int(float(f"{rows:.1e}"))


def behind(batches: Iterator[Batch], current: Task, rows: int, state: object, source: str) -> Iterator[Batch]:
    """The batches behind the rows that are done, which must be the same rows as then."""
    ahead: list[Batch] = []
    while current.n_rows < rows and (batch := next(batches, None)) is not None:
        left = rows - current.n_rows
        current.pass_over(batch if batch.n <= left else batch.cut(0, left))
        if batch.n > left:
            ahead.append(batch.cut(left, batch.n))
    if current.n_rows < rows:
        fewer = f"{source} has {counted(current.n_rows)}, and the state file {state} has {rows:,} of them done"
        raise StateFileError(f"{fewer}; {START_OVER}")
    return chain(ahead, batches)


def time_column(path: object, first: Sequence[Batch], named: str | None) -> str | None:
    """A column that looks like a time, to be named in advice: that which was named, or one of the file or the table."""
    if named is not None:
        return named
    if isinstance(path, str) and regular(path):
        with read(path, batch_rows=3) as records:
            first = [next(records)]
    for name in first[0].columns:
        with suppress(DataError):  # a column that nobody has asked for may hold anything
            values = [text(value) for value in by_value(first[0].column(name)).values[:3]]
            if values and all(map(day_of, values)):
                return str(name)
    return None

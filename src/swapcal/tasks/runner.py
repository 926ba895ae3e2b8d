"""The rows of a source, played one batch after the other: forecasts to the output, and a state that can go on."""

import csv
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from swapcal.errors import InvalidInput, StateFileError
from swapcal.inputs import integer
from swapcal.tables.batch import Batch, Coded
from swapcal.tables.records import Records, opening
from swapcal.tasks.checkpoint import START_OVER, Checkpoint, Path_, RunFiles, claim, understood
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
Say = Callable[[str], None] | None


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
    say: Say = None,
) -> Result:
    """Forecast a table as a stream, each row from the rows before it, and compare with the model's own forecasts.

    Parameters
    ----------
    source : Records or anything that `records.read` takes
        The table: a path, a frame, a mapping of arrays, ...
    config : TaskConfig
        Which columns, which groups, what a row gets, and how.
    out : path, optional
        Forecasts of every row: .csv, .jsonl or .parquet, with the columns row (from 1), before (the model's) and
        forecast. Of intervals: before, before_lower, before_upper, lower and upper; before 20 outcomes are known, and
        without intervals of the model, there is none. Of classes: p_<class> for each, top (the likeliest class) and
        confidence (its probability, which is calibrated by itself and need not be p_<top>).
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
    (True, 'Use the recalibrated forecasts')
    """
    if config.by is not None:
        raise InvalidInput("a run by key (by=) is one of run_by_key")
    if state is None and config.later:
        raise InvalidInput("outcomes that come later (--later, --id) need a file that remembers the rows: --state")
    if outcomes is not None and config.id is None:
        raise InvalidInput("a second file of outcomes (--outcomes) names its rows by a column: add --id COLUMN")
    kind = TASKS[config.task]
    files_of = claim(source, config.columns, config.settings(), out, state, fresh=fresh, overwrite=overwrite)
    with files_of as (records, files):
        if files.begun is None and outcomes is not None:
            raise InvalidInput("--outcomes are of rows that were forecast before, and none was; run without it first")

        def make(first: list[Batch], expected: int | None, begun: Checkpoint | None) -> Task:
            return kind(replace(config, horizon=expected), first, records.name, begun, outcomes)

        task, first = run_batches(records, config, make, files, progress, stop, say)
        result = task.result(config, time_column(records.file, first, config.time))
        return replace(result, details={"out": files.asked["out"], **result.details})


def run_batches(
    records: Records,
    config: TaskConfig,
    make: Callable[[list[Batch], int | None, Checkpoint | None], Task],
    files: RunFiles,
    progress: Progress = None,
    stop: Stop = None,
    say: Say = None,
) -> tuple[Task, list[Batch]]:
    """Play all rows, from the first or from where the state file stands; the task, and the batches it began with.

    Parameters
    ----------
    records : Records
        The source.
    config : TaskConfig
        How many rows settle what is not given, and how many will come.
    make : callable
        The task from its first batches, the number of rows that are expected, and what an earlier run has kept.
    files : RunFiles
        The output and the state.
    progress, stop, say
        As for `run`.
    """
    begun = files.begun
    tell = (lambda _: None) if say is None else say
    expected = records.n_rows or _expected_rows(records) if config.horizon is None else config.horizon
    with understood(files.state):
        settled = config.prefix if begun is None else integer(begun.plain["settled"], "settled", 1)
        if settled > config.prefix:
            raise ValueError(f"{settled} rows have settled the range, and {config.prefix} can")
    first, rest = opening(records, settled)
    batches: Iterator[Batch] = chain(first, rest)
    filled = 0
    if begun is None:
        current = make(first, expected, None)
    else:
        with understood(files.state):
            current = make(first, expected, begun)
        batches = behind(batches, current, begun.rows, files.state, records.name)
        if current.digest(then=True) != begun.digest:
            aside, hint = ("", LATER) if not config.later else (", blank outcomes that were filled in aside", "")
            rows = f"the first {begun.rows:,} rows of {records.name}"
            seen = f"are not those that the state file {files.state} has seen{aside}"
            raise StateFileError(f"{rows} {seen}; {START_OVER}{hint}")
        filled, sentences = current.fill_in()
        if filled:
            tell(f"learned from {counted(filled, 'outcome')} that {'has' if filled == 1 else 'have'} come since")
        for sentence in sentences:
            tell(sentence)
    files.name_columns(current.outputs)
    files.open()
    new, between = 0, True
    try:
        for batch in batches:
            if begun is not None and not new:
                tell(f"going on after row {current.n_rows:,}")
            between = False
            files.append(current.advance(batch))
            new, between = new + batch.n, True
            files.commit(current)
            if progress is not None:
                progress(current.n_rows)
            if stop is not None and stop():
                raise Stopped(current.n_rows)
        if new or begun is None or not begun.finished:
            files.commit(current, finished=True)
        elif filled:
            files.keep(current)
        else:
            tell(f"nothing to do: all {current.n_rows:,} rows of {records.name} are done")
    except KeyboardInterrupt:
        if between:
            files.commit(current, force=True, finished=files.state is None)
        raise
    if records.held is not None:
        tell(records.held)
    return current, first


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


# --------
# A column that looks like a time, to be named in advice.

_LINES = 1 << 16


def time_column(path: object, first: Sequence[Batch], named: str | None) -> str | None:
    """A column that looks like a time: the one that was named, or one of a text file's first lines, or of the table."""
    if named is not None:
        return named
    if isinstance(path, str) and regular(path):
        names = _in_text(path)
        if names is not None:
            return names
    for batch in first[:1]:
        for name in batch.columns:
            column = batch.column(name)
            values = column.values[:3] if isinstance(column, Coded) else ()
            if values and all(day_of(_text(value)) for value in values):
                return str(name)
    return None


def _in_text(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            lines = list(csv.reader(file.read(_LINES).splitlines()[:3]))
    except (OSError, UnicodeDecodeError, csv.Error):
        return None
    if len(lines) < 2 or len(lines[0]) != len(lines[1]):
        return None
    return next((name for name, value in zip(lines[0], lines[1], strict=True) if day_of(value.strip())), None)


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)

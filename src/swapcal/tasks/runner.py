"""What a run has seen of its rows: how many, a digest of their cells, and the groups that they are in."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Generic, Protocol, TypeVar

from swapcal.errors import StateFileError
from swapcal.inputs import integer
from swapcal.tables.batch import Batch
from swapcal.tables.records import Records, opening
from swapcal.tasks.checkpoint import Checkpoint, Fingerprint, RunFiles, understood
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.contexts import ContextColumns
from swapcal.tasks.files import regular
from swapcal.text.numbers import counted

# --------
# The rows of a source, played one batch after the other: forecasts to the output, and a state that can go on.

_HEAD = 1 << 20
"""Bytes of a file that are looked at to guess its number of rows."""


class Stopped(KeyboardInterrupt):
    """The run was asked to stop, and has: `rows` rows are done, and kept if there is a state file."""

    def __init__(self, rows: int) -> None:
        super().__init__(f"stopped after {counted(rows)}")
        self.rows = rows


class Playable(Protocol):
    """A run between two batches."""

    @property
    def n_rows(self) -> int:
        """Rows that are done."""

    @property
    def fingerprint(self) -> Fingerprint:
        """Of these rows."""

    def advance(self, batch: Batch) -> dict[str, Any]:
        """Forecast the rows of a batch and learn from them; the columns of the output."""

    def pass_over(self, batch: Batch) -> None:
        """Count rows that are done."""

    def save(
        self, asked: dict[str, Any], out: str | None, output: dict[str, Any] | None, *, finished: bool
    ) -> Checkpoint:
        """All that it takes to go on."""


P = TypeVar("P", bound=Playable)


@dataclass(frozen=True, slots=True)
class RowsPlayed(Generic[P]):
    """A run whose rows are all done, and the batches that it began with."""

    run: P
    first: list[Batch]


def run_batches(
    records: Records,
    prefix: int,
    make: Callable[[list[Batch], int | None, Checkpoint | None], P],
    files: RunFiles,
    *,
    horizon: int | None = None,
    digest: Callable[[P], str] | None = None,
    fill_in: Callable[[P], tuple[int, tuple[str, ...]]] | None = None,
    unlike: tuple[str, str] = ("", ""),
    progress: Callable[[int], None] | None = None,
    stop: Callable[[], bool] | None = None,
    say: Callable[[str], None] | None = None,
) -> RowsPlayed[P]:
    """Play all rows, from the first or from where the state file stands.

    Parameters
    ----------
    records : Records
        The source.
    prefix : int
        So many rows settle what is not given.
    make : callable
        The run from its first batches, the number of rows that are expected, and what an earlier run has kept.
    files : RunFiles
        The output and the state.
    horizon : int, optional
        Number of rows that will come; else what the source says, or what the size of a file of text suggests.
    digest : callable, optional
        Of the rows that are done, as they were seen first; default: their fingerprint.
    fill_in : callable, optional
        Learns outcomes of such rows that have come since: how many, and what there is to say.
    unlike : pair of str
        What a sentence about rows that are not the same adds, in the middle and at its end.
    progress, stop, say
        As for `running.run`.
    """
    begun = files.begun
    expected = records.n_rows or _expected_rows(records) if horizon is None else horizon
    with understood(files.state):
        settled = prefix if begun is None else integer(begun.plain["settled"], "settled", 1)
        if settled > prefix:
            raise ValueError(f"{settled} rows have settled the range, and {prefix} can")
    first, rest = opening(records, settled)
    batches: Iterator[Batch] = chain(first, rest)
    if begun is None:
        current = make(first, expected, None)
    else:
        with understood(files.state):
            current = make(first, expected, begun)
        batches = _behind(batches, current, begun, files, records.name)
        if (current.fingerprint.value() if digest is None else digest(current)) != begun.digest:
            raise StateFileError(
                f"the first {begun.rows:,} rows of {records.name} are not those that the state file {files.state} has "
                f"seen{unlike[0]}; give the file it was made with, another --state, or --fresh to start over{unlike[1]}"
            )
    filled = 0
    if begun is not None and fill_in is not None:
        filled, sentences = fill_in(current)
        learned = (
            (f"learned from {counted(filled, 'outcome')} that {'has' if filled == 1 else 'have'} come since",)
            if filled
            else ()
        )
        if say is not None:
            for sentence in (*learned, *sentences):
                say(sentence)
    files.open()
    new, between = 0, True
    try:
        for batch in batches:
            if begun is not None and not new and say is not None:
                say(f"going on after row {current.n_rows:,}")
            between = False
            columns = current.advance(batch)
            files.append(columns)
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
        elif say is not None:
            say(f"nothing to do: all {current.n_rows:,} rows of {records.name} are done")
    except KeyboardInterrupt:
        if between:
            files.commit(current, force=True, finished=files.state is None)
        raise
    if records.held is not None and say is not None:
        say(records.held)
    return RowsPlayed(current, first)


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


def _behind(
    batches: Iterator[Batch], current: Playable, begun: Checkpoint, files: RunFiles, source: str
) -> Iterator[Batch]:
    """The batches behind the rows that are done, which must be the same rows as then."""
    ahead: list[Batch] = []
    for batch in batches:
        left = begun.rows - current.n_rows
        if batch.n > left:
            current.pass_over(batch.cut(0, left))
            ahead.append(batch.cut(left, batch.n))
        else:
            current.pass_over(batch)
        if current.n_rows == begun.rows:
            break
    if current.n_rows < begun.rows:
        raise StateFileError(
            f"{source} has {counted(current.n_rows)}, and the state file {files.state} has {begun.rows:,} of them "
            "done; give the file it was made with, another --state, or --fresh to start over"
        )
    return chain(ahead, batches)


class Progress:
    """Rows that are done.

    Parameters
    ----------
    question : Question
        Which groups, and how many rows settle them.
    columns : sequence of str
        All columns that the run uses; None: it may use any.
    first : sequence of Batch
        The first rows of the source.
    source : str
        What messages call it.
    saved : Checkpoint, optional
        Go on from there; the first rows must be the same as then.
    """

    def __init__(
        self,
        question: TaskConfig,
        columns: Sequence[str] | None,
        first: Sequence[Batch],
        source: str,
        saved: Checkpoint | None = None,
    ) -> None:
        self.source = source
        self.settled = int(saved.plain["settled"]) if saved else min(sum(batch.n for batch in first), question.prefix)
        question = replace(question, prefix=self.settled)
        self._head = Fingerprint.of(first, self.settled, columns)
        if saved is not None and saved.plain["head"] != self._head:
            raise StateFileError(
                f"{source} does not begin with the rows that the state file has seen; give the file it was made with, "
                "another --state, or --fresh to start over"
            )
        if saved is None:
            self.audience = ContextColumns.fitted(question, first).with_room(question)
        else:
            self.audience = ContextColumns.resumed(question, saved.plain["audience"])
        self.fingerprint = Fingerprint(columns)
        self.n_rows = 0

    def add(self, batch: Batch) -> None:
        """Count the rows of a batch, whose cells go into the digest."""
        self.fingerprint.add(batch)
        self.n_rows += batch.n

    def plain(self) -> dict[str, Any]:
        """Plain data: what settled the run, and the groups that have come up."""
        return {"settled": self.settled, "head": self._head, "audience": self.audience.spec()}


def settings_of(question: TaskConfig) -> dict[str, Any]:
    """Plain data: the part of a question that such runs ask."""
    asked = question.settings()
    return {name: asked[name] for name in ("y", "groups", "categories", "low", "high", "limit", "prefix")}

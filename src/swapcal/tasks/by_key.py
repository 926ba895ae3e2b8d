"""`swapcal run --by`: every key's rows forecast from the rows of that key before them, on all cores."""

import contextlib
import math
import multiprocessing
import os
import sys
import tempfile
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np

from swapcal.audits.column import Column
from swapcal.errors import DataError, InvalidInput, StateFileError, SwapcalError
from swapcal.forecaster import Forecaster
from swapcal.hints import OnlineRegression
from swapcal.hypotheses import Finite
from swapcal.inputs import integer
from swapcal.keyed.keyed import forecaster_for_key, key_text
from swapcal.keyed.store import StateStore, Store
from swapcal.protocols import Hypotheses
from swapcal.tables.batch import Batch
from swapcal.tables.coded import Coded, taken, text
from swapcal.tables.records import Records, opening, read
from swapcal.tasks.audit import BINS, mergeable_column, merged_result
from swapcal.tasks.checkpoint import Fingerprint
from swapcal.tasks.columns import Columns, known_outcomes
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.contexts import ContextColumns
from swapcal.tasks.outputs import Output, open_output
from swapcal.tasks.result import Result
from swapcal.tasks.runner import Stopped
from swapcal.text.numbers import counted
from swapcal.typing import Float64Array, IntArray

# --------
# Which process plays which key: settled when a key is first seen, so that nobody has to count the rows before.


class KeyAssignment:
    """Keys by process. New keys of some rows are dealt out the heaviest first, each to who has least to do with them.

    So every part of a stream is spread as evenly as a greedy rule can: where all its keys are new, the load of the
    fullest is at most 4/3 of the best possible (Graham 1969).

    Parameters
    ----------
    n : int
        Number of processes.

    Examples
    --------
    >>> owners = KeyAssignment(2)
    >>> owners.deal(Coded(np.array([0, 0, 0, 1, 1, 2]), ("a", "b", "c")))
    (array([0, 1, 1]), ['a', 'b', 'c'])
    """

    __slots__ = ("_known", "_n")

    def __init__(self, n: int) -> None:
        self._n, self._known = n, dict[Any, int]()

    def __len__(self) -> int:
        return len(self._known)

    def deal(self, keys: Coded) -> tuple[IntArray, list[Any]]:
        """The process of each distinct key of some rows, in the order of `keys.values`; and which of them are new."""
        counts = np.bincount(keys.codes, minlength=len(keys.values))
        owner = np.array([self._known.get(key, -1) for key in keys.values], dtype=np.int64)
        loads = np.bincount(owner[owner >= 0], weights=counts[owner >= 0], minlength=self._n)
        fresh = np.flatnonzero((owner < 0) & (counts > 0))
        for place in fresh[np.argsort(-counts[fresh], kind="stable")].tolist():
            least = int(np.argmin(loads))
            self._known[keys.values[place]] = owner[place] = least
            loads[least] += counts[place]
        return np.maximum(owner, 0), [keys.values[place] for place in fresh.tolist()]


# --------
# One process: it plays its keys, and keeps as many of them in memory as it may.


class Part(NamedTuple):
    """Rows of some keys: the key of each by its code, outcomes, hints, and the columns of the groups.

    `more` is what else `Forecaster.run` takes by name: weights, times, and when outcomes are known.
    """

    keys: Coded
    y: Float64Array
    hints: Float64Array | None
    columns: dict[str, Coded | Float64Array]
    more: dict[str, Any]

    def taken(self, rows: IntArray) -> "Part":
        """Some of the rows."""
        columns = {name: taken(column, rows) for name, column in self.columns.items()}
        hints = None if self.hints is None else self.hints[rows]
        more = {name: each[rows] for name, each in self.more.items()}
        return Part(Coded(self.keys.codes[rows], self.keys.values), self.y[rows], hints, columns, more)


class KeyWorker:
    """Forecasters by key, the ones used longest ago as bytes on disk; and the audits of what was played.

    Parameters
    ----------
    template : bytes
        The configuration of every key.
    folder : path
        For states that do not stay in memory; what is in it ends with the process.
    number : int
        Which process this is.
    resident : int
        How many keys stay in memory.
    empty : bytes
        A column without rows, as which forecasts are scored.
    """

    def __init__(self, template: bytes, folder: Path, number: int, resident: int, empty: bytes) -> None:
        self._template, self._resident, self._empty = Forecaster.from_bytes(template), resident, empty
        self._entries: OrderedDict[str, Forecaster] = OrderedDict()
        self._store, self._dirty = Store(folder / f"{number}.db"), dict[str, None]()
        self._before, self._after = Column.from_bytes(empty), Column.from_bytes(empty)

    def play(self, part: Part, states: list[tuple[str, bytes]]) -> Float64Array:
        """The forecasts of some rows, in their order; keys that come for the first time may have states from before."""
        if states:
            self._store.put([(key, 0.0, state) for key, state in states])
        out = np.empty(len(part.y))
        order = np.argsort(part.keys.codes, kind="stable")
        codes = part.keys.codes[order]
        starts = np.flatnonzero(np.diff(codes, prepend=-2))
        for rows in np.split(order, starts[1:]):
            key = str(part.keys.values[part.keys.codes[rows[0]]])
            own = part.taken(rows)
            x: Any = own.columns if own.columns else np.ones((len(rows), 1))
            out[rows] = self._forecaster(key).run(x, own.y, own.hints, missing="skip", **own.more)
            self._dirty[key] = None
        known = np.flatnonzero(~np.isnan(part.y))
        if len(known):
            whole = part.taken(known)
            _score(self._after, whole, out[known])
            if whole.hints is not None:
                hinted = np.flatnonzero(~np.isnan(whole.hints))
                _score(self._before, whole.taken(hinted), whole.hints[hinted])
        return out

    def commit(self) -> tuple[list[tuple[str, bytes]], bytes, bytes, float]:
        """The states that have changed since the last commit, the audits of the rows since, and processor seconds."""
        states = []
        for key in self._dirty:
            own = self._entries.get(key)
            found = self._store.get(key) if own is None else None
            states.append((key, own.to_bytes() if own is not None else b"" if found is None else found[1]))
        self._dirty = {}
        columns = self._before.to_bytes(), self._after.to_bytes()
        self._before, self._after = Column.from_bytes(self._empty), Column.from_bytes(self._empty)
        return states, *columns, time.process_time()

    def _forecaster(self, key: str) -> Forecaster:
        found = self._entries.pop(key, None)
        if found is None:
            stored = self._store.get(key)
            if stored is None:
                found = forecaster_for_key(self._template, "key", key_text(key))
            else:
                found = Forecaster.from_bytes(stored[1])
        self._entries[key] = found
        while len(self._entries) > self._resident:
            oldest, left = self._entries.popitem(last=False)
            self._store.put([(oldest, 0.0, left.to_bytes())])
        return found


def _score(column: Column, part: Part, forecasts: Float64Array) -> None:
    rows = column.functions.rows(part.columns if part.columns else np.ones((len(part.y), 1)), len(part.y))
    column.add(part.y, column.audit.rounded(forecasts), rows, weights=part.more.get("weights"))


def serve(pipe: Connection) -> None:
    """What the process does: told what to play, it answers ("play" | "commit", argument) until the pipe is closed."""
    # Questions are taken from the pipe as they come, also while one is answered: who asks never waits for who answers.
    waiting: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_listen, args=(pipe, waiting), daemon=True).start()
    try:
        settings = waiting.get()
        player = None if settings is None else KeyWorker(*settings)
        while player is not None and (question := waiting.get()) is not None:
            what, argument = question
            pipe.send(player.play(*argument) if what == "play" else player.commit())
    except KeyboardInterrupt:
        return
    except Exception as error:
        with contextlib.suppress(OSError):
            pipe.send(error)


def _listen(pipe: Connection, waiting: "SimpleQueue[Any]") -> None:
    """Put what comes into the queue; None at the end."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            waiting.put(pipe.recv())
    waiting.put(None)


# --------
# The processes: a part of the rows for each, and their answers.

_PLAYER = "swapcal.tasks.by_key"


class WorkerPool:
    """So many processes, each with a `Player`; they start while the caller goes on, and end with the `with` block.

    Questions are answered in their order, and further ones can be asked before the answers to the first are taken: so
    nobody waits for the slowest of each part.
    """

    def __init__(self, n: int) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="swapcal-")
        # A server that has imported everything once and is then copied: the import takes as long as 100,000 rows.
        served = sys.platform == "linux"
        context: Any = multiprocessing.get_context("forkserver" if served else "spawn")
        if served:
            context.set_forkserver_preload([_PLAYER])
        self._pipes, self._processes = [], []
        for _ in range(n):
            ours, theirs = context.Pipe()
            process = context.Process(target=serve, args=(theirs,), daemon=True)
            process.start()
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(process)

    def __len__(self) -> int:
        return len(self._pipes)

    def begin(self, template: bytes, resident: int, empty: bytes) -> None:
        """Tell every process what to play; comes first, and has no answer."""
        for number, pipe in enumerate(self._pipes):
            pipe.send((template, Path(self._folder.name), number, resident, empty))

    def ask(self, what: str, arguments: Sequence[Any]) -> None:
        """Send a question to each process; `answers` must follow."""
        for pipe, argument in zip(self._pipes, arguments, strict=True):
            try:
                pipe.send((what, argument))
            except BrokenPipeError:
                list(self.answers())  # says why
                raise

    def answers(self) -> Iterator[Any]:
        """What each process says to the first question that waits; an error in one is raised here."""
        for pipe, process in zip(self._pipes, self._processes, strict=True):
            try:
                answer = pipe.recv()
            except (EOFError, ConnectionResetError):
                process.join(5)
                raise SwapcalError(
                    f"a process of this run has died (exit code {process.exitcode}); the same command goes on"
                ) from None
            if isinstance(answer, Exception):
                raise answer
            yield answer

    def close(self) -> None:
        """End the processes."""
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join(5)
            if process.is_alive():
                process.kill()
                process.join()
        self._folder.cleanup()

    def __enter__(self) -> "WorkerPool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_TOGETHER = 1 << 17
_AHEAD = 2
"""Rows that are handed out together, and how many such parts are out at a time."""

Path_ = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class ByKey:
    """What a run by key has come to: rows and keys, the seed, and the columns of hints and forecasts over all keys.

    `seconds` are those of processors, of this process and of all that it has started.
    """

    rows: int
    keys: int
    processes: int
    seconds: float
    seed: int
    before: Column | None
    after: Column

    def result(self, source: str, settings: dict[str, Any], r: float = 2.0) -> Result:
        """For JSON and a page: what the audits of all keys together come to, before and after."""
        said = {**settings, "keys": self.keys, "seed": self.seed}
        return merged_result(self.before, self.after, source=source, settings=said, r=r)

    def sentences(self) -> list[str]:
        """In words."""
        told = [
            f"{counted(self.rows)} of {counted(self.keys, 'key')} {'was' if self.rows == 1 else 'were'} forecast by "
            f"{counted(self.processes, 'process', 'processes')}, seed {self.seed}"
        ]
        for name, column in (("hint", self.before), ("forecasts", self.after)):
            if column is not None and column.n_rounds:
                root = (column.swap_error() / column.n_rounds) ** 0.5
                told.append(f"swap multicalibration error a row of the {name}, over all keys: {root:.4f}")
        return told


def run_by_key(
    source: Path_,
    question: TaskConfig,
    by: str,
    *,
    out: Path_ | None = None,
    state: Path_ | None = None,
    seed: int | None = None,
    processes: int | None = None,
    resident: int = 2000,
    learn: bool = False,
    max_pending: int | None = None,
    trust: float | None = None,
    levels: int = 10,
    fresh: bool = False,
    overwrite: bool = False,
    pause: float = 10.0,
    progress: Callable[[int], None] | None = None,
    stop: Callable[[], bool] | None = None,
    say: Callable[[str], None] | None = None,
) -> ByKey:
    """Forecast a table as one stream for each key, on all cores.

    Parameters
    ----------
    source : path
        A file.
    question : Question
        Which columns, which groups, which property; `p` is the hint.
    by : str
        The column of the keys; a row without one is an error.
    out : path, optional
        Forecasts of all rows in the order of the file: .csv, .jsonl or .parquet.
    state : path, optional
        A SQLite file that keeps how far the run has come; the same call then goes on.
    seed : int, optional
        Of the whole; that of a key is a hash of it and the key. None: drawn.
    processes : int, optional
        How many; one for each core that may be used by default.
    resident : int
        Keys that a process keeps in memory; others are on disk, in the folder for temporary files.
    learn : bool
        Put a model that learns between a key's hint and its engine.
    max_pending : int, optional
        How many rows of a key can wait for their outcomes. None: 64, or 4,096 where outcomes are known late.
    trust, levels
        As for `Forecaster`.
    fresh, overwrite, progress, stop, say
        As for `running.run`.
    pause : float
        Seconds between commits.

    Returns
    -------
    ByKey
        The audits of all keys together.

    Notes
    -----
    The forecasts of a key are those of a `Forecaster` alone with its rows, `keyed.sibling` of one template, whatever
    the number of processes. Memory: `resident` states a process, and a few hundred thousand rows.
    """
    if question.linear:
        raise InvalidInput(
            "--by plays groups of columns, without --linear: the scales of these columns would be those of a few rows "
            "of each key; cut them into bands, as --groups does"
        )
    if question.order != "arrival":
        raise InvalidInput("--by learns outcomes as they come, key by key; leave out --order forecast")
    if max_pending is None:
        max_pending = 4096 if question.late.given else 64
    columns = None if question.columns is None else (*dict.fromkeys((by, *question.columns)),)
    n_processes = integer(len(_cores()) if processes is None else processes, "processes", 1)
    kept = StateStore(state)
    team = None
    try:
        team = WorkerPool(n_processes)
        if fresh and state is not None:
            kept.close()
            os.remove(state)
            kept = StateStore(state)
        begun = kept.begun()
        asked = {**question.settings(), "by": by, "levels": levels, "trust": trust, "max_pending": max_pending}
        asked["learn"] = learn
        if begun is not None and begun["asked"] != asked:
            raise StateFileError(
                f"{state} was made with other settings; give another --state, or --fresh to start over"
            )
        with read(source, columns=columns) as records:
            first, rest = opening(records, question.prefix)
            template = _template(question, first, records.name, begun, seed, trust, levels, max_pending, learn)
            scores = [Column.from_bytes(each) for each in kept.audits()]
            if not scores:
                known = np.concatenate([known_outcomes(question, batch, records.name) for batch in first])
                functions = forecaster_for_key(template, "audit").hypotheses
                scores = [mergeable_column(template.property, functions, BINS, known) for _ in range(2)]
            team.begin(template.to_bytes(), resident, scores[0].emptied().to_bytes())
            job = _Job(question, by, columns, first, records, template, asked, kept, team, scores)
            return job.run(chain(first, rest), out, begun, overwrite, pause, progress, stop, say)
    finally:
        kept.close()
        if team is not None:
            team.close()


def _cores() -> Collection[int]:
    """Those that this process may use."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)


def _keys(batch: Batch, by: str) -> Coded:
    column = batch[by]
    if not isinstance(column, Coded):
        values, codes = np.unique(column, return_inverse=True)
        column = Coded(np.where(np.isnan(column), -1, codes), tuple(values.tolist()))
    texts = [text(value) for value in column.values]
    missing = np.array([*(each is None for each in texts), True])[column.codes]
    if missing.any():
        at = batch.first + int(np.argmax(missing)) + 1
        raise DataError(
            f"row {at:,} of {batch.name} has no key: {by!r} is empty; leave such rows out, or fill the column"
        )
    return Coded(column.codes, tuple(str(each) for each in texts))


def _template(
    question: TaskConfig,
    first: list[Batch],
    source: str,
    begun: dict[str, Any] | None,
    seed: int | None,
    trust: float | None,
    levels: int,
    max_pending: int,
    learn: bool,
) -> Forecaster:
    if begun is not None:
        return Forecaster.from_bytes(bytes.fromhex(begun["template"]))
    hypotheses: Hypotheses = Finite(1, names=["all"])
    if question.groups:
        audience = ContextColumns.fitted(question, first)
        n = len(audience.groups.names) - 1
        hypotheses = audience.limited(question, min(question.limit, n + 16)).groups
    given: dict[str, Any] = {} if trust is None else {"trust": trust}
    given |= {"hint": OnlineRegression()} if learn else {}
    target = Columns(question, first, source).property
    return Forecaster(target, hypotheses, seed=seed, r=question.r, levels=levels, max_pending=max_pending, **given)


class _Asked(NamedTuple):
    """Batches that the processes play: as one part, and which of its rows each process has."""

    batches: list[Batch]
    part: Part
    where: list[IntArray]


class _Job:
    def __init__(
        self,
        question: TaskConfig,
        by: str,
        columns: tuple[str, ...] | None,
        first: list[Batch],
        records: Records,
        template: Forecaster,
        asked: dict[str, Any],
        kept: StateStore,
        team: WorkerPool,
        scores: list[Column],
    ) -> None:
        self.question, self.by, self.template, self.kept, self.team = question, by, template, kept, team
        self.scores = scores
        self.asked, self.owners, self.resumed, self.seconds = asked, KeyAssignment(len(team)), False, 0.0
        settled = min(sum(batch.n for batch in first), question.prefix)
        self.values = Columns(replace(question, prefix=settled), first, records.name)
        # Only who goes on later compares rows with those of before.
        self.fingerprint, self.n_rows = None if kept.path is None else Fingerprint(columns), 0
        self.last_time = -math.inf
        hypotheses: Any = template.hypotheses
        self.group_columns = tuple(getattr(hypotheses, "columns", ()))
        self.names = ("row", "forecast") if question.p is None else ("row", "before", "forecast")

    def run(
        self,
        batches: Iterator[Batch],
        out: Path_ | None,
        begun: dict[str, Any] | None,
        overwrite: bool,
        pause: float,
        progress: Callable[[int], None] | None,
        stop: Callable[[], bool] | None,
        say: Callable[[str], None] | None,
    ) -> ByKey:
        if begun is not None:
            self.resumed, batches = True, self._behind(batches, begun)
            if say is not None:
                say(f"going on after row {self.n_rows:,}")
        output = None
        if out is not None:
            position = None if begun is None else begun["output"]
            output = open_output(out, self.names, position, replace=overwrite)
            if begun is not None and begun["finished"]:
                self.kept.commit([], {**begun, "output": output.reopened(), "finished": False}, self._saved())
        try:
            last, parts, more, pressed = time.monotonic(), _together(batches), True, False
            waiting: deque[_Asked] = deque()
            while waiting or more:
                pressed = pressed or (stop is not None and stop())
                due = pressed or time.monotonic() - last > pause
                # A commit is of all that was asked, so nothing more is asked before it.
                while more and not due and len(waiting) < _AHEAD:
                    following = next(parts, None)
                    more = following is not None
                    if following is not None:
                        waiting.append(self._ask(following))
                if waiting:
                    self._take(waiting.popleft(), output)
                if progress is not None:
                    progress(self.n_rows)
                if due and not waiting:
                    self._commit(output)
                    last = time.monotonic()
                    if pressed:
                        raise Stopped(self.n_rows)
            self._commit(output, last=True)
        finally:
            if output is not None:
                output.close()
        before, after = self.scores
        sides = None if self.question.p is None else before, after
        n_keys = len(self.owners) if self.kept.path is None else len(self.kept)
        seed = self.template.rules.seed
        return ByKey(self.n_rows, n_keys, len(self.team), self.seconds, seed, *sides)

    def _ask(self, some: list[Batch]) -> _Asked:
        """Hand out some rows: to each process those of its keys, and the states from before of keys that are new."""
        part = _joined([self._part(batch) for batch in some])
        owners, fresh = self.owners.deal(part.keys)
        owner = owners[part.keys.codes]
        where = [np.flatnonzero(owner == process) for process in range(len(self.team))]
        states: list[list[tuple[str, bytes]]] = [[] for _ in where]
        if self.resumed:
            places = dict(zip(part.keys.values, owners.tolist(), strict=True))
            for key, state in self.kept.states(fresh):
                states[places[key]].append((key, state))
        self.team.ask("play", [(part.taken(rows), old) for rows, old in zip(where, states, strict=True)])
        return _Asked(some, part, where)

    def _take(self, asked: _Asked, output: Output | None) -> None:
        """The answers to what was asked first."""
        forecasts = np.empty(len(asked.part.y))
        for rows, found in zip(asked.where, self.team.answers(), strict=True):
            forecasts[rows] = found
        if output is not None:
            first = asked.batches[0].first + 1
            before = {} if asked.part.hints is None else {"before": asked.part.hints}
            output.append({"row": np.arange(first, first + len(forecasts)), **before, "forecast": forecasts})
        self.n_rows += len(forecasts)
        if self.fingerprint is not None:
            for batch in asked.batches:
                self.fingerprint.add(batch)

    def _part(self, batch: Batch) -> Part:
        p = self.question.p
        hints = None if p is None else self.values.forecasts(batch, p)
        y, weights, more = self.values.labels(batch), self.values.weights(batch), dict[str, Float64Array]()
        if weights is not None:
            y = np.where(weights > 0.0, y, np.nan)  # rows of no weight are forecast, and not learned from
            more["weights"] = weights
        if self.question.late.given:
            more["times"], more["known"] = self.question.late.moments(batch, self.last_time)
            self.last_time = float(more["times"][-1]) if batch.n else self.last_time
        return Part(_keys(batch, self.by), y, hints, {n: batch[n] for n in self.group_columns}, more)

    def _saved(self) -> tuple[bytes, bytes]:
        before, after = self.scores
        return before.to_bytes(), after.to_bytes()

    def _commit(self, output: Output | None, *, last: bool = False) -> None:
        self.team.ask("commit", [None] * len(self.team))
        position = None if output is None else output.finish() if last else output.commit()
        states: list[tuple[str, bytes]] = []
        self.seconds = time.process_time()
        for some, *parts, seconds in self.team.answers():
            states += some
            self.seconds += seconds
            for total, part in zip(self.scores, parts, strict=True):
                total.merge(Column.from_bytes(part))
        digest = None if self.fingerprint is None else self.fingerprint.value()
        plain = {"asked": self.asked, "rows": self.n_rows, "digest": digest, "output": position}
        plain["finished"] = last
        plain["template"] = self.template.to_bytes().hex()
        self.kept.commit(states, plain, self._saved())

    def _behind(self, batches: Iterator[Batch], begun: dict[str, Any]) -> Iterator[Batch]:
        """The batches behind the rows that are done, which must be the same rows as then."""
        ahead: list[Batch] = []
        while self.n_rows < begun["rows"] and (batch := next(batches, None)) is not None:
            left = min(begun["rows"] - self.n_rows, batch.n)
            assert self.fingerprint is not None
            self.fingerprint.add(batch.cut(0, left))
            if self.question.late.given:
                self.last_time = float(self.question.late.moments(batch.cut(0, left), self.last_time)[0][-1])
            self.n_rows += left
            if left < batch.n:
                ahead.append(batch.cut(left, batch.n))
        if self.n_rows < begun["rows"] or self.fingerprint is None or self.fingerprint.value() != begun["digest"]:
            raise StateFileError(
                f"the first {begun['rows']:,} rows are not those that {self.kept.path} has seen; give the file it was "
                "made with, another --state, or --fresh to start over"
            )
        return chain(ahead, batches)


def _together(batches: Iterator[Batch]) -> Iterator[list[Batch]]:
    some: list[Batch] = []
    for batch in batches:
        some.append(batch)
        if sum(each.n for each in some) >= _TOGETHER:
            yield some
            some = []
    if some:
        yield some


def _joined(parts: list[Part]) -> Part:
    if len(parts) == 1:
        return parts[0]
    columns = {name: _concatenated([part.columns[name] for part in parts]) for name in parts[0].columns}
    keys = _concatenated([part.keys for part in parts])
    assert isinstance(keys, Coded)
    hints = None
    if parts[0].hints is not None:
        hints = np.concatenate([part.hints for part in parts if part.hints is not None])
    more = {name: np.concatenate([part.more[name] for part in parts]) for name in parts[0].more}
    return Part(keys, np.concatenate([part.y for part in parts]), hints, columns, more)


def _concatenated(columns: list[Any]) -> Any:
    if not any(isinstance(column, Coded) for column in columns):
        return np.concatenate(columns)
    places: dict[Any, int] = {}
    codes = []
    for column in columns:
        if not isinstance(column, Coded):
            column = Coded(np.where(np.isnan(column), -1, np.arange(len(column))), tuple(column.tolist()))
        table = np.array([*(places.setdefault(value, len(places)) for value in column.values), -1], dtype=np.int64)
        codes.append(table[column.codes])
    return Coded(np.concatenate(codes), tuple(places))

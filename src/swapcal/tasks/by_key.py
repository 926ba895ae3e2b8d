"""`swapcal run --by`: every key's rows forecast from the rows of that key before them, on all cores."""

import contextlib
import multiprocessing
import os
import sys
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from swapcal import hypotheses
from swapcal.audits.column import Column
from swapcal.audits.scores import Paired, PairedLosses
from swapcal.classes import Classes
from swapcal.engine.kernels import seed_for
from swapcal.errors import InvalidInput, StateFileError, SwapcalError
from swapcal.forecaster import Forecaster
from swapcal.hints import OnlineRegression
from swapcal.hypotheses import Finite
from swapcal.hypotheses.groups import Groups
from swapcal.inputs import integer
from swapcal.intervals.interval import Interval
from swapcal.keyed.keyed import MOST_FULL, forecaster_for_key, key_text
from swapcal.keyed.store import ScratchStore, StateStore
from swapcal.protocols import Hypotheses, Rows
from swapcal.sparse import sliced
from swapcal.tables.batch import Batch, Coded, Fingerprint, by_value, taken, text
from swapcal.tables.records import joined, opening, read
from swapcal.tasks.audit import BINS, mergeable_column, merged_result
from swapcal.tasks.checkpoint import START_OVER, Checkpoint
from swapcal.tasks.classes import ClassesTask
from swapcal.tasks.columns import known_outcomes, wrong_row
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.evaluation import ContextColumns, binning
from swapcal.tasks.interval import IntervalTask
from swapcal.tasks.outputs import Output, open_output
from swapcal.tasks.result import Counts, Result
from swapcal.tasks.runner import TASKS, Stopped, behind
from swapcal.tasks.scalar import ScalarTask
from swapcal.tasks.task import Inputs, Task
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
    clusters: IntArray | None = None

    @property
    def contexts(self) -> Any:
        """As a model takes them: the columns of the groups, or all rows."""
        return self.columns if self.columns else np.ones((len(self.y), 1))

    def taken(self, rows: IntArray | slice) -> "Part":
        """Some of the rows."""
        columns = {name: taken(column, rows) for name, column in self.columns.items()}
        hints = None if self.hints is None else self.hints[rows]
        more = {name: each[rows] for name, each in self.more.items()}
        clusters = None if self.clusters is None else self.clusters[rows]
        return Part(Coded(self.keys.codes[rows], self.keys.values), self.y[rows], hints, columns, more, clusters)


class KeyModels(NamedTuple):
    """How the model of a key is made: all have one configuration, and seeds that follow from one seed and the key.

    task: what a row gets. plain: for intervals and classes, what their constructor takes. template: for one number, the
    bytes of a forecaster that plays no round. column: the bytes of a column without rows, as which its forecasts are
    scored. functions: the class of functions, as plain data. order: in which late outcomes are learned.
    """

    task: str
    seed: int
    plain: dict[str, Any]
    template: str
    column: str
    functions: dict[str, Any]
    order: str

    @classmethod
    def of(cls, task: Task, first: list[Batch]) -> "KeyModels":
        """For the keys of a task."""
        config, functions = task.config, cast(Hypotheses, Finite(1, names=["all"]))
        if config.groups:
            contexts = ContextColumns.fitted(config, first)
            functions = contexts.limited(config, min(config.limit, len(contexts.groups.names) + 15)).groups
        plain: dict[str, Any] = {"max_pending": config.max_pending, **config.given("protect", "budget")}
        template, column, seed = "", "", task.seed
        if isinstance(task, ScalarTask):
            one = config.forecaster(task.columns.property, functions, found=task.columns.found, levels=config.levels)
            template, seed, plain = one.to_bytes().hex(), one.rules.seed, {}
            known = np.concatenate([known_outcomes(config, batch) for batch in first])
            groups = forecaster_for_key(one, "audit").hypotheses
            found = None
            if config.p is not None:
                hints = np.concatenate([batch.numbers(config.p) for batch in first])[: config.prefix]
                found = binning(one.property, np.clip(hints[~np.isnan(hints)], *one.property.domain), None)
            edges, shown = (BINS, None) if found is None else (found.audit_bins, found.shown)
            clustered = task.clusters is not None
            made = mergeable_column(
                one.property, groups, edges, known, shown, clustered=clustered, anytime=config.anytime
            )
            column = made.to_bytes().hex()
        elif isinstance(task, IntervalTask):
            plain |= {"coverage": task.model.coverage, "spread": task.model.spread}
            plain |= {"low": config.low, "high": config.high, "learn": config.learns}
        elif isinstance(task, ClassesTask):
            plain |= {"n_classes": task.model.n_classes, "learn": config.learns}
        return cls(config.task, seed, plain, template, column, dict(functions.spec()), config.order)

    def columns(self) -> list[Column]:
        """For one number, the columns of hints and of forecasts, without rows."""
        columns = [Column.from_bytes(bytes.fromhex(self.column)) for _ in range(2)] if self.column else []
        for after in columns[1:]:
            after.adaptive = True
        return columns

    def forecaster(self) -> Forecaster | None:
        """For one number, the forecaster whose settings every key has."""
        return Forecaster.from_bytes(bytes.fromhex(self.template)) if self.template else None

    def fresh(self, key: str, template: Forecaster | None) -> Any:
        """The model of a key that has seen nothing; `template` is what `forecaster` gave."""
        if template is not None:
            return forecaster_for_key(template, "key", key_text(key))
        plain = {**self.plain, "seed": seed_for(self.seed, "key", key_text(key))}
        functions = hypotheses.from_spec(self.functions)
        if self.task == "interval":
            return Interval(plain.pop("coverage"), functions, **plain)
        learn = plain.pop("learn")
        return Classes(
            plain.pop("n_classes"), functions, hint=OnlineRegression(most_full=MOST_FULL) if learn else None, **plain
        )

    def load(self, data: bytes) -> Any:
        """The model whose bytes these are."""
        kinds: dict[str, Any] = {"scalar": Forecaster, "interval": Interval, "classes": Classes}
        return kinds[self.task].from_bytes(data)

    def run(self, model: Any, part: "Part", contexts: Any) -> Float64Array:
        """The forecasts of some rows of one key, which are learned from; `contexts` as a model takes them."""
        if self.task == "scalar":
            part.more["missing"] = "skip"
        play = model.run_in_full if self.task == "classes" else model.run
        forecasts: Float64Array = play(contexts, part.y, part.hints, order=self.order, **part.more)
        return forecasts


class KeyWorker:
    """Models by key, the ones used longest ago as bytes on disk; and for one number the audits of what was played.

    Parameters
    ----------
    models : KeyModels
        How the model of a key is made.
    resident : int
        How many keys stay in memory.
    """

    def __init__(self, models: KeyModels, resident: int) -> None:
        self._models, self._resident = models, resident
        self._entries: OrderedDict[str, Any] = OrderedDict()
        self._store, self._dirty, self._spilled = ScratchStore(), dict[str, None](), False
        self._template = models.forecaster()
        self._columns, self._pairs, self._changed = models.columns(), PairedLosses(), 0

    def play(self, part: Part, states: list[tuple[str, bytes]], last: bool) -> Float64Array:
        """The forecasts of some rows, in their order; keys that come for the first time may have states from before.

        After the `last` rows nobody asks for a state.
        """
        if states:
            self._store.put([(key, 0.0, state) for key, state in states])
            self._spilled = True
        if not len(part.y):
            return np.empty(0)
        order = np.argsort(part.keys.codes, kind="stable")
        ordered, forecasts = part.taken(order), []
        starts = np.flatnonzero(np.diff(ordered.keys.codes, prepend=-2)).tolist()
        rows, settled = self._settled_rows(ordered)
        for first, end in pairwise([*starts, len(order)]):
            key = str(part.keys.values[ordered.keys.codes[first]])
            own = ordered.taken(slice(first, end))
            contexts = sliced(rows, first, end) if rows is not None and settled[first:end].all() else own.contexts
            model = self._model(key)
            forecasts.append(self._models.run(model, own, contexts))
            if not last:
                self._keep(key, model)
        out = np.empty_like(np.concatenate(forecasts))
        out[order] = np.concatenate(forecasts)
        self._score(part, out)
        return out

    def _settled_rows(self, part: Part) -> tuple[Rows | None, npt.NDArray[np.bool_]]:
        """The rows of all keys at once, and which of them are so for every key; to read each key's takes long."""
        groups = None if self._template is None else self._template.hypotheses
        if not isinstance(groups, Groups):
            return None, np.empty(0, dtype=np.bool_)
        return groups.settled_rows(part.columns, len(part.y))

    def _score(self, part: Part, out: Float64Array) -> None:
        """Add rows to the audits of hints and of forecasts, and to their losses on the same rows."""
        losses = []
        for column, p in zip(self._columns, (part.hints, out), strict=False):
            if p is None:
                continue
            at = np.flatnonzero(~(np.isnan(part.y) | np.isnan(p)))
            known, each = part.taken(at), np.full(len(p), np.nan)
            if len(at):
                groups = column.functions.rows(known.contexts, len(at))
                weights = known.more.get("weights")
                each[at] = column.add(known.y, p[at], groups, weights=weights, clusters=known.clusters)
            losses.append(each)
        if len(losses) == 2:
            both, weights = ~np.isnan(losses[0] + losses[1]), part.more.get("weights")
            before, after = (each[both] for each in losses)
            self._pairs.add(before, after, None if weights is None else weights[both])
            self._changed += int(np.count_nonzero((out != np.asarray(part.hints))[both]))

    def commit(self, keep: bool) -> tuple[list[tuple[str, bytes]], list[bytes], PairedLosses, int, float]:
        """The states that have changed since, if somebody keeps them, audits of the rows since, processor seconds.

        Before the seconds stand the losses in pairs, and how many forecasts are not the model's own.
        """
        states = []
        for key in self._dirty if keep else ():
            model = self._entries.get(key)
            stored = self._store.get(key) if model is None else None
            states.append((key, model.to_bytes() if model is not None else b"" if stored is None else stored[1]))
        self._dirty = {}
        columns, pairs, changed = [column.to_bytes() for column in self._columns], self._pairs, self._changed
        self._columns, self._pairs, self._changed = self._models.columns(), PairedLosses(), 0
        return states, columns, pairs, changed, time.process_time()

    def _model(self, key: str) -> Any:
        model = self._entries.pop(key, None)
        if model is None:
            stored = self._store.get(key) if self._spilled else None
            model = self._models.fresh(key, self._template) if stored is None else self._models.load(stored[1])
        return model

    def _keep(self, key: str, model: Any) -> None:
        """For the next rows of the key, and for who asks for its state."""
        self._dirty[key], self._entries[key] = None, model
        while len(self._entries) > self._resident:
            oldest, left = self._entries.popitem(last=False)
            self._store.put([(oldest, 0.0, left.to_bytes())])
            self._spilled = True


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
            pipe.send(player.play(*argument) if what == "play" else player.commit(argument))
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
    """So many processes, each with a `KeyWorker`; they start while the caller goes on, and end with `close`.

    Questions are answered in their order, and further ones can be asked before the answers to the first are taken: so
    nobody waits for the slowest of each part.
    """

    def __init__(self, n: int) -> None:
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

    def begin(self, models: KeyModels, resident: int) -> None:
        """Tell every process what to play; comes first, and has no answer."""
        for pipe in self._pipes:
            pipe.send((models, resident))

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
                died = f"a process of this run has died (exit code {process.exitcode})"
                raise SwapcalError(f"{died}; the same command goes on") from None
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


# Rows that are handed out together, and seconds between commits.
TOGETHER, PAUSE = 1 << 17, 10.0
# To visit a key costs about as much as to play so many rows; where keys have fewer, more rows are handed out together.
ENOUGH, MOST = 20, 1 << 21
# How many such parts are out at a time.
_AHEAD = 2

Path_ = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class ByKey:
    """What a run by key has come to: rows and keys, the seed, and the audits of hints and forecasts over all keys.

    `seconds` are those of processors, of this process and of all that it has started.
    """

    rows: int
    keys: int
    processes: int
    seconds: float
    seed: int
    before: Column | None
    after: Column | None
    counts: Counts
    paired: Paired | None
    changed: int

    def result(self, source: str, config: TaskConfig) -> Result:
        """The verdict, before and after: what the audits of all keys together come to."""
        more: dict[str, Any] = {"counts": self.counts, "paired": self.paired}
        more["changed"] = None if self.before is None else self.changed
        return merged_result(self.before, self.after, source=source, config=replace(config, seed=self.seed), **more)

    @property
    def sentence(self) -> str:
        """Who has played what."""
        return (
            f"{counted(self.rows)} of {counted(self.keys, 'key')} {'was' if self.rows == 1 else 'were'} forecast by "
            f"{counted(self.processes, 'process', 'processes')}, seed {self.seed}"
        )


def run_by_key(
    source: Path_,
    config: TaskConfig,
    *,
    out: Path_ | None = None,
    state: Path_ | None = None,
    outcomes: Any = None,
    processes: int | None = None,
    resident: int = 2000,
    fresh: bool = False,
    overwrite: bool = False,
    pause: float | None = None,
    progress: Callable[[int], None] | None = None,
    stop: Callable[[], bool] | None = None,
    say: Callable[[str], None] | None = None,
) -> Any:
    """Forecast a table as one stream for each key, on all cores.

    Parameters
    ----------
    source : path
        A file.
    config : TaskConfig
        Which columns, which groups, which property; `by` is the column of the keys. The seed of a key is a hash of the
        seed and the key.
    out : path, optional
        Forecasts of all rows in the order of the file: .csv, .jsonl or .parquet.
    state : path, optional
        A SQLite file that keeps how far the run has come; the same call then goes on.
    outcomes
        Refused: keys have no rows that are named.
    processes : int, optional
        How many; one for each core that may be used by default.
    resident : int
        Keys that a process keeps in memory; others are on disk, in a temporary file without a name.
    fresh, overwrite, progress, stop, say
        As for `runner.run`.
    pause : float
        Seconds between commits; default `PAUSE`.

    Returns
    -------
    ByKey
        The audits of all keys together; of intervals and classes, what `runner.run` returns.

    Notes
    -----
    The forecasts of a key are those of a `Forecaster` alone with its rows, `forecaster_for_key` of one template,
    whatever the number of processes. Memory: `resident` states a process, and a few hundred thousand rows.
    """
    if config.by is None:
        raise InvalidInput("a run by key needs the column of the keys: give by= (--by)")
    if outcomes is not None:
        raise InvalidInput("--by cannot be combined with --outcomes: keys have no rows that are named")
    if config.max_pending is None:
        config = replace(config, max_pending=4096 if config.late else 64)
    n_processes = integer(len(_cores()) if processes is None else processes, "processes", 1)
    if fresh and state is not None and os.path.lexists(state):
        StateStore(state).close()  # which refuses a file that is something else
        os.remove(state)
    with contextlib.closing(StateStore(state)) as store, contextlib.closing(WorkerPool(n_processes)) as team:
        begun = store.begun()
        if begun is not None and begun["asked"] != config.settings():
            raise StateFileError(f"{state} was made with other settings; {START_OVER}")
        with read(source, columns=config.columns, batch_rows=TOGETHER) as records:
            records.lenient = config.bad_rows == "skip"
            first, rest = opening(records, config.prefix, records.name)
            task, batches = _resumed(config, first, rest, records.name, begun, store)
            models = KeyModels.of(task, first) if begun is None else KeyModels(**begun["models"])
            team.begin(models, resident)
            job = _Job(task, models, config, store, team, resumed=begun is not None)
            return job.run(batches, out, begun, overwrite, PAUSE if pause is None else pause, progress, stop, say)


def _cores() -> Collection[int]:
    """Those that this process may use."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)


def _keys(batch: Batch, by: str) -> Coded:
    column = by_value(batch[by])
    texts = [text(value) for value in column.values]
    empty = np.array([*(each is None for each in texts), True])[column.codes]
    if empty.any():
        raise wrong_row(batch, empty, f"has no key: {by!r} is empty; leave such rows out, or fill the column")
    return Coded(column.codes, tuple(str(each) for each in texts))


def _portions(batches: Iterator[Batch], by: str) -> Iterator[tuple[Batch, bool]]:
    """Batches, joined until their keys have enough rows on average; and whether they are known to be the last."""
    held: list[Batch] = []
    keys: set[str] = set()
    following = next(batches, None)
    while following is not None:
        held.append(following)
        keys.update(_keys(following, by).values)
        n, following = sum(batch.n for batch in held), next(batches, None)
        if following is None or n >= ENOUGH * len(keys) or n + following.n > MOST:
            yield joined(held), following is None
            held, keys = [], set()


def _resumed(
    config: TaskConfig,
    first: list[Batch],
    rest: Iterator[Batch],
    source: str,
    begun: dict[str, Any] | None,
    store: StateStore,
) -> tuple[Task, Iterator[Batch]]:
    """The task as it was left, and the batches behind the rows that are done."""
    kind = TASKS[config.task]
    batches: Iterator[Batch] = chain(first, rest)
    if begun is None:
        task = kind(config, first, source)
        if store.path is None:
            task.fingerprint = Fingerprint(())  # only who goes on later compares rows with those of before
        return task, batches
    saved = Checkpoint.from_bytes(store.audits()[1]) if config.task != "scalar" else None
    task = kind(config, first, source, saved)
    batches = behind(batches, task, begun["rows"], store.path, source)
    if task.digest() != begun["digest"]:
        raise StateFileError(f"the first {begun['rows']:,} rows are not those that {store.path} has seen; {START_OVER}")
    return task, batches


class _Asked(NamedTuple):
    """A batch that the processes play: as numbers, and which of its rows each process has."""

    batch: Batch
    inputs: Inputs
    where: list[IntArray]


class _Job:
    """A run by key: rows are read and scored here, and played by the processes."""

    def __init__(
        self, task: Task, models: KeyModels, asked: TaskConfig, store: StateStore, team: WorkerPool, *, resumed: bool
    ) -> None:
        self.task, self.models, self.asked, self.kept, self.team = task, models, asked, store, team
        self.owners, self.resumed, self.seconds = KeyAssignment(len(team)), resumed, 0.0
        self.done = task.n_rows
        self.columns, self.pairs, self.changed = models.columns(), PairedLosses(), 0
        self.group_columns = tuple(getattr(hypotheses.from_spec(models.functions), "columns", ()))

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
    ) -> Any:
        if self.models.task == "scalar" and begun is not None:
            self.columns = [Column.from_bytes(each) for each in self.kept.audits()]
            losses, self.changed = begun["losses"], begun["changed"]
            sums = np.array(losses["sums"]).reshape(4, -1)
            self.pairs.restore({"sums": sums, "length": np.array([losses["length"]])})
        if begun is not None and say is not None:
            say(f"going on after row {self.done:,}")
        output = None
        if out is not None:
            position = None if begun is None else begun["output"]
            claimed = begun is None and self.kept.claim(os.path.abspath(out))
            output = open_output(out, self.task.written, position, self.done, replace=overwrite, claimed=claimed)
            if begun is not None and begun["finished"]:
                plain = {**begun, "output": output.reopened(), "finished": False}
                self.kept.commit([], plain, self.kept.audits())
        try:
            last, committed, more, pressed = time.monotonic(), self.done, True, False
            waiting: deque[_Asked] = deque()
            portions = _portions(batches, self.task.config.by or "")
            while waiting or more:
                pressed = pressed or (stop is not None and stop())
                news = bool(waiting) or self.done > committed
                due = pressed or (news and time.monotonic() - last > pause)
                # A commit is of all that was asked, so nothing more is asked before it.
                while more and not due and len(waiting) < _AHEAD:
                    following = next(portions, None)
                    more = following is not None
                    if following is not None:
                        waiting.append(self._ask(*following))
                if waiting:
                    self._take(waiting.popleft(), output)
                if progress is not None:
                    progress(self.done)
                if due and not waiting:
                    self._commit(output)
                    last, committed = time.monotonic(), self.done
                    if pressed:
                        raise Stopped(self.done)
            self._commit(output, last=True)
        finally:
            if output is not None:
                output.close()
        n_keys = len(self.owners) if self.kept.path is None else len(self.kept)
        before, after = self.columns if self.columns else (None, None)
        before = before if self.task.config.model else None
        left_out = {"without_outcome": self.task.n_missing, "without_hint": self.task.n_unhinted}
        counts = Counts(0, self.done, bad_rows=self.task.n_bad, keys=n_keys, **left_out)
        done = (self.done, n_keys, len(self.team), self.seconds, self.models.seed)
        by_key = ByKey(*done, before, after, counts, self.pairs.paired(), self.changed)
        if say is not None:
            say(by_key.sentence)
        if self.models.task == "scalar":
            return by_key
        result = self.task.result(self.asked, None)
        return replace(result, counts=replace(result.counts, keys=n_keys))

    def _ask(self, batch: Batch, last: bool) -> _Asked:
        """Hand out some rows: to each process those of its keys, and the states from before of keys that are new."""
        inputs = self.task.count(batch)
        if inputs.weights is not None:  # rows of no weight are forecast, and not learned from
            inputs = inputs._replace(y=np.where(inputs.weights > 0.0, inputs.y, np.nan))
        part = self._part(batch, inputs)
        owners, fresh = self.owners.deal(part.keys)
        owner = owners[part.keys.codes]
        where = [np.flatnonzero(owner == process) for process in range(len(self.team))]
        states: list[list[tuple[str, bytes]]] = [[] for _ in where]
        if self.resumed:
            places = dict(zip(part.keys.values, owners.tolist(), strict=True))
            for key, state in self.kept.states(fresh):
                states[places[key]].append((key, state))
        last = last and self.kept.path is None
        self.team.ask("play", [(part.taken(rows), old, last) for rows, old in zip(where, states, strict=True)])
        return _Asked(batch, inputs, where)

    def _take(self, asked: _Asked, output: Output | None) -> None:
        """The answers to what was asked first."""
        batch, inputs = asked.batch, asked.inputs
        answers = [(rows, answer) for rows, answer in zip(asked.where, self.team.answers(), strict=True) if len(rows)]
        forecasts = np.empty((batch.n, *answers[0][1].shape[1:]))
        for rows, answer in answers:
            forecasts[rows] = answer
        if self.models.task != "scalar":
            forecasts = self.task.scored(inputs._replace(contexts=self.task.contexts.rows(batch)), forecasts)
        if output is not None:
            output.append(self.task.lines(batch, inputs, forecasts))
        self.done += batch.n

    def _part(self, batch: Batch, inputs: Inputs) -> Part:
        more = {**inputs.more, **self.task.more(batch, inputs)}
        more |= {} if inputs.weights is None else {"weights": inputs.weights}
        columns = {name: batch[name] for name in self.group_columns}
        return Part(_keys(batch, self.task.config.by or ""), inputs.y, inputs.hints, columns, more, inputs.clusters)

    def _commit(self, output: Output | None, *, last: bool = False) -> None:
        self.team.ask("commit", [self.kept.path is not None] * len(self.team))
        position = None if output is None else output.finish() if last else output.commit()
        states: list[tuple[str, bytes]] = []
        self.seconds = time.process_time()
        for some, parts, pairs, changed, seconds in self.team.answers():
            states += some
            self.seconds += seconds
            self.pairs.merge(pairs)
            self.changed += changed
            for total, part in zip(self.columns, parts, strict=True):
                total.merge(Column.from_bytes(part))
        if self.kept.path is None:
            return
        plain = {"asked": self.asked.settings(), "rows": self.done, "digest": self.task.digest(), "output": position}
        plain |= {"finished": last, "models": self.models._asdict(), "changed": self.changed}
        plain["losses"] = {"sums": self.pairs.sums.tolist(), "length": self.pairs.length}
        if self.models.task == "scalar":
            audits = self.columns[0].to_bytes(), self.columns[1].to_bytes()
        else:
            audits = b"", self.task.save(self.asked.settings(), None, position, finished=last).to_bytes()
        self.kept.commit(states, plain, audits)

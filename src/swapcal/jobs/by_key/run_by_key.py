"""`swapcal run --by`: every key's rows forecast from the rows of that key before them, on all cores."""

import math
import os
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from swapcal.audit import Audit
from swapcal.checked import whole
from swapcal.errors import DataError, InvalidInput, StateFileError
from swapcal.forecaster import Forecaster
from swapcal.hints import OnlineRegression
from swapcal.hypotheses import Finite
from swapcal.jobs.audience import Audience
from swapcal.jobs.auditing import opening
from swapcal.jobs.by_key.kept_keys import KeptKeys
from swapcal.jobs.by_key.owners import Owners
from swapcal.jobs.by_key.player import Part
from swapcal.jobs.by_key.team import Team
from swapcal.jobs.fingerprint import Fingerprint
from swapcal.jobs.merged_result import merged_result
from swapcal.jobs.outputs import Output, open_output
from swapcal.jobs.question import Question
from swapcal.jobs.result import Result
from swapcal.jobs.row_values import RowValues
from swapcal.jobs.running import Stopped
from swapcal.roles import Hypotheses
from swapcal.tables.coded import Coded, text
from swapcal.tables.records import Batch, Records, read
from swapcal.typing import Float64Array, IntArray
from swapcal.words.numbers import counted

__all__ = ["ByKey", "run_by_key"]

_BINS = 64
_TOGETHER = 1 << 17
_AHEAD = 2
"""Rows that are handed out together, and how many such parts are out at a time."""

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
    before: Audit | None
    after: Audit

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
        for name, audit in (("hint", self.before), ("forecasts", self.after)):
            if audit is not None and audit.n_rounds:
                root = (audit.swap_multicalibration() / audit.n_rounds) ** 0.5
                told.append(f"swap multicalibration error a row of the {name}, over all keys: {root:.4f}")
        return told


def run_by_key(
    source: Path_,
    question: Question,
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
    n_processes = whole(len(_cores()) if processes is None else processes, "processes", 1)
    kept = KeptKeys(state)
    team = None
    try:
        team = Team(n_processes)
        if fresh and state is not None:
            kept.close()
            os.remove(state)
            kept = KeptKeys(state)
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
            team.begin(template.to_bytes(), resident, _BINS)
            job = _Job(question, by, columns, first, records, template, asked, kept, team)
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
    question: Question,
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
        audience = Audience.fitted(question, first)
        n = len(audience.groups.names) - 1
        hypotheses = audience.limited(question, min(question.limit, n + 16)).groups
    given: dict[str, Any] = {} if trust is None else {"trust": trust}
    given |= {"hint": OnlineRegression()} if learn else {}
    target = RowValues(question, first, source).property
    return Forecaster(target, hypotheses, seed=seed, r=question.r, levels=levels, max_pending=max_pending, **given)


class _Asked(NamedTuple):
    """Batches that the processes play: as one part, and which of its rows each process has."""

    batches: list[Batch]
    part: Part
    where: list[IntArray]


class _Job:
    def __init__(
        self,
        question: Question,
        by: str,
        columns: tuple[str, ...] | None,
        first: list[Batch],
        records: Records,
        template: Forecaster,
        asked: dict[str, Any],
        kept: KeptKeys,
        team: Team,
    ) -> None:
        self.question, self.by, self.template, self.kept, self.team = question, by, template, kept, team
        self.asked, self.owners, self.resumed, self.seconds = asked, Owners(len(team)), False, 0.0
        settled = min(sum(batch.n for batch in first), question.prefix)
        self.values = RowValues(replace(question, prefix=settled), first, records.name)
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
        audits = [Audit.from_bytes(each) for each in self.kept.audits()]
        if begun is not None:
            self.resumed, batches = True, self._behind(batches, begun)
            if say is not None:
                say(f"going on after row {self.n_rows:,}")
        output = None
        if out is not None:
            position = None if begun is None else begun["output"]
            output = open_output(out, self.names, position, replace=overwrite)
            if begun is not None and begun["finished"]:
                kept = audits[0].to_bytes(), audits[1].to_bytes()
                self.kept.commit([], {**begun, "output": output.reopened(), "finished": False}, kept)
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
                    self._commit(audits, output)
                    last = time.monotonic()
                    if pressed:
                        raise Stopped(self.n_rows)
            self._commit(audits, output, last=True)
        finally:
            if output is not None:
                output.close()
        before = None if self.question.p is None else audits[0]
        n_keys = len(self.owners) if self.kept.path is None else len(self.kept)
        seed = self.template.rules.seed
        return ByKey(self.n_rows, n_keys, len(self.team), self.seconds, seed, before, audits[1])

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

    def _commit(self, audits: list[Audit], output: Output | None, *, last: bool = False) -> None:
        self.team.ask("commit", [None] * len(self.team))
        position = None if output is None else output.finish() if last else output.commit()
        states: list[tuple[str, bytes]] = []
        self.seconds = time.process_time()
        for some, *parts, seconds in self.team.answers():
            states += some
            self.seconds += seconds
            found = [Audit.from_bytes(part) for part in parts]
            if not audits:
                audits += found
            else:
                for total, part in zip(audits, found, strict=True):
                    total.merge(part)
        digest = None if self.fingerprint is None else self.fingerprint.value()
        plain = {"asked": self.asked, "rows": self.n_rows, "digest": digest, "output": position}
        plain["finished"] = last
        plain["template"] = self.template.to_bytes().hex()
        self.kept.commit(states, plain, (audits[0].to_bytes(), audits[1].to_bytes()))

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

"""`swapcal run --by`: every key's rows forecast from the rows of that key before them, on all cores."""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from swapcal.audit import Audit
from swapcal.checked import whole
from swapcal.errors import DataError, InvalidInput, StateFileError
from swapcal.forecaster import Forecaster
from swapcal.hypotheses import Finite
from swapcal.jobs.audience import Audience
from swapcal.jobs.auditing import opening
from swapcal.jobs.by_key.kept_keys import KeptKeys
from swapcal.jobs.by_key.player import Part
from swapcal.jobs.by_key.shares import shares
from swapcal.jobs.by_key.team import Team
from swapcal.jobs.fingerprint import Fingerprint
from swapcal.jobs.outputs import Output, open_output
from swapcal.jobs.question import Question
from swapcal.jobs.row_values import RowValues
from swapcal.jobs.running import Stopped
from swapcal.roles import Hypotheses
from swapcal.tables.coded import Coded, text
from swapcal.tables.records import Batch, Records, read
from swapcal.typing import IntArray

__all__ = ["ByKey", "run_by_key"]

_BINS = 64
_TOGETHER = 1 << 17
"""Rows that are handed out together."""

Path_ = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class ByKey:
    """What a run by key has come to: rows and keys, the seed, and the audits of hints and forecasts over all keys."""

    rows: int
    keys: int
    processes: int
    seed: int
    before: Audit | None
    after: Audit

    def sentences(self) -> list[str]:
        """In words."""
        told = [
            f"{self.rows:,} rows of {self.keys:,} keys were forecast by {self.processes} processes, seed {self.seed}"
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
    max_pending: int = 64,
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
        A file, which is read twice: first for the number of rows of each key, then to play them.
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
        How many; all cores by default.
    resident : int
        Keys that a process keeps in memory; others are on disk, in the folder for temporary files.
    max_pending, trust, levels
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
    if question.linear or question.weight or question.late.given:
        raise InvalidInput("--by plays groups of columns, without --linear, --weight, --known and --delay")
    columns = None if question.columns is None else (*dict.fromkeys((by, *question.columns)),)
    n_processes = whole(os.cpu_count() or 1 if processes is None else processes, "processes", 1)
    rows = _counted(source, by)
    chosen = shares(rows, n_processes)
    kept = KeptKeys(state)
    try:
        if fresh and state is not None:
            kept.close()
            os.remove(state)
            kept = KeptKeys(state)
        begun = kept.begun()
        asked = {**question.settings(), "by": by, "levels": levels, "trust": trust, "max_pending": max_pending}
        if begun is not None and begun["asked"] != asked:
            raise StateFileError(
                f"{state} was made with other settings; give another --state, or --fresh to start over"
            )
        with read(source, columns=columns) as records:
            first, rest = opening(records, question.prefix)
            template = _template(question, first, records.name, begun, seed, trust, levels, max_pending)
            job = _Job(
                question,
                by,
                columns,
                first,
                records,
                template,
                asked,
                kept,
                chosen,
                max(1, min(len(rows), n_processes)),
            )
            return job.run(chain(first, rest), out, begun, overwrite, resident, pause, progress, stop, say)
    finally:
        kept.close()


def _counted(source: Path_, by: str) -> Counter[str]:
    """How many rows each key has."""
    rows: Counter[str] = Counter()
    with read(source, columns=[by]) as records:
        for batch in records:
            keys = _keys(batch, by)
            counts = np.bincount(keys.codes, minlength=len(keys.values))
            rows.update({key: int(n) for key, n in zip(keys.values, counts.tolist(), strict=True) if n})
    return rows


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
) -> Forecaster:
    if begun is not None:
        return Forecaster.from_bytes(bytes.fromhex(begun["template"]))
    hypotheses: Hypotheses = Finite(1, names=["all"])
    if question.groups:
        audience = Audience.fitted(question, first)
        n = len(audience.groups.names) - 1
        hypotheses = audience.limited(question, min(question.limit, n + 16)).groups
    given: dict[str, Any] = {} if trust is None else {"trust": trust}
    target = RowValues(question, first, source).property
    return Forecaster(target, hypotheses, seed=seed, r=question.r, levels=levels, max_pending=max_pending, **given)


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
        chosen: dict[str, int],
        n_processes: int,
    ) -> None:
        self.question, self.by, self.template, self.kept, self.chosen = question, by, template, kept, chosen
        self.asked, self.n_processes, self.n_keys = asked, n_processes, len(chosen)
        settled = min(sum(batch.n for batch in first), question.prefix)
        self.values = RowValues(replace(question, prefix=settled), first, records.name)
        self.fingerprint, self.n_rows = Fingerprint(columns), 0
        hypotheses: Any = template.hypotheses
        self.group_columns = tuple(getattr(hypotheses, "columns", ()))
        self.names = ("row", "forecast") if question.p is None else ("row", "before", "forecast")

    def run(
        self,
        batches: Iterator[Batch],
        out: Path_ | None,
        begun: dict[str, Any] | None,
        overwrite: bool,
        resident: int,
        pause: float,
        progress: Callable[[int], None] | None,
        stop: Callable[[], bool] | None,
        say: Callable[[str], None] | None,
    ) -> ByKey:
        audits = [Audit.from_bytes(each) for each in self.kept.audits()]
        with Team(self.n_processes, self.template.to_bytes(), resident, _BINS) as team:
            if begun is not None:
                self._hand_out(team)
                batches = self._behind(batches, begun)
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
                last = time.monotonic()
                for asked, some in self._played(team, batches):
                    if output is not None:
                        output.append(some)
                    self.n_rows += len(some["row"])
                    for batch in asked:
                        self.fingerprint.add(batch)
                    pressed = stop is not None and stop()
                    if pressed or time.monotonic() - last > pause:
                        self._commit(team, audits, output)
                        last = time.monotonic()
                    if progress is not None:
                        progress(self.n_rows)
                    if pressed:
                        raise Stopped(self.n_rows)
                self._commit(team, audits, output, last=True)
            finally:
                if output is not None:
                    output.close()
        before = None if self.question.p is None else audits[0]
        return ByKey(self.n_rows, self.n_keys, self.n_processes, self.template.rules.seed, before, audits[1])

    def _played(self, team: Team, batches: Iterator[Batch]) -> Iterator[tuple[list[Batch], dict[str, Any]]]:
        """Batches with the columns of the output; while the processes play some rows, the next are read."""
        ahead = (self._shared(some, len(team)) for some in _together(batches))
        following = next(ahead, None)
        while following is not None:
            some, part, where = following
            team.ask("play", [part.taken(rows) for rows in where])
            following = next(ahead, None)
            forecasts = np.empty(len(part.y))
            for rows, found in zip(where, team.answers(), strict=True):
                forecasts[rows] = found
            numbers = np.arange(some[0].first + 1, some[0].first + len(forecasts) + 1)
            before = {} if part.hints is None else {"before": part.hints}
            yield some, {"row": numbers, **before, "forecast": forecasts}

    def _shared(self, some: list[Batch], n: int) -> tuple[list[Batch], Part, list[IntArray]]:
        """Some batches as one part, and which of its rows go to which process."""
        part = _joined([self._part(batch) for batch in some])
        owners = np.array([self.chosen.get(str(key), 0) % n for key in part.keys.values], dtype=np.int64)
        owner = owners[part.keys.codes]
        return some, part, [np.flatnonzero(owner == process) for process in range(n)]

    def _part(self, batch: Batch) -> Part:
        p = self.question.p
        hints = None if p is None else self.values.forecasts(batch, p)
        return Part(_keys(batch, self.by), self.values.labels(batch), hints, {n: batch[n] for n in self.group_columns})

    def _commit(self, team: Team, audits: list[Audit], output: Output | None, *, last: bool = False) -> None:
        position = None if output is None else output.finish() if last else output.commit()
        team.ask("commit", [None] * len(team))
        states: list[tuple[str, bytes]] = []
        for some, *parts in team.answers():
            states += some
            found = [Audit.from_bytes(part) for part in parts]
            if not audits:
                audits += found
            else:
                for total, part in zip(audits, found, strict=True):
                    total.merge(part)
        plain = {"asked": self.asked, "rows": self.n_rows, "digest": self.fingerprint.value(), "output": position}
        plain["finished"] = last
        plain["template"] = self.template.to_bytes().hex()
        self.kept.commit(states, plain, (audits[0].to_bytes(), audits[1].to_bytes()))

    def _hand_out(self, team: Team) -> None:
        """The states from before, each to the process that plays its key now."""
        lists: list[list[tuple[str, bytes]]] = [[] for _ in range(len(team))]
        for key, state in self.kept.states():
            lists[self.chosen.get(key, 0) % len(team)].append((key, state))
        team.ask("put", lists)
        list(team.answers())

    def _behind(self, batches: Iterator[Batch], begun: dict[str, Any]) -> Iterator[Batch]:
        """The batches behind the rows that are done, which must be the same rows as then."""
        ahead: list[Batch] = []
        while self.n_rows < begun["rows"] and (batch := next(batches, None)) is not None:
            left = min(begun["rows"] - self.n_rows, batch.n)
            self.fingerprint.add(batch.cut(0, left))
            self.n_rows += left
            if left < batch.n:
                ahead.append(batch.cut(left, batch.n))
        if self.n_rows < begun["rows"] or self.fingerprint.value() != begun["digest"]:
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
    return Part(keys, np.concatenate([part.y for part in parts]), hints, columns)


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

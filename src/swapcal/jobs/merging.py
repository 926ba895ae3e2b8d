"""Audits of many files that add up: each file by itself, on all cores or on another machine, and then their sum."""

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from swapcal.audit import Audit
from swapcal.errors import InvalidInput
from swapcal.jobs.audience import Audience
from swapcal.jobs.auditing import opening
from swapcal.jobs.by_key.player import taken
from swapcal.jobs.question import Question
from swapcal.jobs.row_values import RowValues
from swapcal.replacing import replacing
from swapcal.tables.records import read
from swapcal.words.numbers import counted

__all__ = ["ENDING", "merge_audits", "merged_sentences"]

ENDING = ".audit"
BINS = 64
"""A power of two: mid-points on [0, 1] are exact, and with outcomes 0 and 1 so is every sum."""

_SMALL = 1 << 22
"""Bytes of tables that are read in this process: 4 MB take less time than the start of another one."""


def merge_audits(
    files: Sequence[str],
    question: Question,
    *,
    save: str | os.PathLike[str] | None = None,
    processes: int | None = None,
) -> Audit:
    """The audit of all rows of several files together.

    Parameters
    ----------
    files : sequence of str
        Tables, and audits that were saved here or elsewhere, which end in .audit.
    question : Question
        Which columns, which groups, which property; for tables. What is not given, the range of outcomes and the bands
        of numbers, is settled by the first saved audit, or by the first rows of the first table.
    save : path, optional
        Where to keep the sum: a file that can be added to others.
    processes : int, optional
        How many tables are read at a time. Default: as many as there are cores, and one if all of them together are
        small, as a process takes longer to start than a few megabytes take to read.

    Returns
    -------
    Audit
        With 64 bins of forecasts if the question names no number; counts are exact, in any order of the files.
    """
    if question.p is None or question.linear or question.weight:
        raise InvalidInput("--merge adds up audits of --p over --groups, without --linear and --weight")
    stored = [Audit.from_bytes(Path(name).read_bytes()) for name in files if name.endswith(ENDING)]
    tables = [name for name in files if not name.endswith(ENDING)]
    empty = _empty(stored[0]) if stored else _settled(tables[0], question)
    # The range and the bands are those of `empty`, so that parts can be added up.
    asked = replace(question, low=empty.property.low, high=empty.property.high)
    total = Audit.from_bytes(empty.to_bytes())
    for part in stored:
        total.merge(part)
    n = min(len(tables), _processes(tables) if processes is None else processes)
    arguments = [(name, asked, empty.to_bytes()) for name in tables]
    if n > 1:
        with ProcessPoolExecutor(n, mp_context=get_context("spawn")) as pool:
            parts = list(pool.map(_partial, arguments))
    else:
        parts = [_partial(each) for each in arguments]
    for data in parts:
        total.merge(Audit.from_bytes(data))
    if save is not None:
        if not str(save).endswith(ENDING):
            raise InvalidInput(f"an audit is saved in a file that ends in {ENDING}; got {str(save)!r}")
        with replacing(save) as file:
            file.write(total.to_bytes())
    return total


def _processes(tables: Sequence[str]) -> int:
    small = all(os.path.isfile(name) for name in tables) and sum(map(os.path.getsize, tables)) < _SMALL
    return 1 if small else os.cpu_count() or 1


def merged_sentences(audit: Audit, n_files: int) -> list[str]:
    """What the sum says: totals, and the worst cells with intervals that hold together."""
    if not audit.n_rounds:
        return [
            f"{counted(n_files, 'file')} {'has' if n_files == 1 else 'have'} no row with both an outcome and a forecast"
        ]
    share = audit.swap_multicalibration() / audit.n_rounds
    files, groups = counted(n_files, "file"), counted(len(audit.function_names), "group")
    told = [f"{counted(audit.n_rounds)} of {files}, {groups}"]
    told.append(f"swap multicalibration error a row: {share**0.5:.4f}")
    told.append(str(audit.witness()))
    return told


def _empty(audit: Audit) -> Audit:
    bins = audit.bins.tolist() if isinstance(audit.bins, np.ndarray) else audit.bins
    return Audit(audit.property, audit.hypotheses, bins=bins, names=audit.names)


def _settled(table: str, question: Question) -> Audit:
    with read(table, columns=question.columns) as records:
        first, _ = opening(records, question.prefix)
        target = RowValues(question, first, records.name).property
        groups = Audience.fitted(question, first).groups if question.groups else None
    return Audit(target, groups, bins=BINS if question.bins is None else question.bins)


def _partial(arguments: tuple[str, Question, bytes]) -> bytes:
    """The audit of one table; rows without an outcome or a forecast are left out."""
    table, question, empty = arguments
    audit = Audit.from_bytes(empty)
    hypotheses: Any = audit.hypotheses
    columns = () if hypotheses is None else hypotheses.columns
    with read(table, columns=question.columns) as records:
        first, rest = opening(records, question.prefix)
        values = RowValues(question, first, records.name)
        for batch in chain(first, rest):
            y, p = values.labels(batch), values.forecasts(batch, str(question.p))
            both = np.flatnonzero(~np.isnan(y) & ~np.isnan(p))
            x = None if hypotheses is None else {name: taken(batch[name], both) for name in columns}
            audit.update_many(y[both], p[both], x)
    return audit.to_bytes()

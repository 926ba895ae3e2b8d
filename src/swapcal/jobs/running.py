"""From records to better forecasts: every row is forecast from the rows before it, and the result is compared."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

from swapcal.audit.summary import summarize
from swapcal.checked import whole
from swapcal.decisions import lost, saved
from swapcal.errors import DataError, InvalidInput, StateFileError
from swapcal.jobs.auditing import opening, versions
from swapcal.jobs.before_after import DELTA, BeforeAfter
from swapcal.jobs.blank_rows import BlankRows
from swapcal.jobs.checkpoint import Checkpoint
from swapcal.jobs.guard import regular
from swapcal.jobs.kept_sums import understood
from swapcal.jobs.late_notes import late_sentences, time_column
from swapcal.jobs.output_and_state import RunFiles
from swapcal.jobs.question import Question
from swapcal.jobs.result import Result
from swapcal.jobs.run_state import LATER, Method, RunState
from swapcal.jobs.told_outcomes import ToldOutcomes
from swapcal.tables.records import Batch, Records, read
from swapcal.words.property_words import loss_name
from swapcal.words.quantities import guarantee_sentence
from swapcal.words.verdicts import verdict

__all__ = ["Stopped", "run"]

_HEAD = 1 << 20
"""Bytes of a file that are looked at to guess its number of rows."""

Path_ = str | os.PathLike[str]


class Stopped(KeyboardInterrupt):
    """The run was asked to stop, and has: `rows` rows are done, and kept if there is a state file."""

    def __init__(self, rows: int) -> None:
        super().__init__(f"stopped after {rows:,} rows")
        self.rows = rows


def run(
    source: Any,
    question: Question,
    *,
    hint: str | None = None,
    learn: bool = False,
    out: Path_ | None = None,
    state: Path_ | None = None,
    outcomes: Any = None,
    horizon: int | None = None,
    seed: int | None = None,
    trust: float | None = None,
    levels: int = 10,
    jitter: float | None = None,
    bins: int | None = None,
    fresh: bool = False,
    overwrite: bool = False,
    progress: Callable[[int], None] | None = None,
    stop: Callable[[], bool] | None = None,
    say: Callable[[str], None] | None = None,
) -> Result:
    """Forecast a table as a stream, each row from the rows before it, and compare with the model's own forecasts.

    Parameters
    ----------
    source : Records or anything that `records.read` takes
        The table: a path, a frame, a mapping of arrays, ...
    question : Question
        Which columns, which groups, which property.
    hint : str, optional
        Column of a model's forecasts, to start from; default `question.p`. Ten level sets of it join the groups.
    learn : bool
        Put a model that learns between the hint and the engine. Columns in `question.linear` are its features.
    out : path, optional
        Forecasts of every row: .csv, .jsonl or .parquet, with the columns row (from 1), before (the hint) and forecast.
    state : path, optional
        Keeps how far the run has come. With the same file, input and settings it goes on after a stop or a kill; when
        all is done it goes on with rows that the input has gained since. With `question.later`, outcomes that were
        blank when their rows were forecast are learned from first, once each, where the input has them by now.
    outcomes : path, or anything that `records.read` takes, optional
        A second table of such outcomes, with the columns `question.y` and `question.id`, which names the rows.
    horizon : int, optional
        Number of rows that will come; default what the source says, or for a file of text what its size suggests;
        where neither is known, as in a pipe, anytime.
    seed, trust, levels, jitter, bins
        As for `Forecaster`; where `bins` is None and the first rows show a hint much sharper than the usual grid, the
        grid is finer. Where `jitter` is None and outcomes of a quantile heap up, it is the gap between two of them.
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

    Notes
    -----
    Rows without an outcome are forecast, and not learned from; rows without a hint are forecast without one. Output is
    written and synced to disk before the state file is replaced: a kill at any moment loses no row and repeats none.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> score, old = rng.random(4000), rng.random(4000) < 0.3
    >>> table = {"late": rng.random(4000) < (0.5 + 0.4 * old) * score, "score": score, "old": old}
    >>> result = run(table, Question("late", groups=["old"]), hint="score")
    >>> bool(result.after.swap_error < result.before.swap_error / 3), result.verdict.headline[:30]
    (True, 'Use the recalibrated forecasts')
    """
    question = question if hint is None else replace(question, p=hint)
    _check_later(question, state, outcomes)
    if isinstance(source, Records):
        records = source
    else:
        records = read(source, columns=question.columns, whole_lines=state is not None)
    files = None
    try:
        method = Method(learn=learn, horizon=horizon, seed=seed, trust=trust, levels=levels, jitter=jitter, bins=bins)
        asked = {**question.settings(), **method.settings()}
        names = ("row", "forecast") if question.p is None else ("row", "before", "forecast")
        files = RunFiles(asked, names, out, state, records.file, fresh=fresh, overwrite=overwrite)
        return _run(records, question, method, files, outcomes, progress, stop, say)
    finally:
        if files is not None:
            files.close()
        records.close()


def _run(
    records: Records,
    question: Question,
    method: Method,
    files: RunFiles,
    outcomes: Any,
    progress: Callable[[int], None] | None,
    stop: Callable[[], bool] | None,
    say: Callable[[str], None] | None,
) -> Result:
    begun = files.begun
    known = records.n_rows or _expected_rows(records) if method.horizon is None else method.horizon
    with understood(files.state):
        settled = question.prefix if begun is None else whole(begun.plain["settled"], "settled", 1)
        if settled > question.prefix:
            raise ValueError(f"{settled} rows have settled the range, and {question.prefix} can")
    first, rest = opening(records, settled)
    blanks = None
    with understood(files.state):
        if question.later:
            blanks = BlankRows(question.y, None if begun is None else begun.arrays)
        seen = first if blanks is None else [blanks.settling(batch) for batch in first]
    if begun is None:
        if outcomes is not None:
            raise InvalidInput(
                "the outcomes of a second file (--outcomes) are of rows that were forecast before, and here none was; "
                "run without it first"
            )
        current = RunState(question, replace(method, horizon=known), seen, records.name, None, blanks)
    else:
        told = None if outcomes is None else ToldOutcomes(outcomes, question)
        with understood(files.state):
            current = RunState(question, replace(method, horizon=known), seen, records.name, begun, blanks, told)
    batches: Iterator[Batch] = chain(first, rest)
    filled = 0
    if begun is not None:
        batches = _behind(batches, current, begun, files)
        filled, sentences = current.fill_in()
        learned = (f"learned from {filled:,} outcomes that have come since",) if filled else ()
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
    return _result(records.name, current, files, time_column(records.file, first, question.time))


def _check_later(question: Question, state: Path_ | None, outcomes: Any) -> None:
    """Say what is missing for outcomes that come later."""
    if state is None and question.later:
        raise InvalidInput(
            "outcomes that come later (--later, --id) need a state file that remembers the rows: --state"
        )
    if outcomes is not None and question.id is None:
        raise InvalidInput(
            "a second file of outcomes (--outcomes) names its rows by a column of both files: --id COLUMN"
        )


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


def _behind(batches: Iterator[Batch], current: RunState, begun: Checkpoint, files: RunFiles) -> Iterator[Batch]:
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
    source = current.values.source
    if current.n_rows < begun.rows:
        raise StateFileError(
            f"{source} has {current.n_rows:,} rows, and the state file {files.state} has {begun.rows:,} of them done; "
            "give the file it was made with, another --state, or --fresh to start over"
        )
    if current.digest(then=True) != begun.digest:
        changed = "" if current.blanks is None else ", blank outcomes that were filled in aside"
        later = LATER if not changed else ""
        raise StateFileError(
            f"the first {begun.rows:,} rows of {source} are not those that the state file {files.state} has seen"
            f"{changed}; give the file it was made with, another --state, or --fresh to start over{later}"
        )
    return chain(ahead, batches)


def _binning(current: RunState) -> str:
    """What was taken together, in words."""
    stated = "" if current.binning is None else current.binning.stated
    if not current.question.late.given:
        return stated
    return f"{stated}, the model's and swapcal's alike, as swapcal may show the model's own"


def _result(source: str, current: RunState, files: RunFiles, time: str | None) -> Result:
    comparison, values, question = current.comparison, current.values, current.question
    if not comparison.after.weight > 0:
        raise DataError(
            f"{source} has no row with an outcome in {question.y!r}"
            + ("" if question.weight is None else f" and a weight above 0 in {question.weight!r}")
            + "; forecasts can be made, but nothing can be learned or scored"
        )
    before = None
    if comparison.before is not None and comparison.before.weight > 0:
        before = summarize(comparison.before, question.r)
    after = summarize(comparison.after, question.r)
    lateness = current.forecaster.lateness()
    paired, history = comparison.losses.paired(), comparison.history(current.forecaster)
    said = verdict(before, after, property=values.property, r=question.r, paired=paired)
    said = replace(said, sentences=(*said.sentences, *late_sentences(question.late, lateness, time)))
    why_not = _no_guarantee(question.weight, current.jitter)
    guarantee = None if why_not else float(current.forecaster.guarantee(DELTA))
    return Result(
        kind="run",
        source=source,
        property=values.property,
        loss_name=loss_name(values.property),
        low=values.low,
        high=values.high,
        groups=comparison.after.names,
        n_rounds=comparison.after.n_rounds,
        n_missing=current.n_missing,
        n_clipped=values.n_clipped,
        before=before,
        after=after,
        history=replace(history, guarantee=None) if why_not else history,
        paired=paired,
        verdict=said,
        guarantee=guarantee,
        settings={
            **files.asked,
            "horizon": current.forecaster.rules.horizon,
            "seed": current.forecaster.rules.seed,
            "trust": current.forecaster.rules.trust,
            "bins": len(current.forecaster.values),
            "jitter": current.jitter,
            "guarantee": why_not or guarantee_sentence(DELTA),
            **_decided(comparison, question.costs),
            "limit": current.audience.groups.limit,
            "range": values.stated,
            **({} if current.binning is None else {"binning": _binning(current)}),
            "bands": {column: list(edges) for column, edges in current.audience.groups.edges.items()},
            "rows": current.n_rows,
            "outcomes_waiting": lateness.n_pending,
            "outcomes_late": lateness.n_late,
            "outcomes_expired": lateness.n_expired,
            "mean_delay": lateness.mean_delay,
            "standing_back": lateness.standing_back,
            "rows_stood_back": lateness.n_stood_back,
            "delays_depend_on_outcomes": lateness.dependent_since is not None,
            "rows_without_hint": current.n_unhinted,
            "forecasts_outside": values.n_clipped_forecasts,
            "weights_outside": values.n_clipped_weights,
        },
        versions=versions(),
    )


def _decided(comparison: BeforeAfter, costs: str | None) -> dict[str, Any]:
    """What those who act on the forecasts lose, as a sentence and as numbers."""
    if costs is None:
        return {}
    before, after = comparison.acted["before"], comparison.acted["after"]
    if not before.weight > 0.0:
        return {"decisions": lost(after, costs)}
    return {"decisions": saved(before, after, costs), "decision_losses": [before.mean_loss, after.mean_loss]}


def _no_guarantee(weight: str | None, jitter: float) -> str:
    """Why the errors of a run have no guarantee, as a sentence; empty where they have one."""
    if weight is not None:
        return f"none is stated: it is about rows counted once each, and here they are weighted by {weight!r}"
    if jitter:
        return (
            f"none is stated: it is about outcomes spread over {jitter:g}, as --jitter does, and the errors are about "
            "those in the file"
        )
    return ""

"""From records to better forecasts: every row is forecast from the rows before it, and the result is compared."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from swapcal.audit.summary import summarize
from swapcal.decisions import lost, saved
from swapcal.errors import DataError, InvalidInput
from swapcal.jobs.auditing import versions
from swapcal.jobs.before_after import DELTA, BeforeAfter
from swapcal.jobs.blank_rows import BlankRows
from swapcal.jobs.checkpoint import Checkpoint
from swapcal.jobs.kept_sums import understood
from swapcal.jobs.late_notes import late_sentences, time_column
from swapcal.jobs.output_and_state import Path_, RunFiles, opened
from swapcal.jobs.question import Question
from swapcal.jobs.result import Result
from swapcal.jobs.row_loop import Stopped, play
from swapcal.jobs.run_state import LATER, Method, RunState
from swapcal.jobs.told_outcomes import ToldOutcomes
from swapcal.tables.records import Batch, Records
from swapcal.words.property_words import loss_name
from swapcal.words.quantities import guarantee_sentence
from swapcal.words.verdicts import verdict

__all__ = ["Stopped", "run"]


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
    method = Method(learn=learn, horizon=horizon, seed=seed, trust=trust, levels=levels, jitter=jitter, bins=bins)
    asked = {**question.settings(), **method.settings()}
    names = ("row", "forecast") if question.p is None else ("row", "before", "forecast")
    files = opened(source, question.columns, asked, names, out, state, fresh=fresh, overwrite=overwrite)
    with files as (records, kept):
        return _run(records, question, method, kept, outcomes, progress, stop, say)


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
    if files.begun is None and outcomes is not None:
        raise InvalidInput(
            "the outcomes of a second file (--outcomes) are of rows that were forecast before, and here none was; "
            "run without it first"
        )
    with understood(files.state):
        begun_with = None if files.begun is None else files.begun.arrays
        blanks = BlankRows(question.y, begun_with) if question.later else None
    told = None if outcomes is None else ToldOutcomes(outcomes, question)

    def make(first: list[Batch], expected: int | None, begun: Checkpoint | None) -> RunState:
        seen = first if blanks is None else [blanks.settling(batch) for batch in first]
        return RunState(question, replace(method, horizon=expected), seen, records.name, begun, blanks, told)

    played = play(
        records,
        question.prefix,
        make,
        files,
        horizon=method.horizon,
        digest=lambda run: run.digest(then=True),
        fill_in=RunState.fill_in,
        unlike=("", LATER) if blanks is None else (", blank outcomes that were filled in aside", ""),
        progress=progress,
        stop=stop,
        say=say,
    )
    return _result(records.name, played.run, files, time_column(records.file, played.first, question.time))


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

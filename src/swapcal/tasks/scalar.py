"""From records to better forecasts: every row is forecast from the rows before it, and the result is compared."""

import hashlib
import io
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from swapcal.decisions import lost, saved
from swapcal.errors import DataError, InvalidInput, StateFileError
from swapcal.forecaster import Forecaster
from swapcal.hints import OnlineRegression
from swapcal.hypotheses.numeric import Numeric
from swapcal.protocols import Hypotheses, Rows
from swapcal.tables.batch import Batch
from swapcal.tables.records import Records
from swapcal.tasks.checkpoint import Checkpoint, Fingerprint, Path_, RunFiles, claim, understood
from swapcal.tasks.columns import Columns, RangeWarning, raw_outcomes
from swapcal.tasks.config import MOST_BINS, TaskConfig
from swapcal.tasks.contexts import ContextColumns, ContextRows
from swapcal.tasks.evaluation import DELTA, Evaluation
from swapcal.tasks.outcomes import LateOutcome, OutcomeTable, WaitingRows
from swapcal.tasks.result import Result, versions
from swapcal.tasks.runner import run_batches
from swapcal.tasks.survey import Binning, binning
from swapcal.text.numbers import counted, guarantee_sentence
from swapcal.text.property_words import loss_name
from swapcal.text.sentences import late_sentences, time_column
from swapcal.text.verdict import verdict
from swapcal.typing import Float64Array

# --------
# A run between two batches: how columns are read, the forecaster, the audits. It can be saved, and resumed later.

MOST_LEVELS = 10_000
LATER = " (where blank outcomes are to be filled in later, begin with --later)"


@dataclass(frozen=True, slots=True)
class Method:
    """How to forecast. learn: a model learns between the hint and the engine; None leaves a choice to the engine."""

    learn: bool = False
    horizon: int | None = None
    seed: int | None = None
    trust: float | None = None
    levels: int = 10
    jitter: float | None = None
    bins: int | None = None

    def __post_init__(self) -> None:
        for name, most in (("bins", MOST_BINS), ("levels", MOST_LEVELS)):
            given = getattr(self, name)
            if isinstance(given, int) and given > most:
                raise InvalidInput(f"{name} must be {most:,} at most; got {given:,}")

    def settings(self) -> dict[str, Any]:
        """Plain data."""
        return {name: getattr(self, name) for name in ("learn", "horizon", "seed", "trust", "levels", "jitter", "bins")}


class ScalarTask:
    """Everything that changes as rows go by.

    Parameters
    ----------
    question : Question
        `p` is the column of the hint, if there is one.
    method : Method
        How to forecast; its `horizon` None means anytime.
    first : sequence of Batch
        The first rows of the source, from which the rest of the settings is read off.
    source : str
        What messages call the records.
    saved : Checkpoint, optional
        Go on from there. The first rows must be the same as then, and all rows that are done come by `pass_over`.
    blanks : BlankRows, optional
        Where blank outcomes come later: those that were blank before. They must be so in `first`.
    told : ToldOutcomes, optional
        A second file of outcomes.
    """

    def __init__(
        self,
        question: TaskConfig,
        method: Method,
        first: Sequence[Batch],
        source: str,
        saved: Checkpoint | None = None,
        blanks: WaitingRows | None = None,
        told: OutcomeTable | None = None,
    ) -> None:
        if question.groups and question.linear and not method.learn:
            raise InvalidInput(
                "groups and linear columns together need learn=True (--learn), which makes the linear columns features "
                "of a model beside the groups; or leave one of them out"
            )
        self.method = method
        self.settled = int(saved.plain["settled"]) if saved else min(sum(batch.n for batch in first), question.prefix)
        # Only the rows that settled things then may settle them now, also if there are more by now.
        self.question = question = replace(question, prefix=self.settled)
        self.blanks, self.told = blanks, told
        self._come: list[tuple[LateOutcome, bool]] = []
        self._contradicted = self._too_late = np.zeros(0, dtype=np.int64)
        self._without = None if blanks is None else question.y
        self._head = Fingerprint.of(first, self.settled, question.columns, self._without)
        if saved is None or blanks is None:
            self._check_head(saved, source)
        self.values = Columns(question, first, source)
        labels, hints = self._settling(first)
        if blanks is not None:
            self._head += hashlib.blake2b(labels.tobytes(), digest_size=16).hexdigest()
            self._check_head(saved, source)
            if saved is None:
                blanks.early = np.flatnonzero(np.isnan(labels))
        self.jitter = self._jitter()
        self.binning = None if hints is None else self._binning(hints)
        self.features = Numeric(question.linear) if question.linear and method.learn else None
        self.audience = self._audience(first, saved)
        self.forecaster = self._forecaster(saved)
        known = labels[~np.isnan(labels)]
        hinted = None if hints is None else hints[~np.isnan(hints)]
        self.comparison = Evaluation(
            self.values.property,
            self.audience,
            self.binning,
            known,
            question.r,
            hinted,
            question.costs,
            late=question.late.given,
        )
        self.fingerprint = Fingerprint(question.columns, self._without)
        self.n_rows = self.n_missing = self.n_unhinted = 0
        self._last_time = -math.inf
        if saved is not None:
            self.comparison.restore(WaitingRows.others(saved.arrays) if blanks is not None else saved.arrays)
            if blanks is not None and not np.array_equal(blanks.waiting, self.forecaster.state.waiting.blank):
                raise ValueError("the rows that wait for their outcomes are not those of the forecaster")

    def _check_head(self, saved: Checkpoint | None, source: str) -> None:
        if saved is not None and saved.plain["head"] != self._head:
            raise StateFileError(
                f"{source} does not begin with the rows that the state file has seen; give the file it was made with, "
                f"another --state, or --fresh to start over{LATER if self.blanks is None else ''}"
            )

    def advance(self, batch: Batch) -> dict[str, Any]:
        """Forecast the rows of a batch and learn from them; the columns of the output."""
        y, hints = self._count(batch)
        weights = self.values.weights(batch)
        waits = None if self.blanks is None else np.isnan(y) & (True if weights is None else weights > 0.0)
        if weights is not None:
            y = np.where(weights > 0.0, y, np.nan)  # rows of no weight are forecast, and not learned from
        rows = self.audience.rows(batch)
        # The forecaster's class is the linear one where there is one, and else the groups.
        contexts = rows.groups if rows.linear is None else rows.linear
        contexts = contexts if weights is None else _weighted(contexts, weights)
        features = None if self.features is None else _dense(self.features, batch)
        forecasts = np.empty(batch.n)
        late = self._moments(batch)
        for part in self.comparison.parts(~np.isnan(y)):
            forecasts[part] = self.forecaster.run(
                _part(contexts, part),
                y[part],
                None if hints is None else hints[part],
                features=None if features is None else features[part],
                missing="skip",
                waits=None if waits is None else waits[part],
                **{name: each[part] for name, each in late.items()},
                order=self.question.order,
            )
            w = None if weights is None else weights[part]
            before = None if hints is None else hints[part]
            self.comparison.add(y[part], before, forecasts[part], rows.part(part), w)
            self.comparison.note(self.forecaster)
        if self.blanks is not None and waits is not None:
            self.blanks.add(self._outcomes(batch, weights), waits, self.forecaster.rules.max_pending)
        numbers = np.arange(batch.first + 1, batch.first + batch.n + 1)
        return {"row": numbers, **({} if hints is None else {"before": hints}), "forecast": forecasts}

    def _moments(self, batch: Batch) -> dict[str, Any]:
        """When the batch's rows come, and when their outcomes are known; nothing where they are known at once."""
        if not self.question.late.timed:
            return {}
        times, known = self.question.late.moments(batch, self._last_time)
        self._last_time = float(times[-1]) if len(times) else self._last_time
        return {"times": times, "known": known}

    def pass_over(self, batch: Batch) -> None:
        """Count rows that are done, and look which outcomes have come since."""
        seen = batch if self.blanks is None else self.blanks.without(batch)
        _, hints = self._count(seen)
        weights, due = self.values.weights(seen), self._moments(seen).get("known")
        if self.blanks is None:
            return
        raw = self._outcomes(batch, weights)
        others, late = self.blanks.contradicted(batch, raw)
        come = self.blanks.passed(batch, raw)
        found = [(come, raw[come], False)]
        if self.told is not None:
            named, outcomes = self.told.found(batch)
            waits = np.isin(batch.first + named, self.blanks.waiting) & ~np.isin(named, come)
            before, told = raw[named], np.isin(batch.first + named, self.blanks.told)
            before[np.isin(batch.first + named, self.blanks.expired)] = np.nan
            before[told] = self.blanks.outcomes[np.searchsorted(self.blanks.told, batch.first + named[told])]
            others = np.concatenate([others, named[~np.isnan(before) & (before != outcomes)]])
            late = np.union1d(late, named[np.isin(batch.first + named, self.blanks.expired)])
            found.append((named[waits], outcomes[waits], True))
        self._contradicted = np.union1d(self._contradicted, batch.first + others)
        self._too_late = np.union1d(self._too_late, batch.first + late)
        for rows, y, told_ in found:
            if len(rows):
                parts = (None if each is None else each[rows] for each in (hints, weights, due))
                self._come.append((LateOutcome(batch.first + rows, y, *parts), told_))

    def _outcomes(self, batch: Batch, weights: Float64Array | None) -> Float64Array:
        """Outcomes as the file has them; those of rows without weight do not matter."""
        raw = raw_outcomes(self.question, batch, self.values.source)
        return raw if weights is None else np.where(weights > 0.0, raw, np.nan)

    def digest(self, *, then: bool = False) -> str:
        """Of all cells so far that are used; `then`: as they were when they were seen first."""
        return self.fingerprint.value() + ("" if self.blanks is None else self.blanks.digest(then=then))

    def fill_in(self) -> tuple[int, tuple[str, ...]]:
        """Learn and score the outcomes that have come since: how many, and what there is to say about others."""
        if self.blanks is None:
            return 0, ()
        low, high = self.values.low, self.values.high
        parts = [come for come, told in self._come if not told]
        told = [come for come, told in self._come if told]
        ordered = LateOutcome.joined([*parts, *told])
        n_here = sum(len(come.rows) for come in parts)
        if told and self.told is not None:
            named = n_here + self.told.order(ordered.rows[n_here:])
            ordered = ordered.taken(np.concatenate([np.arange(n_here), named]))
        y = np.clip(ordered.y, low, high)
        if len(y):
            lines = self.forecaster.state.waiting.find(ordered.rows)
            contexts = self.forecaster.state.waiting.contexts(lines, self.forecaster.hypotheses.n)
            if ordered.weights is not None:
                contexts = _weighted(contexts, 1.0 / ordered.weights)
            shown = self.forecaster.fill_in(ordered.rows, y, known=ordered.due)
            self.comparison.add(y, ordered.hints, shown, self._audience_rows(contexts), ordered.weights)
            self.comparison.note(self.forecaster)
            self.n_missing -= n_here
            self.values.clipped(ordered.rows[:n_here], ordered.y[:n_here])
            if ordered.hints is not None:
                self.n_unhinted += int(np.count_nonzero(np.isnan(ordered.hints[:n_here])))
        self.blanks.learned(ordered.rows[:n_here], ordered.rows[n_here:], ordered.y[n_here:], self._too_late)
        return len(y), self._said()

    def _said(self) -> tuple[str, ...]:
        """What there is to say about outcomes that were not learned from."""
        said, source = [], self.values.source
        if len(self._contradicted):
            one = len(self._contradicted) == 1
            said.append(
                f"{counted(len(self._contradicted), 'outcome')} {'is not the one' if one else 'are not those'} that "
                f"{'was' if one else 'were'} learned before, which {'stays' if one else 'stay'} (the first: row "
                f"{int(self._contradicted[0]) + 1:,} of {source})"
            )
        if len(self._too_late):
            one, room = len(self._too_late) == 1, self.forecaster.rules.max_pending
            said.append(
                f"{counted(len(self._too_late), 'outcome')} came after {counted(room, 'later row')}, when "
                f"{'its forecast' if one else 'their forecasts'} had expired, and {'was' if one else 'were'} not "
                f"learned from (first: row {int(self._too_late[0]) + 1:,})"
            )
        strangers = None if self.told is None else self.told.strangers()
        return tuple(said) if strangers is None else (*said, strangers)

    def _audience_rows(self, contexts: Rows) -> ContextRows:
        """The functions' values in rows that were forecast before, as they were then."""
        if self.audience.numeric is None:
            return ContextRows(contexts, None)
        n = len(contexts.indptr) - 1
        return ContextRows(Rows(np.arange(n + 1), np.zeros(n, dtype=np.int64), np.ones(n)), contexts)

    def save(
        self, asked: dict[str, Any], out: str | None, output: dict[str, Any] | None, *, finished: bool
    ) -> Checkpoint:
        """All that it takes to go on."""
        stream = io.BytesIO()
        self.forecaster.save(stream)
        return Checkpoint(
            asked=asked,
            rows=self.n_rows,
            digest=self.digest(),
            out=out,
            output=output,
            finished=finished,
            plain={
                "settled": self.settled,
                "head": self._head,
                "audience": self.audience.spec(),
                "features": None if self.features is None else self.features.spec(),
            },
            forecaster=stream.getvalue(),
            arrays={**self.comparison.arrays(), **({} if self.blanks is None else self.blanks.arrays())},
        )

    def _count(self, batch: Batch) -> tuple[Float64Array, Float64Array | None]:
        """Labels and hints of the batch, whose cells go into the fingerprint."""
        y = self.values.labels(batch)
        hints = None if self.question.p is None else self.values.forecasts(batch, self.question.p)
        self.fingerprint.add(batch)
        self.n_rows += batch.n
        missing = np.isnan(y)
        self.n_missing += int(np.count_nonzero(missing))
        if hints is not None:
            self.n_unhinted += int(np.count_nonzero(np.isnan(hints) & ~missing))
        return y, hints

    def _settling(self, first: Sequence[Batch]) -> tuple[Float64Array, Float64Array | None]:
        """Labels and hints of the rows that settle things; they are counted later, with all others."""
        column, values = self.question.p, self.values
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RangeWarning)
            labels = np.concatenate([values.labels(batch) for batch in first])[: self.settled]
            hints = None
            if column is not None:
                hints = np.concatenate([values.forecasts(batch, column) for batch in first])[: self.settled]
        values.n_clipped = values.n_clipped_forecasts = 0
        return labels, hints

    def _binning(self, hints: Float64Array) -> Binning:
        known = hints[~np.isnan(hints)]
        if not len(known):
            raise DataError(
                f"the hint {self.question.p!r} is missing in all of the first {self.settled:,} rows of "
                f"{self.values.source}; check the column"
            )
        return binning(self.values.property, known, self.question.bins)

    def _jitter(self) -> float:
        """What outcomes of a quantile are spread over: what was asked, or where they heap up the gap between them."""
        if self.method.jitter is not None:
            if not self.method.jitter:
                self.values.warn_of_heaps()
            return self.method.jitter
        return self.values.spacing

    def _audience(self, first: Sequence[Batch], saved: Checkpoint | None) -> ContextColumns:
        """The class of the forecaster and of the audit. The fewer positions it has, the smaller the guarantee."""
        question = replace(self.question, linear=()) if self.features is not None else self.question
        if saved is not None:
            if self.features is not None:
                self.features = self.features.resumed(saved.plain["features"])
            return ContextColumns.resumed(question, saved.plain["audience"])
        return ContextColumns.fitted(question, first).with_room(question)

    def _forecaster(self, saved: Checkpoint | None) -> Forecaster:
        numeric = self.audience.numeric
        hypotheses: Hypotheses = self.audience.groups if numeric is None else numeric
        if saved is not None:
            # A property or hint of the user's own is not in the file.
            return Forecaster.load(io.BytesIO(saved.forecaster), property=self.values.property, hypotheses=hypotheses)
        method, n_features = self.method, 0 if self.features is None else len(self.features.columns)
        given: dict[str, Any] = {} if method.trust is None else {"trust": method.trust}
        return Forecaster(
            self.values.property,
            hypotheses,
            horizon=method.horizon,
            r=self.question.r,
            seed=method.seed,
            hint=OnlineRegression(n_features=n_features) if method.learn else None,
            levels=method.levels if self.question.p is not None or method.learn else 0,
            jitter=self.jitter,
            bins=method.bins,
            **given,
        )


def _part(rows: Rows, part: slice) -> Rows:
    return ContextRows(rows, None).part(part).groups


def _weighted(rows: Rows, weights: Float64Array) -> Rows:
    """Rows whose values are multiplied by the weight of their round; with no weight they stay as they are."""
    factors = np.where(weights > 0.0, weights, 1.0)
    return Rows(rows.indptr, rows.indices, rows.values * np.repeat(factors, np.diff(rows.indptr)))


def _dense(features: Numeric, batch: Batch) -> Float64Array:
    """The columns as a learning hint takes them: standardized, the mean where one is missing."""
    rows = features.rows(batch, batch.n)
    dense = np.zeros((batch.n, features.n))
    dense[np.repeat(np.arange(batch.n), np.diff(rows.indptr)), rows.indices] = rows.values
    standardized: Float64Array = dense[:, 1:] / dense[0, 0]
    return standardized


def run(
    source: Any,
    question: TaskConfig,
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
    >>> result = run(table, TaskConfig("late", groups=["old"]), hint="score")
    >>> bool(result.after.swap_error < result.before.swap_error / 3), result.verdict.headline[:30]
    (True, 'Use the recalibrated forecasts')
    """
    question = question if hint is None else replace(question, p=hint)
    _check_later(question, state, outcomes)
    method = Method(learn=learn, horizon=horizon, seed=seed, trust=trust, levels=levels, jitter=jitter, bins=bins)
    asked = {**question.settings(), **method.settings()}
    names = ("row", "forecast") if question.p is None else ("row", "before", "forecast")
    files = claim(source, question.columns, asked, names, out, state, fresh=fresh, overwrite=overwrite)
    with files as (records, kept):
        return _run(records, question, method, kept, outcomes, progress, stop, say)


def _run(
    records: Records,
    question: TaskConfig,
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
        blanks = WaitingRows(question.y, begun_with) if question.later else None
    told = None if outcomes is None else OutcomeTable(outcomes, question)

    def make(first: list[Batch], expected: int | None, begun: Checkpoint | None) -> ScalarTask:
        seen = first if blanks is None else [blanks.settling(batch) for batch in first]
        return ScalarTask(question, replace(method, horizon=expected), seen, records.name, begun, blanks, told)

    played = run_batches(
        records,
        question.prefix,
        make,
        files,
        horizon=method.horizon,
        digest=lambda run: run.digest(then=True),
        fill_in=ScalarTask.fill_in,
        unlike=("", LATER) if blanks is None else (", blank outcomes that were filled in aside", ""),
        progress=progress,
        stop=stop,
        say=say,
    )
    return _result(records.name, played.run, files, time_column(records.file, played.first, question.time))


def _check_later(question: TaskConfig, state: Path_ | None, outcomes: Any) -> None:
    """Say what is missing for outcomes that come later."""
    if state is None and question.later:
        raise InvalidInput(
            "outcomes that come later (--later, --id) need a state file that remembers the rows: --state"
        )
    if outcomes is not None and question.id is None:
        raise InvalidInput(
            "a second file of outcomes (--outcomes) names its rows by a column of both files: --id COLUMN"
        )


def _binning(current: ScalarTask) -> str:
    """What was taken together, in words."""
    stated = "" if current.binning is None else current.binning.stated
    if not current.question.late.given:
        return stated
    return f"{stated}, the model's and swapcal's alike, as swapcal may show the model's own"


def _result(source: str, current: ScalarTask, files: RunFiles, time: str | None) -> Result:
    comparison, values, question = current.comparison, current.values, current.question
    if not comparison.after.weight > 0:
        raise DataError(
            f"{source} has no row with an outcome in {question.y!r}"
            + ("" if question.weight is None else f" and a weight above 0 in {question.weight!r}")
            + "; forecasts can be made, but nothing can be learned or scored"
        )
    before = None
    if comparison.before is not None and comparison.before.weight > 0:
        before = comparison.before.summary(question.r)
    after = comparison.after.summary(question.r)
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


def _decided(comparison: Evaluation, costs: str | None) -> dict[str, Any]:
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

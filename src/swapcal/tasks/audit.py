"""From records to a verdict on forecasts: one model, several compared, files that add up, subgroups nobody listed."""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import chain
from multiprocessing import get_context
from typing import Any

import numpy as np

from swapcal.audits import Audit
from swapcal.audits.column import MERGED, USUAL, Column
from swapcal.audits.discovery import N_VALUES, Discovery, DiscoveryColumn, banded, discover, valued
from swapcal.audits.groups import ALPHA, ClusterSums, GroupSums, group_sums
from swapcal.audits.histograms import N_BINS as N_OUTCOMES
from swapcal.audits.histograms import root
from swapcal.audits.scores import Paired, PairedLosses, fine_edges
from swapcal.audits.summary import ColumnSummary
from swapcal.audits.sums import Scored, Sums, Times
from swapcal.decisions import lost
from swapcal.engine.kernels import row_keys
from swapcal.errors import DataError, InvalidInput
from swapcal.inputs import inside
from swapcal.protocols import Elicitable, Hypotheses
from swapcal.tables.batch import Batch, Coded, as_number, entries, taken, text
from swapcal.tables.records import RereadableSource, opening, read
from swapcal.tasks.columns import (
    ClusterNumbers,
    Columns,
    RangeWarning,
    clusters_of,
    known_outcomes,
    raw_weights,
    times_of,
)
from swapcal.tasks.config import TaskConfig, next_command
from swapcal.tasks.evaluation import TOLD, Binning, ContextColumns, Evaluation, binning, section_of, told_clusters
from swapcal.tasks.result import Costs, Counts, LossDifference, Range, Result
from swapcal.tasks.survey import Survey
from swapcal.text.sentences import discovery_sentences
from swapcal.text.verdict import comparison_verdict, verdict, with_discovery
from swapcal.typing import Float64Array, IntArray

# --------
# The search of a table for subgroups that nobody listed: raw columns as conditions, and what `discover` finds.

# Rows that are looked at: half of them are searched, and half of them confirm.
MOST_ROWS = 400_000


def discovered(
    passes: RereadableSource, question: TaskConfig, values: Columns, clusters: ClusterNumbers | None, n_rows: int
) -> Discovery:
    """Subgroups with their bias in the units that people read, and columns that give the outcome away.

    Every column is looked at but those of the question (outcome, weight, cluster and time), and the forecast.
    """
    rate = min(1.0, MOST_ROWS / max(n_rows, 1))
    own = {question.y, question.weight, question.cluster, question.time, question.p}
    parts: list[tuple[Float64Array, IntArray]] = []
    raw: dict[str, list[Any]] = {}
    for batch in passes.batches():
        y, p, w = values.labels(batch), values.forecasts(batch, question.p or ""), values.weights(batch)
        numbers = None if clusters is None else clusters.numbers(batch)
        known = ~(np.isnan(y) | np.isnan(p)) & (row_keys(batch.first, batch.n) < rate)
        scored = np.flatnonzero(known)
        y, p = inside(values.property, y, p)
        v = np.asarray(values.property.identification(p[scored], y[scored]), dtype=np.float64)
        weights = np.ones(len(scored)) if w is None else w[scored]
        ids = batch.first + scored if numbers is None else numbers[scored]
        parts.append((np.stack([v, p[scored], weights]), ids))
        for name in batch.columns:
            if name not in own:
                raw.setdefault(name, []).extend(_readable(batch.column(name), scored))
    v, p, w = np.concatenate([part[0] for part in parts], axis=1)
    ids = np.concatenate([part[1] for part in parts])
    columns = [banded("forecast", p), *(_column(name, each) for name, each in raw.items())]
    discovery = discover(columns, v, clusters=None if clusters is None else ids, weights=w)
    wording = values.property.wording
    biases = ("bias", "bound", "found_bias")
    subgroups = tuple(
        one._replace(**{name: wording.scale * getattr(one, name) for name in biases}) for one in discovery.subgroups
    )
    return replace(discovery, subgroups=subgroups, unit=wording.unit or "outcome")


def _readable(column: Coded | Float64Array, rows: IntArray) -> list[Any]:
    """Texts, or numbers; None where there is none."""
    if isinstance(column, Coded):
        column = Coded(column.codes, tuple(map(text, column.values)))
    return [None if value != value else value for value in entries(taken(column, rows))]


def _column(name: str, values: Sequence[Any]) -> DiscoveryColumn:
    """Numbers with many values in bands, everything else by its commonest values."""
    distinct = list(dict.fromkeys(value for value in values if value is not None))
    floats = np.array([as_number(value) for value in distinct])
    places = {value: k for k, value in enumerate(distinct)}
    codes = np.array([-1 if value is None else places[value] for value in values], dtype=np.int64)
    if len(distinct) > N_VALUES and not np.isnan(floats).any():
        return banded(name, np.append(floats, np.nan)[codes])
    return valued(name, codes, [str(value if not isinstance(value, float) else f"{value:g}") for value in distinct])


# --------
# From records to a verdict on a model's forecasts.


def audit(
    source: Any,
    question: TaskConfig,
    *,
    discover: bool = False,
    brief: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Result:
    """Whether the forecasts in a table can be trusted, for every group.

    Parameters
    ----------
    source : RereadableSource, Records or anything that `records.read` takes
        The table: a path, a frame, a mapping of arrays, ...
    question : TaskConfig
        Which columns; `p` must be one of them.
    discover : bool
        Search all columns of the table for subgroups with bias that nobody listed, in a third pass.
    brief : bool
        Leave out what only pages show, which takes most of the time of a short table: curves and the level of chance.
    progress : callable, optional
        Called with the number of rows done after each batch.

    Notes
    -----
    Rows without an outcome or without a forecast are not scored, and counted. The table is read twice: the first pass
    settles the range of outcomes, the bands of numbers and the bins of forecasts from all rows or a uniform sample of
    50,000 (see `Survey`), the second counts. What can be read only once, such as a pipe, is copied to a temporary file
    on the way. Memory does not depend on the number of rows.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> score = rng.random(4000)
    >>> table = {"late": rng.random(4000) < 0.7 * score, "score": score}
    >>> result = audit(table, TaskConfig("late", "score"))
    >>> result.verdict.kind, result.verdict.headline
    ('BIASED', 'Forecasts are too high by 17.0 points on average.')
    """
    if question.p is None:
        raise InvalidInput("an audit needs the column of forecasts: give p= (--p)")
    columns = None if discover else question.columns
    with _rereadable(source, columns) as passes:
        return audited(passes, question, question.p, progress, discover=discover, brief=brief)


def _rereadable(source: Any, columns: Sequence[str] | None, n_passes: int = 2) -> RereadableSource:
    return source if isinstance(source, RereadableSource) else RereadableSource(source, columns, n_passes=n_passes)


def audited(
    passes: RereadableSource,
    question: TaskConfig,
    p_column: str,
    progress: Callable[[int], None] | None = None,
    *,
    discover: bool = False,
    brief: bool = False,
) -> Result:
    """As `audit`, of a source that stays open."""
    survey = surveyed(passes, question, p_column, progress)
    values = Columns(question, (), passes.name, survey)
    values.warn_of_heaps()
    audience = ContextColumns.seen(question, lambda names: survey.sample())
    bins = _binning(question, values, survey, p_column)
    clusters = clusters_of(question, lambda name: survey.sample()[name])
    column = audience.column(
        values.property,
        bins,
        "the model",
        bins.shown,
        constant=_constant(values, survey),
        first=np.clip(survey.y, values.low, values.high),
        fine=fine_edges(np.clip(survey.p, *values.property.domain)),
        means=TOLD,
        parts=USUAL if clusters is None else (*USUAL, "clusters"),
        anytime=question.anytime,
    )
    evaluation, counts = Evaluation({"before": {"": column}}, (), question.r, question.costs, brief=brief), Counts(0, 0)
    for batch in passes.batches():
        counts = _add(batch, p_column, values, audience, evaluation, clusters, counts)
        if progress is not None:
            progress(survey.n_rows)
    if not column.weight > 0:
        weighed = "" if question.weight is None else f" and a weight above 0 in {question.weight!r}"
        both = f"both an outcome in {question.y!r} and a forecast in {p_column!r}{weighed}"
        raise DataError(f"{passes.name} has no row with {both}; check the columns")
    section = evaluation.section(binning=bins.stated, history=evaluation.history())
    command = next_command(passes.name, question, "run") if os.path.isfile(passes.name) else None
    moved = {"outcomes_outside": values.n_outside, "forecasts_outside": values.n_forecasts_outside}
    moved["weights_outside"] = values.n_clipped_weights
    acted = evaluation.acted.get("before")
    result = Result.of(
        question,
        passes.name,
        values.property,
        kind="audit",
        counts=replace(counts, scored=column.n_rounds, **moved),
        verdict=verdict(section.before, wording=values.property.wording, command=command),
        sections=(section,),
        range=Range(values.low, values.high, values.stated),
        bands={column: tuple(edges) for column, edges in audience.edges.items()},
        clusters=told_clusters(clusters, column),
        costs=None if acted is None else Costs(lost(acted, str(question.costs))),
    )
    return _searched(result, passes, question, values) if discover else result


def _searched(result: Result, passes: RereadableSource, question: TaskConfig, values: Columns) -> Result:
    """The result with subgroups that nobody listed, and a sentence about them."""
    together = result.clusters
    clusters = None if together is None else ClusterNumbers(together.column, by_day=together.by_day)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RangeWarning)  # said by the audit
        discovery = discovered(passes, question, values, clusters, result.counts.rows)
    verdict = with_discovery(result.verdict, discovery, discovery_sentences(discovery, result.wording))
    return replace(result, discovery=discovery, verdict=verdict)


def _add(
    batch: Batch,
    p_column: str,
    values: Columns,
    audience: ContextColumns,
    evaluation: Evaluation,
    clusters: ClusterNumbers | None,
    counts: Counts,
) -> Counts:
    """Score the rows of a batch that have an outcome and a forecast; how many there are so far, and without which."""
    y, p, w = values.labels(batch), values.forecasts(batch, p_column), values.weights(batch)
    rows, time = audience.rows(batch), values.config.time
    numbers = None if clusters is None else clusters.numbers(batch)
    times = None if time is None else times_of(batch, time)
    y = batch.believed(y)
    without = np.isnan(p) & ~np.isnan(y)
    if without.any() and not counts.without_forecast:
        values.warn(batch, without, f"has no forecast in column {p_column!r}; such rows are not scored")
    for part in evaluation.parts(~(np.isnan(y) | np.isnan(p))):
        evaluation.add(
            y[part],
            p[part],
            None,
            rows.part(part),
            None if w is None else w[part],
            clusters=None if numbers is None else numbers[part],
            time=None if times is None else _shifted(times, part.start),
        )
        evaluation.note()
    return replace(
        counts,
        rows=counts.rows + batch.n,
        bad_rows=counts.bad_rows + len(batch.wrong or ()),
        without_outcome=counts.without_outcome + int(np.count_nonzero(np.isnan(y))),
        without_forecast=counts.without_forecast + int(np.count_nonzero(without)),
    )


def _shifted(times: Times, start: int) -> Times:
    """The times of the rows of a batch from `start` on."""
    return lambda t: times(start + t)


def surveyed(
    passes: RereadableSource, question: TaskConfig, p_column: str, progress: Callable[[int], None] | None
) -> Survey:
    """The first pass: what settles range, bands and bins."""
    named = () if question.time is None else (question.time,)
    survey, passes.lenient = (
        Survey(tuple(dict.fromkeys((*question.group_columns, *named)))),
        question.bad_rows == "skip",
    )
    for batch in passes.batches():
        weights = None if question.weight is None else raw_weights(batch, question.weight)
        survey.add(batch, known_outcomes(question, batch), batch.numbers(p_column), weights)
        if progress is not None:
            progress(survey.n_rows)
    if not survey.n_rows:
        raise DataError(f"{passes.name} has no rows; give a file with a line of column names and rows below it")
    return survey


def _constant(values: Columns, survey: Survey) -> float | None:
    """The best constant forecast of the sample, whose loss is then summed up over all rows."""
    known = np.clip(survey.y, values.low, values.high)
    if not len(known):
        return None
    if values.config.weight is None:
        return float(values.property.value(known))
    weights = survey.weights
    return float(root(values.property, weights[None, :], known[:, None])[0]) if weights.any() else None


def _binning(question: TaskConfig, values: Columns, survey: Survey, p_column: str) -> Binning:
    if not len(survey.p):
        raise DataError(f"column {p_column!r} of {values.source} has no forecast at all; check the column")
    domain = values.property.domain
    distinct: Float64Array | None = None
    if survey.values is not None:
        distinct = np.clip(np.array(sorted(survey.values)), *domain)
    return binning(values.property, np.clip(survey.p, *domain), question.bins, distinct)


# --------
# Several models on the same rows: an audit of each, and paired differences of their losses, also per group.


def compare(
    source: Any, question: TaskConfig, models: Sequence[str], *, progress: Callable[[int], None] | None = None
) -> Result:
    """Audit several columns of forecasts of one table, and compare their losses row by row.

    Parameters
    ----------
    source : RereadableSource or anything that `records.read` takes
        The table.
    question : TaskConfig
        As for `auditing.audit`; its `p` does not matter.
    models : sequence of str
        Two columns of forecasts or more; the others are compared with the first.
    progress : callable, optional
        Called with the number of rows done after each batch.

    Returns
    -------
    Result
        What each audit would say by itself in a section of its own, and the differences.

    Notes
    -----
    The table is read twice for each model, and twice for the differences. Losses of two models on one row meet the same
    outcome, so their difference varies far less than each of them.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> score = rng.random(4000)
    >>> table = {"late": rng.random(4000) < score, "good": score, "bad": 0.5 + 0.3 * score}
    >>> found = compare(table, TaskConfig("late"), ["bad", "good"])
    >>> found.sections[1].difference.sure("all"), found.sections[1].verdict.kind
    (-1, 'CALIBRATED')
    """
    if len(models) < 2 or len(set(models)) < len(models):
        raise InvalidInput(f"a comparison needs two columns of forecasts or more, each once; got {list(models)}")
    columns = question.columns
    wanted = None if columns is None else tuple(dict.fromkeys((*columns, *models)))
    with _rereadable(source, wanted, 2 * len(models) + 2) as passes:
        audits = {model: audited(passes, replace(question, p=model), model, progress) for model in models}
        ranges = {model: one.range for model, one in audits.items() if one.range is not None}
        targets = {model: question.property_on(one.low, one.high) for model, one in ranges.items()}
        differences, paired, n_paired = _differences(passes, question, targets, progress)
    first = audits[models[0]]
    sections = tuple(
        replace(
            audit.first,
            title=model,
            before=replace(audit.first.leading, label=model),
            verdict=audit.verdict,
            counts=audit.counts,
            difference=differences.get(model),
        )
        for model, audit in audits.items()
    )
    return replace(
        first,
        kind="comparison",
        sections=sections,
        counts=replace(first.counts, scored=n_paired),
        paired=paired,
        verdict=comparison_verdict(sections, paired, first.wording.loss, n_paired),
        config=replace(question, p=tuple(models)),
    )


def _differences(
    passes: RereadableSource,
    question: TaskConfig,
    targets: Mapping[str, Elicitable],
    progress: Callable[[int], None] | None,
) -> tuple[dict[str, LossDifference], dict[str, Paired], int]:
    first, *others = targets
    survey = surveyed(passes, question, first, progress)
    audience = ContextColumns.seen(question, lambda names: survey.sample())
    clusters = clusters_of(question, lambda name: survey.sample()[name])
    n = audience.groups.n
    sums = {model: Sums(n) for model in others}
    clustered = {} if clusters is None else {model: ClusterSums(n) for model in others}
    blocks = {model: PairedLosses() for model in others}
    n_paired = 0
    for batch in passes.batches():
        losses, weights = _losses(batch, question, targets)
        rows = audience.rows(batch)
        numbers = None if clusters is None else clusters.numbers(batch)
        scored = np.flatnonzero(~np.isnan(sum(losses.values(), start=np.zeros(batch.n))))
        n_paired += len(scored)
        groups, w = rows.taken(scored).groups, None if weights is None else weights[scored]
        for model in others:
            blocks[model].add(losses[first][scored], losses[model][scored], w)
            difference = losses[model][scored] - losses[first][scored]
            nowhere = np.zeros(len(scored), dtype=np.int64)
            sums[model].add_many(nowhere.astype(np.float64), difference, groups, w)
            if numbers is not None:
                terms = Scored(difference, difference, difference, nowhere, groups, None, w, numbers[scored])
                clustered[model].add(terms)
        if progress is not None:
            progress(survey.n_rows)
    if not n_paired:
        raise DataError(f"{passes.name} has no row with an outcome and a forecast of every model; check the columns")
    names, pairs = audience.groups.names, {model: blocks[model].paired() for model in others}
    by_group = {model: group_sums(sums[model].table(), clusters=clustered.get(model)) for model in others}
    differences = {model: _difference(by_group[model], names) for model in others}
    return differences, {model: pair for model, pair in pairs.items() if pair is not None}, n_paired


def _losses(
    batch: Batch, question: TaskConfig, targets: Mapping[str, Elicitable]
) -> tuple[dict[str, Float64Array], Float64Array | None]:
    """Losses of each row, NaN where the outcome or the forecast is missing; and weights."""
    y = known_outcomes(question, batch)
    losses = {}
    for model, target in targets.items():
        p = batch.numbers(model)
        given = (y, p) if target.kernel["property"] else inside(target, y, p)
        losses[model] = np.asarray(target.loss(given[1], given[0]), dtype=np.float64)
    weights = None if question.weight is None else raw_weights(batch, question.weight)
    return losses, weights


def _difference(sums: GroupSums, names: tuple[str, ...]) -> LossDifference:
    used = [j for j in range(len(names)) if sums.rows[j] > 0]
    bias = sums.bias(ALPHA / max(len(used), 1))
    mean = sums.mean
    return LossDifference(
        mean={names[j]: float(mean[j]) for j in used},
        low={names[j]: float(bias.low[j]) for j in used},
        high={names[j]: float(bias.high[j]) for j in used},
    )


# --------
# Audits of many files that add up: each by itself, on all cores or on another machine, and then their sum.

# --------
# Columns of many files that add up: each file by itself, on all cores or on another machine, and then their sum.

ENDING = ".audit"
BINS = 64

# Fine bins of forecasts, for AUC.
N_EVEN = 2000
# Bytes of tables that are read in this process: 4 MB take less time than the start of another one.
_SMALL = 1 << 22


def mergeable_column(
    property: Elicitable,
    groups: Hypotheses | None,
    bins: Any,
    first: Float64Array | None = None,
    shown: Float64Array | None = None,
    *,
    clustered: bool = False,
    **options: Any,
) -> Column:
    """A column whose parts add up to that of all rows; forecasts are judged as they are.

    Parameters
    ----------
    property, groups
        Of the audit.
    bins : int, array or None
        So many equal ranges of forecasts, or their edges, or each forecast by itself.
    first : array, optional
        Some outcomes, which settle the bins of outcomes together with the ends of the range; default evenly spread.
    shown : array, optional
        Edges of the bins of the pictures.
    clustered : bool
        Whether rows form clusters.
    options
        What else `Column` takes.
    """
    edges = np.linspace(*property.domain, bins + 1) if isinstance(bins, int) else bins
    if shown is None:
        shown = (
            binning(property, np.zeros(0), bins).shown if isinstance(bins, int) else np.linspace(*property.domain, 21)
        )
    ends = np.array([property.low, property.high])
    if first is None:
        outcomes = (
            ends
            if property.binary_p(0.0) is not None and property.outcome(0.0, 0.0) is not None
            else np.linspace(property.low, property.high, N_OUTCOMES)
        )
    else:
        outcomes = np.concatenate([first[~np.isnan(first)].clip(*ends), ends])
    parts = tuple(part for part in MERGED if clustered or part != "clusters")
    audit = Audit(property, groups, bins=edges)
    fine = None if edges is None else np.linspace(*property.domain, N_EVEN + 1)[1:-1]
    more: dict[str, Any] = {"fine": fine, "parts": parts, "means": TOLD, **options}
    return Column(audit, label="the model", shown=shown, first=outcomes, **more)


def merge_audits(
    files: Sequence[str],
    question: TaskConfig,
    *,
    save: str | os.PathLike[str] | None = None,
    processes: int | None = None,
) -> Column:
    """The column of all rows of several files together.

    Parameters
    ----------
    files : sequence of str
        Tables, and columns that were saved here or elsewhere, which end in .audit.
    question : TaskConfig
        Which columns, which groups, which property; for tables. What is not given, the range of outcomes and the bands
        of numbers, is settled by the first saved column, or by the first rows of the first table.
    save : path, optional
        Where to keep the sum: a file that can be added to others.
    processes : int, optional
        How many tables are read at a time. Default: as many as there are cores, and one if all of them together are
        small, as a process takes longer to start than a few megabytes take to read.

    Returns
    -------
    Column
        Ranges of forecasts are those of the first rows of the first table, as for a run; counts are exact, in any order
        of the files.
    """
    if question.p is None or question.linear or question.weight or question.hypotheses:
        raise InvalidInput("--merge adds up audits of --p over --groups, without --linear, --class and --weight")
    if save is not None and not str(save).endswith(ENDING):
        raise InvalidInput(f"an audit is saved in a file that ends in {ENDING}; got {str(save)!r}")
    stored = [Column.load(name) for name in files if name.endswith(ENDING)]
    tables = [name for name in files if not name.endswith(ENDING)]
    total = stored[0].emptied() if stored else _settled(tables[0], question)
    # The range and the bands are those of the first, so that parts can be added up.
    asked = replace(question, low=total.property.low, high=total.property.high)
    n = min(len(tables), _processes(tables) if processes is None else processes)
    arguments = [(name, asked, total.to_bytes()) for name in tables]
    for part in stored:
        total.merge(part)
    if n > 1:
        with ProcessPoolExecutor(n, mp_context=get_context("spawn")) as pool:
            parts = list(pool.map(_partial, arguments))
    else:
        parts = [_partial(each) for each in arguments]
    for data in parts:
        total.merge(Column.from_bytes(data))
    if save is not None:
        total.save(save)
    return total


def _processes(tables: Sequence[str]) -> int:
    small = all(os.path.isfile(name) for name in tables) and sum(map(os.path.getsize, tables)) < _SMALL
    return 1 if small else os.cpu_count() or 1


def _settled(table: str, question: TaskConfig) -> Column:
    with read(table, columns=question.columns) as records:
        records.lenient = question.bad_rows == "skip"
        first, _ = opening(records, question.prefix, records.name)
        target = Columns(question, first, records.name).property
        groups = ContextColumns.fitted(question, first).groups
        known = np.concatenate([known_outcomes(question, batch) for batch in first])
        p = np.concatenate([batch.numbers(str(question.p)) for batch in first])[: question.prefix]
        clustered = clusters_of(question, lambda name: entries(first[0].column(name))) is not None
    bins = binning(target, np.clip(p[~np.isnan(p)], *target.domain), question.bins)
    return mergeable_column(
        target, groups, bins.audit_bins, known, bins.shown, clustered=clustered, anytime=question.anytime
    )


def _partial(arguments: tuple[str, TaskConfig, bytes]) -> bytes:
    """The column of one table; rows without an outcome or a forecast are left out."""
    table, question, empty = arguments
    column = Column.from_bytes(empty)
    groups: Any = column.functions
    with read(table, columns=question.columns) as records:
        records.lenient = question.bad_rows == "skip"
        first, rest = opening(records, question.prefix, records.name)
        values = Columns(question, first, records.name)
        together = (
            None if column.clusters is None else clusters_of(question, lambda name: entries(first[0].column(name)))
        )
        for batch in chain(first, rest):
            y, p = values.labels(batch), values.forecasts(batch, str(question.p))
            both = np.flatnonzero(~np.isnan(y) & ~np.isnan(p))
            x = {name: taken(batch[name], both) for name in groups.columns}
            numbers = None if together is None else together.numbers(batch)[both]
            column.add(y[both], p[both], groups.rows(x, len(both)), clusters=numbers)
    return column.to_bytes()


def merged_result(
    before: Column | None,
    after: Column | None = None,
    *,
    source: str,
    config: TaskConfig,
    counts: Counts | None = None,
    paired: Paired | None = None,
    changed: int | None = None,
) -> Result:
    """What `auditing.audit` or `running.run` says of the rows of one table, of columns that were merged from parts.

    Parameters
    ----------
    before, after : Column, optional
        Of a model's forecasts and of swapcal's, one or both, as `mergeable_column` makes them.
    source : str
        What the page calls the rows.
    config : TaskConfig
        What was asked.
    counts : Counts, optional
        Of the rows, where more is known than how many were scored.
    paired : Paired, optional
        The losses before and after, on the same rows.
    changed : int, optional
        How many forecasts differ from the model's.

    Returns
    -------
    Result
        For the terminal, JSON and the page. Groups, intervals, errors and cells are those of one audit of all rows with
        the same bins. A sentence says what a sum does not tell.
    """
    given = {"before": before, "after": after}
    columns = {which: each for which, each in given.items() if each is not None and each.n_rounds}
    if not columns:
        raise DataError(f"{source}: there is no row with both an outcome and a forecast; check the columns")
    column = list(columns.values())[-1]
    target, by_day = column.property, not config.cluster

    def told(each: Column) -> ColumnSummary:
        return replace(each.summary(config.r), label="swapcal" if each is after else "the model")

    section = section_of(columns, told)
    stated = f"every one of the {len(column.audit.values):,} forecast values was judged by itself"
    if column.slot_edges is not None:
        stated = f"forecasts were taken together in {len(column.slot_edges) - 1} bins"
    outcome = verdict(section.before, section.after, wording=target.wording, paired=paired, changed=changed)
    left_out = (
        "This is a sum of audits: bias over time is not in it, and what chance alone would give was drawn for each "
        "group by itself, which is too much where groups overlap."
    )
    return Result.of(
        config,
        source,
        target,
        kind="audit" if after is None else "run",
        counts=replace(counts or Counts(0, rows=column.n_rounds), scored=column.n_rounds),
        verdict=replace(outcome, sentences=(*outcome.sentences, left_out)),
        sections=(replace(section, binning=stated),),
        range=Range(target.low, target.high, "as the parts of the audit have it"),
        clusters=told_clusters(ClusterNumbers(config.cluster or config.time or "", by_day=by_day), column),
        bands={name: tuple(cuts) for name, cuts in getattr(column.functions, "edges", {}).items()},
        paired={} if paired is None else {target.wording.loss: paired},
    )

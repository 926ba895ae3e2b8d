"""Several models on the same rows: an audit of each, and paired differences of their losses, also per group."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from swapcal.audit.group_bias import ALPHA
from swapcal.audit.group_sums import GroupSums
from swapcal.audit.paired import Paired, PairedLosses
from swapcal.errors import DataError, InvalidInput
from swapcal.jobs.audience import Audience
from swapcal.jobs.auditing import audited, clusters_of, surveyed
from swapcal.jobs.passes import Passes
from swapcal.jobs.question import Question
from swapcal.jobs.result import Result
from swapcal.jobs.row_values import finite, known_outcomes, raw_weights
from swapcal.roles import Elicitable
from swapcal.tables.records import Batch
from swapcal.typing import Float64Array

__all__ = ["Comparison", "LossDifference", "compare"]


@dataclass(frozen=True, slots=True, eq=False)
class LossDifference:
    """Loss of a model less that of the first, on rows for which all models have a forecast.

    overall: of all rows, from paired blocks of the stream. mean, low, high: by group, intervals that hold for all
    groups of this model together with 95 %, in the limit of many rows (or clusters of them); infinite for few.
    """

    overall: Paired | None
    mean: dict[str, float]
    low: dict[str, float]
    high: dict[str, float]

    def sure(self, group: str) -> int:
        """-1 if the model is better than the first for this group beyond doubt, 1 if it is worse, else 0."""
        low, high = self.low.get(group, -np.inf), self.high.get(group, np.inf)
        return -1 if high < 0.0 else 1 if low > 0.0 else 0


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Audits by model, in the order asked; differences of every model but the first; rows with all forecasts."""

    source: str
    results: dict[str, Result]
    differences: dict[str, LossDifference]
    n_paired: int

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the columns of forecasts, the one that others are compared with first."""
        return tuple(self.results)

    @property
    def first(self) -> Result:
        """The audit of the first model."""
        return self.results[self.models[0]]


def compare(
    source: Any,
    question: Question,
    models: Sequence[str],
    *,
    progress: Callable[[int], None] | None = None,
) -> Comparison:
    """Audit several columns of forecasts of one table, and compare their losses row by row.

    Parameters
    ----------
    source : Passes or anything that `records.read` takes
        The table.
    question : Question
        As for `auditing.audit`; its `p` does not matter.
    models : sequence of str
        Two columns of forecasts or more; the others are compared with the first.
    progress : callable, optional
        Called with the number of rows done after each batch.

    Returns
    -------
    Comparison
        What each audit would say by itself, and the differences.

    Notes
    -----
    The table is read twice for each model, and twice for the differences. Losses of two models on one row meet the same
    outcome, so their difference varies far less than each of them.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> score = rng.random(4000)
    >>> table = {"late": rng.random(4000) < score, "good": score, "bad": 0.5 + 0.3 * score}
    >>> found = compare(table, Question("late"), ["bad", "good"])
    >>> found.differences["good"].sure("all"), found.results["good"].verdict.kind
    (-1, 'fine')
    """
    if len(models) < 2 or len(set(models)) < len(models):
        raise InvalidInput(f"a comparison needs two columns of forecasts or more, each once; got {list(models)}")
    columns = question.columns
    wanted = None if columns is None else tuple(dict.fromkeys((*columns, *models)))
    n_passes = 2 * len(models) + 2
    with source if isinstance(source, Passes) else Passes(source, wanted, n_passes=n_passes) as passes:
        results = {}
        for model in models:
            results[model] = _named(audited(passes, replace(question, p=model), model, progress), model)
        differences, n_paired = _differences(passes, question, results, progress)
        return Comparison(passes.name, results, differences, n_paired)


def _named(result: Result, model: str) -> Result:
    """The audit with the model's own name in the place of "the model"."""
    assert result.before is not None
    return replace(result, before=replace(result.before, label=model))


def _differences(
    passes: Passes, question: Question, results: Mapping[str, Result], progress: Callable[[int], None] | None
) -> tuple[dict[str, LossDifference], int]:
    first, *others = results
    survey = surveyed(passes, question, first, progress)
    audience = Audience.seen(question, lambda names: survey.sample())
    clusters = clusters_of(question, survey)
    n = audience.groups.n
    sums = {model: GroupSums(n, binary=False, clusters=clusters is not None) for model in others}
    blocks = {model: PairedLosses() for model in others}
    n_paired = 0
    for batch in passes.batches():
        losses, weights = _losses(batch, question, results)
        numbers = None if clusters is None else clusters.numbers(batch)
        rows = audience.rows(batch)
        kept = np.flatnonzero(~np.isnan(sum(losses.values(), start=np.zeros(batch.n))))
        n_paired += len(kept)
        groups, w = rows.taken(kept).groups, None if weights is None else weights[kept]
        for model in others:
            blocks[model].add(losses[first][kept], losses[model][kept], w)
            difference = losses[model][kept] - losses[first][kept]
            sums[model].add(groups, difference, weights=w, clusters=None if numbers is None else numbers[kept])
        if progress is not None:
            progress(survey.n_rows)
    if not n_paired:
        raise DataError(f"{passes.name} has no row with an outcome and a forecast of every model; check the columns")
    names = audience.groups.names
    return {model: _difference(sums[model], blocks[model], names) for model in others}, n_paired


def _losses(
    batch: Batch, question: Question, results: Mapping[str, Result]
) -> tuple[dict[str, Float64Array], Float64Array | None]:
    """Losses of each row, NaN where the outcome or the forecast is missing; and weights."""
    y = known_outcomes(question, batch, batch.name)
    losses = {}
    for model, result in results.items():
        what = result.property
        assert isinstance(what, Elicitable)
        p = np.clip(finite(batch.numbers(model), batch, model, batch.name), *what.domain)
        losses[model] = np.asarray(what.loss(p, np.clip(y, result.low, result.high)), dtype=np.float64)
    weights = None if question.weight is None else raw_weights(batch, question.weight, batch.name)
    return losses, weights


def _difference(sums: GroupSums, blocks: PairedLosses, names: tuple[str, ...]) -> LossDifference:
    sums.close()
    used = [j for j in range(len(names)) if sums.arrays["rows"][j] > 0]
    found = sums.bias(ALPHA / max(len(used), 1))
    mean = sums.mean
    return LossDifference(
        overall=blocks.paired(),
        mean={names[j]: float(mean[j]) for j in used},
        low={names[j]: float(found.low[j]) for j in used},
        high={names[j]: float(found.high[j]) for j in used},
    )

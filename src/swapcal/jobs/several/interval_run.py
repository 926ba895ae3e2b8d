"""From records to intervals: each row's from the rows before it, with coverage and width of every group."""

from collections.abc import Callable, Sequence
from typing import Any

from swapcal.checked import level
from swapcal.errors import DataError
from swapcal.jobs.auditing import versions
from swapcal.jobs.before_after import DELTA
from swapcal.jobs.checkpoint import Checkpoint
from swapcal.jobs.output_and_state import Path_, opened
from swapcal.jobs.question import Question
from swapcal.jobs.result import Result
from swapcal.jobs.row_loop import play
from swapcal.jobs.several.interval_columns import IntervalColumns
from swapcal.jobs.several.interval_result import IntervalResult
from swapcal.jobs.several.interval_state import IntervalState
from swapcal.jobs.several.seen_rows import settings_of
from swapcal.properties import Quantile
from swapcal.tables.records import Batch
from swapcal.words.interval_words import SCORE, interval_verdict

__all__ = ["run_interval"]


def run_interval(
    source: Any,
    question: Question,
    coverage: float,
    *,
    model: Sequence[str] = (),
    learn: bool = True,
    out: Path_ | None = None,
    state: Path_ | None = None,
    horizon: int | None = None,
    seed: int | None = None,
    fresh: bool = False,
    overwrite: bool = False,
    progress: Callable[[int], None] | None = None,
    stop: Callable[[], bool] | None = None,
    say: Callable[[str], None] | None = None,
) -> IntervalResult:
    """Intervals that cover a share of outcomes in every group, for a table as a stream, beside the model's own.

    Parameters
    ----------
    source : Records or anything that `records.read` takes
        The table.
    question : Question
        Outcomes, groups, and the range of outcomes if there is one (`low`, `high`); its property is not looked at.
    coverage : float
        The share of outcomes to cover.
    model : sequence of str
        Columns: a forecast; or the lower and the upper end of the model's own intervals; or lower, forecast, upper.
    learn, horizon, seed
        As for `Interval`.
    out : path, optional
        Intervals of every row: .csv, .jsonl or .parquet, with the columns row, before (the model's forecast),
        before_lower, before_upper, lower and upper. Before 20 outcomes are known, and without intervals of the model,
        there is none.
    state, fresh, overwrite, progress, stop, say
        As for `running.run`.

    Returns
    -------
    IntervalResult
        Coverage, width and interval score of every group.

    Notes
    -----
    An interval covers an outcome that is equal to one of its ends. Cost: three forecasters.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> noisy = rng.random(3000) < 0.3
    >>> table = {"y": rng.normal(0.0, 1.0 + 2.0 * noisy), "noisy": noisy, "low": np.full(3000, -1.6)}
    >>> table["high"] = -table["low"]
    >>> found = run_interval(table, Question("y", groups=["noisy"]), 0.9, model=["low", "high"], seed=1)
    >>> found.covered.verdict.headline[:30]
    'Use the recalibrated intervals'
    """
    columns = IntervalColumns(question, model)
    asked_coverage = level(coverage)
    asked = {**settings_of(question), "interval": asked_coverage, "model": list(model), "learn": learn}
    asked |= {"horizon": horizon, "seed": seed}
    names = IntervalState.output(columns)
    with opened(source, columns.names, asked, names, out, state, fresh=fresh, overwrite=overwrite) as (records, files):

        def make(first: list[Batch], expected: int | None, begun: Checkpoint | None) -> IntervalState:
            seen = (asked_coverage, columns, first, records.name)
            return IntervalState(*seen, horizon=expected, seed=seed, learn=learn, saved=begun)

        played = play(records, question.prefix, make, files, horizon=horizon, progress=progress, stop=stop, say=say)
        return _result(records.name, played.run, asked_coverage, files.asked)


def _result(source: str, current: IntervalState, coverage: float, asked: dict[str, Any]) -> IntervalResult:
    columns, question = current.columns, current.columns.question
    if not current.after.column.n_rounds:
        raise DataError(
            f"{source} has no row with an outcome in {question.y!r} and an interval; at least 21 outcomes are needed"
        )
    before = None
    if current.before is not None and current.before.column.n_rounds:
        before = current.before.summary()
    after = current.after.summary()
    sides = {"before": current.before, "after": current.after}
    used = {which: side for which, side in sides.items() if side is not None and side.column.n_rounds}
    widths = {which: side.means.of("width") for which, side in used.items()}
    paired = current.losses.paired()
    asked_for = Quantile(coverage)
    said = interval_verdict(before, after, asked_for, paired, {which: float(w[0]) for which, w in widths.items()})
    quantiles = current.interval.quantiles
    covered = Result(
        kind="run",
        source=source,
        property=asked_for,
        loss_name=SCORE,
        low=0.0,
        high=1.0,
        groups=current.after.column.names,
        n_rounds=current.after.column.n_rounds,
        n_missing=current.n_missing,
        n_clipped=columns.n_clipped,
        before=before,
        after=after,
        history=None,
        paired=paired,
        verdict=said,
        guarantee=None,
        settings={
            **asked,
            "seed": quantiles.seed,
            "miscovered_rows_at_most": current.interval.miscoverage(DELTA),
            "rows": current.n_rows,
            "rows_without_interval_yet": current.n_early,
            "rows_without_hint": current.n_unhinted,
            "intervals_crossed_before": columns.n_crossed,
            "bands": {name: list(edges) for name, edges in current.seen.audience.groups.edges.items()},
        },
        versions=versions(),
    )
    scores = {which: side.means.of("score") for which, side in used.items()}
    return IntervalResult(covered, coverage, widths, scores)

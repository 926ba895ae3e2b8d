"""From records to probabilities of classes: each row's from the rows before it, audited class by class."""

from collections.abc import Callable, Sequence
from typing import Any

from swapcal.audit.summary import ColumnSummary, summarize
from swapcal.errors import DataError
from swapcal.jobs.auditing import versions
from swapcal.jobs.before_after import DELTA
from swapcal.jobs.checkpoint import Checkpoint
from swapcal.jobs.output_and_state import Path_, opened
from swapcal.jobs.question import Question
from swapcal.jobs.result import Result
from swapcal.jobs.row_loop import play
from swapcal.jobs.several.class_columns import ClassColumns
from swapcal.jobs.several.class_result import TOP, ClassResult
from swapcal.jobs.several.class_state import ClassState
from swapcal.jobs.several.seen_rows import settings_of
from swapcal.properties import Probability
from swapcal.tables.records import Batch
from swapcal.words.class_words import class_verdict
from swapcal.words.property_words import loss_name
from swapcal.words.verdicts import verdict

__all__ = ["run_classes"]


def run_classes(
    source: Any,
    question: Question,
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
) -> ClassResult:
    """Probabilities of classes for a table as a stream, calibrated in every group, beside the model's own.

    Parameters
    ----------
    source : Records or anything that `records.read` takes
        The table.
    question : Question
        The column whose values are the classes, and the groups; its property is not looked at.
    model : sequence of str
        Columns of the model's probabilities, named after the classes, or "class=column"; see `ClassColumns`. Without
        them, forecasts start from what came up in each group.
    learn : bool
        Put a model that learns between the hints and the engine, for each class.
    horizon, seed
        As for `Classes`.
    out : path, optional
        Of every row: row, p_<class> for each class, top (the likeliest class) and confidence (its probability, which is
        calibrated by itself and need not be p_<top>); .csv, .jsonl or .parquet.
    state, fresh, overwrite, progress, stop, say
        As for `running.run`.

    Returns
    -------
    ClassResult
        The audits of the likeliest class and of each class, for every group.

    Notes
    -----
    Without a model, the classes are the outcomes of the first 10,000 rows. Later outcomes that are no class are counted
    and not learned from. Cost: a forecaster for each class, and one more.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> table = {"y": rng.choice(["a", "b", "c"], 3000, p=[0.6, 0.3, 0.1])}
    >>> table |= {f"p_{name}": np.full(3000, 1 / 3) for name in "abc"}
    >>> found = run_classes(table, Question("y"), model=["p_a", "p_b", "p_c"], seed=1)
    >>> found.verdict.headline[:34]
    'Use the recalibrated probabilities'
    """
    columns = ClassColumns(question, model)
    asked = {**settings_of(question), "classes": True, "model": list(model), "learn": learn}
    asked |= {"horizon": horizon, "seed": seed}
    with opened(source, columns.names, asked, (), out, state, fresh=fresh, overwrite=overwrite) as (records, files):

        def make(first: list[Batch], expected: int | None, begun: Checkpoint | None) -> ClassState:
            made = ClassState(columns, first, records.name, horizon=expected, seed=seed, learn=learn, saved=begun)
            files.name_columns(made.output)
            return made

        played = play(records, question.prefix, make, files, horizon=horizon, progress=progress, stop=stop, say=say)
        return _result(records.name, played.run, files.asked)


def _result(source: str, current: ClassState, asked: dict[str, Any]) -> ClassResult:
    columns = current.columns
    if not current.after.top.n_rounds:
        raise DataError(
            f"{source} has no row whose outcome in {columns.question.y!r} is one of the classes; nothing can be scored"
        )
    sides = {"before": current.before, "after": current.after}
    used = {which: side for which, side in sides.items() if side is not None and side.top.n_rounds}
    means = {which: {name: side.means.of(name) for name in side.means.names} for which, side in used.items()}
    bounds = current.forecaster.guarantee(DELTA)
    settings = {
        **asked,
        "class_names": list(columns.classes),
        "seed": current.forecaster.seed,
        "rows": current.n_rows,
        "rows_without_hint": current.n_unhinted,
        "rows_of_no_class": columns.n_strange,
        "rows_divided_by_their_sum": columns.n_rescaled,
        "bands": {name: list(edges) for name, edges in current.seen.audience.groups.edges.items()},
    }

    def audited(name: str, at: int | None, guarantee: float) -> Result:
        found: dict[str, ColumnSummary] = {
            which: summarize(side.top if at is None else side.classes[at]) for which, side in used.items()
        }
        before, after = found.get("before"), found["after"]
        return Result(
            kind="run",
            source=source,
            property=Probability(),
            loss_name=loss_name(Probability()),
            low=0.0,
            high=1.0,
            groups=current.after.top.names,
            n_rounds=current.after.top.n_rounds,
            n_missing=current.n_missing,
            n_clipped=0,
            before=before,
            after=after,
            history=None,
            paired=None,
            verdict=verdict(before, after, property=Probability()),
            guarantee=guarantee,
            settings={**settings, "class": name},
            versions=versions(),
        )

    top = audited(TOP, None, bounds[-1])
    classes = {name: audited(name, k, bounds[k]) for k, name in enumerate(columns.classes)}
    brier, log = current.brier.paired(), current.log.paired()
    shown = {name: (one.before, one.after) for name, one in classes.items()}
    everybody = {which: {name: float(values[0]) for name, values in some.items()} for which, some in means.items()}
    said = class_verdict((top.before, top.after), shown, everybody, brier, log)
    return ClassResult(top, classes, means, brier, log, said, current.n_rows, columns.n_strange)

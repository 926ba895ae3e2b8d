"""The verdict, and all that a page shows, from an audit that was added up: from its sums, without the rows."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from swapcal.audits import Audit
from swapcal.audits.column import Column
from swapcal.audits.column_of_sums import column_of_sums
from swapcal.audits.summary import ColumnSummary, summarize
from swapcal.errors import DataError
from swapcal.hypotheses import Groups
from swapcal.tasks.result import Counts, Range, Result, Section, versions
from swapcal.tasks.survey import binning
from swapcal.text.verdict import verdict


def has_verdict(audit: Audit) -> bool:
    """Whether the sums tell enough: those of means and probabilities do, whose V has the outcome in it."""
    return audit.property.outcome(audit.property.low, 0.0) is not None


def merged_result(
    before: Audit | None,
    after: Audit | None = None,
    *,
    source: str,
    config: Mapping[str, Any] | None = None,
    y: str = "the outcome",
    r: float = 2.0,
    keys: int = 0,
) -> Result:
    """What `auditing.audit` or `running.run` says of the rows of one table, of audits that were merged from parts.

    Parameters
    ----------
    before, after : Audit, optional
        Of a model's forecasts and of swapcal's, one or both: of a mean or a probability, over groups; each forecast by
        itself, or with a whole number of `bins`.
    source : str
        What the page calls the rows.
    config : mapping, optional
        What was asked, as `TaskConfig.settings` has it.
    y : str
        The column of outcomes.
    r : float
        Power of the error.
    keys : int
        How many forecasters took part, where every key has its own.

    Returns
    -------
    Result
        For the terminal, JSON and the page. Groups, intervals, errors and cells are those of one audit of all rows with
        the same bins. A sentence says what sums do not tell.
    """
    audit = before if after is None else after
    if audit is None or not audit.n_rounds:
        raise DataError(f"{source}: there is no row with both an outcome and a forecast; check the columns")
    target, table = audit.property, audit.table()
    n_bins = audit.bins if isinstance(audit.bins, int) else None
    bins = binning(target, table.value, n_bins)
    if n_bins is None:
        bins = bins._replace(stated=f"every one of the {len(table.value):,} forecast values was judged by itself")
    columns = [
        None if each is None or not each.n_rounds else column_of_sums(_named(each), label=label, shown=bins.shown)
        for each, label in ((before, "the model"), (after, "swapcal"))
    ]
    sides = [None if column is None else _summary(column, r) for column in columns]
    column = next(column for column in reversed(columns) if column is not None)
    told = verdict(*sides, wording=target.wording, r=r)
    left_out = [
        "This is a sum of audits: bias over time and rows without an outcome or a forecast are not in it, and what "
        "chance alone would give was drawn for each group by itself, which is too much where groups overlap"
    ]
    if n_bins is not None:
        left_out.append(f"losses and scores are those of forecasts rounded to the mid-points of {n_bins} bins")
    if column.scores is None:
        left_out.append("curves need the outcomes themselves, and are left out")
    edges = audit.hypotheses.edges if isinstance(audit.hypotheses, Groups) else {}
    return Result(
        kind="audit" if after is None else "run",
        task="scalar",
        source=source,
        y=y,
        property=repr(target),
        wording=target.wording,
        counts=Counts(scored=audit.n_rounds, rows=audit.n_rounds, keys=keys),
        verdict=replace(told, sentences=(*told.sentences, "; ".join(left_out) + ".")),
        sections=(Section("", sides[0], sides[1], column.names, binning=bins.stated),),
        config={"y": y, **({} if config is None else config), "r": r},
        versions=versions(),
        r=r,
        range=Range(target.low, target.high, "as the parts of the audit have it"),
        bands={name: tuple(cuts) for name, cuts in edges.items()},
    )


def _summary(column: Column, r: float) -> ColumnSummary:
    found = replace(summarize(column, r), histories=None, since=None)
    return found if column.scores is not None else replace(found, curves={})


def _named(audit: Audit) -> Audit:
    """The audit over groups, of which everybody is the first; without groups it is everybody alone."""
    if audit.hypotheses is not None:
        return audit
    named = Audit(audit.property, Groups([], limit=1), bins=audit.bins, names=audit.names)
    named.restore(audit.arrays())
    return named

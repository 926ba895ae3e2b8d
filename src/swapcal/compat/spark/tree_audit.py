"""One audit over all rows of a DataFrame: parts on the workers, added up by tree."""

from collections.abc import Iterator, Sequence
from typing import Any

from swapcal.audit import Audit
from swapcal.compat.spark.on_workers import batches, merged_audits, partial_audit
from swapcal.compat.spark.recalibrating import PROBABILITY
from swapcal.errors import InvalidInput
from swapcal.hypotheses import Groups
from swapcal.jobs.merged_result import merged_result
from swapcal.jobs.result import Result
from swapcal.roles import Elicitable
from swapcal.tables.extras import package

__all__ = ["audit", "judged"]

_BRANCHES = 16


def judged(total: Audit, *, source: str = "a DataFrame", y: str = "the outcome", r: float = 2.0) -> Result:
    """The verdict in words, the groups with intervals, and all else that a page shows, from an `audit`.

    Parameters
    ----------
    total : Audit
        Of means or probabilities; `bins=64` keeps its cells few.
    source, y : str
        What the page calls the rows and the outcome.
    r : float
        Power of the error.

    Returns
    -------
    Result
        `result.verdict`; `swapcal.report.page.write(result, "audit.html")`; `swapcal.jobs.storage.to_json(result)`.
        What sums do not tell is left out, and a sentence of the verdict says what that is.
    """
    return merged_result(total, source=source, settings={"y": y}, r=r)


def audit(
    df: Any,
    *,
    forecast: str,
    y: str,
    property: Elicitable = PROBABILITY,
    groups: Sequence[Any] | Groups = (),
    bins: int | Sequence[float] | None = None,
    limit: int = 1000,
) -> Audit:
    """The audit of all rows that have a forecast and an outcome; equal to the one on a single machine.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        A batch.
    forecast, y : str
        The columns of the forecasts and of the outcomes.
    property : Elicitable
        What was forecast. Default `Probability()`.
    groups : sequence or Groups
        Columns and tuples of columns; every value is a group, matched by name over all parts. For bands of numbers give
        `Groups` that were fitted, on a sample. None: everybody.
    bins : int or sequence of float, optional
        As for `Audit`; None: each forecast by itself.
    limit : int
        Groups that a part may find, where `groups` are columns.

    Returns
    -------
    Audit
        On the driver: counts are exact, sums are so where they are exact in any order, and to about 1e-12 elsewhere.
    """
    if df.isStreaming:
        raise InvalidInput("an audit is of a batch: read the stream's sink, or audit each batch and merge the audits")
    hypotheses = groups if isinstance(groups, Groups) else Groups(groups, limit=limit) if groups else None
    columns = () if hypotheses is None else hypotheses.columns
    there = [name for name, _ in df.dtypes]
    for name in (forecast, y, *columns):
        if name not in there:
            raise InvalidInput(f"there is no column {name!r}; there are {', '.join(map(repr, there[:20]))}")
    empty = Audit(property, hypotheses, bins=bins).to_bytes()
    functions = package("pyspark.sql.functions", "audit", extra="spark")

    def part(parts: Iterator[Any]) -> Iterator[Any]:
        pa = package("pyarrow", "swapcal.compat.spark", extra="spark")

        yield pa.RecordBatch.from_pydict({"audit": [partial_audit(batches(parts), empty, forecast, y, columns)]})

    def merge(table: Any) -> Any:
        pa = package("pyarrow", "swapcal.compat.spark", extra="spark")

        return pa.table({"audit": [merged_audits(table["audit"].to_pylist())]})

    parts = df.select(*dict.fromkeys((forecast, y, *columns))).mapInArrow(part, "audit binary")
    n_parts = df.rdd.getNumPartitions() if hasattr(df, "rdd") else _BRANCHES
    if n_parts > _BRANCHES:
        branch = functions.pmod(functions.spark_partition_id(), functions.lit(max(n_parts // _BRANCHES, 2)))
        parts = parts.withColumn("branch", branch).groupBy("branch").applyInArrow(merge, "audit binary")
    found = merged_audits(bytes(row[0]) for row in parts.collect())
    return Audit.from_bytes(empty if found is None else found)

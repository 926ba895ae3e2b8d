"""`swapcal audit`: whether forecasts can be trusted for everybody."""

from typing import Annotated

import typer

from swapcal.cli import options
from swapcal.cli.exits import guarded, listen_alone, needs

__all__ = ["audit"]


def audit(
    file: options.File,
    y: options.Outcome,
    p: Annotated[str, typer.Option(help="Column of forecasts.")],
    groups: options.Groups = None,
    linear: Annotated[str | None, typer.Option(help="Columns of numbers: all linear functions of them.")] = None,
    property: options.Property = "mean",
    low: options.Low = None,
    high: options.High = None,
    positive: options.Positive = None,
    weight: options.Weight = None,
    bins: Annotated[
        int | None,
        typer.Option(
            min=1, help="Round forecasts to so many equal bins; else up to 200 values as they are, or about 48 bins."
        ),
    ] = None,
    r: options.Power = 2.0,
    limit: options.Limit = 2_500,
    report: options.Page = None,
    json: options.AsJson = False,
    fail_above: Annotated[
        float | None, typer.Option(help="Exit with 1 if the swap error is above this many times T^(1/3).")
    ] = None,
) -> None:
    """Can these forecasts be trusted for everybody? Totals, the worst cells, and a verdict in words.

    Rows without an outcome or without a forecast are counted and not scored. With --fail-above it is a test for a
    pipeline: T is the number of rows, and for another power -r the unit is T^(1/(r+1)).

    Exit codes: 0 fine, 1 the swap error is above --fail-above, 2 bad input, 130 stopped with Ctrl-C.

    Example: swapcal audit scores.csv --y late --p score --groups carrier,origin,carrier*origin
    """
    with guarded() as stopped:
        needs("rich", "the tables")
        from swapcal.cli.output import tell
        from swapcal.cli.progress import following
        from swapcal.jobs import auditing
        from swapcal.jobs.guard import apart, check_page
        from swapcal.tables.records import read

        listen_alone()
        asked = {"property": property, "low": low, "high": high, "positive": positive, "weight": weight, "r": r}
        question = options.question(y, p, groups, linear, **asked, bins=bins, limit=limit)
        check_page(report)
        records = read(file, columns=question.columns)
        apart({"the input": records.file, "the page": report})
        with following(records, "auditing", stopped) as progress:
            result = auditing.audit(records, question, progress=progress)
        tell(result, report=report, json=json, fail_above=fail_above)

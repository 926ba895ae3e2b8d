"""`swapcal audit`: whether forecasts can be trusted for everybody."""

from pathlib import Path
from typing import Annotated

import typer

from swapcal.cli.exits import guarded, needs

__all__ = ["audit"]


def audit(
    file: Annotated[str, typer.Argument(help="CSV, Parquet or JSON lines; - for standard input.")],
    y: Annotated[str, typer.Option(help="Column of outcomes.")],
    p: Annotated[str, typer.Option(help="Column of forecasts.")],
    groups: Annotated[
        str | None, typer.Option(help="Columns, intersections, comparisons: sex,race,sex*race,age >= 60.")
    ] = None,
    linear: Annotated[str | None, typer.Option(help="Columns of numbers: all linear functions of them.")] = None,
    property: Annotated[str, typer.Option(help="mean, median, quantile:0.9, expectile:0.8 or moment:2.")] = "mean",
    low: Annotated[float | None, typer.Option(help="Smallest outcome; else learned from 10,000 rows.")] = None,
    high: Annotated[float | None, typer.Option(help="Largest outcome; else learned from 10,000 rows.")] = None,
    positive: Annotated[str | None, typer.Option(help="The outcome is 1 where the column equals this text.")] = None,
    weight: Annotated[str | None, typer.Option(help="Column of weights.")] = None,
    bins: Annotated[
        int | None,
        typer.Option(
            min=1, help="Round forecasts to so many equal bins; else up to 200 values as they are, or about 48 bins."
        ),
    ] = None,
    r: Annotated[float, typer.Option(help="Power of the error, 1 or more.")] = 2.0,
    limit: Annotated[int, typer.Option(min=1, help="Largest number of groups.")] = 2_500,
    report: Annotated[Path | None, typer.Option(help="Also write the page to this HTML file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
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
        from swapcal.jobs.question import Question, parse_groups
        from swapcal.tables.records import read

        question = Question(
            y,
            p,
            groups=() if groups is None else parse_groups(groups),
            linear=() if linear is None else tuple(name.strip() for name in linear.split(",")),
            property=property,
            low=low,
            high=high,
            positive=positive,
            weight=weight,
            r=r,
            bins=bins,
            limit=limit,
        )
        records = read(file, columns=question.columns)
        with following(records, "auditing", stopped) as progress:
            result = auditing.audit(records, question, progress=progress)
        tell(result, report=report, json=json, fail_above=fail_above)

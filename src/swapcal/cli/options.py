"""Options that several commands share, each written once."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swapcal.properties import names

if TYPE_CHECKING:
    from swapcal.tasks.config import TaskConfig

File = Annotated[str, typer.Argument(help="CSV, Parquet or JSON lines; - for standard input.")]
Outcome = Annotated[str, typer.Option(help="Column of outcomes.")]
Groups = Annotated[str | None, typer.Option(help="Columns, intersections, comparisons: sex,race,sex*race,age >= 60.")]
Categories = Annotated[
    str | None, typer.Option(help="Columns of --groups whose numbers are names (stores, postcodes): no bands of them.")
]
Property = Annotated[str, typer.Option(help=f"{names()}.")]
Low = Annotated[float | None, typer.Option(help="Smallest outcome; else that of the file (run: of 10,000 rows).")]
High = Annotated[float | None, typer.Option(help="Largest outcome; else that of the file (run: of 10,000 rows).")]
Time = Annotated[
    str | None, typer.Option(help="Column of times, rows sorted by it: since when; rows of a day count together.")
]
Cluster = Annotated[
    str | None, typer.Option(help="Column by which rows hang together (a day, a person), sorted by it; '' for none.")
]
FailAbove = Annotated[
    str | None,
    typer.Option(
        help="Exit with 1 if a group is off beyond doubt by more than this: points of probability or coverage, else "
        "units of the outcome. groups:N counts groups off; rms:X takes the root mean square bias of all cells."
    ),
]
Positive = Annotated[str | None, typer.Option(help="The outcome is 1 where the column equals this text.")]
Weight = Annotated[str | None, typer.Option(help="Column of weights.")]
Power = Annotated[float, typer.Option(help="Power of the error, 1 or more.")]
Costs = Annotated[
    str | None, typer.Option(help="What a false alarm and a missed event cost who acts on the forecasts, as 1:5.")
]
Limit = Annotated[int, typer.Option(min=1, help="Largest number of groups.")]
Page = Annotated[Path | None, typer.Option(help="Also write the page to this HTML file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


def question(y: str, p: str | None, groups: str | None, linear: str | None, **asked: Any) -> "TaskConfig":
    """The question that the options ask; groups and linear columns as they are written on the command line."""
    from swapcal.tasks.config import TaskConfig, parse_columns, parse_groups

    asked["categories"] = parse_columns(asked["categories"]) if asked.get("categories") else ()
    names = () if linear is None else parse_columns(linear)
    return TaskConfig(y, p, groups=() if groups is None else parse_groups(groups), linear=names, **asked)

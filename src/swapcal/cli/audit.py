"""`swapcal audit`: whether forecasts can be trusted for everybody."""

from pathlib import Path
from typing import Annotated, Any

import typer

from swapcal.cli import options as shared
from swapcal.cli.terminal import error_boundary, listen_alone, needs
from swapcal.errors import InvalidInput
from swapcal.text.numbers import counted


@shared.configured(
    "y p groups categories linear property low high positive weight bins r costs limit time cluster",
    p="Column of forecasts; several (a,b,c) are compared with the first.",
    linear="Columns of numbers: all linear functions of them.",
    bins="Round forecasts to so many equal bins; else up to 200 values as they are, or about 48 bins.",
    time="Column of times, rows sorted by it: since when; rows of a day count together.",
)
def audit(
    files: Annotated[
        list[str], typer.Argument(help="CSV, Parquet or JSON lines; - for standard input. With --merge, several.")
    ],
    options: dict[str, Any],
    config: shared.ConfigFile = None,
    discover: Annotated[
        bool, typer.Option("--discover", help="Search all columns for subgroups with bias that nobody listed.")
    ] = False,
    merge: Annotated[
        bool, typer.Option("--merge", help="One audit over several files, and over audits that --save has kept.")
    ] = False,
    save: Annotated[
        Path | None, typer.Option(help="With --merge: keep the sums in a file (.audit) that can be added to others.")
    ] = None,
    report: shared.Page = None,
    json: shared.AsJson = False,
    fail_above: shared.FailAbove = None,
) -> None:
    """Can these forecasts be trusted for everybody? A verdict in words, and every group with its bias.

    Rows without an outcome or without a forecast are counted and not scored. The file is read twice. With --fail-above
    it is a test for a pipeline: --fail-above 2 fails where a group's probability is off by more than 2 points beyond
    doubt, so it does not fail by chance.

    Exit codes: 0 fine, 1 above --fail-above, 2 bad input, 130 stopped with Ctrl-C.

    With --merge every file is audited by itself, and the audits are added up: swapcal audit monday.parquet
    tuesday.parquet --merge --y late --p score --save both.audit. Such files add up, too, whoever made them.

    Example: swapcal audit scores.csv --y late --p score --groups carrier,origin,carrier*origin
    """
    with error_boundary() as stopped:
        needs("rich", "the tables")
        from swapcal.cli.output import show
        from swapcal.cli.progress import following
        from swapcal.tables.records import RereadableSource
        from swapcal.tasks import audit as auditing
        from swapcal.tasks import audit as comparing
        from swapcal.tasks.audit import merge_audits, merged_result
        from swapcal.tasks.files import check_distinct, check_page
        from swapcal.tasks.result import parse_threshold

        listen_alone()
        models = shared.models(config, options)
        question = shared.task_config(config, options, p=models[0])
        if fail_above is not None:
            parse_threshold(fail_above)
        check_page(report)
        if merge:
            refused = {
                "--discover": discover,
                "--costs": question.costs,
                "--time": question.time,
                "--cluster": question.cluster,
            }
            if given := [name for name, value in refused.items() if value]:
                raise InvalidInput(f"--merge goes without {', '.join(given)}: sums do not tell that, rows do")
            if len(models) > 1:
                raise InvalidInput(
                    f"--merge adds up audits of one model at a time; got {','.join(models)!r}, name one column in --p"
                )
            total = merge_audits(files, question, save=save)
            source = files[0] if len(files) == 1 else counted(len(files), "file")
            merged = merged_result(total, source=source, config=question.settings(), y=question.y, r=question.r)
            show(merged, report=report, json=json, fail_above=fail_above)
            return
        if len(files) > 1 or save is not None:
            raise InvalidInput("several files, and --save, need --merge, which adds up their audits")
        file = files[0]
        several = len(models) > 1
        if several and discover:
            raise InvalidInput("--discover searches for one model at a time; name one column in --p")
        columns = None if discover or question.columns is None else (*question.columns, *models[1:])
        passes = RereadableSource(file, columns, n_passes=2 * len(models) + 2 if several else 3 if discover else 2)
        check_distinct({"the input": passes.file, "the page": report})
        if several:
            with following(passes, "comparing", stopped) as progress:
                comparison = comparing.compare(passes, question, models, progress=progress)
            show(comparison, report=report, json=json, fail_above=fail_above)
            return
        with following(passes, "auditing", stopped) as progress:
            result = auditing.audit(passes, question, discover=discover, progress=progress)
        show(result, report=report, json=json, fail_above=fail_above)

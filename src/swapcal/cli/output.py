"""Results in the terminal: the verdict first, then what is behind it; as JSON; and as a page."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import typer

from swapcal.errors import DataError, MissingExtra
from swapcal.tasks.result import Result, above, parse_threshold, to_json
from swapcal.text.numbers import printable
from swapcal.text.summary import behind, headline, summary
from swapcal.text.verdict import class_title

BADGES = {"good": ("white", "green"), "unsure": ("black", "yellow"), "bad": ("white", "red")}


class Shown(NamedTuple):
    """What a command prints of its result: JSON, the first line, all groups, or also what is behind it."""

    json: bool = False
    quiet: bool = False
    every: bool = False
    verbose: bool = False


def show(result: Result, shown: Shown, *, report: Path | None, fail_above: str | None, last: str | None = None) -> None:
    """The end of a command: the page, the result as JSON or as lines with a `last` one, and the exit code 1."""
    page = None if report is None else save_page(result, report)
    wrote = [printable(line) for line in (None if page is None else f"Wrote {page}", last) if line is not None]
    if shown.json:
        typer.echo(to_json(result))
    elif shown.quiet:
        typer.echo(headline(result))
    else:
        kind, (first, *rest) = result.verdict.kind, summary(result, every=shown.every, wrote=wrote)
        ink, paper = BADGES[result.verdict.tone]
        typer.echo(typer.style(kind, fg=ink, bg=paper, bold=True) + first[len(kind) :])
        for line in (*rest, *(["", *behind(result)] if shown.verbose else [])):
            typer.echo(line)
    if fail_above is None:
        return
    threshold = parse_threshold(fail_above)
    sentences = {section.title: above(result, threshold, section) for section in result.sections}
    for title, sentence in sentences.items():
        if sentence is not None:
            whose = f"{class_title(title)}: " if result.task == "classes" else ""
            typer.echo(printable(f"{whose}{sentence}"), err=True)
    if any(sentences.values()):
        raise typer.Exit(1)


def save_page(result: Result, path: Path) -> Path:
    """Write the page; its directory must be there."""
    try:
        from swapcal.report.page import write
    except ImportError as error:
        name = error.name or "more packages"
        raise MissingExtra(f"the page needs {name}: install with  pip install 'swapcal[cli]'") from None
    try:
        write(result, path)
    except OSError as error:
        raise DataError(f"the page cannot be written to {path}: {error.strerror or error}") from None
    return path


def plain(data: dict[str, Any]) -> str:
    """Plain data as JSON."""
    return json.dumps(data, ensure_ascii=False)

"""Progress with rate and time left, on standard error; and where the work stood when it was stopped."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from swapcal.text.numbers import counted

if TYPE_CHECKING:
    from swapcal.tables.records import Records, RereadableSource


class _Rate(ProgressColumn):
    """Rows done, and rows a second."""

    def render(self, task: Task) -> Text:
        rows = int(task.fields.get("rows", 0))
        seconds = task.elapsed or 0.0
        rate = f" {rows / seconds:,.0f}/s" if seconds > 0.5 else ""
        return Text(f"{counted(rows)}{rate}", style="progress.data.speed")


@contextmanager
def following(
    records: "Records | RereadableSource", doing: str, stopped: list[str], after: str = ""
) -> Iterator[Callable[[int], None]]:
    """A bar on standard error while records are read; yields what is to be called with the number of rows done.

    Parameters
    ----------
    records : Records or RereadableSource
        Their size in bytes or rows, if known, gives the time left.
    doing : str
        What is being done, before the bar.
    stopped : list of str
        Its first entry is kept up to date: the sentence for Ctrl-C.
    after : str
        What that sentence adds, such as how to go on.
    """
    console = Console(stderr=True)
    total = records.bytes_total or records.n_rows
    known = (BarColumn(bar_width=20), TaskProgressColumn()) if total else (SpinnerColumn(),)
    columns = (TextColumn("{task.description}"), *known, _Rate(), TimeElapsedColumn(), TimeRemainingColumn())
    end = after or "nothing was written"
    stopped[:] = [f"stopped before the first rows of {records.name} were done; {end}"]
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(doing, total=total)

        def progress(rows: int) -> None:
            stopped[:] = [f"stopped after row {rows:,} of {records.name}; {end}"]
            done = records.bytes_done if records.bytes_total else rows
            bar.update(task, completed=done, rows=rows)

        yield progress

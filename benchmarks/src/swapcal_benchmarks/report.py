"""One way from measurements to tables to a page: what every benchmark makes, and how it is shown and written."""

import json as json_format
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from swapcal.errors import InvalidInput

__all__ = ["Report", "Table", "Target", "document", "progress", "table_number", "targets_table"]

WIDTH = 100


@dataclass(frozen=True, slots=True)
class Table:
    """Cells in rows under a header: for the terminal, the page and the tests.

    Parameters
    ----------
    title : str
        What it shows.
    header : tuple of str
        Names of the columns.
    rows : tuple of tuples of str
        The cells.
    note : str
        What a reader should know, below it.
    align : str
        A letter for each column, "l" or "r"; by default the first is on the left and the others on the right.

    Examples
    --------
    >>> print(Table("Sizes", ("what", "bytes"), (("state", "12"),)).markdown())
    | what | bytes |
    | --- | ---: |
    | state | 12 |
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    align: str = ""

    def _sides(self) -> str:
        return self.align or "l" + "r" * (len(self.header) - 1)

    def text(self) -> str:
        """For a terminal, at most 100 columns wide: long cells of the first column are folded, others are cut."""
        widths = [max(len(line[k]) for line in (self.header, *self.rows)) for k in range(len(self.header))]
        while sum(widths) + len(widths) - 1 > WIDTH:
            widths[widths.index(max(widths))] -= 1
        gap = "  " if sum(widths) + 2 * len(widths) <= WIDTH else " "
        head, *body = ([self._line(part, widths, gap) for part in _folded(line, widths[0])] for line in self._lines())
        rule = "-" * (sum(widths) + len(gap) * (len(widths) - 1))
        notes = [part for line in self.note.splitlines() for part in textwrap.wrap(line, WIDTH)]
        shown = [self.title, rule, *head, rule, *(line.rstrip() for lines in body for line in lines), rule, *notes]
        return "\n".join(shown)

    def _lines(self) -> tuple[tuple[str, ...], ...]:
        return (self.header, *self.rows)

    def _line(self, cells: Sequence[str], widths: Sequence[int], gap: str) -> str:
        places = zip((_cut(cell, w) for cell, w in zip(cells, widths, strict=True)), widths, self._sides(), strict=True)
        return gap.join(cell.ljust(w) if side == "l" else cell.rjust(w) for cell, w, side in places)

    def markdown(self) -> str:
        """For a page."""
        head = "| " + " | ".join(self.header) + " |"
        rule = "| " + " | ".join("---" if side == "l" else "---:" for side in self._sides()) + " |"
        body = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in self.rows]
        return "\n".join([head, rule, *body])


def _folded(line: tuple[str, ...], width: int) -> Iterator[tuple[str, ...]]:
    first, *rest = textwrap.wrap(line[0], width, subsequent_indent="  ", drop_whitespace=True) or [line[0]]
    lead = line[0][: len(line[0]) - len(line[0].lstrip())]
    yield (first if first.startswith(lead) else lead + first, *line[1:])
    for more in rest:
        yield (more, *("" for _ in line[1:]))


def _cut(cell: str, width: int) -> str:
    return cell if len(cell) <= width else cell[: width - 1] + "…"


def table_number(value: float | None) -> str:
    """Three digits, or a dash."""
    if value is None:
        return "-"
    if value == 0.0:
        return "0"
    if abs(value) >= 9.995e5:
        return f"{value:.0e}".replace("e+0", "e").replace("e+", "e")
    return f"{value:.0f}" if abs(value) >= 99.95 else f"{value:.3g}"


@dataclass(frozen=True, slots=True)
class Target:
    """What is asked for in words, what was measured, whether it is met (None: not judged), and what misses it."""

    asked: str
    measured: str
    met: bool | None
    misses: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """One word, or nothing."""
        return {True: "met", False: "MISSED", None: ""}[self.met]


def targets_table(targets: Sequence[Target]) -> Table:
    """Every target with its verdict."""
    rows = tuple((each.asked, each.measured, each.verdict) for each in targets)
    return Table("Targets", ("target", "measured", "verdict"), rows)


def document(title: str, *parts: str | Table) -> str:
    """A page in Markdown: its title, paragraphs, and tables as sections with their titles and notes."""
    texts = [f"# {title}"]
    for part in parts:
        texts += [part] if isinstance(part, str) else [f"## {part.title}", part.markdown(), part.note]
    return "\n\n".join(text for text in texts if text) + "\n"


@dataclass(frozen=True, slots=True)
class Report:
    """What a benchmark has found.

    Parameters
    ----------
    text : str
        What the terminal shows.
    data : object
        The same as plain data.
    pages : mapping of str to str or bytes
        Files for the directory of the documentation.
    files : mapping of str to str or bytes
        Files for the directory of results.
    met : bool
        Whether every target that was judged is met.
    """

    text: str
    data: Any = None
    pages: Mapping[str, str | bytes] = field(default_factory=dict)
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    met: bool = True

    def publish(
        self, echo: Callable[[str], None], *, json: bool = False, docs: Path | None = None, out: Path | None = None
    ) -> int:
        """Write the files, show the text or the data; the exit code, 1 where a target is missed."""
        try:
            for folder, files in ((docs, self.pages), (out, self.files)):
                for name, content in files.items():
                    if folder is None:
                        continue
                    path = folder / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(content if isinstance(content, bytes) else content.encode())
        except OSError as error:
            raise InvalidInput(f"the results cannot be written: {error}") from error
        if json:
            echo(json_format.dumps(self.data, indent=1, allow_nan=False))
        else:
            written = f"\n\nWritten to {out}: {', '.join(self.files)}" if out is not None and self.files else ""
            echo(self.text + written)
        return 0 if self.met else 1


@contextmanager
def progress(what: str, total: float | None = None) -> Iterator[Callable[..., None]]:
    """A bar on standard error; call with what was done, and with `total=` or `what=` to change these."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True, refresh_per_second=1) as bars:
        bar = bars.add_task(what, total=total)

        def done(cost: float = 0.0, *, total: float | None = None, what: str | None = None) -> None:
            bars.update(bar, advance=cost, total=total, description=what)

        yield done

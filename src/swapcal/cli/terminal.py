"""How commands go on and end: progress, exit codes, errors as sentences, and Ctrl-C, which lets a batch finish."""

import os
import shlex
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from swapcal.text.numbers import counted, printable

if TYPE_CHECKING:
    from swapcal.tables.records import Records, RereadableSource

# --------
# How commands end: exit codes, and every error as one sentence without a traceback.

HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

BAD_INPUT, INTERRUPTED = 2, 130
# Environment variable: set it to see where an error came from.
TRACEBACK = "SWAPCAL_TRACEBACK"


def stop(sentence: str, code: int = BAD_INPUT) -> NoReturn:
    """End the command with a sentence on standard error."""
    typer.echo(printable(sentence), err=True)
    raise typer.Exit(code)


def needs(package: str, what: str) -> None:
    """End the command with the way to install `package` if it is not there."""
    if find_spec(package) is None:
        stop(f"{what} need {package}: install with  pip install 'swapcal[cli]'")


def listen_alone() -> None:
    """Keep pyarrow from listening to Ctrl-C: it reports it as an error of its own, or not at all."""
    with suppress(ImportError):
        import_module("pyarrow").enable_signal_handlers(False)


@contextmanager
def error_boundary() -> Iterator[list[str]]:
    """Run a command's work: errors become sentences with an exit code, warnings become sentences and do not end it.

    Yields a list; the first entry, where there is one, says how far the work had come when Ctrl-C was pressed.
    """
    progress: list[str] = []
    sentences: set[str] = set()

    def say(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in sentences:
            sentences.add(str(message))
            typer.echo(printable(f"warning: {_sentence(message)}"), err=True)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = say
            yield progress
    except KeyboardInterrupt:
        stop(progress[0] if progress else "stopped before the first row; nothing was written", INTERRUPTED)
    except (typer.Exit, typer.Abort, BrokenPipeError):
        raise
    except MemoryError:
        stop("there is not enough memory for this; ask for fewer groups, or give --bins")
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        from swapcal.errors import SwapcalError

        if isinstance(error, (SwapcalError, OSError)):
            stop(_sentence(error))
        what = f"something unforeseen happened ({type(error).__name__}: {_sentence(error)})"
        stop(f"{what}; set {TRACEBACK}=1 to see where, and please report it")


def _sentence(error: BaseException | str) -> str:
    """The message on one line; for the system's own errors, with the file they are about."""
    if isinstance(error, OSError) and error.strerror:
        where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, (str, bytes)) else ""
        return f"{where}{error.strerror}"
    return " ".join(str(error).split())


# Seconds that somebody who pressed Ctrl-C may have to wait for the end of a batch, or for input from a pipe.
PATIENCE = 3.0


def afterwards(out: Path | None, state: Path | None) -> str:
    """What to say after Ctrl-C: where the rows are, and how to go on."""
    if state is None:
        rest = "nothing was written" if out is None else f"the rows so far are in {out}"
        return f"{rest}, and without --state it cannot go on from there"
    arguments = [each for each in sys.argv[1:] if each not in ("--fresh", "--overwrite")]
    return f"go on with  {shlex.join(['swapcal', *arguments])}"


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """While this lasts, Ctrl-C lets the run finish its batch; at once if it is pressed again or a batch takes long."""
    pressed, asked = False, time.monotonic()

    def handle(_: int, __: FrameType | None) -> None:
        nonlocal pressed
        if pressed or time.monotonic() - asked > PATIENCE:
            raise KeyboardInterrupt
        pressed = True

    def stop() -> bool:
        nonlocal asked
        asked = time.monotonic()
        return pressed

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


# --------
# Progress with rate and time left, on standard error; and where the work stood when it was stopped.


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
    from rich import progress as bars
    from rich.console import Console

    console = Console(stderr=True)
    total = records.bytes_total or records.n_rows
    known = (bars.BarColumn(bar_width=20), bars.TaskProgressColumn()) if total else (bars.SpinnerColumn(),)
    rate = bars.TextColumn("{task.fields[rate]}", style="progress.data.speed")
    columns = (
        bars.TextColumn("{task.description}"),
        *known,
        rate,
        bars.TimeElapsedColumn(),
        bars.TimeRemainingColumn(),
    )
    end = after or "nothing was written"
    stopped[:] = [f"stopped before the first rows of {records.name} were done; {end}"]
    with bars.Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(doing, total=total, rate=counted(0))

        def progress(rows: int) -> None:
            stopped[:] = [f"stopped after row {rows:,} of {records.name}; {end}"]
            done, seconds = records.bytes_done if records.bytes_total else rows, bar.tasks[0].elapsed or 0.0
            speed = f" {rows / seconds:,.0f}/s" if seconds > 0.5 else ""
            bar.update(task, completed=done, rate=f"{counted(rows)}{speed}")

        yield progress

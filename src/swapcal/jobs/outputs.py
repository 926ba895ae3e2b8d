"""Where forecasts go: CSV, JSON lines or Parquet. An output can say how far it is safe, and go back to there.

What has been appended is safe after `commit`, which returns a position (plain data, to be kept with the rest of the
state). After a kill, the output at that position drops whatever came later, so no row is lost and none is there twice.
A position knows its output by a digest: a file that somebody has changed, or another one, is never cut or continued.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy.typing as npt

from swapcal.errors import InvalidInput, StateFileError

__all__ = [
    "ENDINGS",
    "Columns",
    "Output",
    "Position",
    "changed",
    "kind_of",
    "open_output",
    "there_already",
    "unwritable",
]

Columns = Mapping[str, npt.NDArray[Any]]
Position = dict[str, Any]

ENDINGS = ".csv, .jsonl, .ndjson or .parquet"
_KINDS = {"row": "int64", "top": "string"}


def kind_of(name: str) -> str:
    """What a column of an output holds, as pyarrow calls it: the number of a row, the name of a class, or floats."""
    return _KINDS.get(name, "float64")


class Output(Protocol):
    """A file of columns that grows."""

    def append(self, columns: Columns) -> None:
        """Add rows: arrays of equal length; NaN is missing."""

    def commit(self) -> Position:
        """Make all rows so far survive a kill, and say where they end."""

    def ready(self) -> Position:
        """As `commit`, in a position that says that `finish` comes next."""

    def finish(self) -> Position:
        """Make the file whole, under its own name; more may be appended later, from that position."""

    def reopened(self) -> Position:
        """The position to keep before the first row is appended to a finished output."""

    def clear(self) -> None:
        """Remove what was only needed to go on, after `finish` and once its position has been kept."""

    def close(self) -> None:
        """Let go of the file."""


def open_output(
    path: str | os.PathLike[str],
    names: tuple[str, ...],
    position: Position | None = None,
    *,
    replace: bool = False,
    claimed: bool = False,
) -> Output:
    """The output at `path`, by its ending: begun anew, or at the `position` that an earlier run committed.

    Parameters
    ----------
    path : path
        Where it is.
    names : tuple of str
        Its columns.
    position : dict, optional
        Go on from there; a `StateFileError` if what is there now is not what was committed.
    replace : bool
        Without a position: take the place of whatever file is there, as somebody has said.
    claimed : bool
        Without a position: take the place of what a run that was killed at its start has left there.
    """
    from swapcal.jobs.parquet_output import ParquetOutput
    from swapcal.jobs.text_output import TextOutput

    target = Path(path)
    ending = target.suffix.lower()
    if ending in (".csv", ".jsonl", ".ndjson"):
        return TextOutput(target, names, position, json_lines=ending != ".csv", replace=replace, claimed=claimed)
    if ending in (".parquet", ".pq"):
        return ParquetOutput(target, names, position, replace=replace, claimed=claimed)
    raise InvalidInput(f"the output {target.name!r} must end in {ENDINGS}")


def there_already(path: Path) -> InvalidInput:
    """An output that would take the place of a file that nobody has given up."""
    return InvalidInput(f"the output {path} is there already; give another --out, or --overwrite to replace it")


def unwritable(path: Path, error: OSError) -> InvalidInput:
    """An output that the system does not let be written."""
    why = (error.strerror or str(error)).lower()
    return InvalidInput(f"the output {path} cannot be written ({why}); give --out a file in a directory that can be")


def changed(path: Path, what: str) -> StateFileError:
    """An output that is not as it was left; nothing is done to it."""
    return StateFileError(
        f"{path.name} {what}, so the run cannot go on where it stopped; put back the file as it was, or give another "
        "--out and another --state"
    )

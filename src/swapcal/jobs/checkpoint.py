"""The file of `--state`: all that a run needs to go on where it stopped, in one file that is replaced in one step.

A zip archive: `run.json` (what was asked, how far it has come, counters), `forecaster` (what `Forecaster.save` writes)
and one `.npy` for each array of the sums behind the final report. Reading one never runs code.
"""

import hashlib
import io
import json
import os
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from swapcal.checked import shown
from swapcal.errors import StateFileError
from swapcal.jobs.outputs import rewriting
from swapcal.typing import Float64Array
from swapcal.version import __version__

__all__ = ["SCHEMA_VERSION", "Checkpoint", "Fingerprint", "check_same", "read", "write"]

SCHEMA_VERSION = 2
_FORMAT = "swapcal.run"
_LARGEST_HEADER = 1 << 26
"""Bytes; more is not what `write` wrote."""


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """A run between two blocks of rows.

    asked: the question and the settings, to be compared with those of a run that wants to go on. rows: rows of the
    input that are done. digest: of their labels and hints; the input of a run that goes on must begin with the same.
    output: position of the output, None without one. finished: the input had ended. plain: whatever else the run keeps,
    as JSON types. forecaster: the bytes of `Forecaster.save`. arrays: by name.
    """

    asked: dict[str, Any]
    rows: int
    digest: str
    output: dict[str, Any] | None
    finished: bool
    plain: dict[str, Any]
    forecaster: bytes
    arrays: dict[str, npt.NDArray[Any]] = field(default_factory=dict)


class Fingerprint:
    """Digest of the labels and hints of all rows so far, however they were cut into batches."""

    __slots__ = ("_hash",)

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=16)

    @classmethod
    def of(cls, labels: Float64Array, hints: Float64Array | None = None) -> str:
        """The digest of these rows alone."""
        fingerprint = cls()
        fingerprint.add(labels, hints)
        return fingerprint.value()

    def add(self, labels: Float64Array, hints: Float64Array | None = None) -> None:
        """Add rows: arrays of equal length."""
        columns = labels if hints is None else np.column_stack([labels, hints])
        self._hash.update(columns.astype("<f8").tobytes())

    def value(self) -> str:
        """Of the rows so far."""
        return self._hash.copy().hexdigest()


def write(path: str | os.PathLike[str], checkpoint: Checkpoint) -> None:
    """Put `checkpoint` in the place of what the file held: after a kill there is the old one or the new one."""
    header = {
        "format": _FORMAT,
        "schema_version": SCHEMA_VERSION,
        "library_version": __version__,
        "asked": checkpoint.asked,
        "rows": checkpoint.rows,
        "digest": checkpoint.digest,
        "output": checkpoint.output,
        "finished": checkpoint.finished,
        "plain": checkpoint.plain,
    }
    try:
        with rewriting(Path(path)) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr("run.json", json.dumps(header))
            archive.writestr("forecaster", checkpoint.forecaster)
            for name, array in checkpoint.arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                    np.lib.format.write_array(entry, array, allow_pickle=False)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise StateFileError(
            f"the state file {path} cannot be written ({why}); give --state a file in a directory that can be"
        ) from None


def read(path: str | os.PathLike[str]) -> Checkpoint | None:
    """What the file holds; None if there is no such file."""
    try:
        with zipfile.ZipFile(path) as archive:
            header = _header(archive, path)
            names = [name for name in archive.namelist() if name.endswith(".npy")]
            return Checkpoint(
                asked=dict(header["asked"]),
                rows=int(header["rows"]),
                digest=str(header["digest"]),
                output=None if header["output"] is None else dict(header["output"]),
                finished=bool(header["finished"]),
                plain=dict(header["plain"]),
                forecaster=archive.read("forecaster"),
                arrays={name.removesuffix(".npy"): _array(archive, name) for name in names},
            )
    except FileNotFoundError:
        return None
    except StateFileError:
        raise
    except Exception as error:
        # A damaged archive makes zipfile, zlib, json and NumPy's reader raise nearly anything.
        raise StateFileError(
            f"{path} is not a whole state file of swapcal run ({type(error).__name__}: {error}); "
            "give another --state, or start over with --fresh"
        ) from error


def check_same(stored: dict[str, Any], asked: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Refuse to go on with another question or other settings than those of the state file."""
    wanted = json.loads(json.dumps(asked))
    for name in sorted({*stored, *wanted}):
        if stored.get(name) != wanted.get(name):
            raise StateFileError(
                f"the state file {path} belongs to a run with {name}={shown(stored.get(name))}, and this one has "
                f"{name}={shown(wanted.get(name))}; give the same settings, another --state, or --fresh to start over"
            )


def _header(archive: zipfile.ZipFile, path: str | os.PathLike[str]) -> dict[str, Any]:
    names = archive.namelist()
    if "run.json" not in names or archive.getinfo("run.json").file_size > _LARGEST_HEADER:
        raise StateFileError(f"{path} is not a state file of swapcal run; give another --state")
    header = json.loads(archive.read("run.json"))
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise StateFileError(f"{path} is not a state file of swapcal run; give another --state")
    if header.get("schema_version") != SCHEMA_VERSION:
        raise StateFileError(
            f"the state file {path} has schema version {header.get('schema_version')!r}, written by swapcal "
            f"{header.get('library_version')!r}; this version reads {SCHEMA_VERSION}, so start over with --fresh"
        )
    return header


def _array(archive: zipfile.ZipFile, name: str) -> npt.NDArray[Any]:
    array: npt.NDArray[Any] = np.lib.format.read_array(io.BytesIO(archive.read(name)), allow_pickle=False)
    return array

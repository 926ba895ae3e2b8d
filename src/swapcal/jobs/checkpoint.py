"""The file of `--state`: all that a run needs to go on where it stopped, in one file that is replaced in one step.

A zip archive: `run.json` (what was asked, how far it has come, counters), `forecaster` (what `Forecaster.save` writes)
and one `.npy` for each array of the sums behind the final report. Reading one never runs code.
"""

import io
import json
import os
import re
import stat
import zipfile
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from swapcal.checked import shown
from swapcal.errors import StateFileError
from swapcal.replacing import replacing
from swapcal.stored_arrays import read_array, write_array
from swapcal.version import __version__

__all__ = ["SCHEMA_VERSION", "Checkpoint", "check_same", "read", "refuse_foreign", "write"]

SCHEMA_VERSION = 3
_FORMAT = "swapcal.run"
_LARGEST_HEADER = 1 << 26
"""Bytes; more is not what `write` wrote."""

_MOST_ROWS = 1 << 53
_LOCAL = b"PK\x03\x04"
_BEGIN = b"run.json" + json.dumps({"format": _FORMAT}).removesuffix("}").encode()
"""How a state file begins, behind 26 bytes of the archive: the name of its first entry, and what that says first."""

_SINGLE = ("run.json", "forecaster")
_ARRAY = re.compile(r"[a-z0-9_.]{1,80}\.npy")
_FIELDS: dict[str, tuple[type, ...]] = {
    "asked": (dict,),
    "rows": (int,),
    "digest": (str,),
    "out": (str, type(None)),
    "output": (dict, type(None)),
    "finished": (bool,),
    "plain": (dict,),
}


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """A run between two blocks of rows.

    asked: the question and the settings, to be compared with those of a run that wants to go on. rows: rows of the
    input that are done. digest: of every cell of theirs that is used; the input of a run that goes on must begin with
    the same. out: the resolved path of the output, and output: its position, None without one. finished: the input had
    ended. plain: whatever else the run keeps, as JSON types. forecaster: the bytes of `Forecaster.save`. arrays: by
    name.
    """

    asked: dict[str, Any]
    rows: int
    digest: str
    out: str | None
    output: dict[str, Any] | None
    finished: bool
    plain: dict[str, Any]
    forecaster: bytes
    arrays: dict[str, npt.NDArray[Any]] = field(default_factory=dict)


def write(path: str | os.PathLike[str], checkpoint: Checkpoint) -> None:
    """Put `checkpoint` in the place of what the file held: after a kill there is the old one or the new one."""
    header = {
        "format": _FORMAT,
        "schema_version": SCHEMA_VERSION,
        "library_version": __version__,
        "asked": checkpoint.asked,
        "rows": checkpoint.rows,
        "digest": checkpoint.digest,
        "out": checkpoint.out,
        "output": checkpoint.output,
        "finished": checkpoint.finished,
        "plain": checkpoint.plain,
    }
    try:
        with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr("run.json", json.dumps(header))
            archive.writestr("forecaster", checkpoint.forecaster)
            for name, array in checkpoint.arrays.items():
                write_array(archive, f"{name}.npy", array)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise StateFileError(
            f"the state file {path} cannot be written ({why}); give --state a file in a directory that can be"
        ) from None


def read(path: str | os.PathLike[str]) -> Checkpoint | None:
    """What the file holds; None if there is no such file, and an error if it is not swapcal's."""
    if not os.path.lexists(path):
        return None
    refuse_foreign(path)
    try:
        with zipfile.ZipFile(path) as archive:
            _check_entries(archive, os.path.getsize(path), path)
            header = _header(archive, path)
            names = [name for name in archive.namelist() if name not in _SINGLE]
            return Checkpoint(
                **{name: _typed(header, name, kinds) for name, kinds in _FIELDS.items()},
                forecaster=archive.read("forecaster"),
                arrays={name.removesuffix(".npy"): _array(archive, name) for name in names},
            )
    except StateFileError:
        raise
    except Exception as error:
        # A damaged archive makes zipfile, zlib, json and NumPy's reader raise nearly anything.
        raise StateFileError(
            f"{path} is not a whole state file of swapcal run ({type(error).__name__}: {error}); "
            "give another --state, or start over with --fresh"
        ) from error


def refuse_foreign(path: str | os.PathLike[str]) -> None:
    """Refuse a file that `write` has not made, damaged or not: whatever it is, it is not ours to replace."""
    try:
        is_file = stat.S_ISREG(os.stat(path).st_mode)
        with open(path, "rb") if is_file else io.BytesIO() as file:
            head = file.read(len(_LOCAL) + 26 + len(_BEGIN))
    except OSError as error:
        raise StateFileError(f"{path} cannot be read ({(error.strerror or str(error)).lower()})") from None
    if not is_file or not head.startswith(_LOCAL) or head[len(_LOCAL) + 26 :] != _BEGIN:
        raise StateFileError(f"{path} is not a state file of swapcal run, and is left as it is; give another --state")


def check_same(stored: dict[str, Any], asked: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Refuse to go on with another question or other settings than those of the state file."""
    wanted = json.loads(json.dumps(asked))
    for name in sorted({*stored, *wanted}):
        if stored.get(name) != wanted.get(name):
            raise StateFileError(
                f"the state file {path} belongs to a run with {name}={shown(stored.get(name))}, and this one has "
                f"{name}={shown(wanted.get(name))}; give the same settings, another --state, or --fresh to start over"
            )


def _check_entries(archive: zipfile.ZipFile, size: int, path: str | os.PathLike[str]) -> None:
    """Before anything is read: entries as `write` writes them, not packed, together no larger than the file."""
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    known = all(name in _SINGLE or _ARRAY.fullmatch(name) for name in names)
    plain = all(
        entry.compress_type == zipfile.ZIP_STORED and entry.file_size == entry.compress_size for entry in entries
    )
    if not known or not plain or len(set(names)) < len(names) or sum(entry.file_size for entry in entries) > size:
        raise StateFileError(f"the state file {path} holds what swapcal run does not write; give another --state")


def _header(archive: zipfile.ZipFile, path: str | os.PathLike[str]) -> dict[str, Any]:
    if archive.getinfo("run.json").file_size > _LARGEST_HEADER:
        raise StateFileError(f"the header of the state file {path} is too large; give another --state")
    header = json.loads(archive.read("run.json"))
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise StateFileError(f"{path} is not a state file of swapcal run; give another --state")
    if header.get("schema_version") != SCHEMA_VERSION:
        raise StateFileError(
            f"the state file {path} has schema version {header.get('schema_version')!r}, written by swapcal "
            f"{header.get('library_version')!r}; this version reads {SCHEMA_VERSION}, so start over with --fresh"
        )
    return header


def _typed(header: dict[str, Any], name: str, kinds: tuple[type, ...]) -> Any:
    value = header[name]
    if type(value) not in kinds or (name == "rows" and not 0 <= value < _MOST_ROWS):
        raise ValueError(f"{name} is {shown(value)}")
    return value


def _array(archive: zipfile.ZipFile, name: str) -> npt.NDArray[Any]:
    array = read_array(archive, name)
    if array.dtype != np.float64 or np.isnan(array).any():
        raise ValueError(f"{name} holds something other than numbers")
    return array

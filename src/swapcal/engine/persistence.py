"""State files: a JSON header and named arrays in one .npz archive. Reading one never runs code.

Schema 4. The header holds the parts' specs, the settings, the counters and the identity; arrays are numbers.
Weights are not stored: they follow from the sums.
"""

import io
import json
import math
import zipfile
from os import PathLike
from typing import Any, BinaryIO

import numpy as np

from swapcal import hints, hypotheses, properties
from swapcal.engine import state
from swapcal.engine.gate import WIDTH
from swapcal.engine.rules import Rules
from swapcal.engine.state import Arrays, State
from swapcal.errors import StateFileError
from swapcal.protocols import Elicitable, Hypotheses, LearningHint
from swapcal.state import atomic_write
from swapcal.stored_arrays import read_array, write_array
from swapcal.version import __version__

SCHEMA_VERSION = 5
_OLDER = 4
_FORMAT = "swapcal.Forecaster"
_LARGEST_HEADER = 1 << 26
_LARGEST_ATOMS = 1 << 14
_LARGEST_LABEL = 1 << 10
"""Bytes that a header, the atoms and the label in front of an array can take; more is not what `save` wrote."""

_PACKED = state.SMALL
_SLACK = 1 << 26
"""Arrays of more than 2 MB are not packed. So what a file unpacks to is at most its own size and 64 MB, and nobody can
make a small file that takes much memory."""


def packed(rules: Rules, state: State) -> Arrays:
    """Rules and state as arrays, the header among them: copies, so that rounds may go on."""
    counters, arrays = state.snapshot()
    header = {
        "format": _FORMAT,
        "schema_version": SCHEMA_VERSION,
        "library_version": __version__,
        "property": dict(rules.property.spec()),
        "hypotheses": dict(rules.hypotheses.spec()),
        "hint": None if rules.hint is None else dict(rules.hint.spec()),
        "settings": rules.settings(),
        "counters": counters,
    }
    return {"header": np.frombuffer(json.dumps(header).encode(), dtype=np.uint8), **arrays}


def write(arrays: Arrays, path: str | PathLike[str] | BinaryIO) -> None:
    """Write what was `packed`; a file appears whole or not at all, and is on the disk when this returns."""
    if not isinstance(path, (str, PathLike)):
        _write(path, arrays)
        return
    with atomic_write(path) as file:
        _write(file, arrays)


def _write(file: Any, arrays: Arrays) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            info = zipfile.ZipInfo(f"{name}.npy")
            info.external_attr = 0o600 << 16
            info.compress_type = zipfile.ZIP_STORED if array.nbytes > _PACKED else zipfile.ZIP_DEFLATED
            write_array(archive, info, array)


def load(
    path: str | PathLike[str] | BinaryIO,
    *,
    property: Elicitable | None,
    hypotheses: Hypotheses | None,
    hint: LearningHint | None,
) -> tuple[Rules, State]:
    """The rules and the state in a file."""
    try:
        with zipfile.ZipFile(path) as archive:
            sizes, size = _sizes(archive)
            header = _header(archive)
            _check_sizes(header, sizes, size, hypotheses)
            rules = Rules(
                properties.from_spec(header["property"]) if property is None else property,
                _hypotheses(header["hypotheses"], hypotheses),
                _hint(header["hint"]) if hint is None else hint,
                **header["settings"],
            )
            state.check_parts(rules, header)
            fresh = State(rules)
            older = header["schema_version"] == _OLDER
            arrays = _arrays(archive, sizes, state.expected(rules, fresh, header["counters"], older=older))
        state.check_values(rules, header["counters"], arrays)
        fresh.restore(rules, header["counters"], arrays)
    except StateFileError:
        raise
    except FileNotFoundError:
        raise StateFileError(f"there is no state file at {path!r}") from None
    except Exception as error:
        # A damaged archive makes zipfile, zlib, json, NumPy's reader and our own constructors raise nearly anything.
        raise StateFileError(f"this is not a whole state file of swapcal ({type(error).__name__}: {error})") from error
    return rules, fresh


def _hypotheses(spec: Any, own: Any) -> Hypotheses:
    """The class in the file; one passed in takes over what was learned under its definitions."""
    if own is None:
        return hypotheses.from_spec(spec)
    resumed: Hypotheses = own.resumed(spec) if hasattr(own, "resumed") else own
    return resumed


def _hint(spec: Any) -> LearningHint | None:
    return None if spec is None else hints.OnlineRegression.from_spec(spec)


def _header(archive: zipfile.ZipFile) -> dict[str, Any]:
    if archive.getinfo("header.npy").file_size > _LARGEST_HEADER:
        raise StateFileError("this is not a state file of swapcal: its header is too large")
    header = json.loads(read_array(archive, "header.npy").tobytes())
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise StateFileError("this file was not written by Forecaster.save")
    if header.get("schema_version") not in (_OLDER, SCHEMA_VERSION):
        raise StateFileError(
            f"this file has schema version {header.get('schema_version')!r}, written by swapcal "
            f"{header.get('library_version')!r}; this version reads {_OLDER} and {SCHEMA_VERSION}"
        )
    return header


def _sizes(archive: zipfile.ZipFile) -> tuple[dict[str, int], int]:
    """The size of each entry as it unpacks, and that of the file; both before anything is unpacked."""
    entries = archive.infolist()
    sizes = {entry.filename.removesuffix(".npy"): entry.file_size for entry in entries}
    assert archive.fp is not None
    size = archive.fp.seek(0, io.SEEK_END)
    if len(sizes) < len(entries) or sum(sizes.values()) > size + _SLACK:
        raise StateFileError("this is not a state file of swapcal: it unpacks to more than one can")
    return sizes, size


def _check_sizes(header: dict[str, Any], sizes: dict[str, int], size: int, own: Hypotheses | None) -> None:
    """The header must not ask for more memory than the file holds: a small file could ask for any amount."""
    counters, settings, spec = header["counters"], header["settings"], header["hypotheses"]
    if "n_cohorts" not in counters:
        raise StateFileError(
            "this file is of a time before forecasters kept a record of what late outcomes cost; make a new state from "
            "the stream, or read it with the version that wrote it"
        )
    state.check_counters(counters)
    n_values, bins = counters["n_values"], settings["bins"]
    levels = settings["levels"] if spec["kind"] in ("Finite", "Groups") else 0
    described = spec["learner"] if spec["kind"] == "Oracle" else spec
    if own is None and "n" not in described:
        hypotheses.from_spec(spec)  # of the user's own making: this says what to pass
    n = described["n"] + levels if own is None else own.n
    n_features = 0 if header["hint"] is None else header["hint"].get("n_features", 0)
    fits = bins is None or bins == n_values
    for name, n_bytes in (
        ("values.born", 8 * n_values),
        ("ledger.sums", 8 * n_values * n),
        ("record.sums", 8 * n),
        ("pending.rounds", 8 * counters["open"]),
        ("hint.mean", 8 * n_features),
        ("waiting.entries", 8 * counters["n_waiting"] * counters["width"]),
        ("gate.cohorts", 8 * WIDTH * counters["n_cohorts"]),
    ):
        fits = fits and n_bytes <= sizes.get(name, 0)
    state.check_room(n, settings["max_pending"], size)
    if not fits:
        raise StateFileError("this state file is damaged: its arrays do not fit its settings")


def _arrays(archive: zipfile.ZipFile, sizes: dict[str, int], expected: dict[str, tuple[int, ...]]) -> Arrays:
    """All arrays, of the expected names, types and shapes; a size that is not right is not even unpacked."""
    fits = sizes.keys() == {"header", "atoms.labels", *expected} and sizes["atoms.labels"] < _LARGEST_ATOMS
    for name, shape in expected.items():
        n_bytes = math.prod(shape) * np.dtype(state.KINDS.get(name, np.float64)).itemsize
        fits = fits and n_bytes <= sizes[name] <= n_bytes + _LARGEST_LABEL
    if not fits:
        raise StateFileError("this state file is damaged: its arrays do not fit its settings")
    arrays = {name: read_array(archive, f"{name}.npy") for name in (*expected, "atoms.labels")}
    for name, array in arrays.items():
        fits = fits and array.shape == expected.get(name, (array.size,))
        if array.dtype != state.KINDS.get(name, np.float64) or not (
            name == "waiting.numbers" or np.isfinite(array).all()
        ):
            raise StateFileError(f"this state file is damaged: {name} holds something other than finite numbers")
    if not fits:
        raise StateFileError("this state file is damaged: its arrays do not fit its settings")
    return arrays

"""State files: a JSON header and named arrays in one .npz archive. Reading one never runs code.

Schema 1. The header holds the parts' specs, the settings, the counters and the identity; arrays are float64 or uint8.
Weights are not stored: they follow from the sums.
"""

import json
import os
import zipfile
from os import PathLike
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from swapcal import hints, hypotheses, properties
from swapcal.errors import StateFileError, SwapcalError
from swapcal.grid import Grid
from swapcal.roles import Elicitable, Hypotheses, LearningHint

if TYPE_CHECKING:
    from swapcal.forecaster import Forecaster

__all__ = ["SCHEMA_VERSION", "load", "restore", "save", "snapshot"]

SCHEMA_VERSION = 1
_FORMAT = "swapcal.Forecaster"
_SETTINGS = ("horizon", "r", "bins", "seed", "levels", "trust", "outside", "jitter", "max_pending")

Arrays = dict[str, npt.NDArray[Any]]


def snapshot(forecaster: "Forecaster") -> tuple[dict[str, Any], Arrays]:
    """Everything that changes from round to round, as copies."""
    f = forecaster
    counters = {
        "n_bins": f.grid.n,
        "issued": f._pending.issued,
        "open": f._pending.open,
        "n_rounds": f._ledger.n_rounds,
        "n_late": f._ledger.n_late,
        "hinted": f._hinted,
        "identity": f._identity,
    }
    arrays: Arrays = {f"evidence.{name}": array.copy() for name, array in f._evidence.arrays().items()}
    arrays |= {f"atoms.{name}": array.copy() for name, array in f._atoms.arrays().items()}
    arrays |= {"ledger.sums": f._ledger.sums.copy(), "ledger.rounding": f._ledger.rounding.copy()}
    arrays["pending.flags"] = f._pending.flags.copy()
    if f._hint_state is not None:
        arrays |= {f"hint.{name}": array.copy() for name, array in f._hint_state.arrays().items()}
    if f._record is not None:
        arrays |= {f"record.{name}": array.copy() for name, array in f._record.arrays().items()}
    return counters, arrays


def restore(forecaster: "Forecaster", counters: dict[str, Any], arrays: Arrays) -> None:
    """Put a `snapshot` back."""
    f = forecaster
    f.grid = Grid(*f.property.domain, counters["n_bins"])
    f._evidence = f._class.start(f.grid.n)
    f._evidence.restore(_part(arrays, "evidence."))
    f._record = f._class.start_record(f.grid.n)
    if f._record is not None:
        f._record.restore(_part(arrays, "record."))
    f._ledger.sums, f._ledger.rounding = arrays["ledger.sums"].copy(), arrays["ledger.rounding"].copy()
    f._ledger.n_rounds, f._ledger.n_late = counters["n_rounds"], counters["n_late"]
    f._pending.flags, f._pending.issued, f._pending.open = (
        arrays["pending.flags"].copy(),
        counters["issued"],
        counters["open"],
    )
    f._atoms.restore(_part(arrays, "atoms."))
    if f._hint_state is not None:
        f._hint_state.restore(_part(arrays, "hint."))
    f._hinted, f._identity = counters["hinted"], counters["identity"]


def _part(arrays: Arrays, prefix: str) -> Arrays:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def save(forecaster: "Forecaster", path: str | PathLike[str] | BinaryIO) -> None:
    """Write the state; a file appears whole or not at all."""
    from swapcal import __version__

    counters, arrays = snapshot(forecaster)
    header = {
        "format": _FORMAT,
        "schema_version": SCHEMA_VERSION,
        "library_version": __version__,
        "property": dict(forecaster.property.spec()),
        "hypotheses": dict(forecaster.hypotheses.spec()),
        "hint": None if forecaster.hint is None else dict(forecaster.hint.spec()),
        "settings": {name: getattr(forecaster, name) for name in _SETTINGS},
        "counters": counters,
    }
    packed = {"header": np.frombuffer(json.dumps(header).encode(), dtype=np.uint8), **arrays}
    if not isinstance(path, (str, PathLike)):
        _write(path, packed)
        return
    beside = f"{os.fspath(path)}.{os.getpid()}.part"
    try:
        with open(beside, "wb") as file:
            _write(file, packed)
        os.replace(beside, path)
    finally:
        if os.path.exists(beside):
            os.remove(beside)


def _write(file: Any, arrays: Arrays) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)


def load(
    cls: type["Forecaster"],
    path: str | PathLike[str] | BinaryIO,
    *,
    property: Elicitable | None,
    hypotheses: Hypotheses | None,
    hint: LearningHint | None,
) -> "Forecaster":
    """Rebuild a forecaster from its file."""
    header, arrays = _read(path)
    try:
        forecaster = cls(
            properties.from_spec(header["property"]) if property is None else property,
            _hypotheses(header["hypotheses"]) if hypotheses is None else hypotheses,
            hint=_hint(header["hint"]) if hint is None else hint,
            **{name: header["settings"][name] for name in _SETTINGS},
        )
        given = (forecaster.property, forecaster.hypotheses, forecaster.hint)
        for part, stored in zip(given, ("property", "hypotheses", "hint"), strict=True):
            if (None if part is None else json.loads(json.dumps(dict(part.spec())))) != header[stored]:
                raise StateFileError(f"the {stored} passed in, {part!r}, is not the one in the file: {header[stored]}")
        _check(forecaster, header["counters"], arrays)
        restore(forecaster, header["counters"], arrays)
    except StateFileError:
        raise
    except (SwapcalError, KeyError, TypeError, ValueError, AttributeError, OverflowError, MemoryError) as error:
        raise StateFileError(f"this state file is damaged: {type(error).__name__}: {error}") from error
    return forecaster


def _hypotheses(spec: Any) -> Hypotheses:
    return hypotheses.from_spec(spec)


def _hint(spec: Any) -> LearningHint | None:
    return None if spec is None else hints.OnlineRegression.from_spec(spec)


def _read(path: str | PathLike[str] | BinaryIO) -> tuple[dict[str, Any], Arrays]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays: Arrays = {name: archive[name] for name in archive.files}
        header = json.loads(arrays.pop("header").tobytes())
    except FileNotFoundError:
        raise StateFileError(f"there is no state file at {os.fspath(path)!r}") from None  # type: ignore[arg-type]
    except (zipfile.BadZipFile, OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, NotImplementedError,
            RuntimeError, MemoryError, SyntaxError, RecursionError, zipfile.LargeZipFile) as error:  # fmt: skip
        raise StateFileError(f"this is not a whole state file of swapcal ({type(error).__name__}: {error})") from error
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise StateFileError("this file was not written by Forecaster.save")
    if header.get("schema_version") != SCHEMA_VERSION:
        raise StateFileError(
            f"this file has schema version {header.get('schema_version')!r}, written by swapcal "
            f"{header.get('library_version')!r}; this version reads {SCHEMA_VERSION}"
        )
    return header, arrays


def _check(forecaster: "Forecaster", counters: dict[str, Any], arrays: Arrays) -> None:
    """A damaged file must not become a forecaster that fails later."""
    for name in ("n_bins", "issued", "open", "n_rounds", "n_late"):
        if isinstance(counters[name], bool) or not isinstance(counters[name], int) or counters[name] < 0:
            raise StateFileError(f"this state file is damaged: {name} is {counters[name]!r}")
    if not isinstance(counters["identity"], str) or not isinstance(counters["hinted"], bool):
        raise StateFileError("this state file is damaged: the identity or a flag has the wrong type")
    if (forecaster.horizon is not None or forecaster.bins is not None) and counters["n_bins"] != forecaster.grid.n:
        raise StateFileError("this state file is damaged: the number of bins does not fit the settings")
    forecaster.grid = Grid(*forecaster.property.domain, counters["n_bins"])
    forecaster._evidence = forecaster._class.start(counters["n_bins"])
    record = forecaster._class.start_record(counters["n_bins"])
    n_bins, n = counters["n_bins"], forecaster._class.n
    expected: dict[str, tuple[int, ...]] = {f"evidence.{k}": a.shape for k, a in forecaster._evidence.arrays().items()}
    expected |= {"ledger.sums": (n_bins, n), "ledger.rounding": (n_bins,), "pending.flags": (forecaster.max_pending,)}
    if record is not None:
        expected |= {f"record.{name}": array.shape for name, array in record.arrays().items()}
    if forecaster._hint_state is not None:
        expected |= {f"hint.{name}": array.shape for name, array in forecaster._hint_state.arrays().items()}
    found = {name: array.shape for name, array in arrays.items() if not name.startswith("atoms.")}
    if found != expected or arrays["atoms.counters"].ndim != 2 or arrays["atoms.counters"].shape[1] != 2:
        raise StateFileError("this state file is damaged: its arrays do not fit its settings")
    for name, array in arrays.items():
        if array.dtype != (np.uint8 if name == "pending.flags" else np.float64) or not np.isfinite(array).all():
            raise StateFileError(f"this state file is damaged: {name} holds something other than finite numbers")

"""State files: a JSON header and named arrays in one .npz archive. Reading one never runs code.

Schema 2. The header holds the parts' specs, the settings, the counters and the identity; arrays are float64 or uint8.
Weights are not stored: they follow from the sums.
"""

import io
import json
import math
import zipfile
from os import PathLike
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from swapcal import hints, hypotheses, properties
from swapcal.engine import schedule
from swapcal.engine.rules import Rules
from swapcal.engine.state import Arrays, State
from swapcal.errors import StateFileError
from swapcal.replacing import replacing
from swapcal.roles import Elicitable, Hypotheses, LearningHint
from swapcal.version import __version__

__all__ = ["SCHEMA_VERSION", "load", "packed", "write"]

SCHEMA_VERSION = 2
_FORMAT = "swapcal.Forecaster"

_LARGEST_HEADER = 1 << 26
_LARGEST_ATOMS = 1 << 14
_LARGEST_LABEL = 1 << 10
"""Bytes that a header, the atoms and the label in front of an array can take; more is not what `save` wrote."""


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
    with replacing(path) as file:
        _write(file, arrays)


def _write(file: Any, arrays: Arrays) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)


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
            header = _header(archive)
            sizes = {info.filename.removesuffix(".npy"): info.file_size for info in archive.infolist()}
            _check_sizes(header, sizes, hypotheses)
            rules = Rules(
                properties.from_spec(header["property"]) if property is None else property,
                _hypotheses(header["hypotheses"], hypotheses),
                _hint(header["hint"]) if hint is None else hint,
                **header["settings"],
            )
            _check_parts(rules, header)
            state = State(rules, rules.first_bins)
            arrays = _arrays(archive, sizes, _expected(rules, state, header["counters"]["n_bins"]))
        _check_values(rules, header["counters"], arrays)
        state.restore(rules, header["counters"], arrays)
    except StateFileError:
        raise
    except FileNotFoundError:
        raise StateFileError(f"there is no state file at {path!r}") from None
    except Exception as error:
        # A damaged archive makes zipfile, zlib, json, NumPy's reader and our own constructors raise nearly anything.
        raise StateFileError(f"this is not a whole state file of swapcal ({type(error).__name__}: {error})") from error
    return rules, state


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
    header = json.loads(_array(archive, "header").tobytes())
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise StateFileError("this file was not written by Forecaster.save")
    if header.get("schema_version") != SCHEMA_VERSION:
        raise StateFileError(
            f"this file has schema version {header.get('schema_version')!r}, written by swapcal "
            f"{header.get('library_version')!r}; this version reads {SCHEMA_VERSION}"
        )
    return header


def _array(archive: zipfile.ZipFile, name: str) -> npt.NDArray[Any]:
    # Reading the whole entry makes zipfile compare its checksum, which reading as much as an array needs does not.
    array: npt.NDArray[Any] = np.lib.format.read_array(io.BytesIO(archive.read(f"{name}.npy")), allow_pickle=False)
    return array


def _check_sizes(header: dict[str, Any], sizes: dict[str, int], own: Hypotheses | None) -> None:
    """The header must not ask for more memory than the file holds: a small file could ask for any amount."""
    counters, settings, spec = header["counters"], header["settings"], header["hypotheses"]
    for name in ("n_bins", "issued", "open", "n_rounds", "n_late"):
        if isinstance(counters[name], bool) or not isinstance(counters[name], int) or counters[name] < 0:
            raise StateFileError(f"this state file is damaged: {name} is {counters[name]!r}")
    n_bins, bins, horizon = counters["n_bins"], settings["bins"], settings["horizon"]
    n = (
        (spec.get("n", 0) + (settings["levels"] if spec["kind"] in ("Finite", "Groups") else 0))
        if own is None
        else own.n
    )
    n_features = 0 if header["hint"] is None else header["hint"].get("n_features", 0)
    # The property's share of bins is not known yet: the smallest must not be above what the file holds.
    fits = (
        bins == n_bins if bins is not None else horizon is None or schedule.bins_for(horizon, settings["r"]) <= n_bins
    )
    for name, n_bytes in (
        ("ledger.rounding", 8 * n_bins),
        ("ledger.sums", 8 * n_bins * n),
        ("pending.flags", settings["max_pending"]),
        ("hint.mean", 8 * n_features),
    ):
        fits = fits and n_bytes <= sizes.get(name, 0)
    if not fits:
        raise StateFileError("this state file is damaged: its arrays do not fit its settings")


def _check_parts(rules: Rules, header: dict[str, Any]) -> None:
    given = (rules.property, rules.hypotheses, rules.hint)
    for part, stored in zip(given, ("property", "hypotheses", "hint"), strict=True):
        if (None if part is None else json.loads(json.dumps(dict(part.spec())))) != header[stored]:
            raise StateFileError(f"the {stored} passed in, {part!r}, is not the one in the file: {header[stored]}")
    counters = header["counters"]
    if not isinstance(counters["identity"], str) or not isinstance(counters["hinted"], bool):
        raise StateFileError("this state file is damaged: the identity or a flag has the wrong type")


def _expected(rules: Rules, state: State, n_bins: int) -> dict[str, tuple[int, ...]]:
    """The shapes of all arrays but the atoms', whose number varies."""
    n = rules.functions.n
    shapes: dict[str, tuple[int, ...]] = {"ledger.sums": (n_bins, n), "ledger.rounding": (n_bins,)}
    shapes["pending.flags"] = (rules.max_pending,)
    parts = (
        ("evidence", rules.functions.start(n_bins)),
        ("record", rules.functions.start_record(n_bins)),
        ("hint", state.hint),
    )
    for name, part in parts:
        if part is not None:
            shapes |= {f"{name}.{key}": array.shape for key, array in part.arrays().items()}
    return shapes


def _arrays(archive: zipfile.ZipFile, sizes: dict[str, int], expected: dict[str, tuple[int, ...]]) -> Arrays:
    """All arrays, of the expected names, types and shapes; a size that is not right is not even unpacked."""
    fits = sizes.keys() == {"header", "atoms.labels", *expected} and sizes["atoms.labels"] < _LARGEST_ATOMS
    for name, shape in expected.items():
        n_bytes = math.prod(shape) * (1 if name == "pending.flags" else 8)
        fits = fits and n_bytes <= sizes[name] <= n_bytes + _LARGEST_LABEL
    if not fits:
        raise StateFileError("this state file is damaged: its arrays do not fit its settings")
    arrays = {name: _array(archive, name) for name in (*expected, "atoms.labels")}
    for name, array in arrays.items():
        fits = fits and array.shape == expected.get(name, (array.size,))
        if array.dtype != (np.uint8 if name == "pending.flags" else np.float64) or not np.isfinite(array).all():
            raise StateFileError(f"this state file is damaged: {name} holds something other than finite numbers")
    if not fits:
        raise StateFileError("this state file is damaged: its arrays do not fit its settings")
    return arrays


def _check_values(rules: Rules, counters: dict[str, Any], arrays: Arrays) -> None:
    """A damaged file must not become a forecaster that fails later: sums stay within what the rounds can have added."""
    flags, rounds, most = arrays["pending.flags"], counters["n_rounds"], 1.0 + 1e-9
    sound = flags.max() <= 1 and counters["open"] == int(flags.sum()) and counters["n_late"] <= rounds
    sound = sound and counters["issued"] < 2**63 and rounds + counters["open"] <= counters["issued"]
    visits = arrays.get("evidence.counts")
    if visits is not None and visits.shape == arrays["ledger.rounding"].shape:
        sound = sound and visits.min() >= 0.0 and visits.sum() == rounds
        sound = sound and bool((np.abs(arrays["ledger.sums"]) <= most * visits[:, None]).all())
        sound = sound and bool((np.abs(arrays["ledger.rounding"] - visits) <= most * visits).all())
    if isinstance(rules.functions, (hypotheses.Finite, hypotheses.Linear, hypotheses.Numeric)):
        for part in ("evidence", "record"):
            counts = arrays.get(f"{part}.counts", np.zeros(0))[:, None]
            sums, spreads = arrays.get(f"{part}.sums", counts), arrays.get(f"{part}.spreads", counts)
            sound = sound and bool((np.abs(sums) <= most * counts).all() and counts.sum() <= rounds)
            sound = sound and bool((np.abs(2.0 * spreads - counts) <= most * counts).all())
    atoms = arrays["atoms.labels"]
    sound = sound and len(atoms) >= 2 and 0.0 <= atoms[0] <= rounds and len(atoms) - 2 <= atoms[0]
    if not sound:
        raise StateFileError("this state file is damaged: its sums and counters contradict each other")

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
import numpy.typing as npt

from swapcal import hints, hypotheses, properties
from swapcal.engine import gate
from swapcal.engine.gate import COHORT, WIDTH
from swapcal.engine.grid import Grid
from swapcal.engine.rules import Rules
from swapcal.engine.state import Arrays, State
from swapcal.errors import StateFileError
from swapcal.forecast import KINDS, SHORTEST
from swapcal.replacing import replacing
from swapcal.roles import Elicitable, Hypotheses, LearningHint
from swapcal.version import __version__

__all__ = ["SCHEMA_VERSION", "load", "packed", "write"]

SCHEMA_VERSION = 4
_FORMAT = "swapcal.Forecaster"
_KINDS: dict[str, np.dtype[Any]] = {
    "pending.rounds": np.dtype(np.int64),
    "gate.counts": np.dtype(np.int64),
    "pending.marks": np.dtype(np.uint32),
    "waiting.whole": np.dtype(np.int64),
    "waiting.indices": np.dtype(np.int64),
    "waiting.scores": np.dtype(np.uint8),
}
"""Arrays that are not of float64."""

COUNTERS = (
    "n_values",
    "issued",
    "open",
    "n_rounds",
    "n_late",
    "n_expired",
    "n_waiting",
    "width",
    "n_cohorts",
    "n_apart",
)
"""Those that are whole numbers."""

_LARGEST_HEADER = 1 << 26
_LARGEST_ATOMS = 1 << 14
_LARGEST_LABEL = 1 << 10
_LARGEST_WINDOW = 1 << 40
_LARGEST_ROOM = 1 << 30
_MOST = 1 << 62
_ROOM = 32
"""Bytes that a header, the atoms and the label in front of an array can take; more is not what `save` wrote."""

_PACKED = 1 << 21
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
    with replacing(path) as file:
        _write(file, arrays)


def _write(file: Any, arrays: Arrays) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            info = zipfile.ZipInfo(f"{name}.npy")
            info.external_attr = 0o600 << 16
            info.compress_type = zipfile.ZIP_STORED if array.nbytes > _PACKED else zipfile.ZIP_DEFLATED
            with archive.open(info, "w", force_zip64=True) as entry:
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
            sizes, size = _sizes(archive)
            header = _header(archive)
            _check_sizes(header, sizes, size, hypotheses)
            rules = Rules(
                properties.from_spec(header["property"]) if property is None else property,
                _hypotheses(header["hypotheses"], hypotheses),
                _hint(header["hint"]) if hint is None else hint,
                **header["settings"],
            )
            _check_parts(rules, header)
            state = State(rules)
            arrays = _arrays(archive, sizes, _expected(rules, state, header["counters"]))
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
    for name in COUNTERS:
        if isinstance(counters[name], bool) or not isinstance(counters[name], int) or not 0 <= counters[name] < _MOST:
            raise StateFileError(f"this state file is damaged: {name} is {counters[name]!r}")
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
    # Whatever is not in the file but follows from its settings is small, or it is not taken.
    small = 8 * n <= max(_PACKED, size) and 8 * _ROOM * n <= _LARGEST_ROOM
    if not fits or not 0 < settings["max_pending"] <= _LARGEST_WINDOW or not small:
        raise StateFileError("this state file is damaged: its arrays do not fit its settings")


def _check_parts(rules: Rules, header: dict[str, Any]) -> None:
    given = (rules.property, rules.hypotheses, rules.hint)
    for part, stored in zip(given, ("property", "hypotheses", "hint"), strict=True):
        if (None if part is None else json.loads(json.dumps(dict(part.spec())))) != header[stored]:
            raise StateFileError(f"the {stored} passed in, {part!r}, is not the one in the file: {header[stored]}")
    counters = header["counters"]
    keys = (counters["key"], *counters["former_keys"])
    kept = isinstance(counters["former_keys"], list) and all(len(bytes.fromhex(key)) >= SHORTEST for key in keys)
    if not kept or not isinstance(counters["identity"], str) or not isinstance(counters["hinted"], bool):
        raise StateFileError("this state file is damaged: the identity or a flag has the wrong type")


def _expected(rules: Rules, state: State, counters: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """The shapes of all arrays but the atoms', whose number varies."""
    n_values, n = counters["n_values"], rules.functions.n
    shapes: dict[str, tuple[int, ...]] = {
        "ledger.sums": (n_values, n),
        "ledger.rounding": (n_values, n),
        "ledger.apart": (counters["n_apart"], n),
        "ledger.moved": (n_values,),
        "ledger.drift": state.ledger.drift.shape,
        "ledger.totals": state.ledger.totals.shape,
        "pending.rounds": (counters["open"],),
        "gate.totals": state.gate.totals.shape,
        "gate.counts": state.gate.counts.shape,
        "gate.cohorts": (counters["n_cohorts"], WIDTH),
        "pending.marks": (counters["open"],),
        "waiting.whole": (counters["n_waiting"], 5),
        "waiting.numbers": (counters["n_waiting"], 7),
        "waiting.scores": (counters["n_waiting"], state.waiting.scores.shape[1]),
        "waiting.features": (counters["n_waiting"], rules.n_features),
        "waiting.indices": (counters["n_waiting"], counters["width"]),
        "waiting.entries": (counters["n_waiting"], counters["width"]),
        "values.born": (n_values,),
        "values.gaps": (n_values + 1, 3),
    }
    for name, part in (("evidence", rules.functions.start(n_values)), ("record", state.record), ("hint", state.hint)):
        if part is not None:
            shapes |= {f"{name}.{key}": array.shape for key, array in part.arrays().items()}
    return shapes


def _arrays(archive: zipfile.ZipFile, sizes: dict[str, int], expected: dict[str, tuple[int, ...]]) -> Arrays:
    """All arrays, of the expected names, types and shapes; a size that is not right is not even unpacked."""
    fits = sizes.keys() == {"header", "atoms.labels", *expected} and sizes["atoms.labels"] < _LARGEST_ATOMS
    for name, shape in expected.items():
        n_bytes = math.prod(shape) * _KINDS.get(name, np.dtype(np.float64)).itemsize
        fits = fits and n_bytes <= sizes[name] <= n_bytes + _LARGEST_LABEL
    if not fits:
        raise StateFileError("this state file is damaged: its arrays do not fit its settings")
    arrays = {name: _array(archive, name) for name in (*expected, "atoms.labels")}
    for name, array in arrays.items():
        fits = fits and array.shape == expected.get(name, (array.size,))
        if array.dtype != _KINDS.get(name, np.float64) or not (name == "waiting.numbers" or np.isfinite(array).all()):
            raise StateFileError(f"this state file is damaged: {name} holds something other than finite numbers")
    if not fits:
        raise StateFileError("this state file is damaged: its arrays do not fit its settings")
    return arrays


def _check_values(rules: Rules, counters: dict[str, Any], arrays: Arrays) -> None:
    """A damaged file must not become a forecaster that fails later: sums stay within what the rounds can have added."""
    rounds, most, waiting = counters["n_rounds"], 1.0 + 1e-9, arrays["pending.rounds"]
    sound = counters["n_late"] <= rounds and rounds + counters["open"] <= counters["issued"]
    if len(waiting):
        sound = sound and bool((np.diff(waiting) > 0).all()) and waiting[-1] < counters["issued"]
        sound = sound and waiting[0] >= 0 and counters["issued"] - waiting[0] <= rules.max_pending
        sound = sound and bool((arrays["pending.marks"] > 0).all())
    low, high = rules.property.domain
    born = arrays["values.born"]
    sound = sound and bool(((low <= born) & (born <= high)).all()) and len(np.unique(born)) == len(born)
    if rules.bins is not None:
        sound = sound and bool((born == Grid(low, high, rules.bins).midpoints).all())
    sound = sound and bool((arrays["values.gaps"] >= 0.0).all()) and arrays["ledger.totals"][2] >= 0.0
    visits = arrays.get("evidence.counts")
    if visits is not None and visits.shape == born.shape and len(born):
        sound = sound and visits.min() >= 0.0 and visits.sum() == rounds
        sound = sound and bool((np.abs(arrays["ledger.sums"]) <= most * visits[:, None]).all())
        sound = sound and bool((np.abs(arrays["ledger.rounding"]) <= 2.0 * most * visits[:, None]).all())
    if isinstance(rules.functions, (hypotheses.Finite, hypotheses.Linear, hypotheses.Numeric)):
        counts = arrays.get("evidence.counts", np.zeros(0))[:, None]
        sums, spreads = arrays.get("evidence.sums", counts), arrays.get("evidence.spreads", counts)
        sound = sound and bool((np.abs(sums) <= most * counts).all())
        sound = sound and bool((np.abs(2.0 * spreads - counts) <= most * counts).all())
    hinted = float(arrays["record.totals"][0])
    sound = sound and 0.0 <= hinted <= rounds and bool((np.abs(arrays["record.sums"]) <= most * hinted).all())
    sound = sound and bool((np.abs(2.0 * arrays["record.squares"] - hinted) <= most * hinted).all())
    sound = sound and _waits(rules, counters, arrays) and _gated(counters, arrays)
    # `run` looks at the labels of rounds that wait, too.
    atoms = arrays["atoms.labels"]
    sound = sound and len(atoms) >= 2 and 0.0 <= atoms[0] <= counters["issued"] and len(atoms) - 2 <= atoms[0]
    if not sound:
        raise StateFileError("this state file is damaged: its sums and counters contradict each other")


def _gated(counters: dict[str, Any], arrays: Arrays) -> bool:
    """Whether the gate's book is about rounds that there were."""
    begin, front, since, marker, tried, back, back_since, flagged = arrays["gate.counts"].tolist()
    issued, cohorts = counters["issued"], arrays["gate.cohorts"]
    if begin < 0:
        idle = begin == -1 and not (front or since or marker or tried or back) and back_since == flagged == -1
        quiet = not counters["n_apart"] and not arrays["gate.totals"].any() and not arrays["ledger.moved"].any()
        return idle and quiet and not len(cohorts)
    totals = arrays["gate.totals"]
    sound = begin <= issued and begin // COHORT <= since <= front <= issued // COHORT + 1 and tried in (0, 1)
    sound = sound and begin <= marker <= issued and 0 <= back <= issued - begin
    sound = sound and -1 <= back_since < max(issued, 1) and -1 <= flagged <= issued
    sound = sound and len(cohorts) == max((issued - 1) // COHORT - front + 1, 0)
    apart, moved = arrays["ledger.apart"], arrays["ledger.moved"]
    sound = sound and (counters["n_apart"] == counters["n_values"] or not (counters["n_apart"] or moved.any()))
    sound = sound and moved.sum() == 0.0 and np.abs(moved).max(initial=0.0) <= back
    sound = sound and np.abs(apart).max(initial=0.0) <= 2.0 * (1.0 + 1e-9) * back
    positive = [
        gate.MODEL,
        gate.JUDGED,
        gate.SQUARES,
        gate.LAGS,
        gate.LAG_SQUARES,
        gate.KNOWN,
        gate.DISTANCE,
        gate.SIZE,
    ]
    return bool(sound and (totals[positive] >= 0.0).all() and totals[gate.KNOWN] <= counters["n_rounds"])


def _waits(rules: Rules, counters: dict[str, Any], arrays: Arrays) -> bool:
    """Whether the rounds that wait are open ones, of values and functions that there are."""
    whole, numbers, width = arrays["waiting.whole"], arrays["waiting.numbers"], counters["width"]
    if not len(whole):
        return True
    rounds, slots, kinds, lengths, followed = whole.T
    low, high = rules.property.domain
    active = np.arange(width) < lengths[:, None]
    indices = np.where(active, arrays["waiting.indices"], np.arange(width) + (1 << 62))
    points = numbers[:, :2]
    # NaN, which stands for none in the last four columns, fails no comparison with "not outside".
    outside = (numbers[:, 3:5] < low) | (numbers[:, 3:5] > high)
    return bool(
        np.isin(rounds, arrays["pending.rounds"]).all()
        and len(np.unique(rounds)) == len(rounds)
        and (slots >= 0).all()
        and (slots < counters["n_values"]).all()
        and ((kinds >= 0) & (kinds < len(KINDS))).all()
        and ((lengths >= 0) & (lengths <= width)).all()
        and ((followed == 1) | ((followed == 0) & ~np.isnan(numbers[:, 4]))).all()
        and (np.diff(indices, axis=1) > 0).all()
        and (indices[active] >= 0).all()
        and (indices[active] < rules.functions.n).all()
        and np.abs(arrays["waiting.entries"]).max(initial=0.0) <= 1.0
        and ((points >= low) & (points <= high)).all()
        and np.isfinite(numbers[:, 2]).all()
        and not outside.any()
        and not np.isinf(numbers[:, :6]).any()
    )

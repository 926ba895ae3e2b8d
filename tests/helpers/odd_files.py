"""State files that somebody or something has changed."""

import io
import json
import zipfile
from typing import Any

import numpy as np

Rng = np.random.Generator

ODD_JSON: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    7,
    1.5,
    -0.0,
    1e308,
    5e-324,
    float("nan"),
    float("inf"),
    10**6,
    2**31,
    2**63,
    10**30,
    10**400,
    "",
    "x",
    "0",
    "error",
    "clip",
    "\ud800",
    [],
    [0],
    {},
    {"kind": "Mean"},
    {"kind": "Finite", "n": 10**9, "potential": {"kind": "Squint"}, "names": None},
    {"kind": "Finite", "n": 4, "potential": {"kind": "PNorm", "p": 60.0}, "names": None},
    {"kind": "Linear", "n": 10**12, "radius": 1.0},
    {"kind": "OnlineRegression", "n_features": 10**12, "rates": None, "link": None},
    {"kind": "OnlineRegression", "n_features": 0, "rates": [1e308] * 3, "link": None},
    {"kind": "Quantile", "level": 2},
    {"kind": "Property", "name": "mine"},
    {"kind": ["Mean"]},
    [[[[]]]],
]


def entries(file: bytes) -> dict[str, bytes]:
    """The entries of an archive."""
    with zipfile.ZipFile(io.BytesIO(file)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archived(parts: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """An archive of these entries, with the right checksums."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, data in parts.items():
            archive.writestr(zipfile.ZipInfo(name), data, compression)
    return buffer.getvalue()


def packed(array: Any) -> bytes:
    """An array as a .npy entry."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=True)
    return buffer.getvalue()


def header_of(parts: dict[str, bytes]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(np.load(io.BytesIO(parts["header.npy"])).tobytes())
    return found


def with_header(parts: dict[str, bytes], header: Any) -> bytes:
    text = json.dumps(header).encode()
    return archived({**parts, "header.npy": packed(np.frombuffer(text, dtype=np.uint8))})


def _odd_header(rng: Rng, parts: dict[str, bytes]) -> bytes:
    """One field, at any depth, removed or replaced."""
    header = header_of(parts)
    at: Any = header
    while True:
        keys = list(at)
        key = keys[int(rng.integers(len(keys)))]
        if isinstance(at[key], dict) and at[key] and rng.random() < 0.8:
            at = at[key]
            continue
        if rng.random() < 0.1:
            del at[key]
        elif rng.random() < 0.1:
            at["further"] = 1
        else:
            at[key] = ODD_JSON[int(rng.integers(len(ODD_JSON)))]
        return with_header(parts, header)


def _odd_array(rng: Rng, parts: dict[str, bytes]) -> bytes:
    """One array of another type or shape, with other values, missing, or twice."""
    names = [name for name in parts if name != "header.npy"]
    name = names[int(rng.integers(len(names)))]
    array = np.load(io.BytesIO(parts[name]))
    kind = int(rng.integers(14))
    if kind == 0:
        return archived({key: data for key, data in parts.items() if key != name})
    if kind == 1:
        return archived({**parts, "evidence.more.npy": packed(np.zeros(3))})
    if kind == 2:
        return archived({**parts, "readme.txt": b"hello"})
    if kind == 3:
        array = array.astype(["f4", "i8", "c16", "O", "U5", ">f8", "?"][int(rng.integers(7))])
    elif kind == 4:
        array = array[:-1]
    elif kind == 5:
        array = array[None]
    elif kind == 6:
        array = np.asfortranarray(array)
    elif kind == 7:
        label = parts[name][:128].replace(b"(", b"(9", 1)
        return archived({**parts, name: label + parts[name][128:]})
    elif kind == 8:
        cut = int(rng.integers(len(parts[name])))
        return archived({**parts, name: parts[name][:cut]})
    elif kind == 9:
        at = int(rng.integers(min(len(parts[name]), 128)))
        return archived({**parts, name: parts[name][:at] + rng.bytes(1) + parts[name][at + 1 :]})
    elif array.size:
        array = array.copy()
        odd = rng.choice([np.nan, np.inf, 1e308, -1e308, 1e200, -1.0, 5e-324, 0.5, 1.0, 1e6])
        whole = array.dtype in (np.uint8, np.uint32, np.int64)
        array.flat[int(rng.integers(array.size))] = rng.integers(256) if whole else odd
    return archived({**parts, name: packed(array)})


def changed(rng: Rng, file: bytes) -> bytes:
    """The file, changed in one of many ways."""
    kind = rng.random()
    if kind < 0.15:
        return file[: int(rng.integers(len(file)))]
    if kind < 0.35:
        flipped = bytearray(file)
        for _ in range(int(rng.integers(1, 4))):
            flipped[int(rng.integers(len(file)))] ^= 1 << int(rng.integers(8))
        return bytes(flipped)
    if kind < 0.4:
        return bytes(rng.bytes(int(rng.integers(0, 2000))))
    if kind < 0.43:
        at = int(rng.integers(len(file)))
        return file[:at] + rng.bytes(int(rng.integers(1, 50))) + file[at:]
    if kind < 0.45:
        return FOREIGN[int(rng.integers(len(FOREIGN)))]
    parts = entries(file)
    return _odd_header(rng, parts) if kind < 0.75 else _odd_array(rng, parts)


def bombs(file: bytes) -> list[bytes]:
    """Small files that unpack to much, or ask for much."""
    parts, zeros = entries(file), bytes(30_000_000)
    label = packed(np.zeros(1))[:128]
    huge = label.replace(b"(1,)", b"(9999999999999,)").replace(b" " * 13 + b"\n", b"\n")
    files = [
        archived({**parts, "header.npy": zeros}, zipfile.ZIP_DEFLATED),
        archived({**parts, "evidence.bomb.npy": zeros}, zipfile.ZIP_DEFLATED),
        archived({**parts, "atoms.labels.npy": packed(np.zeros(10**6))}, zipfile.ZIP_DEFLATED),
        archived({**parts, "ledger.rounding.npy": huge + bytes(64)}),
        archived({**parts, "pending.rounds.npy": packed(np.zeros(10**7, dtype=np.int64))}, zipfile.ZIP_DEFLATED),
        archived({f"{i}.npy": b"" for i in range(5000)}),
    ]
    for change in (
        {"settings": {"bins": 10**10}},
        {"settings": {"max_pending": 10**14}},
        {"settings": {"levels": 10**11}},
        {"counters": {"n_values": 10**11}},
        {"counters": {"open": 10**11}},
        {"hypotheses": {"kind": "Finite", "n": 10**11, "potential": {"kind": "AdaNormalHedge"}, "names": None}},
        {"hint": {"kind": "OnlineRegression", "n_features": 10**12, "rates": None, "link": None}},
    ):
        header = header_of(parts)
        for name, values in change.items():
            header[name] = {**(header[name] or {}), **values} if name in ("settings", "counters") else values
        files.append(with_header(parts, header))
    return files


def _numpy_file() -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, header=np.zeros(3), a=np.zeros(3))
    return buffer.getvalue()


FOREIGN: list[bytes] = [
    b"",
    b"\x00",
    b"PK",
    b"PK\x05\x06" + bytes(18),
    b"{}",
    packed(np.zeros(3)),
    _numpy_file(),
    archived({}),
    archived({"header.npy": b""}),
    archived({"header.npy": packed(np.frombuffer(b"[" * 100_000, dtype=np.uint8))}),
    archived({"header.npy": packed(np.frombuffer(b"null", dtype=np.uint8))}),
    archived({"header.npy": packed(np.array({"a": 1}, dtype=object))}),
    b"\x80\x04\x95" + bytes(30),
    b"%PDF-1.4",
]

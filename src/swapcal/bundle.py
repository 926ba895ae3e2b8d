"""Several forecasters and plain data in one archive, for what is assembled from forecasters. No pickle anywhere."""

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Mapping
from os import PathLike
from typing import Any, BinaryIO

from swapcal.errors import StateFileError
from swapcal.forecaster import Forecaster

__all__ = ["from_bytes", "read", "seed_for", "to_bytes", "write"]


def to_bytes(forecaster: Forecaster) -> bytes:
    """The state of a forecaster, as `Forecaster.save` writes it."""
    stream = io.BytesIO()
    forecaster.save(stream)
    return stream.getvalue()


def from_bytes(data: bytes) -> Forecaster:
    """The forecaster that `to_bytes` wrote."""
    return Forecaster.load(io.BytesIO(data))


def seed_for(seed: int, *names: object) -> int:
    """A seed for a part: a hash of the seed of the whole and of the part's names, so that parts draw independently.

    Examples
    --------
    >>> seed_for(1, "lower") == seed_for(1, "lower"), seed_for(1, "lower") == seed_for(1, "upper")
    (True, False)
    """
    text = json.dumps([seed, *map(str, names)]).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 1


def write(
    path: str | PathLike[str] | BinaryIO, kind: str, plain: Mapping[str, Any], parts: Mapping[str, Forecaster]
) -> None:
    """One archive with JSON and the parts' states; a file appears whole or not at all."""
    if not isinstance(path, (str, PathLike)):
        _fill(path, kind, plain, parts)
        return
    beside = f"{os.fspath(path)}.{os.getpid()}.part"
    try:
        with open(beside, "wb") as file:
            _fill(file, kind, plain, parts)
        os.replace(beside, path)
    finally:
        if os.path.exists(beside):
            os.remove(beside)


def _fill(file: BinaryIO, kind: str, plain: Mapping[str, Any], parts: Mapping[str, Forecaster]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("plain.json", json.dumps({"kind": kind, **plain}))
        for name, part in parts.items():
            archive.writestr(f"{name}.npz", to_bytes(part))


def read(path: str | PathLike[str] | BinaryIO, kind: str) -> tuple[dict[str, Any], dict[str, Forecaster]]:
    """The JSON and the parts that `write` wrote for this kind of object."""
    try:
        with zipfile.ZipFile(path) as archive:
            plain = json.loads(archive.read("plain.json"))
            names = [name for name in archive.namelist() if name.endswith(".npz")]
            parts = {name.removesuffix(".npz"): from_bytes(archive.read(name)) for name in names}
    except StateFileError:
        raise
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise StateFileError(f"this is not a whole state file of swapcal ({type(error).__name__}: {error})") from error
    if not isinstance(plain, dict) or plain.get("kind") != kind:
        found = plain.get("kind") if isinstance(plain, dict) else None
        raise StateFileError(f"this file holds the state of {found!r}; it cannot be loaded as {kind!r}")
    return plain, parts

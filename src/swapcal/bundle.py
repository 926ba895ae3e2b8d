"""Several forecasters and plain data in one archive, for what is assembled from forecasters. No pickle anywhere."""

import json
import os
import zipfile
from collections.abc import Mapping
from os import PathLike
from typing import Any, BinaryIO

from swapcal.errors import StateFileError
from swapcal.forecaster import Forecaster


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
            archive.writestr(f"{name}.state", part.to_bytes())


def read(path: str | PathLike[str] | BinaryIO, kind: str) -> tuple[dict[str, Any], dict[str, Forecaster]]:
    """The JSON and the parts that `write` wrote for this kind of object."""
    try:
        with zipfile.ZipFile(path) as archive:
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist()):
                raise StateFileError("this is not a state file of swapcal: it is packed, and could unpack to anything")
            if any(name.endswith(".npz") for name in archive.namelist()):
                raise StateFileError("this state file was written by an earlier version of swapcal; make it again")
            plain = json.loads(archive.read("plain.json"))
            names = [name for name in archive.namelist() if name.endswith(".state")]
            parts = {name.removesuffix(".state"): Forecaster.from_bytes(archive.read(name)) for name in names}
    except StateFileError:
        raise
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise StateFileError(f"this is not a whole state file of swapcal ({type(error).__name__}: {error})") from error
    if not isinstance(plain, dict) or plain.get("kind") != kind:
        found = plain.get("kind") if isinstance(plain, dict) else None
        raise StateFileError(f"this file holds the state of {found!r}; it cannot be loaded as {kind!r}")
    return plain, parts

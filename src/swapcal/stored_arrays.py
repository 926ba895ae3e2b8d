"""Arrays in the archives that states are kept in: written and read without pickle."""

import io
import threading
import zipfile
from typing import Any

import numpy as np
import numpy.typing as npt

_PARSING = threading.Lock()


def write_array(archive: zipfile.ZipFile, entry: str | zipfile.ZipInfo, array: npt.NDArray[Any]) -> None:
    """Put an array into an archive that is open for writing."""
    with archive.open(entry, "w", force_zip64=True) as file:
        np.lib.format.write_array(file, array, allow_pickle=False)


def read_array(archive: zipfile.ZipFile, name: str) -> npt.NDArray[Any]:
    """An array of an archive; what is not whole raises one of the errors of zipfile or NumPy."""
    # Reading the whole entry makes zipfile compare its checksum, which reading as much as an array needs does not.
    stored = io.BytesIO(archive.read(name))
    # NumPy parses the head of an array as a literal of Python, which CPython 3.11 does for one thread at a time only.
    with _PARSING:
        array: npt.NDArray[Any] = np.lib.format.read_array(stored, allow_pickle=False)
    return array

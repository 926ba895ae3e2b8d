"""Arrays that take long to make, kept in files and made anew when what they were made from has changed."""

import hashlib
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from swapcal.typing import Float64Array

__all__ = ["LateCache"]


class LateCache:
    """Arrays by name in a folder; each carries the digest of what it was made from.

    Parameters
    ----------
    folder : path, optional
        Where they are kept; None: nowhere.

    Examples
    --------
    >>> cache = LateCache(None)
    >>> cache.kept("ones", cache.digest(np.zeros(2)), lambda: np.ones(2))
    array([1., 1.])
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    @staticmethod
    def digest(*arrays: np.ndarray) -> str:
        """Of some arrays."""
        found = hashlib.sha256()
        for array in arrays:
            found.update(np.ascontiguousarray(array).tobytes())
        return found.hexdigest()[:16]

    def kept(self, name: str, digest: str, make: Callable[[], Float64Array]) -> Float64Array:
        """The array of this name and digest, made if it is not there."""
        if self.folder is None:
            return make()
        path = self.folder / f"{re.sub('[^a-z0-9.]+', '-', name.lower())}-{digest}.npy"
        if path.is_file():
            found: Float64Array = np.load(path)
            return found
        array = make()
        self.folder.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        with part.open("wb") as file:
            np.save(file, array)
        part.replace(path)
        return array

"""Whether the compiled kernels are there. Without them everything works, in Python."""

import importlib
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from swapcal.errors import UncompiledWarning

VARIABLE = "SWAPCAL_BACKEND"
"""Environment variable: "python" leaves the kernels alone, "native" insists on them."""


def _found(wanted: str) -> ModuleType | None:
    if wanted not in ("", "native", "python"):
        raise ImportError(f"the environment variable {VARIABLE} must be native or python; it is {wanted!r}")
    if wanted == "python":
        return None
    try:
        return importlib.import_module("swapcal._native")
    except ImportError:
        if wanted == "native":
            raise
        return None


native: Any = _found(os.environ.get(VARIABLE, ""))
"""The module of compiled kernels, or None."""

_reminded = native is not None or VARIABLE in os.environ


def backend() -> str:
    """The word "native" where compiled kernels are in use, "python" where they are not.

    Forecasters keep the backend with which they were made. Numbers are the same on both, to the last bit.

    Returns
    -------
    str
        "native" or "python".

    Examples
    --------
    >>> backend() in ("native", "python")
    True
    """
    return "python" if native is None else "native"


def remind() -> None:
    """Say once that the kernels are missing, if nobody asked for that."""
    global _reminded
    if not _reminded:
        _reminded = True
        warnings.warn(
            "swapcal runs without its compiled kernels, with the same numbers and 20 to 100 times slower; reinstall it "
            f"where there is a C++ compiler, or set {VARIABLE}=python if this is what you want",
            UncompiledWarning,
            stacklevel=3,
        )


@contextmanager
def using(name: str) -> Iterator[None]:
    """Choose the backend for a block of code; tests and benchmarks compare the twins with it.

    Examples
    --------
    >>> with using("python"):
    ...     backend()
    'python'
    """
    global native
    before, native = native, _found(name)
    try:
        yield
    finally:
        native = before

"""Packages that only some readers need, imported when they do."""

import importlib
from typing import Any

from swapcal.errors import MissingExtra

__all__ = ["package"]


def package(module: str, purpose: str, *, extra: str = "files") -> Any:
    """The module, or one sentence that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(
            f"{purpose} needs the package {module.partition('.')[0]}; install it with  pip install 'swapcal[{extra}]'"
        ) from error

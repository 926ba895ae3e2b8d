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
        name = module.partition(".")[0]
        if isinstance(error, ModuleNotFoundError) and error.name == name:
            why = f"{purpose} needs the package {name}; install it with  pip install 'swapcal[{extra}]'"
        else:
            # It is there and does not load: what it says itself tells more than that it is missing.
            said = (str(error).strip().splitlines() or [type(error).__name__])[-1]
            why = (
                f"{purpose} needs the package {name}, which is installed and cannot be loaded: {said}; install "
                f"versions that fit each other with  pip install --upgrade 'swapcal[{extra}]'"
            )
        raise MissingExtra(why) from error

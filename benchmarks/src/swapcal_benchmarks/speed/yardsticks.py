"""The compiled loops and calls that an engine is held against, from this package's own `cpp/`."""

import importlib
from typing import Any

__all__ = ["compiled"]


def _found() -> Any:
    try:
        return importlib.import_module("swapcal_benchmarks._yardsticks")
    except ImportError:
        return None


compiled = _found()
"""`bare_loop`, `bare_known`, `bare_known_any_order` and `Empty`; None where there was no compiler at install."""

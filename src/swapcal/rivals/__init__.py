"""Every published method that the paper compares with, and what practitioners use, on one outer protocol.

A file in this folder with a class that has a `card` is a rival: it is found by itself, and every table lists it.
"""

import importlib
import inspect
import pkgutil

from swapcal.engine.published import PublishedMethod
from swapcal.rivals.shared.card import Card

__all__ = ["Card", "all_rivals"]


def all_rivals() -> dict[str, type[PublishedMethod]]:
    """All methods in this folder, by the name of their class."""
    modules = (importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__))
    members = (member for module in modules for member in inspect.getmembers(module, inspect.isclass))
    return {name: kind for name, kind in sorted(members) if issubclass(kind, PublishedMethod) and hasattr(kind, "card")}


def __getattr__(name: str) -> type[PublishedMethod]:
    rivals = all_rivals()
    if name not in rivals:
        raise AttributeError(f"module {__name__!r} has no method {name!r}; it has {', '.join(rivals)}")
    return rivals[name]


def __dir__() -> list[str]:
    return sorted([*globals(), *all_rivals()])

"""All methods of this room, for tables and tests that must leave none out."""

import importlib
import inspect
import pkgutil

from swapcal.engine.published import PublishedMethod

__all__ = ["all_rivals"]


def all_rivals() -> dict[str, type[PublishedMethod]]:
    """All methods in `swapcal.rivals`, by the name of their class: every file of the folder is looked at.

    Returns
    -------
    dict of str to type
        Each class has a `card` that says what it assumes, covers and claims.

    Examples
    --------
    >>> all_rivals()["MVP"].card.name
    'MVP'
    """
    room = importlib.import_module("swapcal.rivals")
    modules = (importlib.import_module(f"swapcal.rivals.{one.name}") for one in pkgutil.iter_modules(room.__path__))
    members = (member for module in modules for member in inspect.getmembers(module, inspect.isclass))
    return {name: kind for name, kind in sorted(members) if issubclass(kind, PublishedMethod) and hasattr(kind, "card")}

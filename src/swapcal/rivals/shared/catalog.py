"""All methods of this room, for tables and tests that must leave none out."""

import importlib

from swapcal.engine.published import PublishedMethod

__all__ = ["all_rivals"]


def all_rivals() -> dict[str, type[PublishedMethod]]:
    """All methods in `swapcal.rivals`, by the name of their class.

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
    listed = {name: getattr(room, name) for name in room.__all__}
    return {name: kind for name, kind in listed.items() if isinstance(kind, type) and issubclass(kind, PublishedMethod)}

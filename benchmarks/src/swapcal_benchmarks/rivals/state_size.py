"""How much a method remembers."""

from typing import Any

import numpy as np

__all__ = ["state_bytes"]


def state_bytes(entry: Any) -> int:
    """Bytes of all arrays that can be reached from an object, each counted once, and 8 for each number in a container.

    Attributes are followed, in `__dict__` and `__slots__`, and lists, tuples, sets and dictionaries. Nothing is
    pickled, so that objects which cannot be are measured too. Settings that are single numbers do not count.

    Examples
    --------
    >>> class Method:
    ...     def __init__(self):
    ...         self.weights = np.zeros(10)
    ...         self.same, self.rate, self.past = self.weights, 0.1, [1.0, 2.0]
    >>> state_bytes(Method())
    96
    """
    total, seen, waiting = 0, set(), [(entry, False)]
    while waiting:
        item, contained = waiting.pop()
        if isinstance(item, (bool, str, bytes, type)) or item is None:
            continue
        if isinstance(item, (int, float, complex, np.generic)):
            total += 8 if contained else 0
            continue
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, np.ndarray):
            base = item if item.base is None or not isinstance(item.base, np.ndarray) else item.base
            if base is item or id(base) not in seen:
                seen.add(id(base))
                total += int(item.nbytes)
        elif isinstance(item, dict):
            waiting += [(part, True) for pair in item.items() for part in pair]
        elif isinstance(item, (list, tuple, set, frozenset)):
            waiting += [(part, True) for part in item]
        elif isinstance(item, (bytearray, memoryview)):
            total += len(item)
        elif not callable(item):
            waiting += [(part, False) for part in _attributes(item)]
    return total


def _attributes(item: Any) -> list[Any]:
    parts = list(getattr(item, "__dict__", {}).values())
    for kind in type(item).__mro__:
        names = getattr(kind, "__slots__", ())
        given = (names,) if isinstance(names, str) else names
        parts += [getattr(item, name) for name in given if name != "__dict__" and hasattr(item, name)]
    return parts

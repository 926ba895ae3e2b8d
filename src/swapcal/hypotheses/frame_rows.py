"""One row of a frame as the mapping from column to value that it is."""

from collections.abc import Mapping
from typing import Any

__all__ = ["as_case"]


def as_case(x: Any) -> Mapping[str, Any] | None:
    """A case as a mapping: one, a row of a pandas frame, a frame of one row, or a named tuple. None for anything else.

    Frames are known by their methods, so that none of their libraries is imported.

    Examples
    --------
    >>> from collections import namedtuple
    >>> as_case({"sex": "f"}), as_case(namedtuple("Case", "sex age")("f", 41)), as_case(3)
    ({'sex': 'f'}, {'sex': 'f', 'age': 41}, None)
    """
    if isinstance(x, Mapping):
        return x
    if hasattr(x, "_asdict"):  # what pandas' itertuples gives
        x = x._asdict()
    elif hasattr(x, "to_dicts"):  # polars
        rows = x.to_dicts() if len(x) == 1 else []
        x = rows[0] if rows else None
    elif hasattr(x, "iloc"):  # pandas: a row, or a frame of one
        if getattr(x, "ndim", 0) == 2 and len(x) == 1:
            x = x.iloc[0]
        x = x.to_dict() if getattr(x, "ndim", 0) == 1 else None
    return x if isinstance(x, Mapping) else None

"""One row of a frame as the mapping from column to value that it is."""

from collections.abc import Mapping
from typing import Any

__all__ = ["CaseColumns", "as_case"]


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
    kind = type(x)  # frames look for what they do not have among their columns, which takes long
    if hasattr(kind, "_asdict"):  # what pandas' itertuples gives
        x = x._asdict()
    elif hasattr(kind, "to_dicts"):  # polars
        x = dict(zip(x.columns, x.row(0), strict=True)) if len(x) == 1 else None
    elif hasattr(kind, "iloc"):  # pandas: a row, or a frame of one
        if x.ndim == 2 and len(x) == 1:
            x = x.iloc[0]
        x = dict(zip(x.index.tolist(), x.tolist(), strict=True)) if x.ndim == 1 else None
    return x if isinstance(x, Mapping) else None


class CaseColumns:
    """Some columns of cases, one case after the other, without the mapping that each of them could be.

    The rows of one pandas frame share their index: where its columns stand is looked up once.
    """

    __slots__ = ("_seen", "columns")

    def __init__(self, columns: tuple[str, ...]) -> None:
        self.columns = columns
        self._seen: tuple[Any, list[int]] = (None, [])
        """The index of the last row, and where the columns stand in it: one pair, as threads may look at once."""

    def of(self, x: Any) -> list[Any] | None:
        """The values of the columns, None for one that the case does not have; None for what is no case.

        Examples
        --------
        >>> CaseColumns(("age", "sex")).of({"sex": "f"})
        [None, 'f']
        """
        kind = type(x)
        if kind is dict:
            return [x.get(name) for name in self.columns]
        if hasattr(kind, "_fields"):
            return [getattr(x, name, None) for name in self.columns]
        if hasattr(kind, "iloc") and x.ndim == 1:
            return self._from_pandas(x)
        if hasattr(kind, "to_dicts") and len(x) == 1:
            names, row = x.columns, x.row(0)
            return [row[names.index(name)] if name in names else None for name in self.columns]
        case = as_case(x)
        return None if case is None else [case.get(name) for name in self.columns]

    def _from_pandas(self, row: Any) -> list[Any]:
        index, (seen, places) = row.index, self._seen
        if not index.is_(seen):  # every row has a view of the frame's columns
            names = {name: place for place, name in enumerate(index.tolist())}
            # Behind the last value stands one None, for columns that are not there.
            places = [names.get(name, -1) for name in self.columns]
            self._seen = index, places
        values = [*row.tolist(), None]
        return [values[place] for place in places]

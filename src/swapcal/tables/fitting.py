"""What groups learn from a first part of the stream: which columns are quantities, and which values come first."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from swapcal.tables.bands import band_labels
from swapcal.tables.coded import Coded, as_number, text
from swapcal.tables.columns import floats_of
from swapcal.tables.definitions import Key
from swapcal.tables.vocabulary import KeyedColumn, Token
from swapcal.typing import Float64Array

__all__ = ["Found", "frequent", "listed", "quantities"]

FEW = 31
"""A column of numbers with more distinct ones than this is cut into bands."""

_NUMERAL = re.compile(r"[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|[+-]?inf")
"""Text that spells a number. A leading zero makes it a label: post codes and flight numbers are not quantities."""


class Found(NamedTuple):
    """A value of a key, and how many rows have it."""

    key: int
    token: Token
    n_rows: int

    @property
    def shown(self) -> tuple[str, ...]:
        """Its texts, to be sorted by."""
        return tuple(part or "" for part in self.token)


def quantities(column: Coded | Float64Array) -> Float64Array | None:
    """The finite numbers of a column, row by row, if it has numbers only and more than `FEW` different ones."""
    if isinstance(column, Coded):
        used = np.unique(column.codes[column.codes >= 0]).tolist()
        texts = [text(column.values[code]) for code in used]
        if len(used) <= FEW or not all(one is None or _NUMERAL.fullmatch(one) for one in texts):
            return None
    values = floats_of(column)
    values = values[np.isfinite(values)]
    return values if len(np.unique(values)) > FEW else None


def frequent(columns: Sequence[KeyedColumn], rare: int) -> list[Found]:
    """All values with at least `rare` rows, the most frequent first, whatever order a source lists them in."""
    found = []
    for key, keyed in enumerate(columns):
        counts = np.bincount(keyed.codes[keyed.codes >= 0], minlength=len(keyed.tokens)).tolist()
        pairs = zip(keyed.tokens, counts, strict=True)
        found += [Found(key, token, count) for token, count in pairs if count >= rare]
    return sorted(found, key=lambda one: (-one.n_rows, one.key, one.shown))


def listed(found: Sequence[Found], keys: Sequence[Key], edges: Mapping[str, tuple[float, ...]]) -> list[Found]:
    """In the order of names: by key; numbers and bands as they follow each other, other values the frequent first."""

    def rank(one: Found) -> tuple[int, int, float, tuple[str, ...]]:
        columns, part = keys[one.key].columns, one.token[0]
        if len(columns) == 1 and part is not None:
            own = edges.get(columns[0])
            place = as_number(part) if own is None else float(band_labels(own).index(part))
            if place == place:
                return one.key, 0, place, one.shown
        return one.key, 1, -float(one.n_rows), one.shown

    return sorted(found, key=rank)

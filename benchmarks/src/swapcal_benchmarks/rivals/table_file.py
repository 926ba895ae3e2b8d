"""Real data: a CSV file with a label, a model's forecast and groups."""

import csv
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from swapcal.errors import InvalidInput
from swapcal.properties import Expectile, Mean, Probability, Quantile
from swapcal.protocols import Elicitable
from swapcal.typing import Float64Array
from swapcal_benchmarks.rivals.board_streams import Recorded
from swapcal_benchmarks.rivals.boards import Board

__all__ = ["PROPERTIES", "TableFile"]

PROPERTIES = ("probability", "mean", "quantile", "expectile")


@dataclass(frozen=True, slots=True)
class TableFile:
    """Which file, and which of its columns.

    Parameters
    ----------
    path : str
        A CSV file with a header; its rows are the rounds, in order.
    y : str
        Column of the labels.
    hint : str, optional
        Column of the model's forecasts.
    groups : tuple of str
        Columns with values in [-1, 1], 0 and 1 for groups; a group of everybody is added in front.
    kind : {"probability", "mean", "quantile", "expectile"}, optional
        None: probability if all labels are 0 or 1, and the mean otherwise.
    level : float, optional
        Of the quantile (0.9 unless given) or expectile (0.8).
    """

    path: str
    y: str
    hint: str | None = None
    groups: tuple[str, ...] = ()
    kind: str | None = None
    level: float | None = None

    @property
    def name(self) -> str:
        """What tables call the stream."""
        return Path(self.path).stem

    def board(self) -> Board:
        """The one contest on this file; the range of the labels is taken from the file."""
        y = _columns(self.path, (self.y,))[:, 0]
        found = self._property(y)
        return Board("csv", f"{self.kind or 'forecasts'} of {self.y} in {self.name}", found, False, (self.name,))

    def read(self, property: Elicitable, n_rounds: int) -> Recorded:
        """The first `n_rounds` rounds; forecasts outside the range of the labels are moved to its end."""
        wanted = (self.y, *self.groups, *(() if self.hint is None else (self.hint,)))
        table = _columns(self.path, wanted)[:n_rounds]
        n = len(self.groups)
        x = np.column_stack([np.ones(len(table)), table[:, 1 : 1 + n]])
        for name, column in zip(self.groups, x.T[1:], strict=True):
            if column.size and np.abs(column).max() > 1.0:
                raise InvalidInput(f"column {name!r} of {self.path} leaves [-1, 1]; a group is 0 or 1 in every row")
        hint = None if self.hint is None else np.clip(table[:, -1], *property.domain)
        return Recorded(x, table[:, 0].copy(), hint, None)

    @property
    def digest(self) -> str:
        """Of the file's bytes: another content is another stream."""
        return _digest(self.path)

    @property
    def n_rounds(self) -> int:
        """Number of rows."""
        return len(_columns(self.path, (self.y,)))

    def _property(self, y: Float64Array) -> Elicitable:
        kind = self.kind or ("probability" if np.isin(y, (0.0, 1.0)).all() else "mean")
        if kind not in PROPERTIES:
            raise InvalidInput(f"the property must be one of {', '.join(PROPERTIES)}; got {self.kind!r}")
        if kind == "probability":
            if not np.isin(y, (0.0, 1.0)).all():
                raise InvalidInput(f"a probability needs labels 0 and 1; column {self.y!r} of {self.path} has others")
            return Probability()
        low, high = float(y.min()), float(y.max())
        if not low < high:
            raise InvalidInput(
                f"column {self.y!r} of {self.path} has one value only, {low:g}; there is nothing to forecast"
            )
        if kind == "mean":
            return Mean(low=low, high=high)
        if kind == "quantile":
            return Quantile(0.9 if self.level is None else self.level, low=low, high=high)
        return Expectile(0.8 if self.level is None else self.level, low=low, high=high)


def _columns(path: str, names: Sequence[str]) -> Float64Array:
    return _read(path, tuple(names))


@lru_cache(maxsize=4)
def _read(path: str, names: tuple[str, ...]) -> Float64Array:
    """The named columns as numbers, in this order."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            header = next(reader, None)
            if header is None:
                raise InvalidInput(f"{path} is empty; its first line must name the columns")
            missing = [name for name in names if name not in header]
            if missing:
                raise InvalidInput(f"{path} has no column {', '.join(map(repr, missing))}; it has {', '.join(header)}")
            places = [header.index(name) for name in names]
            table = [[_number(path, line, header, row, k) for k in places] for line, row in enumerate(reader, 2) if row]
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput(f"{path} is not a CSV file in UTF-8: {error}") from error
    if not table:
        raise InvalidInput(f"{path} has a header and no rows")
    return np.array(table, dtype=np.float64).reshape(len(table), len(names))


@lru_cache(maxsize=4)
def _digest(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]


def _number(path: str, line: int, header: list[str], row: list[str], k: int) -> float:
    cell = row[k] if k < len(row) else ""
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InvalidInput(
            f"line {line} of {path} has {cell!r} in column {header[k]!r}, where a finite number is needed; "
            "fill or drop such rows first"
        )
    return value

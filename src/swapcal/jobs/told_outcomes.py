"""A second file of outcomes, which names the rows they belong to by a column."""

from typing import Any

import numpy as np

from swapcal.errors import DataError
from swapcal.jobs.question import Question
from swapcal.jobs.row_values import raw_outcomes
from swapcal.tables.batch import Batch
from swapcal.tables.coded import text
from swapcal.tables.records import read
from swapcal.typing import Float64Array, IntArray
from swapcal.words.numbers import counted

__all__ = ["ToldOutcomes"]

_SHOWN = 3


class ToldOutcomes:
    """Outcomes by the names of their rows, in the order in which the file has them.

    An outcome that is blank is none. A name that comes twice is refused where the outcomes differ, and so is one that
    several rows of the input have: nobody could say which of them is meant.

    Parameters
    ----------
    source : path, or anything that `records.read` takes
        A table with the columns `question.id` and `question.y`.
    question : Question
        Which columns.
    """

    def __init__(self, source: Any, question: Question) -> None:
        assert question.id is not None
        self._id = question.id
        self._outcomes: dict[str, float] = {}
        self._rows: dict[str, int] = {}
        with read(source, columns=[question.id, question.y]) as records:
            self.name = records.name
            for batch in records:
                self._take(batch, raw_outcomes(question, batch, records.name))
        self._places = {name: place for place, name in enumerate(self._outcomes)}

    def _take(self, batch: Batch, raw: Float64Array) -> None:
        for at, (name, y) in enumerate(zip(_names(batch, self._id), raw.tolist(), strict=True)):
            if y != y:
                continue
            if name is None:
                raise DataError(f"row {batch.first + at + 1} of {self.name} has an outcome and nothing in {self._id!r}")
            if self._outcomes.setdefault(name, y) != y:
                raise DataError(
                    f"{self.name} has {name!r} twice in column {self._id!r}, with different outcomes: "
                    f"{self._outcomes[name]:g}, and {y:g} in row {batch.first + at + 1}; leave the right one"
                )

    def found(self, batch: Batch) -> tuple[IntArray, Float64Array]:
        """The rows of a batch whose outcome is in the file, and the outcomes."""
        rows, outcomes = [], []
        for at, name in enumerate(_names(batch, self._id)):
            if name is not None and name in self._outcomes:
                if name in self._rows:
                    rows_of = f"rows {self._rows[name] + 1:,} and {batch.first + at + 1:,} of {batch.name}"
                    raise DataError(
                        f"{rows_of} both have {name!r} in column {self._id!r}, so that nobody knows which of them "
                        f"{self.name} means; nothing was learned"
                    )
                self._rows[name] = batch.first + at
                rows.append(at)
                outcomes.append(self._outcomes[name])
        return np.array(rows, dtype=np.int64), np.array(outcomes, dtype=np.float64)

    def order(self, rows: IntArray) -> IntArray:
        """The order of rows that were found, as the file has them."""
        places = {row: self._places[name] for name, row in self._rows.items()}
        return np.argsort([places[row] for row in rows.tolist()], kind="stable").astype(np.int64)

    def strangers(self) -> str | None:
        """A sentence about names of no row so far."""
        names = [name for name in self._outcomes if name not in self._rows]
        if not names:
            return None
        shown = ", ".join(map(repr, names[:_SHOWN])) + (", ..." if len(names) > _SHOWN else "")
        return (
            f"{counted(len(names), 'outcome')} in {self.name} {'is' if len(names) == 1 else 'are'} of no row that was "
            f"forecast so far ({shown}) and {'was' if len(names) == 1 else 'were'} left; "
            "give the file again when there is one"
        )


def _names(batch: Batch, column: str) -> list[str | None]:
    """What rows are called: texts, without the spaces around them; None where there is nothing."""
    stored = batch.stored(column)
    listed = next(
        (getattr(stored, name)() for name in ("to_pylist", "to_list", "tolist") if hasattr(stored, name)), stored
    )
    written = [text(value) for value in listed]
    return [None if each is None else each.strip() or None for each in written]

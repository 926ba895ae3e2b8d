"""The columns of a run of classes: outcomes that name a class, and a model's probability of each."""

import warnings
from collections import Counter
from collections.abc import Sequence

import numpy as np

from swapcal.errors import DataError, InvalidInput
from swapcal.jobs.question import Question
from swapcal.jobs.row_values import RangeWarning
from swapcal.tables.batch import Batch
from swapcal.tables.coded import Coded, text
from swapcal.typing import Float64Array, IntArray

__all__ = ["ClassColumns"]

MOST = 50
"""Classes; each has a forecaster and audits of its own."""
N_SHOWN = 6
MISSING, STRANGE = -1, -2


class ClassColumns:
    """Reads the columns that a run of classes uses. `settle` comes first, with the first rows.

    Parameters
    ----------
    question : Question
        The column of outcomes.
    model : sequence of str
        A column of probabilities for each class, "late" or "p_late" for the class late, all written alike; or pairs
        "late=score2". Empty: there is no model.

    Attributes
    ----------
    classes : tuple of str
        The classes, in the order of the columns; without a model in that of their names.
    n_strange, n_rescaled : int
        Outcomes so far that are none of the classes, and rows whose probabilities did not add up to 1.

    Examples
    --------
    >>> rows = Batch("a list", 0, 3, {"y": ["a", "b", None], "p_a": [0.5, 0.1, 0.3], "p_b": [0.5, 0.9, 0.7]})
    >>> columns = ClassColumns(Question("y"), ("p_a", "p_b"))
    >>> columns.settle([rows], 3, "a list")
    >>> columns.classes, columns.labels(rows, "a list")
    (('a', 'b'), array([ 0,  1, -1]))
    """

    def __init__(self, question: Question, model: Sequence[str] = ()) -> None:
        self.question = question
        pairs = [each.split("=", 1) for each in model]
        named = [len(pair) == 2 for pair in pairs]
        if any(named) and not all(named):
            raise InvalidInput(
                f"with --classes, --p names columns (p_a,p_b,p_c) or pairs (a=score1,b=score2), not both; got {model!r}"
            )
        self.model = tuple(pair[-1].strip() for pair in pairs)
        self.classes: tuple[str, ...] = tuple(pair[0].strip() for pair in pairs) if all(named) else ()
        for what, names in (("column", self.model), ("class", self.classes)):
            twice = [name for name, count in Counter(names).items() if count > 1]
            if twice:
                raise InvalidInput(f"--p names the {what} {twice[0]!r} twice; each class has a column of its own")
        if len(self.model) == 1:
            raise InvalidInput(
                f"--classes needs a column of probabilities for each class; got only {self.model[0]!r}, so name the "
                "others too, or leave out --classes and give --positive"
            )
        if len(self.model) > MOST:
            raise InvalidInput(f"--classes takes {MOST} classes at most; got {len(self.model)} columns")
        self.n_strange = self.n_rescaled = 0

    @property
    def names(self) -> tuple[str, ...] | None:
        """All columns that are used, each once; None if functions among the groups may look at any."""
        asked = self.question.columns
        return None if asked is None else tuple(dict.fromkeys((*asked, *self.model)))

    def settle(self, first: Sequence[Batch], n_rows: int, source: str) -> None:
        """Find out what the classes are, from the first `n_rows` rows."""
        seen: Counter[str] = Counter()
        left = n_rows
        for batch in first:
            seen.update(self._counts(batch if batch.n <= left else batch.cut(0, left)))
            left -= min(batch.n, left)
        y = self.question.y
        if not seen:
            raise DataError(f"column {y!r} has no outcome in the first {n_rows:,} rows of {source}; check the column")
        if not self.model:
            self.classes = _all_of(seen, y, source)
        elif not self.classes:
            self.classes = _named_by(self.model, seen, y, source)
        strange = [value for value in seen if value not in self.classes]
        if 2 * sum(seen[value] for value in strange) > sum(seen.values()):
            raise DataError(
                f"most outcomes {y!r} of {source} ({_listed(strange)}) are none of the classes "
                f"{_listed(self.classes)}; give pairs in --p, such as {strange[0]}={self.model[0]}"
            )

    def labels(self, batch: Batch, source: str) -> IntArray:
        """The class of each row: -1 where the outcome is missing, -2 where it is none of the classes."""
        place = {name: k for k, name in enumerate(self.classes)}
        column = batch.column(self.question.y)
        if not isinstance(column, Coded):
            values, inverse = np.unique(column, return_inverse=True)
            column = Coded(inverse.astype(np.int64), tuple(values.tolist()))
        texts = [text(value) for value in column.values]
        codes = [MISSING if each is None else place.get(each, STRANGE) for each in texts]
        labels: IntArray = np.array([*codes, MISSING])[column.codes]
        strange = labels == STRANGE
        if strange.any():
            if not self.n_strange:
                at = int(np.argmax(strange))
                warnings.warn(
                    f"row {batch.first + at + 1} of {source} has the outcome {texts[column.codes[at]]!r}, which is "
                    f"none of the classes {_listed(self.classes)}; such rows are forecast, and not learned from",
                    RangeWarning,
                    stacklevel=4,
                )
            self.n_strange += int(np.count_nonzero(strange))
        return labels

    def probabilities(self, batch: Batch, source: str) -> Float64Array | None:
        """The model's probabilities, rows by classes, NaN where one is missing; None without a model."""
        if not self.model:
            return None
        given = np.column_stack([batch.numbers(name) for name in self.model])
        below = (given < 0).any(axis=1)
        if below.any():
            at = int(np.argmax(below))
            column = self.model[int(np.argmax(given[at] < 0))]
            raise DataError(
                f"row {batch.first + at + 1} of {source} has {np.nanmin(given[at]):g} in column {column!r}, where "
                "probabilities must be 0 or more; correct it, or name another column"
            )
        total = given.sum(axis=1)
        total[total <= 0] = np.nan
        # Numbers that were rounded to hundredths add up to 1 within this.
        rescaled = np.abs(total - 1.0) > 0.006 * len(self.model)
        if rescaled.any():
            if not self.n_rescaled:
                at = int(np.argmax(rescaled))
                warnings.warn(
                    f"the probabilities in row {batch.first + at + 1} of {source} add up to {total[at]:g}; such rows "
                    "are divided by their sum",
                    RangeWarning,
                    stacklevel=4,
                )
            self.n_rescaled += int(np.count_nonzero(rescaled))
        shares: Float64Array = given / np.where(rescaled | np.isnan(total), total, 1.0)[:, None]
        return shares

    def _counts(self, batch: Batch) -> Counter[str]:
        column = batch.column(self.question.y)
        if isinstance(column, Coded):
            counts = np.bincount(column.codes[column.codes >= 0], minlength=len(column.values)).tolist()
            values = column.values
        else:
            found, numbers = np.unique(column[~np.isnan(column)], return_counts=True)
            values, counts = tuple(found.tolist()), numbers.tolist()
        seen: Counter[str] = Counter()
        for value, count in zip(values, counts, strict=True):
            name = text(value)
            if name is not None and count:
                seen[name] += count
        return seen


def _all_of(seen: Counter[str], y: str, source: str) -> tuple[str, ...]:
    """The outcomes there are, as classes."""
    if len(seen) > MOST:
        raise DataError(
            f"column {y!r} of {source} has {len(seen):,} different outcomes ({_listed(list(seen))}), and --classes "
            f"takes {MOST} at most; leave out --classes if they are numbers"
        )
    if len(seen) < 2:
        raise DataError(f"all outcomes {y!r} of {source} so far are {next(iter(seen))!r}; classes need two or more")
    try:
        return tuple(sorted(seen, key=float))
    except ValueError:
        return tuple(sorted(seen))


def _named_by(columns: tuple[str, ...], seen: Counter[str], y: str, source: str) -> tuple[str, ...]:
    """The classes that columns are named after: what stands before and behind the class is the same in all of them."""
    best: tuple[int, tuple[str, ...]] = (0, ())
    for value in seen:
        for column in columns:
            at = column.find(value)
            while at >= 0:
                front, back = column[:at], column[at + len(value) :]
                alike = all(
                    each.startswith(front) and each.endswith(back) and len(each) > len(front) + len(back)
                    for each in columns
                )
                if alike:
                    names = tuple(each[len(front) : len(each) - len(back)] for each in columns)
                    best = max(best, (sum(seen[name] for name in names), names))
                at = column.find(value, at + 1)
    if not best[0]:
        shown = ",".join(f"{value}={column}" for value, column in zip(sorted(seen), columns, strict=False))
        raise DataError(
            f"the columns {_listed(columns)} do not say which class they are about: the outcomes {y!r} of {source} are "
            f"{_listed(sorted(seen))}; give pairs, such as --p {shown}"
        )
    return best[1]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:N_SHOWN])) + (", ..." if len(names) > N_SHOWN else "")

"""What a run has seen of its rows: how many, a digest of their cells, and the groups that they are in."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from swapcal.errors import StateFileError
from swapcal.jobs.audience import Audience
from swapcal.jobs.checkpoint import Checkpoint
from swapcal.jobs.fingerprint import Fingerprint
from swapcal.jobs.question import Question
from swapcal.tables.batch import Batch

__all__ = ["SeenRows", "settings_of"]

_ROOM = 64
"""Free positions for values that first come up late, besides as many as the first rows have filled."""


class SeenRows:
    """Rows that are done.

    Parameters
    ----------
    question : Question
        Which groups, and how many rows settle them.
    columns : sequence of str
        All columns that the run uses; None: it may use any.
    first : sequence of Batch
        The first rows of the source.
    source : str
        What messages call it.
    saved : Checkpoint, optional
        Go on from there; the first rows must be the same as then.
    """

    def __init__(
        self,
        question: Question,
        columns: Sequence[str] | None,
        first: Sequence[Batch],
        source: str,
        saved: Checkpoint | None = None,
    ) -> None:
        self.source = source
        self.settled = int(saved.plain["settled"]) if saved else min(sum(batch.n for batch in first), question.prefix)
        question = replace(question, prefix=self.settled)
        self._head = Fingerprint.of(first, self.settled, columns)
        if saved is not None and saved.plain["head"] != self._head:
            raise StateFileError(
                f"{source} does not begin with the rows that the state file has seen; give the file it was made with, "
                "another --state, or --fresh to start over"
            )
        if saved is None:
            fitted = Audience.fitted(question, first)
            room = min(question.limit, 2 * (len(fitted.groups.names) - 1) + _ROOM)
            self.audience = fitted.limited(question, room)
        else:
            self.audience = Audience.resumed(question, saved.plain["audience"])
        self.fingerprint = Fingerprint(columns)
        self.n_rows = 0

    def add(self, batch: Batch) -> None:
        """Count the rows of a batch, whose cells go into the digest."""
        self.fingerprint.add(batch)
        self.n_rows += batch.n

    def plain(self) -> dict[str, Any]:
        """Plain data: what settled the run, and the groups that have come up."""
        return {"settled": self.settled, "head": self._head, "audience": self.audience.spec()}


def settings_of(question: Question) -> dict[str, Any]:
    """Plain data: the part of a question that such runs ask."""
    asked = question.settings()
    return {name: asked[name] for name in ("y", "groups", "categories", "low", "high", "limit", "prefix")}

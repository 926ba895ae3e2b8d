"""What a run has seen of its rows: how many, a digest of their cells, and the groups that they are in."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from swapcal.audit.named_parts import joined, take_over
from swapcal.errors import StateFileError
from swapcal.jobs.audience import Audience
from swapcal.jobs.checkpoint import Checkpoint
from swapcal.jobs.fingerprint import Fingerprint
from swapcal.jobs.kept_sums import check_kept
from swapcal.jobs.question import Question
from swapcal.tables.batch import Batch
from swapcal.typing import Float64Array

__all__ = ["SeenRows", "resume", "settings_of"]


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
            self.audience = Audience.fitted(question, first).with_room(question)
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


def resume(parts: dict[str, Any], arrays: dict[str, Float64Array], n_functions: int) -> None:
    """Let the parts of a run go on from what was kept; a ValueError where that cannot be."""
    # Means of groups check their own form.
    kept, fresh = ({k: a for k, a in some.items() if not k.endswith(".means")} for some in (arrays, joined(parts)))
    check_kept(kept, fresh, n_functions)
    take_over(parts, arrays)

"""Probabilities of one origin, the model's or swapcal's: an audit of each class, and one of the likeliest class."""

from typing import NamedTuple

import numpy as np

from swapcal.audit.column import ColumnAudit
from swapcal.audit.named_parts import joined, take_over
from swapcal.jobs.audience import Audience
from swapcal.jobs.binning import Binning
from swapcal.jobs.several.group_means import GroupMeans
from swapcal.properties import Probability
from swapcal.roles import Rows
from swapcal.typing import Float64Array, IntArray

__all__ = ["ClassLosses", "ClassSide"]

N_FINE = 500
_TINY = 1e-12
"""A class that came up is taken to have had at least this probability, so that the log loss is a number."""


class ClassLosses(NamedTuple):
    """Of each row: the Brier score over all classes, and the log loss."""

    brier: Float64Array
    log: Float64Array


class ClassSide:
    """What is counted of probabilities of classes.

    Parameters
    ----------
    audience : Audience
        For whom.
    binnings : sequence of Binning
        How the probabilities of each class are taken together, and last those of the likeliest.
    label : str
        Whose probabilities they are.
    """

    def __init__(self, audience: Audience, binnings: list[Binning], label: str) -> None:
        fine = np.linspace(0.0, 1.0, N_FINE + 1)[1:-1]
        columns = [audience.column(Probability(), each, label, each.shown, fine=fine) for each in binnings]
        for column in columns:
            column.histograms.settle(np.array([0.0, 1.0]))
        self.classes: list[ColumnAudit] = columns[:-1]
        self.top: ColumnAudit = columns[-1]
        self.means = GroupMeans(audience.groups.n, ("right", "confidence", "brier", "log_loss"))

    def add(
        self, labels: IntArray, probabilities: Float64Array, top: IntArray, sure: Float64Array, rows: Rows
    ) -> ClassLosses:
        """Add rows, nothing missing: their class, the probabilities, the likeliest class and its probability."""
        came = np.zeros_like(probabilities)
        came[np.arange(len(labels)), labels] = 1.0
        for k, column in enumerate(self.classes):
            column.add(came[:, k], np.clip(probabilities[:, k], 0.0, 1.0), rows)
        right = (labels == top).astype(np.float64)
        self.top.add(right, np.clip(sure, 0.0, 1.0), rows)
        brier: Float64Array = ((probabilities - came) ** 2).sum(axis=1)
        given = probabilities[np.arange(len(labels)), labels]
        losses = ClassLosses(brier, -np.log(np.maximum(given, _TINY)))
        self.means.add(rows, right, sure, *losses)
        return losses

    def arrays(self) -> dict[str, Float64Array]:
        """The whole state."""
        return {**joined(self._columns()), **self.means.arrays()}

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Go on from what `arrays` held."""
        self.means.restore({"means": arrays["means"]})
        take_over(self._columns(), arrays)

    def _columns(self) -> dict[str, ColumnAudit]:
        return {"top": self.top, **{f"class{k}": column for k, column in enumerate(self.classes)}}

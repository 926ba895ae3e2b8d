"""Level sets of the hint: functions that say where the hint lies, so that the hint's own bias is found."""

from collections.abc import Callable

import numpy as np

from swapcal.engine.grid import Grid
from swapcal.roles import Hypotheses, Row

__all__ = ["active", "joined"]


def joined(hypotheses: Hypotheses, n_levels: int) -> Hypotheses:
    """The class with `n_levels` indicators behind its own functions; one that cannot be `extended` stays as it is."""
    extended: Callable[[int], Hypotheses] | None = getattr(hypotheses, "extended", None)
    return hypotheses if extended is None or not n_levels else extended(n_levels)


def active(row: Row, hint: float | None, levels: Grid | None, n_own: int) -> Row:
    """The context with the entry of the level set in which the hint lies; unchanged without a hint or levels."""
    if hint is None or levels is None:
        return row
    return Row(np.append(row.indices, n_own + levels.bin(hint)), np.append(row.values, 1.0))

"""Which groups get a diagram of their own on the page, when there are too many for all of them."""

from dataclasses import dataclass

import numpy as np

from swapcal.jobs.result import Result

__all__ = ["ChosenGroups", "chosen_groups"]


@dataclass(frozen=True, slots=True)
class ChosenGroups:
    """Names with a diagram: the worst, then the largest of the others.

    `total` groups could have one, as their curves were kept; `n_groups` have rows.
    """

    worst: tuple[str, ...]
    largest: tuple[str, ...]
    total: int
    n_groups: int

    @property
    def complete(self) -> bool:
        """Whether every group that could have one is among them."""
        return len(self.worst) + len(self.largest) >= self.total


def chosen_groups(result: Result, limit: int = 32) -> ChosenGroups:
    """Three quarters of `limit` for the worst groups and a quarter for the largest; "all" is not counted."""
    side = result.before if result.before is not None else result.after
    if side is None:
        return ChosenGroups((), (), 0, 0)
    found = side.known_groups
    curves = [side.curves for side in result.columns.values()]
    having = np.array([name != "all" and any(name in c for c in curves) for name in found.name], dtype=bool)
    having &= found.rows > 0.0
    by_error = [int(j) for j in found.ranked() if having[j]]
    total = len(by_error)
    n_worst = total if total <= limit else limit - limit // 4
    worst = by_error[:n_worst]
    by_size = [int(j) for j in np.argsort(-found.rows, kind="stable") if having[j] and int(j) not in set(worst)]
    largest = by_size[: limit - n_worst] if total > limit else []
    names = found.name
    return ChosenGroups(tuple(names[j] for j in worst), tuple(names[j] for j in largest), total, found.n_used)

"""The tree in which several quantiles are forecast one inside the other."""

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Node", "tree"]


class Node(NamedTuple):
    """One quantile, forecast inside the cell between two others.

    `below` and `above` are the positions of the quantiles that bound the cell, None for the ends of the line; `share`
    is the level inside the cell: the part of the cell's probability that lies below this quantile.
    """

    position: int
    below: int | None
    above: int | None
    share: float


def tree(levels: Sequence[float]) -> tuple[Node, ...]:
    """The nodes, parents before children: the middle level first, then the middles of the two halves, and so on.

    Examples
    --------
    >>> for node in tree([0.05, 0.95]):
    ...     print(node.position, node.below, node.above, round(node.share, 4))
    0 None None 0.05
    1 0 None 0.9474
    >>> [node.position for node in tree([0.1, 0.25, 0.5, 0.75, 0.9])]
    [2, 0, 1, 3, 4]
    """
    found: list[Node] = []

    def grow(start: int, stop: int) -> None:
        if start >= stop:
            return
        middle = (start + stop - 1) // 2
        below, above = start - 1 if start else None, stop if stop < len(levels) else None
        low = 0.0 if below is None else levels[below]
        high = 1.0 if above is None else levels[above]
        found.append(Node(middle, below, above, (levels[middle] - low) / (high - low)))
        grow(start, middle)
        grow(middle + 1, stop)

    grow(0, len(levels))
    return tuple(found)

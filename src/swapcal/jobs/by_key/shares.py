"""Which process plays which key: the heaviest first, each to the process that has least to do."""

import heapq
from collections.abc import Mapping

__all__ = ["shares"]


def shares(rows: Mapping[str, int], n: int) -> dict[str, int]:
    """A process for each key; the load of the fullest is at most 4/3 of the best possible (Graham 1969).

    Examples
    --------
    >>> shares({"a": 5, "b": 4, "c": 3, "d": 3}, 2)
    {'a': 0, 'b': 1, 'c': 1, 'd': 0}
    """
    loads = [(0, process) for process in range(n)]
    chosen = {}
    for key, count in sorted(rows.items(), key=lambda each: (-each[1], each[0])):
        load, process = heapq.heappop(loads)
        chosen[key] = process
        heapq.heappush(loads, (load + count, process))
    return chosen

"""Whether the finer arrays of a state file can be what a run has kept: samples, histories, scores, clusters."""

from collections.abc import Mapping

import numpy as np

from swapcal.audits.timeline import N_BLOCKS
from swapcal.state import part_of
from swapcal.typing import Float64Array

Arrays = Mapping[str, Float64Array]


def check_details(sums: Arrays, fresh: Arrays, n_functions: int) -> None:
    """Raise a ValueError unless these arrays of one column of forecasts can go on from `fresh`.

    Parameters
    ----------
    sums, fresh : mapping
        By name within the column.
    n_functions : int
        No array of functions has more columns.
    """
    sample, n_places = part_of(sums, "sample."), len(sums["audit.rounds"])
    sound = [_sample(sample, sample["units"], n_functions, n_places), _flags(sums["binary"])]
    if "timeline.sums" in sums:
        sound.append(_timeline(part_of(sums, "timeline."), n_functions))
    if "scores.sums" in sums:
        sound.append(_scores(part_of(sums, "scores."), fresh["scores.edges"]))
    if "forecasts.sums" in sums:
        cells = sums["forecasts.sums"]
        last = int(np.flatnonzero(sums["audit.rounds"]).max(initial=-1))
        # Places beyond the last that was forecast have no row, and nothing is read once an outcome was not 0 or 1.
        sound.append(cells.shape[1] <= n_functions and (cells.shape[0] > last or not sums["binary"].flat[0]))
    if "clusters.terms" in sums:
        sound.append(_clusters(part_of(sums, "clusters.")))
    if not all(sound):
        raise ValueError("the details of a column contradict each other")


def _whole(array: Float64Array, below: float) -> bool:
    return bool(((array >= 0) & (array < below) & (array == np.floor(array))).all())


def _sample(sample: Arrays, units: Float64Array, n_functions: int, n_places: int) -> bool:
    n, entries = len(sample["key"]), len(sample["value"])
    return (
        units.shape == (1,)
        and _whole(units, 2.0**53)
        and n <= units[0]
        and all(len(sample[name]) == n for name in ("place", "length"))
        and len(sample["function"]) == entries
        and _whole(sample["length"], entries + 1)
        and int(sample["length"].sum()) == entries
        and _whole(sample["place"], n_places)
        # Groups first, then the coordinates of a linear class; the column knows where one ends and the other begins.
        and _whole(sample["function"], 2 * n_functions + 1)
    )


def _flags(binary: Float64Array) -> bool:
    return binary.shape == (2,) and bool(np.isin(binary, (0.0, 1.0)).all())


def _timeline(line: Arrays, n_functions: int) -> bool:
    sums, rows = line["sums"], line["rows"]
    return (
        sums.shape[:2] == (2, N_BLOCKS)
        # It grows by doubling.
        and sums.shape[2] <= 2 * max(n_functions, 1)
        and rows.shape == (2,)
        and _whole(rows, 2.0**53)
        and rows[0] >= 1
        and rows[1] <= N_BLOCKS * rows[0]
        and bool((sums[0] >= 0).all())
    )


def _scores(scores: Arrays, edges: Float64Array) -> bool:
    sums = scores["sums"]
    return (
        np.array_equal(scores["edges"], edges)
        and sums.shape == (2, len(edges) + 1)
        and scores["losses"].shape == (2,)
        and bool((sums >= 0).all() and (sums[1] <= sums[0]).all() and (scores["losses"] >= 0).all())
    )


def _clusters(clusters: Arrays) -> bool:
    shape = clusters["total"].shape
    return all(clusters[name].shape == shape for name in ("squares", "open", "touched")) and clusters["id"].shape == (
        1,
    )

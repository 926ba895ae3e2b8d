"""Bands of a column of numbers: intervals that hold about as many rows each, with edges that can be read aloud."""

from itertools import pairwise

import numpy as np

from swapcal.typing import Float64Array

__all__ = ["band_edges", "band_labels", "band_of"]

_DIGITS = (3, 4, 6, 9, 12, 15)


def band_edges(values: Float64Array, n_bands: int) -> tuple[float, ...]:
    """Inner edges of `n_bands` bands by the quantiles of `values` (finite, at least two distinct).

    Edges are rounded to as few digits as keep every band apart; where many values are equal there are fewer bands.

    Examples
    --------
    >>> band_edges(np.arange(1000.0) / 7.0, 4)
    (35.6, 71.3, 107.0)
    """
    levels = np.arange(1, n_bands) / n_bands
    exact = np.unique(np.quantile(values, levels, method="inverted_cdf"))
    # An edge at the smallest value would leave nothing below it.
    exact = exact[exact > values.min()]
    if not exact.size:
        exact = np.array([values[values > values.min()].min()])
    for digits in _DIGITS:
        rounded = np.array([float(f"{edge:.{digits}g}") for edge in exact])
        counts = np.bincount(np.searchsorted(rounded, values, side="right"), minlength=len(rounded) + 1)
        wanted = np.bincount(np.searchsorted(exact, values, side="right"), minlength=len(exact) + 1)
        # Half of the rows that the exact edges would give each band is near enough.
        if (np.diff(rounded) > 0.0).all() and (2 * counts >= wanted).all():
            return tuple(rounded.tolist())
    return tuple(exact.tolist())


def band_labels(edges: tuple[float, ...]) -> tuple[str, ...]:
    """What to write behind the column's name, band by band.

    Examples
    --------
    >>> band_labels((25.0, 37.5))
    ('< 25', 'in [25, 37.5)', '>= 37.5')
    """
    shown = [_shown(edge) for edge in edges]
    inner = [f"in [{low}, {high})" for low, high in pairwise(shown)]
    return (f"< {shown[0]}", *inner, f">= {shown[-1]}")


def band_of(values: Float64Array, edges: tuple[float, ...]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Number of the band of each value, from 0; -1 for NaN."""
    bands = np.searchsorted(np.array(edges), values, side="right").astype(np.int64)
    return np.where(np.isnan(values), -1, bands)


def _shown(edge: float) -> str:
    return str(int(edge)) if edge.is_integer() and abs(edge) < 1e15 else repr(edge)

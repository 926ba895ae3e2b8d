"""Raw columns as a few conditions each, for the search of subgroups: fifths of numbers, common values, missing ones."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from swapcal.checked import shown
from swapcal.errors import InvalidInput
from swapcal.typing import Float64Array, IntArray

__all__ = ["Column", "banded", "valued"]

N_BANDS = 5
N_VALUES = 12


class Column(NamedTuple):
    """A column as codes: row t satisfies `labels[codes[t]]`, such as "age 30 to 45"; code -1 satisfies nothing.

    The labels of a column exclude each other.
    """

    name: str
    codes: IntArray
    labels: tuple[str, ...]


def banded(name: str, values: Float64Array, n_bands: int = N_BANDS) -> Column:
    """A column of numbers in bands of about equally many rows; NaN is missing.

    Examples
    --------
    >>> column = banded("age", np.array([20.0, 30, 40, 50, 60, np.nan]), 2)
    >>> column.codes, column.labels
    (array([0, 0, 0, 1, 1, 2]), ('age up to 40', 'age above 40', 'age missing'))
    """
    missing = np.isnan(values)
    known = values[~missing]
    edges = np.unique(np.quantile(known, np.arange(1, n_bands) / n_bands)) if len(known) else np.zeros(0)
    edges = edges[edges < known.max()] if len(known) else edges
    codes = np.where(missing, len(edges) + 1, np.searchsorted(edges, values, side="left"))
    texts = [f"{edge:.6g}" for edge in edges.tolist()]
    labels = [f"{name} any"]
    if texts:
        between = [f"{name} above {a} to {b}" for a, b in pairwise(texts)]
        labels = [f"{name} up to {texts[0]}", *between, f"{name} above {texts[-1]}"]
    return Column(name, codes.astype(np.int64), (*labels, f"{name} missing"))


def valued(name: str, codes: IntArray, values: Sequence[str], n_values: int = N_VALUES) -> Column:
    """A column of values by its commonest ones; code -1 is missing, and rarer values satisfy nothing.

    Examples
    --------
    >>> column = valued("city", np.array([0, 1, 1, 2, -1]), ["Bonn", "Rome", "Oslo"], 1)
    >>> column.codes, column.labels
    (array([-1,  0,  0, -1,  1]), ('city=Rome', 'city missing'))
    """
    codes = np.asarray(codes, dtype=np.int64)
    if codes.size and not -1 <= codes.min() <= codes.max() < len(values):
        raise InvalidInput(
            f"codes of {shown(name)} must be from -1 to {len(values) - 1}; got {codes.min()} to {codes.max()}"
        )
    counts = np.bincount(codes[codes >= 0], minlength=len(values))
    common = np.argsort(-counts, kind="stable")[:n_values]
    common = common[counts[common] > 0]
    new = np.full(len(values) + 1, -1, dtype=np.int64)
    new[common] = np.arange(len(common))
    new[-1] = len(common)
    return Column(name, new[codes], (*(f"{name}={values[i]}" for i in common.tolist()), f"{name} missing"))

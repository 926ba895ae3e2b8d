"""Every number of an audit's JSON again, in plain pandas: no sums that merge, no sketches, the whole table at once.

Notation as in the JSON: a row's V is (p - y) / (high - low) for means, 1{y <= p} - q for quantiles, and |1{y <= p} - q|
(p - y) / (high - low) for expectiles; w are weights over the largest of them.
"""

import math
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata


def scored(table: pd.DataFrame, weight: str | None) -> pd.DataFrame:
    """The rows that count, with weights."""
    rows = table.dropna(subset=["y", "p"]).copy()
    rows["w"] = 1.0 if weight is None else rows[weight].fillna(0.0) / table[weight].max()
    return rows


def identification(rows: pd.DataFrame, kind: str, level: float, low: float, high: float) -> pd.Series:
    below = (rows["y"] <= rows["p"]).astype(float)
    distance = (rows["p"] - rows["y"]) / (high - low)
    if kind == "quantile":
        return below - level
    return distance if kind == "mean" else (below - level).abs() * distance


def losses(p: Any, y: pd.Series, kind: str, level: float) -> pd.Series:
    below = (y <= p).astype(float)
    if kind == "quantile":
        return (p - y) * (below - level)
    return (p - y) ** 2 if kind == "mean" else (below - level).abs() * (p - y) ** 2


def weighted(values: pd.Series, w: pd.Series) -> float:
    return float((values * w).sum() / w.sum())


def best_constant(rows: pd.DataFrame, kind: str, level: float) -> float:
    """The smallest weighted loss over all outcomes as constants, and between them where that can be better."""
    if kind == "mean":
        return weighted(rows["y"], rows["w"])
    low, high = float(rows["y"].min()), float(rows["y"].max())
    if kind == "quantile":
        candidates = np.unique(rows["y"])
        found = [weighted(losses(c, rows["y"], kind, level), rows["w"]) for c in candidates]
        return float(candidates[int(np.argmin(found))])
    for _ in range(100):  # the loss is convex
        a, b = low + (high - low) / 3, high - (high - low) / 3
        left, right = (weighted(losses(c, rows["y"], kind, level), rows["w"]) for c in (a, b))
        low, high = (low, b) if left < right else (a, high)
    return (low + high) / 2


def groups_of(rows: pd.DataFrame, columns: list[str]) -> dict[str, pd.Series]:
    """Members of everybody and of each value of each column, under the names that swapcal gives them."""
    found = {"all": pd.Series(True, index=rows.index)}
    for column in columns:
        for value in rows[column].dropna().unique():
            found[f"{column}={value}"] = rows[column] == value
        if rows[column].isna().any():
            found[f"{column}=missing"] = rows[column].isna()
    return found


def swap_error(rows: pd.DataFrame, v: pd.Series, edges: np.ndarray, members: dict[str, pd.Series], r: float) -> float:
    """Sum over bins of n (largest |sum of w V| of a group / n)^r."""
    total = 0.0
    places = pd.Series(np.searchsorted(edges[1:-1], rows["p"], side="right"), index=rows.index)
    for _, here in rows.groupby(places):
        n = here["w"].sum()
        if n > 0:
            sums = [abs((here["w"] * v[here.index])[inside[here.index]].sum()) for inside in members.values()]
            total += n * (max(sums) / n) ** r
    return total


def auc(rows: pd.DataFrame) -> float:
    """Share of pairs of an event and none in the right order, ties half: from ranks (weights all alike)."""
    ranks, ones = rankdata(rows["p"]), rows["y"].to_numpy() == 1.0
    n1, n0 = int(ones.sum()), int((~ones).sum())
    return float((ranks[ones].sum() - n1 * (n1 + 1) / 2) / (n1 * n0))


def log_loss(rows: pd.DataFrame) -> float:
    likely = np.clip(np.where(rows["y"] == 1.0, rows["p"], 1.0 - rows["p"]), 1e-15, 1.0)
    return weighted(pd.Series(-np.log(likely), index=rows.index), rows["w"])


def close(a: float | None, b: float, tolerance: float = 1e-9) -> bool:
    """Whether two numbers are the same up to a share `tolerance`."""
    return a is not None and math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance * 1e-3)

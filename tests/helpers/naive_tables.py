"""Tables of many kinds, and what is to be known of them in plain pandas: V, losses, groups, and intervals of groups."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import rankdata

import naive_verdicts as naive
from naive_verdicts import Span

KINDS = (
    "binary", "few values", "rare", "sorted by outcome", "constant prefix", "weights", "blanks", "real",
    "real, growing range", "real, weights", "real, skewed", "quantile", "quantile of heaps", "expectile",
    "expectile, sorted", "quantile, weights", "expectile, weights", "clusters", "few clusters", "real, clusters",
)  # fmt: skip


class Case(NamedTuple):
    table: pd.DataFrame
    property: str
    kind: str
    level: float
    weight: str | None
    cluster: str | None = None


def case(name: str, seed: int, n: int = 4000) -> Case:
    rng = np.random.default_rng([seed, KINDS.index(name)])
    g, h = rng.choice(["a", "b", "c"], n), rng.integers(0, 5, n)
    table = pd.DataFrame({"g": g, "h": h})
    kind = name.split(",")[0].split(" ")[0]
    if kind in ("real", "quantile", "expectile"):
        center = rng.gamma(3.0, 10.0, n)
        y = center * rng.lognormal(0.0, 1.2 if "skewed" in name else 0.4, n) + 3.0 * (g == "b")
        if "growing" in name:
            y *= np.linspace(0.2, 4.0, n)
        table["y"] = np.round(y) if "heaps" in name else y
        table["p"] = center * {"real": 1.0, "quantile": 1.6, "expectile": 1.2}[kind]
        level = {"real": 0.0, "quantile": 0.9, "expectile": 0.8}[kind]
        stated = "mean" if kind == "real" else f"{kind}:{level}"
    else:
        p = rng.beta(0.5, 40.0, n) if name == "rare" else rng.beta(2.0, 3.0, n)
        table["p"] = np.round(p, 1) if name == "few values" else p
        table["y"] = (rng.random(n) < np.clip(table["p"] + 0.1 * (g == "a") * table["p"], 0, 1)).astype(float)
        stated, level = "mean", 0.0
    if "sorted" in name:
        table = table.sort_values("y").reset_index(drop=True)
    if name == "constant prefix":
        table = pd.concat([table[table["y"] == 0.0].head(500), table]).drop_duplicates().reset_index(drop=True)
    weight = "weight" if "weights" in name else None
    if weight:
        table["weight"] = rng.gamma(1.0, 5.0, len(table))
    if name == "blanks":
        for column in ("y", "p", "g"):
            table.loc[rng.random(len(table)) < 0.1, column] = np.nan
    cluster = "week" if "clusters" in name else None
    if cluster:
        table["week"] = rng.integers(0, 15 if "few" in name else 150, n)
    kind = kind if kind in ("quantile", "expectile") else "mean"
    return Case(table, stated, kind, level, weight, cluster)


# The oracle. A row's V is (p - y) / (high - low) for means, 1{y <= p} - q for quantiles, and |1{y <= p} - q| (p - y) /
# (high - low) for expectiles; w are weights over the largest of them.


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


def audit_edges(p: pd.Series, shown: np.ndarray) -> np.ndarray:
    """The edges of the bins of an audit: between values where there are 200 at most, else also at quantiles."""
    values = np.unique(p)
    if len(values) <= 200:
        return np.unique(np.concatenate([shown[:1], (values[1:] + values[:-1]) / 2, shown[-1:]]))
    return np.unique(np.concatenate([shown, np.quantile(p, np.arange(1, 29) / 29)]))


def judged(rows: pd.DataFrame, v: pd.Series, made: Case, side: dict[str, Any], low: float, high: float) -> pd.DataFrame:
    """The rows with what the rule looks at: V, whether it has two values, ones and their probability, and bins."""
    shown = np.array(side["edges"])
    edges = audit_edges(made.table["p"].dropna(), shown)
    table = rows.assign(v=v, place=naive.places(rows["p"], edges), shown=naive.places(rows["p"], shown))
    events = (low, high) == (0.0, 1.0) and bool(rows["y"].isin([0.0, 1.0]).all()) and made.kind == "mean"
    table["binary"] = made.weight is None and (events or made.kind == "quantile")
    quantile = made.kind == "quantile"
    table["q"] = 1.0 - made.level if quantile else rows["p"]
    table["ones"] = (rows["y"] > rows["p"]).astype(float) if quantile else rows["y"]
    # Forecasts of one quantile are all one stratum, whatever they are.
    table["stratum"] = 0 if quantile else naive.strata(rows["p"], edges)
    return table


def span_of(table: pd.DataFrame, delta: float, usual: float, cluster: str | None, *, stratified: bool) -> Span:
    """The interval of the bias of some rows."""
    if cluster is not None:
        together = naive.clustered(table["v"], table["w"], table[cluster], delta)
        if not table["binary"].iloc[0]:
            return together
        # Rows that hang together never say more than they would by themselves.
        alone = span_of(table, delta, usual, None, stratified=stratified)
        return Span(min(together.low, alone.low), max(together.high, alone.high))
    if not table["binary"].iloc[0]:
        return naive.terms(table["w"] * table["v"], float(table["w"].sum()), usual, delta)
    if stratified and table["stratum"].nunique() > 1:
        return naive.events_in_strata(table["q"], table["ones"], table["stratum"].to_numpy(), delta)
    return naive.events(len(table), float(table["ones"].sum()), float(table["q"].sum()), delta)


def near(found: Sequence[float | None], span: Span, within: float = 0.01) -> bool:
    """Whether an interval is the same, up to a hundredth of its width: what the tail's formula is good for."""
    width = span.high - span.low
    return all(a is not None and abs(a - b) <= within * width for a, b in zip(found, span, strict=True))

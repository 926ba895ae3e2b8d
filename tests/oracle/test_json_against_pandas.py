"""Every number of the JSON of audits, runs and comparisons again, in plain pandas: no sums that merge, all at once."""

import io
import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata
from sklearn.isotonic import IsotonicRegression

import naive_verdicts as naive
from effort import ALL
from naive_verdicts import Span
from swapcal.tasks.audit import audit
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.result import to_json

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


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("seed", [0, 1] if ALL else [0])
def test_every_number(name: str, seed: int, tmp_path: Path) -> None:
    made = case(name, seed)
    path = tmp_path / "table.csv"
    made.table.to_csv(path, index=False)
    table = pd.read_csv(path)
    asked = TaskConfig("y", "p", ["g", "h"], property=made.property, weight=made.weight, cluster=made.cluster)
    check(json.loads(to_json(audit(path, asked)))["result"], table, made)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ["sorted by outcome", "real, growing range", "quantile"])
def test_a_pipe_says_what_the_file_says(name: str) -> None:
    made = case(name, 3)
    question = TaskConfig("y", "p", ["g", "h"], property=made.property)
    text = made.table.to_csv(index=False).encode()
    piped = json.loads(to_json(audit(_Pipe(text), question)))["result"]
    check(piped, pd.read_csv(io.BytesIO(text)), made)


class _Pipe(io.BytesIO):
    """Bytes that can be read once."""

    def seekable(self) -> bool:
        return False


def check(found: dict[str, Any], table: pd.DataFrame, made: Case) -> None:
    rows = scored(table, made.weight)
    kind, level = made.kind, made.level
    low, high = found["range"]["low"], found["range"]["high"]
    binary = bool(rows["y"].isin([0.0, 1.0]).all())
    ends = (0.0, 1.0)
    if not binary:
        ends = min(table["y"].min(), table["p"].min()), max(table["y"].max(), table["p"].max())
    assert (low, high) == ends
    assert found["counts"]["outcomes_outside"] == 0
    assert found["counts"]["forecasts_outside"] == 0
    assert found["counts"]["scored"] == len(rows)
    assert found["counts"]["without_outcome"] == int(table["y"].isna().sum())
    assert found["counts"]["rows"] == len(table)
    assert found["counts"]["without_forecast"] == int((table["p"].isna() & table["y"].notna()).sum())
    side, v, w = found["sections"][0]["before"], identification(rows, kind, level, low, high), rows["w"]
    loss = losses(rows["p"], rows["y"], kind, level)
    assert close(side["weight"], float(w.sum()))
    assert close(side["loss"], weighted(loss, w))
    assert close(side["typical"], float(np.sqrt(weighted(v**2, w))))
    check_constant(side, rows, kind, level)
    check_groups(found, side, rows, v, kind, level)
    check_totals(found, side, rows, v, kind)
    check_verdict(found["verdict"]["decision"]["before"], side, judged(rows, v, made, side, low, high), made)
    if binary:
        check_scores(side["scores"], rows)
    else:
        assert side["scores"] is None


def check_constant(side: dict[str, Any], rows: pd.DataFrame, kind: str, level: float) -> None:
    best = best_constant(rows, kind, level)
    least = weighted(losses(best, rows["y"], kind, level), rows["w"])
    assert close(side["constant_loss"], least, 1e-6)
    if kind != "quantile":  # of which there are several, where a share of the rows is a whole number
        assert close(side["constant"], best, 1e-6)


def check_groups(
    found: dict[str, Any], side: dict[str, Any], rows: pd.DataFrame, v: pd.Series, kind: str, level: float
) -> None:
    members = groups_of(rows, ["g", "h"])
    groups = side["groups"]
    unit = (
        100.0
        if kind == "quantile" or (found["range"]["low"], found["range"]["high"]) == (0.0, 1.0)
        else found["range"]["high"] - found["range"]["low"]
    )
    assert set(groups["name"]) == set(members)
    by_name = {row["group"]: row for row in found["group_table"]}
    assert found["group_table"][0]["group"] == "all"
    for j, name in enumerate(groups["name"]):
        inside = members[name]
        w = rows["w"][inside]
        mean = weighted(v[inside], w)
        assert groups["rows"][j] == int(inside.sum())
        assert close(groups["weight"][j], float(w.sum()))
        assert abs(groups["mean"][j] - mean) < 1e-10
        assert groups["low"][j] <= groups["mean"][j] <= groups["high"][j]
        shown = by_name[name]
        assert shown["rows"] == int(inside.sum())
        assert close(shown["before"]["bias"], unit * mean, 1e-7) or abs(mean) < 1e-9
        if kind == "quantile":
            below = (rows["y"] <= rows["p"])[inside].astype(float)
            assert close(shown["before"]["coverage"], weighted(below, w))
        assert close(shown["before"]["predicted"], weighted(rows["p"][inside], w), 1e-7)
        assert close(shown["before"]["observed"], weighted(rows["y"][inside], w), 1e-7)
        assert shown["before"]["off"] == (groups["low"][j] > 0 or groups["high"][j] < 0)
        for end in ("low", "high"):
            assert close(shown["before"][end], unit * groups[end][j], 1e-7) or abs(groups[end][j]) < 1e-9


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
        return naive.clustered(table["v"], table["w"], table[cluster], delta)
    if not table["binary"].iloc[0]:
        return naive.terms(table["w"] * table["v"], float(table["w"].sum()), usual, delta)
    if stratified and table["stratum"].nunique() > 1:
        return naive.events_in_strata(table["q"], table["ones"], table["stratum"].to_numpy(), delta)
    return naive.events(len(table), float(table["ones"].sum()), float(table["q"].sum()), delta)


def near(found: list[float | None], span: Span, within: float = 0.01) -> bool:
    """Whether an interval is the same, up to a hundredth of its width: what the tail's formula is good for."""
    width = span.high - span.low
    return all(a is not None and abs(a - b) <= within * width for a, b in zip(found, span, strict=True))


def check_verdict(
    found: dict[str, Any], side: dict[str, Any], table: pd.DataFrame, made: Case, *, adaptive: bool = False
) -> None:
    """Intervals of groups, biased ranges and cells, the global test, and what the verdict is made from."""
    usual, members, n = float(((table["w"] * table["v"]) ** 2).mean()), groups_of(table, ["g", "h"]), made.cluster
    spans, groups = {}, side["groups"]
    for j, name in enumerate(groups["name"]):
        share = naive.OVERALL if name == "all" else naive.GROUPS / (len(members) - 1)
        inside = table[members[name]]
        spans[name] = span_of(inside, naive.ALPHA * share, usual, n, stratified=True)
        mean = weighted(inside["v"], inside["w"])
        spans[name] = Span(min(spans[name].low, mean), max(spans[name].high, mean))
        assert near([groups["low"][j], groups["high"][j]], spans[name]), (name, groups["low"][j], spans[name])
    clear = all(span.clear for span in spans.values())
    # Ranges of forecasts over all rows; and cells, of which there are none where rows hang together.
    ranges = check_biased(found, side, table, members, made, usual, adaptive=adaptive)
    together = check_global(side, table, made)
    expected = naive.findings(spans, side["typical"], ranges=ranges, together=together)
    assert close(found["detectable"], expected["detectable"], 0.01)
    assert close(found["detectable_in_groups"], expected["detectable_in_groups"], 0.01)
    if clear:
        assert found["overall"] == expected["overall"]
        assert set(found["groups"]) == expected["groups"]
    assert (found["n_groups"], found["ranges"]) == (expected["n_groups"], ranges)
    assert found["few_clusters"] == (made.cluster is not None and table[made.cluster].nunique() < naive.FEWEST_CLUSTERS)
    for half, limit in (("detectable", 0.1), ("detectable_in_groups", 0.2)):
        assert abs(found[half] / (limit * side["typical"]) - 1.0) > 0.01  # else too near to be told
    assert found["few_rows"] == expected["few_rows"]


def check_biased(
    found: dict[str, Any],
    side: dict[str, Any],
    table: pd.DataFrame,
    members: dict[str, pd.Series],
    made: Case,
    usual: float,
    *,
    adaptive: bool,
) -> int:
    """How many ranges of forecasts and cells are biased; each interval again."""
    bins = [table[table["shown"] == k] for k in sorted(table["shown"].unique())]
    cells = [table[inside & (table["place"] == k)] for k in table["place"].unique() for inside in members.values()]
    cells = [cell for cell in cells if len(cell)]
    assert side["n_cells"] == len(cells)
    counted: dict[str, list[Span]] = {}
    for name, share, some in (("ranges", naive.RANGES, bins), ("cells", naive.CELLS, cells)):
        n_possible = len(some)
        if adaptive:
            n_possible = len(side["edges"]) - 1 if name == "ranges" else n_possible
        delta, counted[name] = naive.ALPHA * share / n_possible, []
        for part in some:
            if name == "cells" and made.cluster is not None:
                continue
            if not table["binary"].iloc[0] and made.cluster is None and len(part) < naive.FEWEST_ROWS:
                continue
            counted[name].append(span_of(part, delta, usual, made.cluster, stratified=False))
    biased = {name: sum(span.biased for span in spans) for name, spans in counted.items()}
    unclear = {name: sum(not span.clear for span in spans) for name, spans in counted.items()}
    assert abs(len(side["ranges"]) - biased["ranges"]) <= unclear["ranges"]
    assert abs(side["n_biased"] - biased["cells"]) <= unclear["cells"]
    assert found["ranges"] == len(side["ranges"]) + side["n_biased"]
    shown = [cell for cell in side["worst"] if cell["low"] > 0 or cell["high"] < 0]
    assert len(shown) == min(side["n_biased"], len(shown))
    return int(found["ranges"])


def check_global(side: dict[str, Any], table: pd.DataFrame, made: Case) -> bool:
    """Whether the global test finds bias."""
    if made.cluster is None:
        p = naive.global_test(table, ["g", "h"], binary=bool(table["binary"].iloc[0]))
        between = 0.9 * naive.ALPHA * naive.TOGETHER < p < 1.1 * naive.ALPHA * naive.TOGETHER
    else:
        few = table[made.cluster].nunique() < naive.FEWEST_CLUSTERS
        p = 1.0 if few else naive.signs_test(table, ["g", "h"], made.cluster)
        between = 0.001 < p < 0.02  # as it is drawn
    assert between or side["together"] == (p <= naive.ALPHA * naive.TOGETHER), p
    return bool(side["together"])


def check_totals(found: dict[str, Any], side: dict[str, Any], rows: pd.DataFrame, v: pd.Series, kind: str) -> None:
    members = groups_of(rows, ["g", "h"])
    edges = np.array(side["edges"])
    places = pd.Series(np.searchsorted(edges[1:-1], rows["p"], side="right"), index=rows.index)
    weights = np.array([rows["w"][places == k].sum() for k in range(len(edges) - 1)])
    np.testing.assert_allclose(side["histogram"], weights, rtol=1e-9, atol=1e-9)
    for j, name in enumerate(found["sections"][0]["groups"]):
        for k in range(0, len(edges) - 1, 3):
            inside = members[name] & (places == k)
            assert side["counts"][k][j] == int(inside.sum())
            if inside.any():
                assert abs(side["bias"][k][j] - weighted(v[inside], rows["w"][inside])) < 1e-9
    values = np.unique(rows["p"])
    if len(values) <= 200:
        between = np.concatenate([[found["range"]["low"]], (values[1:] + values[:-1]) / 2, [found["range"]["high"]]])
        assert close(side["swap_error"], swap_error(rows, v, between, members, 2.0), 1e-7)
        everybody = {"all": members["all"]}
        assert close(side["overall_error"], swap_error(rows, v, between, everybody, 2.0), 1e-7)
    curve = side["curves"]["all"]
    kept = [k for k in range(len(edges) - 1) if weights[k] > 0]
    for k, at in enumerate(kept):
        here = rows[places == at]
        assert close(curve["forecast"][k], weighted(here["p"], here["w"]), 1e-7)
        if kind == "mean":
            assert abs(curve["outcome"][k] - weighted(here["y"], here["w"])) < 1e-7 * (
                found["range"]["high"] - found["range"]["low"]
            )


def check_scores(scores: dict[str, Any], rows: pd.DataFrame) -> None:
    assert close(scores["brier"], weighted((rows["p"] - rows["y"]) ** 2, rows["w"]))
    assert close(scores["log_loss"], log_loss(rows))
    rate = weighted(rows["y"], rows["w"])
    assert close(scores["base_rate"], rate)
    assert close(scores["uncertainty"], rate * (1 - rate))
    fitted = IsotonicRegression().fit(rows["p"], rows["y"], rows["w"]).predict(rows["p"])
    recalibrated = weighted((fitted - rows["y"]) ** 2, rows["w"])
    assert abs(scores["discrimination"] - (rate * (1 - rate) - recalibrated)) < 5e-4 * rate
    assert abs(scores["miscalibration"] - (scores["brier"] - recalibrated)) < 5e-4 * rate
    if (rows["w"] == 1.0).all():
        assert abs(scores["auc"] - auc(rows)) < 5e-4

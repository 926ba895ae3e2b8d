"""Every number of the JSON of audits, runs and comparisons again, in plain pandas: no sums that merge, all at once."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.isotonic import IsotonicRegression

import naive_verdicts as naive
from effort import ALL
from naive_tables import (
    KINDS,
    Case,
    auc,
    best_constant,
    case,
    close,
    groups_of,
    identification,
    judged,
    log_loss,
    losses,
    near,
    scored,
    span_of,
    swap_error,
    weighted,
)
from naive_verdicts import Span
from swapcal.tasks.audit import audit
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.result import to_json


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

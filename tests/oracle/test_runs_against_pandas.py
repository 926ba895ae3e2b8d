"""Every number that a run, or an audit of two models, prints: from its file and its output, in pandas and scikit-learn.

Intervals of groups are those of `naive_verdicts`; the refit is fitted here, from the rows that were known.
"""

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student
from sklearn.linear_model import LogisticRegression, QuantileRegressor, Ridge

import naive_verdicts as naive
import swapcal as sc
from effort import ALL
from naive_tables import (
    Case,
    close,
    groups_of,
    judged,
    log_loss,
    losses,
    near,
    span_of,
    weighted,
)
from naive_tables import case as drawn
from swapcal.tasks.by_key import run_by_key
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.result import Result, to_json
from swapcal.tasks.runner import run
from swapcal.text.summary import summary

SCALAR = (
    "binary", "rare", "real, skewed", "quantile", "weights", "clusters", "real", "late", "expectile", "real, weights",
)  # fmt: skip
NUMBER = re.compile(r"(?<![\w.])[+-]?\d[\d,]*(?:\.\d+)?")


def printed(text: str, *expected: float) -> None:
    """The numbers of a text are these, each to the last digit that is shown."""
    found = [one.group().replace(",", "") for one in NUMBER.finditer(text)]
    assert len(found) == len(expected), (text, expected)
    for shown, value in zip(found, expected, strict=True):
        places = len(shown.partition(".")[2])
        assert abs(float(shown) - value) <= 0.5 * 10.0**-places + 1e-9 * abs(value), (text, shown, value)


def shown_in(text: str) -> list[float]:
    """The numbers of a text."""
    return [float(one.replace(",", "")) for one in NUMBER.findall(text)]


class Losses(NamedTuple):
    """Mean losses of a model and of another on the same rows, and the interval of their difference."""

    before: float
    after: float
    low: float
    high: float

    @property
    def relative(self) -> tuple[float, ...]:
        """The difference and its ends in percent."""
        return tuple(100.0 * each / self.before for each in (self.after - self.before, self.low, self.high))


def paired(before: pd.Series, after: pd.Series, w: pd.Series) -> Losses:
    """Student's interval over blocks of neighbouring rows, of the length that the docstring of PairedLosses says."""
    length = 1
    while math.ceil(len(before) / length) > 1024:
        length *= 2
    length *= max(1, math.ceil(len(before) ** (1 / 3) / length))
    frame = pd.DataFrame({"w": w, "a": w * before, "b": w * after}).reset_index(drop=True)
    blocks = frame.groupby(frame.index // length).sum()
    size, m = float(w.sum()), len(blocks)
    difference = float((blocks["b"] - blocks["a"]).sum()) / size
    residuals = blocks["b"] - blocks["a"] - difference * blocks["w"]
    half = float(student.ppf(0.975, m - 1)) * math.sqrt(float((residuals**2).sum()) * m / (m - 1)) / size
    return Losses(weighted(before, w), weighted(after, w), difference - half, difference + half)


def file_of(name: str, seed: int, folder: Path) -> tuple[Case, pd.DataFrame, Path]:
    """A file, as pandas reads it, and what is asked of it."""
    if name == "late":
        made = drawn("binary", seed + 50)
        rng, n = np.random.default_rng(seed), len(made.table)
        known = np.arange(n) + rng.exponential(400.0, n)
        made = made._replace(table=made.table.assign(made=np.arange(n), known=known))
    else:
        made = drawn(name, seed)
    made.table.to_csv(folder / "table.csv", index=False)
    return made, pd.read_csv(folder / "table.csv"), folder / "table.csv"


def refit(table: pd.DataFrame, made: Case, low: float, high: float) -> pd.Series:
    """Fitted again whenever the known rows have grown by a tenth and by 500, on the last 20,000 of them."""
    names = [*groups_of(table, ["g", "h"]).items()]
    members = np.column_stack([inside.to_numpy(dtype=float) for _, inside in names])
    n = len(table)
    p, y = ((table[column].to_numpy() - low) / (high - low) for column in ("p", "y"))
    events = made.kind == "mean" and set(np.unique(table["y"])) == {0.0, 1.0}
    at = np.clip(p, 1e-6, 1 - 1e-6)
    x = np.column_stack([np.log(at / (1 - at)) if events else p, members])
    w = np.ones(n) if made.weight is None else (table[made.weight] / table[made.weight].max()).to_numpy()
    moment = np.arange(n) if "known" not in table else table["known"].to_numpy()
    # Its first row: the first one at or behind the moment; the next row where outcomes are known at once.
    first = np.arange(1, n + 1) if "known" not in table else np.searchsorted(table["made"].to_numpy(), moment)
    order = np.lexsort((np.arange(n), moment, first))
    found, used, model = p.copy(), 0, None
    for row in range(n):
        here = order[: int(np.searchsorted(first[order], row, side="right"))]
        here = here[w[here] > 0]
        if len(here) >= used + max(500, int(0.1 * used)):
            used, here = len(here), here[-20_000:]
            if made.kind == "quantile":
                model = QuantileRegressor(quantile=made.level, alpha=0.0).fit(x[here], y[here], sample_weight=w[here])
            elif events:
                model = LogisticRegression(tol=1e-10, max_iter=10_000).fit(x[here], y[here], sample_weight=w[here])
            else:
                model = Ridge(alpha=1.0).fit(x[here], y[here], sample_weight=w[here])
        if model is not None:
            found[row] = model.predict_proba(x[[row]])[0, 1] if events else model.predict(x[[row]])[0]
    return pd.Series(low + (high - low) * found, index=table.index)


def places_of(biases: list[float], *, percent: bool, rate: float | None) -> int:
    """Decimals of a column: of points, or of the outcome's unit by the largest bias or end."""
    if percent:
        return 2 if rate is not None and rate < 0.05 else 1
    most = max(abs(each) for each in biases)
    return 0 if most >= 1000 else 1 if most >= 100 else 2 if most >= 1 else 4


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", SCALAR)
@pytest.mark.parametrize("seed", [0, 1] if ALL else [0])
def test_one_number_a_row(name: str, seed: int, tmp_path: Path) -> None:
    made, table, path = file_of(name, seed, tmp_path)
    asked = TaskConfig("y", "p", "g,h", property=made.property, weight=made.weight, cluster=made.cluster, seed=1)
    if name == "late":
        asked = replace(asked, time="made", known="known", cluster="")
    result = run(path, asked, out=tmp_path / "out.csv")
    out = pd.read_csv(tmp_path / "out.csv")
    assert list(out["row"]) == list(range(1, len(table) + 1))
    np.testing.assert_array_equal(out["before"], table["p"])
    rows = table.assign(after=out["forecast"], w=1.0 if made.weight is None else table[made.weight])
    rows["w"] /= rows["w"].max() if made.weight is None else table[made.weight].head(asked.prefix).max()
    rows["w"] = rows["w"].clip(upper=1.0)
    low, high = result.range.low, result.range.high
    before, after = (losses(rows[side], rows["y"], made.kind, made.level) for side in ("p", "after"))
    change = paired(before, after, rows["w"])
    lines = summary(result, every=True)
    text = " ".join(" ".join(lines).split())
    told = json.loads(to_json(result))["result"]
    (pair,) = told["paired"].values()
    for each in ("before", "after", "low", "high"):
        assert close(pair[each], getattr(change, each), 1e-7), each
    check_rows(told, lines, rows, made, result)
    check_losses(text, change, rows, made, low, high)
    check_kind(told, change, result)
    if set(rows["y"]) == {0.0, 1.0} and made.kind == "mean":
        both = [log_loss(rows.assign(p=rows[side])) for side in ("p", "after")]
        printed(text.split("Log loss ")[1].split(", AUC")[0], *both)
        assert close(told["sections"][0]["before"]["scores"]["log_loss"], both[0])


def check_losses(text: str, change: Losses, rows: pd.DataFrame, made: Case, low: float, high: float) -> None:
    """The line of losses, and the refit's."""
    line = text[: text.index(" group rows")]
    numbers = re.search(r"(?:score|error|loss) ([\d.,]+ -> .*?)\.(?:\s|$)", line)
    assert numbers is not None, line
    difference, least, most = change.relative
    printed(
        numbers[1].replace("95 % CI", "").replace(" to ", " "), change.before, change.after, difference, least, most
    )
    if made.kind == "expectile":
        assert "refit" not in line
        return
    other = losses(refit(rows, made, low, high), rows["y"], made.kind, made.level)
    loss = weighted(other, rows["w"])
    shown = re.search(r"refit ([\d.,]+) \(([-+\d.]+) %\)", line)
    assert shown is not None, line
    if made.kind == "quantile":  # whose loss is smoothed, and which is judged on rows that it was not fitted to
        assert float(shown[1]) == pytest.approx(loss, rel=1e-2)
        return
    printed(f"{shown[1]} {shown[2]}", loss, 100 * (loss / change.before - 1))


def check_rows(told: dict[str, Any], lines: list[str], rows: pd.DataFrame, made: Case, result: Result) -> None:
    """Rows, means, shares covered, biases and intervals of all groups, as numbers and as they are printed."""
    low, high = result.range.low, result.range.high
    percent = made.kind == "quantile" or (low, high) == (0.0, 1.0)
    unit = 100.0 if percent else high - low
    shown_edges = np.array(told["sections"][0]["after"]["edges"])
    members = groups_of(rows, ["g", "h"])
    table = {row["group"]: row for row in told["group_table"]}
    assert set(table) == set(members)
    spans: dict[str, naive.Span] = {}
    for side, column in (("before", "p"), ("after", "after")):
        own = rows.assign(p=rows[column])
        p = own["p"].clip(low, high)
        v = _identification(own, made, low, high)
        edges = {"edges": shown_edges}
        seen = judged(own.assign(p=p), v, made._replace(table=rows), edges, low, high)
        usual = float(((seen["w"] * seen["v"]) ** 2).mean())
        for name, inside in members.items():
            row, part, w = table[name], own[inside], own["w"][inside]
            assert row["rows"] == int(inside.sum())
            assert close(row[side]["predicted"], weighted(part["p"], w), 1e-7)
            assert close(row[side]["observed"], weighted(part["y"], w), 1e-7)
            assert abs(row[side]["bias"] - unit * weighted(v[inside], w)) < 1e-7 * unit
            share = naive.OVERALL if name == "all" else naive.GROUPS / (len(members) - 1)
            span = span_of(seen[inside], naive.ALPHA * share, usual, made.cluster, stratified=True)
            ends = [row[side][end] / unit for end in ("low", "high")]
            assert near(ends, span, 0.02), (name, side, ends, span)
            assert row[side]["off"] == (ends[0] > 0 or ends[1] < 0)
            spans[name] = span
            if made.kind == "quantile":
                assert close(row[side]["coverage"], weighted((part["y"] <= part["p"]).astype(float), w))
    rate = weighted(rows["y"], rows["w"]) if set(rows["y"]) == {0.0, 1.0} else None
    every = [
        row[side][each] for row in table.values() for side in ("before", "after") for each in ("bias", "low", "high")
    ]
    places = places_of(every, percent=percent, rate=rate)
    scale = 100.0 if percent else 1.0
    for name, row in table.items():
        label = "all rows" if name == "all" else name
        line = next(each for each in lines if each[2:].startswith(f"{label} "))
        if made.kind == "quantile":
            values = [100.0 * row[side]["coverage"] for side in ("before", "after")]
        else:
            values = [scale * row[side]["predicted"] for side in ("before", "after")] + [
                scale * row["before"]["observed"]
            ]
        now = row["after"]
        text = line[2 + len(label) :].replace("%", "")
        printed(text, row["rows"], *values, now["bias"], now["low"], now["high"])
        assert {len(each.partition(".")[2]) for each in text.replace("to", "").split()[1:]} == {places}
        assert line.startswith("*") == now["off"]


def _identification(own: pd.DataFrame, made: Case, low: float, high: float) -> pd.Series:
    """V of the rows, biases taken at the ends of the range."""
    below = (own["y"] <= own["p"]).astype(float)
    distance = (own["p"] - own["y"]).clip(-(high - low), high - low) / (high - low)
    if made.kind == "quantile":
        return below - made.level
    return distance if made.kind == "mean" else (below - made.level).abs() * distance


def check_kind(told: dict[str, Any], change: Losses, result: Result) -> None:
    """The verdict by the rule of docs, and the counts in its line."""
    rows = told["group_table"][1:]
    off = [sum(row[side]["off"] for row in rows) for side in ("before", "after")]
    found = told["verdict"]["decision"]
    was, now = found["before"], found["after"]
    assert [len(was["groups"]), len(now["groups"])] == off
    biased = [
        bool(count or told["group_table"][0][side]["off"] or each["ranges"] or each["together"])
        for count, side, each in zip(off, ("before", "after"), (was, now), strict=True)
    ]
    left = [
        (row["rows"] * abs(row["before"]["bias"]), row["rows"] * abs(row["after"]["bias"]))
        for row in told["group_table"]
        if row["before"]["off"]
    ]
    part = sum(b for _, b in left) / sum(a for a, _ in left) if left else None
    dear = found["log_loss"] is not None and found["log_loss"] > 0.005
    if change.high < 0:
        expected = "IMPROVED"
    elif not biased[0]:
        expected = "TOO FEW ROWS" if was["few_rows"] else "NO CHANGE NEEDED"
    else:
        cheap = not (change.low > 0 or dear)
        expected = "IMPROVED" if not biased[1] or (cheap and (part is None or part <= 0.5)) else "NOT CORRECTED"
    assert result.verdict.kind == expected
    assert (part is None) == (found["left"] is None)
    assert part is None or part == pytest.approx(found["left"], rel=1e-6)
    if "Biased groups" in result.verdict.headline:
        printed(result.verdict.headline, off[0], len(rows), off[1])


# --------
# Intervals, classes, two models, keys.


def people(seed: int, n: int = 3000) -> pd.DataFrame:
    """Two models of an event, ends of intervals and probabilities of classes; group b is another matter."""
    rng = np.random.default_rng(seed)
    g, old = rng.choice(["a", "b", "c"], n), rng.beta(2, 3, n)
    table = pd.DataFrame({"g": g, "old": old, "new": np.where(g == "b", np.clip(1.4 * old, 0, 1), old)})
    table["late"] = (rng.random(n) < table["new"]).astype(int)
    table["size"] = rng.normal(10.0, 1.0 + (g == "b"), n)
    table["least"], table["most"] = 8.5, 11.5
    said = rng.dirichlet([3.0, 2.0, 1.0], n)
    true = said * np.where(g == "b", 2.0, 1.0)[:, None] ** np.array([1.0, 0.0, 0.0])
    drawn_class = (rng.random(n)[:, None] > np.cumsum(true / true.sum(axis=1, keepdims=True), axis=1)).sum(axis=1)
    table["kind"] = np.array(["red", "green", "blue"])[np.minimum(drawn_class, 2)]
    for k, name in enumerate(("red", "green", "blue")):
        table[f"is {name}"] = said[:, k]
    return table


def parts_of(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """All rows and each group's."""
    return {"all rows": rows, **{f"g={name}": part for name, part in rows.groupby("g")}}


def row_of(lines: list[str], name: str) -> tuple[str, bool]:
    """The numbers of a line of a table, and whether it has a star."""
    line = next(each for each in lines if each[2:].startswith(f"{name}  "))
    return line[2 + len(name) :].replace("%", "").replace(" of ", " "), line.startswith("*")


def share_of(ones: pd.Series, forecasts: float, delta: float) -> naive.Span:
    """The interval of a mean forecast minus a share, in points."""
    span = naive.events(len(ones), float(ones.sum()), forecasts * len(ones), delta)
    return naive.Span(100 * span.low, 100 * span.high)


def test_intervals(tmp_path: Path) -> None:
    table = people(0)
    result = run(table, TaskConfig("size", ["least", "most"], "g", interval=0.9, seed=1), out=tmp_path / "out.csv")
    rows, lines = table.join(pd.read_csv(tmp_path / "out.csv")), summary(result, every=True)
    covered, score = {}, {}
    for side, (low, high) in {"before": ("least", "most"), "after": ("lower", "upper")}.items():
        y, low, high = rows["size"], rows[low], rows[high]
        covered[side] = ((low <= y) & (y <= high)).astype(float)
        score[side] = high - low + 20 * (low - y).clip(lower=0) + 20 * (y - high).clip(lower=0)
    change = paired(score["before"], score["after"], pd.Series(1.0, rows.index))
    off = dict.fromkeys(covered, 0)
    for name, part in parts_of(rows).items():
        share = naive.ALPHA * (naive.OVERALL if name == "all rows" else naive.GROUPS / 3)
        here = {side: each[part.index] for side, each in covered.items()}
        # V = 1{covered} - 0.9, with the ends the other way round.
        spans = {side: share_of(1 - each, 0.1, share) for side, each in here.items()}
        text, star = row_of(lines, name)
        shown = shown_in(text)
        means = [100 * here["before"].mean(), 100 * here["after"].mean(), (part["upper"] - part["lower"]).mean()]
        printed(text, len(part), *means, *shown[-2:])
        assert near(shown[-2:], spans["after"], 0.02), (name, shown, spans)
        assert star == spans["after"].biased
        for side in off if name != "all rows" else ():
            off[side] += spans[side].biased
    text = " ".join(" ".join(lines).split())
    printed(text.split("biased: ")[1].split(". ")[0], off["before"], 3, off["after"])
    line = text.split("Interval score ")[1].split(")")[0].replace("95 % CI", "").replace(" to ", " ")
    printed(line, change.before, change.after, *change.relative)


def test_classes(tmp_path: Path) -> None:
    table, names = people(1), ["red", "green", "blue"]
    asked = TaskConfig("kind", [f"is {name}" for name in names], "g", classes=True, seed=1)
    result = run(table, asked, out=tmp_path / "out.csv")
    rows, lines = table.join(pd.read_csv(tmp_path / "out.csv")), summary(result, every=True)
    sides = {"before": rows[[f"is {name}" for name in names]], "after": rows[[f"p_{name}" for name in names]]}
    came = pd.DataFrame({name: (rows["kind"] == name).astype(float) for name in names})
    brier = {side: pd.Series(((p.to_numpy() - came.to_numpy()) ** 2).sum(axis=1)) for side, p in sides.items()}
    change = paired(brier["before"], brier["after"], pd.Series(1.0, rows.index))
    off = {side: dict.fromkeys((*names, "likeliest class"), 0) for side in sides}
    for k, name in enumerate(("likeliest class", *names)):
        p, ones = {}, {}
        for side, each in sides.items():
            # How sure swapcal is of the likeliest class is a number of its own.
            top = rows["top"] if side == "after" else each.idxmax(axis=1).str.removeprefix("is ")
            sure = rows["confidence"] if side == "after" else each.max(axis=1)
            p[side] = sure if k == 0 else each.iloc[:, k - 1]
            ones[side] = (top == rows["kind"]).astype(float) if k == 0 else came[name]
        text, star = row_of(lines, name)
        shown = shown_in(text)
        printed(text, *(100 * each.mean() for each in p.values()), 100 * ones["after"].mean(), *shown[-4:])
        for side in sides:
            for each, part in parts_of(rows).items():
                share = naive.ALPHA * (naive.OVERALL if each == "all rows" else naive.GROUPS / 3)
                edges = np.linspace(0.0, 1.0, 49)
                own, hits = p[side][part.index], ones[side][part.index]
                span = naive.events_in_strata(own, hits, naive.strata(own, edges), share)
                if each != "all rows":
                    off[side][name] += span.biased
                elif side == "after":
                    found = naive.Span(100 * span.low, 100 * span.high)
                    assert near(shown[3:5], found, 0.05), (name, shown, found)
                    overall = found.biased
        assert shown[-2:] == [off["after"][name], 3]
        assert star == (overall or off["after"][name] > 0)
    text = " ".join(" ".join(lines).split())
    counts = (
        [off[side]["likeliest class"] for side in sides],
        [sum(off[side][each] for each in names) for side in sides],
    )
    told = [counts[0][0], 3, counts[0][1], counts[1][0], 9, counts[1][1]]
    printed(text.split("for the likeliest class ")[1].split(". ")[0], *told)
    line = text.split("all classes ")[2].split(")")[0].replace("95 % CI", "").replace(" to ", " ")
    printed(line, change.before, change.after, *change.relative)


def test_two_models() -> None:
    table = people(2)
    lines = summary(sc.audit(table, "late", ["old", "new"], "g"), every=True)
    brier = {name: (table[name] - table["late"]) ** 2 for name in ("old", "new")}
    change = paired(brier["old"], brier["new"], pd.Series(1.0, table.index))
    off = {}
    for name in brier:
        own, edges = table.assign(p=table[name], y=table["late"].astype(float), w=1.0), np.linspace(0.0, 1.0, 49)
        found = []
        for part in parts_of(own).values():
            share = naive.ALPHA * (naive.OVERALL if len(part) == len(own) else naive.GROUPS / 3)
            found.append(naive.events_in_strata(part["p"], part["y"], naive.strata(part["p"], edges), share))
        assert all(span.clear for span in found)
        off[name] = sum(span.biased for span in found[1:])
        text, star = row_of(lines, name)
        ranks = own["p"].rank()
        n1 = own["y"].sum()
        auc = (ranks[own["y"] == 1].sum() - n1 * (n1 + 1) / 2) / (n1 * (len(own) - n1))
        others = [] if name == "old" else [change.relative[0]]
        printed(text, off[name], 3, 100 * (own["p"] - own["y"]).mean(), brier[name].mean(), *others, auc)
        assert star == found[0].biased
    assert change.high < 0
    headline = " ".join(lines).split("Brier score ")[1].split(". ")[0]
    printed(headline, change.relative[0], off["new"], off["old"])


def test_many_keys(tmp_path: Path) -> None:
    """Each key has a forecaster of its own; what is printed is of all rows."""
    table = people(3)
    table.assign(key=np.arange(len(table)) % 7).to_csv(tmp_path / "table.csv", index=False)
    asked = TaskConfig("late", "old", "g", by="key", seed=1)
    done = run_by_key(tmp_path / "table.csv", asked, out=tmp_path / "out.csv", processes=1)
    rows, out = pd.read_csv(tmp_path / "table.csv"), pd.read_csv(tmp_path / "out.csv")
    lines = summary(done.result(tmp_path / "table.csv", asked), every=True)
    rows = rows.assign(after=out["forecast"])
    before, after = ((rows[side] - rows["late"]) ** 2 for side in ("old", "after"))
    text = " ".join(" ".join(lines).split())
    printed(re.findall(r"Brier score ([\d.]+ -> [\d.]+)", text)[0], before.mean(), after.mean())
    for name, part in parts_of(rows).items():
        numbers, _ = row_of(lines, name)
        shown = shown_in(numbers)
        told = [100 * part[side].mean() for side in ("old", "after", "late")]
        printed(numbers, len(part), *told, 100 * (part["after"] - part["late"]).mean(), *shown[-2:])

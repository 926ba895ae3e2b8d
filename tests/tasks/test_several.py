"""Runs of intervals and of classes: their numbers against plain pandas, output and state, and what they refuse."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from commands import run
from swapcal.classes import Classes
from swapcal.errors import AtomsWarning, DataError, InvalidInput, StateFileError
from swapcal.intervals import Interval, interval_score
from swapcal.properties import Probability
from swapcal.report import page
from swapcal.tasks import checkpoint
from swapcal.tasks.columns import RangeWarning
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.result import from_json, group_rows, section_rows, to_json
from swapcal.tasks.runner import Stopped
from swapcal.tasks.survey import binning

N = 3000
NAMES = ["early", "on time", "late, or never"]


def demand() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    store = rng.choice(["north", "south", "east"], N, p=[0.5, 0.3, 0.2])
    center = rng.normal(20.0, 5.0, N)
    y = center + rng.normal(0.0, 1.0 + 3.0 * (store == "east"))
    frame = pd.DataFrame({"store": store, "y": y, "f": center, "lo": center - 2.0, "hi": center + 2.0})
    frame.loc[rng.random(N) < 0.03, "y"] = np.nan
    frame.loc[rng.random(N) < 0.02, ["f", "lo", "hi"]] = np.nan
    return frame


def flights() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    store = rng.choice(["north", "south"], N)
    logits = rng.normal([0.0, 1.0, -2.0], 1.0, (N, 3))
    true, said = (np.exp(c * logits) / np.exp(c * logits).sum(axis=1, keepdims=True) for c in (1.0, 1.8))
    label = (true.cumsum(axis=1) < rng.random(N)[:, None]).sum(axis=1)
    frame = pd.DataFrame({"store": store, "y": np.array(NAMES, dtype=object)[label]})
    for k, name in enumerate(NAMES):
        frame[f"p {name}"] = said[:, k]
    frame.loc[rng.random(N) < 0.03, "y"] = None
    return frame


MODEL = [f"p {name}" for name in NAMES]
ASKED = TaskConfig("y", groups=["store"])


def by_hand(frame: pd.DataFrame, lower: str, upper: str) -> pd.DataFrame:
    """Coverage, mean width and mean interval score of everybody and of every store."""
    known = frame.dropna(subset=["y", lower, upper])
    told = pd.DataFrame(
        {
            "store": "store=" + known["store"],
            "coverage": (known[lower] <= known["y"]) & (known["y"] <= known[upper]),
            "width": known[upper] - known[lower],
            "score": (known[upper] - known[lower])
            + 20.0 * (known[lower] - known["y"]).clip(lower=0)
            + 20.0 * (known["y"] - known[upper]).clip(lower=0),
        }
    )
    groups = pd.concat([told.assign(store="all"), told]).groupby("store")
    return groups[["coverage", "width", "score"]].mean().assign(rows=groups.size())


@pytest.mark.parametrize("model", [[], ["f"], ["lo", "hi"], ["lo", "f", "hi"]])
def test_the_numbers_of_intervals_are_those_of_the_file(tmp_path: Path, model: list[str]) -> None:
    frame, out = demand(), tmp_path / "out.csv"
    found = run(frame, ASKED, interval=0.9, p=model, seed=1, out=out)
    both = frame.join(pd.read_csv(out))
    assert list(both["row"]) == list(range(1, N + 1))
    sides = {"after": by_hand(both, "lower", "upper")}
    if len(model) > 1:
        sides["before"] = by_hand(both, "lo", "hi")
        assert np.allclose(both["before_lower"], both["lo"], equal_nan=True)
        assert both["lower"].notna().all()  # the model's widths say how far to go from the first row on
    else:
        assert both["lower"].isna().sum() in range(20, 25)  # what twenty outcomes take, blanks among them
    for row in group_rows(found):
        for which, expected in sides.items():
            hand = expected.loc[row["group"]]
            assert row[which]["coverage"] == pytest.approx(hand["coverage"])
            assert row[which]["bias"] == pytest.approx(100 * (hand["coverage"] - 0.9))
            assert row[which]["width"] == pytest.approx(hand["width"])
            assert row[which]["score"] == pytest.approx(hand["score"])
        assert row["rows"] == sides["after"].loc[row["group"], "rows"] or "before" in sides
    assert found.after is not None
    assert found.after.loss == pytest.approx(sides["after"].loc["all", "score"])
    covered = sides["after"].loc["store=east", "coverage"]
    assert abs(covered - 0.9) < 0.06, "a group that the model fails is covered"
    everybody = json.loads(to_json(found))["result"]["section_table"][0]
    assert everybody["after"]["coverage"] == pytest.approx(sides["after"].loc["all", "coverage"])
    assert to_json(from_json(to_json(found))) == to_json(found)
    html = page.html(found)
    assert f"{100 * covered:.1f} %" in html
    assert "store=east" in html


def test_a_model_that_knows_where_it_is_unsure_keeps_that_knowledge() -> None:
    rng = np.random.default_rng(0)
    unsure = 0.3 + 3.0 * rng.random(N) ** 2  # known to the model, and to no group
    y = unsure * rng.normal(size=N)
    table = {"y": y, "f": np.zeros(N), "lo": -unsure, "hi": unsure}
    told, blind = (run(table, TaskConfig("y"), interval=0.9, p=m, seed=1) for m in (["lo", "hi"], ["f"]))
    assert told.first.means["after"]["score"][0] < 0.85 * blind.first.means["after"]["score"][0]
    for found in (told, blind):
        assert found.after is not None
        assert abs(found.after.known_groups.mean[0]) < 0.02


def test_a_unit_only_scales_the_map() -> None:
    import swapcal as sc

    rng = np.random.default_rng(1)
    y, x = rng.normal(5.0, 2.0, 400), np.ones((400, 1))
    one = Interval(0.8, sc.Finite(1), seed=3, horizon=400).run(x, 4.0 * y, np.full(400, 20.0), units=np.full(400, 4.0))
    two = Interval(0.8, sc.Finite(1), seed=3, horizon=400).run(x, y, np.full(400, 5.0))
    assert np.allclose(one[20:], 4.0 * two[20:])


def test_good_intervals_are_kept() -> None:
    rng = np.random.default_rng(2)
    center = rng.normal(size=N)
    table = {"y": center + rng.normal(size=N), "lo": center - 1.645, "hi": center + 1.645}
    found = run(table, TaskConfig("y"), interval=0.9, p=["lo", "hi"], seed=1)
    assert found.verdict.kind == "fine"
    assert found.verdict.headline.startswith("Keep the model's intervals")


def test_the_numbers_of_classes_are_those_of_the_file(tmp_path: Path) -> None:
    frame, out = flights(), tmp_path / "out.parquet"
    found = run(frame, ASKED, classes=True, p=MODEL, seed=1, out=out)
    both = frame.join(pd.read_parquet(out))
    after = [f"p_{name}" for name in NAMES]
    assert np.allclose(both[after].sum(axis=1), 1.0)
    assert set(both["top"]) <= set(NAMES)
    known = both.dropna(subset=["y"])
    likeliest = known[MODEL].idxmax(axis=1).str.removeprefix("p ")
    tops = {
        "before": (likeliest, known[MODEL].max(axis=1)),
        "after": (known["top"], known["confidence"]),
    }
    for row in group_rows(found):
        sections = row["sections"]
        here = known["store"] == row["group"].removeprefix("store=") if row["group"] != "all" else known["y"].notna()
        assert row["rows"] == here.sum()
        for which, names in (("before", MODEL), ("after", after)):
            name, sure = tops[which]
            right = name[here] == known["y"][here]
            assert sections["top"][which]["right"] == pytest.approx(right.mean())
            assert sections["top"][which]["confidence"] == pytest.approx(sure[here].mean())
            assert sections["top"][which]["bias"] == pytest.approx(100 * (sure[here].mean() - right.mean()), abs=1e-9)
            brier = 0.0
            for column, one in zip(names, NAMES, strict=True):
                came = (known["y"][here] == one).astype(float)
                brier += float(((known[column][here] - came) ** 2).mean())
                bias = 100 * (known[column][here] - came).mean()
                assert sections[one][which]["bias"] == pytest.approx(bias, abs=1e-9)
            assert sections["top"][which]["brier"] == pytest.approx(brier)
    assert found.verdict.headline.startswith("Use the recalibrated probabilities")
    assert found.change is not None
    assert found.change.difference < 0
    assert [row["title"] for row in section_rows(found)] == ["top", *NAMES]
    assert to_json(from_json(to_json(found))) == to_json(found)
    assert "late, or never" in page.html(found)


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_names_of_classes_survive_the_file(tmp_path: Path, ending: str) -> None:
    names = ['a "b"', "c,d", " e"]
    table = pd.DataFrame({"y": [*names, "c,d"] * 20})
    out = tmp_path / f"out.{ending}"
    run({"y": table["y"].tolist()}, TaskConfig("y"), classes=True, seed=1, out=out)
    back = pd.read_csv(out) if ending == "csv" else pd.read_json(out, lines=True)
    assert list(back.columns) == ["row", *(f"p_{name}" for name in sorted(names)), "top", "confidence"]
    assert set(back["top"]) <= set(names)


def test_without_a_model_classes_start_from_what_came_up() -> None:
    rng = np.random.default_rng(5)
    store = rng.random(N) < 0.5
    table = {"y": np.where(rng.random(N) < np.where(store, 0.9, 0.2), 3, 1), "store": store}
    found = run(table, ASKED, classes=True, seed=1)
    assert [one.title for one in found.sections] == ["top", "1", "3"]
    rows = {row["group"]: row["sections"]["top"] for row in group_rows(found)}
    assert rows["store=True"]["after"]["right"] > 0.85
    assert "before" not in rows["all"]


def flat(row: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """The numbers and names of a row, however deep they lie; sums of batches differ in the last digit."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        found |= flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return found


KINDS: dict[str, tuple[Any, Any, Any]] = {
    "interval": (demand, run, {"interval": 0.9, "p": ["lo", "hi"]}),
    "plain interval": (demand, run, {"interval": 0.9}),
    "classes": (flights, run, {"classes": True, "p": MODEL}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_stopped_run_goes_on_as_if_nothing_had_happened(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swapcal.tables.records.BATCH_ROWS", 500, raising=False)
    make, run, settings = KINDS[kind]
    source = tmp_path / "in.jsonl"
    make().to_json(source, orient="records", lines=True)
    whole, parts, state = tmp_path / "whole.csv", tmp_path / "parts.csv", tmp_path / "run.state"
    asked = TaskConfig("y", groups=["store"], prefix=400)
    expected = run(source, asked, **settings, seed=1, out=whole, horizon=N)
    half = tmp_path / "half.jsonl"
    lines = source.read_text().splitlines(keepends=True)
    half.write_text("".join(lines[:1100]))
    run(half, asked, **settings, seed=1, out=parts, state=state, horizon=N)
    half.write_text("".join(lines))
    found = run(half, asked, **settings, seed=1, out=parts, state=state, horizon=N)
    assert parts.read_bytes() == whole.read_bytes()
    assert [flat(row) for row in group_rows(found)] == [pytest.approx(flat(row)) for row in group_rows(expected)]
    half.write_text("".join([lines[1], *lines[1:]]))
    with pytest.raises(StateFileError, match="does not begin with the rows"):
        run(half, asked, **settings, seed=1, out=parts, state=state, horizon=N)


def test_a_run_of_intervals_stops_when_asked(tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        run(demand(), ASKED, interval=0.9, seed=1, out=tmp_path / "out.csv", stop=lambda: True)


def test_what_cannot_be_intervals_is_refused_with_a_way_out() -> None:
    frame = demand()
    for model, said in (
        (["hi", "lo"], "name the lower end first: --p lo,hi"),
        (["a", "b", "c", "d"], "lower,forecast,upper"),
        (["lo", "nowhere"], "nowhere"),
    ):
        with pytest.raises((DataError, InvalidInput), match=said):
            run(frame, ASKED, interval=0.9, p=model)
    with pytest.raises(InvalidInput, match="level"):
        run(frame, ASKED, interval=90.0)
    with pytest.raises(DataError, match="no outcome"):
        run(frame.assign(y=np.nan), ASKED, interval=0.9)
    with pytest.raises(DataError, match="21 outcomes"):
        run(frame.dropna().head(15), ASKED, interval=0.9)
    crossed = frame.assign(lo=np.where(np.arange(N) == 700, frame["hi"] + 1.0, frame["lo"]))
    with pytest.warns(RangeWarning, match="row 701 of .* has its lower end above"):
        found = run(crossed, ASKED, interval=0.9, p=["lo", "hi"], seed=1)
    assert found.counts.crossed == 1


def test_outcomes_stay_in_their_range() -> None:
    rng = np.random.default_rng(6)
    y = np.maximum(rng.normal(1.0, 2.0, N), 0.0)  # a third of them are 0
    with pytest.warns(AtomsWarning, match="are equal to 0, .* covers all of such a heap"):
        found = run({"y": y}, TaskConfig("y", low=0.0), interval=0.9, seed=1)
    assert found.after is not None
    assert abs(found.after.known_groups.mean[0]) < 0.05
    with pytest.warns(AtomsWarning), pytest.warns(RangeWarning, match="outside"):
        cut = run({"y": y - 1.0}, TaskConfig("y", low=0.0), interval=0.9, seed=1)
    assert cut.counts.outcomes_outside == int((y < 1.0).sum())


def test_what_cannot_be_classes_is_refused_with_a_way_out() -> None:
    frame = flights()
    numbered = frame.assign(y=frame["y"].map({name: k for k, name in enumerate(NAMES)}))
    with pytest.raises(DataError, match="give pairs, such as --p 0=p early,1=p on time"):
        run(numbered, ASKED, classes=True, p=MODEL)
    pairs = [f"{k}={column}" for k, column in enumerate(MODEL)]
    assert [one.title for one in run(numbered, ASKED, classes=True, p=pairs, seed=1).sections[1:]] == ["0", "1", "2"]
    with pytest.raises(InvalidInput, match="each class"):
        run(frame, ASKED, classes=True, p=MODEL[:1])
    with pytest.raises(InvalidInput, match="not both"):
        run(frame, ASKED, classes=True, p=["early=p early", "p on time"])
    with pytest.raises(InvalidInput, match="twice"):
        run(frame, ASKED, classes=True, p=["p early", "p early"])
    with pytest.raises(DataError, match="50 at most"):
        run({"y": np.arange(N) % 70}, TaskConfig("y"), classes=True)
    with pytest.raises(DataError, match="two or more"):
        run({"y": np.ones(N)}, TaskConfig("y"), classes=True)
    with pytest.raises(DataError, match="0 or more"):
        run(frame.assign(**{"p early": -0.1}), ASKED, classes=True, p=MODEL)


def test_a_class_that_nobody_knows_is_counted_and_not_learned() -> None:
    frame = flights()
    strange = frame.assign(y=np.where(np.arange(N) == 2000, "diverted", frame["y"].astype(object)))
    with pytest.warns(RangeWarning, match="'diverted'"):
        found = run(strange, ASKED, classes=True, p=MODEL, seed=1)
    assert (found.counts.of_no_class, found.counts.rows) == (1, N)
    assert found.counts.scored == frame["y"].notna().sum() - int(pd.notna(frame["y"][2000]))


def test_the_interval_score_is_the_one_of_the_library() -> None:
    frame = demand().dropna()
    hand = by_hand(frame, "lo", "hi").loc["all", "score"]
    assert interval_score(frame["y"], frame["lo"], frame["hi"], 0.9).mean() == pytest.approx(hand)


def test_probabilities_that_add_up_but_for_rounding_stay_as_they_are() -> None:
    frame = flights()
    rounded = frame.assign(**{name: frame[name].round(2) for name in MODEL})
    found = run(rounded, ASKED, classes=True, p=MODEL, seed=1)
    assert found.counts.rescaled == 0
    assert found.first.means["before"]["confidence"][0] == pytest.approx(
        rounded[MODEL].max(axis=1)[frame["y"].notna()].mean()
    )
    with pytest.warns(RangeWarning, match="add up to 100"):
        percent = run(
            rounded.assign(**{name: 100 * rounded[name] for name in MODEL}), ASKED, classes=True, p=MODEL, seed=1
        )
    assert percent.counts.rescaled == N


def test_neighbors_in_the_last_bit_share_a_bin() -> None:
    near = np.array([0.3, np.nextafter(0.3, 1.0), np.nextafter(np.nextafter(0.3, 1.0), 1.0), 0.7])
    edges = binning(Probability(), near, None).audit_bins
    assert isinstance(edges, np.ndarray)
    assert (np.diff(edges) > 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_rows_without_an_outcome_change_no_other_row(tmp_path: Path, kind: str) -> None:
    """Forecasts that nobody tells the outcome of must not wait: a forecaster that waits stands back to the model."""
    make, run, settings = KINDS[kind]
    frame, out = make().head(1200), tmp_path / "run.state"
    run(frame, ASKED, **settings, seed=1, state=out)
    saved = checkpoint.read_checkpoint(out)
    assert saved is not None
    kept = (Classes if kind == "classes" else Interval).load(io.BytesIO(saved.forecaster))
    parts = (
        (*kept.forecasters, kept.sure) if isinstance(kept, Classes) else (*kept.quantiles._ends, kept.quantiles._size)
    )
    assert frame["y"].isna().sum() > 10
    assert [part.n_pending for part in parts] == [0] * len(parts)

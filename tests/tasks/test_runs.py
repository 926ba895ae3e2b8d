"""Runs over a table: the engine's own numbers, only from earlier rows; intervals and classes against plain pandas."""

import gzip
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import swapcal as sc
from commands import run
from swapcal.classes import Classes
from swapcal.errors import AtomsWarning, DataError, InvalidInput
from swapcal.hypotheses import Groups
from swapcal.intervals import Interval
from swapcal.properties import Probability
from swapcal.report import page
from swapcal.tasks import checkpoint, runner
from swapcal.tasks.columns import RangeWarning
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.evaluation import binning
from swapcal.tasks.result import from_json, group_rows, section_rows, to_json

Table = dict[str, Any]

QUESTION = TaskConfig("y", "p", groups=["g", ("g", "h")], prefix=500)


def table(n: int = 1500, seed: int = 0) -> Table:
    rng = np.random.default_rng(seed)
    p, g, h = rng.random(n), rng.integers(0, 4, n), rng.integers(0, 3, n)
    y = (rng.random(n) < np.clip(0.7 * p + 0.1 * (g == 1), 0, 1)).astype(float)
    return {"y": y, "p": np.round(p, 3), "g": np.array(list("abcd"))[g], "h": h, "x": rng.normal(size=n)}


def written(path: Path) -> dict[str, Any]:
    lines = path.read_text().splitlines()
    cells = [line.split(",") for line in lines[1:]]
    values = np.array([[float(cell) if cell else np.nan for cell in row] for row in cells])
    return dict(zip(lines[0].split(","), values.T, strict=True))


def outputs_of(folder: Path, source: Any, question: TaskConfig = QUESTION, **settings: Any) -> dict[str, Any]:
    run(source, question, out=folder / "out.csv", overwrite=True, **settings)
    return written(folder / "out.csv")


# One number a row


@pytest.mark.parametrize("holes", [False, True])
def test_forecasts_are_those_of_the_forecaster(tmp_path: Path, holes: bool) -> None:
    """Also with weights, of which some are 0, and where outcomes and hints are missing."""
    columns, t = table(), np.arange(1500)
    w = np.where(t % 5 == 0, 0.0, 1.0 + t % 3) if holes else np.ones(1500)
    if holes:
        columns |= {"y": np.where(t % 3 == 1, np.nan, columns["y"]), "p": np.where(t % 4 == 1, np.nan, columns["p"])}
    protect = "loss" if holes else "nothing"
    settings: dict[str, Any] = {"seed": 5, "weight": "w" if holes else None, "protect": protect}
    result = run(columns | {"w": w}, QUESTION, out=tmp_path / "out.csv", **settings)
    groups = Groups(["g", ("g", "h")], limit=result.config.limit)
    groups.fit({name: columns[name][:500] for name in "gh"})
    forecaster = sc.Forecaster(sc.Mean(), groups, horizon=1500, seed=5, protect=protect)
    x, y, p = {name: columns[name] for name in "gh"}, columns["y"], columns["p"]
    # A row of no weight teaches nothing, and is forecast as if it counted.
    taught, shares = np.where(w > 0, y, np.nan), np.where(w > 0, w / w.max(), 1.0)
    forecasts = forecaster.run(x, taught, p, weights=shares if holes else None, missing="skip")
    out = written(tmp_path / "out.csv")
    np.testing.assert_array_equal(out["forecast"], forecasts)
    np.testing.assert_array_equal(out["before"], p)
    np.testing.assert_array_equal(out["row"], t + 1)
    known = ~np.isnan(taught)
    assert (result.counts.scored, result.counts.without_hint) == (known.sum(), (np.isnan(p) & ~np.isnan(y)).sum())
    assert result.after.loss == pytest.approx(np.average((y - forecasts)[known] ** 2, weights=w[known]))
    if not holes:
        rows = groups.rows(x, 1500)
        dense = np.zeros((1500, groups.n))
        dense[np.repeat(t, np.diff(rows.indptr)), rows.indices] = rows.values
        assert result.after.swap_error == pytest.approx(sc.swap_multicalibration_error(y, forecasts, dense))
        assert (result.config.horizon, result.guarantee.bound) == (1500, forecaster.guarantee(0.05).worst)


def test_before_and_after_stand_beside_each_other() -> None:
    columns = table(6000)
    result = run(columns, QUESTION)
    before, after, change, history = result.before, result.after, result.change, result.first.history
    assert before.loss == pytest.approx(np.mean((columns["y"] - columns["p"]) ** 2))
    assert after.swap_error < before.swap_error / 2
    assert after.swap_error < result.guarantee.bound  # type: ignore[operator]
    assert change.difference == pytest.approx(after.loss - before.loss)
    assert change.low < change.difference < change.high < 0
    assert (result.kind, result.verdict.kind) == ("run", "IMPROVED")
    assert (history.rounds[0], history.rounds[-1]) == (100, 6000)
    assert 15 < len(history.rounds) < 60
    ends = [getattr(history, name)[-1] for name in ("before", "after", "guarantee")]
    assert ends == [before.swap_error, after.swap_error, result.guarantee.bound]
    assert (history.after < history.guarantee).all()  # type: ignore[operator]


def test_no_hint_and_no_groups(tmp_path: Path) -> None:
    result = run(table(), TaskConfig("y"), out=tmp_path / "out.jsonl")
    assert (result.before, result.first.history.before, result.paired) == (None, None, {})
    assert result.first.groups == ("all",)
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert (len(lines), json.loads(lines[0]).keys()) == (1500, {"row", "forecast"})


def test_a_horizon_is_what_the_source_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = table(300)
    assert run(columns, QUESTION).config.horizon == 300
    assert run(columns, QUESTION, horizon=5000).config.horizon == 5000
    source = tmp_path / "in.csv"
    pd.DataFrame(columns).to_csv(source, index=False)
    assert run(source, QUESTION).config.horizon == 300
    packed = tmp_path / "in.csv.gz"
    packed.write_bytes(gzip.compress(source.read_bytes()))
    assert run(packed, QUESTION).config.horizon is None
    with open(source, "rb") as stream:
        assert run(io.BytesIO(stream.read()), QUESTION).config.horizon is None
    monkeypatch.setattr(runner, "_HEAD", 2000)
    assert 270 <= (run(source, QUESTION).config.horizon or 0) <= 330


def test_a_model_that_learns_and_a_linear_class() -> None:
    """The outcome depends on x, of which the hint knows nothing: as a feature of a model that learns, or as a class."""
    columns = table(3000)
    columns["y"] = (np.random.default_rng(5).random(3000) < 1 / (1 + np.exp(-2 * columns["x"]))).astype(float)
    linear = run(columns, TaskConfig("y", "p", linear=("x",), prefix=500))
    assert linear.first.groups == ("all", "constant", "x")
    assert linear.after.swap_error < linear.before.swap_error / 2
    columns["x"] = np.where(np.arange(3000) % 50 == 0, np.nan, columns["x"])
    both = TaskConfig("y", "p", groups=["g"], linear=("x",), prefix=500)
    learned, plain = run(columns, both, learn=True), run(columns, TaskConfig("y", "p", groups=["g"], prefix=500))
    assert learned.after.loss < 0.85 * plain.after.loss
    with pytest.raises(InvalidInput, match="together need learn=True"):
        run(columns, both)


def test_labels_outside_the_range_are_moved_and_warned_about_once(tmp_path: Path) -> None:
    columns = table()
    columns["y"] = np.where(np.arange(1500) < 600, columns["y"], 2 * columns["y"])
    with pytest.warns(RangeWarning, match=r"outside \[0, 1\]") as caught:
        result = run(columns, QUESTION)
    assert len(caught) == 1
    assert result.counts.outcomes_outside == np.count_nonzero(columns["y"] > 1)


def test_files_of_nothing() -> None:
    nothing = np.full(200, np.nan)
    with pytest.raises(DataError, match="no row with an outcome in 'y'"):
        run(table(200) | {"y": nothing}, TaskConfig("y", "p", low=0.0, high=1.0))
    with pytest.raises(DataError, match=r"hint 'p' is missing in all of the first 200 rows"):
        run(table(200) | {"p": nothing}, QUESTION)


def test_a_sharp_hint_gets_a_finer_grid_and_keeps_its_loss() -> None:
    rng = np.random.default_rng(3)
    truth = 0.5 + 0.4 * np.tanh(np.cumsum(rng.normal(0.0, 0.03, 6_000)))
    columns = {"y": truth + 0.01 * rng.normal(size=6_000), "p": truth, "g": np.where(np.arange(6_000) % 2, "a", "b")}
    question = TaskConfig("y", "p", groups=["g"], low=-0.1, high=1.1)
    asked = ((15, "nothing"), (None, "nothing"), (15, "loss"))
    usual, finer, shared = (run(columns, question, bins=bins, protect=each, seed=1) for bins, each in asked)
    assert (finer.config.bins or 0) > 30 > 15 == usual.config.bins
    ratios = [each.change.after / each.change.before for each in (usual, finer, shared) if each.change is not None]
    assert ratios[2] < 1.001 < ratios[1] < 1.2 < 1.5 < ratios[0]


# Intervals

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


@pytest.mark.usefixtures("few_diagrams")
@pytest.mark.parametrize("model", [[], ["f"], ["lo", "hi"], ["lo", "f", "hi"]])
def test_the_numbers_of_intervals_are_those_of_the_file(tmp_path: Path, model: list[str]) -> None:
    frame, out = demand(), tmp_path / "out.csv"
    result = run(frame, ASKED, interval=0.9, p=model, seed=1, out=out)
    both = frame.join(pd.read_csv(out))
    assert list(both["row"]) == list(range(1, N + 1))
    sides = {"after": by_hand(both, "lower", "upper")}
    if len(model) > 1:
        sides["before"] = by_hand(both, "lo", "hi")
        assert np.allclose(both["before_lower"], both["lo"], equal_nan=True)
        assert both["lower"].notna().all()  # the model's own at first
    else:
        assert both["lower"].isna().sum() in range(20, 25)  # what twenty outcomes take, blanks among them
    for row in group_rows(result):
        for which, expected in sides.items():
            hand = expected.loc[row["group"]]
            assert row[which]["bias"] == pytest.approx(100 * (hand["coverage"] - 0.9))
            for name in ("coverage", "width", "score"):
                assert row[which][name] == pytest.approx(hand[name])
        assert row["rows"] == sides["after"].loc[row["group"], "rows"] or "before" in sides
    assert result.after.loss == pytest.approx(sides["after"].loc["all", "score"])
    covered = sides["after"].loc["store=east", "coverage"]
    # The model's own ends are shown until outcomes speak for a correction.
    most = 0.06 if len(model) < 2 else 0.4 * abs(sides["before"].loc["store=east", "coverage"] - 0.9)
    assert abs(covered - 0.9) < most, "a group that the model fails is covered"
    everybody = json.loads(to_json(result))["result"]["section_table"][0]
    assert everybody["after"]["coverage"] == pytest.approx(sides["after"].loc["all", "coverage"])
    assert to_json(from_json(to_json(result))) == to_json(result)
    if model == ["f"]:
        assert f"{100 * covered:.1f} %" in page.html(result)


def test_a_model_that_knows_where_it_is_unsure_keeps_that_knowledge() -> None:
    rng = np.random.default_rng(0)
    unsure = 0.3 + 3.0 * rng.random(N) ** 2  # known to the model, and to no group
    columns = {"y": unsure * rng.normal(size=N), "f": np.zeros(N), "lo": -unsure, "hi": unsure}
    told, blind = (run(columns, TaskConfig("y"), interval=0.9, p=m, seed=1) for m in (["lo", "hi"], ["f"]))
    assert told.first.means["after"]["score"][0] < 0.85 * blind.first.means["after"]["score"][0]
    assert all(abs(each.after.groups.mean[0]) < 0.04 for each in (told, blind))
    assert abs(told.before.groups.mean[0]) > 0.2


def test_a_unit_only_scales_the_map() -> None:
    rng = np.random.default_rng(1)
    y, x = rng.normal(5.0, 2.0, 400), np.ones((400, 1))
    one = Interval(0.8, sc.Finite(1), seed=3, horizon=400).run(x, 4.0 * y, np.full(400, 20.0), units=np.full(400, 4.0))
    two = Interval(0.8, sc.Finite(1), seed=3, horizon=400).run(x, y, np.full(400, 5.0))
    assert np.allclose(one[20:], 4.0 * two[20:])


@pytest.mark.parametrize(
    ("change", "asked", "sentence"),
    [
        ({}, {"p": ["hi", "lo"]}, "name the lower end first: --p lo,hi"),
        ({}, {"p": ["a", "b", "c", "d"]}, "lower,forecast,upper"),
        ({}, {"p": ["lo", "nowhere"]}, "nowhere"),
        ({}, {"interval": 90.0}, "interval must lie"),
        ({"y": np.nan}, {}, "no outcome"),
        ({"y": [*np.arange(15.0), *[np.nan] * (N - 15)]}, {}, "21 outcomes"),
    ],
)
def test_what_cannot_be_intervals_is_refused_with_a_way_out(change: Any, asked: Any, sentence: str) -> None:
    with pytest.raises((DataError, InvalidInput), match=sentence):
        run(demand().assign(**change), ASKED, **{"interval": 0.9, **asked})


def test_what_is_odd_in_intervals_is_counted_and_warned_about() -> None:
    frame = demand()
    crossed = frame.assign(lo=np.where(np.arange(N) == 700, frame["hi"] + 1.0, frame["lo"]))
    with pytest.warns(RangeWarning, match="row 701 of .* has its lower end above"):
        assert run(crossed, ASKED, interval=0.9, p=["lo", "hi"], seed=1).counts.crossed == 1
    y = np.maximum(np.random.default_rng(6).normal(1.0, 2.0, N), 0.0)  # a third of them are 0
    with pytest.warns(AtomsWarning, match="are equal to 0, .* covers all of such a heap"):
        result = run({"y": y}, TaskConfig("y", low=0.0), interval=0.9, seed=1)
    assert abs(result.after.groups.mean[0]) < 0.05
    with pytest.warns(AtomsWarning), pytest.warns(RangeWarning, match="outside"):
        cut = run({"y": y - 1.0}, TaskConfig("y", low=0.0), interval=0.9, seed=1)
    assert cut.counts.outcomes_outside == int((y < 1.0).sum())


# Classes


@pytest.mark.usefixtures("few_diagrams")
def test_the_numbers_of_classes_are_those_of_the_file(tmp_path: Path) -> None:
    frame, out = flights(), tmp_path / "out.parquet"
    result = run(frame, ASKED, classes=True, p=MODEL, seed=1, out=out)
    both = frame.join(pd.read_parquet(out))
    after = [f"p_{name}" for name in NAMES]
    assert np.allclose(both[after].sum(axis=1), 1.0)
    assert set(both["top"]) <= set(NAMES)
    known = both.dropna(subset=["y"])
    likeliest = known[MODEL].idxmax(axis=1).str.removeprefix("p ")
    tops = {"before": (likeliest, known[MODEL].max(axis=1)), "after": (known["top"], known["confidence"])}
    for row in group_rows(result):
        sections = row["sections"]
        here = known["store"] == row["group"].removeprefix("store=") if row["group"] != "all" else known["y"].notna()
        assert row["rows"] == here.sum()
        for which, names in (("before", MODEL), ("after", after)):
            name, sure = tops[which]
            right, brier = name[here] == known["y"][here], 0.0
            for column, one in zip(names, NAMES, strict=True):
                error = known[column][here] - (known["y"][here] == one)
                brier += float((error**2).mean())
                assert sections[one][which]["bias"] == pytest.approx(100 * error.mean(), abs=1e-9)
            numbers = {"right": right.mean(), "confidence": sure[here].mean(), "brier": brier}
            numbers["bias"] = 100 * (sure[here].mean() - right.mean())
            assert {each: sections["top"][which][each] for each in numbers} == pytest.approx(numbers, abs=1e-9)
    assert result.verdict.kind == "IMPROVED"
    assert result.change.difference < 0
    assert [row["title"] for row in section_rows(result)] == ["top", *NAMES]
    assert to_json(from_json(to_json(result))) == to_json(result)
    assert "late, or never" in page.html(result)


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
    columns = {"y": np.where(rng.random(N) < np.where(store, 0.9, 0.2), 3, 1), "store": store}
    result = run(columns, ASKED, classes=True, seed=1)
    assert [one.title for one in result.sections] == ["top", "1", "3"]
    rows = {row["group"]: row["sections"]["top"] for row in group_rows(result)}
    assert rows["store=True"]["after"]["right"] > 0.85
    assert "before" not in rows["all"]


NUMBERED = np.array([*range(3)] * (N // 3))


@pytest.mark.parametrize(
    ("change", "p", "sentence"),
    [
        ({"y": NUMBERED}, MODEL, "give pairs, such as --p 0=p early,1=p on time"),
        ({}, MODEL[:1], "each class"),
        ({}, ["early=p early", "p on time"], "not both"),
        ({}, ["p early", "p early"], "twice"),
        ({"y": np.arange(N) % 70}, None, "50 at most"),
        ({"y": np.ones(N)}, None, "two or more"),
        ({"p early": -0.1}, MODEL, "0 or more"),
    ],
)
def test_what_cannot_be_classes_is_refused_with_a_way_out(change: Any, p: Any, sentence: str) -> None:
    with pytest.raises((DataError, InvalidInput), match=sentence):
        run(flights().assign(**change), ASKED, classes=True, p=p)


def test_what_is_odd_in_classes_is_counted_and_warned_about() -> None:
    frame, n = flights().head(900), 900
    pairs = [f"{k}={column}" for k, column in enumerate(MODEL)]
    numbered = run(frame.assign(y=NUMBERED[:n]), ASKED, classes=True, p=pairs, seed=1)
    assert [one.title for one in numbered.sections[1:]] == ["0", "1", "2"]
    strange = frame.assign(y=np.where(np.arange(n) == 700, "diverted", frame["y"].astype(object)))
    with pytest.warns(RangeWarning, match="'diverted'"):
        counts = run(strange, ASKED, classes=True, p=MODEL, seed=1).counts
    assert (counts.of_no_class, counts.rows) == (1, n)
    assert counts.scored == frame["y"].notna().sum() - int(pd.notna(frame["y"][700]))
    rounded = frame.assign(**{name: frame[name].round(2) for name in MODEL})
    result = run(rounded, ASKED, classes=True, p=MODEL, seed=1)
    assert result.counts.rescaled == 0, "probabilities that add up but for rounding stay as they are"
    confidence = rounded[MODEL].max(axis=1)[frame["y"].notna()].mean()
    assert result.first.means["before"]["confidence"][0] == pytest.approx(confidence)
    percent = rounded.assign(**{name: 100 * rounded[name] for name in MODEL})
    with pytest.warns(RangeWarning, match="add up to 100"):
        assert run(percent, ASKED, classes=True, p=MODEL, seed=1).counts.rescaled == n


def test_neighbors_in_the_last_bit_share_a_bin() -> None:
    near = np.array([0.3, np.nextafter(0.3, 1.0), np.nextafter(np.nextafter(0.3, 1.0), 1.0), 0.7])
    edges = binning(Probability(), near, None).audit_bins
    assert isinstance(edges, np.ndarray)
    assert (np.diff(edges) > 0).all()


@pytest.mark.parametrize("task", ["interval", "classes"])
def test_rows_without_an_outcome_do_not_wait(tmp_path: Path, task: str) -> None:
    """A forecaster that waits shows the model's numbers."""
    frame, kind = (demand(), Interval) if task == "interval" else (flights(), Classes)
    settings: dict[str, Any] = {"interval": 0.9} if task == "interval" else {"classes": True, "p": MODEL}
    run(frame.head(1200), ASKED, **settings, seed=1, state=tmp_path / "run.state")
    model: Any = kind.from_bytes(checkpoint.read_checkpoint(tmp_path / "run.state").forecaster)
    parts = (*model.forecasters, model.sure) if task == "classes" else (*model._ends, model._size)
    assert frame["y"].head(1200).isna().sum() > 10
    assert [part.n_pending for part in parts] == [0] * len(parts)


def test_a_range_that_moves_clips_nothing(tmp_path: Path) -> None:
    """Outcomes and right forecasts that move from 50 to 300, behind the rows that settle the range."""
    rng, n = np.random.default_rng(3), 20_000
    p = np.where(np.arange(n) < 12_000, 50.0, 300.0) + rng.normal(0.0, 5.0, n)
    columns = {"y": p + rng.normal(0.0, 10.0, n), "p": p, "g": np.array(["a", "b"])[rng.integers(0, 2, n)]}
    for number, delay in enumerate((None, "500")):
        with pytest.warns(RangeWarning, match="its loss and its bias are those of the number as it is"):
            result = run(columns, TaskConfig("y", "p", ["g"], delay=delay), seed=1, out=tmp_path / f"{number}.csv")
        out = written(tmp_path / f"{number}.csv")
        np.testing.assert_array_equal(out["before"], p)
        before, after = (np.mean((columns["y"] - each) ** 2) for each in (p, out["forecast"]))
        assert (result.before.loss, result.after.loss) == pytest.approx((before, after))
        assert (result.change.before, result.change.after) == pytest.approx((before, after))
        assert after < 1.01 * before
        assert result.counts.outcomes_outside == result.counts.forecasts_outside == 8000

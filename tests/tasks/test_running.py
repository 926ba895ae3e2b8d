"""Runs over a table: the engine's own numbers, only from earlier rows, in pieces or at once, killed or not."""

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swapcal as sc
from commands import run
from swapcal.errors import DataError, InvalidInput, StateFileError
from swapcal.hypotheses import Groups
from swapcal.tables.records import read
from swapcal.tasks import checkpoint, runner
from swapcal.tasks.columns import RangeWarning
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.result import Result, to_json
from swapcal.tasks.runner import Stopped

Table = dict[str, Any]
QUESTION = TaskConfig("y", "p", groups=["g", ("g", "h")], prefix=500)


def table(n: int = 1500, seed: int = 0) -> Table:
    rng = np.random.default_rng(seed)
    p, g, h = rng.random(n), rng.integers(0, 4, n), rng.integers(0, 3, n)
    y = (rng.random(n) < np.clip(0.7 * p + 0.1 * (g == 1), 0, 1)).astype(float)
    return {"y": y, "p": np.round(p, 3), "g": np.array(list("abcd"))[g], "h": h, "x": rng.normal(size=n)}


def csv(path: Path, columns: Table, n: int | None = None) -> Path:
    rows = list(zip(*columns.values(), strict=True))[:n]
    lines = [",".join("" if value != value else str(value) for value in row) for row in rows]
    path.write_text("\n".join([",".join(columns), *lines]) + "\n")
    return path


def written(path: Path) -> dict[str, Any]:
    lines = path.read_text().splitlines()
    cells = [line.split(",") for line in lines[1:]]
    values = np.array([[float(cell) if cell else np.nan for cell in row] for row in cells])
    return dict(zip(lines[0].split(","), values.T, strict=True))


def changed(columns: Table, **others: Any) -> Table:
    return {**columns, **others}


def outputs_of(folder: Path, source: Any, question: TaskConfig = QUESTION, **settings: Any) -> dict[str, Any]:
    run(source, question, out=folder / "out.csv", overwrite=True, **settings)
    return written(folder / "out.csv")


def test_forecasts_are_those_of_the_forecaster(tmp_path: Path) -> None:
    columns = table()
    result = run(columns, QUESTION, out=tmp_path / "out.csv", seed=5)
    limit = result.config.limit
    groups = Groups(["g", ("g", "h")], limit=limit)
    groups.fit({name: columns[name][:500] for name in "gh"})
    forecaster = sc.Forecaster(sc.Mean(), groups, horizon=1500, seed=5)
    forecasts = forecaster.run({name: columns[name] for name in "gh"}, columns["y"], columns["p"])
    out = written(tmp_path / "out.csv")
    np.testing.assert_array_equal(out["forecast"], forecasts)
    np.testing.assert_array_equal(out["before"], columns["p"])
    np.testing.assert_array_equal(out["row"], np.arange(1, 1501))
    assert result.config.horizon == 1500
    assert result.guarantee is not None
    assert result.guarantee.bound == forecaster.guarantee(0.05)
    rows = groups.rows({name: columns[name] for name in "gh"}, 1500)
    dense = np.zeros((1500, groups.n))
    dense[np.repeat(np.arange(1500), np.diff(rows.indptr)), rows.indices] = rows.values
    assert result.after is not None
    assert result.after.swap_error == pytest.approx(sc.swap_multicalibration_error(columns["y"], forecasts, dense))
    assert result.after.loss == pytest.approx(np.mean((columns["y"] - forecasts) ** 2))


def test_before_and_after_stand_beside_each_other() -> None:
    columns = table(6000)
    result = run(columns, QUESTION)
    assert result.kind == "run"
    assert result.before is not None
    assert result.after is not None
    assert result.first.history is not None
    change = result.change
    assert change is not None
    assert result.guarantee is not None
    assert result.guarantee.bound is not None
    assert result.before.loss == pytest.approx(np.mean((columns["y"] - columns["p"]) ** 2))
    assert result.after.swap_error < min(result.before.swap_error / 2, result.guarantee.bound)
    assert change.difference == pytest.approx(result.after.loss - result.before.loss)
    assert change.low < change.difference < change.high < 0
    assert result.verdict.kind == "recalibrate"
    history = result.first.history
    assert history.before is not None
    assert history.after is not None
    assert history.guarantee is not None
    assert (history.rounds[0], history.rounds[-1]) == (100, 6000)
    assert 15 < len(history.rounds) < 60
    assert (history.before[-1], history.after[-1]) == (result.before.swap_error, result.after.swap_error)
    assert history.guarantee[-1] == result.guarantee.bound
    assert (history.after < history.guarantee).all()


@pytest.mark.parametrize("batch_rows", [7, 400, 1499])
def test_batches_make_no_difference(tmp_path: Path, batch_rows: int) -> None:
    columns = table()
    columns["y"][::11] = np.nan
    whole = outputs_of(tmp_path, columns)
    records = read(columns, columns=QUESTION.columns, batch_rows=batch_rows)
    pieces = outputs_of(tmp_path, records)
    np.testing.assert_array_equal(pieces["forecast"], whole["forecast"])


def test_a_forecast_knows_only_earlier_rows(tmp_path: Path) -> None:
    """Outcomes from row 900 on are turned around; nothing before row 901 may move, and something behind it must."""
    columns = table()
    other = changed(columns, y=np.where(np.arange(1500) < 900, columns["y"], 1 - columns["y"]))
    one, two = (outputs_of(tmp_path, each)["forecast"] for each in (columns, other))
    np.testing.assert_array_equal(one[:901], two[:901])
    assert (one[901:] != two[901:]).any()


def test_rows_without_outcome_are_forecast_and_not_learned_from(tmp_path: Path) -> None:
    columns = table()
    missing = np.arange(1500) % 3 == 1
    holes = changed(columns, y=np.where(missing, np.nan, columns["y"]))
    # Fixed bins, as else the first hints become values, whether or not their outcomes are known.
    settings: dict[str, Any] = {"bins": 21, "seed": 1}
    result = run(holes, QUESTION, out=tmp_path / "out.csv", **settings)
    assert (result.counts.scored, result.counts.without_outcome) == (1000, 500)
    out = written(tmp_path / "out.csv")
    assert len(out["row"]) == 1500
    assert not np.isnan(out["forecast"]).any()
    # Which outcomes those rows would have had cannot matter, but a row that is not there at all changes the draws.
    forecaster_rows = outputs_of(tmp_path, changed(holes, p=np.where(missing, 0.5, columns["p"])), **settings)
    np.testing.assert_array_equal(out["forecast"][~missing], forecaster_rows["forecast"][~missing])


def test_rows_without_a_hint_are_forecast_without_one(tmp_path: Path) -> None:
    columns = table()
    missing = np.arange(1500) % 4 == 1
    result = run(changed(columns, p=np.where(missing, np.nan, columns["p"])), QUESTION, out=tmp_path / "out.csv")
    out = written(tmp_path / "out.csv")
    np.testing.assert_array_equal(np.isnan(out["before"]), missing)
    assert not np.isnan(out["forecast"]).any()
    assert result.counts.without_hint == 375
    assert result.before is not None
    assert result.before.weight == 1125
    assert result.counts.scored == 1500


def test_weights(tmp_path: Path) -> None:
    columns = table()
    weighted = TaskConfig("y", "p", groups=["g"], weight="w", prefix=500)
    w = np.where(np.arange(1500) % 5 == 0, 0.0, 1.0 + np.arange(1500) % 3)
    one = outputs_of(tmp_path, {**columns, "w": w}, weighted)["forecast"]
    two = outputs_of(tmp_path, {**columns, "w": 10 * w}, weighted)["forecast"]
    np.testing.assert_array_equal(one, two)
    turned = changed(columns, y=np.where(w > 0, columns["y"], 1 - columns["y"]))
    np.testing.assert_array_equal(outputs_of(tmp_path, {**turned, "w": w}, weighted)["forecast"], one)
    result = run({**columns, "w": w}, weighted)
    assert result.after is not None
    assert result.after.loss == pytest.approx(np.average((columns["y"] - one) ** 2, weights=w))


def test_no_hint_and_no_groups(tmp_path: Path) -> None:
    columns = table()
    result = run(columns, TaskConfig("y"), out=tmp_path / "out.jsonl")
    assert result.before is None
    assert result.paired == {}
    assert result.first.groups == ("all",)
    assert result.first.history is not None
    assert result.first.history.before is None
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [sorted(json.loads(line)) for line in lines[:1]] == [["forecast", "row"]]
    assert len(lines) == 1500


def test_a_horizon_is_what_the_source_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = table(300)
    assert run(columns, QUESTION).config.horizon == 300
    assert run(columns, QUESTION, horizon=5000).config.horizon == 5000
    source = csv(tmp_path / "in.csv", columns)
    assert run(source, QUESTION).config.horizon == 300
    packed = tmp_path / "in.csv.gz"
    packed.write_bytes(gzip.compress(source.read_bytes()))
    assert run(packed, QUESTION).config.horizon is None
    with open(source, "rb") as stream:
        assert run(io.BytesIO(stream.read()), QUESTION).config.horizon is None
    monkeypatch.setattr(runner, "_HEAD", 2000)
    assert 270 <= (run(source, QUESTION).config.horizon or 0) <= 330


def test_a_model_that_learns(tmp_path: Path) -> None:
    """The outcome depends on x, of which the hint knows nothing: features of a model that learns make the loss fall."""
    columns = table(3000)
    columns["y"] = (np.random.default_rng(5).random(3000) < 1 / (1 + np.exp(-2 * columns["x"]))).astype(float)
    columns["x"] = np.where(np.arange(3000) % 50 == 0, np.nan, columns["x"])
    both = TaskConfig("y", "p", groups=["g"], linear=("x",), prefix=500)
    learned, plain = run(columns, both, learn=True), run(columns, TaskConfig("y", "p", groups=["g"], prefix=500))
    assert learned.after is not None
    assert plain.after is not None
    assert learned.after.loss < 0.85 * plain.after.loss
    with pytest.raises(InvalidInput, match="together need learn=True"):
        run(columns, both)


def test_a_linear_class() -> None:
    columns = table(3000)
    columns["y"] = (np.random.default_rng(5).random(3000) < 1 / (1 + np.exp(-2 * columns["x"]))).astype(float)
    result = run(columns, TaskConfig("y", "p", linear=("x",), prefix=500))
    assert result.before is not None
    assert result.after is not None
    assert result.first.groups == ("all", "constant", "x")
    assert result.after.swap_error < result.before.swap_error / 2


def test_labels_outside_the_range_are_moved_and_warned_about_once(tmp_path: Path) -> None:
    columns = table()
    columns["y"] = np.where(np.arange(1500) < 600, columns["y"], 2 * columns["y"])
    with pytest.warns(RangeWarning, match=r"outside \[0, 1\]") as caught:
        result = run(columns, QUESTION)
    assert len(caught) == 1
    assert result.counts.outcomes_outside == np.count_nonzero(columns["y"] > 1)


def test_files_of_nothing(tmp_path: Path) -> None:
    columns = table(200)
    empty = changed(columns, y=np.full(200, np.nan))
    with pytest.raises(DataError, match="no row with an outcome in 'y'"):
        run(empty, TaskConfig("y", "p", low=0.0, high=1.0))
    with pytest.raises(DataError, match=r"hint 'p' is missing in all of the first 200 rows"):
        run(changed(columns, p=np.full(200, np.nan)), QUESTION)


def test_an_output_is_not_overwritten_by_mistake(tmp_path: Path) -> None:
    columns, out, state = table(200), tmp_path / "out.csv", tmp_path / "run.state"
    out.write_text("dear diary\n")
    with pytest.raises(InvalidInput, match=r"out\.csv is there already; give another --out, or --overwrite"):
        run(columns, QUESTION, out=out)
    with pytest.raises(InvalidInput, match="is there already"):
        run(columns, QUESTION, out=out, state=state, fresh=True)
    assert out.read_text() == "dear diary\n"
    assert not state.exists()
    run(columns, QUESTION, out=out, state=state, overwrite=True)
    first = out.read_bytes()
    run(columns, QUESTION, out=out, state=state, fresh=True)
    assert out.read_bytes() == first
    with pytest.raises(InvalidInput, match="the output and the state are the same file"):
        run(columns, QUESTION, out=out, state=out)


def stopping_after(batches: int) -> Callable[[], bool]:
    left = [batches]

    def stop() -> bool:
        left[0] -= 1
        return left[0] == 0

    return stop


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_stopped_run_goes_on(tmp_path: Path, ending: str) -> None:
    source = csv(tmp_path / "in.csv", table())
    whole = run(source, QUESTION, out=tmp_path / f"whole.{ending}")
    settings: dict[str, Any] = {"out": tmp_path / f"out.{ending}", "state": tmp_path / "run.state"}
    said: list[str] = []

    def attempt(stop: Callable[[], bool] | None) -> Result:
        records = read(source, columns=QUESTION.columns, batch_rows=200)
        return run(records, QUESTION, stop=stop, say=said.append, **settings)

    with pytest.raises(Stopped) as one:
        attempt(stopping_after(2))
    with pytest.raises(Stopped) as two:
        attempt(stopping_after(3))
    assert (one.value.rows, two.value.rows) == (400, 1000)
    result = attempt(None)
    assert said == ["going on after row 400", "going on after row 1,000"]
    assert settings["out"].read_bytes() == (tmp_path / f"whole.{ending}").read_bytes()
    done = [to_json(attempt(None)), to_json(result)]
    assert said[2:] == [f"nothing to do: all 1,500 rows of {source} are done"]
    assert done[0] == done[1]
    assert result.after is not None
    assert whole.after is not None
    assert result.after.swap_error == pytest.approx(whole.after.swap_error, rel=1e-12)
    assert sorted(item.name for item in tmp_path.iterdir()) == sorted(
        ["in.csv", "run.state", f"out.{ending}", f"whole.{ending}"]
    )


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("n", [300, 900])
def test_rows_that_were_added_since_are_next(tmp_path: Path, ending: str, n: int) -> None:
    """Also where the first rows, which settle the range and the bands, were fewer than usual."""
    columns = table()
    columns["x"] = columns["x"].round(2)
    question = TaskConfig("y", "p", groups=["x"], prefix=500)
    source, out, state = csv(tmp_path / "in.csv", columns, n), tmp_path / f"out.{ending}", tmp_path / "run.state"
    run(source, question, out=out, state=state, horizon=1500)
    csv(source, columns)
    result = run(source, question, out=out, state=state, horizon=1500)
    assert result.counts.rows == result.counts.scored == 1500
    whole = TaskConfig("y", "p", groups=["x"], prefix=min(n, 500))
    expected = run(source, whole, out=tmp_path / f"whole.{ending}", horizon=1500)
    assert out.read_bytes() == (tmp_path / f"whole.{ending}").read_bytes()
    assert expected.after is not None
    assert result.after is not None
    assert result.after.swap_error == pytest.approx(expected.after.swap_error, rel=1e-12)


def test_what_a_state_does_not_belong_to_is_refused(tmp_path: Path) -> None:
    columns, state = table(), tmp_path / "run.state"
    out: dict[str, Any] = {"out": tmp_path / "out.csv", "state": state}
    run(columns, QUESTION, seed=1, **out)
    before = (tmp_path / "out.csv").read_bytes(), state.read_bytes()
    with pytest.raises(StateFileError, match="with seed=1, and this one has seed=2"):
        run(columns, QUESTION, seed=2, **out)
    with pytest.raises(StateFileError, match=r"with out='out.csv', and this one has out='other.csv'"):
        run(columns, QUESTION, seed=1, out=tmp_path / "other.csv", state=state)
    with pytest.raises(StateFileError, match="with groups="):
        run(columns, TaskConfig("y", "p", groups=["g"], prefix=500), seed=1, **out)
    late = changed(columns, y=np.where(np.arange(1500) == 1400, 1 - columns["y"], columns["y"]))
    with pytest.raises(StateFileError, match=r"the first 1,500 rows of .* are not those"):
        run(late, QUESTION, seed=1, **out)
    with pytest.raises(StateFileError, match="does not begin with the rows"):
        run(table(seed=9), QUESTION, seed=1, **out)
    with pytest.raises(StateFileError, match=r"has 1,000 rows, and the state file .* has 1,500 of them done"):
        run({name: values[:1000] for name, values in columns.items()}, QUESTION, seed=1, **out)
    state.write_bytes(before[1][:1000])
    with pytest.raises(StateFileError, match="is not a whole state file"):
        run(columns, QUESTION, seed=1, **out)
    state.write_bytes(before[1])
    assert (tmp_path / "out.csv").read_bytes() == before[0]


def test_a_mistake_in_the_file_can_be_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows before the mistake are kept; after its correction the run goes on."""
    monkeypatch.setattr(checkpoint, "COMMIT_SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "COMMIT_SHARE", 0.0)
    columns = {name: values.astype(object) for name, values in table().items()}
    whole = csv(tmp_path / "whole.csv", columns)
    source = csv(tmp_path / "in.csv", changed(columns, p=[*columns["p"][:1200], "oops", *columns["p"][1201:]]))
    settings: dict[str, Any] = {"out": tmp_path / "out.csv", "state": tmp_path / "run.state"}

    def attempt() -> Result:
        return run(read(source, columns=QUESTION.columns, batch_rows=250), QUESTION, **settings)

    with pytest.raises(DataError, match="row 1201, column 'p': 'oops' is not a number"):
        attempt()
    source.write_bytes(whole.read_bytes())
    attempt()
    run(whole, QUESTION, out=tmp_path / "expected.csv")
    assert settings["out"].read_bytes() == (tmp_path / "expected.csv").read_bytes()


def test_functions_of_your_own_survive_a_stop(tmp_path: Path) -> None:
    columns = table()
    question = TaskConfig("y", "p", groups=["g", ("old", lambda row: float(row["x"] > 0.5))], prefix=500)
    settings: dict[str, Any] = {"out": tmp_path / "out.csv", "state": tmp_path / "run.state"}
    with pytest.raises(Stopped):
        run(read(columns, batch_rows=500), question, stop=stopping_after(1), **settings)
    result = run(columns, question, **settings)
    assert "old" in result.first.groups
    np.testing.assert_array_equal(
        written(tmp_path / "out.csv")["forecast"], outputs_of(tmp_path, columns, question)["forecast"]
    )


def test_a_sharp_hint_gets_a_finer_grid_and_keeps_its_loss() -> None:
    rng = np.random.default_rng(3)
    truth = 0.5 + 0.4 * np.tanh(np.cumsum(rng.normal(0.0, 0.03, 6_000)))
    columns = {"y": truth + 0.01 * rng.normal(size=6_000), "p": truth, "g": np.where(np.arange(6_000) % 2, "a", "b")}
    question = TaskConfig("y", "p", groups=["g"], low=-0.1, high=1.1)
    usual, finer = (run(columns, question, bins=bins, seed=1) for bins in (15, None))
    assert (finer.config.bins or 0) > 30 > 15 == usual.config.bins
    ratios = [each.change.after / each.change.before for each in (usual, finer) if each.change is not None]
    assert ratios[1] < 1.05 < 1.5 < ratios[0]

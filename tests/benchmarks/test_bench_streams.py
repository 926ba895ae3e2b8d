"""The five streams, on small files of the same formats: what is scored, what the model may see, what is shown."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import swapcal as sc
from swapcal import cli
from swapcal_benchmarks.streams import STREAMS, measure
from swapcal_benchmarks.streams.models import frozen, with_past
from swapcal_benchmarks.streams.recorded import load
from swapcal_benchmarks.streams.stream_row import StreamErrors, StreamRow
from swapcal_benchmarks.streams.streams_page import misses

N = 400


def _write(path: Path, columns: dict[str, Any]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _tables() -> dict[str, dict[str, Any]]:
    """The five files, with columns by the names that they have there."""
    rng, t = np.random.default_rng(0), np.arange(N)

    def words(text: str) -> list[str]:
        return [str(word) for word in rng.choice(text.split(), N)]

    texts = ["workclass", "education", "marital_status", "occupation", "relationship", "race", "sex", "native_country"]
    numbers = ["fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week"]
    whole = {"season": 4, "yr": 2, "mnth": 12, "holiday": 2, "weekday": 7, "workingday": 2, "weathersit": 3}
    age, chance, hours = rng.integers(17, 80, N), rng.random(N).round(3), t % 24
    won = (rng.random(N) < chance).astype(float)
    won[-1] = 0.5
    level = [str(value) for value in rng.integers(0, 300, N)]
    level[0] = level[150] = ""
    adult = {"age": age, **{name: words("a b c") for name in texts}}
    adult |= {name: rng.integers(0, 50, N) for name in numbers}
    elec2 = {"t": t, "period": t % 48 / 47}
    elec2 |= {name: rng.random(N) for name in ("nswprice", "nswdemand", "vicprice", "vicdemand", "transfer")}
    games = {"league": words("nfl nba"), "season": 2015 + t // 100, "date": ["2015-09-10"] * N}
    games |= {"team1": words("Bears Bulls Cubs"), "team2": words("Jets Nets Mets"), "dh": [""] * N}
    bikes = {"instant": t, "dteday": ["2011-01-01"] * N, **{name: rng.integers(0, k, N) for name, k in whole.items()}}
    bikes |= {"hr": hours, **{name: rng.random(N).round(3) for name in ("temp", "atemp", "hum", "windspeed")}}
    air = {"No": t, "year": 2010 + t // 100, "month": 1 + t // 34, "day": [1] * N, "hour": hours, "pm2.5": level}
    air |= {name: rng.normal(0, 10, N).round(1) for name in ("DEWP", "TEMP", "PRES", "Iws")}
    return {
        "adult": adult | {"income": np.where(rng.random(N) < age / 100, ">50K", "<=50K"), "split": ["train"] * N},
        "elec2": elec2 | {"class": rng.integers(0, 2, N)},
        "fte_games": games | {"prob1": chance, "prob1_outcome": won, "prob2": 1 - chance, "prob2_outcome": 1 - won},
        "bike_hour": bikes | {"casual": 0 * t, "registered": 0 * t, "cnt": rng.poisson(20 + 3 * hours + t / 10)},
        "beijing_pm25": air | {"cbwd": words("NW SE cv"), "Is": 0 * t, "Ir": 0 * t},
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("streams")
    for name, columns in _tables().items():
        _write(directory / f"{name}.csv", columns)
    return directory


def test_every_question_of_every_stream_has_its_rows(folder: Path) -> None:
    rows = measure(folder, list(STREAMS), seeds=1)
    asked = [(row.stream, row.question, row.model) for row in rows if row.hint == "the model"]
    pair = ("trees", "trees + past")
    assert asked == [
        ("adult", "mean", "trees"),
        *(("elec2", "mean", model) for model in pair),
        ("fte_games", "mean", "published"),
        *(
            (name, question, model)
            for name in ("bike_hour", "beijing_pm25")
            for question in ("mean", "quantile 0.9", "expectile 0.8")
            for model in pair
        ),
    ]
    assert len(rows) == 2 * len(asked)
    assert {row.n_rounds for row in rows if row.stream == "beijing_pm25"} == {N * 4 // 5 - 1}, "a row has no outcome"
    assert {row.jitter for row in rows if row.question == "quantile 0.9"} == {1.0}
    bike = next(row for row in rows if row.stream == "bike_hour")
    outcomes = load(folder, "bike_hour").y
    assert (bike.low, bike.high) == (0.0, outcomes[: N // 5].max())
    assert bike.clipped == np.count_nonzero(outcomes[N // 5 :] > bike.high) > 0
    assert sum(row.halved and row.loss_kept for row in rows) + len(misses(rows)) == len(rows)


def test_numbers_are_those_of_the_public_functions(folder: Path) -> None:
    row = measure(folder, ["fte_games"], seeds=2)[0]
    stream = load(folder, "fte_games")
    assert stream.forecast is not None
    y, p = stream.y[N // 5 :], stream.forecast[N // 5 :]
    groups = [sc.Groups(list(stream.table)) for _ in range(3)]
    for each in groups:
        each.fit(stream.groups(slice(N // 5)))
    table = stream.groups(slice(N // 5, None))
    forecasters = [sc.Forecaster(sc.Mean(), groups[seed], seed=seed) for seed in (0, 1)]
    ours = [each.run(table, y, p) for each in forecasters]
    rows = groups[2].rows(table, len(y))
    for k, q in enumerate(ours):
        values = forecasters[k].values
        spoken = values[np.abs(q[:, None] - values).argmin(axis=1)]
        expected = sc.swap_multicalibration_error(y, spoken, rows, hypotheses=groups[2])
        assert row.after[k].swap == pytest.approx(expected, rel=1e-12)
        assert row.losses_after[k] == pytest.approx(np.mean((q - y) ** 2), rel=1e-12)
    assert row.loss_before == pytest.approx(np.mean((p - y) ** 2), rel=1e-12)
    assert row.difference == pytest.approx(np.mean(row.losses_after) - row.loss_before, rel=1e-9)
    rounded = sc.Audit(sc.Mean(), groups[2], bins=48)
    rounded.update_many(y, p, rows)
    assert row.before["48 bins"].swap == pytest.approx(rounded.swap_multicalibration(), rel=1e-12)
    assert row.before["48 bins"].group == pytest.approx(rounded.multicalibration(), rel=1e-12)
    values = forecasters[0].values
    assert row.values == len(values)
    cells = np.digitize(p, 0.5 * (values[1:] + values[:-1]))
    assert np.abs(values[cells] - p).tolist() == pytest.approx(np.abs(p[:, np.newaxis] - values).min(axis=1).tolist())
    bins = np.minimum((p * 48).astype(int), 47)
    equal = sum((p - y)[bins == k].sum() ** 2 / np.count_nonzero(bins == k) for k in np.unique(bins))
    assert row.before["48 cells"].overall == pytest.approx(equal, rel=1e-9)
    for way, said in (("our cells", p), ("our values", values[cells])):
        errors = ((said - y)[cells == k] for k in np.unique(cells))
        overall = sum(each.sum() ** 2 / len(each) for each in errors)
        assert row.before[way].overall == pytest.approx(overall, rel=1e-9)


@pytest.mark.parametrize("question", [sc.Mean(high=500.0), sc.Quantile(0.9, high=500.0), sc.Expectile(0.8, high=500.0)])
def test_the_model_is_frozen_and_sees_no_outcome_early(folder: Path, question: Any) -> None:
    stream = load(folder, "bike_hour")
    y = stream.y.copy()
    y[N // 2 :] = y[N // 2 :][::-1]
    other = replace(stream, y=y)
    assert not np.array_equal(stream.y, other.y)
    np.testing.assert_array_equal(frozen(stream, question, past=False), frozen(other, question, past=False))
    with_lags, with_other_lags = (frozen(each, question, past=True) for each in (stream, other))
    np.testing.assert_array_equal(with_lags[: N // 2 + 1], with_other_lags[: N // 2 + 1])
    assert not np.array_equal(with_lags, with_other_lags)


def test_the_past_is_the_last_known_outcome_and_that_of_a_day_ago(folder: Path) -> None:
    stream = load(folder, "beijing_pm25")
    last, day_ago = with_past(stream)[:, -2:].T
    assert np.isnan(last[:2]).all(), "the first outcome is missing"
    assert last[2] == stream.y[1]
    assert np.isnan(stream.y[150])
    assert last[151] == stream.y[149]
    np.testing.assert_array_equal(day_ago[25:100], stream.y[1:76])


def _row(before: float, after: tuple[float, ...], losses: tuple[float, ...]) -> StreamRow:
    one = StreamErrors(before, before, before)
    ways = {"our cells": one, "our values": StreamErrors(2 * before, 0.0, 0.0), "48 cells": one, "48 bins": one}
    return StreamRow(
        "adult", "income", "mean", "trees", "the model", n_rounds=1000, n_groups=3, values=8, low=0.0, high=1.0,
        jitter=0.0, clipped=0, hints_clipped=0, before=ways, after=tuple(StreamErrors(*[each] * 3) for each in after),
        guaranteed=100.0, loss_before=1.0, losses_after=losses, difference=0.0, interval=(-0.1, 0.1), rounding=1.0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "losses", "halved", "kept"),
    [
        (10.0, (4.0, 5.0), (1.0, 1.005), True, True),
        (10.0, (4.0, 5.1), (1.0, 1.0), False, True),
        (10.0, (4.0, 4.0), (1.0, 1.006), True, False),
        (3.0, (4.0, 4.0), (0.5, 0.5), True, True),
        (5.0, (5.1, 4.0), (0.5, 0.5), False, True),
    ],
)
def test_a_row_meets_the_criterion_with_every_seed_or_is_named(
    before: float, after: tuple[float, ...], losses: tuple[float, ...], halved: bool, kept: bool
) -> None:
    row = _row(before, after, losses)
    assert (row.halved, row.loss_kept) == (halved, kept)
    assert len(misses([row])) == (not (halved and kept))
    # 0.8 T^(1/3) is 8: of a model and of the rounded model the smallest error above that is to be halved.
    assert row.to_halve == {3.0: None, 5.0: 10.0, 10.0: 10.0}[before]


def test_the_command_prints_and_writes_the_page(folder: Path, tmp_path: Path) -> None:
    arguments = ["bench", "streams", str(folder), "--only", "fte_games"]
    shown = CliRunner().invoke(cli.app, [*arguments, "--docs", str(tmp_path / "docs")])
    assert shown.exit_code == 0, shown.output
    assert "Swap error, hint = the model" in shown.stdout
    text = (tmp_path / "docs" / "streams.md").read_text(encoding="utf-8")
    assert str(folder) not in text
    data = json.loads(CliRunner().invoke(cli.app, [*arguments, "--json"]).stdout)
    assert [row["hint"] for row in data["rows"]] == ["the model", "learning on the model"]
    assert len(data["rows"][0]["after"]) == 3
    assert all(f"- {line}." in text for line in data["summary"])


def test_what_is_wrong_is_said_in_a_sentence(folder: Path, tmp_path: Path) -> None:
    for arguments, words in (
        ([str(folder), "--only", "adlt"], "no stream 'adlt'"),
        ([str(folder), "--only", ","], "names no stream"),
        ([str(tmp_path), "--only", "elec2"], "elec2.csv"),
    ):
        result = CliRunner().invoke(cli.app, ["bench", "streams", *arguments])
        assert result.exit_code == 2
        assert words in result.stderr
        assert "Traceback" not in result.output
    _write(tmp_path / "elec2.csv", {"t": [1, 2], "class": [0, 1]})
    assert "too few rows" in CliRunner().invoke(cli.app, ["bench", "streams", str(tmp_path), "--only", "elec2"]).stderr

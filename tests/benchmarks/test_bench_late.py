"""The bench of late outcomes, on short streams: what rivals may see, what is scored, and what is said of targets."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, QuantileRegressor
from typer.testing import CliRunner

from swapcal import cli
from swapcal.properties import Mean, Quantile
from swapcal.protocols import Rows
from swapcal.simulate import streams as delayed
from swapcal_benchmarks.late import LateSource, LateStream, measure, paired, streams
from swapcal_benchmarks.late.late_cache import LateCache
from swapcal_benchmarks.late.late_command import late_report
from swapcal_benchmarks.late.late_delays import NEVER, delays
from swapcal_benchmarks.late.late_files import FILES, half_of_file
from swapcal_benchmarks.late.late_rivals import ISOTONIC, REFIT, RIVALS, refit_rows, rival, rivals_of, with_groups
from swapcal_benchmarks.late.late_rows import LateRow, measure_rows
from swapcal_benchmarks.late.late_scores import Pair
from swapcal_benchmarks.late.late_stream import EVENT, QUANTILE, REPORTED, TUNING
from swapcal_benchmarks.late.late_targets import late_targets
from swapcal_benchmarks.late.regression import Regression

N = 2000


def _stream(label: str, n_rounds: int = N) -> LateStream:
    (found,) = streams(None, [label], n_rounds=n_rounds)
    return found


def _coins(y: list[float], p: float, kind: str = EVENT) -> LateStream:
    n = len(y)
    rows = Rows(np.arange(n + 1), np.zeros(n, dtype=np.int64), np.ones(n))
    asked = Quantile(0.9) if kind == QUANTILE else Mean()
    none = np.zeros(n, dtype=np.int64)
    source = LateSource("coins", kind, asked, np.array(y), np.full(n, p), rows, 1, none, TUNING)
    return LateStream(source, "at once", delayed.fixed(n, 1))


def test_simulations_have_every_delay_in_both_halves() -> None:
    found = [(stream.delay, stream.source.half, stream.depends) for stream in streams(None, n_rounds=200)]
    names = {"at once", "200 rows", "2,000 rows", "by day", "heavy tail", "high ones fast", "high ones slow", NEVER}
    assert {delay for delay, half, _ in found if half == TUNING} == names | {"one to three weeks"}
    assert {delay for delay, half, _ in found if half == REPORTED} == names | {"one to three weeks"}
    assert {delay for delay, _, depends in found if depends} == {"high ones fast", "high ones slow", NEVER}


def test_files_are_reported_and_for_tuning_by_turns() -> None:
    reported = {name for name in FILES if half_of_file(name) == REPORTED}
    assert reported == {"adult", "bike_hour", "fte_games", "no_shows"}


def test_a_model_that_is_right_covers_what_it_says() -> None:
    wide, narrow = (_stream(f"weekly, {name}, 0.95 quantile, seed 1") for name in ("right", "too narrow"))
    assert measure(wide, wide.p).coverage == pytest.approx(0.95, abs=0.03)
    assert measure(narrow, narrow.p).coverage == pytest.approx(0.86, abs=0.03)


def test_scores_by_hand() -> None:
    stream = _coins([1.0, 0.0, 1.0, 1.0], 0.5)
    assert measure(stream, np.full(4, 0.75)).loss == pytest.approx(100 * (0.1875 / 0.25 - 1))
    pinball = _coins([0.2, 0.4, 0.6, 1.0], 0.5, QUANTILE)
    score = measure(pinball, np.full(4, 0.8))
    # The model: 0.1 (0.3 + 0.1) + 0.9 (0.1 + 0.5); the other: 0.1 (0.6 + 0.4 + 0.2) + 0.9 0.2.
    assert score.loss == pytest.approx(100 * (0.3 / 0.58 - 1))
    assert score.coverage == 0.75
    assert score.worst_bias is None
    pair = paired(stream, np.full(4, 0.75), stream.p)
    assert pair.difference == pytest.approx(-25.0)
    many = _coins([1.0, 0.0] * 1000, 0.4)
    assert measure(many, many.p).worst_bias == pytest.approx(0.1)


def test_two_standard_errors_decide() -> None:
    assert Pair(2.1, 1.0).behind
    assert not Pair(1.9, 1.0).behind
    assert Pair(-2.1, 1.0).ahead


_ALL = [
    (label, name)
    for label in ("group bias, event, seed 1, heavy tail", "group bias, 0.9 quantile, seed 1, by day")
    for name in rivals_of(_stream(label))
]


@pytest.mark.parametrize(("label", "name"), _ALL)
def test_rivals_use_what_is_known_and_nothing_else(label: str, name: str) -> None:
    stream = _stream(label)
    forecasts = rival(stream, name, LateCache(None))
    first = next(start for start, _, used in refit_rows(stream) if used)
    np.testing.assert_allclose(forecasts[:first], stream.p[:first], rtol=1e-6)
    assert not np.allclose(forecasts[first:], stream.p[first:])
    hidden = np.where(stream.known > 1200, 1.0 - stream.y, stream.y)
    later = np.where(np.arange(N) > 1200, 0.5 * stream.p, stream.p)
    other = rival(replace(stream, source=replace(stream.source, y=hidden, p=later)), name, LateCache(None))
    np.testing.assert_array_equal(other[:1201], forecasts[:1201])
    assert not np.array_equal(other, forecasts)


def test_isotonic_regression_is_no_rival_for_quantiles() -> None:
    event, quantile = (_stream(f"group bias, {kind}, seed 1, by day") for kind in ("event", "0.9 quantile"))
    assert rivals_of(event) == list(RIVALS)
    assert set(rivals_of(event)) - set(rivals_of(quantile)) == {ISOTONIC}


def test_a_refit_gains_most_of_what_hindsight_gains() -> None:
    stream = _stream("group bias, event, seed 1, 200 rows", 6000)
    columns = with_groups(stream)
    hindsight = LogisticRegression(fit_intercept=False, max_iter=1000).fit(columns, stream.y)
    best = measure(stream, hindsight.predict_proba(columns)[:, 1]).loss
    forecasts = rival(stream, REFIT, LateCache(None))
    assert best < measure(stream, forecasts).loss < 0.6 * best < 0.0


def test_regressions_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    x = np.column_stack([np.ones(1500), rng.normal(size=1500), rng.random(1500) < 0.3]).astype(float)
    y = (rng.random(1500) < 1 / (1 + np.exp(-x @ [0.5, 1.0, -1.0]))).astype(float)
    fit = Regression("event", 0.5, 3)
    for n in (500, 800, 1500):
        fit.refit(x[:n], y[:n], np.zeros(n))
    exact = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-8).fit(x, y).coef_[0]
    np.testing.assert_allclose(fit.weights, exact, atol=0.01)
    real = x @ [0.5, 1.0, -1.0] + rng.normal(size=1500)
    quantile = Regression("quantile", 0.9, 3)
    quantile.refit(x, real, np.zeros(1500))
    exact = QuantileRegressor(quantile=0.9, alpha=0.0, fit_intercept=False).fit(x, real).coef_
    np.testing.assert_allclose(quantile.weights, exact, atol=0.08)
    assert np.mean(real <= quantile.predicted(x, np.zeros(1500))) == pytest.approx(0.9, abs=0.01)


def test_what_rivals_forecast_is_kept_until_the_stream_changes(tmp_path: Path) -> None:
    stream = _stream("group bias, mean, seed 1, by day")
    cache = LateCache(tmp_path)
    first = rival(stream, REFIT, cache)
    (kept,) = tmp_path.iterdir()
    np.save(kept, np.zeros(N))
    np.testing.assert_array_equal(rival(stream, REFIT, cache), np.zeros(N))
    moved = replace(stream, known=stream.known + 1)
    assert np.abs(rival(moved, REFIT, cache) - first).max() < 0.2
    assert len(list(tmp_path.iterdir())) == 2


@pytest.fixture(scope="module")
def rows() -> list[LateRow]:
    wanted = ["right, event, seed 2, 200", "turning, event, seed 2, high ones slow", "right and sharp, mean, seed 2"]
    return measure_rows(streams(None, wanted, n_rounds=1000), LateCache(None))


def test_targets_are_met_or_missed_by_the_numbers_of_rows(rows: list[LateRow]) -> None:
    by_name = {target.asked: target for target in late_targets(rows, {"learning, 100 rows": 1.5})}
    assert len(by_name) == 4
    assert by_name["`run(known=)`, learning, 100 rows: at most 1.2 times the time at once"].met is False
    sharp = next(row for row in rows if "sharp" in row.stream)
    target = by_name["right and sharp at once, mean: worst +0.20 %"]
    assert target.met == (sharp.loss() <= 0.2)
    recorded = [replace(row, recorded=True, pairs={REFIT: Pair(1.0, 0.1)}) for row in rows]
    (behind,) = late_targets(recorded, {})
    assert (behind.met, behind.measured, len(behind.misses)) == (False, "3 of 3", 3)


def test_the_command_writes_a_page_and_reads_an_earlier_run(tmp_path: Path) -> None:
    call = ["bench", "late", "--rows", "weekly, too narrow, 0.95 quantile, seed 2", "--cache", str(tmp_path / "kept")]
    shown = CliRunner().invoke(cli.app, [*call, "--json"])
    data = json.loads(shown.stdout)
    assert [row["stream"] for row in data["rows"]] == ["weekly, too narrow, 0.95 quantile, seed 2"]
    earlier = tmp_path / "late.json"
    earlier.write_text(shown.stdout)
    shown = CliRunner().invoke(cli.app, [*call, "--before", str(earlier), "--docs", str(tmp_path)])
    assert "Coverage of quantiles" in shown.stdout
    assert "## Targets" in (tmp_path / "late.md").read_text()
    wrong = CliRunner().invoke(cli.app, [*call, "--before", str(tmp_path / "late.md")])
    assert wrong.exit_code == 2
    assert "must be what" in wrong.stderr
    wrong = CliRunner().invoke(cli.app, ["bench", "late", "--rows", "nothing of this name"])
    assert wrong.exit_code == 2


def test_real_delays_are_read_from_the_file(tmp_path: Path) -> None:
    n = 200
    days = np.datetime64("2016-04-01") + np.arange(n) // 10
    columns = {
        "booked": [f"{day}T08:00:{t % 10:02d}Z" for t, day in enumerate(days)],
        "appointment": [f"{day}T00:00:00Z" for day in days + 2],
        "known": [f"{day}T00:00:00Z" for day in days + 3],
        **{name: ["1" if t % 3 else "0" for t in range(n)] for name in ("scholarship", "sms", "no_show")},
        **{name: ["0"] * n for name in ("hypertension", "diabetes", "alcoholism", "handicap")},
        "sex": ["F", "M"] * (n // 2),
        "age": [str(t % 90) for t in range(n)],
        "neighbourhood": ["A", "B", "C", "D"] * (n // 4),
    }
    lines = [",".join(columns), *(",".join(values) for values in zip(*columns.values(), strict=True))]
    (tmp_path / "no_shows.csv").write_text("\n".join(lines) + "\n")
    (real,) = streams(tmp_path, ["no_shows, real"], cache=None)
    assert len(real.y) == n - n // 5
    assert real.known[0] == 30.0
    assert real.known[9] == 30.0
    assert real.known[10] == 40.0
    assert np.all(np.isinf(real.known[-30:]) | (real.known[-30:] >= len(real.y)))
    report = late_report(tmp_path, ["no_shows, real"], cache=tmp_path / "kept")
    assert "real delays of no-shows" in report.text
    assert {stream.delay for stream in delays(real.source)} >= {"real", "by day"}

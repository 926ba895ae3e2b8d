"""Outcomes that come late: by their times, or filled in later, in the file or by a second one; each is learned once."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import swapcal as sc
from commands import run
from swapcal.errors import DataError, InvalidInput, StateFileError
from swapcal.tasks.config import TaskConfig

TIMED = 900


# Known by their times


def timed(seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.1, 0.9, TIMED)
    day = np.datetime64("2026-01-01") + (np.arange(TIMED) // 30).astype("timedelta64[D]")
    return {
        "y": (rng.random(TIMED) < p**2).astype(float),
        "p": p,
        "g": rng.integers(0, 3, TIMED),
        "day": day.astype(str),
    }


def test_a_delay_and_a_column_are_one_thing(tmp_path: Path) -> None:
    """A day later by --delay 1d, and by a column that says so; without either, the column of times is named."""
    columns = timed()
    columns["known"] = (columns["day"].astype("datetime64[D]") + np.timedelta64(1, "D")).astype(str)
    written, asked = [], list[dict[str, Any]]([{"delay": "1d"}, {"known": "known"}])
    for late in asked:
        run(columns, TaskConfig("y", "p", time="day", **late), seed=4, out=tmp_path / "out.csv", overwrite=True)
        written.append((tmp_path / "out.csv").read_bytes())
    assert written[0] == written[1]
    pd.DataFrame(columns).to_csv(tmp_path / "in.csv", index=False)
    at_once = run(tmp_path / "in.csv", TaskConfig("y", "p"), seed=4)
    assert "--time day --delay 2d" in " ".join(at_once.verdict.sentences)


def test_times_that_are_unknown_are_counted() -> None:
    known = np.where(np.arange(TIMED) % 7 == 0, np.nan, np.arange(1, TIMED + 1) + 3.0)
    lateness = run({**timed(), "k": known}, TaskConfig("y", "p", known="k"), seed=1).lateness
    assert (lateness.n_pending, lateness.n_expired) == (np.isnan(known).sum() + np.count_nonzero(known > TIMED), 0)


SECOND, SOON = ["2026-01-02"] * 5 + ["2026-01-01"] * (TIMED - 5), ["2026-01-02", *["soon"] * (TIMED - 1)]


@pytest.mark.parametrize(
    ("change", "question", "sentence"),
    [
        ({"day": SECOND}, {"time": "day", "delay": "1d"}, "row 6 of .* an earlier"),
        ({"day": SOON}, {"time": "day", "delay": "1d"}, "'soon', which is no time"),
        ({"k": [1.0] * TIMED}, {"known": "k"}, "row 2 of .* is known before the row itself"),
        ({}, {"delay": "1d"}, "add --time COLUMN"),
        ({}, {"delay": "tomorrow"}, "a delay is a number of rows"),
        ({}, {"order": "forecast"}, "add --known or --delay"),
        ({}, {"delay": "5", "order": "sideways"}, "order must be"),
    ],
)
def test_impossible_times_get_a_sentence(change: dict[str, Any], question: dict[str, Any], sentence: str) -> None:
    with pytest.raises((DataError, InvalidInput), match=sentence):
        run({**timed(), **change}, TaskConfig("y", "p", **question), seed=1)


def test_outcomes_are_learned_as_the_forecaster_does_by_arrival_or_in_order(tmp_path: Path) -> None:
    """Moments are row numbers from 1 on, or a delay in rows."""
    rng, n = np.random.default_rng(4), 1_500
    x, y = rng.random(n) < 0.4, rng.random(n) < 0.5
    columns = {"y": y.astype(float), "g": x, "known": np.arange(n) + 1 + np.where(y, 300, 5)}
    contexts, forecasts = np.column_stack([np.ones(n), ~x, x]).astype(float), []
    for order in ("forecast", "arrival"):
        asked = TaskConfig("y", groups=["g"], low=0.0, high=1.0, known="known", order=order, learn=False, seed=3)
        run(columns, asked, out=tmp_path / f"{order}.csv")
        forecasts.append(np.loadtxt(tmp_path / f"{order}.csv", delimiter=",", skiprows=1)[:, 1])
        forecaster = sc.Forecaster(sc.Mean(), sc.Finite(3), seed=3)
        alone = forecaster.run(contexts, columns["y"], known=columns["known"] - 1.0, order=order)
        np.testing.assert_array_equal(forecasts[-1], alone)
    assert not np.array_equal(forecasts[0], forecasts[1])
    late = run(columns, TaskConfig("y", groups=["g"], low=0.0, high=1.0, delay="50", learn=False, seed=3))
    alone = sc.Forecaster(sc.Mean(), sc.Finite(3), seed=3).run(contexts, columns["y"], known=np.arange(n) + 50.0)
    assert late.after.loss == pytest.approx(np.mean((alone - columns["y"]) ** 2))
    assert (late.lateness.n_pending, late.lateness.n_late) == (50, n - 50)


# Filled in later

N, MORE = 400, 60


class Desk:
    """A table whose outcomes come later, on disk."""

    def __init__(self, folder: Path, seed: int = 1) -> None:
        self.folder, rng = folder, np.random.default_rng(seed)
        n = N + MORE
        self.p = rng.uniform(0.1, 0.9, n).round(6)
        self.y = (rng.random(n) < self.p**2).astype(float)
        self.g = rng.integers(0, 3, n)
        self.blank = (rng.random(n) < 0.2) | (np.arange(n) >= N - 50)
        self.said: list[str] = []

    def write(self, known: Any, n: int = N, name: str = "in.csv", y: Any = None) -> Path:
        """The first `n` rows, with the outcomes where `known`."""
        y = self.y if y is None else y
        with open(self.folder / name, "w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["booking", "y", "p", "g"])
            for t in range(n):
                table.writerow([f"b{t}", y[t] if known[t] else "", self.p[t], self.g[t]])
        return self.folder / name

    def tell(self, rows: Any, y: Any = None) -> Path:
        path = self.folder / "outcomes.csv"
        y = self.y[rows] if y is None else y
        path.write_text("booking,y\n" + "".join(f"b{t},{v}\n" for t, v in zip(rows, y, strict=True)))
        return path

    def run(self, path: Path, outcomes: Path | None = None, **question: Any) -> Any:
        self.said = []
        asked = TaskConfig("y", "p", groups=["g"], **{"later": True, **question})
        files: dict[str, Any] = {"out": self.folder / "out.csv", "state": self.folder / "run.state"}
        return run(path, asked, learn=True, seed=3, outcomes=outcomes, say=self.hear, horizon=1000, **files)

    def hear(self, sentence: str) -> None:
        self.said.append(sentence.replace(f"{self.folder}/", ""))

    def forecasts(self) -> list[float]:
        with open(self.folder / "out.csv", newline="") as file:
            return [float(row["forecast"]) for row in csv.DictReader(file)]

    def alone(self, order: Any, rows: int) -> list[float]:
        """What predict and update give: the first N rows, then the outcomes in `order`, then the others."""
        groups = sc.Groups(["g"], limit=2 * 3 + 64)
        groups.fit({"g": [str(v) for v in self.g[:N]]})
        forecaster = sc.Forecaster(sc.Mean(), groups, seed=3, hint=sc.OnlineRegression(), horizon=1000)
        made: list[sc.Forecast] = []
        for t in range(rows):
            if t == N:
                for late in order:
                    forecaster.update(made[late], self.y[late])
            made.append(forecaster.predict({"g": str(self.g[t])}, self.p[t]))
            if not self.blank[t]:
                forecaster.update(made[t], self.y[t])
        return [float(each) for each in made]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_refilled_file_is_update_in_the_order_of_its_rows(desk: Desk) -> None:
    first = desk.run(desk.write(~desk.blank))
    before = desk.forecasts()
    late = np.flatnonzero(desk.blank[:N])
    assert first.lateness.n_pending == len(late)
    come = ~desk.blank | (np.arange(len(desk.blank)) < N)
    result = desk.run(desk.write(come, N + MORE))
    assert f"learned from {len(late)} outcomes" in desk.said[0]
    after = desk.forecasts()
    assert after[:N] == before
    assert after == desk.alone(late.tolist(), N + MORE)
    assert result.counts.scored == np.count_nonzero(come)
    assert result.lateness.n_pending == np.count_nonzero(~come)
    assert result.after.loss == pytest.approx(float(np.mean((np.array(after) - desk.y)[come] ** 2)))
    assert result.before.loss == pytest.approx(float(np.mean((desk.p - desk.y)[come] ** 2)))


def test_a_second_file_is_update_in_its_order(desk: Desk) -> None:
    desk.run(desk.write(~desk.blank), id="booking")
    late = np.random.default_rng(2).permutation(np.flatnonzero(desk.blank[:N]))
    half = len(late) // 2
    result = desk.run(desk.write(~desk.blank), desk.tell(late[:half]), id="booking")
    assert result.lateness.n_pending == len(late) - half
    result = desk.run(desk.write(~desk.blank, N + MORE), desk.tell(late), id="booking")
    assert f"learned from {len(late) - half} outcomes" in desk.said[0]
    assert len(desk.said) == 2  # and where it goes on
    assert desk.forecasts() == desk.alone(late.tolist(), N + MORE)
    assert result.counts.scored == np.count_nonzero(~desk.blank) + len(late)
    # Told once is told for good: neither file has anything new, also where the first has it by now.
    told = ~desk.blank | (np.arange(N + MORE) < N)
    for known in (~desk.blank, told):
        again = desk.run(desk.write(known, N + MORE), desk.tell(late), id="booking")
        assert desk.said == [f"nothing to do: all {N + MORE} rows of in.csv are done"]
        assert again.counts.scored == result.counts.scored
        assert (again.after.loss, again.after.swap_error) == (result.after.loss, result.after.swap_error)


def test_of_outcomes_that_were_corrected_the_last_one_counts(desk: Desk) -> None:
    late = np.flatnonzero(desk.blank[:N])
    told, y = np.concatenate([late, late[:5]]), np.concatenate([1.0 - desk.y[late[:5]], desk.y[late[5:]]])
    desk.run(desk.write(~desk.blank), id="booking", corrections=True)
    table = desk.tell(told, np.concatenate([y, desk.y[late[:5]]]))
    result = desk.run(desk.write(~desk.blank, N + MORE), table, id="booking", corrections=True)
    assert f"learned from {len(late)} outcomes" in desk.said[0]
    assert desk.forecasts() == desk.alone([*late[5:], *late[:5]], N + MORE)
    assert result.counts.scored == np.count_nonzero(~desk.blank) + len(late)
    # What was learned stays.
    desk.run(desk.write(~desk.blank, N + MORE), desk.tell(late, 1.0 - desk.y[late]), id="booking", corrections=True)
    assert f"{len(late)} outcomes are not those that were learned before, which stay" in "".join(desk.said)
    with pytest.raises(sc.InvalidInput, match="--outcomes"):
        TaskConfig("y", later=True, corrections=True)


@pytest.mark.parametrize("change", ["known to another", "known to blank", "a hint"])
def test_what_was_known_must_not_change(desk: Desk, change: str) -> None:
    path = desk.write(~desk.blank)
    desk.run(path)
    state = (desk.folder / "run.state").read_bytes()
    known, y = ~desk.blank, desk.y.copy()
    at = int(np.flatnonzero(known[:N])[7])
    if change == "known to another":
        y[at] = 1.0 - y[at]
    elif change == "known to blank":
        known[at] = False
    else:
        desk.p[at] = 0.123
    with pytest.raises(StateFileError, match=r"does not begin with the rows|blank outcomes that were filled in aside"):
        desk.run(desk.write(known, y=y))
    assert (desk.folder / "run.state").read_bytes() == state


def test_unknown_repeated_and_changed_names_get_a_sentence(desk: Desk) -> None:
    desk.run(desk.write(~desk.blank), id="booking")
    state = (desk.folder / "run.state").read_bytes()
    late = np.flatnonzero(desk.blank[:N]).tolist()
    known = int(np.flatnonzero(~desk.blank)[3])
    with pytest.raises(DataError, match=f"has 'b{late[0]}' twice"):
        desk.run(desk.write(~desk.blank), desk.tell([late[0], late[0]], [0.0, 1.0]), id="booking")
    assert (desk.folder / "run.state").read_bytes() == state
    rows = [late[0], late[0], late[1], known, N + 7]
    y = [desk.y[late[0]], desk.y[late[0]], desk.y[late[1]], 1.0 - desk.y[known], 1.0]
    desk.run(desk.write(~desk.blank), desk.tell(rows, y), id="booking")
    assert desk.said == [
        "learned from 2 outcomes that have come since",
        f"1 outcome is not the one that was learned before, which stays (the first: row {known + 1} of in.csv)",
        f"1 outcome in outcomes.csv is of no row that was forecast so far ('b{N + 7}') and was left; give the file "
        "again when there is one",
    ]
    desk.run(desk.write(~desk.blank), desk.tell([late[0]], [1.0 - desk.y[late[0]]]), id="booking")
    assert desk.said[0].startswith("1 outcome is not the one that was learned before")
    text = (desk.folder / "in.csv").read_text()
    (desk.folder / "in.csv").write_text(text.replace("booking", "id", 1))
    with pytest.raises(DataError):
        desk.run(desk.folder / "in.csv", id="booking")


def test_a_name_of_two_rows_is_refused(desk: Desk) -> None:
    path = desk.write(~desk.blank)
    late = np.flatnonzero(desk.blank[:N]).tolist()
    path.write_text(path.read_text().replace(f"b{late[1]},", f"b{late[0]},"))
    desk.run(path, id="booking")
    state = (desk.folder / "run.state").read_bytes()
    with pytest.raises(DataError, match=f"rows {late[0] + 1} and {late[1] + 1} of .*in.csv both have"):
        desk.run(path, desk.tell([late[0]]), id="booking")
    assert (desk.folder / "run.state").read_bytes() == state


def test_what_came_too_late_is_counted(desk: Desk) -> None:
    first = desk.run(desk.write(~desk.blank), max_pending=100)
    gone = np.flatnonzero(desk.blank[: N - 100])
    assert first.lateness.n_expired == len(gone)
    come = np.ones(N, dtype=bool)
    result = desk.run(desk.write(come), max_pending=100)
    assert desk.said[1].startswith(f"{len(gone)} outcomes came after 100 later rows")
    assert result.counts.scored == N - len(gone)
    desk.run(desk.write(come), max_pending=100)
    assert desk.said == ["nothing to do: all 400 rows of in.csv are done"]


def test_weights_clipping_and_moments_go_together(desk: Desk) -> None:
    """Rows of no weight never wait; the range of the first rows holds; what has a moment is learned when it is due."""
    n, rng = N, np.random.default_rng(3)
    w, k = rng.integers(0, 3, n), np.arange(1, n + 1) + 30
    y = np.where(desk.y[:n] > 0, 0.9, 0.1)
    late = np.flatnonzero(desk.blank[:n])
    y[late[-1]] = 5.0  # above the largest of the first rows
    path = desk.folder / "weighted.csv"

    def write(known: Any) -> Path:
        lines = (f"{y[t] if known[t] else ''},{desk.p[t]},{w[t]},{k[t]}" for t in range(n))
        path.write_text("y,p,w,k\n" + "\n".join(lines) + "\n")
        return path

    asked = TaskConfig("y", "p", weight="w", known="k", later=True, high=2.0, low=0.0)
    files: dict[str, Any] = {"out": desk.folder / "out.csv", "state": desk.folder / "run.state", "seed": 1}
    first = run(write(~desk.blank), asked, **files)
    counted = (w > 0) & ~desk.blank[:n]
    assert first.counts.scored == np.count_nonzero(counted)
    assert first.lateness.n_pending == np.count_nonzero((w > 0) & (desk.blank[:n] | (k > n)))
    with pytest.warns(UserWarning, match="outside"):
        second = run(write(np.ones(n, dtype=bool)), asked, **files)
    assert second.counts.scored == np.count_nonzero(w > 0)
    assert second.counts.without_outcome == 0
    with pytest.warns(UserWarning, match="outside"):
        third = run(path, asked, **files)
    assert (third.after.loss, third.after.swap_error) == (second.after.loss, second.after.swap_error)
    assert third.counts.outcomes_outside == second.counts.outcomes_outside == 1


def test_what_is_missing_is_said(desk: Desk) -> None:
    path = desk.write(~desk.blank)
    with pytest.raises(InvalidInput, match="run without it first"):
        desk.run(path, desk.tell([0]), id="booking")
    (desk.folder / "out.csv").unlink(missing_ok=True)
    desk.run(path, later=False)
    with pytest.raises(StateFileError, match="begin with --later"):
        desk.run(desk.write(np.ones(N, dtype=bool)), later=False)

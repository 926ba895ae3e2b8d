"""`swapcal bench grid` at sizes that take seconds: the kept numbers are of the same streams, and misses are named."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from swapcal import cli
from swapcal_benchmarks.grid import GridRow, GridScores, Recipe, kept, measuring
from swapcal_benchmarks.grid.fresh import MOST, FreshRow, FreshStream, against
from swapcal_benchmarks.grid.grid_playing import hints_of, play, score
from swapcal_benchmarks.grid.grid_verdicts import verdicts
from swapcal_benchmarks.grid.hostile import Game
from swapcal_benchmarks.grid.measuring import GridResult, PlayedGame

SHORT = [recipe for recipe in kept.recipes_of(kept.FRESH) if recipe.n_rounds == 10_000]


@pytest.mark.parametrize("recipe", SHORT, ids=lambda recipe: recipe.name)
def test_the_kept_numbers_are_of_the_streams_that_the_recipes_make(recipe: Recipe) -> None:
    stream, old = recipe.stream(), kept.scores(kept.FRESH, recipe.name)
    assert old.keys() == {"none", "frozen", "learning", "truth"}
    assert stream.truth is not None
    for kind, p in (("frozen", stream.frozen), ("truth", stream.truth)):
        assert old[kind].hint_loss == pytest.approx(np.mean(stream.property.loss(p, stream.y)), rel=1e-6)
    assert old["none"].rate == pytest.approx(stream.y.mean(), rel=1e-6)


def test_scores_are_what_they_are_called() -> None:
    stream = Recipe("rare", 0.3, 2_000, 0).stream()
    hint = hints_of(stream)["frozen"]
    assert hint is not None
    p, said = play(stream, "frozen"), play(stream, "frozen", protect="nothing")
    assert not np.array_equal(p, said)
    found = score(stream, p, said, hint, rare=True)
    x = np.zeros((len(p), 30))
    for t in range(len(p)):
        inside = slice(stream.rows.indptr[t], stream.rows.indptr[t + 1])
        x[t, stream.rows.indices[inside]] = stream.rows.values[inside]
        x[t, 20 + min(int(10 * hint[t]), 9)] = 1.0
    swap = 0.0
    for value in np.unique(said):
        here = said == value
        swap += np.abs((said - stream.y)[here] @ x[here]).max() ** 2 / here.sum()
    assert found.swap == pytest.approx(swap, rel=1e-9)
    assert found.values == len(np.unique(said))
    assert found.loss == pytest.approx(np.mean((p - stream.y) ** 2))
    assert found.worst_group is not None
    everybody = abs(p.sum() / stream.y.sum() - 1.0)
    assert found.worst_group >= everybody - 1e-12
    assert found.near is not None
    assert np.abs(p - hint)[: found.near] == pytest.approx(0.0, abs=0.01)


def _row(stream: str, hint: str, ratio: float, **new: Any) -> GridRow:
    old = GridScores(swap=10.0, values=30, loss=1.0, mean=0.1, rate=0.1, hint_loss=1.0)
    plain: dict[str, Any] = {"swap": 10.0 * ratio, "values": 20, "loss": 1.0, "mean": 0.1, "rate": 0.1, "near": 12}
    return GridRow(kept.FRESH, stream, hint, 1_000, old, GridScores(**{**plain, "hint_loss": 1.0, **new}))


ROWS = [_row("mean", hint, 0.4) for hint in ("none", "frozen", "learning", "truth")]
GAMES = [
    PlayedGame(name, old, new, 3, 4)
    for name, old, new in (
        ("mean, far, T = 9", 1.0, 0.5),
        ("mean, turncoat, T = 9", 1.0, 1.0),
        ("mean, lure, T = 9", 0.1, 0.9),
    )
]
RARE = {"log_loss": 0.1, "hint_log_loss": 0.1, "truth_log_loss": 0.1}


@pytest.mark.parametrize(
    ("row", "word"),
    [
        (_row("mean", "frozen", 5.0), "geometric mean, hint: frozen"),
        (_row("mean", "truth", 1.2), "nine rows of ten"),
        (_row("rare 0.1", "none", 0.4, mean=0.106, **RARE), "within 5 % of the rate"),
        (_row("rare 0.1", "truth", 0.4, worst_group=0.2, **RARE), "within 15 % in groups"),
        (_row("rare 0.1", "truth", 0.4, **(RARE | {"log_loss": 0.1006})), "at most 0.5 % above the hint's"),
        (_row("rare 0.1", "frozen", 0.4, **RARE), "below that of a biased hint"),
        (_row("noise 0.005", "truth", 0.4, loss=1.03), "at most 2 % above the truth's"),
        (_row("mean", "truth", 0.4, near=3), "within 1 % of the hint"),
        (PlayedGame("mean, greedy, T = 9", 1.0, 1.2, 3, 3), "arena"),
        (PlayedGame("mean, far, no hint, T = 9", 1.0, 1.2, 3, 3), "the others"),
        (PlayedGame("mean, lure, T = 9", 5.0, 1.2, 3, 3), "the lure: at most"),
    ],
)
def test_a_row_that_misses_and_a_game_that_is_lost_are_named(row: GridRow | PlayedGame, word: str) -> None:
    assert all(each.met for each in verdicts(GridResult(ROWS, GAMES, same=True, fresh=[], before=[])))
    rows, games = ([], [row]) if isinstance(row, PlayedGame) else ([row], [])
    missed = [
        each
        for each in verdicts(GridResult([*ROWS, *rows], [*GAMES, *games], same=True, fresh=[], before=[]))
        if not each.met
    ]
    assert [each for each in missed if word in each.asked], missed
    assert len(missed) <= 2 - len(games)
    assert all(game.name in missed[0].misses[0] for game in games)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    played = [Game("mean", name, 4_000) for name in ("far", "turncoat", "lure")]
    monkeypatch.setattr(measuring, "games", lambda: iter(played))
    fresh = [FreshStream(Recipe("mean", 0.0, 1_000, seed)) for seed in (301, 302)]
    monkeypatch.setattr(measuring, "fresh_streams", lambda: iter(fresh))
    monkeypatch.setattr(kept, "recipes_of", lambda group: SHORT[:1])


@pytest.mark.usefixtures("few")
def test_the_command_prints_and_writes_the_page(tmp_path: Path) -> None:
    arguments = ["bench", "grid", "--workers", "1"]
    shown = CliRunner().invoke(cli.app, [*arguments, "--docs", str(tmp_path / "docs")])
    assert shown.exit_code == 0, shown.output
    assert "targets met." in shown.stdout
    text = (tmp_path / "docs" / "grid.md").read_text(encoding="utf-8")
    printed = CliRunner().invoke(cli.app, [*arguments, "--json"]).stdout
    data = json.loads(printed)
    assert {row["group"] for row in data["rows"]} == {kept.TUNED, kept.FRESH}
    assert [game["name"] for game in data["games"]] == [
        f"mean, {name}, T = 4,000" for name in ("far", "turncoat", "lure")
    ]
    assert all(each["asked"] in text for each in data["verdicts"])
    (tmp_path / "before.json").write_text(printed)
    twice = CliRunner().invoke(cli.app, [*arguments, "--before", str(tmp_path / "before.json")])
    assert f"fresh seeds, with hints: at most {MOST}: 1.00" in twice.stdout


def test_versions_are_compared_by_stream_and_seed() -> None:
    before = [FreshRow("mean", hint, seed, 10.0, 1.0) for hint in ("none", "frozen") for seed in (1, 2)]
    now = [FreshRow(row.stream, row.hint, row.seed, 8.0 if row.hint == "frozen" else 12.0, 1.1) for row in before]
    table, targets = against(now, before)
    assert [line[:4] for line in table.rows] == [("mean", "frozen", "2", "0.80"), ("mean", "none", "2", "1.20")]
    assert {line[-1] for line in table.rows} == {"+10.00 %"}
    assert [each.met for each in targets] == [True, False]
    assert targets[1].misses == ("mean, none: 1.20",)

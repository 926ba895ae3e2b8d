"""The arena: rows and reasons, resuming, new rivals in one file, CSV files, and scores that can be computed by hand."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import swapcal.rivals
from swapcal import cli
from swapcal.errors import InvalidInput
from swapcal_benchmarks.rivals import Settings, TableFile, board_tables, prepare, rivals_command
from swapcal_benchmarks.rivals.boards import BOARDS
from swapcal_benchmarks.rivals.command_line import command_line, settings_from
from swapcal_benchmarks.rivals.contestants import all_contestants
from swapcal_benchmarks.rivals.findings import losses, surprises
from swapcal_benchmarks.rivals.match import NO_TRUTH, Match
from swapcal_benchmarks.rivals.results import LOG, finished
from swapcal_benchmarks.rivals.rivals_command import compare, report
from swapcal_benchmarks.rivals.run_files import to_csv, to_data

TINY = Settings(
    only=("swapcal", "algorithm 1", "raw model", "clairvoyant", "mvp"),
    streams=("iid", "greedy"),
    boards=("probability", "quantile"),
    horizons=(40, 80),
    seeds=2,
)
TOY = """
from swapcal.paper.method import Plan
from swapcal.rivals.card import Card, Rival


class Toy(Rival):
    card = Card(
        name="toy", reference="a test", assumes="nothing", properties=("mean",), classes=("none",), cost="O(1)"
    )

    def plan(self, row, hint):
        return Plan((0.5,), (1.0,))

    def learn(self, row, plan, drawn, y):
        {learn}
"""


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures take most of the time; where they do not matter, there are none."""
    monkeypatch.setattr(rivals_command, "_draw", lambda *_: {})


def texts(summary: Any) -> list[str]:
    """All tables of a contest, line by line, as the terminal shows them."""
    makers = (board_tables.streams_table, board_tables.scores_table, board_tables.claims_table)
    tables = [board_tables.cards_table(summary), *(make(summary, board) for board in summary.rows for make in makers)]
    return [line for table in tables for line in table.text().splitlines()]


def test_rows_and_reasons() -> None:
    summary, results = prepare(TINY, None).play(workers=2)
    table = board_tables.streams_table(summary, "probability")
    cells = {row[0]: row[1:] for row in table.rows}
    ours = {"swapcal", "swapcal + model", "swapcal + regression"}
    assert (table.rows[0][0], table.rows[-1][0]) == ("clairvoyant", "MVP")
    assert cells.keys() == ours | {"Algorithm 1", "raw model", "clairvoyant", "MVP"}
    assert cells["MVP"] == ("-", "-")
    assert [cell == "-" for cell in cells["clairvoyant"]] == [False, True]
    assert max(map(len, texts(summary))) <= 100
    claims = {row[0]: row[4] for row in board_tables.claims_table(summary, "quantile").rows}
    assert (claims["MVP"], claims["raw model"]) == ("altered", "-")
    assert claims["Algorithm 1"] in ("yes", "within noise", "above")
    assert any("swapcal + model on" in sentence for sentence in losses(summary))
    data = json.loads(json.dumps(to_data(summary, results), allow_nan=False))
    why = {(each["board"], each["method"], each["stream"]): each["reason"] for each in data["refused"]}
    assert "quantile only" in why["probability", "MVP", None]
    assert why["quantile", "clairvoyant", "greedy"] == NO_TRUTH
    assert data["cards"]["MVP"]["properties"] == ["quantile"]
    lines = list(csv.DictReader(io.StringIO(to_csv(results))))
    assert len(lines) == len(results) == (5 * 4 + 2 + 6 * 4 + 2) * 2
    first = next(each for each in lines if each["method"] == "swapcal" and each["stream"] == "greedy")
    assert first["excess"] == ""
    swap, over_functions, plain = (float(first[name]) for name in ("smcal", "mcal", "cal"))
    # Equal but for the order in which they are added up where one function is the worst at every value.
    assert swap * (1.0 + 1e-12) >= over_functions
    assert over_functions * (1.0 + 1e-12) >= plain > 0.0


@pytest.mark.slow
def test_all_methods_fit_the_terminal() -> None:
    summary, _ = prepare(Settings(streams=("targeted",), horizons=(30,), seeds=1), None).play(workers=1)
    assert not summary.failures
    assert max(map(len, texts(summary))) <= 100
    assert all({row.contestant.name for row in summary.rows[board]} == set(all_contestants()) for board in BOARDS)
    assert all(isinstance(each, str) for each in losses(summary) + surprises(summary))


def test_every_board_and_stream_can_be_played() -> None:
    for board in BOARDS.values():
        for stream in board.streams:
            match = Match(board=board.name, stream=stream, method="swapcal + model", horizon=60, seed=3, n_groups=7)
            first, again = match(), match()
            assert first["scores"] is not None, first
            for scores in (first["scores"], again["scores"]):
                scores.pop("microseconds")
            assert first == again


def test_resuming_skips_finished_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(only=("raw model",), streams=("iid",), boards=("quantile",), horizons=(40, 80), seeds=2)
    first = prepare(settings, tmp_path)
    assert len(first.remaining) == 4
    first.remaining[0]()
    first.remaining[2]()
    with open(tmp_path / LOG, "a", encoding="utf-8") as log:
        log.write('{"key": {"board": "quan')
    second = prepare(settings, tmp_path)
    assert [m.key for m in second.remaining] == [first.plan.matches[k].key for k in (1, 3)]
    summary, results = second.play(workers=1)
    assert len(results) == 4
    assert len(finished(tmp_path / LOG)) == 4
    # Nothing is played again: a match that ran would fail now.
    monkeypatch.setattr(Match, "scores", lambda self: 1 / 0)
    third, again = prepare(settings, tmp_path).play(workers=1)
    assert again == results
    assert board_tables.streams_table(third, "quantile") == board_tables.streams_table(summary, "quantile")
    (tmp_path / LOG).write_text("hello\n")
    with pytest.raises(InvalidInput, match="line 1 of"):
        finished(tmp_path / LOG)


@pytest.mark.usefixtures("no_figures")
def test_an_interrupt_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(only=("raw model",), streams=("iid",), boards=("quantile",), horizons=(40,), seeds=3)
    played: list[Match] = []
    real = Match.scores

    def scores(match: Match) -> Any:
        if played:
            raise KeyboardInterrupt
        played.append(match)
        return real(match)

    monkeypatch.setattr(Match, "scores", scores)
    said: list[str] = []
    assert compare(settings, tmp_path, workers=1, echo=said.append) == 130
    assert "1 finished runs are kept" in said[0]
    monkeypatch.setattr(Match, "scores", real)
    assert compare(settings, tmp_path, workers=1, echo=said.append) == 0
    assert "raw model" in said[1]
    assert compare(settings, tmp_path, workers=1, fresh=True, json=True, echo=said.append) == 0
    assert json.loads(said[2])["horizons"] == [40]


def _toy(monkeypatch: pytest.MonkeyPatch, folder: Path, learn: str) -> None:
    folder.mkdir()
    (folder / "toy_rival.py").write_text(TOY.replace("{learn}", learn))
    monkeypatch.setattr(swapcal.rivals, "__path__", [*swapcal.rivals.__path__, str(folder)])
    monkeypatch.delitem(__import__("sys").modules, "swapcal.rivals.toy_rival", raising=False)


@pytest.mark.usefixtures("no_figures")
def test_a_rival_that_fails_does_not_end_the_contest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _toy(monkeypatch, tmp_path / "new", "raise RuntimeError('out of luck')")
    settings = Settings(only=("toy", "raw"), streams=("iid",), boards=("probability",), horizons=(40,), seeds=1)
    said: list[str] = []
    assert compare(settings, tmp_path / "out", workers=1, echo=said.append) == 1
    assert "FAILED toy on iid: RuntimeError: out of luck" in said[0]
    assert len(finished(tmp_path / "out" / LOG)) == 1


def test_settings_from_words() -> None:
    settings = settings_from(only="swapcal, mvp", horizons="100,200", seeds=2)
    assert settings.only == ("swapcal", "mvp")
    assert command_line(settings, Path("docs")).endswith("--only swapcal,mvp --horizons 100,200 --seeds 2 --docs docs")
    for words, match in (
        ({"horizons": "10,x"}, "--horizons takes whole numbers"),
        ({"horizons": "5"}, "30 rounds or more"),
        ({"y": "label"}, "belong to --csv"),
        ({"csv": "a.csv"}, "--csv needs --y"),
        ({"csv": "a.csv", "y": "b", "streams": "iid"}, "leave out --streams"),
    ):
        with pytest.raises(InvalidInput, match=match):
            settings_from(**words)  # type: ignore[arg-type]
    for chosen, match in (
        (Settings(only=("nobody",)), "no method 'nobody'"),
        (Settings(streams=("nowhere",)), "no stream 'nowhere'"),
        (Settings(boards=("none",)), "no board 'none'"),
    ):
        with pytest.raises(InvalidInput, match=match):
            prepare(chosen, None)


GOOD = (
    "y,model,young,city\n" + "\n".join(f"{k % 2},{0.1 + 0.02 * k:.2f},{k % 3 // 2},{k % 2}" for k in range(40)) + "\n"
)


@pytest.mark.usefixtures("no_figures")
def test_real_data(tmp_path: Path) -> None:
    path = tmp_path / "loans.csv"
    path.write_text(GOOD)
    file = TableFile(str(path), "y", "model", ("young", "city"))
    settings = Settings(only=("swapcal", "raw model", "clairvoyant"), file=file, seeds=1)
    contest = prepare(settings, tmp_path / "out")
    assert contest.plan.horizons == (40,)
    summary, results = contest.play(workers=1)
    table = board_tables.streams_table(summary, "csv")
    assert table.header == ("method", "loans")
    cells = {row[0]: row[1] for row in table.rows}
    assert cells["clairvoyant"] == "-"
    assert cells["raw model"] != "-"
    assert board_tables.reasons(summary, "csv") == [f"clairvoyant: {NO_TRUTH}"]
    report(summary, results, pages=True).publish(lambda text: None, docs=tmp_path / "docs")
    stream = file.read(file.board().property, 40)
    assert stream.x.shape == (40, 3)
    assert stream.hint is not None
    assert stream.hint.max() <= 1.0
    found = TableFile(str(path), "model", None, (), "quantile", 0.7).board().property
    assert repr(found) == "Quantile(0.7, low=0.1, high=0.88)"


@pytest.mark.parametrize(
    ("text", "arguments", "match"),
    [
        (GOOD, {"y": "label"}, "has no column 'label'; it has y, model, young, city"),
        (GOOD, {"y": "y", "groups": ("old", "rich")}, "has no column 'old', 'rich'"),
        (GOOD.replace("\n1,0.12,", "\n1,many,"), {"y": "y", "hint": "model"}, "line 3 of .* has 'many' in column"),
        (GOOD.replace("\n1,0.12,", "\nnan,0.12,"), {"y": "y"}, "line 3 of .* has 'nan' in column 'y'"),
        (GOOD + "1\n", {"y": "y", "hint": "model"}, "line 42 of .* has '' in column 'model'"),
        ("", {"y": "y"}, "is empty"),
        ("\xff\xfe\x00y\n", {"y": "y"}, "not a CSV file in UTF-8"),
        (None, {"y": "y"}, "cannot be read"),
        ("y\n", {"y": "y"}, "a header and no rows"),
        ("y\n3\n3\n", {"y": "y"}, "one value only"),
        ("y,g\n1,0\n0,7\n", {"y": "y", "groups": ("g",)}, "leaves \\[-1, 1\\]"),
        ("y\n0\n2\n", {"y": "y", "kind": "probability"}, "needs labels 0 and 1"),
        ("y\n0\n2\n", {"y": "y", "kind": "mode"}, "must be one of probability"),
    ],
)
def test_csv_files_that_cannot_be_used(tmp_path: Path, text: str | None, arguments: dict[str, Any], match: str) -> None:
    path = tmp_path / "table.csv"
    if text is not None:
        path.write_text(text, encoding="latin-1")
    file = TableFile(str(path), **arguments)
    with pytest.raises(InvalidInput, match=match):
        file.read(file.board().property, 100)


def test_the_command(tmp_path: Path) -> None:
    run = CliRunner().invoke
    words = ["--only", "raw model,mvp", "--streams", "iid", "--horizons", "40,80", "--seeds", "1", "--workers", "1"]
    words += ["--boards", "quantile"]
    result = run(cli.app, ["bench", "rivals", *words, "--out", str(tmp_path / "out"), "--docs", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "MVP" in result.output
    assert {"rivals.json", "rivals.csv", "tables.txt", "growth.png", LOG} <= {
        p.name for p in (tmp_path / "out").iterdir()
    }
    assert (tmp_path / "benchmark.md").exists()
    bad = run(cli.app, ["bench", "rivals", "--csv", str(tmp_path / "no.csv"), "--y", "y"])
    assert bad.exit_code == 2
    assert "cannot be read" in bad.output
    assert "Traceback" not in bad.output

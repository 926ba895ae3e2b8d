"""`swapcal bench`: it hands over to the benchmarks, and says how to get them where they are not installed."""

import sys

import pytest
from typer.testing import CliRunner

from swapcal.cli import app

RUN = CliRunner()


@pytest.mark.parametrize("arguments", [["bench"], ["bench", "--help"], ["bench", "speed", "--quick"]])
def test_without_the_benchmarks_a_sentence_says_how_to_get_them(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["swapcal.cli.app"], "find_spec", lambda name: None)
    done = RUN.invoke(app, arguments)
    assert done.exit_code == 2
    assert "pip install ./benchmarks" in done.output


def test_everything_behind_the_word_is_for_the_benchmarks() -> None:
    pytest.importorskip("swapcal_benchmarks")
    listed = RUN.invoke(app, ["bench", "--help"])
    assert listed.exit_code == 0
    assert all(name in listed.output for name in ("paper", "rivals", "speed", "streams"))
    assert "--quick" in RUN.invoke(app, ["bench", "speed", "--help"]).output
    wrong = RUN.invoke(app, ["bench", "speed", "--only", "nonsense"])
    assert (wrong.exit_code, "there is no section nonsense" in wrong.output) == (2, True)
    assert RUN.invoke(app, ["bench", "nonsense"]).exit_code == 2

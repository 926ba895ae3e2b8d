"""The examples run as they stand, on made-up data, print before and after, and save a figure."""

import re
import runpy
import sys
import warnings
from pathlib import Path

import matplotlib as mpl
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem != "shared")


def printed(name: str, figures: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """What the script prints; here, as imports would take most of the time of a process of its own."""
    monkeypatch.setenv("SWAPCAL_FIGURES", str(figures))
    monkeypatch.setenv("SWAPCAL_KEYS", "150")
    monkeypatch.delenv("SWAPCAL_DATA", raising=False)
    monkeypatch.setattr(sys, "argv", [f"{name}.py"])
    monkeypatch.syspath_prepend(str(EXAMPLES))
    with warnings.catch_warnings(), mpl.rc_context():
        warnings.simplefilter("ignore")
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    return capsys.readouterr().out


def pair(text: str, pattern: str) -> tuple[float, float]:
    before, after = (float(found.replace(",", "")) for found in re.findall(pattern, text)[:2])
    return before, after


EXPECTED = {
    "drifting_classifier": (r"swap error +([\d.]+)", 0.5),
    "hourly_intervals": (r"interval score ([\d.]+)", 1.0),
    "many_streams": (r"of all ([\d.]+)", 0.97),
    "one_line": (r"swap error +([\d.]+)", 0.45),
    "published_forecaster": (r"swap error ([\d.]+)", 0.7),
    "service": (r"on the coast [+-]([\d.]+)", 0.6),
}
"""What is printed before and after, and what the second is at most of the first."""


SLOW = ("drifting_classifier", "service")


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in NAMES])
def test_example(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pattern, ratio = EXPECTED[name]
    before, after = pair(printed(name, tmp_path, monkeypatch, capsys), pattern)
    assert after < ratio * before
    assert (tmp_path / f"{name}.png").stat().st_size > 5_000

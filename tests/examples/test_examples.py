"""The examples run as they stand, on made-up data, print before and after, and save a figure."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem != "shared")


def printed(name: str, figures: Path) -> str:
    environment = {**os.environ, "SWAPCAL_FIGURES": str(figures), "SWAPCAL_KEYS": "150", "OMP_NUM_THREADS": "1"}
    environment.pop("SWAPCAL_DATA", None)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(EXAMPLES / f"{name}.py")],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def pair(text: str, pattern: str) -> tuple[float, float]:
    before, after = (float(found.replace(",", "")) for found in re.findall(pattern, text)[:2])
    return before, after


def test_all_are_tested() -> None:
    assert NAMES == [
        "drifting_classifier",
        "hourly_intervals",
        "many_streams",
        "one_line",
        "published_forecaster",
        "service",
    ]


@pytest.mark.parametrize(
    ("name", "pattern", "ratio"),
    [
        ("drifting_classifier", r"swap error +([\d.]+)", 0.5),
        ("hourly_intervals", r"interval score ([\d.]+)", 1.0),
        ("many_streams", r"of all ([\d.]+)", 0.97),
        ("one_line", r"swap error +([\d.]+)", 0.3),
        ("published_forecaster", r"swap error ([\d.]+)", 0.7),
        ("service", r"on the coast [+-]([\d.]+)", 0.4),
    ],
)
def test_example(name: str, pattern: str, ratio: float, tmp_path: Path) -> None:
    before, after = pair(printed(name, tmp_path), pattern)
    assert after < ratio * before
    assert (tmp_path / f"{name}.png").stat().st_size > 5_000

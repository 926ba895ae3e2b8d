"""A number that a command prints, stores or draws is the number that `sc.Audit` gives: there is one accumulator."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swapcal as sc
from commands import run
from streams import table
from swapcal.audits.sums import PER_CELL
from swapcal.cli.output import view
from swapcal.report import page
from swapcal.tasks.audit import audit
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.result import from_json, to_json
from swapcal.text.numbers import number

GROUPS = ["g", "h", ("g", "h")]


def reference(data: dict[str, Any], p: Any, *, bins: Any, weights: Any = None) -> sc.Audit:
    """What a user would do who has never heard of the commands, round by round in one call."""
    groups = sc.Groups(GROUPS)
    groups.fit({name: data[name] for name in ("g", "h")})
    found = sc.Audit(sc.Mean(), groups, bins=bins)
    found.update_many(data["y"], p, {name: data[name] for name in ("g", "h")}, weights=weights)
    return found


@pytest.mark.parametrize("bins", [None, 12])
@pytest.mark.parametrize("weighted", [False, True])
def test_an_audit_of_a_table(bins: int | None, weighted: bool) -> None:
    data = table(3000, shift=0.2)
    data["p"] = np.round(data["p"], 1 if bins is None else 3)
    data["w"] = np.random.default_rng(1).random(3000)
    data["w"][0] = 1.0
    weight = "w" if weighted else None
    column = audit(data, TaskConfig("y", "p", GROUPS, bins=bins, weight=weight)).before
    distinct = np.unique(data["p"])
    edges = [0.0, *(distinct[1:] + distinct[:-1]) / 2, 1.0]
    weights = data["w"] / data["w"].max() if weighted else None
    expected = reference(data, data["p"], bins=edges if bins is None else bins, weights=weights)
    assert column.swap_error == expected.swap_multicalibration()
    assert column.group_error == expected.multicalibration()
    assert column.overall_error == expected.calibration()
    cells = {(cell.value, cell.name): cell for cell in expected.cells()}
    assert column.n_cells == len(cells)
    # Intervals are those of the verdict, which know of shares and of binary outcomes; all else is the same.
    for cell in column.worst:
        assert replace(cell, low=0.0, high=0.0) == replace(cells[cell.value, cell.name], low=0.0, high=0.0)
        assert cell.low <= cell.mean <= cell.high


def test_both_columns_of_a_run(tmp_path: Path) -> None:
    data, out = table(2000, shift=0.2), tmp_path / "out.csv"
    data["p"] = np.round(data["p"], 1)
    distinct = np.unique(data["p"])
    edges = [0.0, *(distinct[1:] + distinct[:-1]) / 2, 1.0]
    result = run(data, TaskConfig("y", "p", GROUPS, bins=15), out=out)
    forecasts = np.genfromtxt(out, delimiter=",", names=True)["forecast"]
    for column, p, bins in ((result.before, data["p"], edges), (result.after, forecasts, None)):
        expected = reference(data, p, bins=bins)
        assert column.swap_error == expected.swap_multicalibration()
        assert column.group_error == expected.multicalibration()
        assert column.overall_error == expected.calibration()


@pytest.mark.usefixtures("few_diagrams")
def test_what_is_stored_drawn_and_printed() -> None:
    from rich.console import Console

    data = table(8000, shift=0.4)
    result = from_json(to_json(audit(data, TaskConfig("y", "p", GROUPS, bins=12))))
    expected = reference(data, data["p"], bins=12)
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(view(result))
    html, printed = page.html(result), console.export_text()
    worst = expected.cells().biased[0]
    for value in (expected.swap_multicalibration(), expected.multicalibration()):
        assert number(value) in html
        assert number(value) in printed
    # One unit: points in the terminal, in the verdict and on the page.
    assert sc.Mean().wording.bias(worst.mean) in html
    assert " points " in printed


def test_there_is_one_accumulator() -> None:
    """Only `audits/sums.py` keeps sums per cell; everything else asks it."""
    files = Path(sc.__file__).parent.rglob("*.py")
    assert "xvxv" in PER_CELL
    assert [path.name for path in files if '"xvxv"' in path.read_text(encoding="utf-8")] == ["sums.py"]

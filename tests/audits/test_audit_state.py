"""The audit as a value: its tables, its stored form, and what it refuses."""

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from streams import simulated
from swapcal.audits import Audit, calibration_error, multicalibration_error, swap_multicalibration_error
from swapcal.errors import InvalidInput
from swapcal.hypotheses import Finite
from swapcal.properties import Quantile


def test_cells_are_a_table() -> None:
    audit = Audit(names=["old", "young"])
    audit.update_many(*simulated(200, 2, seed=2, n_bins=20))
    cells = audit.cells()
    assert len(cells) == len(list(cells)) == len(cells.to_dict()["mean"]) == 40
    assert list(cells.contribution) == sorted(cells.contribution, reverse=True)
    assert cells[0] == next(iter(cells)) == audit.worst(3)[0] == cells[-40]
    assert [cell.value for cell in cells[1:3]] == cells.to_dict()["value"][1:3]
    assert json.loads(json.dumps(cells.to_dict())) == cells.to_dict()
    lines = str(cells).split("\n")
    assert len({len(line) for line in lines[:-1]}) == 1
    assert lines[-1] == "... and 20 more cells"
    with pytest.raises(IndexError):
        cells[40]


# Bad input


BAD: list[Callable[[Audit], object]] = [
    lambda a: a.update(math.nan, 0.5, [0, 1]),
    lambda a: a.update(1, math.inf, [0, 1]),
    lambda a: a.update("high", 0.5, [0, 1]),  # type: ignore[arg-type]
    lambda a: a.update(2, 0.5, [0, 1]),
    lambda a: a.update(1, 1.5, [0, 1]),
    lambda a: a.update(1, 0.5, [0, 1, 0]),
    lambda a: a.update(1, 0.5, [0, 1.5]),
    lambda a: a.update(1, 0.5, [0, math.nan]),
    lambda a: a.update(1, 0.5),
    lambda a: a.update_many([1, 0], [0.5], [[0, 1]]),
    lambda a: a.update_many([1, 0], [0.5, 0.5], [[0, 1]]),
    lambda a: a.update_many([1, 0], [0.5, 0.5], [[0, 1], [1]]),
    lambda a: a.update_many([1, 0], [0.5, 0.5], [0, 1]),
    lambda a: a.update_many([1, 0], [0.5, 0.5], [[0, 1], [0, -2]]),
    lambda a: a.update_many([1, 0], [0.5, 0.5]),
    lambda a: a.update_many([1, None], [0.5, 0.5], [[0, 1], [0, 1]]),
    lambda a: a.update_many([1, 3], [0.5, 0.5], [[0, 1], [0, 1]]),
    lambda a: a.update_many([1, 0], [0.5, -0.1], [[0, 1], [0, 1]]),
    lambda a: a.update_many([1, 0], [0.5, 0.5], sparse.csr_matrix([[0, 3], [0, 1]])),
    lambda a: a.update_many([1, 0], [0.5, 0.5], sparse.csr_matrix([[0, 1, 0], [0, 1, 0]])),
    lambda a: a.merge(Audit(Quantile(0.5), n=2)),
    lambda a: a.merge(Audit(n=3)),
    lambda a: a.merge(Audit(n=2, bins=4)),
    lambda a: a.merge(Audit(n=2, names=["a", "b"])),
    lambda a: a.merge(Audit(n=2, bins=[0.0, 0.4, 1.0])),
    lambda a: a.update(1, 0.5, [1, 0], weight=1.5),
    lambda a: a.update(1, 0.5, [1, 0], weight=math.nan),
    lambda a: a.update_many([1], [0.5], [[1, 0]], weights=[-0.5]),
    lambda a: a.update_many([1], [0.5], [[1, 0]], weights=[0.5, 0.5]),
    lambda a: a.update_many([1], [0.5], [[1, 0]], weights="heavy"),
    lambda a: a.calibration(0.5),
    lambda a: a.swap_multicalibration(math.nan),
    lambda a: a.cells(1.0),
    lambda a: a.cells(rounds="lucky"),  # type: ignore[arg-type]
    lambda a: a.worst(0),
]


@pytest.mark.parametrize("call", BAD)
def test_bad_input_is_refused_and_changes_nothing(call: Callable[[Audit], object]) -> None:
    audit = Audit()
    audit.update_many([0, 1, 1], [0.5, 0.5, 0.25], [[0, 1], [1, 1], [1, 0]])
    before = audit.to_bytes()
    with pytest.raises(InvalidInput):
        call(audit)
    assert audit.to_bytes() == before


def test_refused_first_rounds_leave_the_kind_of_audit_open() -> None:
    audit = Audit()
    with pytest.raises(InvalidInput):
        audit.update(2, 0.5, [0, 1])
    audit.update(1, 0.5)
    with pytest.raises(InvalidInput, match="without x"):
        audit.update(1, 0.5, [0, 1])
    assert audit.n_rounds == 1


def test_bad_settings_are_refused() -> None:
    wrong: list[dict[str, Any]] = [{"n": 0}, {"n": 2.5}, {"bins": 0}, {"names": "ab"}, {"names": []}]
    for settings in (*wrong, {"n": 3, "names": ["a"]}):
        with pytest.raises(InvalidInput):
            Audit(**settings)
    with pytest.raises(InvalidInput):
        Audit(hypotheses=Finite(3), n=2)
    with pytest.raises(InvalidInput):
        Audit("mean")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        Audit(hypotheses=3)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="at least one"):
        calibration_error([], [])
    with pytest.raises(InvalidInput, match="at least one"):
        swap_multicalibration_error([], [], np.ones((0, 1)))
    with pytest.raises(InvalidInput, match="calibration_error"):
        multicalibration_error([1], [0.5], None)


def test_an_empty_audit_answers() -> None:
    audit = Audit()
    audit.update_many([], [])
    errors = audit.calibration(), audit.multicalibration(), audit.swap_multicalibration()
    assert (audit.n_rounds, *errors) == (0, 0, 0, 0)
    assert len(audit.cells()) == len(audit.reliability()) == 0
    assert repr(audit) == "Audit(Mean(), n_rounds=0)"
    with pytest.raises(InvalidInput, match="no witness"):
        audit.witness()

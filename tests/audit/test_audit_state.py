"""The audit as a value: its tables, its stored form, and what it refuses."""

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from audit_streams import same_sums, simulated
from swapcal.audits import Audit, calibration_error, multicalibration_error, swap_multicalibration_error
from swapcal.errors import InvalidInput, StateFileError
from swapcal.hypotheses import Finite, Groups, Linear
from swapcal.monitor import Monitor
from swapcal.properties import Mean, Probability, Quantile
from swapcal.stored_words import framed, unframed


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


def test_stored_audits_come_back_and_merge() -> None:
    y, p, x = simulated(200, 3, seed=6)
    for each, hypotheses in ((Mean(), None), (Quantile(0.3), Linear(3)), (Mean(), Finite(3, names=list("abc")))):
        one, two, whole = (Audit(each, hypotheses, bins=4) for _ in range(3))
        one.update_many(y[:80], p[:80], x[:80])
        two.update_many(y[80:], p[80:], x[80:])
        whole.update_many(y, p, x)
        back = Audit.from_dict(json.loads(json.dumps(one.to_dict())), each, hypotheses)
        assert back.to_dict() == one.to_dict()
        back.merge(two)
        assert same_sums(back, whole)
    for empty in (Audit(), Audit(n=3, names=list("abc"))):
        assert Audit.from_dict(json.loads(json.dumps(empty.to_dict()))).to_dict() == empty.to_dict()


def test_damaged_or_foreign_data_is_refused() -> None:
    audit = Audit()
    audit.update_many(*simulated(20, 2, seed=0))
    data = audit.to_dict()
    sums = data["sums"]
    for damaged in (
        None,
        {},
        {**data, "schema_version": 99},
        {**data, "sums": {}},
        {**data, "sums": {**sums, "xv": sums["xv"][:-1]}},
        {**data, "sums": {**sums, "v": ["a"] * len(sums["v"])}},
        {**data, "sums": {**sums, "vv": [math.nan] * len(sums["v"])}},
        {**data, "sums": {**sums, "value": [0.5] * len(sums["v"])}},
    ):
        with pytest.raises(StateFileError):
            Audit.from_dict(damaged)
    with pytest.raises(InvalidInput, match="property"):
        Audit.from_dict(data, Quantile(0.5))
    with pytest.raises(InvalidInput, match="hypotheses"):
        Audit.from_dict(data, hypotheses=Linear(2))


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
    before = audit.to_dict()
    with pytest.raises(InvalidInput):
        call(audit)
    assert audit.to_dict() == before


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
    assert (audit.n_rounds, audit.calibration(), audit.multicalibration(), audit.swap_multicalibration()) == (
        0,
        0,
        0,
        0,
    )
    assert len(audit.cells()) == len(audit.reliability()) == 0
    assert repr(audit) == "Audit(Mean(), n_rounds=0)"
    with pytest.raises(InvalidInput, match="no witness"):
        audit.witness()


def test_bytes_of_an_audit_are_small_fast_to_refuse_and_checked() -> None:
    rng = np.random.default_rng(2)
    x = (rng.random((500, 20)) < 0.3).astype(float)
    audit = Audit(Probability(), Finite(20))
    audit.update_many((rng.random(500) < 0.3).astype(float), rng.integers(0, 11, 500) / 10.0, x)
    data = audit.to_bytes()
    again = Audit.from_bytes(data)
    assert again.to_dict() == audit.to_dict()
    assert len(data) < 8000
    payload = bytes(unframed("audit", data))
    refused = 0
    for _ in range(400):
        changed = bytearray(payload)
        changed[int(rng.integers(len(payload)))] = int(rng.integers(256))
        try:
            Audit.from_bytes(framed("audit", bytes(changed)))
        except (StateFileError, InvalidInput):
            refused += 1
    assert refused
    with pytest.raises(StateFileError, match="checksum"):
        Audit.from_bytes(data[:-1] + b"\0" if data[-1] else data[:-1] + b"\1")
    empty = Audit(Probability(), Finite(3))
    assert Audit.from_bytes(empty.to_bytes()).n_rounds == 0
    assert Audit.from_bytes(Audit().to_bytes()).n_rounds == 0


def test_a_monitor_as_bytes_goes_on() -> None:
    rng = np.random.default_rng(4)
    x, y = (rng.random((3000, 20)) < 0.3).astype(float), (rng.random(3000) < 0.3).astype(float)
    for alpha, every in ((0.05, None), (None, 10_000.0)):
        monitor = Monitor(Probability(), Finite(20), alpha=alpha, every=every)
        assert len(monitor.to_bytes()) < 4000
        monitor.update_many(y[:1000], np.full(1000, 0.2), x[:1000])
        again = Monitor.from_bytes(monitor.to_bytes())
        rest = y[1000:], np.full(2000, 0.2), x[1000:]
        assert monitor.update_many(*rest) == again.update_many(*rest)
        assert monitor.to_bytes() == again.to_bytes()
    data = monitor.to_bytes()
    with pytest.raises(StateFileError):
        Monitor.from_bytes(data[:-8])
    found = Groups(["city"])
    watched = Monitor(Probability(), found, alpha=0.1)
    watched.update(1.0, 0.5, {"city": "Paris"})
    assert Monitor.from_bytes(watched.to_bytes()).groups.n == found.n

"""The bench of late outcomes, on short simulated streams: what is measured, and what is said of targets."""

import numpy as np
import pytest

from swapcal.properties import Mean
from swapcal.simulate import streams
from swapcal_benchmarks.delay import LateCase, LateRow, measure_late, simulated_cases
from swapcal_benchmarks.delay.delay_page import targets
from swapcal_benchmarks.delay.late_scores import refitted

N = 600


@pytest.fixture(scope="module")
def rows() -> list[LateRow]:
    cases = [case for case in simulated_cases(N) if case.stream == "noisy" and case.delay in ("100 rows", "lead times")]
    return measure_late(cases, seeds=1)


def test_every_simulated_delay_is_there() -> None:
    found = {(case.delay, case.depends) for case in simulated_cases(N)}
    assert {name for name, depends in found if depends} == {"high ones fast", "high ones slow", "lead times"}
    assert {"100 rows", "1,000 rows", "geometric, 300", "a day of 200", "heavy tail"} <= {name for name, _ in found}


def test_targets_say_met_or_missed_and_the_yardstick_is_taken_at_100_rows_only(rows: list[LateRow]) -> None:
    assert [row.best is not None for row in rows] == [True, False]
    assert [row.depends for row in rows] == [False, True]
    table = targets(rows, {"learning, 100 rows": 1.5, "model as hint, 100 rows": 1.1})
    assert {line[1] for line in table.rows} <= {"met", "MISSED"}
    assert table.rows[-2][1:3] == ("MISSED", "1.50")
    assert table.rows[-1][1:3] == ("met", "1.10")


def test_refitting_uses_what_is_known_and_nothing_else() -> None:
    rng = np.random.default_rng(1)
    model = rng.uniform(0.2, 0.8, N)
    y = (rng.random(N) < model**2).astype(float)
    known = streams.fixed(N, 100)
    case = LateCase("s", "d", Mean(), np.ones((N, 1)), y, model, known, 50, False)
    p = refitted(case)
    np.testing.assert_allclose(p[:150], model[:150])
    other = LateCase("s", "d", Mean(), np.ones((N, 1)), np.where(known > 400, 1 - y, y), model, known, 50, False)
    np.testing.assert_array_equal(refitted(other)[:401], p[:401])
    assert np.mean((p[200:] - y[200:]) ** 2) < np.mean((model[200:] - y[200:]) ** 2)

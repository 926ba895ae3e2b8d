"""The parts of `swapcal bench classes` on little streams, and a file of its own."""

from pathlib import Path

import numpy as np
import pytest

from swapcal_benchmarks import classes


def test_boxes_see_what_groups_do_not() -> None:
    found = classes.corner_bias(30_000)
    assert found["model"] == pytest.approx(0.2, abs=0.03)
    assert found["groups"] > 0.15
    assert found["trees"] < 0.1


def test_costs_tails_and_regrets_have_a_line_for_each() -> None:
    assert [cost > 0.0 for _, _, cost in classes.costs(400)] == [True] * 12
    for _, off, constant in classes.tails(3000):
        assert 0.0 < off < constant
    table = classes.omniprediction_table(400)
    assert [row[0] for row in table.rows] == ["a biased model", "ours from it", "the truth on a grid"]
    for row in table.rows:
        for cell in row[1:]:
            regret, at_most = (float(part.replace("\u2212", "-").replace(",", "")) for part in cell.split(" / "))
            assert regret <= at_most


def test_a_file_where_two_columns_matter_together(tmp_path: Path) -> None:
    rng, n = np.random.default_rng(0), 6000
    hour, day = rng.integers(0, 24, n), rng.integers(0, 2, n)
    count = (300 + 250 * np.where((hour < 12) ^ (day == 1), 1, -1) + 20 * rng.standard_normal(n)).astype(int)
    numbers = ("season", "mnth", "holiday", "weekday", "weathersit")
    head = "hr,workingday,cnt,temp,atemp,hum,windspeed," + ",".join(numbers)
    rest = "0.5,0.5,{u:.3f},0.2,1,1,0,3,1"
    lines = [f"{h},{d},{c},{rest.format(u=u)}" for h, d, c, u in zip(hour, day, count, rng.random(n), strict=True)]
    (tmp_path / "bike_hour.csv").write_text("\n".join([head, *lines]) + "\n")
    row = classes.file_row(tmp_path, "bike_hour", seeds=1)
    assert row.rows == 4800
    assert row.losses["groups"] < 1.05 * row.model
    assert row.against_groups("trees") < -30.0
    pytest.importorskip("river.tree")
    hinted = classes.file_row(tmp_path, "bike_hour", rows=1500, seeds=1, methods=classes.HINTS)
    assert hinted.against_groups("with a river tree") < -10.0

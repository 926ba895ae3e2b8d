"""One line from a frame to forecasts and to a verdict."""

from typing import Any

import numpy as np
import pandas as pd
import polars
import pytest

import swapcal as sc


def table(n: int = 3000) -> dict[str, Any]:
    """A score that is right for nobody: too high for the free plan, too low for the paid one."""
    rng = np.random.default_rng(0)
    paid, score = rng.random(n) < 0.4, rng.uniform(0.2, 0.6, n)
    left = (rng.random(n) < score + np.where(paid, 0.3, -0.15)).astype(float)
    return {"plan": np.where(paid, "paid", "free"), "score": score, "left": left}


@pytest.mark.parametrize("kind", [pd.DataFrame, polars.DataFrame])
def test_a_column_of_better_forecasts_is_that_of_the_loop(kind: Any) -> None:
    columns = table()
    out = sc.recalibrate(kind(columns), y="left", hint="score", groups=["plan"], seed=1)
    assert isinstance(out, kind)
    assert list(out.columns) == ["plan", "score", "left", "forecast"]
    after, left = out["forecast"].to_numpy(), columns["left"]
    for plan in ("free", "paid"):
        # The first rows show the score itself, while nothing is known of it.
        inside = (columns["plan"] == plan) & (np.arange(len(left)) >= 500)
        assert abs(np.mean((after - left)[inside])) < 0.08 < abs(np.mean((columns["score"] - left)[inside]))
    groups = sc.Groups(["plan"])
    groups.fit(columns)
    loop = sc.Forecaster(sc.Mean(), groups, outside="clip", seed=1)
    for plan, score, outcome, number in zip(columns["plan"], columns["score"], left, after, strict=True):
        forecast = loop.predict({"plan": plan}, hint=float(score))
        assert float(forecast) == number
        loop.update(forecast, float(outcome))


def test_the_next_row_comes_from_a_forecaster_that_has_seen_the_frame() -> None:
    frame = pd.DataFrame(table())
    frame.loc[5, "left"] = np.nan  # teaches nothing
    forecaster = sc.forecaster_for(frame, y="left", hint="score", groups=["plan"], seed=1)
    assert forecaster.n_rounds == len(frame) - 1
    assert forecaster.predict(frame.iloc[0], hint=0.4) > 0.5 or frame["plan"][0] == "free"
    with pytest.raises(sc.InvalidInput, match="no column 'nobody'"):
        sc.forecaster_for(frame, y="nobody")
    with pytest.raises(sc.InvalidInput, match="no outcome"):
        sc.forecaster_for(frame.assign(left=np.nan), y="left")


def test_hints_in_other_units_are_refused() -> None:
    rng = np.random.default_rng(0)
    percent = rng.random(200) * 100
    y = rng.random(200) * 100 < percent
    with pytest.raises(
        sc.errors.InvalidInput, match=r"most forecasts in column 'score' are outside \[0, 1\], such as .*percent"
    ):
        sc.recalibrate(pd.DataFrame({"late": y, "score": percent}), y="late", hint="score")
    few = np.where(np.arange(200) % 10 == 0, percent, percent / 100)
    assert len(sc.recalibrate(pd.DataFrame({"late": y, "score": few}), y="late", hint="score")) == 200

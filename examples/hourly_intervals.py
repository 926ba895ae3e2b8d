"""90 % intervals of hourly demand that hold in every hour of the day, beside conformal prediction."""

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

import swapcal as sc
from shared import figure, recorded, saved
from swapcal.intervals import interval_score
from swapcal.rivals import AdaptiveConformal


def made_up(n: int = 5000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    hour, weekday = np.arange(n) % 24, (np.arange(n) // 24) % 7
    level = 60.0 + 50.0 * np.exp(-((hour - 17) ** 2) / 8.0) * (1.0 + np.arange(n) / n)
    noise = rng.normal(0, 4.0 + 25.0 * np.exp(-((hour - 17) ** 2) / 8.0))
    return pd.DataFrame({"hr": hour, "weekday": weekday, "cnt": np.maximum(level + noise, 0.0)})


frame = recorded("bike_hour")
frame = made_up() if frame is None else frame.drop(columns=["instant", "dteday", "casual", "registered", "yr"])
y = frame["cnt"].to_numpy(float)
X = frame.drop(columns=["cnt"]).assign(yesterday=np.concatenate([np.full(24, np.nan), y[:-24]]))
start = len(frame) // 5
hints = HistGradientBoostingRegressor(random_state=0).fit(X[:start], y[:start]).predict(X[start:])
truth, cases = y[start:], X[start:][["hr", "weekday"]].to_dict("records")

interval = sc.Interval(0.9, sc.Groups(["hr", "weekday"]), low=0.0, horizon=len(truth), seed=1)
ours = interval.run(cases, truth, hints)

distance = np.abs(truth - hints)
conformal = AdaptiveConformal(sc.Quantile(0.9, high=1.001 * distance.max()), sc.Finite(1), horizon=len(truth))
radius = conformal.run(np.ones((len(truth), 1)), distance, np.zeros(len(truth)))
theirs = np.column_stack([np.maximum(hints - radius, 0.0), hints + radius])

hour = X[start:]["hr"].to_numpy()
shares = {}
for name, ends in (("conformal", theirs), ("swapcal", ours)):
    known = np.isfinite(ends).all(axis=1)
    covered = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    shares[name] = np.array([covered[hour == h].mean() for h in range(24)])
    width, score = np.mean((ends[:, 1] - ends[:, 0])[known]), np.mean(interval_score(truth, *ends.T)[known])
    print(
        f"{name:>9}: coverage {covered.mean():.3f}, by hour {shares[name].min():.3f} to {shares[name].max():.3f}, "
        f"width {width:.1f}, interval score {score:.1f}"
    )
print(f"guaranteed: within {interval.miscoverage(0.05):,.0f} of {0.9 * len(truth):,.0f} covered rounds, in any group")

drawn, (left, right) = figure(1, 2)
left.axhline(0.9, color="black", lw=0.5)
for name, color in (("conformal", "tab:orange"), ("swapcal", "tab:blue")):
    left.plot(shares[name], "o-", ms=3, lw=1, color=color, label=name)
left.set(title="coverage by hour of the day", xlabel="hour", ylim=(0.4, 1.02))
left.legend(frameon=False)
last = slice(len(truth) - 72, len(truth))
right.fill_between(range(72), *ours[last].T, color="tab:blue", alpha=0.25, lw=0)
right.plot(range(72), theirs[last], color="tab:orange", lw=0.8)
right.plot(range(72), truth[last], "k.", ms=3)
right.set(title="the last three days", xlabel="hour")
saved(drawn, "hourly_intervals")

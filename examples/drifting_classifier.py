"""A classifier trained once, on a market that drifts: probabilities before and after, as the stream goes by."""

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator

import swapcal as sc
from shared import figure, recorded, saved
from swapcal.compat.sklearn import MulticalibratedClassifier


def made_up(n: int = 6000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((n, 3)), columns=["period", "nswdemand", "vicprice"])
    logit = 4.0 * frame["nswdemand"] - 2.0 + 3.0 * (frame["period"] > 0.5) * np.linspace(0.0, -1.0, n)
    frame["class"] = (rng.random(n) < 1.0 / (1.0 + np.exp(-logit))).astype(int)
    return frame


frame = recorded("elec2")
frame = made_up() if frame is None else frame.drop(columns=["t"])
frame["hour"] = (24 * frame["period"]).clip(upper=23).astype(int)
X, y = frame.drop(columns=["class"]), frame["class"].to_numpy()
start = len(frame) // 5
model = HistGradientBoostingClassifier(random_state=0).fit(X[:start], y[:start])

calibrated = MulticalibratedClassifier(FrozenEstimator(model), groups=["hour", "nswdemand"], random_state=1)
calibrated.partial_fit(X[:start], y[:start])
before = model.predict_proba(X[start:])[:, 1]
after, step = np.empty(len(before)), max(1, len(before) // 200)
for begin in range(0, len(before), step):  # forecast a batch, then learn its outcomes
    rows = slice(start + begin, start + begin + step)
    after[begin : begin + step] = calibrated.predict_proba(X[rows])[:, 1]
    calibrated.partial_fit(X[rows], y[rows])

truth = y[start:]
members = pd.get_dummies(frame["hour"][start:]).to_numpy(float)
members = np.column_stack([np.ones(len(truth)), members])


def swap(p: np.ndarray) -> float:
    audit = sc.Audit(sc.Probability(), sc.Finite(members.shape[1]), bins=20)
    audit.update_many(truth, p, members)
    return audit.swap_multicalibration()


print(f"{len(truth):,} rounds after training")
for name, p in (("before", before), ("after", after)):
    print(f"{name:>6}: swap error {swap(p):8.1f}, Brier score {np.mean((p - truth) ** 2):.4f}")

drawn, (left, right) = figure(1, 2)
window = max(200, len(truth) // 40)
for name, p, color in (("before", before, "tab:orange"), ("after", after, "tab:blue")):
    bias = pd.Series(p - truth).rolling(window).mean()
    left.plot(bias, color=color, label=name, lw=1)
    groups = [np.mean((p - truth)[members[:, j] == 1]) for j in range(1, members.shape[1])]
    right.plot(groups, "o-", color=color, label=name, ms=3, lw=1)
for axes, title, label in ((left, f"mean error, last {window} rounds", "round"), (right, "mean error by hour", "hour")):
    axes.axhline(0, color="black", lw=0.5)
    axes.set(title=title, xlabel=label)
left.legend(frameon=False)
saved(drawn, "drifting_classifier")

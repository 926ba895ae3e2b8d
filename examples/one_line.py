"""A pandas frame in, a better column out."""

import numpy as np
import pandas as pd

import swapcal as sc
from shared import figure, saved

rng = np.random.default_rng(0)
n = 8000
frame = pd.DataFrame({"plan": rng.choice(["free", "paid"], n, p=[0.7, 0.3]), "age": rng.integers(18, 90, n)})
frame["score"] = rng.beta(2, 5, n)
chance = frame["score"] * np.where(frame["plan"] == "paid", 0.4, 1.3)
frame["left"] = (rng.random(n) < chance.clip(0, 1)).astype(int)

frame = sc.recalibrate(frame, "left", "score", "plan,age >= 60,plan*age", seed=1).frame

plans = {"all": np.ones(n, bool), **{plan: (frame["plan"] == plan).to_numpy() for plan in ("free", "paid")}}
members = np.column_stack(list(plans.values())).astype(float)
for name, column in (("before", "score"), ("after", "forecast")):
    audit = sc.Audit(sc.Probability(), sc.Finite(3, names=list(plans)), bins=20)
    audit.update_many(frame["left"], frame[column], members)
    bias = {plan: float((frame[column] - frame["left"])[inside].mean()) for plan, inside in plans.items()}
    shown = ", ".join(f"{plan} {value:+.3f}" for plan, value in bias.items())
    print(f"{name:>6}: swap error {audit.swap_multicalibration():6.1f}; mean error: {shown}")

drawn, axes = figure(width=5.5)
for k, (column, color) in enumerate((("score", "tab:orange"), ("forecast", "tab:blue"))):
    error = [(frame[column] - frame["left"])[inside].mean() for inside in plans.values()]
    axes.bar(np.arange(3) + 0.35 * k, error, 0.33, color=color, label=column)
axes.set_xticks(np.arange(3) + 0.17, list(plans))
axes.axhline(0, color="black", lw=0.5)
axes.set(title="mean error by plan")
axes.legend(frameon=False)
saved(drawn, "one_line")

# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Intervals that hold at 8 in the morning
#
# 90 % intervals for the delay of a flight. On average 90 % is easy. At 8
# in the morning, and at 8 in the evening, it is not.

# %%
import numpy as np
import pandas as pd

import swapcal as sc

flights = sc.datasets.flights(months=5)
flights["delay"] += np.random.default_rng(0).uniform(-0.5, 0.5, len(flights))

# %% [markdown]
# `expected` is a model's point prediction. Delays are whole minutes; the
# line above spreads them over the minute, as quantiles need that.
#
# ## Conformal prediction, by hand and by MAPIE
#
# The 90 % quantile of absolute residuals in March, around the prediction.

# %%
march = flights["scheduled"] < "2013-04-01"
size = (flights["delay"] - flights["expected"]).abs()
half = np.quantile(size[march], 0.9)
conformal = size <= half
try:
    from mapie.regression import SplitConformalRegressor

    class Frozen:
        fitted_ = True

        def fit(self, X, y):
            return self

        def predict(self, X):
            return X[:, 0]

    X = flights[["expected"]].to_numpy()
    mapie = SplitConformalRegressor(
        Frozen(), confidence_level=0.9, prefit=True)
    mapie.conformalize(X[march], flights["delay"][march])
    _, ends = mapie.predict_interval(X)
    low, high = ends[:, 0, 0], ends[:, 1, 0]
    conformal = (low <= flights["delay"]) & (flights["delay"] <= high)
    half = float((high - low).mean() / 2)
except ImportError:
    print("pip install '.[docs]'  makes this column with MAPIE")

# %% [markdown]
# ## swapcal, as flights land

# %%
better = sc.recalibrate(
    flights, "delay", "expected", "hour,carrier",
    interval=0.9, time="scheduled", known="landed", seed=1,
)
ends = better.frame
inside = (ends["lower"] <= flights["delay"]) & (flights["delay"] <= ends["upper"])
later = ~march & ends["lower"].notna()
coverage = pd.DataFrame({"conformal": conformal, "swapcal": inside})[later]
table = coverage.groupby(flights["hour"][later]).mean().round(3)
table["rows"] = flights["hour"][later].value_counts()
table

# %% [markdown]
# One width for all covers too often in the morning and too rarely in the
# evening. What learns by hour and carrier stays near 90 %, at 8 in the
# morning and at 8 in the evening. It is not for free: on average it is wider.

# %%
width = (ends["upper"] - ends["lower"])[later].mean()
pd.Series({"conformal": 2 * half, "swapcal": width}, name="mean width")

# %%
better.plot("time")

# %%
print(better.verdict.headline.replace(": ", ":\n").replace("; ", ";\n"))

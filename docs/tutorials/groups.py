# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Right on average, wrong for a group
#
# A model that is calibrated on average can be wrong for every airline.
# Four ways to mend it, on the same rows: isotonic regression, a logistic
# refit with group indicators, gradient boosting by MCGrad, and `swapcal`.

# %%
import numpy as np
import pandas as pd
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

import swapcal as sc

flights = sc.datasets.flights(months=5)
# A model of the hour alone, trained on March: right on average in March.
march = flights["scheduled"] < "2013-04-01"
hours = pd.get_dummies(flights["hour"]).to_numpy(float)
model = LogisticRegression().fit(hours[march], flights["late"][march])
flights["score"] = model.predict_proba(hours)[:, 1]
groups = "carrier,origin"
in_march = sc.audit(flights[march], "late", "score", groups)
in_march.by_group[["group", "rows", "bias", "low", "high"]].head(8).round(1)

# %% [markdown]
# All rows are right, and airlines are not. The other methods learn from
# April, and all are judged in May.

# %%
april = (flights["scheduled"] >= "2013-04-01") & (flights["scheduled"] < "2013-05-01")
may = flights["scheduled"] >= "2013-05-01"
isotonic = IsotonicRegression(out_of_bounds="clip")
isotonic.fit(flights["score"][april], flights["late"][april])
flights["isotonic"] = isotonic.predict(flights["score"])

def design(frame):
    odds = np.log(frame["score"] / (1 - frame["score"]))
    members = pd.get_dummies(frame[["carrier", "origin"]])
    return np.column_stack([odds, members]).astype(float)

refit = LogisticRegression(max_iter=1000)
refit.fit(design(flights)[april], flights["late"][april])
flights["refit"] = refit.predict_proba(design(flights))[:, 1]

# %% [markdown]
# MCGrad comes with the extra `docs`; its column is left out without it.

# %%
columns = ["score", "isotonic", "refit"]
try:
    from mcgrad.methods import MCGrad

    # As many rounds as its cross-validation chooses here, without its time.
    mcgrad = MCGrad(early_stopping=False, num_rounds=6)
    mcgrad.fit(
        df_train=flights[april],
        prediction_column_name="score",
        label_column_name="late",
        categorical_feature_column_names=["carrier", "origin"],
    )
    flights["mcgrad"] = mcgrad.predict(
        df=flights,
        prediction_column_name="score",
        categorical_feature_column_names=["carrier", "origin"],
    )
    columns.append("mcgrad")
except ImportError:
    print("pip install '.[docs]'  adds the column of MCGrad")

# %% [markdown]
# `swapcal` learns from each flight as it lands, in May too. That is more
# than the others know, and it is what happens in production.

# %%
later = flights[april | may].reset_index(drop=True)
better = sc.recalibrate(
    later, "late", "score", groups,
    time="scheduled", known="landed", seed=1,
)
later["swapcal"] = better.frame["forecast"]
columns.append("swapcal")
judged = later[later["scheduled"] >= "2013-05-01"]
rows = {}
for name in columns:
    result = sc.audit(judged, "late", name, groups)
    table = result.by_group
    rows[name] = {
        "Brier score": ((judged[name] - judged["late"]) ** 2).mean(),
        "bias, points": result.overall["bias"],
        "biased groups": int(table["off"].iloc[1:].sum()),
        "worst group, points": table["bias"].iloc[1:].abs().max(),
    }
pd.DataFrame(rows).T.round(4)

# %% [markdown]
# Read it honestly. April and May differ, so whatever was fitted on April is
# off for all rows in May; only what goes on learning follows. A refit can go
# on learning too. The same regression, fitted again as flights land, over
# April and May:

# %%
losses = {"model": better.change.before, "swapcal": better.change.after}
losses["refit, again and again"] = better.against["refit"].after
pd.Series(losses, name="Brier score").round(4)

# %% [markdown]
# Where the world is stable, such a refit is hard to beat.

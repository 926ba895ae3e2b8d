# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # When outcomes come late
#
# The same predictions, corrected with outcomes that are known at once, after
# two days and after two weeks. A world that changes, and a model that is
# right: what does a delay cost?

# %%
import textwrap

import numpy as np
import pandas as pd

import swapcal as sc

rng = np.random.default_rng(1)
n = 30_000
table = pd.DataFrame({
    "day": pd.Timestamp("2025-01-01")
    + pd.to_timedelta(np.arange(n) * 5, unit="min"),
    "region": rng.choice(["north", "south", "west"], n),
    "score": rng.beta(2, 5, n),
})
shift = np.where(table["region"] == "south", 0.15, 0.0) * np.arange(n) / n
table["paid"] = (rng.random(n) < table["score"] + shift).astype(int)

# %% [markdown]
# The south drifts away from the model by 15 points. The rest is
# predicted rightly.

# %%
rows = {}
for delay in ("1", "2d", "14d"):
    result = sc.recalibrate(
        table, "paid", "score", "region", time="day", delay=delay, seed=1)
    groups = result.by_group.set_index("group")
    rows["at once" if delay == "1" else delay] = {
        "Brier score before": result.change.before,
        "after": result.change.after,
        "refit": result.against["refit"].after,
        "bias of the south before": groups.loc["region=south", "before_bias"],
        "bias of the south after": groups.loc["region=south", "after_bias"],
    }
pd.DataFrame(rows).T.round(4)

# %% [markdown]
# ## Say when outcomes were known
#
# A column says it row by row. Here "yes" comes after a day, and "no" only
# when the window of ten days has ended.

# %%
wait = np.where(table["paid"] == 1, 1, 10)
table["known"] = table["day"] + pd.to_timedelta(wait, unit="D")
result = sc.recalibrate(
    table, "paid", "score", "region", time="day", known="known", seed=1)
print(result.verdict.headline.replace(": ", ":\n").replace("; ", ";\n"))

# %% [markdown]
# Every early outcome is a "yes": who learned from what comes first would
# learn that all will pay. The correction waits for what is pending.

# %%
for sentence in result.lateness.sentences:
    print(textwrap.fill(sentence, 76))

# %%
result.plot("loss")

# %% [markdown]
# ## A model that is right stays as it is

# %%
right = table.assign(paid=(rng.random(n) < table["score"]).astype(int))
result = sc.recalibrate(
    right, "paid", "score", "region", time="day", delay="2d", seed=1)
print(result.verdict.headline.replace(": ", ":\n").replace("; ", ";\n"))

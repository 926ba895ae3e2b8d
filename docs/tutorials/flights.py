# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # A frozen model and a year of flights
#
# A model that predicts late arrivals was trained on January and February,
# and then left alone. Here is spring, as `swapcal` sees it: who is
# predicted wrongly, and what happens when each flight is learned from
# once it has landed.

# %%
import swapcal as sc

flights = sc.datasets.flights(months=6)
flights[["scheduled", "landed", "carrier", "origin", "late", "score"]].head()

# %% [markdown]
# ## Who is predicted wrongly?
#
# Flights of one day share their weather, so a day counts as one
# (`time="scheduled"`). Intervals hold for all groups together.

# %%
groups = "carrier,origin,carrier*origin,hour"
audit = sc.audit(flights, "late", "score", groups, time="scheduled")
print(audit.verdict.headline.replace(": ", ":\n").replace("; ", ";\n"))

# %%
audit.by_group[["group", "rows", "bias", "low", "high"]].head(8).round(1)

# %% [markdown]
# ## Correct it as flights land
#
# Each flight is predicted from flights that had landed when it should
# leave. Nothing else is used.

# %%
better = sc.recalibrate(
    flights, "late", "score", groups,
    time="scheduled", known="landed", seed=1,
)
print(better.verdict.headline.replace(": ", ":\n").replace("; ", ";\n"))

# %%
better.plot("groups")

# %% [markdown]
# Every figure takes an Axes and returns it. The worst groups in detail, and
# bias as the year went by:

# %%
better.plot("reliability")

# %%
better.plot("time")

# %% [markdown]
# ## Is it worth it?
#
# The refit is what a practitioner would do: a logistic regression on the
# score and the groups, fitted again as outcomes come.

# %%
better.plot("loss")

# %%
better.frame[["carrier", "late", "score", "forecast"]].tail()

# %% [markdown]
# ## What it did not fix
#
# Groups whose interval still leaves out 0:

# %%
left = better.by_group
biased = left[left["after_off"]]
biased[["group", "rows", "before_bias", "after_bias"]].round(1)

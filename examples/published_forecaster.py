"""An audit of published forecasts, and what can be taken away of their bias."""

import numpy as np
import pandas as pd

import swapcal as sc
from shared import figure, recorded, saved


def made_up(n: int = 6000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    league = rng.choice(["north", "south"], n)
    p = rng.beta(4, 4, n)
    truth = np.where(league == "north", p, 0.35 + 0.3 * (p - 0.5))  # the south is harder to tell than they think
    return pd.DataFrame({"league": league, "prob1": p, "prob1_outcome": (rng.random(n) < truth).astype(float)})


games = recorded("fte_games")
games = made_up() if games is None else games.sort_values("date", kind="stable").reset_index(drop=True)
question = {"y": "prob1_outcome", "groups": ["league"]}
before = sc.audit(games, p="prob1", **question)
games = sc.recalibrate(games, p="prob1", seed=1, **question).frame
after = sc.audit(games, p="forecast", **question)

for name, result in (("before", before), ("after", after)):
    side = result.before if result.before is not None else result.after
    print(f"{name:>6}: {result.verdict.headline}")
    print(f"        swap error {side.swap_error:.1f} over {result.counts.scored:,} games, loss {side.loss:.4f}")

drawn, axes = figure(1, 2, height=4.0)
for each, column, title in ((axes[0], "prob1", "published"), (axes[1], "forecast", "recalibrated")):
    for league, part in games.groupby("league"):
        bins = pd.cut(part[column], np.linspace(0, 1, 11))
        table = part.groupby(bins, observed=True).agg(
            p=(column, "mean"), y=("prob1_outcome", "mean"), n=(column, "size")
        )
        table = table[table["n"] >= 30]
        each.plot(table["p"], table["y"], "o-", ms=3, lw=1, label=str(league))
    each.plot([0, 1], [0, 1], color="black", lw=0.5)
    each.set(title=title, xlabel="forecast", ylabel="share of wins")
axes[0].legend(frameon=False, fontsize=7)
saved(drawn, "published_forecaster")

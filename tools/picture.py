"""The picture of the README: a frozen model and the same model behind swapcal, by week and by airline.

`make picture` draws it from `sc.datasets.flights()`, in half a minute.
"""

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.dates
import matplotlib.pyplot as plt

import swapcal as sc

dates: Any = matplotlib.dates
TARGET = Path(__file__).resolve().parents[1] / "docs" / "images" / "flights.png"
BEFORE, AFTER, INK, QUIET = "#b54a06", "#1a5fb4", "#1b1f27", "#7b8494"
GROUPS = "carrier,origin,carrier*origin,hour"
# Airlines of fewer flights have intervals as wide as the picture.
FEWEST = 400
NAMES = {
    **{"9E": "Endeavor", "AA": "American", "AS": "Alaska", "B6": "JetBlue", "DL": "Delta", "EV": "ExpressJet"},
    **{"F9": "Frontier", "FL": "AirTran", "HA": "Hawaiian", "MQ": "Envoy", "OO": "SkyWest", "UA": "United"},
    **{"US": "US Airways", "VX": "Virgin America", "WN": "Southwest", "YV": "Mesa"},
}


def main() -> None:
    """Recalibrate the year, and draw both panels."""
    flights = sc.datasets.flights()
    result = sc.recalibrate(flights, "late", "score", GROUPS, time="scheduled", known="landed", seed=1)
    plt.rcParams.update({"font.size": 11.5, "text.color": INK, "axes.edgecolor": QUIET})
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.9), gridspec_kw={"width_ratios": [1.15, 1]})
    by_week(left, result.frame)
    by_airline(right, result.by_group)
    change = result.change
    assert change is not None
    figure.suptitle(
        f"{len(flights):,} flights, each learned from once it had landed. Brier score {change.before:.3f} before, "
        f"{change.after:.3f} after.",
        x=0.01,
        ha="left",
        fontsize=11,
        color=QUIET,
    )
    figure.tight_layout(w_pad=2.0)
    TARGET.parent.mkdir(exist_ok=True)
    figure.savefig(TARGET, dpi=120, facecolor="white")


def by_week(ax: Any, frame: Any) -> None:
    """Mean of predicted minus observed in each week."""
    weekly = frame.set_index("scheduled").resample("W")
    for name, label, color, marker in (
        ("score", "a model trained on January and February", BEFORE, "s"),
        ("forecast", "the same model behind swapcal", AFTER, "o"),
    ):
        bias = 100.0 * (weekly[name].mean() - weekly["late"].mean())
        ax.plot(bias.index, bias, color=color, marker=marker, markersize=4, linewidth=1.8, label=label)
    ax.axhline(0.0, color=QUIET, linewidth=1.0)
    ax.xaxis.set_major_locator(dates.MonthLocator(interval=2))
    ax.xaxis.set_major_formatter(dates.DateFormatter("%b"))
    ax.set_title("All flights, week by week", loc="left", fontweight="bold")
    ax.set_ylabel("predicted - observed, points")
    ax.legend(frameon=False, loc="upper left")
    ax.set_ylim(-25.0, 27.0)
    ax.spines[["top", "right"]].set_visible(False)


def by_airline(ax: Any, groups: Any) -> None:
    """Bias of each airline over the year, with 95 % confidence intervals."""
    airlines = groups[groups["group"].isin([f"carrier={code}" for code in NAMES]) & (groups["rows"] >= FEWEST)]
    airlines = airlines.sort_values("before_bias").reset_index(drop=True)
    for side, color, marker, shift in (("before", BEFORE, "s", -0.18), ("after", AFTER, "o", 0.18)):
        places = airlines.index + shift
        ax.hlines(places, airlines[f"{side}_low"], airlines[f"{side}_high"], color=color, alpha=0.4, linewidth=3.0)
        ax.plot(airlines[f"{side}_bias"], places, marker, color=color, markersize=5.5)
    biased = {side: int(airlines[f"{side}_off"].sum()) for side in ("before", "after")}
    ax.set_title(
        f"Airlines: {biased['before']} of {len(airlines)} biased before, {biased['after']} after",
        loc="left",
        x=-0.25,
        fontweight="bold",
    )
    ax.axvline(0.0, color=QUIET, linewidth=1.0)
    ax.set_yticks(airlines.index, [NAMES[name.partition("=")[2]] for name in airlines["group"]])
    ax.set_xlabel("predicted - observed over the year, points")
    ax.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()

"""Where data come from and figures go."""

import os
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pandas as pd


def recorded(name: str) -> pd.DataFrame | None:
    """The recorded stream of that name, where somebody has said where it lies."""
    given = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("SWAPCAL_DATA")
    path = None if given is None else Path(given) / f"{name}.csv"
    if path is None or not path.exists():
        print(f"(no {name}.csv was given: made-up data)")
        return None
    return pd.read_csv(path)


def figure(rows: int = 1, columns: int = 1, width: float = 9.0, height: float = 3.6) -> tuple[Any, Any]:
    """An empty figure in one style."""
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    return plt.subplots(rows, columns, figsize=(width, height), constrained_layout=True)


def saved(drawn: Any, name: str) -> None:
    """Save a figure as PNG, and say where."""
    folder = Path(os.environ.get("SWAPCAL_FIGURES", Path(__file__).parent))
    folder.mkdir(parents=True, exist_ok=True)
    drawn.savefig(folder / f"{name}.png", dpi=120)
    plt.close(drawn)
    print(f"figure: {name}.png")

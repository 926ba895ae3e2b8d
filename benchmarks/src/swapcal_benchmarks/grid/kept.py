"""What the engine with equal bins scored, and the recipes of the streams on which it did: `equal_bins.json`."""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from swapcal_benchmarks.grid.grid_row import HINTS, GridScores
from swapcal_benchmarks.grid.recipes import Recipe

__all__ = ["FRESH", "LONG", "RECORDED", "TUNED", "KeptGame", "about", "game", "recipes_of", "scores"]

TUNED, FRESH, LONG, RECORDED = "seeds 1 to 9", "seeds 101 to 109", "a million rounds", "recorded files"
"""The sets of streams. The constants of the grid were chosen on the first and the last."""


@dataclass(frozen=True, slots=True)
class KeptGame:
    """SMCal_2 over T^(1/3) in a game, and the values that were played."""

    unit: float
    values: int


@cache
def _kept() -> dict[str, Any]:
    text = files("swapcal_benchmarks.grid").joinpath("equal_bins.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


def about() -> str:
    """How the numbers were made."""
    return str(_kept()["about"])


def recipes_of(group: str) -> list[Recipe]:
    """The streams of a set that are made and not read.

    Examples
    --------
    >>> recipes_of(FRESH)[0].name
    'probability, T = 10,000'
    """
    return [Recipe(**entry["recipe"]) for entry in _kept()["streams"][group].values()]


def scores(group: str, stream: str) -> dict[str, GridScores]:
    """The numbers of a stream by kind of hint; none if it was not played."""
    entry = _kept()["streams"][group].get(stream, {})
    return {kind: GridScores(**entry[kind]) for kind in HINTS if kind in entry}


def game(name: str) -> KeptGame:
    """The numbers of a game."""
    entry = _kept()["adversaries"][name]
    return KeptGame(entry["unit"], entry["values"])

"""Streams with seeds that nothing was chosen on, and an earlier version on the same ones."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np

from swapcal_benchmarks.grid.grid_playing import hints_of, scored
from swapcal_benchmarks.grid.recipes import Recipe
from swapcal_benchmarks.report import Table, Target

__all__ = ["FreshRow", "FreshStream", "against", "fresh_streams", "read_before"]

_KINDS = {
    "probability": 0.0,
    "quantile": 0.0,
    "expectile": 0.0,
    "mean": 0.0,
    "noise": 0.1,
    "density": 4.0,
    "heaped": 0.0,
}
_SEEDS = {10_000: 8, 100_000: 3}
_FIRST = 301
MOST = 0.87
"""Swap error over that of the version before, over all streams with a hint: at most."""


@dataclass(frozen=True, slots=True)
class FreshRow:
    """A stream, a kind of hint and a seed: the swap error of what was said, and the mean loss of what was shown."""

    stream: str
    hint: str
    seed: int
    swap: float
    loss: float

    @property
    def key(self) -> tuple[str, str]:
        """All seeds of it are one line of the table."""
        return self.stream, self.hint


@dataclass(frozen=True, slots=True)
class FreshStream:
    """A recipe to be played in any process."""

    recipe: Recipe

    @property
    def cost(self) -> float:
        """Rounds, of four kinds of hint."""
        return 4.0 * self.recipe.n_rounds

    def __call__(self) -> list[FreshRow]:
        """A row for each kind of hint."""
        stream, rows = self.recipe.stream(), []
        for kind, hint in hints_of(stream).items():
            found = scored(stream, kind, hint, rare=False)
            rows.append(FreshRow(self.recipe.name, kind, self.recipe.seed, found.swap, found.loss))
        return rows


def fresh_streams() -> Iterator[FreshStream]:
    """Eight seeds of short streams and three of long ones."""
    for n_rounds, n_seeds in _SEEDS.items():
        for kind, parameter in _KINDS.items():
            yield from (FreshStream(Recipe(kind, parameter, n_rounds, _FIRST + k)) for k in range(n_seeds))


def read_before(path: Path) -> list[FreshRow]:
    """What an earlier version printed with --json."""
    return [FreshRow(**row) for row in json.loads(path.read_text(encoding="utf-8"))["fresh"]]


def against(now: Sequence[FreshRow], before: Sequence[FreshRow]) -> tuple[Table, list[Target]]:
    """Both versions side by side, and what is asked of them."""
    earlier = {(row.key, row.seed): row for row in before}
    pairs = [(row, earlier[row.key, row.seed]) for row in now]
    lines, worse, hinted = [], [], []
    for key, group in groupby(sorted(pairs, key=lambda pair: _place(pair[0])), key=lambda pair: pair[0].key):
        both = list(group)
        logs = [math.log(max(new.swap, 1e-12) / max(old.swap, 1e-12)) for new, old in both]
        mean, error = float(np.mean(logs)), float(np.std(logs, ddof=1) / math.sqrt(len(logs)))
        change = 100.0 * float(np.mean([new.loss / old.loss - 1.0 for new, old in both]))
        lines.append((*key, str(len(both)), f"{math.exp(mean):.2f}", f"{error:.2f}", f"{change:+.2f} %"))
        worse += [f"{key[0]}, {key[1]}: {math.exp(mean):.2f}"] if mean > 2.0 * error else []
        hinted += logs if key[1] != "none" else []
    ratio = math.exp(float(np.mean(hinted)))
    note = (
        "Swap error of what the engine said over that of the version before, on the same seeds: geometric mean, and "
        "the standard error of its logarithm. Loss of what was shown: its mean change. Seeds from 301 on, which "
        "nothing was chosen on."
    )
    head = ("stream", "hint", "seeds", "swap error over before", "standard error", "loss")
    asked = "swap error over the version before, fresh seeds, with hints"
    return Table("The version before, fresh seeds", head, tuple(lines), note), [
        Target(f"{asked}: at most {MOST}", f"{ratio:.2f}", ratio <= MOST),
        Target(
            f"{asked} or without: no row above it beyond two standard errors",
            f"{len(worse)} of {len(lines)} rows above",
            not worse,
            tuple(worse),
        ),
    ]


def _place(row: FreshRow) -> tuple[int, str, str, int]:
    return len(row.stream), row.stream, row.hint, row.seed

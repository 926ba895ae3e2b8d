"""All rows and games, over the cores."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from swapcal_benchmarks.cores import run_jobs
from swapcal_benchmarks.grid import kept
from swapcal_benchmarks.grid.fresh import FreshRow, FreshStream, fresh_streams, read_before
from swapcal_benchmarks.grid.grid_playing import hints_of, play, scored
from swapcal_benchmarks.grid.grid_row import GridRow
from swapcal_benchmarks.grid.hostile import Game, games
from swapcal_benchmarks.grid.recipes import GridStream, Recipe
from swapcal_benchmarks.grid.recorded_questions import recorded
from swapcal_benchmarks.streams.recorded import STREAMS

__all__ = ["GridResult", "PlayedGame", "measure"]

_FILE_COST = 4e6


@dataclass(frozen=True, slots=True)
class PlayedGame:
    """A game beside the old engine's: SMCal_2 over T^(1/3), and values."""

    name: str
    old: float
    new: float
    old_values: int
    new_values: int

    @property
    def ratio(self) -> float:
        """Over the old one."""
        return self.new / self.old


@dataclass(frozen=True, slots=True)
class GridResult:
    """Everything that was measured; `same` says whether a run that was told its horizon made the same forecasts.

    `fresh` has the streams with fresh seeds, and `before` an earlier version on them.
    """

    rows: list[GridRow]
    games: list[PlayedGame]
    same: bool
    fresh: list[FreshRow]
    before: list[FreshRow]


@dataclass(frozen=True, slots=True)
class _Streams:
    """A recipe of a set, or a file with its questions."""

    group: str
    source: Recipe | tuple[Path, str]

    @property
    def cost(self) -> float:
        return float(4 * self.source.n_rounds) if isinstance(self.source, Recipe) else _FILE_COST

    def __call__(self) -> list[GridRow]:
        if isinstance(self.source, Recipe):
            return _rows(self.group, self.source.name, self.source.stream(), rare=self.source.kind == "rare")
        return [row for name, stream in recorded(*self.source) for row in _rows(self.group, name, stream, rare=False)]


@dataclass(frozen=True, slots=True)
class _Told:
    """Whether a horizon changes anything."""

    cost: float = 1e5

    def __call__(self) -> bool:
        for kind in ("probability", "quantile"):
            stream = Recipe(kind, 0.0, 10_000, 1).stream()
            for hint in ("none", "frozen", "learning"):
                told = play(stream, hint, horizon=len(stream.y))
                if not np.array_equal(told, play(stream, hint)):
                    return False
        return True


_Job: TypeAlias = _Streams | FreshStream | Game | _Told


def measure(
    directory: Path | None,
    *,
    full: bool = False,
    workers: int | None = None,
    before: Path | None = None,
    begin: Callable[[float], None] | None = None,
    done: Callable[[float], None] | None = None,
) -> GridResult:
    """Play everything; `begin` is told the whole cost, `done` that of what has finished.

    Parameters
    ----------
    directory : Path, optional
        Where the five recorded files are; without it they are left out.
    full : bool
        Also the streams of a million rounds.
    workers : int, optional
        Processes; all cores by default.
    before : Path, optional
        What an earlier version printed with `--json`.
    begin, done : callable, optional
        For a progress bar.
    """
    groups = (kept.TUNED, kept.FRESH, *((kept.LONG,) if full else ()))
    streams = [_Streams(group, recipe) for group in groups for recipe in kept.recipes_of(group)]
    if directory is not None:
        streams += [_Streams(kept.RECORDED, (directory, name)) for name in STREAMS]
    played, fresh = list(games()), list(fresh_streams())
    earlier = [] if before is None else read_before(before)
    jobs: list[_Job] = [*streams, *fresh, *played, _Told()]
    if begin is not None:
        begin(sum(job.cost for job in jobs))
    results: list[object] = run_jobs(jobs, workers=workers, done=done)
    listed = [row for found in results if isinstance(found, list) for row in found]
    rows = [row for row in listed if isinstance(row, GridRow)]
    scored = []
    for one, found in zip(played, results[len(streams) + len(fresh) : -1], strict=True):
        assert isinstance(found, tuple)
        old = kept.game(one.name)
        scored.append(PlayedGame(one.name, old.unit, found[0], old.values, found[1]))
    return GridResult(rows, scored, bool(results[-1]), [row for row in listed if isinstance(row, FreshRow)], earlier)


def _rows(group: str, name: str, stream: GridStream, *, rare: bool) -> list[GridRow]:
    old = kept.scores(group, name)
    rows = []
    for kind, hint in hints_of(stream).items():
        new = scored(stream, kind, hint, rare=rare)
        if kind in old:
            rows.append(GridRow(group, name, kind, len(stream.y), old[kind], new))
    return rows

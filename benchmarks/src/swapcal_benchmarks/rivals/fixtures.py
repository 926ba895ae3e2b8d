"""Which runs a contest consists of."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from swapcal.errors import InvalidInput
from swapcal_benchmarks.rivals.boards import BOARDS, Board
from swapcal_benchmarks.rivals.contestants import Contestant, all_contestants
from swapcal_benchmarks.rivals.duels import ADVERSARIES
from swapcal_benchmarks.rivals.match import NO_TRUTH, Match
from swapcal_benchmarks.rivals.probe import Probe, probe
from swapcal_benchmarks.rivals.table_file import TableFile

__all__ = ["DEFAULT_HORIZONS", "DEFAULT_SEEDS", "FULL_HORIZONS", "FULL_SEEDS", "Fixtures", "Settings", "make_plan"]

T = TypeVar("T")

DEFAULT_HORIZONS, DEFAULT_SEEDS = (200, 800, 3200), 3
FULL_HORIZONS, FULL_SEEDS = (1000, 4000, 16_000, 64_000), 5

SLOW = 1000.0
"""Microseconds a round from which on a method gets the smaller half of the horizons only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What was asked for; None stands for all, or for the default sizes."""

    only: tuple[str, ...] | None = None
    streams: tuple[str, ...] | None = None
    boards: tuple[str, ...] | None = None
    horizons: tuple[int, ...] | None = None
    seeds: int | None = None
    full: bool = False
    n_groups: int = 12
    file: TableFile | None = None

    def __post_init__(self) -> None:
        if self.seeds is not None and self.seeds < 1:
            raise InvalidInput(f"there must be one seed or more; got {self.seeds}")
        if self.n_groups < 7:
            raise InvalidInput(f"the streams need 7 groups or more; got {self.n_groups}")
        if self.horizons is not None and (not self.horizons or min(self.horizons) < 30):
            raise InvalidInput(
                f"horizons must be 30 rounds or more; got {', '.join(map(str, self.horizons)) or 'none'}"
            )


@dataclass(frozen=True, slots=True)
class Fixtures:
    """The runs, and what is known beforehand.

    Parameters
    ----------
    boards : list of Board
        Those with at least one stream.
    contestants : list of Contestant
        Those that were asked for.
    horizons : tuple of int
        In increasing order.
    matches : list of Match
        The runs.
    refusals : dict
        Why (board, method, stream) is not played; the stream is "" where it does not matter.
    probes : dict
        By (board, method).
    slow : list of str
        Methods that get the smaller horizons only.
    """

    boards: list[Board]
    contestants: list[Contestant]
    horizons: tuple[int, ...]
    matches: list[Match]
    refusals: dict[tuple[str, str, str], str] = field(default_factory=dict)
    probes: dict[tuple[str, str], Probe] = field(default_factory=dict)
    slow: list[str] = field(default_factory=list)


def make_plan(settings: Settings, log: str | None = None) -> Fixtures:
    """All runs of a contest, with fixed seeds 0, 1, ...; methods that do not cover a board are asked why."""
    people = _chosen(settings.only, all_contestants(), "method")
    boards = _boards(settings)
    sizes = settings.horizons or (FULL_HORIZONS if settings.full else DEFAULT_HORIZONS)
    if settings.file is not None:
        sizes = (settings.file.n_rounds,)
    horizons = tuple(sorted(set(sizes)))
    n_seeds = settings.seeds or (FULL_SEEDS if settings.full else DEFAULT_SEEDS)
    plan = Fixtures(boards, people, horizons, [])
    for board in boards:
        for each in people:
            seen = plan.probes[board.name, each.name] = probe(each, board, horizons[-1])
            if seen.refused is not None:
                plan.refusals[board.name, each.name, ""] = seen.refused
                continue
            slow = seen.microseconds > SLOW and len(horizons) > 1
            if slow and each.name not in plan.slow:
                plan.slow.append(each.name)
            for stream in board.streams:
                if each.hint == "truth" and (stream in ADVERSARIES or settings.file is not None):
                    plan.refusals[board.name, each.name, stream] = NO_TRUTH
                    continue
                plan.matches.extend(
                    Match(
                        board=board.name,
                        stream=stream,
                        method=each.name,
                        horizon=horizon,
                        seed=seed,
                        n_groups=settings.n_groups,
                        file=settings.file,
                        weight=seen.microseconds,
                        log=log,
                    )
                    for horizon in (horizons[: (len(horizons) + 1) // 2] if slow else horizons)
                    for seed in range(n_seeds)
                )
    return plan


def _boards(settings: Settings) -> list[Board]:
    if settings.file is not None:
        return [settings.file.board()]
    boards = _chosen(settings.boards, BOARDS, "board")
    if settings.streams is None:
        return boards
    known = list(dict.fromkeys(name for board in boards for name in board.streams))
    _chosen(settings.streams, dict.fromkeys(known), "stream")
    kept = [(board, tuple(name for name in board.streams if name in settings.streams)) for board in boards]
    return [Board(b.name, b.title, b.property, b.linear, names) for b, names in kept if names]


def _chosen(names: Sequence[str] | None, known: dict[str, T], what: str) -> list[T]:
    """The wanted ones: for methods, all whose names contain the word; otherwise by the exact name."""
    if names is None:
        return list(known.values())
    partly = what == "method"
    found: dict[str, T] = {}
    for name in names:
        word = name.strip().lower()
        hits = {k: v for k, v in known.items() if word and (word in k.lower() if partly else word == k.lower())}
        if not hits:
            raise InvalidInput(f"there is no {what} {name!r}; there are {', '.join(known)}")
        found |= hits
    return [value for key, value in known.items() if key in found]

"""From runs to rows: means over seeds and streams, and exponents."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from swapcal.typing import Float64Array
from swapcal_benchmarks.exponents import ConfidenceInterval, exponent
from swapcal_benchmarks.rivals.contestants import Contestant
from swapcal_benchmarks.rivals.fixtures import Fixtures
from swapcal_benchmarks.rivals.match import Result
from swapcal_benchmarks.rivals.scores import CLAIMS

__all__ = ["Standing", "Summary", "summarize"]

Cells = dict[tuple[str, int], dict[int, dict[str, float | None]]]
"""Scores by (stream, horizon) and seed."""


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """One method on one board.

    Parameters
    ----------
    contestant : Contestant
        Who.
    cells : dict
        Scores by (stream, horizon) and seed.
    horizon : int
        The largest that was played; what the row shows is from it.
    uses_hint : bool
        Whether its forecasts depend on the hint.
    refused : str, optional
        Why there is nothing to show.
    """

    contestant: Contestant
    cells: Cells
    horizon: int
    uses_hint: bool
    refused: str | None = None

    def at(self, stream: str, name: str, horizon: int | None = None) -> float | None:
        """The mean over seeds of a score; None where it was not measured."""
        seeds = self.cells.get((stream, horizon or self.horizon), {})
        values = [scores[name] for scores in seeds.values()]
        known = [float(value) for value in values if value is not None]
        return float(np.mean(known)) if known and len(known) == len(values) else None

    def over(self, streams: Iterable[str], name: str, mean: Callable[[list[float]], float]) -> float | None:
        """A mean over the streams on which the score was measured."""
        values = [value for stream in streams if (value := self.at(stream, name)) is not None]
        return mean(values) if values else None

    def curve(self, streams: Iterable[str], name: str) -> tuple[Float64Array, Float64Array] | None:
        """Horizons, and the score's mean over streams in the shape (seeds, horizons); None if runs are lacking."""
        wanted = list(streams)
        horizons = sorted({horizon for _, horizon in self.cells})
        seeds = sorted({seed for by_seed in self.cells.values() for seed in by_seed})
        table = np.full((len(seeds), len(horizons), len(wanted)), np.nan)
        for i, seed in enumerate(seeds):
            for j, horizon in enumerate(horizons):
                for k, stream in enumerate(wanted):
                    value = self.cells.get((stream, horizon), {}).get(seed, {}).get(name)
                    table[i, j, k] = np.nan if value is None else value
        if not wanted or not table.size or np.isnan(table).any():
            return None
        return np.array(horizons, dtype=np.float64), table.mean(axis=2)

    def exponent(self, streams: Iterable[str], name: str) -> ConfidenceInterval | None:
        """The slope of the mean over streams against T, with its interval over seeds; None if it cannot be had."""
        found = self.curve(streams, name)
        if found is None or len(found[0]) < 2 or not (found[1] > 0.0).all():
            return None
        return exponent(*found)

    def claimed_score(self) -> str | None:
        """The field of the scores that the card's exponent is about; None if it claims none, or none of ours."""
        card = self.contestant.card
        names = [name for words, name in CLAIMS.items() if card.error.startswith(words)]
        return names[0] if names and card.exponent is not None else None


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """Rows by board: the clairvoyant first, then by SMCal, then those that do not take part."""

    plan: Fixtures
    rows: dict[str, list[Standing]]
    failures: list[Result] = field(default_factory=list)

    def streams(self, board: str) -> tuple[str, ...]:
        """The columns of a board."""
        return next(each.streams for each in self.plan.boards if each.name == board)


def geometric(values: list[float]) -> float:
    """The geometric mean, with zeros taken as 1e-12."""
    return float(np.exp(np.mean(np.log(np.maximum(values, 1e-12)))))


def summarize(plan: Fixtures, results: Iterable[Result]) -> Summary:
    """Sort the results into rows."""
    cells: dict[tuple[str, str], Cells] = {}
    failures, refused = [], {key[:2]: why for key, why in plan.refusals.items() if not key[2]}
    for result in results:
        key = result["key"]
        if result["failed"] is not None:
            failures.append(result)
        elif result["refused"] is not None:
            plan.refusals.setdefault((key["board"], key["method"], key["stream"]), result["refused"])
        else:
            place = cells.setdefault((key["board"], key["method"]), {})
            place.setdefault((key["stream"], key["horizon"]), {})[key["seed"]] = result["scores"]
    summary = Summary(plan, {}, failures)
    for board in plan.boards:
        rows = []
        for each in plan.contestants:
            mine = cells.get((board.name, each.name), {})
            seen = plan.probes[board.name, each.name]
            why = None if mine else refused.get((board.name, each.name), _reason(summary, board.name, each.name))
            rows.append(Standing(each, mine, max((t for _, t in mine), default=0), seen.uses_hint, why))
        summary.rows[board.name] = sorted(rows, key=lambda row: _place(row, board.streams, plan.horizons[-1]))
    return summary


def _reason(summary: Summary, board: str, method: str) -> str:
    for result in summary.failures:
        if result["key"]["board"] == board and result["key"]["method"] == method:
            return f"failed: {result['failed']}"
    reasons = [why for (b, m, _), why in summary.plan.refusals.items() if (b, m) == (board, method)]
    return reasons[0] if reasons else "no finished run"


def _place(row: Standing, streams: tuple[str, ...], top: int) -> tuple[int, float]:
    if row.refused is not None:
        return 3, 0.0
    if row.contestant.hint == "truth":
        return 0, 0.0
    score = row.over(streams, "smcal", geometric)
    return (1 if row.horizon == top else 2), float("inf") if score is None else score

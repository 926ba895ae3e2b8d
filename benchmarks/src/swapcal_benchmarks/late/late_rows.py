"""One row for each stream and delay: ours beside the model and the rivals, all on the same information."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from swapcal.forecaster import Forecaster
from swapcal.hints import OnlineRegression
from swapcal.hypotheses import Finite
from swapcal.sparse import CompressedRows
from swapcal.typing import Float64Array
from swapcal_benchmarks.late.late_cache import LateCache
from swapcal_benchmarks.late.late_rivals import RECENT, REFIT, RIVALS, rival, rivals_of
from swapcal_benchmarks.late.late_scores import LateScore, Pair, measure, paired
from swapcal_benchmarks.late.late_stream import REPORTED, LateStream

__all__ = ["METHODS", "OURS", "UNLEARNED", "LateRow", "measure_rows", "ours"]

OURS, UNLEARNED = "ours", "without learning"
METHODS = (OURS, UNLEARNED, *RIVALS)


@dataclass(frozen=True, slots=True)
class LateRow:
    """What every method makes of a stream and its delay.

    model: the model's own score. scores: by method; None where a method has no meaning. pairs: ours less a refit.
    """

    stream: str
    delay: str
    kind: str
    half: str
    recorded: bool
    right: bool
    depends: bool
    n_rounds: int
    model: LateScore
    scores: Mapping[str, LateScore | None]
    pairs: Mapping[str, Pair]

    @property
    def label(self) -> str:
        """Stream and delay."""
        return f"{self.stream}, {self.delay}"

    @property
    def reported(self) -> bool:
        """Whether nothing may be chosen on it."""
        return self.half == REPORTED

    def loss(self, method: str = OURS) -> float:
        """In percent against the model's."""
        score = self.scores[method]
        return float("nan") if score is None else score.loss

    def data(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def ours(stream: LateStream, *, learning: bool) -> Float64Array:
    """Our forecasts with the defaults."""
    source = stream.source
    forecaster = Forecaster(
        source.property,
        Finite(source.n_groups),
        seed=0,
        hint=OnlineRegression() if learning else None,
        outside="clip",
        jitter=source.jitter,
    )
    known = np.where(np.isinf(stream.known), np.nan, stream.known)
    rows = CompressedRows(*source.groups[:2], source.groups.values, (len(source.y), source.n_groups))
    return forecaster.run(rows, source.y, source.p, known=known)


def measure_rows(
    streams: Iterable[LateStream], cache: LateCache, *, done: Callable[[LateStream], None] | None = None
) -> list[LateRow]:
    """A row for each stream; `done` is told each when it is finished."""
    rows: list[LateRow] = []
    for stream in streams:
        source = stream.source
        forecasts: dict[str, Float64Array] = {
            OURS: ours(stream, learning=True),
            UNLEARNED: ours(stream, learning=False),
        }
        forecasts |= {name: rival(stream, name, cache) for name in rivals_of(stream)}
        rows.append(
            LateRow(
                source.name,
                stream.delay,
                source.kind,
                source.half,
                source.recorded,
                source.right,
                stream.depends,
                len(source.y),
                measure(stream, source.p),
                {name: measure(stream, forecasts[name]) if name in forecasts else None for name in METHODS},
                {name: paired(stream, forecasts[OURS], forecasts[name]) for name in (REFIT, RECENT)},
            )
        )
        if done is not None:
            done(stream)
    return rows

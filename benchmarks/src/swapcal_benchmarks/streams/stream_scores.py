"""The measurement: a frozen model's forecasts before, and ours on top of them, scored as an outsider would."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from swapcal.audits import Audit
from swapcal.audits.scores import PairedLosses
from swapcal.errors import DataError
from swapcal.forecaster import Forecaster
from swapcal.hints import OnlineRegression
from swapcal.hypotheses import Finite, Groups
from swapcal.properties import Expectile, Mean, Quantile
from swapcal.protocols import Elicitable, Rows
from swapcal.typing import Float64Array
from swapcal_benchmarks.streams.models import frozen
from swapcal_benchmarks.streams.recorded import RecordedStream, load
from swapcal_benchmarks.streams.stream_row import StreamErrors, StreamRow

__all__ = ["HINTS", "fitted", "measure", "models_of", "nearest", "questions"]

HINTS = {"the model": None, "learning on the model": OnlineRegression()}
"""What forecasts are hung on, by name; everything else is a default of `Forecaster`."""

N_SEEDS = 3
_BINS = 48

Property = Mean | Quantile | Expectile


def measure(
    directory: Path, names: Sequence[str], *, done: Callable[[str], None] | None = None, seeds: int = N_SEEDS
) -> list[StreamRow]:
    """All rows of the streams `names`, read from a directory; `done` is told each stream when it is finished."""
    rows: list[StreamRow] = []
    for name in names:
        stream = load(directory, name)
        for question, asked in questions(stream):
            for model in models_of(stream):
                forecasts = frozen(stream, asked, past=model == "trees + past")
                rows += _rows(stream, question, asked, model, forecasts, seeds)
        if done is not None:
            done(name)
    return rows


def models_of(stream: RecordedStream) -> tuple[str, ...]:
    """Which models there are for a stream."""
    if stream.forecast is not None:
        return ("published",)
    return ("trees",) if stream.day is None else ("trees", "trees + past")


def questions(stream: RecordedStream) -> list[tuple[str, Property]]:
    """What is asked of a stream, by name: its mean, and a quantile and an expectile where outcomes are quantities."""
    if not stream.real:
        return [("mean", Mean())]
    first = stream.y[: stream.start]
    low, high = min(0.0, float(np.nanmin(first))), float(np.nanmax(first))
    return [
        ("mean", Mean(low=low, high=high)),
        ("quantile 0.9", Quantile(0.9, low=low, high=high)),
        ("expectile 0.8", Expectile(0.8, low=low, high=high)),
    ]


def _rows(
    stream: RecordedStream, question: str, property: Property, model: str, forecasts: Float64Array, seeds: int
) -> Iterator[StreamRow]:
    y, p = stream.y[stream.start :], forecasts[stream.start :]
    low, high = property.domain
    known = np.flatnonzero(~np.isnan(y))
    scored = _Scored(stream, property, y[known], known)
    # Whole numbers have no density, which a quantile needs: they are spread over the interval that they stand for.
    first = stream.y[: stream.start]
    whole = bool((np.isnan(first) | (first == np.round(first))).all())
    jitter = 1.0 if isinstance(property, Quantile) and whole else 0.0
    for name, learning in HINTS.items():
        forecasters = [
            Forecaster(
                property,
                fitted(stream),
                seed=seed,
                hint=learning,
                outside="clip",
                jitter=jitter,
            )
            for seed in range(seeds)
        ]
        table = stream.groups(slice(stream.start, None))
        ours = [each.run(table, y, p, missing="skip")[known] for each in forecasters]
        values = forecasters[0].values
        theirs = np.clip(p[known], low, high)
        losses = [scored.losses(each) for each in ours]
        before = scored.losses(p[known])
        blocks = PairedLosses()
        blocks.add(before, np.mean(losses, axis=0))
        pair = blocks.paired()
        if pair is None:
            raise DataError(f"{stream.name}.csv has no outcome behind its first fifth; there is nothing to score")
        yield StreamRow(
            stream=stream.name,
            outcome=stream.outcome,
            question=question,
            model=model,
            hint=name,
            n_rounds=len(known),
            n_groups=scored.n_groups,
            values=len(values),
            low=low,
            high=high,
            jitter=jitter,
            clipped=int(np.count_nonzero((y[known] < low) | (y[known] > high))),
            hints_clipped=int(np.count_nonzero((p < low) | (p > high))),
            before=scored.before(theirs, values),
            after=tuple(
                scored.errors(nearest(each, own.values), None) for each, own in zip(ours, forecasters, strict=True)
            ),
            guaranteed=max(float(each.guarantee()) for each in forecasters),
            loss_before=pair.before,
            losses_after=tuple(float(each.mean()) for each in losses),
            difference=pair.difference,
            interval=(pair.low, pair.high),
            rounding=float(scored.losses(nearest(theirs, values)).mean()) / pair.before,
        )


class _Scored:
    """The rounds that have an outcome, and how forecasts of them are scored."""

    def __init__(self, stream: RecordedStream, property: Elicitable, y: Float64Array, known: np.ndarray) -> None:
        self.property, self.y = property, y
        self.inside = np.clip(y, *property.domain)
        groups = fitted(stream)
        self.rows: Rows = groups.rows(stream.groups(stream.start + known), len(y))
        self.n, self.n_groups = groups.n, len(np.unique(self.rows.indices))

    def losses(self, p: Float64Array) -> Float64Array:
        """Losses on the outcomes as they were recorded."""
        return np.asarray(self.property.loss(p, self.y), dtype=np.float64)

    def errors(self, p: Float64Array, bins: int | Float64Array | None) -> StreamErrors:
        """Errors over the groups and all rows, on outcomes within the range; `bins` as `Audit` takes them."""
        audit = Audit(self.property, Finite(self.n), bins=bins)
        audit.update_many(self.inside, p, self.rows)
        return StreamErrors(audit.swap_multicalibration(), audit.multicalibration(), audit.calibration())

    def before(self, p: Float64Array, values: Float64Array) -> dict[str, StreamErrors]:
        """The model's errors: as it speaks, in the cells of our values and in 48 equal ones; rounded to both."""
        low, high = self.property.domain
        return {
            "our cells": self.errors(p, np.array([low, *(0.5 * (values[1:] + values[:-1])), high])),
            "our values": self.errors(nearest(p, values), None),
            "48 cells": self.errors(p, np.linspace(low, high, _BINS + 1)),
            "48 bins": self.errors(p, _BINS),
        }


def nearest(p: Float64Array, values: Float64Array) -> Float64Array:
    """Each forecast replaced by the nearest of `values`, which increase.

    Examples
    --------
    >>> nearest(np.array([0.1, 0.6]), np.array([0.0, 0.5, 1.0]))
    array([0. , 0.5])
    """
    return values[np.searchsorted(0.5 * (values[1:] + values[:-1]), p, side="right")]


def fitted(stream: RecordedStream) -> Groups:
    """The groups, with bands from the first fifth."""
    groups = Groups(list(stream.table), bands=stream.bands)
    groups.fit(stream.groups(slice(stream.start)))
    return groups

"""The questions of the five recorded files, as streams of the unit interval without missing outcomes."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from swapcal.properties import Expectile, Mean, Quantile
from swapcal.protocols import Elicitable
from swapcal_benchmarks.grid.recipes import GridStream
from swapcal_benchmarks.streams.models import frozen
from swapcal_benchmarks.streams.recorded import load
from swapcal_benchmarks.streams.stream_scores import fitted, models_of, questions

__all__ = ["recorded"]

_JITTER_SEED = 5


def recorded(directory: Path, name: str) -> Iterator[tuple[str, GridStream]]:
    """A name and a stream for each question and model of a file."""
    stream = load(directory, name)
    known = np.flatnonzero(~np.isnan(stream.y[stream.start :]))
    groups = fitted(stream)
    rows = groups.rows(stream.groups(stream.start + known), len(known))
    first = stream.y[: stream.start]
    whole = bool((np.isnan(first) | (first == np.round(first))).all())
    for question, asked in questions(stream):
        low, high = asked.domain
        y = np.clip((stream.y[stream.start :][known] - low) / (high - low), 0.0, 1.0)
        if isinstance(asked, Quantile) and whole:
            # Whole numbers have no density; they are spread over the interval that they stand for.
            y = y + (np.random.default_rng(_JITTER_SEED).random(len(y)) - 0.5) / (high - low)
            y = np.minimum(np.abs(y), 2.0 - np.abs(y))
        for model in models_of(stream):
            p = frozen(stream, asked, past=model == "trees + past")[stream.start :][known]
            hint = np.clip((p - low) / (high - low), 0.0, 1.0)
            yield f"{name}, {question}, {model}", GridStream(_unit(asked), groups.n, rows, y, hint)


def _unit(asked: Elicitable) -> Elicitable:
    """The same question on [0, 1]."""
    if isinstance(asked, Quantile):
        return Quantile(asked.level)
    return Expectile(asked.level) if isinstance(asked, Expectile) else Mean()

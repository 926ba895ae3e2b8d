"""The eight recorded files: outcomes, frozen models, groups, days, and when outcomes were known if that is written."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from swapcal.properties import Mean, Quantile
from swapcal.protocols import Rows
from swapcal.tables.batch import Batch, Coded
from swapcal.typing import Float64Array, IntArray
from swapcal_benchmarks.late.late_cache import LateCache
from swapcal_benchmarks.late.late_stream import EVENT, MEAN, QUANTILE, REPORTED, TUNING, LateSource
from swapcal_benchmarks.streams.models import frozen
from swapcal_benchmarks.streams.recorded import STREAMS, RecordedStream, coded, features_of, whole_file
from swapcal_benchmarks.streams.stream_scores import fitted

__all__ = ["FILES", "file_sources", "half_of_file"]

LEVEL = 0.9


@dataclass(frozen=True, slots=True, eq=False)
class _Recorded:
    """A file's stream with its segments, days, and the first row that knows each outcome, if that is written."""

    stream: RecordedStream
    segment: str
    days: IntArray | None = None
    real: Float64Array | None = None
    real_depends: bool = False


def half_of_file(name: str) -> str:
    """In alphabetical order, every other file is reported, from the first on."""
    return REPORTED if sorted(FILES).index(name) % 2 == 0 else TUNING


def file_sources(directory: Path, name: str, cache: LateCache) -> Iterator[LateSource]:
    """Everything that is asked of a file: an event; or a mean and a 0.9 quantile."""
    for recorded in FILES[name](whole_file(directory, name)):
        stream = recorded.stream
        first = stream.y[: stream.start]
        if not stream.real:
            yield _source(name, stream.name, EVENT, Mean(), recorded, cache)
            continue
        low, high = min(0.0, float(np.nanmin(first))), float(np.nanmax(first))
        yield _source(name, f"{stream.name} mean", MEAN, Mean(low=low, high=high), recorded, cache)
        quantile = Quantile(LEVEL, low=low, high=high)
        yield _source(name, f"{stream.name} {LEVEL} quantile", QUANTILE, quantile, recorded, cache)


def _source(
    file: str, name: str, kind: str, property: Mean | Quantile, recorded: _Recorded, cache: LateCache
) -> LateSource:
    """The rows behind the first fifth that have an outcome."""
    stream = recorded.stream
    rows = stream.start + np.flatnonzero(~np.isnan(stream.y[stream.start :]))
    key = cache.digest(stream.features, stream.y, np.array(stream.categorical))
    model = cache.kept(f"{name}, model", key, lambda: frozen(stream, property, past=False))
    groups = fitted(stream)
    table = groups.rows(stream.groups(rows), len(rows))
    segments: Any = stream.table[recorded.segment]
    whole = bool((stream.y[rows] == np.round(stream.y[rows])).all())
    return LateSource(
        name,
        kind,
        property,
        stream.y[rows],
        model[rows],
        Rows(table.indptr, table.indices, table.values),
        len(groups.names),
        segments.codes[rows].astype(np.int64),
        half_of_file(file),
        days=None if recorded.days is None else recorded.days[rows],
        real=None if recorded.real is None else np.searchsorted(rows, recorded.real[rows]).astype(np.float64),
        real_depends=recorded.real_depends,
        recorded=True,
        jitter=1.0 if whole and kind == QUANTILE else 0.0,
    )


def _adult(batch: Batch) -> Iterator[_Recorded]:
    stream = STREAMS["adult"](batch)
    yield _Recorded(stream, "education")
    numbers = ("age", "education_num", "capital_gain", "capital_loss")
    words = ("workclass", "education", "marital_status", "occupation", "relationship", "race", "sex", "native_country")
    features, categorical = features_of(batch, numbers, words)
    hours = batch.numbers("hours_per_week")
    yield _Recorded(
        replace(
            stream, name="adult hours", outcome="hours_per_week", y=hours, features=features, categorical=categorical,
            real=True,
        ),
        "education",
    )  # fmt: skip


def _elec2(batch: Batch) -> Iterator[_Recorded]:
    yield _Recorded(STREAMS["elec2"](batch), "hour", np.arange(len(batch)) // 48)


def _fte_games(batch: Batch) -> Iterator[_Recorded]:
    yield _Recorded(STREAMS["fte_games"](batch), "league", _day_numbers(_times(batch, "date", "D")))


def _bike_hour(batch: Batch) -> Iterator[_Recorded]:
    yield _Recorded(STREAMS["bike_hour"](batch), "hour", np.arange(len(batch)) // 24)


def _beijing_pm25(batch: Batch) -> Iterator[_Recorded]:
    yield _Recorded(STREAMS["beijing_pm25"](batch), "hour", np.arange(len(batch)) // 24)


def _no_shows(batch: Batch) -> Iterator[_Recorded]:
    booked, known = _times(batch, "booked", "s"), _times(batch, "known", "s")
    ahead = (_times(batch, "appointment", "D") - booked.astype("datetime64[D]")).astype(np.float64)
    numbers = ("age", "scholarship", "hypertension", "diabetes", "alcoholism", "handicap", "sms")
    features, categorical = features_of(batch, numbers, ("sex", "neighbourhood"))
    stream = RecordedStream(
        name="no_shows",
        outcome="no_show",
        y=batch.numbers("no_show"),
        features=np.column_stack([ahead, features]),
        categorical=(False, *categorical),
        table={
            "age": batch.numbers("age"),
            "days": ahead,
            **{name: coded(batch, name) for name in ("sex", "neighbourhood")},
            **{name: _labels(batch, name) for name in ("scholarship", "sms")},
        },
    )
    yield _Recorded(stream, "neighbourhood", _day_numbers(booked.astype("datetime64[D]")), _first_row(booked, known))


def _injury_claims(batch: Batch) -> Iterator[_Recorded]:
    reported, settled = _times(batch, "reported", "D"), _times(batch, "settled", "D")
    waited = (reported - _times(batch, "accident", "D")).astype(np.float64)
    features, categorical = features_of(batch, ("injured",), ("injury", "legal"))
    stream = RecordedStream(
        name="injury_claims",
        outcome="logarithm of cost",
        y=np.log(batch.numbers("cost")),
        features=np.column_stack([waited, features]),
        categorical=(False, *categorical),
        table={
            "injury": coded(batch, "injury"),
            "legal": coded(batch, "legal"),
            "injured": _labels(batch, "injured"),
        },
        real=True,
    )
    yield _Recorded(stream, "injury", _day_numbers(reported), _first_row(reported, settled), real_depends=True)


def _searches(batch: Batch) -> Iterator[_Recorded]:
    """With two models: one that sees the channel, and one that does not."""
    when = _times(batch, "date_time", "s")
    numbers = (
        "site_name", "posa_continent", "orig_destination_distance", "is_mobile", "is_package", "srch_adults_cnt",
        "srch_children_cnt", "srch_rm_cnt", "srch_destination_type_id", "hotel_continent",
    )  # fmt: skip
    features, categorical = features_of(batch, numbers, ())
    labels = ("channel", "posa_continent", "site_name", "is_mobile", "is_package", "hotel_continent")
    blind = RecordedStream(
        name="searches, channel unseen",
        outcome="is_booking",
        y=batch.numbers("is_booking"),
        features=features,
        categorical=categorical,
        table={name: _labels(batch, name) for name in labels},
    )
    seeing = replace(
        blind,
        name="searches",
        features=np.column_stack([features, batch.numbers("channel")]),
        categorical=(*categorical, True),
    )
    days = _day_numbers(when.astype("datetime64[D]"))
    yield _Recorded(seeing, "channel", days)
    yield _Recorded(blind, "channel", days)


FILES: dict[str, Callable[[Batch], Iterator[_Recorded]]] = {
    "adult": _adult,
    "beijing_pm25": _beijing_pm25,
    "bike_hour": _bike_hour,
    "elec2": _elec2,
    "fte_games": _fte_games,
    "injury_claims": _injury_claims,
    "no_shows": _no_shows,
    "searches": _searches,
}
"""How each file is read, by its name without .csv."""


def _labels(batch: Batch, name: str) -> Coded:
    """Whole numbers as names; three digits keep them from being cut into bands."""
    codes = batch.numbers(name).astype(np.int64)
    return Coded(codes, tuple(f"{k:03d}" for k in range(int(codes.max()) + 1)))


def _times(batch: Batch, name: str, unit: str) -> Any:
    column = coded(batch, name)
    return np.array([str(value).rstrip("Z") for value in column.values], dtype=f"datetime64[{unit}]")[column.codes]


def _day_numbers(days: Any) -> IntArray:
    """Numbers of days; dates that fall back count as the day before them."""
    found: IntArray = np.maximum.accumulate(np.unique(days, return_inverse=True)[1]).astype(np.int64)
    return found


def _first_row(times: Any, known: Any) -> Float64Array:
    """The first row at or after the moment at which each outcome is known."""
    found = np.searchsorted(np.maximum.accumulate(times), known).astype(np.float64)
    return np.where(found == len(times), np.inf, found)

"""From a frame to forecasts or to a verdict in one line."""

from typing import Any

import numpy as np

from swapcal.errors import InvalidInput
from swapcal.forecaster import Forecaster
from swapcal.hints import OnlineRegression
from swapcal.hypotheses import Groups
from swapcal.inputs import other_units
from swapcal.properties import Mean
from swapcal.protocols import Elicitable
from swapcal.tables.sources import package
from swapcal.typing import Float64Array


def _column(frame: Any, name: str) -> Float64Array:
    """A column of a frame as an array of floats; NaN where there is nothing."""
    narwhals = package("narwhals", "reading frames")
    table = narwhals.from_native(frame, eager_only=True)
    if name not in table.columns:
        raise InvalidInput(f"the frame has no column {name!r}; its columns are {', '.join(map(str, table.columns))}")
    return np.asarray(table[name].cast(narwhals.Float64()).to_numpy(), dtype=np.float64)


def forecaster_for(
    frame: Any,
    *,
    y: str,
    hint: str | None = None,
    groups: Any = (),
    property: Elicitable | None = None,
    learn: bool = False,
    **settings: Any,
) -> Forecaster:
    """A forecaster that has gone through a frame: the next row can be forecast.

    Parameters
    ----------
    frame : pandas, polars or Arrow frame
        Rows in the order of time.
    y : str
        Column of outcomes; rows without one teach nothing.
    hint : str, optional
        Column of a model's forecasts.
    groups : sequence
        For whom, as `Groups` takes them.
    property : Elicitable, optional
        What is forecast, with its range. Default: the mean, over the range of the outcomes in the frame.
    learn : bool
        Put an `OnlineRegression` between the hint and the engine.
    **settings
        When outcomes are known, and how much rows count, as `swapcal run` takes it: the columns `time`, `known` and
        `weight`, `delay` and `order`. And whatever else `Forecaster` takes: `seed`, `horizon`, `bins`, ...

    Returns
    -------
    Forecaster
        `forecaster.predict(row, hint=...)` takes a mapping from column to value.

    Examples
    --------
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> old = rng.random(2000) < 0.3
    >>> frame = pd.DataFrame({"old": old, "score": 0.4, "late": rng.random(2000) < 0.2 + 0.5 * old})
    >>> forecaster = forecaster_for(frame, y="late", hint="score", groups=["old"], seed=1)
    >>> abs(float(forecaster.predict({"old": True}, hint=0.4)) - 0.7) < 0.15
    True
    """
    forecaster, _ = _gone_through(frame, y, hint, groups, property, learn, settings)
    return forecaster


def recalibrate(
    frame: Any, *, y: str, hint: str | None = None, groups: Any = (), name: str = "forecast", **settings: Any
) -> Any:
    """The frame with a column of better forecasts, each made from the rows before it.

    Parameters
    ----------
    frame : pandas or polars frame
        Rows in the order of time.
    y : str
        Column of outcomes; rows without one are forecast and teach nothing.
    hint : str, optional
        Column of a model's forecasts.
    groups : sequence
        For whom, as `Groups` takes them.
    name : str
        Of the new column.
    **settings
        As for `forecaster_for`.

    Returns
    -------
    frame
        Of the kind that was given.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"late": [0, 1, 1, 0], "score": [0.2, 0.6, 0.8, 0.4]})
    >>> list(recalibrate(frame, y="late", hint="score").columns)
    ['late', 'score', 'forecast']
    """
    asked = settings.pop("property", None), settings.pop("learn", False)
    _, forecasts = _gone_through(frame, y, hint, groups, *asked, settings)
    if hasattr(frame, "iloc"):
        copy = frame.copy()
        copy[name] = forecasts
        return copy
    narwhals = package("narwhals", "reading frames")
    table = narwhals.from_native(frame, eager_only=True)
    column = narwhals.new_series(name, forecasts, narwhals.Float64(), backend=table.implementation)
    return table.with_columns(column).to_native()


def _gone_through(
    frame: Any, y: str, hint: str | None, groups: Any, property: Elicitable | None, learn: bool, settings: Any
) -> tuple[Forecaster, Float64Array]:
    """A forecaster after all rows of a frame, and the forecasts that it made on the way."""
    labels = _column(frame, y)
    known = labels[~np.isnan(labels)]
    if not len(known):
        raise InvalidInput(f"the column {y!r} holds no outcome; there is nothing to learn from")
    low, high = float(known.min()), float(known.max())
    usual = Mean() if low >= 0.0 and high <= 1.0 else Mean(low=low, high=high)
    hypotheses = Groups(groups)
    hypotheses.fit(frame)
    guide = OnlineRegression() if learn else None
    target = usual if property is None else property
    late = _late(frame, y, {name: settings.pop(name) for name in _LATE if name in settings})
    forecaster = Forecaster(target, hypotheses, hint=guide, **{"outside": "clip", **settings})
    hints = None if hint is None else _column(frame, hint)
    if hints is not None and (problem := other_units(hints, *target.domain, f"in column {hint!r}", repr(y))):
        raise InvalidInput(f"{problem}, or give the property with its range")
    return forecaster, forecaster.run(frame, labels, hints, missing="skip", **late)


_LATE = ("time", "known", "delay", "order", "weight")


def _late(frame: Any, y: str, options: dict[str, Any]) -> dict[str, Any]:
    """When the outcomes of a frame are known, and weights, as `Forecaster.run` takes them."""
    from swapcal.tables.records import read
    from swapcal.tasks.columns import ColumnReader
    from swapcal.tasks.config import TaskConfig

    if not options:
        return {}
    config = TaskConfig(y, **options)
    with read(frame, columns=config.columns) as records:
        batches = list(records)
    reader = ColumnReader(config, "the frame", batches)
    parts = [{**reader.moments(batch), **reader.weighed(batch)} for batch in batches]
    return {"order": config.order, **{name: np.concatenate([part[name] for part in parts]) for name in parts[0]}}


def audit(frame: Any, *, y: str, p: str, groups: Any = (), **question: Any) -> Any:
    """The verdict that `swapcal audit` gives, on the forecasts in a frame.

    Parameters
    ----------
    frame : pandas, polars or Arrow frame, path or mapping of arrays
        The table.
    y, p : str
        Columns of outcomes and of forecasts.
    groups : sequence
        For whom, as `Groups` takes them.
    **question
        Whatever else the question has: `property`, `low`, `high`, `weight`, `positive`, `bins`, ...

    Returns
    -------
    Result
        `result.verdict.headline` says it in a sentence; `report.page` draws it.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> score = rng.random(4000)
    >>> audit({"late": rng.random(4000) < 0.7 * score, "score": score}, y="late", p="score").verdict.kind
    'recalibrate'
    """
    from swapcal.tasks import audit as auditing
    from swapcal.tasks.config import TaskConfig

    return auditing.audit(frame, TaskConfig(y, p, groups, **question))

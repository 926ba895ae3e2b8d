"""From a frame to forecasts or to a verdict in one line."""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np

from swapcal.errors import InvalidInput, OutcomesWarning
from swapcal.forecaster import Forecaster
from swapcal.hints import OnlineRegression
from swapcal.hypotheses import Groups
from swapcal.inputs import other_units
from swapcal.properties import Mean
from swapcal.protocols import Elicitable
from swapcal.tables.sources import frame_of, package
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.result import Result
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
        Column of outcomes; rows without one are not learned from.
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
    >>> import numpy as np, pandas as pd, swapcal as sc
    >>> rng = np.random.default_rng(0)
    >>> old = rng.random(2000) < 0.3
    >>> frame = pd.DataFrame({"old": old, "score": 0.4, "late": rng.random(2000) < 0.2 + 0.5 * old})
    >>> forecaster = sc.forecaster_for(frame, y="late", hint="score", groups=["old"], seed=1)
    >>> abs(float(forecaster.predict({"old": True}, hint=0.4)) - 0.7) < 0.15
    True
    """
    labels = _column(frame, y)
    known = labels[~np.isnan(labels)]
    if not len(known):
        raise InvalidInput(f"the column {y!r} holds no outcome; there is nothing to learn from")
    low, high = float(known.min()), float(known.max())
    usual = Mean() if low >= 0.0 and high <= 1.0 else Mean(low=low, high=high)
    target = usual if property is None else property
    hypotheses = Groups(groups)
    hypotheses.fit(frame)
    late = _late(frame, y, {name: settings.pop(name) for name in _LATE if name in settings})
    guide = OnlineRegression() if learn else None
    forecaster = Forecaster(target, hypotheses, hint=guide, **{"outside": "clip", **settings})
    hints = None if hint is None else _column(frame, hint)
    if hints is not None and (problem := other_units(hints, *target.domain, f"in column {hint!r}", repr(y))):
        raise InvalidInput(f"{problem}, or give the property with its range")
    forecaster.run(frame, labels, hints, missing="skip", **late)
    return forecaster


def recalibrate(
    data: Any,
    y: str,
    p: Any = None,
    groups: Any = (),
    *,
    property: Any = None,
    interval: float | None = None,
    classes: bool | None = None,
    time: str | None = None,
    known: str | None = None,
    delay: str | None = None,
    weight: str | None = None,
    positive: str | None = None,
    learn: bool | None = None,
    seed: int | None = None,
    config: TaskConfig | None = None,
) -> Result:
    """Better forecasts for every row of a table, each from earlier rows alone: what `swapcal run` does.

    Parameters
    ----------
    data : frame, path or mapping of arrays
        Rows in the order of time: a pandas, polars or Arrow frame, or a file.
    y : str
        Column of outcomes; rows without one are forecast and not learned from.
    p : str or sequence of str, optional
        Column of a model's forecasts; its ends or its classes with `interval` or `classes`.
    groups : str or sequence
        For whom: "carrier,origin,carrier*origin,age>=60", or a list of such.
    property : str or Elicitable, optional
        What is forecast; the mean or probability if nothing is said.
    interval : float, optional
        Intervals that cover this share of outcomes in every group.
    classes : bool, optional
        The outcome names a class.
    time : str, optional
        Column of when rows are forecast.
    known : str, optional
        Column of when outcomes were known. Without it and `delay` every outcome counts as known before the next row;
        where there is a time, a warning says so.
    delay : str, optional
        How long outcomes take: "2d", or "500" rows.
    weight : str, optional
        Column of weights.
    positive : str, optional
        The text that counts as 1.
    learn : bool, optional
        Whether an online regression learns between the model and the engine; usual with groups.
    seed : int, optional
        Of the draws.
    config : TaskConfig, optional
        Everything else, under the names that the command has; what is given here goes before it.

    Returns
    -------
    Result
        `frame` is the table with the new columns: "forecast"; "lower" and "upper"; or a column for each class. Of a
        file it has the rows' numbers in place of the table. `verdict`, `by_group`, `plot` and `to_html` tell of it.

    Examples
    --------
    >>> import pandas as pd, swapcal as sc
    >>> frame = pd.DataFrame({"late": [0, 1, 1, 0], "score": [0.2, 0.6, 0.8, 0.4]})
    >>> list(sc.recalibrate(frame, "late", "score").frame.columns)
    ['late', 'score', 'forecast']
    """
    from swapcal.tasks.runner import run

    asked = _asked(
        config,
        {"y": y, "p": p, "groups": groups, "property": property, "interval": interval, "classes": classes}
        | {"time": time, "known": known, "delay": delay, "weight": weight, "positive": positive}
        | {"learn": learn, "seed": seed},
    )
    if asked.time is not None and not asked.timed:
        warnings.warn(
            f"every outcome was taken as known before the next row, as nothing says when; in production forecasts will "
            f"be worse. Give known= (a column of times like {asked.time!r}) or delay='2d'",
            OutcomesWarning,
            stacklevel=2,
        )
    parts: list[Mapping[str, Any]] = []
    result = run(data, asked, take=parts.append)
    columns = {name: np.concatenate([np.asarray(part[name]) for part in parts]) for name in parts[0]}
    return replace(result, data=_joined(data, columns))


def _asked(config: TaskConfig | None, given: dict[str, Any]) -> TaskConfig:
    """The configuration, with what was given beside it."""
    given = {name: value for name, value in given.items() if value is not None and value != ()}
    return TaskConfig(**given) if config is None else replace(config, **given)


def _joined(data: Any, columns: dict[str, Any]) -> Any:
    """The table with the columns of the output; of what is no frame these alone."""
    if isinstance(data, (str, PathLike, Mapping)) or hasattr(data, "read"):
        return frame_of(columns)
    new = {name: values for name, values in columns.items() if name not in _OWN}
    if hasattr(data, "iloc"):
        return data.assign(**new)
    narwhals = package("narwhals", "frames")
    table = narwhals.from_native(data, eager_only=True)
    backend = table.implementation
    return table.with_columns(
        narwhals.new_series(name, values.tolist(), backend=backend) for name, values in new.items()
    ).to_native()


# Columns of the output that a table has already.
_OWN = ("row", "before")


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


def audit(
    data: Any,
    y: str,
    p: Any,
    groups: Any = (),
    *,
    property: Any = None,
    time: str | None = None,
    cluster: str | None = None,
    weight: str | None = None,
    positive: str | None = None,
    discover: bool = False,
    config: TaskConfig | None = None,
) -> Result:
    """Whether forecasts in a table can be trusted, for every group: what `swapcal audit` says.

    Parameters
    ----------
    data : frame, path or mapping of arrays
        The table: a pandas, polars or Arrow frame, or a file.
    y : str
        Column of outcomes.
    p : str or sequence of str
        Column of forecasts; several are compared with the first.
    groups : str or sequence
        For whom: "carrier,origin,carrier*origin,age>=60", or a list of such.
    property : str or Elicitable, optional
        What was forecast; the mean or probability if nothing is said.
    time : str, optional
        Column of times: rows of one day count together, and groups are told since when they are biased.
    cluster : str, optional
        Column of what rows share, such as a person: they count together.
    weight : str, optional
        Column of weights.
    positive : str, optional
        The text that counts as 1.
    discover : bool
        Also search all columns for biased subgroups that nobody listed.
    config : TaskConfig, optional
        Everything else, under the names that the command has; what is given here goes before it.

    Returns
    -------
    Result
        `verdict`, `by_group`, `overall`, `plot` and `to_html`; it prints as the command does.

    Examples
    --------
    >>> import numpy as np, swapcal as sc
    >>> rng = np.random.default_rng(1)
    >>> score = rng.random(4000)
    >>> table = {"late": rng.random(4000) < 0.7 * score, "score": score}
    >>> sc.audit(table, "late", "score").verdict.kind
    'BIASED'
    """
    from swapcal.tasks import audit as auditing

    models = [p] if isinstance(p, str) else list(p)
    asked = _asked(
        config,
        {"y": y, "p": models[0], "groups": groups, "property": property, "time": time, "cluster": cluster}
        | {"weight": weight, "positive": positive},
    )
    if len(models) > 1:
        return auditing.compare(data, asked, models)
    return auditing.audit(data, asked, discover=discover)

"""An MLflow flavor: a forecaster that is logged, loaded and served as a `pyfunc`, with its audit page beside it.

The logged model is the state file of `Forecaster.save`, which holds no pickle; `pyfunc` loads it through this module.
A served model forecasts and learns nothing: it gives the mean of the two values that a forecast would be drawn from
(see docs/deterministic.md), so the same row always gets the same answer.
"""

import importlib
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from swapcal.deterministic import expected
from swapcal.errors import InvalidInput
from swapcal.forecaster import Forecaster
from swapcal.tables.sources import package
from swapcal.typing import Float64Array
from swapcal.version import __version__

FLAVOR = "swapcal"
_STATE, _PAGE = "forecaster.npz", "audit.html"


def _mlflow(part: str) -> Any:
    return package(f"mlflow.{part}", "MLflow models", extra="mlflow")


def save_model(
    forecaster: Forecaster,
    path: str | PathLike[str],
    *,
    hint: str | None = None,
    audit: Any = None,
    signature: Any = None,
    input_example: Any = None,
    mlflow_model: Any = None,
) -> None:
    """Write a forecaster as an MLflow model.

    Parameters
    ----------
    forecaster : Forecaster
        With groups, or with any class whose context is the columns in their order.
    path : path
        A directory that is made.
    hint : str, optional
        Name of the input column that holds the model's forecast.
    audit : Result, optional
        What `audit` or `run` gave; its page is written beside the state.
    signature, input_example, mlflow_model
        As for every flavor.

    Notes
    -----
    Parts of your own making, which no file holds, cannot be logged.

    Examples
    --------
    >>> from swapcal.compat import mlflow
    >>> mlflow.save_model(forecaster, "calibrator", hint="score")   # doctest: +SKIP
    """
    models = _mlflow("models")
    pyfunc = _mlflow("pyfunc")
    home = Path(path)
    if home.exists() and any(home.iterdir()):
        raise InvalidInput(f"there is something at {home} already; give the path of a directory that is to be made")
    home.mkdir(parents=True, exist_ok=True)
    forecaster.save(home / _STATE)
    if audit is not None:
        from swapcal.report.page import write

        write(audit, home / _PAGE)
    model = models.Model() if mlflow_model is None else mlflow_model
    if signature is not None:
        model.signature = signature
    if input_example is not None:
        _mlflow("models.utils")._save_example(model, input_example, str(home))
    pyfunc.add_to_model(model, loader_module="swapcal.compat.mlflow", data=_STATE, model_config={"hint": hint})
    extra = {"page": _PAGE} if audit is not None else {}
    model.add_flavor(FLAVOR, swapcal_version=__version__, data=_STATE, hint=hint, **extra)
    model.save(str(home / "MLmodel"))
    (home / "requirements.txt").write_text(f"swapcal[mlflow]=={__version__}\n", encoding="utf-8")


def log_model(forecaster: Forecaster, name: str = "model", **settings: Any) -> Any:
    """Log a forecaster to the run that is active.

    Parameters
    ----------
    forecaster : Forecaster
        As for `save_model`.
    name : str
        Of the logged model.
    **settings
        As for `save_model`, and `registered_model_name`.

    Returns
    -------
    ModelInfo
        Its `model_uri` is what `load_model` and `mlflow.pyfunc.load_model` take.

    Examples
    --------
    >>> from swapcal.compat import mlflow
    >>> info = mlflow.log_model(forecaster, "calibrator", hint="score")   # doctest: +SKIP
    """
    models = _mlflow("models")
    flavor = importlib.import_module("swapcal.compat.mlflow")
    return models.Model.log(artifact_path=None, name=name, flavor=flavor, forecaster=forecaster, **settings)


def load_model(uri: str, dst_path: str | None = None) -> Forecaster:
    """The forecaster itself, which can go on learning.

    Parameters
    ----------
    uri : str
        `runs:/...`, `models:/...` or a path.
    dst_path : str, optional
        Where to download to.

    Returns
    -------
    Forecaster
        As it was when it was logged, bit for bit.

    Examples
    --------
    >>> from swapcal.compat import mlflow
    >>> forecaster = mlflow.load_model(info.model_uri)   # doctest: +SKIP
    """
    local = _mlflow("artifacts").download_artifacts(artifact_uri=uri, dst_path=dst_path)
    return Forecaster.load(Path(local) / _STATE)


def _load_pyfunc(path: str, model_config: Mapping[str, Any] | None = None) -> "_Served":
    """For `mlflow.pyfunc.load_model`."""
    return _Served(Forecaster.load(path), None if model_config is None else model_config.get("hint"))


class _Served:
    """What `pyfunc` calls: a frame in, one number for each row out."""

    def __init__(self, forecaster: Forecaster, hint: str | None) -> None:
        self.forecaster, self.hint = forecaster, hint

    def predict(self, model_input: Any, params: Mapping[str, Any] | None = None) -> Float64Array:
        """The means of what would be drawn; changes nothing."""
        records = model_input.to_dict(orient="records") if hasattr(model_input, "to_dict") else list(model_input)
        return np.array([self._one(record) for record in records])

    def _one(self, record: Any) -> float:
        hint = None
        if self.hint is not None:
            record = dict(record)
            value = record.pop(self.hint, None)
            hint = None if value is None or np.isnan(value) else float(value)
        context = record
        if not hasattr(self.forecaster.hypotheses, "columns") and isinstance(record, Mapping):
            context = [float(value) for value in record.values()]
        return expected(self.forecaster, context, hint)

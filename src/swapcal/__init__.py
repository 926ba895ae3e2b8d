"""Online forecasts that are calibrated for everybody: swap multicalibration of any elicitable property."""

import importlib
from types import ModuleType

from swapcal import learners, potentials
from swapcal.audit import Audit, calibration_error, multicalibration_error, swap_multicalibration_error
from swapcal.bounds import Guarantee
from swapcal.errors import (
    AlreadyUpdated,
    AtomsWarning,
    ExpiredForecast,
    ForecastError,
    InvalidInput,
    NotElicitable,
    StateFileError,
    SwapcalError,
    UnknownForecast,
)
from swapcal.forecast import Forecast
from swapcal.forecaster import Forecaster
from swapcal.grid import Grid
from swapcal.hints import OnlineRegression
from swapcal.hypotheses import Finite, Linear, Oracle
from swapcal.properties import (
    Concave,
    CVaR,
    Expectile,
    Log,
    Mean,
    Median,
    Mode,
    Moment,
    Probability,
    Property,
    Quantile,
    Spherical,
    Squared,
    Tsallis,
    Variance,
)
from swapcal.version import __version__

_ROOMS = ("checks", "paper", "rivals", "streams")

__all__ = [
    "AlreadyUpdated",
    "AtomsWarning",
    "Audit",
    "CVaR",
    "Concave",
    "Expectile",
    "ExpiredForecast",
    "Finite",
    "Forecast",
    "ForecastError",
    "Forecaster",
    "Grid",
    "Guarantee",
    "InvalidInput",
    "Linear",
    "Log",
    "Mean",
    "Median",
    "Mode",
    "Moment",
    "NotElicitable",
    "OnlineRegression",
    "Oracle",
    "Probability",
    "Property",
    "Quantile",
    "Spherical",
    "Squared",
    "StateFileError",
    "SwapcalError",
    "Tsallis",
    "UnknownForecast",
    "Variance",
    "__version__",
    "calibration_error",
    "learners",
    "multicalibration_error",
    "potentials",
    "swap_multicalibration_error",
]


def __getattr__(name: str) -> ModuleType:
    """Load the rooms that not everybody enters when somebody does."""
    if name in _ROOMS:
        return importlib.import_module(f"swapcal.{name}")
    raise AttributeError(f"module 'swapcal' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS])

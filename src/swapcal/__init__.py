"""Online forecasts that are calibrated for everybody: swap multicalibration of any elicitable property."""

import importlib
from typing import TYPE_CHECKING, Any

from swapcal.version import __version__

if TYPE_CHECKING:
    from swapcal import learners, potentials
    from swapcal.audit import Audit, calibration_error, multicalibration_error, swap_multicalibration_error
    from swapcal.engine.bounds import Guarantee
    from swapcal.engine.grid import Grid
    from swapcal.engine.kernels import backend
    from swapcal.errors import (
        AlreadyUpdated,
        AtomsWarning,
        DataError,
        ExpiredForecast,
        ForecastError,
        GroupsWarning,
        InvalidInput,
        MissingExtra,
        NotElicitable,
        StateFileError,
        SwapcalError,
        UncompiledWarning,
        UnknownForecast,
    )
    from swapcal.forecast import Forecast
    from swapcal.forecaster import Forecaster
    from swapcal.hints import OnlineRegression
    from swapcal.hypotheses import Finite, Groups, Linear, Numeric, Oracle
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

_NAMES = {
    "swapcal.audit": ("Audit", "calibration_error", "multicalibration_error", "swap_multicalibration_error"),
    "swapcal.engine.bounds": ("Guarantee",),
    "swapcal.errors": (
        "AlreadyUpdated",
        "AtomsWarning",
        "DataError",
        "ExpiredForecast",
        "ForecastError",
        "GroupsWarning",
        "InvalidInput",
        "MissingExtra",
        "NotElicitable",
        "StateFileError",
        "SwapcalError",
        "UncompiledWarning",
        "UnknownForecast",
    ),
    "swapcal.forecast": ("Forecast",),
    "swapcal.forecaster": ("Forecaster",),
    "swapcal.engine.grid": ("Grid",),
    "swapcal.hints": ("OnlineRegression",),
    "swapcal.hypotheses": ("Finite", "Groups", "Linear", "Numeric", "Oracle"),
    "swapcal.engine.kernels": ("backend",),
    "swapcal.properties": (
        "CVaR",
        "Concave",
        "Expectile",
        "Log",
        "Mean",
        "Median",
        "Mode",
        "Moment",
        "Probability",
        "Property",
        "Quantile",
        "Spherical",
        "Squared",
        "Tsallis",
        "Variance",
    ),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}
_ROOMS = ("checks", "learners", "paper", "potentials", "report", "rivals", "simulate", "tables", "jobs", "words")

__all__ = [
    "AlreadyUpdated",
    "AtomsWarning",
    "Audit",
    "CVaR",
    "Concave",
    "DataError",
    "Expectile",
    "ExpiredForecast",
    "Finite",
    "Forecast",
    "ForecastError",
    "Forecaster",
    "Grid",
    "Groups",
    "GroupsWarning",
    "Guarantee",
    "InvalidInput",
    "Linear",
    "Log",
    "Mean",
    "Median",
    "MissingExtra",
    "Mode",
    "Moment",
    "NotElicitable",
    "Numeric",
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
    "UncompiledWarning",
    "UnknownForecast",
    "Variance",
    "__version__",
    "backend",
    "calibration_error",
    "learners",
    "multicalibration_error",
    "potentials",
    "swap_multicalibration_error",
]


def __getattr__(name: str) -> Any:
    """Load what somebody asks for when they ask: `import swapcal` by itself costs next to nothing."""
    if name in _ROOMS:
        return importlib.import_module(f"swapcal.{name}")
    if name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'swapcal' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_ROOMS})

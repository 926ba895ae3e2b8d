"""Online forecasts that are calibrated for everybody: swap multicalibration of any elicitable property."""

from swapcal import potentials
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
from swapcal.hypotheses import Finite, Linear
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

__version__ = "0.1.0"

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
    "calibration_error",
    "multicalibration_error",
    "potentials",
    "swap_multicalibration_error",
]

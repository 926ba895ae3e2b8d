"""Elicitable properties: what a forecast is a forecast of."""

from swapcal.properties.concave import Concave
from swapcal.properties.custom import Property
from swapcal.properties.expectile import Expectile
from swapcal.properties.mean import Mean
from swapcal.properties.moment import Moment
from swapcal.properties.probability import Probability
from swapcal.properties.proper import Log, ProperLoss, Spherical, Squared, Tsallis
from swapcal.properties.quantile import Median, Quantile
from swapcal.properties.refused import CVaR, Mode, Variance
from swapcal.properties.spec import from_spec

__all__ = [
    "CVaR",
    "Concave",
    "Expectile",
    "Log",
    "Mean",
    "Median",
    "Mode",
    "Moment",
    "Probability",
    "ProperLoss",
    "Property",
    "Quantile",
    "Spherical",
    "Squared",
    "Tsallis",
    "Variance",
    "from_spec",
]

"""Hints: forecasts for the engine to start from, for users whose own model is missing, frozen or biased."""

from swapcal.hints.regression import OnlineRegression
from swapcal.hints.regression_state import RegressionState

__all__ = ["OnlineRegression", "RegressionState"]

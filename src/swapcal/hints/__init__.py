"""Hints: forecasts for the engine to start from, for users whose own model is missing, frozen or biased."""

from swapcal.hints.regression import OnlineRegression, RegressionState, hint

__all__ = ["OnlineRegression", "RegressionState", "hint"]

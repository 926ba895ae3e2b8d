"""Runs whose forecasts are more than one number a row: intervals, and probabilities of classes."""

"""Streams of rounds: recorded ones with a known truth, and adversaries that play against a forecaster."""

"""Streams of rounds: recorded ones with a known truth, and adversaries that play against a forecaster."""

from swapcal.simulate import adversaries
from swapcal.simulate.synthetic import Stream, drifting, interacting, miscalibrated, noisy, oscillating

__all__ = ["Stream", "adversaries", "drifting", "interacting", "miscalibrated", "noisy", "oscillating"]

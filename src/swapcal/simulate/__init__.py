"""Streams of rounds: recorded ones with a known truth, adversaries that play against a forecaster, and delays."""

from swapcal.simulate import adversaries, delays
from swapcal.simulate.synthetic import Stream, drifting, interacting, miscalibrated, noisy, oscillating

__all__ = ["Stream", "adversaries", "delays", "drifting", "interacting", "miscalibrated", "noisy", "oscillating"]

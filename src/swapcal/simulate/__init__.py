"""Streams of rounds: recorded ones with a known truth, adversaries that play against a forecaster, and delays."""

from swapcal.simulate import adversaries, streams
from swapcal.simulate.streams import Stream, drifting, interacting, miscalibrated, noisy, oscillating

__all__ = ["Stream", "adversaries", "drifting", "interacting", "miscalibrated", "noisy", "oscillating", "streams"]

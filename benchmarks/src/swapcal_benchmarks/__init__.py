"""Measurements of what papers claim, beside the claims."""

from swapcal_benchmarks.measurement import Measurement

__all__ = ["Measurement"]

"""Measurements of what papers claim, beside the claims."""

from swapcal.bench.measurement import Measurement

__all__ = ["Measurement"]

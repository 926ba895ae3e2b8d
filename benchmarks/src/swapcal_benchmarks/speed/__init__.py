"""How fast, and how large: ratios that mean the same on every machine."""

from swapcal_benchmarks.speed.speed_sizes import FULL, QUICK, SpeedSizes
from swapcal_benchmarks.speed.target_row import TargetRow

__all__ = ["FULL", "QUICK", "SpeedSizes", "TargetRow"]

"""How fast, and how large: ratios that mean the same on every machine."""

from swapcal_benchmarks.speed.row import Row
from swapcal_benchmarks.speed.sizes import FULL, QUICK, Sizes

__all__ = ["FULL", "QUICK", "Row", "Sizes"]

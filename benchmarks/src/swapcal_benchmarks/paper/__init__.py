"""`swapcal bench paper`: every claim of the paper that a computer can measure."""

from swapcal_benchmarks.paper.run import Report, measure, plan
from swapcal_benchmarks.paper.sizes import DEFAULT, FULL, Sizes

__all__ = ["DEFAULT", "FULL", "Report", "Sizes", "measure", "plan"]

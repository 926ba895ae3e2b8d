"""`swapcal bench paper`: every claim of the paper that a computer can measure."""

from swapcal.bench.paper.run import Report, measure, plan
from swapcal.bench.paper.sizes import DEFAULT, FULL, Sizes

__all__ = ["DEFAULT", "FULL", "Report", "Sizes", "measure", "plan"]

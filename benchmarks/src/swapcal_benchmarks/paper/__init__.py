"""`swapcal bench paper`: every claim of the paper that a computer can measure."""

from swapcal_benchmarks.paper.all_claims import Report, measure, plan
from swapcal_benchmarks.paper.paper_sizes import DEFAULT, FULL, PaperSizes

__all__ = ["DEFAULT", "FULL", "PaperSizes", "Report", "measure", "plan"]

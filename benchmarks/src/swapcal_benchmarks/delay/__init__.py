"""Outcomes that come late: what a delay costs, on recorded and on simulated streams."""

from swapcal_benchmarks.delay.late_cases import LateCase, recorded_cases, simulated_cases
from swapcal_benchmarks.delay.late_scores import LateRow, measure_late

__all__ = ["LateCase", "LateRow", "measure_late", "recorded_cases", "simulated_cases"]

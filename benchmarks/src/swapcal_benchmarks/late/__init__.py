"""Late outcomes: what is gained and lost on recorded and simulated streams, beside what a practitioner would refit."""

from swapcal_benchmarks.late.late_scores import LateScore, measure, paired
from swapcal_benchmarks.late.late_stream import LateSource, LateStream
from swapcal_benchmarks.late.late_streams import streams

__all__ = ["LateScore", "LateSource", "LateStream", "measure", "paired", "streams"]

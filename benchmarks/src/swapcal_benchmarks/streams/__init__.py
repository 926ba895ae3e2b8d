"""Five recorded streams of a user's own directory: a frozen model as the hint, errors and losses before and after."""

from swapcal_benchmarks.streams.recorded import STREAMS
from swapcal_benchmarks.streams.stream_scores import measure

__all__ = ["STREAMS", "measure"]

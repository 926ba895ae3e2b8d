"""Five recorded streams of a user's own directory: a frozen model as the hint, errors and losses before and after."""

from swapcal_benchmarks.streams.before_after import measure
from swapcal_benchmarks.streams.recorded import STREAMS

__all__ = ["STREAMS", "measure"]

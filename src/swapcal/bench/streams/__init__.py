"""Five recorded streams of a user's own directory: a frozen model as the hint, errors and losses before and after."""

from swapcal.bench.streams.recorded import STREAMS
from swapcal.bench.streams.run import measure

__all__ = ["STREAMS", "measure"]

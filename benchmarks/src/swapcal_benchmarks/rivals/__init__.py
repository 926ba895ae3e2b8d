"""The arena: every method in one protocol, on the same streams and against the same adversaries, scored by one audit.

A method joins by having a file in `swapcal.rivals`; nothing here names it.
"""

from swapcal_benchmarks.rivals.contest import Contest, prepare
from swapcal_benchmarks.rivals.fixtures import Settings
from swapcal_benchmarks.rivals.table_file import TableFile

__all__ = ["Contest", "Settings", "TableFile", "prepare"]

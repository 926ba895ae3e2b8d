"""Spark: one forecaster a key on a cluster, in batch and in streams; and one audit over all rows.

What runs on the workers is the same core as everywhere, on Arrow tables (`worker`), so the numbers are those of the
loop over keys, to the last bit, whatever the number of workers. docs/scale.md has what it costs.
"""

from swapcal.compat.spark.auditing import audit
from swapcal.compat.spark.recalibrating import recalibrate

__all__ = ["audit", "recalibrate"]

"""Spark: one forecaster a key on a cluster, in batch and in streams; and one audit over all rows.

What runs on the workers is the same core as everywhere, on Arrow tables (`on_workers`), so the numbers are those of the
loop over keys, to the last bit, whatever the number of workers. docs/scale.md has what it costs.
"""

from swapcal.compat.spark.frames import audit, judged, recalibrate

__all__ = ["audit", "judged", "recalibrate"]

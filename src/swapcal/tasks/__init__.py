"""From records to a verdict: what an audit or a run has found, in numbers and in words."""

from swapcal.tasks.by_key import ByKey, run_by_key

__all__ = ["ByKey", "run_by_key"]

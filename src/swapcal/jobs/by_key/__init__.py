"""One forecaster a key on one machine with all its cores: a process each, keys spread by load, resumable."""

from swapcal.jobs.by_key.run_by_key import ByKey, run_by_key

__all__ = ["ByKey", "run_by_key"]

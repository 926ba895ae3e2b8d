"""Many streams: one forecaster per key, a shared configuration, states on disk, one audit."""

from swapcal.keyed.keyed import Keyed, KeyedForecast

__all__ = ["Keyed", "KeyedForecast"]

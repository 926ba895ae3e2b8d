"""Many streams: one forecaster per key, a shared configuration, states on disk or as bytes, one audit."""

from swapcal.keyed.bucket import KeyBucket
from swapcal.keyed.keyed import Keyed, KeyedForecast, forecaster_for_key, key_text

__all__ = ["KeyBucket", "Keyed", "KeyedForecast", "forecaster_for_key", "key_text"]

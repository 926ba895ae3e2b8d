"""Many streams: one forecaster per key, a shared configuration, states on disk or as bytes, one audit."""

from swapcal.keyed.bucket import KeyBucket
from swapcal.keyed.keyed import Keyed, KeyedForecast
from swapcal.keyed.siblings import key_text, sibling

__all__ = ["KeyBucket", "Keyed", "KeyedForecast", "key_text", "sibling"]

"""Many streams: one forecaster per key, a shared configuration, states on disk or as bytes, one audit."""

from swapcal.keyed.bucket import Bucket
from swapcal.keyed.keyed import Keyed, KeyedForecast
from swapcal.keyed.siblings import key_text, sibling

__all__ = ["Bucket", "Keyed", "KeyedForecast", "key_text", "sibling"]

"""Forecasts as bytes in the store: all their fields under a seal of the stream's own, and back into its hands.

`Forecast.outside` has a seal too, for forecasts that travel as JSON. Those of a service never leave it but for the
store; one keyed hash over the packed bytes says the same at a tenth of the cost, and what comes back goes straight to
the compiled update.
"""

import hmac
from dataclasses import fields
from hashlib import blake2b
from operator import attrgetter

import msgspec

import swapcal as sc
from swapcal.forecast import Identity

__all__ = ["pack", "unpack"]

SEAL_BYTES = 16
_FIELDS = tuple(one.name for one in fields(sc.Forecast) if one.name not in ("forecaster", "seal"))
_get = attrgetter(*_FIELDS)
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list).decode


def pack(forecast: sc.Forecast, identity: Identity) -> bytes:
    """The bytes of a forecast that a stream's forecaster has made.

    Examples
    --------
    >>> import swapcal as sc
    >>> forecaster = sc.Forecaster(sc.Mean(), sc.Finite(1), seed=1)
    >>> forecast, identity = forecaster.predict([1.0], 0.3), forecaster.state.identity
    >>> unpack(pack(forecast, identity), identity) == forecast
    True
    """
    body = _encode(_get(forecast))
    return _seal(body, identity) + body


def unpack(packed: bytes, identity: Identity) -> sc.Forecast:
    """The forecast that `pack` wrote; an `UnknownForecast` for anything else, or of another stream."""
    seal, body = packed[:SEAL_BYTES], packed[SEAL_BYTES:]
    if not hmac.compare_digest(seal, _seal(body, identity)):
        raise sc.UnknownForecast("the stored forecast of this case is not as it was made; restore a back-up")
    values = dict(zip(_FIELDS, _decode(body), strict=True), forecaster=identity, seal=None)
    if values["features"] is not None:
        values["features"] = tuple(values["features"])
    # Bytes under the seal are a forecast that never left: nothing is checked again, and it is the forecaster's own.
    forecast = sc.Forecast.__new__(sc.Forecast)
    for name, value in values.items():
        object.__setattr__(forecast, name, value)
    return forecast


def _seal(body: bytes, identity: Identity) -> bytes:
    return blake2b(body, digest_size=SEAL_BYTES, key=identity.key).digest()

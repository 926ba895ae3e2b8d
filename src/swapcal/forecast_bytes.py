"""A forecast as bytes: about a hundred, and four for each group of its context, with its seal."""

import struct
from typing import Any

import numpy as np

from swapcal.errors import StateFileError, UnknownForecast
from swapcal.packing import framed, unframed

__all__ = ["pack", "unpack"]

_FIXED = struct.Struct("<BBBBHHIQ5d")
_HINT, _BASE, _FEATURES, _SCORES, _SEAL, _ONES, _SAID = (1 << k for k in range(7))


def pack(fields: dict[str, Any], kind: int) -> bytes:
    """The fields of a forecast; `kind` is the place of its kind among all there are."""
    context = fields["context"]
    n = len(context) // 16
    indices, entries = np.frombuffer(context, np.int64, n), np.frombuffer(context, np.float64, n, 8 * n)
    # Groups: every entry is 1, and positions are small.
    ones = bool((entries == 1.0).all()) and bool((indices < 1 << 32).all())
    name = str(fields["forecaster"]).encode()
    features, scores, seal = fields["features"], fields["scores"], fields["seal"]
    flags = _ONES if ones else 0
    parts = [name, indices.astype("<u4").tobytes() if ones else context]
    for flag, value in ((_HINT, fields["hint"]), (_BASE, fields["base"]), (_SAID, fields["said"])):
        if value is not None:
            flags |= flag
            parts.append(struct.pack("<d", value))
    for flag, data in (
        (_FEATURES, None if features is None else struct.pack(f"<{len(features)}d", *features)),
        (_SCORES, scores),
        (_SEAL, seal),
    ):
        if data is not None:
            flags |= flag
            parts += [struct.pack("<I", len(data)), data]
    numbers = (fields[name] for name in ("value", "other", "probability", "evidence_at", "phi"))
    fixed = _FIXED.pack(flags, kind, 0, 0, len(name), 0, n, fields["round"], *numbers)
    return framed("forecast", b"".join((fixed, *parts)))


def unpack(data: bytes, kinds: tuple[str, ...]) -> dict[str, Any]:
    """The fields that `pack` wrote; what else it is, is an `UnknownForecast`."""
    try:
        payload = unframed("forecast", data)
        flags, kind, _, _, n_name, _, n, t, *numbers = _FIXED.unpack_from(payload)
        at = _FIXED.size

        def take(size: int) -> bytes:
            nonlocal at
            if size > len(payload) - at:
                raise ValueError
            at += size
            return bytes(payload[at - size : at])

        def measured(flag: int) -> bytes | None:
            return take(struct.unpack("<I", take(4))[0]) if flags & flag else None

        name = take(n_name).decode()
        context = take(4 * n if flags & _ONES else 16 * n)
        if flags & _ONES:
            context = np.frombuffer(context, "<u4").astype(np.int64).tobytes() + np.ones(n).tobytes()
        hint, base, said = (struct.unpack("<d", take(8))[0] if flags & flag else None for flag in (_HINT, _BASE, _SAID))
        features = measured(_FEATURES)
        found = dict(zip(("value", "other", "probability", "evidence_at", "phi"), numbers, strict=True))
        found |= {"round": t, "forecaster": name, "context": context, "kind": kinds[kind]}
        found |= {"hint": hint, "base": base, "said": said, "scores": measured(_SCORES), "seal": measured(_SEAL)}
        found["features"] = None if features is None else struct.unpack(f"<{len(features) // 8}d", features)
        if at != len(payload):
            raise ValueError
    except (StateFileError, ValueError, IndexError, struct.error):
        raise UnknownForecast(
            "this is not a stored forecast: these bytes are not what Forecast.to_bytes gave"
        ) from None
    return found

"""A forecast: a small value that knows everything its update will need."""

import hashlib
import hmac
import json
import math
import numbers
import operator
import struct
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np

from swapcal.errors import StateFileError, UnknownForecast
from swapcal.inputs import real
from swapcal.state import framed, unframed

# --------
# A forecast as bytes: about a hundred, and four for each group of its context, with its seal.

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
        data_fields = dict(zip(("value", "other", "probability", "evidence_at", "phi"), numbers, strict=True))
        data_fields |= {"round": t, "forecaster": name, "context": context, "kind": kinds[kind]}
        data_fields |= {"hint": hint, "base": base, "said": said, "scores": measured(_SCORES), "seal": measured(_SEAL)}
        data_fields["features"] = None if features is None else struct.unpack(f"<{len(features) // 8}d", features)
        if at != len(payload):
            raise ValueError
    except (StateFileError, ValueError, IndexError, struct.error):
        raise UnknownForecast(
            "this is not a stored forecast: these bytes are not what Forecast.to_bytes gave"
        ) from None
    return data_fields


# --------
# A value that stands for a number: its order, rounding and formatting.


def _by_value(operation: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """The method that compares by `value`, with numbers and with each other."""

    def method(self: Any, other: Any) -> bool:
        right = other.value if isinstance(other, Number) else other
        return operation(self.value, right) if isinstance(right, numbers.Number) else NotImplemented

    return method


class Number:
    """A mixin for a value with a float in `value`: it orders, rounds and prints as that number; no arithmetic.

    Order is by value, against numbers and against each other. Equality stays that of the class: two forecasts of 0.3
    are two rounds, each with its own outcome to come, so they are equal only if everything in them is, and none is
    equal to the number 0.3. Were `forecast == 0.3` true, equal objects would need equal hashes, and a set or dict of
    the forecasts that wait for outcomes, which share a few dozen values, would be slow. Where equality of numbers is
    meant: `float(forecast) == 0.3` or `math.isclose(forecast, 0.3)`. To calculate, take `float(forecast)`.

    Examples
    --------
    >>> class Price(Number):
    ...     value = 2.5
    >>> Price() < 3, float(Price()), round(Price()), f"{Price():.2f}", max(Price(), 4), math.floor(Price())
    (True, 2.5, 2, '2.50', 4, 2)
    >>> np.array([Price(), 1.0]).sum()
    np.float64(3.5)
    """

    __slots__ = ()
    value: float

    __lt__, __le__ = _by_value(operator.lt), _by_value(operator.le)
    __gt__, __ge__ = _by_value(operator.gt), _by_value(operator.ge)

    def __float__(self) -> float:
        return float(self.value)

    def __round__(self, ndigits: int | None = None) -> Any:
        return round(self.value, ndigits)

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else str(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self.value, dtype=dtype)


class Identity(str):
    """Who made a forecast. With its key it seals what leaves the process; a copy of the text alone seals nothing.

    Seals of `former` keys, which were in use before, are still good.
    """

    key: bytes
    former: tuple[bytes, ...]

    def __new__(cls, name: str, key: bytes, former: tuple[bytes, ...] = ()) -> "Identity":
        """The identity `name` with the secret `key`, and those that it had before."""
        self = super().__new__(cls, name)
        self.key, self.former = key, former
        return self

    @classmethod
    def derived(cls, name: str, seed: int) -> "Identity":
        """The identity `name` whose key is the BLAKE2b hash of [seed, name] in JSON: as secret as the seed is.

        Examples
        --------
        >>> Identity.derived("store 7", 1).key.hex()[:16]
        'baaa6a44e4e4be4e'
        """
        text = json.dumps([seed, str(name)]).encode()
        return cls(name, hashlib.blake2b(text, digest_size=32, person=b"swapcal identity").digest())

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)

    def seal(self, signed: bytes) -> bytes:
        """HMAC-SHA256 of `signed`."""
        return hmac.digest(self.key, signed, "sha256")

    def sealed(self, signed: bytes, seal: bytes | None) -> bool:
        """Whether `seal` is that of `signed` under the key or a former one."""
        keys = () if seal is None else (self.key, *self.former)
        return any(hmac.compare_digest(hmac.digest(key, signed, "sha256"), seal or b"") for key in keys)


# Bytes of a key, at least.
SHORTEST = 16

# How a forecast can have been found.
KINDS = ("zero", "pair", "low", "high", "trusted")


# Beyond what evidence can be, and its square is a number.
_LARGEST_PHI = 1e150


@dataclass(frozen=True, slots=True)
class Forecast(Number):
    """What `Forecaster.predict` returns: a number to act on, and all that its update will need.

    It orders, rounds and prints as the number `value`; `==` and `hash` are those of the whole record (see
    `Number`). `json.dumps(..., default=float)` writes the number, and so does a field of type float in pydantic
    and FastAPI; a field of type `Forecast` holds the whole record.

    It can be stored as JSON and updated days later, in any order, by the forecaster that made it or by one loaded from
    its file.

    Parameters
    ----------
    value : float
        The forecast, in the property's units.
    round : int
        Its number, from 0.
    forecaster : str
        Identity of the forecaster that made it; while the forecast stays in its process, with the key to seal it.
    other, probability : float
        The forecast is `value` with probability `probability` and `other` else: the whole distribution it was drawn
        from.
    evidence_at : float
        Where V is taken for the evidence: the forecast, or the border that it shares with `other`.
    context : bytes
        Non-zero entries of the context, packed; `indices` and `values` unpack them.
    kind : str
        How it was found: "zero" or "pair" of the evidence, an end of the domain ("low", "high"), or a hint that is
        "trusted".
    phi : float
        The evidence that the draw has canceled; 0 where nothing was drawn.
    hint : float or None
        The hint that was used: the user's own, or that of the learning hint.
    base : float or None
        The user's own forecast, where a learning hint took it as an input.
    features : tuple or None
        Extra features of the learning hint.
    scores : bytes or None
        What the experts of the learning hint said, packed: two bytes each.
    said : float or None
        What the engine said, where the forecaster stood back and `value` is the caller's own number; `other` and
        `probability` are then about what was said. None where `value` is what was said.
    seal : bytes or None
        HMAC-SHA256 of all other fields under the forecaster's key, on forecasts that have left its process.

    Examples
    --------
    >>> import swapcal as sc
    >>> forecaster = sc.Forecaster(sc.Mean(), sc.Finite(2), horizon=100, seed=1)
    >>> forecast = forecaster.predict([1.0, 0.0], hint=0.3)
    >>> float(forecast) == forecast.value, forecast.round, forecast.hint
    (True, 0, 0.3)
    >>> Forecast.from_dict(forecast.to_dict()) == forecast
    True
    """

    value: float
    round: int
    forecaster: str
    other: float
    probability: float
    evidence_at: float
    context: bytes
    kind: str = "zero"
    phi: float = 0.0
    hint: float | None = None
    base: float | None = None
    features: tuple[float, ...] | None = None
    scores: bytes | None = None
    said: float | None = None
    seal: bytes | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        # Whoever builds a forecast by hand skips `from_dict`; an update must not be where that comes out.
        numbers = (self.value, self.other, self.probability, self.evidence_at, self.phi)
        try:
            sound = (
                isinstance(self.round, int)
                and 0 <= self.round < 2**63
                and isinstance(self.forecaster, str)
                and isinstance(self.context, bytes)
                and len(self.context) % 16 == 0
                and isinstance(self.scores, (bytes, type(None)))
                and isinstance(self.kind, str)
                and self.kind in KINDS
                and all(isinstance(v, (float, int)) and math.isfinite(v) for v in numbers)
                and abs(self.phi) <= _LARGEST_PHI
            )
        except OverflowError:
            sound = False
        if not sound:
            raise UnknownForecast("this is not a forecast: a field holds something other than a finite number")
        # Whoever builds a forecast, or changes a copy, has no key: only the forecaster itself makes them its own.
        object.__setattr__(self, "forecaster", str(self.forecaster))
        for name in ("hint", "base", "said"):
            number = getattr(self, name)
            if number is not None and not (type(number) is float and math.isfinite(number)):
                object.__setattr__(self, name, real(number, f"the {name} of a forecast"))

    def __reduce__(self) -> tuple[Any, ...]:
        return Forecast.from_dict, (self.to_dict(),)

    @property
    def sealed(self) -> bytes | None:
        """The seal: made now if the forecast is still with its forecaster, or the one that it came with."""
        who = self.forecaster
        return who.seal(self.signed) if isinstance(who, Identity) else self.seal

    def outside(self) -> "Forecast":
        """The forecast as it leaves its process: plain data, with its seal."""
        return replace(self, seal=self.sealed)

    @property
    def signed(self) -> bytes:
        """What the seal is about: every field but the seal, to the last bit."""
        return repr(tuple(str(v) if name == "forecaster" else v for name, v in _fields(self))).encode()

    @staticmethod
    def packed(indices: Any, values: Any) -> bytes:
        """Positions and values of a context as the bytes of `context`.

        Parameters
        ----------
        indices, values : array
            Of equal length.

        Returns
        -------
        bytes
            16 for each position.
        """
        return np.asarray(indices, dtype=np.int64).tobytes() + np.asarray(values, dtype=np.float64).tobytes()

    @property
    def indices(self) -> tuple[int, ...]:
        """Positions of the non-zero entries of the context."""
        return tuple(np.frombuffer(self.context, dtype=np.int64, count=len(self.context) // 16).tolist())

    @property
    def values(self) -> tuple[float, ...]:
        """Values of the non-zero entries of the context."""
        return tuple(np.frombuffer(self.context, dtype=np.float64, offset=len(self.context) // 2).tolist())

    def __repr__(self) -> str:
        odds = "" if self.probability == 1.0 else f", {self.other:g} with probability {1 - self.probability:.3g}"
        return f"Forecast({self.value:g}, round={self.round}{odds})"

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        data = asdict(self)
        del data["context"]
        for name, value in (("scores", self.scores), ("seal", self.sealed)):
            data[name] = None if value is None else value.hex()
        data["forecaster"] = str(self.forecaster)
        return data | {"indices": self.indices, "values": self.values}

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(self.to_dict())

    def to_bytes(self) -> bytes:
        """About a hundred bytes, and 4 for each group of the context (16 for each entry that is not 1), with a seal.

        Returns
        -------
        bytes
            For `from_bytes`, here or on any other machine.
        """
        values = dict(_fields(self)) | {"seal": self.sealed}
        return pack(values, KINDS.index(self.kind))

    @classmethod
    def from_bytes(cls, data: bytes) -> "Forecast":
        """The forecast that `to_bytes` wrote down; anything else is an `UnknownForecast`.

        Parameters
        ----------
        data : bytes
            What `to_bytes` returned.

        Returns
        -------
        Forecast
            To be updated by the forecaster that made it.
        """
        return cls(**unpack(data, KINDS))

    @classmethod
    def from_dict(cls, data: Any) -> "Forecast":
        """The forecast that `to_dict` wrote down; anything else is an `UnknownForecast`.

        Parameters
        ----------
        data : dict
            What `to_dict` returned.

        Returns
        -------
        Forecast
            Equal to the one that was stored.
        """
        if not isinstance(data, dict) or set(data) != _STORED:
            raise UnknownForecast(
                "this is not a stored forecast: its fields are not those that Forecast.to_dict writes"
            )
        data = dict(data)
        try:
            for name in ("value", "other", "probability", "evidence_at", "phi"):
                data[name] = _number(data[name])
            for name in ("hint", "base", "said"):
                data[name] = None if data[name] is None else _number(data[name])
            indices, values = data.pop("indices"), data.pop("values")
            data["features"] = None if data["features"] is None else tuple(_number(v) for v in data["features"])
            if len(indices) != len(values):
                raise ValueError
            data["context"] = cls.packed([_whole(i) for i in indices], [_number(v) for v in values])
            data["round"] = _whole(data["round"])
            for name in ("scores", "seal"):
                data[name] = None if data[name] is None else bytes.fromhex(data[name])
        except (TypeError, ValueError, OverflowError):
            raise UnknownForecast(
                "this is not a stored forecast: a field holds something other than finite numbers"
            ) from None
        if not isinstance(data["forecaster"], str):
            raise UnknownForecast("this is not a stored forecast: the forecaster's identity is not a string")
        return cls(**data)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """For fields of type `Forecast` in pydantic: read from `to_dict` data or its JSON, and written as such data."""
        from pydantic_core import core_schema

        def read(value: Any) -> Forecast:
            if isinstance(value, cls):
                return value
            return cls.from_json(value) if isinstance(value, (str, bytes)) else cls.from_dict(value)

        return core_schema.no_info_plain_validator_function(
            read, serialization=core_schema.plain_serializer_function_ser_schema(cls.to_dict)
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> "Forecast":
        """The forecast that `to_json` wrote down.

        Parameters
        ----------
        text : str or bytes
            What `to_json` returned.

        Returns
        -------
        Forecast
            Equal to the one that was stored.
        """
        try:
            data = json.loads(text)
        except (TypeError, ValueError, RecursionError):
            raise UnknownForecast("this is not a stored forecast: it is not JSON") from None
        return cls.from_dict(data)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise TypeError
    return float(value)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise TypeError
    return value


def _fields(forecast: Forecast) -> list[tuple[str, Any]]:
    return [(f.name, getattr(forecast, f.name)) for f in fields(forecast) if f.name != "seal"]


_STORED = {f.name for f in fields(Forecast)} - {"context"} | {"indices", "values"}

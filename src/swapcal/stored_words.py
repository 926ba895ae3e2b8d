"""The container that state.py replaces; whoever still uses it moves over."""

import struct
import zlib
from collections.abc import Container, Iterable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from swapcal.errors import StateFileError

# --------
# Objects as bytes: a frame with a version and a checksum, around a header and 64-bit words of which zeros take a bit.
#
# Layout, little-endian: "swpc", version, kind, two bytes 0, CRC-32 of all that follows; then, for most kinds, the
# length
# of the header, the header, the number of words, one bit for each that is not zero, and those words. Reading it runs
# no
# code, and what is read is at most 64 times as large as the bytes themselves.

VERSION = 1
_MAGIC = b"swpc"
_KINDS = {"forecaster": 1, "forecast": 2, "audit": 3, "monitor": 4, "stream": 5, "bucket": 6}
_FRAME = struct.Struct("<4sBBHI")
_LENGTHS = struct.Struct("<IQ")
_PER_WORD: dict[type[np.generic], int] = {np.uint8: 8, np.uint32: 2}
"""Types of which several are in a word."""


class Shape(NamedTuple):
    """What an array is: its shape, and its type: float64, int64, uint32 or uint8."""

    shape: tuple[int, ...]
    dtype: type[np.generic] = np.float64

    @property
    def n_words(self) -> int:
        """Words that it takes; the last may be filled up with zeros."""
        per_word = _PER_WORD.get(self.dtype, 1)
        return -(-prod(self.shape) // per_word)


class Layout(NamedTuple):
    """Where arrays lie among words: how many words there are, and of each array its name, its words and its form.

    The words in `finite` are those of arrays that hold finite numbers only.
    """

    n: int
    places: tuple[tuple[str, slice, type[np.generic], tuple[int, ...], int], ...]
    finite: tuple[slice, ...]

    @classmethod
    def of(cls, shapes: Mapping[str, Shape], *, loose: Container[str] = ()) -> "Layout":
        """One array behind the other; in those named in `loose` there may be NaN and infinities."""
        places: list[tuple[str, slice, type[np.generic], tuple[int, ...], int]] = []
        finite: list[slice] = []
        end = 0
        for name, each in shapes.items():
            start, end = end, end + each.n_words
            places.append((name, slice(start, end), each.dtype, each.shape, prod(each.shape)))
            if each.dtype is np.float64 and name not in loose and end > start:
                if finite and finite[-1].stop == start:
                    start = finite.pop().start
                finite.append(slice(start, end))
        return cls(end, tuple(places), tuple(finite))


class Words(NamedTuple):
    """Words that are still packed: how many, the bits that say which are not zero, and these."""

    n: int
    bits: memoryview
    filled: memoryview

    def arrays(self, layout: Layout) -> dict[str, npt.NDArray[Any]]:
        """The arrays that lie so, which must be all there is: copies that may be written to."""
        if layout.n != self.n:
            raise StateFileError("these bytes are damaged: their arrays do not fit their settings")
        words = np.zeros(self.n, dtype="<u8")
        mask = np.unpackbits(np.frombuffer(self.bits, dtype=np.uint8), count=self.n).view(np.bool_)
        filled = np.frombuffer(self.filled, dtype="<u8")
        if np.count_nonzero(mask) != len(filled):
            raise StateFileError("these bytes are damaged: there are more or fewer numbers than they say")
        words[mask] = filled
        views: dict[Any, npt.NDArray[Any]] = {dtype: words.view(dtype) for dtype in (np.float64, np.int64)}
        if not all(np.isfinite(views[np.float64][place]).all() for place in layout.finite):
            raise StateFileError("these bytes are damaged: they hold something other than finite numbers")
        arrays: dict[str, npt.NDArray[Any]] = {}
        for name, place, dtype, shape, size in layout.places:
            part = words[place].view(dtype)[:size] if dtype in _PER_WORD else views[dtype][place]
            arrays[name] = part if len(shape) == 1 else part.reshape(shape)
        return arrays


def framed(kind: str, payload: bytes) -> bytes:
    """The payload with its frame.

    Examples
    --------
    >>> bytes(unframed("audit", framed("audit", b"sums")))
    b'sums'
    """
    return _FRAME.pack(_MAGIC, VERSION, _KINDS[kind], 0, zlib.crc32(payload)) + payload


def unframed(kind: str, data: bytes) -> memoryview:
    """The payload of a frame of this kind, whole and unchanged; anything else is a `StateFileError`."""
    if not isinstance(data, (bytes, bytearray, memoryview)) or len(data) < _FRAME.size:
        what = f"{len(data)} bytes" if isinstance(data, (bytes, bytearray, memoryview)) else type(data).__name__
        raise StateFileError(f"this is not what to_bytes of a {kind} gave: got {what}")
    magic, version, number, zero, checksum = _FRAME.unpack_from(data)
    if magic != _MAGIC or zero:
        raise StateFileError(f"these bytes were not written by to_bytes of a {kind}")
    if version != VERSION:
        raise StateFileError(f"these bytes have version {version}; this version of swapcal reads {VERSION}")
    if number != _KINDS[kind]:
        found = next((name for name, own in _KINDS.items() if own == number), f"kind {number}")
        raise StateFileError(f"these bytes hold a {found}; they cannot be read as a {kind}")
    payload = memoryview(data)[_FRAME.size :]
    if zlib.crc32(payload) != checksum:
        raise StateFileError(f"these bytes of a {kind} are damaged: their checksum is wrong")
    return payload


def kind_of(data: bytes) -> str | None:
    """What kind of object a frame says that it holds; None for what is no frame."""
    if len(data) < _FRAME.size or bytes(data[:4]) != _MAGIC:
        return None
    return next((name for name, own in _KINDS.items() if own == data[5]), None)


def packed(kind: str, header: bytes, arrays: Iterable[npt.NDArray[Any]]) -> bytes:
    """A header and arrays with a frame; arrays are of float64, int64, uint32 or uint8, kept bit for bit."""
    parts: Sequence[npt.NDArray[Any]] = [_words(each) for each in arrays]
    words = np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint64)
    mask = words != 0
    filled = words[mask].astype("<u8", copy=False)
    sizes = _LENGTHS.pack(len(header), len(words))
    return framed(kind, b"".join((sizes, header, np.packbits(mask).tobytes(), filled.tobytes())))


def unpacked(kind: str, data: bytes) -> tuple[bytes, Words]:
    """The header, and the words, of which nothing is unpacked yet."""
    payload = unframed(kind, data)
    if len(payload) < _LENGTHS.size:
        raise StateFileError(f"these bytes of a {kind} are damaged: they end too early")
    n_header, n_words = _LENGTHS.unpack_from(payload)
    start = _LENGTHS.size + n_header
    middle = start + (n_words + 7) // 8
    if len(payload) < middle or (len(payload) - middle) % 8:
        raise StateFileError(f"these bytes of a {kind} are damaged: they end too early")
    return bytes(payload[_LENGTHS.size : start]), Words(n_words, payload[start:middle], payload[middle:])


def _words(array: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.itemsize < 8:
        flat = np.concatenate([flat, np.zeros(-len(flat) % (8 // flat.itemsize), dtype=flat.dtype)])
    return flat.view(np.uint64)

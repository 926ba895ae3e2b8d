"""Saving: one protocol, one container with one version, and files that appear whole or not at all.

Whatever is saved is a `Stateful`: it tells what it is made of as a `Saved`, and is made again from a `Packed`. Bytes
and files are the same container, little-endian:

- "swpc", version, length of the kind's name, two bytes 0, CRC-32 of all that follows, and the name of the kind;
- the length of a JSON header and the number of 64-bit words, those of the arrays, one behind the other by name; the
  header, which holds the plain data and the lengths of the parts; one bit for each word that is not zero; the highest
  bytes of those words, deflated (sign and exponent, which repeat), and the other seven bytes of each, deflated;
- the parts: the bytes of things inside.

Reading runs no code. What is read is at most 64 times as large as the bytes, and arrays stay packed until their reader
has said what they must be.
"""

import dataclasses
import json
import os
import re
import secrets
import stat
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import prod
from os import PathLike
from typing import Any, BinaryIO, ClassVar, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from swapcal.errors import StateFileError, SwapcalError
from swapcal.typing import Float64Array, Spec

VERSION = 4
_MAGIC = b"swpc"
_FRAME = struct.Struct("<4sBBHI")
_LENGTHS = struct.Struct("<IQ")
# Types of which several are in a word.
_PER_WORD: dict[type[np.generic], int] = {np.uint8: 8, np.uint32: 2}


class Saved(NamedTuple):
    """What a thing is made of.

    plain: JSON types. arrays: by name, of float64, int64, uint32 or uint8, kept bit for bit. parts: bytes by name, of
    things inside, or of text that many share.
    """

    plain: Any
    arrays: Mapping[str, npt.NDArray[Any]] = {}
    parts: Mapping[str, bytes] = {}


class Shape(NamedTuple):
    """What an array must be, said before it is unpacked.

    dims: its dimensions, whole numbers. low, high: between which its numbers must be, ends included: one number, or
    one for each column. Bounds of positions, slots and codes are what keeps kernels from wild memory. finite: False
    where NaN and infinities may stand; bounds are not asked of NaN.
    """

    dims: tuple[int, ...]
    dtype: type[np.generic] = np.float64
    low: Any = None
    high: Any = None
    finite: bool = True


class Layout(NamedTuple):
    """Where arrays lie among words: how many words there are, and of each array its name, its words and its form.

    The words in `finite` are those of arrays that hold finite numbers only; `bounds` are names, lowest and highest.
    """

    n: int
    places: tuple[tuple[str, slice, type[np.generic], tuple[int, ...], int], ...]
    finite: tuple[slice, ...]
    bounds: tuple[tuple[str, Any, Any], ...]

    @classmethod
    def of(cls, shapes: Mapping[str, Shape]) -> "Layout":
        """One array behind the other, by name."""
        places: list[tuple[str, slice, type[np.generic], tuple[int, ...], int]] = []
        finite: list[slice] = []
        end = 0
        for name, shape in sorted(shapes.items()):
            if not all(type(size) is int and size >= 0 for size in shape.dims):
                raise StateFileError(f"this saved state is damaged: {name} has the shape {shape.dims}")
            size = prod(shape.dims)
            # The last word may be filled up with zeros.
            start, end = end, end - (-size // _PER_WORD.get(shape.dtype, 1))
            places.append((name, slice(start, end), shape.dtype, shape.dims, size))
            if shape.dtype is np.float64 and shape.finite and size:
                if finite and finite[-1].stop == start:
                    start = finite.pop().start
                finite.append(slice(start, end))
        limits = ((name, each.low, each.high) for name, each in shapes.items())
        bounds = tuple(each for each in limits if each[1] is not None or each[2] is not None)
        return cls(end, tuple(places), tuple(finite), bounds)


class Packed(NamedTuple):
    """What is read: plain data, parts, and words that are still packed.

    Of the words: how many, the bits that say which are not zero, and these, deflated. `size` is that of all, in bytes.
    """

    plain: Any
    parts: Mapping[str, bytes]
    size: int
    n_words: int
    bits: memoryview
    filled: memoryview

    def arrays(self, shapes: Mapping[str, Shape] | Layout) -> dict[str, npt.NDArray[Any]]:
        """The arrays, which must be these and no others: copies that may be written to."""
        layout = shapes if isinstance(shapes, Layout) else Layout.of(shapes)
        if layout.n != self.n_words:
            raise StateFileError("this saved state is damaged: its arrays do not fit its settings")
        words = np.zeros(self.n_words, dtype="<u8")
        mask = np.unpackbits(np.frombuffer(self.bits, dtype=np.uint8), count=self.n_words).view(np.bool_)
        words[mask] = _inflated(self.filled, int(np.count_nonzero(mask)))
        views: dict[Any, npt.NDArray[Any]] = {dtype: words.view(dtype) for dtype in (np.float64, np.int64)}
        if not all(np.isfinite(views[np.float64][place]).all() for place in layout.finite):
            raise StateFileError("this saved state is damaged: it holds something other than finite numbers")
        arrays: dict[str, npt.NDArray[Any]] = {}
        for name, place, dtype, dims, size in layout.places:
            part = words[place].view(dtype)[:size] if dtype in _PER_WORD else views[dtype][place]
            arrays[name] = part if len(dims) == 1 else part.reshape(dims)
        for name, low, high in layout.bounds:
            check_bounds(name, arrays[name], low, high)
        return arrays


def forms(arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, list[Any]]:
    """Types and dimensions of arrays as plain data, for things that cannot know those of what they read."""
    return {name: [array.dtype.name, *array.shape] for name, array in arrays.items()}


def shapes(forms: Mapping[str, Any], *, finite: bool = False) -> dict[str, Shape]:
    """The shapes that `forms` wrote down.

    Examples
    --------
    >>> shapes(forms({"x": np.zeros((2, 3))}))["x"].dims
    (2, 3)
    """
    dtypes = {np.dtype(each).name: each for each in (np.float64, np.int64, np.uint32, np.uint8)}
    return {name: Shape(tuple(dims), dtypes[dtype], finite=finite) for name, (dtype, *dims) in forms.items()}


def check_bounds(name: str, array: npt.NDArray[Any], low: Any = None, high: Any = None) -> None:
    """Every number is between `low` and `high`, where they are given; NaN is passed over."""
    outside = (low is not None and (array < low).any()) or (high is not None and (array > high).any())
    if outside:
        raise StateFileError(f"this saved state is damaged: numbers of {name} are outside of what they can be")


def pack(kind: str, saved: Saved) -> bytes:
    """The container of a thing.

    Examples
    --------
    >>> packed = unpack("a pair", pack("a pair", Saved({"n": 2}, {"x": np.array([0.0, 1.5])})))
    >>> packed.arrays({"x": Shape((packed.plain["n"],), low=0.0, high=2.0)})
    {'x': array([0. , 1.5])}
    """
    arrays = [_words(array) for _, array in sorted(saved.arrays.items())]
    words = np.concatenate(arrays) if arrays else np.zeros(0, dtype=np.uint64)
    mask = words != 0
    lengths = {name: len(part) for name, part in saved.parts.items()}
    header = json.dumps([saved.plain, lengths], separators=(",", ":")).encode()
    sizes = _LENGTHS.pack(len(header), len(words))
    return framed(kind, sizes, header, np.packbits(mask).tobytes(), _deflated(words[mask]), *saved.parts.values())


def unpack(kind: str, data: bytes) -> Packed:
    """What `pack` packed; anything else is a `StateFileError`."""
    payload = unframed(kind, data)
    try:
        n_header, n_words = _LENGTHS.unpack_from(payload)
        start = _LENGTHS.size + n_header
        plain, lengths = json.loads(bytes(payload[_LENGTHS.size : start]))
        if not all(type(length) is int and length >= 0 for length in lengths.values()):
            raise ValueError("the length of a part is no length")
    except (struct.error, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise StateFileError(f"this saved state is damaged: it has no header ({type(error).__name__})") from error
    middle, end = start + (n_words + 7) // 8, len(payload) - sum(lengths.values())
    if end < middle:
        raise StateFileError("this saved state is damaged: it ends too early")
    parts, at = {}, end
    for name, length in lengths.items():
        parts[name] = bytes(payload[at : at + length])
        at += length
    return Packed(plain, parts, len(payload), n_words, payload[start:middle], payload[middle:end])


def framed(kind: str, *payload: bytes) -> bytes:
    """The payload with its frame.

    Examples
    --------
    >>> bytes(unframed("note", framed("note", b"text")))
    b'text'
    """
    name = kind.encode()
    body = b"".join((name, *payload))
    return _FRAME.pack(_MAGIC, VERSION, len(name), 0, zlib.crc32(body)) + body


def unframed(kind: str, data: bytes) -> memoryview:
    """The payload of a frame of this kind, whole and unchanged; anything else is a `StateFileError`."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise StateFileError(f"a saved state is bytes; got {type(data).__name__}")
    _check_begin(data)
    if len(data) < _FRAME.size:
        raise StateFileError("this saved state is damaged: it ends too early")
    _, version, length, zero, checksum = _FRAME.unpack_from(data)
    if version != VERSION or zero:
        raise StateFileError(f"this was saved in format {version}, and this version of swapcal reads format {VERSION}")
    body = memoryview(data)[_FRAME.size :]
    if zlib.crc32(body) != checksum:
        raise StateFileError("this saved state is damaged: its checksum is wrong")
    if body[:length] != kind.encode():
        other = bytes(body[:length]).decode(errors="replace")
        raise StateFileError(f"this is a saved state of the kind {other!r}, and not of the kind {kind!r}")
    return body[length:]


def _check_begin(data: bytes) -> None:
    if bytes(data[:2]) == b"PK":
        raise StateFileError(
            "this was saved by an earlier version of swapcal, which this one does not read; make it anew"
        )
    if bytes(data[:4]) != _MAGIC:
        raise StateFileError("this is not a saved state of swapcal, or only a part of one")


def kind_of(data: bytes) -> str | None:
    """What kind of thing a frame says that it holds; None for what is no frame."""
    if len(data) < _FRAME.size or bytes(data[:4]) != _MAGIC:
        return None
    return bytes(data[_FRAME.size : _FRAME.size + data[5]]).decode(errors="replace")


# The highest byte of a word, and the others.
_PLACES = (slice(7, 8), slice(0, 7))


def _deflated(words: npt.NDArray[np.uint64]) -> bytes:
    table = words.astype("<u8", copy=False).view(np.uint8).reshape(-1, 8)
    return b"".join(zlib.compress(table[:, places].tobytes(), 3, -zlib.MAX_WBITS) for places in _PLACES)


def _inflated(data: Any, n: int) -> npt.NDArray[np.uint64]:
    """So many words; what says that it is more or fewer is not unpacked any further."""
    table = np.empty((n, 8), dtype=np.uint8)
    for places in _PLACES:
        inflater, part = zlib.decompressobj(-zlib.MAX_WBITS), table[:, places]
        try:
            found = inflater.decompress(data, part.size + 1)
        except zlib.error as error:
            raise StateFileError("this saved state is damaged: its numbers cannot be unpacked") from error
        if len(found) != part.size or not inflater.eof:
            raise StateFileError("this saved state is damaged: there are more or fewer numbers than it says")
        part[:] = np.frombuffer(found, dtype=np.uint8).reshape(part.shape)
        data = inflater.unused_data
    if data:
        raise StateFileError("this saved state is damaged: there are more or fewer numbers than it says")
    return table.view("<u8")[:, 0]


def _words(array: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.itemsize < 8:
        flat = np.concatenate([flat, np.zeros(-len(flat) % (8 // flat.itemsize), dtype=flat.dtype)])
    return flat.view(np.uint64)


class Stateful:
    """A thing that can be saved at any time between two of its rounds, and goes on from there bit for bit.

    It has a `kind`, tells what it is made of (`to_state`), and can be made again (`from_state`).
    """

    # What the container says that it holds, in a word.
    kind: ClassVar[str]

    def to_state(self) -> Saved:
        """What it is made of; arrays may be its own, which nobody changes before they are packed."""
        raise NotImplementedError

    @classmethod
    def from_state(cls, packed: Packed, *_: Any, **own: Any) -> Self:
        """Make it again; `own` are parts of the user's own making, which no file holds."""
        raise NotImplementedError

    def to_bytes(self) -> bytes:
        """The whole state as bytes: versioned, with a checksum, no pickle.

        Returns
        -------
        bytes
            For `from_bytes`, here or on any other machine.
        """
        return pack(self.kind, self.to_state())

    @classmethod
    def from_bytes(cls, data: bytes, **own: Any) -> Self:
        """What `to_bytes` or `save` wrote; it continues bit for bit.

        Parameters
        ----------
        data : bytes
            What `to_bytes` gave.
        **own
            Parts of your own making, which no bytes hold, are passed in again under the names they have in the
            constructor: `property`, `hypotheses`, `hint` or `groups`.

        Returns
        -------
        Stateful
            One that does what the other one would have done.
        """
        packed = unpack(cls.kind, data)
        unknown = own.keys() - (cls.from_state.__kwdefaults__ or {}).keys()
        if unknown:
            raise TypeError(f"a saved state of the kind {cls.kind!r} takes no {', '.join(sorted(unknown))}")
        try:
            return cls.from_state(packed, **own)
        except StateFileError:
            raise
        except SwapcalError as error:
            raise StateFileError(str(error)) from error
        except Exception as error:
            # The checksum is right, so this was made by hand; json and our own constructors raise nearly anything.
            raise StateFileError(
                f"this is not a saved state of the kind {cls.kind!r} ({type(error).__name__}: {error})"
            ) from error

    def save(self, path: str | PathLike[str] | BinaryIO) -> None:
        """Write what `to_bytes` gives to a file (or a binary stream).

        Parameters
        ----------
        path : path or binary stream
            Where to; a file appears whole or not at all.
        """
        data = self.to_bytes()
        if not isinstance(path, (str, PathLike)):
            path.write(data)
            return
        with atomic_write(path) as file:
            file.write(data)

    @classmethod
    def load(cls, path: str | PathLike[str] | BinaryIO, **own: Any) -> Self:
        """What `save` wrote; it continues bit for bit.

        Parameters
        ----------
        path : path or binary stream
            What `save` wrote.
        **own
            As for `from_bytes`.

        Returns
        -------
        Stateful
            One that does what the saved one would have done.
        """
        return cls.from_bytes(read(path), **own)


def read(path: str | PathLike[str] | BinaryIO) -> bytes:
    """The bytes of a file or stream, if they begin as those of a saved thing do; other files are not read."""
    try:
        if not isinstance(path, (str, PathLike)):
            return path.read()
        with open(path, "rb") as file:
            begin = file.read(len(_MAGIC))
            _check_begin(begin)
            return begin + file.read()
    except StateFileError:
        raise
    except FileNotFoundError:
        raise StateFileError(f"there is no state file at {path!r}") from None
    except OSError as error:
        raise StateFileError(f"{path} cannot be read ({(error.strerror or str(error)).lower()})") from None
    except (AttributeError, TypeError, ValueError) as error:
        raise StateFileError(f"a saved state is read from a path or a binary stream; got {path!r}") from error


@contextmanager
def atomic_write(path: str | PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file that takes the place of `path` when all is written and on the disk; until then `path` is as it was.

    It is written beside `path` under a name of its own, which nobody else can have made or can guess: two writers do
    not meet, and no link that lies there is followed. File and folder are synced, so that a power failure leaves the
    old file or the new one. The mode of an existing file is kept.

    Parameters
    ----------
    path : path
        What is to be written; a link is followed, and its target replaced.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "state")
    ...     with atomic_write(path) as file:
    ...         _ = file.write(b"whole")
    ...     path.read_bytes()
    b'whole'
    """
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    beside = os.path.join(folder, f".{name[:100]}.{secrets.token_hex(8)}.part")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with open(handle, "wb") as file:
            if os.path.exists(target):
                os.chmod(beside, os.stat(target).st_mode & 0o777)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException:
        os.remove(beside)
        raise
    sync_folder(folder)


def leftovers(path: str | PathLike[str]) -> list[str]:
    """Files that `atomic_write` was writing beside `path` when its process was killed, or is writing now.

    Whoever removes them must know that nobody else writes to `path`.
    """
    folder, name = os.path.split(os.path.realpath(path))
    shape = re.compile(rf"\.{re.escape(name[:100])}\.[0-9a-f]{{16}}\.part")
    paths = [os.path.join(folder, each) for each in os.listdir(folder) if shape.fullmatch(each)]
    return [each for each in paths if stat.S_ISREG(os.lstat(each).st_mode)]


def sync_folder(folder: str) -> None:
    """Bring a folder's names to the disk, where the system has a way to."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class _NamedPart(Protocol):
    def arrays(self) -> dict[str, Float64Array]:
        """The whole state."""

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Go on from what `arrays` held."""


def joined(parts: Mapping[str, _NamedPart]) -> dict[str, Float64Array]:
    """The arrays of all parts, each under its part's name, a point and its own."""
    return {f"{name}.{key}": array for name, part in parts.items() for key, array in part.arrays().items()}


def take_over(parts: Mapping[str, _NamedPart], arrays: Mapping[str, Float64Array]) -> None:
    """Let every part go on from its arrays, as `joined` has named them."""
    for name, part in parts.items():
        part.restore(part_of(arrays, f"{name}."))


def part_of(arrays: Mapping[str, Float64Array], prefix: str) -> dict[str, Float64Array]:
    """The arrays whose names begin with `prefix`, under the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


# --------
# Parts as plain data: a class by its name, and the arguments that make it again.


class Described:
    """A dataclass that prints as the constructor call which makes it, and is saved as the arguments of that."""

    __slots__ = ()

    def _arguments(self) -> list[tuple[dataclasses.Field[Any], Any]]:
        """Those with a place first."""
        arguments = [each for each in dataclasses.fields(self) if each.init]  # type: ignore[arg-type]
        arguments.sort(key=lambda each: bool(each.kw_only))
        return [(each, getattr(self, each.name)) for each in arguments]

    def __repr__(self) -> str:
        own = [(each, value) for each, value in self._arguments() if value != each.default]
        return f"{type(self).__name__}({', '.join(f'{f.name}={v!r}' if f.kw_only else repr(v) for f, v in own)})"

    def spec(self) -> Spec:
        """Plain data for `from_spec`: the arguments, with the class under "kind"."""
        return {"kind": type(self).__name__} | {each.name: value for each, value in self._arguments()}


def rebuilt(spec: Any, kinds: Mapping[str, Callable[..., Any]], what: str, option: str) -> Any:
    """The part that its `spec()` described, one of `kinds`.

    Parameters
    ----------
    spec : dict
        What `spec()` gave.
    kinds : dict
        What makes a part from its arguments, by the name of its class.
    what, option : str
        What such a part is called, and with which argument of loading one of your own making is passed in.

    Examples
    --------
    >>> rebuilt({"kind": "complex", "real": 2.0}, {"complex": complex}, "number", "number=")
    (2+0j)
    """
    if not isinstance(spec, Mapping) or not isinstance(spec.get("kind"), str):
        raise StateFileError(f'a saved {what} is a mapping with its class under "kind"; got {spec!r}')
    kind, arguments = spec["kind"], {str(name): value for name, value in spec.items() if name != "kind"}
    if kind not in kinds:
        called = f" called {arguments['name']!r}" if "name" in arguments else ""
        raise StateFileError(
            f"unknown kind of {what}: {kind!r}{called}; this version knows {', '.join(sorted(kinds))}; if it is your "
            f"own, of which a state file holds no code, make it again and pass it as {option} when loading"
        )
    try:
        return kinds[kind](**arguments)
    except StateFileError:
        raise
    except (TypeError, ValueError, KeyError, AttributeError, IndexError) as error:
        raise StateFileError(f"the saved {what} {dict(spec)!r} is damaged: {error}") from error

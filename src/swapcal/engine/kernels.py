"""The compiled kernels, or none: without them everything works, in Python.

And the arithmetic that both do alike to the last bit: draws, exponentials, and sums in a stated order.
"""

import hashlib
import importlib
import json
import math
import os
import secrets
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np

from swapcal.errors import UncompiledWarning
from swapcal.typing import Float64Array

# Environment variable: "python" leaves the kernels alone, "native" insists on them.
VARIABLE = "SWAPCAL_BACKEND"


def _found(wanted: str) -> ModuleType | None:
    if wanted not in ("", "native", "python"):
        raise ImportError(f"the environment variable {VARIABLE} must be native or python; it is {wanted!r}")
    if wanted == "python":
        return None
    try:
        return importlib.import_module("swapcal._native")
    except ImportError:
        if wanted == "native":
            raise
        return None


# The module of compiled kernels, or None.
native: Any = _found(os.environ.get(VARIABLE, ""))

_reminded = native is not None or VARIABLE in os.environ


def backend() -> str:
    """The word "native" where compiled kernels are in use, "python" where they are not.

    Forecasters keep the backend with which they were made. Numbers are the same on both, to the last bit.

    Returns
    -------
    str
        "native" or "python".

    Examples
    --------
    >>> backend() in ("native", "python")
    True
    """
    return "python" if native is None else "native"


def remind() -> None:
    """Say once that the kernels are missing, if nobody asked for that."""
    global _reminded
    if not _reminded:
        _reminded = True
        warnings.warn(
            "swapcal runs without its compiled kernels, with the same numbers and 20 to 100 times slower; reinstall it "
            f"where there is a C++ compiler, or set {VARIABLE}=python if this is what you want",
            UncompiledWarning,
            stacklevel=3,
        )


@contextmanager
def using(name: str) -> Iterator[None]:
    """Choose the backend for a block of code; tests and benchmarks compare the twins with it.

    Examples
    --------
    >>> with using("python"):
    ...     backend()
    'python'
    """
    global native
    before, native = native, _found(name)
    try:
        yield
    finally:
        native = before


# --------
# The same bits in Python and in C++.

# --------
# The draw of round t: a pure function of (seed, t).
#
# A counter instead of a generator's state makes replay exact and lets any other language draw the same number. The
# mixing function is SplitMix64's finalizer (Steele, Lea, Flood 2014), applied once to the seed and once to the sum of
# the mixed seed and the counter's multiple of the golden gamma. NumPy's counter-based Philox takes far longer to set up
# per draw.

_MASK = 0xFFFFFFFFFFFFFFFF
# The multiplier of the counter: 2^64 over the golden ratio.
GOLDEN = 0x9E3779B97F4A7C15


def fresh_seed() -> int:
    """A seed that nobody can know."""
    return secrets.randbits(63)


def seed_for(seed: int, *names: object) -> int:
    """A seed for a part: a hash of the seed of the whole and of the part's names, so that parts draw independently.

    It is the first 63 bits of the BLAKE2b hash (8 bytes) of the JSON list of the seed and the names as text.

    Examples
    --------
    >>> seed_for(1, "lower") == seed_for(1, "lower"), seed_for(1, "lower") == seed_for(1, "upper")
    (True, False)
    """
    text = json.dumps([seed, *map(str, names)]).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 1


def mix64(z: int) -> int:
    """SplitMix64's finalizer: a bijection of 64-bit numbers in which every input bit reaches every output bit."""
    z &= _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def uniform(seed: int, t: int) -> float:
    """The number in [0, 1) for round `t`, a multiple of 2**-53.

    Examples
    --------
    >>> uniform(0, 0) == uniform(0, 0), uniform(0, 0) == uniform(0, 1), uniform(0, 0) == uniform(1, 0)
    (True, False, False)
    """
    return (mix64(mix64(seed + GOLDEN) + (t + 1) * GOLDEN) >> 11) * 2.0**-53


def row_keys(start: int, n: int, offset: int = 0) -> Float64Array:
    """Uniform numbers in [0, 1) for `n` rows from number `start` on, each a function of its number alone.

    Examples
    --------
    >>> row_keys(7, 1)[0] == row_keys(0, 8)[7], row_keys(0, 1, mix64(3 + GOLDEN))[0] == uniform(3, 0)
    (np.True_, np.True_)
    """
    with np.errstate(over="ignore"):
        z = np.arange(start + 1, start + n + 1, dtype=np.uint64) * np.uint64(GOLDEN) + np.uint64(offset)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * 2.0**-53


# --------
# An exponential that stays finite, and whose every bit is the same in NumPy and in C++.
#
# NumPy's exponential and those of C libraries differ in the last bit, as they use whatever instructions a machine has.
# This one is made of sums and products in a stated order, which round alike everywhere, and compilers can turn it into
# vector code.

_LOWEST, _CAP = -700.0, 300.0
_PER_LN2 = float.fromhex("0x1.71547652b82fep+0")
# ln 2 in two parts (Cody and Waite); the first has zeros at its end, so that its small multiples are exact.
_LN2_HIGH, _LN2_LOW = float.fromhex("0x1.62e42fee00000p-1"), float.fromhex("0x1.a39ef35793c76p-33")
_ROUNDER = 1.5 * 2.0**52  # adding it leaves the nearest whole number in the last bits
# The polynomial that meets exp at the twelve Chebyshev points of [-ln 2 / 2, ln 2 / 2]; from its highest power down.
_SERIES = [
    float.fromhex(c)
    for c in (
        "0x1.af631d0059becp-26",
        "0x1.28b4057f44145p-22",
        "0x1.71ddf5749d126p-19",
        "0x1.a01991ac8730ap-16",
        "0x1.a01a01b14378fp-13",
        "0x1.6c16c187fbe02p-10",
        "0x1.111111110f225p-7",
        "0x1.555555554f0cfp-5",
        "0x1.555555555555ap-3",
        "0x1.0000000000011p-1",
        "0x1.0000000000000p+0",
        "0x1.0000000000000p+0",
    )
]

_ODD = [1.0 / math.factorial(k) for k in range(17, 0, -2)]


def safe_exp(a: Float64Array) -> Float64Array:
    """exp(a), continued along its tangent beyond 300, and constant below -700; the relative error is below 4e-16.

    With outcomes in order the exponents stay below the logarithm in the guarantee, about 20. Outcomes that come late in
    great numbers can push them anywhere; the tangent keeps weights finite, increasing and different from each other.

    Examples
    --------
    >>> safe_exp(np.array([0.0, 1.0]))
    array([1.        , 2.71828183])
    >>> bool((np.diff(safe_exp(np.array([299.0, 1e5, 1e6]))) > 0.0).all())
    True
    """
    held = np.minimum(np.maximum(a, _LOWEST), _CAP)
    shifted = held * _PER_LN2 + _ROUNDER
    k = shifted - _ROUNDER
    r = (held - k * _LN2_HIGH) - k * _LN2_LOW
    series = _SERIES[0] * r + _SERIES[1]
    for coefficient in _SERIES[2:]:
        series *= r
        series += coefficient
    power = ((shifted.view(np.int64) + 1023) << 52).view(np.float64)
    series *= power
    series *= 1.0 + np.maximum(a - _CAP, 0.0)
    return series


def short_sinh(z: Float64Array) -> Float64Array:
    """sinh(z) for |z| <= 1, by its series; the relative error is below 3e-16.

    Examples
    --------
    >>> short_sinh(np.array([0.0, -0.5]))
    array([ 0.        , -0.52109531])
    """
    square = z * z
    series = _ODD[0] * square + _ODD[1]
    for coefficient in _ODD[2:]:
        series *= square
        series += coefficient
    series *= z
    return series


# `np.sum`, `dot` and Python's own `sum` choose their order, or compensate, by version and machine. `accumulate` keeps
# every partial sum, which leaves it only one order: from left to right.


def in_order(terms: Float64Array) -> float:
    """The sum of a vector from left to right; 0 for none."""
    return float(np.add.accumulate(terms)[-1]) if len(terms) else 0.0


def rows_in_order(terms: Float64Array) -> Float64Array:
    """The sum of the rows of a matrix, at least one, from the first to the last."""
    total: Float64Array = np.add.accumulate(terms, axis=0)[-1]
    return total

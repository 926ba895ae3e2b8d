"""The draw of round t: a pure function of (seed, t).

A counter instead of a generator's state makes replay exact and lets any other language draw the same number. The mixing
function is SplitMix64's finalizer (Steele, Lea, Flood 2014), applied once to the seed and once to the sum of the mixed
seed and the counter's multiple of the golden gamma. NumPy's counter-based Philox takes far longer to set up per draw.
"""

import hashlib
import json
import secrets

__all__ = ["GOLDEN", "fresh_seed", "mix64", "seed_for", "uniform"]

_MASK = 0xFFFFFFFFFFFFFFFF
GOLDEN = 0x9E3779B97F4A7C15
"""The multiplier of the counter: 2^64 over the golden ratio."""


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

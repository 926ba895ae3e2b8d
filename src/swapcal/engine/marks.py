"""The mark of a forecast: 32 bits of all that its update will use, so that copies of a forecaster tell rounds apart.

Forecasters that were copied, forked or loaded from one file have the same identity, key and seed, and number their
rounds alike. A round that was issued before they parted is known to all of them, with the same mark; afterwards round t
of one is another than round t of the other. So an update from outside is taken only if it has the mark of the round
that was issued here. Whoever plays the same log again, as a service does after a crash, issues the same marks.

Marks are no seals: they tell honest copies apart (by chance one in 2^32 is not), and the seal keeps out the rest.
"""

import struct

from swapcal.engine.pending import UNMARKED
from swapcal.engine.randomness import GOLDEN, mix64
from swapcal.forecast import Forecast

__all__ = ["mark"]

_MASK = 0xFFFFFFFFFFFFFFFF
_NOTHING = 1


def mark(forecast: Forecast) -> int:
    """A number from 2 to 2^32 - 1: a polynomial in the words of the record, mixed.

    Examples
    --------
    >>> import swapcal as sc
    >>> one, other = (sc.Forecaster(sc.Mean(), sc.Finite(2), seed=1).predict([1.0, b]) for b in (0.0, 1.0))
    >>> mark(one) == mark(one.outside()), mark(one) == mark(other)
    (True, False)
    """
    said = forecast.value if forecast.said is None else forecast.said
    numbers = (said, forecast.other, forecast.evidence_at, forecast.phi, forecast.hint, forecast.base)
    words = [_NOTHING if number is None else _folded(number) for number in numbers]
    indices = struct.unpack(f"={len(forecast.context) // 16}q", forecast.context[: len(forecast.context) // 2])
    words += [index * GOLDEN + _folded(entry) for index, entry in zip(indices, forecast.values, strict=True)]
    words += [_folded(number) for number in forecast.features or ()]
    total = 0
    for word in words:
        total = (total * GOLDEN + word) & _MASK
    return max(mix64(total) >> 32, UNMARKED + 1)


def _folded(number: float) -> int:
    # Adding zero makes minus zero zero; the lower half of most numbers is empty.
    bits: int = struct.unpack("=Q", struct.pack("=d", number + 0.0))[0]
    return bits ^ (bits >> 32)

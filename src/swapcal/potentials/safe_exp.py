"""The exponential, continued so that weights stay finite where the theorems no longer bound the exponent."""

import math

__all__ = ["safe_exp"]

_CAP = 300.0
_AT_CAP = math.exp(_CAP)


def safe_exp(a: float) -> float:
    """exp(a), continued along its tangent beyond 300.

    With outcomes in order the exponents stay below the logarithm in the guarantee, about 20. Outcomes that come late in
    great numbers can push them anywhere; the tangent keeps weights finite, increasing and different from each other.

    Examples
    --------
    >>> safe_exp(0.0), safe_exp(1e6) > safe_exp(1e5) > safe_exp(299.0)
    (1.0, True)
    """
    return math.exp(a) if a <= _CAP else _AT_CAP * (1.0 + (a - _CAP))

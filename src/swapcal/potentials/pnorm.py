"""The p-norm potential: theorem B for a finite class, polynomial instead of exponential."""

import math
from dataclasses import dataclass

import numpy as np

from swapcal.engine.bounds import Tally, quadratic
from swapcal.errors import InvalidInput
from swapcal.typing import Float64Array, Spec

__all__ = ["PNorm"]


@dataclass(frozen=True, slots=True)
class PNorm:
    r"""Psi = sum over bins of ||S_i||_p^2 / n_i, p = max(2, 2 ln n) for n functions.

    Phi_i(x) = <gradient of 1/2 ||S_i||_p^2, x> / (n_i + 1). The norm couples the functions of a bin, so that an update
    costs O(n), not only O(active); the other potentials are cheaper on sparse contexts.

    Guarantee (`bounds.quadratic`): with probability 1 - delta, Psi <= e ((p - 1) sum_i H(n_i) + 9 ln(1/delta)), H the
    harmonic numbers.

    Parameters
    ----------
    p : float
        The exponent; where it is None, max(2, 2 ln n) for the n functions of the class.

    References
    ----------
    Grove, Littlestone, Schuurmans (2001), General convergence results for linear discriminant updates; the p-norm's
    smoothness.

    Examples
    --------
    >>> PNorm().for_class(100)
    PNorm(p=9.210340371976184)
    >>> PNorm(p=3.0).for_class(100)
    PNorm(p=3.0)
    """

    p: float | None = None

    def __post_init__(self) -> None:
        if self.p is not None and not (isinstance(self.p, (int, float)) and 2.0 <= self.p <= 60.0):
            raise InvalidInput(f"p must be between 2 and 60, or None; got {self.p!r}")

    @property
    def reference(self) -> str:
        """Where the potential comes from."""
        return "Foster and Vohra style quadratic potential, normalized by counts, in the p-norm of Grove et al. 2001"

    def for_class(self, n: int) -> "PNorm":
        """The potential with its exponent filled in for `n` functions."""
        return self if self.p is not None else PNorm(max(2.0, 2.0 * math.log(n)))

    @property
    def exponent(self) -> float:
        """p, 2 where it was not given."""
        return 2.0 if self.p is None else self.p

    def spread(self, g: Float64Array) -> Float64Array:
        """0: no second statistic."""
        return np.zeros_like(g)

    def weight(self, s: float, c: float) -> float:
        """The weight of a function that is alone in its bin, but for the bin's count: s itself."""
        return s

    def weights(self, s: Float64Array, c: Float64Array) -> Float64Array:
        """The sums themselves."""
        return s

    def row_weights(self, sums: Float64Array, n: float) -> Float64Array:
        """The gradient of 1/2 ||S||_p^2, over n + 1; scaled by the largest entry, so that no power overflows."""
        largest = float(np.max(np.abs(sums)))
        if largest == 0.0:
            return np.zeros_like(sums)
        p = self.exponent
        shares = (np.abs(sums) / largest).tolist()
        total = 0.0
        for share in shares:
            total += math.pow(share, p)
        factor = largest * math.pow(total, (2.0 - p) / p) / (n + 1.0)
        return np.copysign([factor * math.pow(share, p - 1.0) for share in shares], sums)

    def level(self, s: Float64Array, c: Float64Array) -> None:
        """None: not an exponential potential, so a trusted hint would not keep its guarantee."""
        return

    def bound(self, tally: Tally, r: float, delta: float) -> float:
        """Theorem B in the p-norm: a context's squared p-norm is at most n^(2/p), the smoothness is p - 1."""
        return quadratic(tally, self.exponent - 1.0, tally.n_functions ** (2.0 / self.exponent), r, delta)

    def spec(self) -> Spec:
        """Plain data."""
        return {"kind": "PNorm", "p": self.p}

"""The role of a potential, and how one is rebuilt from plain data."""

from typing import Protocol

from swapcal.engine.bounds import Tally
from swapcal.errors import StateFileError
from swapcal.typing import Float64Array, Spec

__all__ = ["Potential", "from_spec"]


class Potential(Protocol):
    """Turns the evidence of one (bin, function) into a signed weight.

    Notation: g_1, g_2, ... are the function's gains f(x_t) V_t in the rounds that played the bin, s their sum, and c
    the sum of `spread(g)`. The weight is the derivative of a potential Psi that the forecaster's rounds do not
    increase in expectation, but for terms that the theorem accounts for; so Psi stays small, and with it every |s|.
    """

    @property
    def reference(self) -> str:
        """Where the potential and its inequality come from."""

    def spread(self, g: Float64Array) -> Float64Array:
        """What each gain adds to c."""

    def weight(self, s: float, c: float) -> float:
        """Signed weight of the function; odd and increasing in s."""

    def weights(self, s: Float64Array, c: Float64Array) -> Float64Array:
        """`weight` for each pair, to the last bit."""

    def row_weights(self, sums: Float64Array, n: float) -> Float64Array | None:
        """The weights of a bin with sums `sums` and `n` visits, where functions are weighed together; else None."""

    def level(self, s: Float64Array, c: Float64Array) -> Float64Array | None:
        """Upper bound on the logarithm of the potential, or None where the potential is not exponential."""

    def bound(self, tally: Tally, r: float, delta: float) -> float:
        """What the theorem promises: sum_i n_i sup_f |s / n_i|^r stays below it with probability 1 - delta."""

    def spec(self) -> Spec:
        """Plain data from which `from_spec` rebuilds the potential."""


def from_spec(spec: Spec) -> Potential:
    """Rebuild a potential from its `spec()`.

    Parameters
    ----------
    spec : dict
        What `potential.spec()` gave.

    Returns
    -------
    Potential
        Equal to the one that was described.

    Examples
    --------
    >>> from swapcal.potentials import Exponential
    >>> from_spec(Exponential(n_rates=4).spec())
    Exponential(n_rates=4)
    """
    from swapcal import potentials

    kinds = {
        k.__name__: k for k in (potentials.AdaNormalHedge, potentials.Exponential, potentials.PNorm, potentials.Squint)
    }
    arguments = dict(spec)
    kind = arguments.pop("kind", None)
    if kind not in kinds:
        raise StateFileError(f"unknown potential {kind!r}; this version knows {', '.join(sorted(kinds))}")
    try:
        potential: Potential = kinds[kind](**arguments)
    except (TypeError, ValueError) as error:
        raise StateFileError(f"the potential {kind!r} cannot be rebuilt from {arguments!r}: {error}") from error
    return potential

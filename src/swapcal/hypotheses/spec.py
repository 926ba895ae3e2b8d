"""Rebuilds a class of functions from plain data."""

from swapcal import learners, potentials
from swapcal.errors import StateFileError
from swapcal.hypotheses.finite import Finite
from swapcal.hypotheses.groups import Groups
from swapcal.hypotheses.linear import Linear
from swapcal.hypotheses.numeric import Numeric
from swapcal.hypotheses.oracle import Oracle
from swapcal.typing import Spec

__all__ = ["from_spec"]


def from_spec(spec: Spec) -> Finite | Linear | Oracle | Groups | Numeric:
    """Rebuild a class from its `spec()`; a learner or a group that is a function of your own cannot be rebuilt.

    Parameters
    ----------
    spec : dict
        What `hypotheses.spec()` gave.

    Returns
    -------
    Hypotheses
        Equal to the one that was described.

    Examples
    --------
    >>> from_spec(Linear(3, radius=2.0).spec())
    Linear(3, radius=2)
    """
    arguments = dict(spec)
    kind = arguments.pop("kind", None)
    try:
        if kind == "Finite":
            return Finite(
                arguments["n"], potential=potentials.from_spec(arguments["potential"]), names=arguments["names"]
            )
        if kind == "Linear":
            return Linear(arguments["n"], radius=arguments["radius"])
        if kind == "Oracle":
            return Oracle(learners.from_spec(arguments["learner"]))
        if kind == "Groups":
            return Groups.from_spec(arguments)
        if kind == "Numeric":
            return Numeric.from_spec(arguments)
    except StateFileError:
        raise
    except (TypeError, ValueError, KeyError, AttributeError, IndexError) as error:
        raise StateFileError(f"the class {kind!r} cannot be rebuilt from {arguments!r}: {error}") from error
    raise StateFileError(
        f"unknown class of functions {kind!r}; this version knows Finite, Groups, Linear, Numeric and Oracle"
    )

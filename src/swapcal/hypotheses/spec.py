"""Rebuilds a class of functions from plain data."""

from swapcal import learners, potentials
from swapcal.errors import StateFileError
from swapcal.hypotheses.finite import Finite
from swapcal.hypotheses.linear import Linear
from swapcal.hypotheses.oracle import Oracle
from swapcal.typing import Spec

__all__ = ["from_spec"]


def from_spec(spec: Spec) -> Finite | Linear | Oracle:
    """Rebuild `Finite`, `Linear` or `Oracle` from its `spec()`; a learner of your own cannot be rebuilt."""
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
    except StateFileError:
        raise
    except (TypeError, ValueError, KeyError) as error:
        raise StateFileError(f"the class {kind!r} cannot be rebuilt from {arguments!r}: {error}") from error
    raise StateFileError(f"unknown class of functions {kind!r}; this version knows Finite, Linear and Oracle")

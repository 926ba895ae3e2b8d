"""Classes of functions against which forecasts are calibrated, and the evidence they gather."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from swapcal import learners, potentials
from swapcal.errors import StateFileError
from swapcal.hypotheses.blocks import Levels, Product, Union
from swapcal.hypotheses.finite import Finite
from swapcal.hypotheses.groups import Groups
from swapcal.hypotheses.linear import Linear
from swapcal.hypotheses.numeric import Numeric
from swapcal.hypotheses.oracle import Oracle
from swapcal.hypotheses.trees import Trees
from swapcal.state import rebuilt
from swapcal.typing import Spec

# --------
# Rebuilds a class of functions from plain data.

Made = Finite | Linear | Oracle | Groups | Numeric | Trees | Union | Product
_KEPT = ("Finite", "Groups", "Linear")


def from_spec(spec: Spec) -> Made:
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
    if not isinstance(spec, Mapping) or spec.get("kind") not in _KEPT:
        return _built(spec)
    try:
        text = json.dumps(unlearned(spec))
    except (TypeError, ValueError):
        return _built(spec)
    functions = _kept(text)
    if not isinstance(functions, Groups):
        return functions
    try:
        return functions.taught(spec)
    except StateFileError:
        raise
    except (TypeError, ValueError, KeyError, AttributeError, IndexError) as error:
        raise StateFileError(f"the class 'Groups' cannot be rebuilt from {dict(spec)!r}: {error}") from error


def unlearned(spec: Spec) -> Spec:
    """The spec of a class that has learned nothing yet: the same for all that were made alike.

    Parameters
    ----------
    spec : Spec
        Of any class of functions; only `Groups` learn.

    Returns
    -------
    Spec
        Without vocabulary and edges.

    Examples
    --------
    >>> unlearned({"kind": "Groups", "vocabulary": ["all"], "edges": {"age": [30.0]}})
    {'kind': 'Groups', 'vocabulary': None, 'edges': {}}
    """
    return {**spec, "vocabulary": None, "edges": {}} if spec.get("kind") == "Groups" else spec


@lru_cache(maxsize=64)
def _kept(text: str) -> Made:
    """Classes that never change, and groups that have learned nothing; most forecasters of a store have one of few."""
    return _built(json.loads(text))


def _built(spec: Spec) -> Made:
    functions: Made = rebuilt(spec, _KINDS, "class of functions", "hypotheses=")
    return functions


_KINDS: dict[str, Any] = {
    "Finite": lambda potential, **own: Finite(potential=potentials.from_spec(potential), **own),
    "Groups": lambda **spec: Groups.from_spec(spec),
    "Levels": lambda potential, n: Levels(n, potential=potentials.from_spec(potential)),
    "Linear": lambda potential, **own: Linear(potential=potentials.from_spec(potential), **own),
    "Numeric": lambda **spec: Numeric.from_spec(spec),
    "Oracle": lambda learner, potential, **own: Oracle(
        learners.from_spec(learner), potential=potentials.from_spec(potential), **own
    ),
    "Product": lambda n, parts: Product(*map(from_spec, parts)),
    "Trees": lambda **spec: Trees.from_spec(spec),
    "Union": lambda n, parts: Union([*map(from_spec, parts)]),
}


__all__ = ["Finite", "Groups", "Linear", "Numeric", "Oracle", "Product", "Trees", "Union", "from_spec", "unlearned"]

"""Elicitable properties: what a forecast is a forecast of."""

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from swapcal.errors import InvalidInput, StateFileError
from swapcal.properties.custom import Concave, Property
from swapcal.properties.expectile import Expectile
from swapcal.properties.mean import Mean
from swapcal.properties.moment import Moment
from swapcal.properties.probability import Log, Probability, ProperLoss, Spherical, Squared, Tsallis
from swapcal.properties.quantile import Median, Quantile
from swapcal.properties.refused import CVaR, Mode, Variance
from swapcal.protocols import Elicitable
from swapcal.typing import Spec

# --------
# Properties from plain data, as a state file holds them.

_PROPERTIES: dict[str, Callable[..., Any]] = {
    made.__name__: made for made in (Expectile, Mean, Moment, Probability, Quantile)
}
_LOSSES: dict[str, Callable[..., Any]] = {made.__name__: made for made in (Log, Spherical, Squared, Tsallis)}


def _build(spec: object, kinds: dict[str, Callable[..., Any]], what: str) -> Any:
    if not isinstance(spec, Mapping) or not isinstance(spec.get("kind"), str):
        raise StateFileError(f'a saved {what} is a mapping with its class under "kind"; got {spec!r}')
    kind, arguments = spec["kind"], {str(name): value for name, value in spec.items() if name != "kind"}
    if kind in ("Concave", "Property"):
        raise StateFileError(
            f"the saved {what} {arguments.get('name')!r} was made from a user's own functions, which a state file does "
            "not hold; make it again and pass it as property= when loading"
        )
    if kind not in kinds:
        raise StateFileError(
            f"unknown kind of {what}: {kind!r}; this version knows {', '.join(sorted(kinds))}; "
            "if it is your own, make it again and pass it as property= when loading"
        )
    if kind == "Probability":
        arguments["loss"] = _build(arguments.get("loss"), _LOSSES, "proper loss")
    try:
        return kinds[kind](**arguments)
    except (InvalidInput, TypeError) as error:
        raise StateFileError(f"the saved {what} {dict(spec)!r} is damaged: {error}") from error


def from_spec(spec: Spec) -> Elicitable:
    """The built-in property that `spec()` described; equal to the one that was saved.

    Parameters
    ----------
    spec : dict
        What `property.spec()` gave.

    Returns
    -------
    Elicitable
        Equal to the one that was described.

    Raises
    ------
    StateFileError
        For an unknown or damaged description, and for a property made from a user's own functions.

    Examples
    --------
    >>> from_spec(Quantile(0.9, high=10.0).spec())
    Quantile(0.9, high=10.0)
    """
    try:
        return _kept(json.dumps(spec))
    except (TypeError, ValueError):
        return _made(spec)


@lru_cache(maxsize=64)
def _kept(text: str) -> Elicitable:
    """Properties never change, and most forecasters of a store have the same one."""
    return _made(json.loads(text))


def _made(spec: object) -> Elicitable:
    found: Elicitable = _build(spec, _PROPERTIES, "property")
    return found


__all__ = [
    "CVaR",
    "Concave",
    "Expectile",
    "Log",
    "Mean",
    "Median",
    "Mode",
    "Moment",
    "Probability",
    "ProperLoss",
    "Property",
    "Quantile",
    "Spherical",
    "Squared",
    "Tsallis",
    "Variance",
    "from_spec",
]

"""Elicitable properties: what a forecast is a forecast of."""

import json
from functools import lru_cache
from typing import Any

from swapcal.errors import InvalidInput, StateFileError
from swapcal.properties.custom import Concave, Property
from swapcal.properties.expectile import Expectile
from swapcal.properties.mean import Mean, Moment
from swapcal.properties.probability import Log, Probability, ProperLoss, Spherical, Squared, Tsallis
from swapcal.properties.quantile import Median, Quantile
from swapcal.properties.refused import CVaR, Mode, Variance
from swapcal.protocols import Elicitable
from swapcal.state import rebuilt
from swapcal.typing import Spec

# The properties that the command, the service and files know by name; one more is a line here.
KINDS: list[type[Any]] = [Mean, Probability, Quantile, Expectile, Moment]


def names() -> str:
    """How properties are called in the command, as a list in words.

    Examples
    --------
    >>> names()
    'mean, probability, median, quantile:0.9, expectile:0.8 or moment:2'
    """
    *first, last = (name for kind in KINDS for name in kind.names)
    return f"{', '.join(first)} or {last}"


def by_name() -> dict[str, tuple[type[Any], str | None]]:
    """The class behind each name, and what the number behind the name is called, for those that take one."""
    texts = [(kind, *text.partition(":")[:2]) for kind in KINDS for text in kind.names]
    return {name: (kind, kind.argument if colon else None) for kind, name, colon in texts}


def from_text(text: str, low: float, high: float) -> Elicitable:
    """The property that `text` names, for outcomes in [low, high].

    Parameters
    ----------
    text : str
        Such as mean, median or quantile:0.9.
    low, high : float
        The label range.

    Returns
    -------
    Elicitable
        The same thing in the command, in Python and in the service.

    Examples
    --------
    >>> from_text("quantile:0.9", 0.0, 60.0), from_text("probability", 0.0, 1.0)
    (Quantile(0.9, high=60.0), Probability())
    """
    name, colon, argument = text.strip().lower().partition(":")
    refusal = f"the property must be {names()}; got {text!r}"
    try:
        value = float(argument) if colon else None
    except ValueError:
        raise InvalidInput(f"{refusal}: {argument!r} is no number") from None
    kind, number = by_name().get(name, (None, None))
    if kind is None or (value is None) != (number is None):
        raise InvalidInput(refusal)
    target: Elicitable = kind.from_text(name, value, low, high)
    return target


# --------
# Properties from plain data, as a state file holds them.


_OWN = "property="
_LOSSES: dict[str, Any] = {kind.__name__: kind for kind in (Squared, Log, Spherical, Tsallis)}


def _probability(loss: Any = None) -> Probability:
    return Probability(rebuilt(loss, _LOSSES, "proper loss", _OWN))


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
        text = json.dumps(spec)
    except (TypeError, ValueError):
        raise StateFileError(f"a saved property is plain data; got {spec!r}") from None
    return _from_json(text)


@lru_cache(maxsize=64)
def _from_json(text: str) -> Elicitable:
    """Properties never change, and most forecasters of a store have the same one."""
    kinds = {kind.__name__: kind for kind in KINDS} | {"Probability": _probability}
    target: Elicitable = rebuilt(json.loads(text), kinds, "property", _OWN)
    return target


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
    "from_text",
]

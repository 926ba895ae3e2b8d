"""What a method declares about itself; benchmarks print it beside what they measure."""

import importlib
import inspect
import pkgutil
from dataclasses import dataclass

from swapcal.errors import InvalidInput
from swapcal.paper.method import PublishedMethod
from swapcal.protocols import Elicitable, Hypotheses


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A method's own statement.

    Parameters
    ----------
    name : str
        Short name for tables.
    reference : str
        Authors, year, title, and the algorithm or theorem.
    assumes : str
        What it needs to know or to be true.
    properties : tuple of str
        Kinds of property it covers: "mean", "quantile", "expectile" or "elicitable" (any with an identification
        function).
    classes : tuple of str
        Kinds of class it covers: "finite", "linear", or "none" for methods that know no groups.
    exponent : float, optional
        Of T in the bound it claims, and `error` says of which error.
    error : str
        The error that the bound is about, such as "SMCal_2" or "MCal_1".
    cost : str
        Time per round.
    reconstructed : str
        Which step had to be filled in because the source is not specific; empty if none.

    Examples
    --------
    >>> from swapcal import Finite, Mean
    >>> from swapcal.rivals import MVP
    >>> MVP.card.properties, MVP.card.classes
    (('quantile',), ('finite',))
    >>> MVP.card.check(Mean(), Finite(3))
    Traceback (most recent call last):
    ...
    swapcal.errors.InvalidInput: MVP forecasts quantile only; got Mean()
    """

    name: str
    reference: str
    assumes: str
    properties: tuple[str, ...]
    classes: tuple[str, ...]
    exponent: float | None
    error: str
    cost: str
    reconstructed: str = ""

    def check(self, property: Elicitable, hypotheses: Hypotheses) -> None:
        """Refuse by name what the method cannot do."""
        kind = kind_of(property)
        if "elicitable" not in self.properties and kind not in self.properties:
            raise InvalidInput(f"{self.name} forecasts {' or '.join(self.properties)} only; got {property!r}")
        group = {"max": "finite", "euclidean": "linear"}.get(hypotheses.dual, hypotheses.dual)
        if "none" not in self.classes and group not in self.classes:
            raise InvalidInput(f"{self.name} covers {' or '.join(self.classes)} classes only; got {hypotheses!r}")


def kind_of(property: Elicitable) -> str:
    """The word for a property in a card."""
    kind = str(property.spec().get("kind", ""))
    return {
        "Mean": "mean",
        "Probability": "mean",
        "Moment": "mean",
        "Quantile": "quantile",
        "Expectile": "expectile",
    }.get(kind, "elicitable")


# --------
# All methods of this room, for tables and tests that must leave none out.


def all_rivals() -> dict[str, type[PublishedMethod]]:
    """All methods in `swapcal.rivals`, by the name of their class: every file of the folder is looked at.

    Returns
    -------
    dict of str to type
        Each class has a `card` that says what it assumes, covers and claims.

    Examples
    --------
    >>> all_rivals()["MVP"].card.name
    'MVP'
    """
    room = importlib.import_module("swapcal.rivals")
    modules = (importlib.import_module(f"swapcal.rivals.{one.name}") for one in pkgutil.iter_modules(room.__path__))
    members = (member for module in modules for member in inspect.getmembers(module, inspect.isclass))
    return {name: kind for name, kind in sorted(members) if issubclass(kind, PublishedMethod) and hasattr(kind, "card")}

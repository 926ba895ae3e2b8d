"""What a rival is: a published method with a card, which declares what benchmarks print beside what they measure."""

import importlib
import inspect
import math
import pkgutil
from dataclasses import dataclass, field
from typing import Any, ClassVar

from swapcal import inputs
from swapcal.errors import InvalidInput
from swapcal.paper.method import Plan, PublishedMethod
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
        function). Means, unless it says more.
    classes : tuple of str
        Kinds of class it covers: "finite", "linear", or "none" for methods that know no groups. Finite ones,
        unless it says more.
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
    cost: str
    properties: tuple[str, ...] = ("mean",)
    classes: tuple[str, ...] = ("finite",)
    exponent: float | None = None
    error: str = ""
    reconstructed: str = ""

    def check(self, property: Elicitable, hypotheses: Hypotheses) -> None:
        """Refuse by name what the method cannot do."""
        kind = kind_of(property)
        if "elicitable" not in self.properties and kind not in self.properties:
            raise InvalidInput(f"{self.name} forecasts {' or '.join(self.properties)} only; got {property!r}")
        group = {"max": "finite", "euclidean": "linear"}.get(hypotheses.dual, hypotheses.dual)
        if "none" not in self.classes and group not in self.classes:
            raise InvalidInput(f"{self.name} covers {' or '.join(self.classes)} classes only; got {hypotheses!r}")


_KINDS = {"Mean": "mean", "Probability": "mean", "Moment": "mean", "Quantile": "quantile", "Expectile": "expectile"}


def kind_of(property: Elicitable) -> str:
    """The word for a property in a card."""
    return _KINDS.get(str(property.spec().get("kind", "")), "elicitable")


@dataclass(eq=False, repr=False)
class Rival(PublishedMethod):
    """The one constructor: a rival's fields are its options, and `start` checks them and makes what it learns."""

    card: ClassVar[Card]

    property: Elicitable
    hypotheses: Hypotheses
    horizon: int = field(kw_only=True)
    seed: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        self.card.check(self.property, self.hypotheses)
        super().__init__(self.property, self.hypotheses, seed=self.seed)
        self.horizon = inputs.integer(self.horizon, "horizon", 1)
        self.start()

    def start(self) -> None:
        """Check the options, and start with nothing learned."""

    def scaled(self, share: float) -> float:
        """The value that lies `share` of the way up the domain."""
        low, high = self.property.domain
        return low + (high - low) * share

    def middle_or(self, hint: float | None) -> float:
        """The hint, or the middle of the domain where there is none."""
        low, high = self.property.domain
        return 0.5 * low + 0.5 * high if hint is None else hint

    def sure(self, value: float, notes: Any = None) -> Plan:
        """One forecast, cut to the domain, without a draw."""
        low, high = self.property.domain
        return Plan((min(max(value, low), high),), (1.0,), notes)

    def target(self, y: float) -> float:
        """The outcome of a mean in widths of the domain: V(p, y) = p - u there, so u is -V at the lower end."""
        return -inputs.identified(self.property, self.property.domain[0], y)


@dataclass(eq=False, repr=False, kw_only=True)
class BinnedRival(Rival):
    """A rival with a number of bins; None stands for its own default, a power of T."""

    # T^(1/4), where the theory leaves it open.
    exponent_of_bins: ClassVar[float] = 0.25
    fewest_bins: ClassVar[int] = 1

    bins: int = None  # type: ignore[assignment]

    def start(self) -> None:
        """Settle the number of bins."""
        self.bins = self.default_bins() if self.bins is None else inputs.integer(self.bins, "bins", 1)

    def default_bins(self) -> int:
        """The power of T, rounded up."""
        return max(self.fewest_bins, math.ceil(math.pow(self.horizon, self.exponent_of_bins) - 1e-9))


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
    package = importlib.import_module("swapcal.rivals")
    modules = (importlib.import_module(f"swapcal.rivals.{one.name}") for one in pkgutil.iter_modules(package.__path__))
    members = (member for module in modules for member in inspect.getmembers(module, inspect.isclass))
    return {name: kind for name, kind in sorted(members) if issubclass(kind, PublishedMethod) and hasattr(kind, "card")}

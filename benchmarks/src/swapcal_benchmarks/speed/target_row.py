"""One line of the benchmark: what was measured, what was asked for, and whether it was met."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from swapcal.errors import InvalidInput

__all__ = ["TargetRow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetRow:
    """A measurement beside its target.

    Parameters
    ----------
    section : str
        The section it belongs to.
    what, against : str
        What was measured, and what it was divided by.
    measured : float, optional
        The ratio, or an amount in `unit`; None where it could not be measured, and the note says why.
    target : float, optional
        What was asked for; None for numbers that are shown and not judged.
    least : bool
        Whether the target is the least that is asked for, and not the most.
    low, high : float, optional
        Quartiles of the repeats.
    unit : str
        Of `measured` and `target`; "x" for a ratio.
    note : str
        What a reader should know.

    Examples
    --------
    >>> row = TargetRow(section="run", what="Linear(10)", against="the bare loop", measured=1.6, target=2.0)
    >>> row.met, row.asked
    (True, 'at most 2 x')
    >>> TargetRow(section="peers", what="an event", against="river", measured=5.6, target=10.0, least=True).met
    False
    """

    section: str
    what: str
    against: str = ""
    measured: float | None = None
    target: float | None = None
    least: bool = False
    low: float | None = None
    high: float | None = None
    unit: str = "x"
    note: str = ""

    def __post_init__(self) -> None:
        for name in ("measured", "target", "low", "high"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise InvalidInput(f"{name} of the row {self.what!r} is {value!r}; it must be finite")

    @property
    def met(self) -> bool | None:
        """Whether the target was met; None where there is none, or nothing was measured."""
        if self.measured is None or self.target is None:
            return None
        return self.measured >= self.target if self.least else self.measured <= self.target

    @property
    def asked(self) -> str:
        """The target in words."""
        if self.target is None:
            return ""
        return f"at {'least' if self.least else 'most'} {self.target:g} {self.unit}"

    @property
    def shown(self) -> str:
        """The measurement in words: three digits for a ratio, whole numbers for amounts."""
        if self.measured is None:
            return "not measured"
        return f"{self.measured:.2f} x" if self.unit == "x" else f"{self.measured:,.0f} {self.unit}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data, with the verdict."""
        return asdict(self) | {"met": self.met}

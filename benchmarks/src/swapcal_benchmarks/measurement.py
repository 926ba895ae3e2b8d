"""One row of a benchmark: what is claimed, what was measured, and whether the two agree."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from swapcal.errors import InvalidInput

__all__ = ["Measurement"]

_NUMBERS = ("paper_value", "measured", "low", "high")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A claim of a paper beside its measurement.

    Parameters
    ----------
    claim : str
        Where it stands and what it says, in a few words.
    setting : str
        On what it was measured.
    paper : str
        The paper's value, as it would be read aloud.
    paper_value : float
        The same as a number.
    measured : float
        What came out.
    low, high : float, optional
        Interval around `measured` at confidence 95 %, from repetitions with other seeds; None where nothing is random
        or where the worst of many runs is shown.
    holds : bool, optional
        Whether the measurement is compatible with the claim, by the rule that the note or the claim states; None where
        there is nothing to decide.
    note : str
        What a reader should know.

    Examples
    --------
    >>> row = Measurement(claim="rate", setting="mean", paper="1/3", paper_value=1 / 3, measured=0.3, holds=True)
    >>> Measurement.from_dict(row.to_dict()) == row
    True
    """

    claim: str
    setting: str
    paper: str
    paper_value: float
    measured: float
    low: float | None = None
    high: float | None = None
    holds: bool | None = None
    note: str = ""

    def __post_init__(self) -> None:
        for name in _NUMBERS:
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise InvalidInput(
                    f"{name} of the row {self.claim!r}, {self.setting!r} is {value!r}; it must be finite"
                )

    def to_dict(self) -> dict[str, Any]:
        """Plain data, in the order of the parameters."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Measurement":
        """Rebuild what `to_dict` gave."""
        names = {field.name for field in fields(cls)}
        if set(data) != names:
            raise InvalidInput(f"a row has the fields {', '.join(sorted(names))}; got {', '.join(sorted(data))}")
        return cls(**data)

"""Two kinds of event, cases and outcomes, in the order in which they happened; and what came of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from swapcal.errors import InvalidInput
from swapcal.typing import Float64Array

__all__ = ["FORECAST", "STATUSES", "Events", "PlayedEvents"]

Id = str | int

STATUSES = ("forecast", "same forecast", "learned", "repeated", "unknown", "expired", "invalid")
FORECAST, SAME, LEARNED, REPEATED, UNKNOWN, EXPIRED, INVALID = range(len(STATUSES))


@dataclass(frozen=True, slots=True)
class Events:
    """Cases, whose forecast is wanted, and outcomes of earlier cases, told apart by `y`; in the order to be played.

    Parameters
    ----------
    ids : sequence of str or int
        Of the case, for a case and for its outcome.
    y : array
        The outcome; NaN for a case.
    X : any
        The contexts of the cases, in their order and without the outcomes between them, as `Forecaster.run` takes them.
    hints : array, optional
        The hints of the cases; NaN for none.
    features : array, optional
        Extra features of the learning hint, one row for each case.
    """

    ids: Sequence[Id]
    y: Any
    X: Any
    hints: Any = None
    features: Any = None

    def __post_init__(self) -> None:
        y = np.asarray(self.y, dtype=np.float64)
        if y.ndim != 1 or len(self.ids) != len(y):
            raise InvalidInput(f"events need one id and one y each (NaN for a case); got {len(self.ids)} and {y.shape}")
        object.__setattr__(self, "y", y)


@dataclass(frozen=True, slots=True)
class PlayedEvents:
    """What came of each event.

    forecast: of a case, its forecast; of an outcome, the forecast that its case had had; NaN where there is none.
    codes: positions in `STATUSES`:

    - "forecast", "same forecast": of a case that is new, or that came before (the forecast is then the one it had);
    - "learned", "repeated": of an outcome that is the first of its case, or a further one, which changes nothing;
    - "unknown", "expired": of an outcome whose case never came, is forgotten, or has waited for too long;
    - "invalid": of an outcome that is not in the property's range; its case still waits.
    """

    forecast: Float64Array
    codes: npt.NDArray[np.uint8]

    @property
    def status(self) -> list[str]:
        """The words for `codes`."""
        return [STATUSES[code] for code in self.codes.tolist()]

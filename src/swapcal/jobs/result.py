"""What an audit or a run has found: plain data, from which the terminal, the page and the JSON file are made."""

import builtins
from dataclasses import dataclass
from typing import Any, Literal

from swapcal.audit.paired import Paired
from swapcal.audit.summary import ColumnSummary
from swapcal.roles import Elicitable
from swapcal.typing import Float64Array
from swapcal.words.property_words import NamedProperty
from swapcal.words.verdicts import Verdict

__all__ = ["History", "Result"]


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """Error as the stream went by: rounds so far, swap error before and after, and the guarantee for that many rounds.

    `before` or `guarantee` is None where there is none.
    """

    rounds: Float64Array
    before: Float64Array | None
    after: Float64Array | None
    guarantee: Float64Array | None


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """Everything that a page shows. `before` is None for a run without a hint, `after` for an audit.

    property: what was forecast; of a property of the user's own, a stored result keeps the name only. loss_name: how
    people call its loss. groups: names in the order of the columns of `ColumnSummary.bias`. n_rounds: rows with an
    outcome; n_missing: rows without; n_clipped: labels outside the range that were moved to its end. settings and
    versions: what it takes to reproduce the result. discovery: subgroups that nobody listed, if they were searched for.
    """

    kind: Literal["audit", "run"]
    source: str
    property: Elicitable | NamedProperty
    loss_name: str
    low: float
    high: float
    groups: tuple[str, ...]
    n_rounds: int
    n_missing: int
    n_clipped: int
    before: ColumnSummary | None
    after: ColumnSummary | None
    history: History | None
    paired: Paired | None
    verdict: Verdict
    guarantee: float | None
    settings: dict[str, Any]
    versions: dict[str, str]
    discovery: dict[str, Any] | None = None

    @builtins.property  # `property` is a field here
    def r(self) -> float:
        """The power of the errors, 2 unless the settings say otherwise."""
        value = self.settings.get("r", 2.0)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else 2.0

    @builtins.property
    def columns(self) -> dict[str, ColumnSummary]:
        """The columns of forecasts there are, by "before" and "after"."""
        given = {"before": self.before, "after": self.after}
        return {which: column for which, column in given.items() if column is not None}

"""What an audit or a run has found: plain data, from which the terminal, the page and the JSON file are made."""

from dataclasses import dataclass
from typing import Any, Literal

from swapcal.typing import Float64Array

__all__ = ["CellRow", "Curve", "History", "Paired", "Result", "Side", "Words"]


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A reliability curve: where forecasts were (mean forecast of a bin), and what came (the property of its labels).

    All arrays have one entry for each bin that was forecast at all; [low, high] holds for all bins together.
    """

    forecast: Float64Array
    outcome: Float64Array
    low: Float64Array
    high: Float64Array
    count: Float64Array


@dataclass(frozen=True, slots=True)
class CellRow:
    """One cell: forecasts in the bin around `value`, for the group `name`; `mean` is the mean identification.

    Positive: forecasts were too high. [low, high] allows for the choice among all cells.
    """

    value: float
    name: str
    count: int
    mean: float
    low: float
    high: float
    contribution: float


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One column of forecasts: the model's own, or those of swapcal.

    curves: by group, "all" first. bias: mean identification, shape (bins, groups), NaN where nothing was forecast;
    counts: rounds of each such cell. edges: the borders of those bins, in the property's units. histogram: rounds per
    bin.

    chance_mean, chance_high: swap error that perfectly calibrated forecasts would have by chance, on average and in 95
    streams of 100 at most. typical: root mean square of V. constant_loss: loss of the best constant forecast;
    ideal_loss: loss of these forecasts after the best change of each value into another one; slope: of those others
    against the forecasts. n_cells, n_biased, n_material: cells in use, those whose interval leaves out 0, and those
    where it does by more than is negligible. weight: sum of the weights, the T of the totals.
    """

    label: str
    swap_error: float
    group_error: float
    overall_error: float
    loss: float
    curves: dict[str, Curve]
    edges: Float64Array
    bias: Float64Array
    counts: Float64Array
    histogram: Float64Array
    worst: tuple[CellRow, ...]
    witness: str
    chance_mean: float | None = None
    chance_high: float | None = None
    typical: float | None = None
    constant_loss: float | None = None
    ideal_loss: float | None = None
    slope: float | None = None
    n_cells: int | None = None
    n_biased: int | None = None
    n_material: int | None = None
    weight: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """Error as the stream went by: rounds so far, swap error before and after, and the guarantee for that many rounds.

    `before` or `guarantee` is None where there is none.
    """

    rounds: Float64Array
    before: Float64Array | None
    after: Float64Array | None
    guarantee: Float64Array | None


@dataclass(frozen=True, slots=True)
class Paired:
    """Mean loss before and after, and the interval of the mean difference (after - before) from paired blocks."""

    before: float
    after: float
    difference: float
    low: float
    high: float
    confidence: float


@dataclass(frozen=True, slots=True)
class Words:
    """The verdict: `kind`, one headline, and sentences that say why and what to do."""

    kind: Literal["fine", "recalibrate", "refit"]
    headline: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """Everything that a page shows. `before` is None for a run without a hint, `after` for an audit.

    property: its name and parameters as `repr` prints them; loss_name: how people call its loss. groups: names in the
    order of the columns of `Side.bias`. n_rounds: rows with an outcome; n_missing: rows without; n_clipped: labels
    outside the range that were moved to its end. settings and versions: what it takes to reproduce the result.
    """

    kind: Literal["audit", "run"]
    source: str
    property: str
    loss_name: str
    low: float
    high: float
    groups: tuple[str, ...]
    n_rounds: int
    n_missing: int
    n_clipped: int
    before: Side | None
    after: Side | None
    history: History | None
    paired: Paired | None
    words: Words
    guarantee: float | None
    settings: dict[str, Any]
    versions: dict[str, str]

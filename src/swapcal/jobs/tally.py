"""The tally: everything that a verdict needs to know of one column of forecasts, in bounded memory."""

from collections.abc import Sequence

import numpy as np

from swapcal.audit import totals
from swapcal.audit.sums import Table
from swapcal.engine.grid import Grid
from swapcal.errors import InvalidInput
from swapcal.hypotheses import Finite, Linear
from swapcal.jobs.cells import PER_CELL, PER_PLACE, CellSums, columns
from swapcal.jobs.outcomes import OutcomeBins
from swapcal.jobs.places import Between, Distinct, Midpoints, Places
from swapcal.jobs.result import Side
from swapcal.jobs.sides import make_side
from swapcal.roles import Elicitable, Rows
from swapcal.typing import Float64Array, IntArray

__all__ = ["Tally"]

MOST_CURVES = 400
"""Groups whose outcomes are kept in histograms; 16 kB each. The most frequent ones at the first look come first."""


class Tally:
    """Sums over one column of forecasts: totals, cells, reliability curves, losses. Add batches, ask at any time.

    Parameters
    ----------
    property : Elicitable
        What was forecast.
    n : int
        Largest number of functions: positions in the rows.
    label : str
        Whose forecasts they are: "the model", "swapcal".
    bins : int or array
        Bins of the pictures: that many equal ones of the property's domain, or their edges.
    audit_bins : int, array or None
        How forecasts become the cells of the totals. None: each distinct value by itself, the paper's definition. A
        whole number: rounded to the mid-points of that many equal bins of the domain, and judged there. Edges: those
        without an edge between them share a cell, and each is judged at its own value.
    n_linear : int
        The last `n_linear` of the `n` positions are coordinates of a linear class; the others are functions of their
        own. The supremum is over both.

    Notes
    -----
    Memory: 32 bytes per place and function that came up, and 16 kB for each of the first 400 functions, whatever the
    number of rounds. A batch costs four counts over the entries of its rows.

    Examples
    --------
    >>> from swapcal.properties import Mean
    >>> tally = Tally(Mean(), 2, label="the model")
    >>> rows = Finite(2).rows([[1, 0], [1, 1], [1, 1], [1, 0]], 4)
    >>> losses = tally.add(np.array([1.0, 0, 0, 1]), np.full(4, 0.5), rows)
    >>> tally.overall_error(), tally.group_error(), tally.swap_error(r=1.0)
    (0.0, 0.25, 1.0)
    """

    def __init__(
        self,
        property: Elicitable,
        n: int,
        *,
        label: str,
        bins: int | Float64Array = 20,
        audit_bins: int | Float64Array | None = None,
        n_linear: int = 0,
    ) -> None:
        self.property = property
        self.n = n
        self.label = label
        self.n_linear = n_linear
        low, high = property.domain
        self.edges = np.linspace(low, high, bins + 1) if isinstance(bins, int) else np.asarray(bins, dtype=np.float64)
        self.places: Places
        if audit_bins is None:
            self.places = Distinct()
        elif isinstance(audit_bins, int):
            self.places = Midpoints(Grid(low, high, audit_bins))
        else:
            self.places = Between(audit_bins)
        self.cells = CellSums()
        self.outcomes: OutcomeBins | None = None
        self.tracks = np.full(0, -1, dtype=np.int64)
        n_bins = len(self.edges) - 1
        self.histograms = np.zeros((n_bins, 0, 0))
        self.by_place = np.zeros((0, 0))
        self.forecasts = np.zeros(n_bins)
        self._sums = np.zeros(4)

    @property
    def n_rounds(self) -> int:
        """Rounds so far."""
        return int(self._sums[0])

    @property
    def weight(self) -> float:
        """Sum of their weights."""
        return float(self._sums[1])

    @property
    def loss(self) -> float:
        """Mean loss so far, at the forecasts themselves; NaN before the first round."""
        return float(self._sums[2] / self._sums[1]) if self._sums[1] > 0 else float("nan")

    @property
    def typical(self) -> float:
        """Root mean square of V: how far off a single round usually is, in the units of a cell's mean."""
        return float(np.sqrt(self._sums[3] / self._sums[1])) if self._sums[1] > 0 else float("nan")

    def add(self, y: Float64Array, p: Float64Array, rows: Rows, weights: Float64Array | None = None) -> Float64Array:
        """Add rounds, and return their losses.

        Parameters
        ----------
        y, p : array
            Outcomes and forecasts, in the property's range and domain, none missing.
        rows : Rows
            The functions' values, one row a round.
        weights : array, optional
            In [0, 1].
        """
        if len(y) != len(p) or len(rows.indptr) != len(y) + 1:
            n_rows = len(rows.indptr) - 1
            raise InvalidInput(f"{len(y)} outcomes, {len(p)} forecasts and {n_rows} rows must be equally many")
        if not (np.isfinite(y).all() and np.isfinite(p).all()):
            raise InvalidInput("outcomes and forecasts must be finite to be tallied; leave rows out that miss either")
        losses = np.asarray(self.property.loss(p, y), dtype=np.float64)
        if not len(y):
            return losses
        places, judged_at = self.places.of(p)
        v = np.asarray(self.property.identification(judged_at, y), dtype=np.float64)
        lengths = np.diff(rows.indptr)
        entry_places = np.repeat(places, lengths)
        self.cells.add(places, self.places.n, judged_at, v, rows, entry_places, weights)
        self._count_outcomes(y, p, places, rows, lengths, weights)
        # Sums and no dot products, whose last digit depends on the number of threads.
        total = losses.sum() if weights is None else (losses * weights).sum()
        squares = (v * v).sum() if weights is None else (weights * v * v).sum()
        self._sums += np.array([len(y), len(y) if weights is None else weights.sum(), total, squares])
        return losses

    def overall_error(self, r: float = 2.0) -> float:
        """Cal_r: every place, over all its rounds."""
        return totals.calibration(self.table(0)[1], r)

    def group_error(self, r: float = 2.0) -> float:
        """MCal_r: the worst single function; over a linear class at r other than 2, the worst that was found."""
        return max(totals.multicalibration_bounds(part, functions, r).lower for part, functions in self.parts())

    def swap_error(self, r: float = 2.0) -> float:
        """SMCal_r: every place against its own worst function."""
        return float(np.sum(self.contributions(r)))

    def contributions(self, r: float = 2.0) -> Float64Array:
        """What each place adds to SMCal_r, in increasing order of the places' forecasts."""
        shares = [totals.swap_contributions(part, functions, r) for part, functions in self.parts()]
        largest: Float64Array = np.max(shares, axis=0)
        return largest

    def side(self, names: Sequence[str], r: float = 2.0) -> Side:
        """All that is shown of these forecasts.

        `names` are those of the functions in use, "all" first; with a linear class, those of its coordinates come last.
        """
        return make_side(self, tuple(names), r)

    def table(self, n_functions: int | None = None) -> tuple[IntArray, Table]:
        """Places in use and their sums, for the first functions or those that came up."""
        return self.cells.table(self.places.n, self.cells.width if n_functions is None else n_functions)

    def parts(self) -> list[tuple[Table, Finite | Linear]]:
        """The sums of the functions that stand by themselves, and those of the linear class."""
        n_own = self.n - self.n_linear
        table = self.table(self.n if self.n_linear else None)[1]
        parts: list[tuple[Table, Finite | Linear]] = []
        if n_own and table.xv.shape[1]:
            parts.append((columns(table, slice(n_own)), Finite(n_own)))
        if self.n_linear:
            parts.append((columns(table, slice(n_own, self.n)), Linear(self.n_linear)))
        return parts or [(columns(self.table(1)[1], slice(1)), Finite(1))]

    def _count_outcomes(
        self, y: Float64Array, p: Float64Array, places: IntArray, rows: Rows, lengths: IntArray, w: Float64Array | None
    ) -> None:
        """Add to the histograms: per place over all rounds, and per bin of the pictures and function."""
        if self.outcomes is None:
            self.outcomes = OutcomeBins(y, self.property.low, self.property.high)
        labels = self.outcomes.add(y)
        n_labels = self.outcomes.n
        self.by_place = _grown(self.by_place, (self.places.n, n_labels))
        keys = places * n_labels + labels
        self.by_place += np.bincount(keys, weights=w, minlength=self.by_place.size).reshape(self.by_place.shape)
        bins = np.searchsorted(self.edges[1:-1], p, side="right")
        self.forecasts += np.bincount(bins, weights=w, minlength=len(self.forecasts))
        self._follow()
        n_tracks = int(self.tracks.max(initial=-1)) + 1
        self.histograms = _grown(self.histograms, (len(self.forecasts), n_tracks, n_labels))
        track = self.tracks[rows.indices]
        keys = np.repeat(bins * (n_tracks * n_labels) + labels, lengths)
        keys += track * n_labels
        ones = w is None and bool((rows.values == 1.0).all())
        terms = None if ones else np.abs(rows.values) * (1.0 if w is None else np.repeat(w, lengths))
        if n_tracks < len(self.tracks):
            followed = track >= 0
            keys, terms = keys[followed], None if terms is None else terms[followed]
        shape = self.histograms.shape
        self.histograms += np.bincount(keys, weights=terms, minlength=self.histograms.size).reshape(shape)

    def _follow(self) -> None:
        """Functions that have come up get histograms while there is room, the most frequent first."""
        width = self.cells.width
        if width > len(self.tracks):
            self.tracks = np.concatenate([self.tracks, np.full(width - len(self.tracks), -1, dtype=np.int64)])
        n_tracks = int(self.tracks.max(initial=-1)) + 1
        if n_tracks >= MOST_CURVES:
            return
        rounds = self.cells.arrays["active"].sum(axis=0)
        rounds[self.tracks >= 0] = 0.0
        rounds[max(self.n - self.n_linear, 0) :] = 0.0
        new = np.argsort(-rounds, kind="stable")[: MOST_CURVES - n_tracks]
        new = np.sort(new[rounds[new] > 0])
        self.tracks[new] = n_tracks + np.arange(len(new))

    def arrays(self) -> dict[str, Float64Array]:
        """The whole state, as arrays that may be saved; `restore` goes on from it."""
        outcomes = {} if self.outcomes is None else {f"outcomes_{k}": v for k, v in self.outcomes.arrays().items()}
        return {
            **self.cells.arrays,
            **outcomes,
            "edges": self.edges,
            "places": self.places.state(),
            "tracks": self.tracks.astype(np.float64),
            "histograms": self.histograms,
            "by_place": self.by_place,
            "forecasts": self.forecasts,
            "sums": self._sums,
        }

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Take the state of `arrays` over; the settings must be those of the tally that had it."""
        self.cells.restore({name: arrays[name] for name in (*PER_PLACE, *PER_CELL)})
        kept = {name.removeprefix("outcomes_"): each for name, each in arrays.items() if name.startswith("outcomes_")}
        self.outcomes = OutcomeBins.restored(kept) if kept else None
        self.edges = arrays["edges"].copy()
        if isinstance(self.places, Distinct):
            self.places = Distinct(arrays["places"])
        elif isinstance(self.places, Between):
            self.places = Between(arrays["places"])
        self.tracks = arrays["tracks"].astype(np.int64)
        self.histograms, self.by_place = arrays["histograms"].copy(), arrays["by_place"].copy()
        self.forecasts, self._sums = arrays["forecasts"].copy(), arrays["sums"].copy()


def _grown(array: Float64Array, shape: tuple[int, ...]) -> Float64Array:
    """`array` with zeros behind it up to `shape`."""
    if array.shape == shape:
        return array
    larger = np.zeros(tuple(max(have, want) for have, want in zip(array.shape, shape, strict=True)))
    larger[tuple(slice(size) for size in array.shape)] = array
    return larger

"""The audit: mergeable sums over a stream of forecasts, and every question that they answer."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from swapcal import inputs, properties
from swapcal.audits import sums
from swapcal.audits.cells import Assumption, Cells, Witness, cell_radii, ends_of, find_witness, make_cells
from swapcal.audits.linear import Bounds
from swapcal.audits.sums import PER_CELL, PER_VALUE, Constant, Positions, Sums, SumTable, width
from swapcal.engine.values import Grid
from swapcal.errors import InvalidInput, StateFileError
from swapcal.hypotheses import Finite, from_spec
from swapcal.hypotheses.groups import for_whom
from swapcal.inputs import integer
from swapcal.properties import Mean
from swapcal.protocols import Elicitable, Hypotheses, Row, Rows
from swapcal.sparse import checked_rows
from swapcal.state import Packed, Saved, Shape, Stateful
from swapcal.typing import Float64Array, IntArray, Spec

_POOLED = ("rounds", "count", "v", "vv", "xv", "active", "weight", "xvxv")

# --------
# Specs of properties and functions that were saved, and the parts that somebody brings along.


def same(one: Spec | None, two: Spec | None) -> bool:
    """Whether two specs are the same data; what JSON does to tuples makes no difference."""
    return _text(one) == _text(two)


def same_class(one: Spec, two: Spec, *, learned: bool = True) -> bool:
    """Whether two specs name the same functions; how a forecaster weighs them, and their names, make no difference.

    Without `learned`, groups may have found different values so far, and have room for more or fewer of them.
    """
    left_out = ("potential", "names") if learned else ("potential", "names", "vocabulary", "n", "limit")

    def functions(spec: Spec) -> Spec:
        return {key: value for key, value in spec.items() if key not in left_out}

    return isinstance(one, Mapping) and isinstance(two, Mapping) and same(functions(one), functions(two))


def property_of(spec: Spec, own: Elicitable | None) -> Elicitable:
    """The property that was saved: made from its spec, or the caller's own, which must be that one."""
    if own is not None and not same(spec, own.spec()):
        raise StateFileError(f"this was made for the property {spec!r}; got {dict(own.spec())!r}")
    return properties.from_spec(spec) if own is None else own


def functions_of(spec: Spec, own: Hypotheses | None) -> Hypotheses:
    """The functions that were saved: made from their spec, or the caller's own, with all that was learned since."""
    if own is None:
        return Constant() if spec["kind"] == "constant" else from_spec(spec)
    if not same_class(spec, own.spec()) and hasattr(own, "resumed"):
        own = own.resumed(spec)
    if not same_class(spec, own.spec()):
        raise StateFileError(f"this was made with the functions {spec!r}; got {dict(own.spec())!r}")
    return own


def plain_bins(bins: Any) -> Any:
    """A number of bins, or a list of their edges."""
    return bins.tolist() if isinstance(bins, np.ndarray) else bins


def _text(spec: Spec | None) -> str:
    return json.dumps(dict(spec) if isinstance(spec, Mapping) else spec, sort_keys=True, default=repr)


# --------
# Rounds in: labels, forecasts and contexts, checked together, become identification values and sparse rows.

# That are taken from a file, where a few bytes ask for all of them.
_MOST_BINS = 1 << 20


class RoundReader:
    """Checks rounds and takes V. It changes nothing, so whoever calls it can fail without a trace.

    `functions` is None until the first context tells how many columns there are. `edges` are those of the bins that
    forecasts share, if there are such bins; a whole number of `bins` rounds forecasts to their mid-points instead.
    """

    def __init__(self, property: Elicitable, functions: Hypotheses | None, bins: Any = None) -> None:
        if not all(hasattr(property, name) for name in ("identification", "invalid_labels", "domain", "spec")):
            raise InvalidInput(f"property must be an elicitable property such as Mean(); got {property!r}")
        if functions is not None and not all(
            hasattr(functions, name) for name in ("n", "row", "rows", "supremum", "dual")
        ):
            raise InvalidInput(f"hypotheses must be a class of functions such as Finite(n), or None; got {functions!r}")
        self.property = property
        self.functions = functions
        several = isinstance(bins, list | tuple | np.ndarray)
        self.edges = _checked_edges(bins) if several else None
        self.grid = None if bins is None or several else Grid(*property.domain, bins)

    @property
    def n_bins(self) -> int | None:
        """How many bins there are, or None where every distinct forecast is one."""
        return len(self.edges) - 1 if self.edges is not None else None if self.grid is None else self.grid.n

    def one(self, y: Any, p: Any, x: Any, weight: Any = None) -> tuple[Hypotheses, float, float, Row, float]:
        """One round, ready to be added: its class, the (rounded) forecast, V, the context, and the weight."""
        label, forecast = inputs.real(y, "y"), inputs.real(p, "p")
        inputs.labels(self.property, np.array([label]))
        inputs.forecasts(self.property, np.array([forecast]))
        functions = self._functions(x, many=False)
        w = 1.0 if weight is None else inputs.real(weight, "weight")
        if not 0.0 <= w <= 1.0:
            raise InvalidInput(f"a weight must be in [0, 1]; got {w!r}: divide all weights by the largest")
        row = functions.row(x)
        value = forecast if self.grid is None else self.grid.midpoint(self.grid.bin(forecast))
        return functions, value, float(self.property.identification(value, label)), row, w

    def many(
        self, y: Any, p: Any, x: Any, weights: Any = None
    ) -> tuple[Hypotheses, Float64Array, Float64Array, Rows | Float64Array, Float64Array | None]:
        """Many rounds; contexts as sparse rows, or dense as they came, which saves a copy of them."""
        labels, forecasts = inputs.vector(y, "y"), inputs.vector(p, "p")
        if len(labels) != len(forecasts):
            raise InvalidInput(
                f"y and p must have one entry per round; got {len(labels)} labels, {len(forecasts)} forecasts"
            )
        inputs.labels(self.property, labels)
        inputs.forecasts(self.property, forecasts)
        w = None if weights is None else inputs.vector(weights, "weights", len(labels))
        if w is not None and len(w) and not 0.0 <= w.min() <= w.max() <= 1.0:
            raise InvalidInput(
                f"weights must be in [0, 1]; they go from {w.min():g} to {w.max():g}: divide them by the largest"
            )
        functions, contexts = self._contexts(x, len(labels))
        values = forecasts if self.grid is None else self.grid.round(forecasts)
        v = np.asarray(self.property.identification(values, labels), dtype=np.float64)
        return functions, values, v, contexts, w

    def _contexts(self, x: Any, n_rounds: int) -> tuple[Hypotheses, Rows | Float64Array]:
        """The functions and their values; the array itself where it holds the values of a finite class."""
        if isinstance(x, Rows) and self.functions is not None:
            return self.functions, checked_rows(x, self.functions.n, n_rounds)
        dense = type(x) is np.ndarray and x.dtype == np.float64 and x.ndim == 2 and len(x) == n_rounds and x.size > 0
        if dense and (self.functions is None or type(self.functions) is Finite):
            finite = Finite(x.shape[1]) if self.functions is None else self.functions
            # A NaN is its array's minimum, and in no range.
            if x.shape[1] == finite.n and x.min() >= -1.0 and x.max() <= 1.0:
                return finite, x
        # Whatever is wrong with a dense array is said here too.
        functions = self._functions(x, many=True)
        return functions, functions.rows(x, n_rounds)

    def _functions(self, x: Any, *, many: bool) -> Hypotheses:
        if self.functions is None:
            return Constant() if x is None else Finite(width(x, many=many))
        if x is None and not isinstance(self.functions, Constant):
            raise InvalidInput(
                f"this audit looks at {self.functions.n} functions of x, so x must be given in every round"
            )
        return self.functions


def _checked_edges(bins: Any) -> Float64Array:
    edges = inputs.vector(bins, "bins")
    if len(edges) < 2 or not (np.diff(edges) > 0).all():
        raise InvalidInput(
            f"bins must be a whole number, or 2 or more edges that increase; got {inputs.short_repr(bins)}"
        )
    return edges.copy()


MEAN = Mean()


class Audit(Stateful):
    r"""How far forecasts are from calibrated for every function of a class: totals, cells with intervals, a witness.

    With S_p(f) the sum of f(x_t) V(p, y_t) over the n_p rounds in which p was forecast,

    .. math:: \mathrm{Cal}_r = \sum_p n_p |S_p(1)/n_p|^r, \quad
              \mathrm{MCal}_r = \sup_f \sum_p n_p |S_p(f)/n_p|^r, \quad
              \mathrm{SMCal}_r = \sum_p n_p \sup_f |S_p(f)/n_p|^r.

    These are totals over the *distinct* values of p, not divided by the number of rounds. Without `bins`, a model whose
    forecasts are continuous puts nearly every round in a cell of its own and looks as bad as can be: give it `bins`.

    Parameters
    ----------
    property : Elicitable
        What was forecast; gives V. Default `Mean()`.
    hypotheses : Hypotheses, optional
        The class of functions. None: the columns of x, in [-1, 1]; or the constant 1, if no x is given either.
    n : int, optional
        Number of columns when `hypotheses` is None; else read off the first x.
    bins : int or sequence of float, optional
        A whole number: round forecasts to the mid-points of this many equal bins of the property's domain, and take V
        there. Edges, increasing: forecasts without an edge between them share a cell, and V is taken at each forecast
        itself, so nothing is rounded; the cell's value is their mean.
    names : sequence of str, optional
        Names of the n functions (of the n coordinates, for the linear class), for tables and sentences. Default: those
        of the hypotheses, if it has `names`.

    Notes
    -----
    All state is sums, so audits of parts of a stream add up: `a + b`, or `a.merge(b)` in place. Memory is O(distinct
    forecasts times n) and does not grow with the rounds; a round costs O(entries of x that are not 0). `swapcal audit`
    and `swapcal run` keep their numbers in this class, so what they print is what it gives.

    With weights w in [0, 1], a round counts as w rounds in n_p, and V as w V; numbers of rounds stay numbers of rounds.

    Examples
    --------
    >>> audit = Audit(n=2, names=["all", "new customers"])
    >>> for y, new in [(1, 0), (0, 1), (0, 1), (1, 0)]:
    ...     audit.update(y, 0.5, [1, new])
    >>> audit.calibration(), audit.multicalibration(), audit.swap_multicalibration(r=1)
    (0.0, 0.25, 1.0)
    >>> audit.worst(1)[0].name, audit.worst(1)[0].mean
    ('new customers', 0.5)

    References
    ----------
    Efficient Swap Multicalibration of Elicitable Properties, introduction: the definitions of ell_r-multicalibration
    and ell_r-swap multicalibration. Intervals: see `cells`.
    """

    kind = "audit"

    def __init__(
        self,
        property: Elicitable = MEAN,
        hypotheses: Hypotheses | str | Sequence[Any] | None = None,
        *,
        n: int | None = None,
        bins: int | Sequence[float] | Float64Array | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        self.property = property
        self.hypotheses = functions = for_whom(hypotheses)
        self.n = n
        self.names = None if names is None else _checked_names(names)
        self._reader = RoundReader(property, functions, bins)
        self.bins = bins if self._reader.edges is None else self._reader.edges
        if n is not None and functions is not None and n != functions.n:
            raise InvalidInput(f"n must be left out, or be the {functions.n} of the hypotheses; got {n!r}")
        if functions is None and (n is not None or self.names is not None):
            functions = Finite(len(self.names or ()) if n is None else n)
        if functions is not None and self.names is not None and len(self.names) != functions.n:
            raise InvalidInput(f"names must name all {functions.n} functions; got {len(self.names)}")
        self._reader.functions = functions
        self._sums = None if functions is None else Sums(functions.n, edges=self._reader.edges)

    def update(self, y: float, p: float, x: Any = None, *, weight: float | None = None) -> None:
        """Add one round: label `y`, forecast `p`, context `x` (a vector, or one sparse row), weight in [0, 1].

        Parameters
        ----------
        y : float
            Label.
        p : float
            Forecast.
        x : array_like, Row or None
            Context; a mapping for `Groups`.
        weight : float, optional
            In [0, 1]; 1 where not given.
        """
        functions, value, v, row, w = self._reader.one(y, p, x, weight)
        self._begun(functions).add(value, v, row, w)

    def update_many(self, y: Any, p: Any, x: Any = None, *, weights: Any = None) -> None:
        """Add many rounds: arrays of equal length; `x` dense or sparse, `weights` in [0, 1]. No rounds change nothing.

        `x` may be `Rows`, as `rows` of the class of functions returns them; they are taken as they are.

        Parameters
        ----------
        y, p : array_like, shape (rounds,)
            Labels and forecasts.
        x : array_like, Rows or None
            Contexts.
        weights : array_like, optional
            In [0, 1].
        """
        functions, values, v, contexts, w = self._reader.many(y, p, x, weights)
        if len(v):
            self._begun(functions).add_many(values, v, contexts, w)

    def _count(self, p: Float64Array, v: Float64Array, rows: Rows | None, weights: Float64Array | None = None) -> None:
        """Add many rounds whose V is known: outcomes and forecasts may be outside the range of the property."""
        functions = self._functions()
        self._begun(functions).add_many(p, v, functions.rows(None, len(p)) if rows is None else rows, weights)

    def merge(self, other: "Audit") -> None:
        """Add the rounds of another audit with the same settings.

        Groups are matched by name, whatever values each part has found: `hypotheses` is then a new object that knows
        all of them, with room for all.

        Parameters
        ----------
        other : Audit
            Stays as it is.
        """
        self._merge(other)

    def _merge(self, other: "Audit") -> Positions:
        """As `merge`; where the forecast values and the functions of the other are here."""
        self._check_mergeable(other)
        theirs, columns = other._reader.functions, None
        if theirs is None or other._sums is None:
            return Positions(np.zeros(0, dtype=np.int64), None)
        sums = self._begun(theirs)
        mine: Any = self._reader.functions
        if mine is not theirs and hasattr(mine, "united"):
            united, columns = mine.united(theirs)
            if united.names != mine.names:
                self._reader.functions = united
                self.hypotheses = united if self.hypotheses is not None else None
                sums.n = united.n
        return Positions(sums.merge(other._sums, columns), columns)

    def emptied(self) -> "Audit":
        """An audit with the same settings, without rounds.

        Returns
        -------
        Audit
            Over the same functions.
        """
        functions = self._reader.functions
        n = self.n if functions is None else None
        return Audit(self.property, functions, n=n, bins=self.bins, names=self.names)

    def __add__(self, other: "Audit") -> "Audit":
        if not isinstance(other, Audit):
            return NotImplemented
        result = Audit(self.property, self.hypotheses, n=self.n, bins=self.bins, names=self.names)
        result.merge(self)
        result.merge(other)
        return result

    @property
    def n_rounds(self) -> int:
        """Rounds so far."""
        return self._current().n_rounds

    @property
    def values(self) -> Float64Array:
        """The distinct forecasts so far, in increasing order; mean forecasts, where bins have edges."""
        return self.table().value

    @property
    def n_bins(self) -> int | None:
        """How many bins of forecasts there can be, if `bins` says so."""
        return self._reader.n_bins

    @property
    def function_names(self) -> tuple[str, ...]:
        """Names of the functions, of groups those that have come up so far."""
        functions = self._functions()
        if isinstance(functions, Constant):
            return ("all rounds",)
        names = self.names or getattr(functions, "names", None) or ()
        n = max(len(names), self._current().n_used) if names else functions.n
        return (*names, *(f"function {j}" for j in range(len(names), n)))

    def table(self) -> SumTable:
        """The sums themselves, a row for each forecast value and a column for each of `function_names`."""
        return self._current().table(len(self.function_names))

    def rounded(self, p: Float64Array) -> Float64Array:
        """Forecasts as they are judged: at the mid-points of their bins, if `bins` is a number.

        Parameters
        ----------
        p : array
            Forecasts.

        Returns
        -------
        array
            Of the same shape.
        """
        return p if self._reader.grid is None else self._reader.grid.round(p)

    def slots(self, p: Float64Array) -> IntArray:
        """Where forecasts that have been added are counted: the numbers in `table().slot`.

        Parameters
        ----------
        p : array
            Forecasts.

        Returns
        -------
        array of int
            One number for each.
        """
        return self._current().slots(self.rounded(p))

    def calibration(self, r: float = 2.0) -> float:
        """Cal_r: sum over p of n_p |mean of V|^r.

        Parameters
        ----------
        r : float
            Power of the error, 1 or more.

        Returns
        -------
        float
            0 is perfect.
        """
        return sums.calibration(self.table(), sums.check_power(r))

    def multicalibration(self, r: float = 2.0) -> float:
        """MCal_r: the error of the worst single function.

        Exact for finite classes, and for the linear class at r = 2. For the linear class at another r it is the error
        of the worst direction that was found: attained, so never an overstatement; `multicalibration_bounds` brackets
        it.

        Parameters
        ----------
        r : float
            Power of the error, 1 or more.

        Returns
        -------
        float
            0 is perfect.
        """
        return self.multicalibration_bounds(r).lower

    def multicalibration_bounds(self, r: float = 2.0) -> Bounds:
        """(lower, upper) for MCal_r: `lower` is attained by a function, `upper` is proved; see `linear_bounds`.

        Parameters
        ----------
        r : float
            Power of the error, 1 or more.

        Returns
        -------
        Bounds
            A pair of numbers.
        """
        return sums.multicalibration_bounds(self.table(), self._functions(), sums.check_power(r))

    def swap_multicalibration(self, r: float = 2.0) -> float:
        """SMCal_r: each forecast value against its own worst function.

        Parameters
        ----------
        r : float
            Power of the error, 1 or more.

        Returns
        -------
        float
            0 is perfect.
        """
        return float(np.sum(self.contributions(r)))

    def contributions(self, r: float = 2.0) -> Float64Array:
        """What each of `values` adds to SMCal_r.

        Parameters
        ----------
        r : float
            Power of the error, 1 or more.

        Returns
        -------
        array, shape (len(values),)
            They add up to `swap_multicalibration(r)`.
        """
        return sums.swap_contributions(self.table(), self._functions(), sums.check_power(r))

    def cells(self, confidence: float = 0.95, *, r: float = 2.0, rounds: Assumption = "adaptive") -> Cells:
        """One row per forecast value and function (coordinate, for the linear class), largest contribution first.

        Parameters
        ----------
        confidence : float
            Probability with which *all* intervals hold together.
        r : float
            Power of the `contribution` column.
        rounds : {"adaptive", "independent"}
            "adaptive" holds for every stream: forecasts, contexts and cells may depend on all earlier labels, labels
            on each other, and one may look after every round. What is covered is the mean over the cell's rounds of
            E[f(x_t) V(p_t, y_t) | everything before y_t]. `bins` make it narrower, as the number of cells is then known
            in advance. "independent" (Maurer and Pontil 2009) needs labels that are independent given all contexts and
            forecasts, so a fixed model and not an online forecaster, and one look at the data. It is up to 3 times
            wider in cells with less than a thousand rounds, and up to 30 % narrower in cells with many thousands.

        Returns
        -------
        Cells
            A table that prints itself, and can be sliced and iterated.

        Notes
        -----
        For the linear class the intervals of the coordinates hold together, so along any direction theta the deviation
        is at most sum_j |theta_j| times the radius of coordinate j; `witness` uses that.
        """
        return self._cells(self.table(), self.function_names, r, confidence, rounds)

    def reliability(self, confidence: float = 0.95, *, r: float = 2.0, rounds: Assumption = "adaptive") -> Cells:
        """One row per forecast value over all its rounds, F = {1}: the reliability diagram, in numbers.

        Parameters
        ----------
        confidence : float
            Probability with which all intervals hold together.
        r : float
            Power of the error, 1 or more.
        rounds : {"adaptive", "independent"}
            Whether forecasts and contexts may react to earlier outcomes.

        Returns
        -------
        Cells
            A table; see `cells`.
        """
        table = self.table()
        xv, active, weight, xvxv = (each[:, None] for each in (table.v, table.rounds, table.count, table.vv))
        everyone = replace(table, xv=xv, active=active, weight=weight, xvxv=xvxv)
        return self._cells(everyone, ("all rounds",), r, confidence, rounds)

    def groups(self, confidence: float = 0.95, *, r: float = 2.0, rounds: Assumption = "adaptive") -> Cells:
        """One row per function over all its rounds, whatever was forecast: the bias that each group met.

        With "adaptive", the intervals hold at every moment, for every stream: they are those of the mean bias that was
        to be expected before the outcomes. Where nothing changes, that is also the bias that will be met next.

        Parameters
        ----------
        confidence : float
            Probability with which all intervals hold together.
        r : float
            Power of the `contribution` column.
        rounds : {"adaptive", "independent"}
            Whether forecasts and contexts may react to earlier outcomes.

        Returns
        -------
        Cells
            A table; see `cells`. Its `value` is the mean forecast of all rounds.

        Examples
        --------
        >>> audit = Audit(hypotheses=Finite(1))
        >>> audit.update_many(np.tile([0.0, 1.0], 500), np.tile([0.6, 0.8], 500), np.ones((1000, 1)))
        >>> [(round(group.mean, 3), round(group.low, 3), round(group.high, 3)) for group in audit.groups()]
        [(0.2, 0.143, 0.257)]
        """
        table = self.table()
        pooled = {name: getattr(table, name).sum(axis=0, keepdims=True) for name in _POOLED}
        mean = table.count @ table.value / np.where(pooled["count"] > 0.0, pooled["count"], 1.0)
        everything = replace(table, value=mean, slot=table.slot[:1], **pooled)
        ends = ends_of(everything, cell_radii(everything, confidence, rounds, None))
        return make_cells(everything, ends, self.function_names, sums.check_power(r), confidence, rounds)

    def _cells(self, table: SumTable, names: tuple[str, ...], r: float, confidence: float, rounds: Assumption) -> Cells:
        power, radii = sums.check_power(r), cell_radii(table, confidence, rounds, self._n_possible(table))
        return make_cells(table, ends_of(table, radii), names, power, confidence, rounds)

    def worst(self, k: int = 10, *, confidence: float = 0.95, r: float = 2.0, rounds: Assumption = "adaptive") -> Cells:
        """Return the `k` cells with the largest contributions; their intervals allow for the choice among all cells.

        Parameters
        ----------
        k : int
            How many.
        confidence : float
            Probability with which all intervals hold together.
        r : float
            Power of the error, 1 or more.
        rounds : {"adaptive", "independent"}
            Whether forecasts and contexts may react to earlier outcomes.

        Returns
        -------
        Cells
            A table; see `cells`.
        """
        return self.cells(confidence, r=r, rounds=rounds)[: integer(k, "k", 1)]

    def witness(self, *, r: float = 2.0, confidence: float = 0.95, rounds: Assumption = "adaptive") -> Witness:
        """Find the function and forecast value behind the largest term of SMCal_r; `str` makes a sentence of it.

        Parameters
        ----------
        r : float
            Power of the error, 1 or more.
        confidence : float
            Probability with which all intervals hold together.
        rounds : {"adaptive", "independent"}
            Whether forecasts and contexts may react to earlier outcomes.

        Returns
        -------
        Witness
            The cell in numbers and words.
        """
        table = self.table()
        if not len(table.value):
            raise InvalidInput("an audit without rounds has no witness; add rounds with update or update_many first")
        power, radii = sums.check_power(r), cell_radii(table, confidence, rounds, self._n_possible(table))
        return find_witness(
            table, radii, self._functions(), self.function_names, power, confidence, property=self.property
        )

    def arrays(self) -> dict[str, Float64Array]:
        """The whole state, as arrays that may be saved; `restore` goes on from it."""
        return self._current().arrays()

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Go on from `arrays`, in an audit with the same settings that knows its class of functions.

        Parameters
        ----------
        arrays : dict of arrays
            What `arrays` returned.
        """
        self._begun(self._functions()).restore(arrays)

    def to_state(self) -> Saved:
        """What it is made of: distinct forecasts in increasing order, and no column behind the last that is used."""
        table, functions = self._current(), self._reader.functions
        arrays, n_used = table.arrays(), table.n_used
        order = np.argsort(arrays["value"]) if "value" in arrays else slice(None)
        plain = {
            "property": dict(self.property.spec()),
            "hypotheses": None if functions is None else dict(functions.spec()),
            "bins": plain_bins(self.bins),
            "names": None if self.names is None else list(self.names),
            "size": [table.n_slots, n_used],
        }
        return Saved(
            plain, {name: each[order] if each.ndim == 1 else each[order, :n_used] for name, each in arrays.items()}
        )

    @classmethod
    def from_state(
        cls, packed: Packed, *, property: Elicitable | None = None, hypotheses: Hypotheses | None = None
    ) -> "Audit":
        """Make it again; see `from_bytes`."""
        plain, spec = packed.plain, packed.plain["hypotheses"]
        bins, (n_values, n_used) = plain["bins"], plain["size"]
        edges = isinstance(bins, list)
        if not (edges or bins is None or bins <= _MOST_BINS):
            raise StateFileError(f"this saved state is damaged: it has {bins} bins")
        shapes = {name: Shape((n_values,)) for name in (*PER_VALUE, "forecast" if edges else "value")}
        arrays = packed.arrays({**shapes, **{name: Shape((n_values, n_used)) for name in PER_CELL}})
        functions = hypotheses if spec is None else functions_of(spec, hypotheses)
        rebuilt = hypotheses is None and not hasattr(functions, "snapshot")
        audit = cls(
            property_of(plain["property"], property), None if rebuilt else functions, bins=bins, names=plain["names"]
        )
        if functions is not None:
            names = plain["names"] or functions.n * [""]
            if len(names) != functions.n:
                raise StateFileError(f"this saved state is damaged: {len(names)} functions have names")
            audit._reader.functions, audit._sums = functions, Sums(functions.n, edges=audit._reader.edges)
            audit._sums.restore(arrays)
        return audit

    def __repr__(self) -> str:
        if self._reader.functions is None:
            return f"Audit({self.property!r}, n_rounds=0)"
        table = self.table()
        sizes = f"n={self._functions().n}, n_rounds={self.n_rounds}, n_values={len(table.value)}"
        known = self._functions().dual in ("max", "euclidean")
        names = ("calibration", *(("multicalibration",) if known else ()), "swap_multicalibration")
        errors = ", ".join(f"{name}={getattr(self, name)():.4g}" for name in names)
        return f"Audit({self.property!r}, {sizes}, {errors})"

    def _begun(self, functions: Hypotheses) -> Sums:
        """Return the sums; the first round decides what the functions are."""
        if self._sums is None:
            self._reader.functions = functions
            self._sums = Sums(functions.n, edges=self._reader.edges)
        return self._sums

    def _current(self) -> Sums:
        """The sums, or empty ones before the first round."""
        return Sums(1, edges=self._reader.edges) if self._sums is None else self._sums

    def _functions(self) -> Hypotheses:
        return Constant() if self._reader.functions is None else self._reader.functions

    def _n_possible(self, table: SumTable) -> int | None:
        """How many cells there can be, which is known in advance only if there are bins."""
        return None if self.n_bins is None else self.n_bins * table.xv.shape[1]

    def _check_mergeable(self, other: "Audit") -> None:
        if not isinstance(other, Audit):
            raise InvalidInput(f"only an Audit can be merged into an Audit; got {type(other).__name__}")
        mine, theirs = self._reader.functions, other._reader.functions
        for what, equal in (
            ("property", same(self.property.spec(), other.property.spec())),
            (
                "hypotheses",
                mine is None
                or theirs is None
                or mine is theirs
                or same_class(mine.spec(), theirs.spec(), learned=not hasattr(mine, "united")),
            ),
            ("bins", plain_bins(self.bins) == plain_bins(other.bins)),
            ("names", self.names == other.names),
        ):
            if not equal:
                raise InvalidInput(f"audits can be merged only if they have the same settings; theirs differ in {what}")


def _checked_names(names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str) or not all(isinstance(name, str) for name in names) or not len(names):
        raise InvalidInput(f"names must be a sequence of one string per function; got {names!r}")
    return tuple(names)

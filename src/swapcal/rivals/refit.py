"""What practitioners do instead: refit a recalibration of the model on the outcomes that are known by now.

One definition for every run and every table: the last 20,000 known rows are fitted again whenever the known rows have
grown by a tenth, and by 500 at least. Forecasts before the first fit are the model's own.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from swapcal.audits.scores import isotonic
from swapcal.engine.schedule import Schedule
from swapcal.errors import InvalidInput
from swapcal.properties import Quantile
from swapcal.protocols import Elicitable, Rows
from swapcal.rivals.card import kind_of
from swapcal.sparse import taken
from swapcal.typing import Float64Array, IntArray

WINDOW, LEAST, GROWTH = 20_000, 500, 0.1

# Hints are kept this far from 0 and 1, where log-odds are infinite.
_EDGE = 1e-6
# Of the weights but the intercept, as scikit-learn's C=1 and alpha=1.
_RIDGE = 1.0
_STEPS, _CLOSE = 50, 1e-8


class Known(NamedTuple):
    """A recorded stream: forecasts and outcomes (NaN where missing), groups, weights, and who is in which segment."""

    p: Float64Array
    y: Float64Array
    groups: Rows
    weights: Float64Array
    segments: IntArray | None = None

    def taken(self, rows: IntArray) -> "Known":
        """Some of the rows."""
        segments = None if self.segments is None else self.segments[rows]
        return Known(self.p[rows], self.y[rows], taken(self.groups, rows), self.weights[rows], segments)


Fit = Callable[[Known], Float64Array]


def refitted(property: Elicitable, stream: Known, late: Schedule, method: str = "refit") -> Float64Array:
    """Forecasts of a stream by a recalibration that is refitted, each from outcomes that are known before its row.

    Parameters
    ----------
    property : Elicitable
        A probability or mean, or a quantile.
    stream : Known
        The rows. With segments, each has a fit of its own.
    late : Schedule
        When outcomes are known.
    method : {"refit", "isotonic", "platt"}
        "refit": logistic regression for outcomes 0 and 1, linear for other means, quantile regression for quantiles, on
        the forecast (its log-odds for a probability) and an indicator of each group. "isotonic": a nondecreasing
        function of the forecast. "platt": as "refit", without groups.

    Notes
    -----
    The sum of losses plus half of the squared weights is minimized, the intercept free; forecasts and outcomes of a
    mean are in widths of its range. These are LogisticRegression(C=1.0) and Ridge(alpha=1.0) of scikit-learn. The loss
    of a quantile is smoothed; its pinball loss is that of QuantileRegressor within 0.5 %.
    Time: a few sums over the last 20,000 rows at each fit, of which there are 10 for the first 5,000 rows, and then 24
    whenever their number grows tenfold. Memory: k squared numbers for k groups.

    Examples
    --------
    >>> from swapcal.engine.schedule import nothing_late
    >>> from swapcal.properties import Probability
    >>> n = 4000
    >>> groups = Rows(np.arange(n + 1), np.zeros(n, dtype=np.int64), np.ones(n))
    >>> stream = Known(np.full(n, 0.5), np.arange(n) % 4 // 3.0, groups, np.ones(n))
    >>> refitted(Probability(), stream, nothing_late(n))[[0, 499, 500, 3999]].round(3)
    array([0.5 , 0.5 , 0.25, 0.25])
    """
    fit = _fit_of(property, method)
    order, known = learned(late, ~np.isnan(stream.y) & ~np.isnan(stream.p) & (stream.weights > 0.0))
    result = stream.p.copy()
    for start, stop, used in stretches(known, len(stream.p)):
        if used:
            window = stream.taken(order[max(0, used - WINDOW) : used])
            some = stream.taken(np.arange(start, stop))
            result[start:stop] = np.where(np.isnan(some.p), np.nan, _segmented(fit, window, some))
    return result


def learned(late: Schedule, wanted: npt.NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
    """The rows in the order in which their outcomes become known, and the first row that knows each."""
    arrive = np.arange(1, len(wanted) + 1)
    arrive[late.late != 0] = len(wanted) + 1
    arrive[late.codes[: late.ends[-1]]] = np.repeat(np.arange(len(wanted)), np.diff(late.ends))
    order = np.argsort(arrive, kind="stable")
    order = order[(arrive[order] < len(wanted)) & wanted[order]]
    return order, arrive[order]


def stretches(known: IntArray, n: int) -> Iterator[tuple[int, int, int]]:
    """First row, first row behind, and number of known outcomes of each stretch between two fits.

    Examples
    --------
    >>> list(stretches(np.arange(1, 1600), 1600))
    [(0, 500, 0), (500, 1000, 500), (1000, 1500, 1000), (1500, 1600, 1500)]
    """
    start, used = 0, 0
    while start < n:
        due = used + max(LEAST, int(GROWTH * used))
        stop = int(known[due - 1]) if due <= len(known) else n
        if stop > start:
            yield start, stop, used
        start, used = stop, int(np.searchsorted(known, stop, side="right"))


def _segmented(fit: Callable[[Known, int], Fit], window: Known, rows: Known) -> Float64Array:
    """The fit to the window at these rows; of each segment by itself, and the model's own where none is known."""
    if window.segments is None or rows.segments is None:
        return fit(window, 0)(rows)
    result = rows.p.copy()
    for segment in np.unique(rows.segments).tolist():
        own, at = np.flatnonzero(window.segments == segment), np.flatnonzero(rows.segments == segment)
        if len(own):
            result[at] = fit(window.taken(own), segment)(rows.taken(at))
    return result


def _fit_of(property: Elicitable, method: str) -> Callable[[Known, int], Fit]:
    """What fits the method to a window of a segment, from where its last fit ended."""
    kind, (low, high) = kind_of(property), property.domain
    if kind not in ("mean", "quantile") or (method == "isotonic" and kind == "quantile"):
        raise InvalidInput(f"{method} is for means{'' if method == 'isotonic' else ' and quantiles'}; got {property!r}")
    if method == "isotonic":
        return _isotonic
    level = property.level if isinstance(property, Quantile) else None

    models: dict[int, Regression] = {}

    def fit(window: Known, segment: int) -> Fit:
        events = level is None and bool(((window.y == 0.0) | (window.y == 1.0)).all()) and (low, high) == (0.0, 1.0)
        if segment not in models or models[segment].kind != ("logistic" if events else "linear"):
            models[segment] = Regression("logistic" if events else "linear", level, grouped=method == "refit")
        model = models[segment]
        model.fit(window._replace(p=(window.p - low) / (high - low), y=(window.y - low) / (high - low)))
        return lambda rows: low + (high - low) * model.predict(rows._replace(p=(rows.p - low) / (high - low)))

    return fit


def _isotonic(window: Known, _: int) -> Fit:
    knots, places = np.unique(window.p, return_inverse=True)
    weights: Float64Array = np.bincount(places, window.weights).astype(np.float64)
    heights = isotonic(np.bincount(places, window.weights * window.y) / weights, weights)
    return lambda rows: np.interp(rows.p, knots, heights)


class Regression:
    """Regression on the forecast and an indicator of each group, by Newton's steps over sparse sums.

    Parameters
    ----------
    kind : {"logistic", "linear"}
        The loss: of log-odds, or squared.
    level : float, optional
        Of a quantile, whose pinball loss is then the loss, smoothed over a narrow width.
    grouped : bool
        Whether there are groups, or the forecast alone.

    Examples
    --------
    >>> n = 600
    >>> rows = Rows(np.arange(n + 1), np.arange(n) % 3, np.ones(n))
    >>> data = Known(np.full(n, 0.5), np.arange(n) % 3 / 10.0, rows, np.ones(n))
    >>> model = Regression("linear", None)
    >>> model.fit(data)
    >>> model.predict(data)[:3].round(2)
    array([0. , 0.1, 0.2])
    """

    def __init__(self, kind: str, level: float | None, *, grouped: bool = True) -> None:
        self.kind, self.level, self.grouped = kind, level, grouped
        self.weights = self.ends = np.array([0.0, 1.0])
        # By group, of all fits so far: where the next one begins.
        self.known: dict[int, float] = {}
        self.fitted = False
        self.places = np.zeros(0, dtype=np.int64)

    def fit(self, data: Known) -> None:
        """The weights that minimize the loss of these rows."""
        groups = data.groups.indices if self.grouped else np.zeros(0, dtype=np.int64)
        self.places = np.unique(groups)
        columns = self._columns(data)
        d = 2 + len(self.places)
        penalty = np.full(d, _RIDGE)
        penalty[0] = 0.0
        beta = np.array([*self.ends, *(self.known.get(j, 0.0) for j in self.places.tolist())])
        total = float(data.weights.sum())
        for width in self._widths(data, columns, beta):
            value = self._value(columns, beta, data, penalty, width)
            for _ in range(_STEPS):
                slope, curvature = self._slopes(self._linear(columns, beta), data.y, width)
                gradient = self._summed(columns, data.weights * slope, d) + penalty * beta
                hessian = self._gram(columns, data.weights * curvature, d) + np.diag(penalty + 1e-9 * total)
                step = np.linalg.solve(hessian, gradient)
                gain, size = float(gradient @ step), 1.0
                while (found := self._value(columns, beta - size * step, data, penalty, width)) > value and size > 1e-6:
                    size *= 0.5
                if found > value:
                    break
                beta, value = beta - size * step, found
                if gain < _CLOSE * total:
                    break
        self.weights, self.ends, self.fitted = beta, beta[:2], True
        self.known |= dict(zip(self.places.tolist(), beta[2:].tolist(), strict=True))

    def predict(self, data: Known) -> Float64Array:
        """The mean, probability or quantile of each row; a group that the fit has not seen counts for nothing."""
        z = self._linear(self._columns(data), self.weights)
        return _sigmoid(z) if self.kind == "logistic" and self.level is None else z

    def _columns(self, data: Known) -> tuple[Float64Array, IntArray]:
        """The number of each row, and the places of its groups, padded with one that has no weight."""
        z = data.p
        if self.kind == "logistic":
            inside = np.clip(z, _EDGE, 1.0 - _EDGE)
            z = np.log(inside / (1.0 - inside))
        lengths = np.diff(data.groups.indptr)
        most, nowhere = int(lengths.max(initial=0)) if len(self.places) else 0, len(self.places)
        where = np.full((len(z), most), nowhere, dtype=np.int64)
        if most:
            found = np.searchsorted(self.places, data.groups.indices)
            seen = self.places[np.minimum(found, nowhere - 1)] == data.groups.indices
            rows = np.repeat(np.arange(len(z)), lengths)
            where[rows, np.arange(len(rows)) - data.groups.indptr[rows]] = np.where(seen, found, nowhere)
        return z, where

    def _linear(self, columns: tuple[Float64Array, IntArray], beta: Float64Array) -> Float64Array:
        z, where = columns
        padded = np.append(beta[2:], 0.0)
        linear: Float64Array = beta[0] + beta[1] * np.nan_to_num(z) + padded[where].sum(axis=1)
        return linear

    def _summed(self, columns: tuple[Float64Array, IntArray], values: Float64Array, d: int) -> Float64Array:
        """The columns, transposed, times the values."""
        z, where = columns
        spread = np.repeat(values, where.shape[1])
        return np.concatenate(
            [[values.sum(), z @ values], np.bincount(where.ravel(), spread, minlength=d - 1)[: d - 2]]
        )

    def _gram(self, columns: tuple[Float64Array, IntArray], values: Float64Array, d: int) -> Float64Array:
        """The columns, transposed, times the values times the columns."""
        (z, where), n = columns, d - 1
        pairs = np.zeros(n * n)
        for a in range(where.shape[1]):
            for b in range(a, where.shape[1]):
                pairs += np.bincount(where[:, a] * n + where[:, b], values, minlength=n * n) * (1.0 if a < b else 0.5)
        square = pairs.reshape(n, n)
        gram = np.zeros((d, d))
        gram[2:, 2:] = (square + square.T)[: d - 2, : d - 2]
        gram[0], gram[1] = self._summed(columns, values, d), self._summed(columns, values * z, d)
        gram[:, 0], gram[:, 1] = gram[0], gram[1]
        return gram

    def _widths(self, data: Known, columns: tuple[Float64Array, IntArray], beta: Float64Array) -> tuple[float, ...]:
        """Over how much a pinball loss is smoothed, one width after the other."""
        if self.level is None:
            return (0.0,)
        spread = float(np.abs(data.y - self._linear(columns, beta)).mean()) or 1.0
        return (0.04 * spread,) if self.fitted else (spread, 0.2 * spread, 0.04 * spread)

    def _value(
        self,
        columns: tuple[Float64Array, IntArray],
        beta: Float64Array,
        data: Known,
        penalty: Float64Array,
        width: float,
    ) -> float:
        z = self._linear(columns, beta)
        if self.level is not None:
            losses = width * np.logaddexp(0.0, (z - data.y) / width) - self.level * (z - data.y)
        elif self.kind == "logistic":
            losses = np.logaddexp(0.0, z) - data.y * z
        else:
            losses = 0.5 * (z - data.y) ** 2
        return float(data.weights @ losses + 0.5 * penalty @ beta**2)

    def _slopes(self, z: Float64Array, y: Float64Array, width: float) -> tuple[Float64Array, Float64Array]:
        """First and second derivatives of the losses."""
        if self.level is not None:
            p = _sigmoid((z - y) / width)
            return p - self.level, np.maximum(p * (1.0 - p) / width, 1e-3 / width)
        if self.kind == "logistic":
            p = _sigmoid(z)
            return p - y, p * (1.0 - p)
        return z - y, np.ones(len(z))


def _sigmoid(z: Float64Array) -> Float64Array:
    half: Float64Array = np.tanh(0.5 * z)
    return 0.5 + 0.5 * half

"""Whatever loss somebody has who acts on probabilities: regret against a class of functions, and what bounds it."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from swapcal import inputs
from swapcal.errors import InvalidInput
from swapcal.hypotheses import Finite
from swapcal.protocols import Hypotheses, Rows
from swapcal.sparse import how_many, taken
from swapcal.tables.sources import package
from swapcal.text.numbers import counted, number
from swapcal.typing import Float64Array, IntArray

# --------
# Losses l(a, y) of actions a in [-1, 1], convex in the action; of soft outcomes they are (1 - y) l(a, 0) + y l(a, 1).

Bivariate = Callable[[Any, float], Any]

_GRID = np.linspace(-1.0, 1.0, 2001)
_STEP = 1e-6
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


class Loss:
    """The loss of an action in [-1, 1] when an event comes, y = 1, or does not, y = 0.

    Parameters
    ----------
    name : str
        How tables call it.
    value : callable
        `value(actions, y)` for an array of actions and y = 0.0 or 1.0; convex in the actions.
    matching : float, optional
        The c of a loss of the form G(a) - c a y up to a term in y alone, for which the bound is sharper.

    Notes
    -----
    Slopes are difference quotients; of a kink they are those of a line below the loss, so certificates hold.
    """

    def __init__(self, name: str, value: Bivariate, matching: float | None = None) -> None:
        self.name, self.value, self.matching = name, value, matching
        ends = np.array([self.at(_GRID, y) for y in (0.0, 1.0)])
        if ends.shape != (2, len(_GRID)) or not np.isfinite(ends).all():
            raise InvalidInput(f"the loss {name!r} must give a finite number for every action in [-1, 1]")
        if (np.diff(ends, 2) < -1e-9 * (1.0 + np.abs(ends).max())).any():
            raise InvalidInput(f"the loss {name!r} is not convex in the action")
        # Convex, so it is steepest at an end.
        edges = np.array([-1.0, _STEP - 1.0, 1.0 - _STEP, 1.0])
        steep = np.abs(np.diff([self.at(edges, y) for y in (0.0, 1.0)])[:, ::2]).max(axis=1) / _STEP
        self.lipschitz = float(steep.sum())
        apart = ends[1] - ends[0]
        self.spread = float(apart.max() - apart.min())

    def __repr__(self) -> str:
        return f"Loss({self.name!r})"

    def at(self, actions: Float64Array, y: float) -> Float64Array:
        """The losses of actions when the outcome is `y`, 0 or 1."""
        return np.asarray(self.value(actions, y), dtype=np.float64)

    def mean(self, actions: Float64Array, y: Float64Array) -> Float64Array:
        """The losses of actions in [-1, 1] for outcomes in [0, 1]."""
        inside = np.clip(actions, -1.0, 1.0)
        return (1.0 - y) * self.at(inside, 0.0) + y * self.at(inside, 1.0)

    def slope(self, actions: Float64Array, y: Float64Array) -> Float64Array:
        """The derivatives of `mean` in the actions."""
        high, low = np.minimum(actions + _STEP, 1.0), np.maximum(actions - _STEP, -1.0)
        return np.asarray((self.mean(high, y) - self.mean(low, y)) / (high - low))

    def best(self, p: Float64Array) -> Float64Array:
        """The best action of whoever believes each probability, by golden sections."""
        low, high = np.full(len(p), -1.0), np.ones(len(p))
        for _ in range(64):
            step = _GOLDEN * (high - low)
            left = self.mean(high - step, p) <= self.mean(low + step, p)
            low, high = np.where(left, low, high - step), np.where(left, low + step, high)
        tried = np.stack([np.full(len(p), -1.0), (low + high) / 2.0, np.ones(len(p))])
        chosen = np.argmin([self.mean(each, p) for each in tried], axis=0)
        return np.asarray(tried[chosen, np.arange(len(p))])

    def bound(self, swap_error: float, error: float, actions: Float64Array) -> float:
        """What the swap regret of the best actions is at most, by errors of power 1; the smaller of two theorems."""
        general = self.lipschitz * (swap_error + error) + self.spread * error
        if self.matching is None:
            return general
        return min(general, self.matching * (swap_error + float(np.abs(actions).max(initial=0.0)) * error))


class Cost(Loss):
    """What a false alarm and a missed event cost; the action 1 is to act, -1 not to, and between them by chance.

    Parameters
    ----------
    false_alarm, miss : float
        Both above 0.

    Examples
    --------
    >>> cost = Cost(1.0, 4.0)
    >>> cost.best(np.array([0.1, 0.3])), cost.mean(np.array([1.0, -1.0]), np.array([0.0, 1.0]))
    (array([-1.,  1.]), array([1., 4.]))
    """

    def __init__(self, false_alarm: float, miss: float) -> None:
        alarm, missed = inputs.real(false_alarm, "false_alarm"), inputs.real(miss, "miss")
        if not min(alarm, missed) > 0.0:
            raise InvalidInput(f"both costs must be above 0; got {alarm:g} and {missed:g}")
        name = f"cost {alarm:g}:{missed:g}"
        super().__init__(name, lambda a, y: _cost(a, y, alarm, missed), (alarm + missed) / 2.0)


def _cost(a: Any, y: float, alarm: float, missed: float) -> Any:
    return missed * (1.0 - a) / 2.0 if y else alarm * (1.0 + a) / 2.0


def _squared(a: Any, y: float) -> Any:
    return (a - y) * (a - y)


def _log(a: Any, y: float) -> Any:
    return np.logaddexp(0.0, a) - a * y


# "squared": the action is a forecast. "log": the action is the log-odds of one, in [-1, 1].
_NAMED: dict[str, tuple[Bivariate, float]] = {"squared": (_squared, 2.0), "log": (_log, 1.0)}


def loss_of(loss: Any) -> Loss:
    """A loss by its name, as it is, or from a function of actions and an outcome."""
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str) and loss in _NAMED:
        return Loss(loss, *_NAMED[loss])
    if callable(loss):
        return Loss(getattr(loss, "__name__", "own"), loss)
    raise InvalidInput(
        f"a loss is {', '.join(map(repr, _NAMED))}, sc.Cost(1, 4) or a function of a and y; got {loss!r}"
    )


# --------
# The best function of a class: convex programs over sums of its functions with weights in a ball.

_MOST_STEPS, _SHARP = 400, 1e-5


def _onto(weights: Float64Array, dual: str) -> Float64Array:
    """The nearest weights with a norm of at most 1: sums of sizes for a finite class, lengths for a linear one."""
    if dual == "euclidean":
        return weights / max(1.0, float(np.sqrt(weights @ weights)))
    sizes = np.abs(weights)
    if sizes.sum() <= 1.0:
        return weights
    descending = np.sort(sizes)[::-1]
    excess = (np.cumsum(descending) - 1.0) / np.arange(1, len(sizes) + 1)
    least = excess[np.flatnonzero(descending > excess)[-1]]
    return np.asarray(np.sign(weights) * np.maximum(sizes - least, 0.0))


def _summed(places: IntArray, values: Float64Array, n: int) -> Float64Array:
    """The sums of values by place."""
    return np.bincount(places, values, n).astype(np.float64)


def best_function(loss: Loss, rows: Rows, y: Float64Array, n: int, dual: str) -> tuple[float, float]:
    """The total loss of the best function that was found, and by how much the best of all can be smaller, at most.

    Accelerated projected gradients (Beck and Teboulle 2009), with the gap of Frank and Wolfe: for slopes g of a convex
    loss at weights w, no weights of the ball lose less than loss(w) + <g, w> less the dual norm of g.
    """
    of_row = rows.numbers

    def look(weights: Float64Array) -> tuple[float, Float64Array]:
        actions = _summed(of_row, rows.values * weights[rows.indices], len(y))
        slopes = loss.slope(np.clip(actions, -1.0, 1.0), y)
        gradient = _summed(rows.indices, rows.values * slopes[of_row], n)
        return float(loss.mean(actions, y).sum()), gradient

    def norm(gradient: Float64Array) -> float:
        return float(np.sqrt(gradient @ gradient) if dual == "euclidean" else np.abs(gradient).max(initial=0.0))

    weights = ahead = np.zeros(n)
    value, gradient = look(weights)
    best, least = value, value - norm(gradient)
    step, momentum = 1.0 / max(len(y), 1), 1.0
    for _ in range(_MOST_STEPS):
        if best - least <= _SHARP * max(len(y), 1):
            break
        value, gradient = look(ahead)
        least = max(least, value - float(gradient @ ahead) - norm(gradient))
        while True:
            moved = _onto(ahead - step * gradient, dual)
            change = moved - ahead
            now, slopes = look(moved)
            if now <= value + float(gradient @ change) + float(change @ change) / (2.0 * step) + 1e-12 * abs(value):
                break
            step *= 0.5
            if step < 1e-12:
                break
        best, least = min(best, now), max(least, now - float(slopes @ moved) - norm(slopes))
        following = (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum)) / 2.0
        ahead = moved + (momentum - 1.0) / following * (moved - weights)
        if float((ahead - moved) @ (moved - weights)) < 0.0 or float(gradient @ (moved - weights)) > 0.0:
            ahead, following = moved, 1.0
        # The point ahead may lie outside of the ball, where actions are cut to [-1, 1].
        ahead, weights, momentum, step = _onto(ahead, dual), moved, following, 1.5 * step
    return best, max(best - least, 0.0)


# --------
# Regret of acting on forecasts, one loss a row.


@dataclass(frozen=True, slots=True)
class LossRegret:
    """Totals of one loss.

    loss: its name. ours: of whoever acts on the forecasts. best: of the best function for all rows. best_by_value: of
    the best function for each value of the forecasts. regret, swap_regret: ours less these. at_most: what no function
    can make the swap regret larger than, from the data and the theorem; gap: how much the swap regret may be larger
    than printed, as programs are solved up to that.
    """

    loss: str
    ours: float
    best: float
    best_by_value: float
    at_most: float
    gap: float

    @property
    def regret(self) -> float:
        """Against one function for all rows."""
        return self.ours - self.best

    @property
    def swap_regret(self) -> float:
        """Against a function for each value."""
        return self.ours - self.best_by_value


_HEADS = ("loss", "ours a row", "regret", "swap regret", "at most")


@dataclass(frozen=True, slots=True)
class Omniprediction:
    """The regrets of every loss, and the errors from which their bound is: totals over `n_rows` rows.

    swap_error: SMCal_1 over the class. error: Cal_1, that of the forecasts alone. Both with V = p - y.
    """

    losses: tuple[LossRegret, ...]
    swap_error: float
    error: float
    n_rows: int
    n_values: int

    def cells(self) -> list[tuple[str, ...]]:
        """The table as texts, a line for each loss."""
        return [
            (each.loss, *map(number, (each.ours / max(self.n_rows, 1), each.regret, each.swap_regret, each.at_most)))
            for each in self.losses
        ]

    def __str__(self) -> str:
        lines = [_HEADS, *self.cells()]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        sides = (str.ljust, *(str.rjust for _ in widths[1:]))
        text = ["  ".join(side(cell, w) for side, cell, w in zip(sides, line, widths, strict=True)) for line in lines]
        return "\n".join([*text, self.note])

    @property
    def note(self) -> str:
        """What the bound is made of."""
        return (
            f"{self.n_rows:,} rows, {counted(self.n_values, 'value')}; totals; "
            f"SMCal_1 {number(self.swap_error)}, Cal_1 {number(self.error)}"
        )

    def __rich__(self) -> Any:
        """The table for a terminal."""
        table = package("rich.table", "tables in a terminal").Table(caption=self.note)
        for k, head in enumerate(_HEADS):
            table.add_column(head, justify="right" if k else "left")
        for cells in self.cells():
            table.add_row(*cells)
        return table

    @property
    def columns(self) -> dict[str, list[Any]]:
        """All numbers, by name."""
        names = ("loss", "ours", "best", "best_by_value", "regret", "swap_regret", "at_most", "gap")
        return {name: [getattr(each, name) for each in self.losses] for name in names}

    def frame(self) -> Any:
        """The numbers as a pandas frame, a row for each loss."""
        return package("pandas", "frames").DataFrame(self.columns)


def omniprediction(
    forecasts: Any, y: Any, X: Any, classes: Hypotheses | None = None, losses: Any = ("squared", "log")
) -> Omniprediction:
    r"""What acting on forecasts of events has lost, for any losses, against every function of a class.

    Whoever has a loss takes the action that would be best if the forecast were true. The class competes by its
    functions' values as actions: sums of functions with weights that add up to 1 in size for groups, trees and other
    finite classes, vectors of length 1 for a linear one.

    Theorem: for every loss that is convex in the action, with Lipschitz constants L_0 and L_1 and D the largest
    difference of l(a, 1) - l(a, 0) between two actions, swap regret, against a function for each value of the
    forecasts, is at most :math:`(L_0 + L_1)(SMCal_1 + Cal_1) + D\, Cal_1`. So forecasts with a small swap error serve
    every loss at once (docs/omniprediction.md).

    Parameters
    ----------
    forecasts : array
        Probabilities; rows with the same number are judged together, so round them if they are all different.
    y : array
        Outcomes in [0, 1].
    X : array, sparse rows, frame or list of records
        One context for each row.
    classes : Hypotheses, optional
        For whom: `Groups`, `Trees`, `Finite`, `Linear`, ... Default: all rows.
    losses : sequence, or one
        "squared" (the action is a forecast), "log" (its log-odds, in [-1, 1]), `Cost(false_alarm, miss)`, a `Loss`, or
        a function of an array of actions and y = 0.0 or 1.0.

    Returns
    -------
    Omniprediction
        Prints as a table; `frame()` has the numbers.

    Examples
    --------
    >>> import swapcal as sc
    >>> rng = np.random.default_rng(0)
    >>> x = np.column_stack([np.ones(2000), rng.random(2000) < 0.5])
    >>> y = (rng.random(2000) < 0.3 + 0.4 * x[:, 1]).astype(float)
    >>> print(sc.omniprediction(np.full(2000, 0.5), y, x, sc.Finite(2), ["squared", sc.Cost(1, 4)]))
    loss      ours a row  regret  swap regret  at most
    squared         0.25    89.9         89.9      424
    cost 1:4         0.5       0            0      531
    2,000 rows, 1 value; totals; SMCal_1 212, Cal_1 1

    References
    ----------
    Gopalan, Kalai, Reingold, Sharan and Wieder (2022), Omnipredictors. Garg, Jung, Reingold and Roth (2024), Oracle
    efficient online multicalibration and omniprediction. Gopalan, Kim and Reingold (2023), Swap agnostic learning.
    """
    p = inputs.vector(forecasts, "forecasts")
    labels, n = inputs.vector(y, "y", len(p)), len(p)
    for name, values in (("forecasts", p), ("y", labels)):
        if not ((values >= 0.0) & (values <= 1.0)).all():
            raise InvalidInput(f"{name} must lie in [0, 1]: omniprediction is about events")
    functions: Any = Finite(1) if classes is None else classes
    dual = getattr(functions, "dual", None)
    if dual not in ("max", "euclidean"):
        raise InvalidInput(f"the best function of {functions!r} cannot be found: it is known through its learner alone")
    contexts = np.ones((n, 1)) if classes is None else X
    if classes is not None and how_many(X) != n:
        raise InvalidInput(f"one context for each of {n} rows; got {how_many(X)}")
    rows = functions.rows(contexts, n)
    used, indices = np.unique(rows.indices, return_inverse=True)
    rows = Rows(rows.indptr, indices.reshape(-1), rows.values)
    values, where = np.unique(p, return_inverse=True)
    order = np.argsort(where.reshape(-1), kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(where.reshape(-1), minlength=len(values)))[:-1])
    v = p - labels
    error = float(sum(abs(v[part].sum()) for part in parts))
    swap_error = sum(_supremum(taken(rows, part), v[part], len(used), dual) for part in parts)
    asked = [loss_of(each) for each in ([losses] if isinstance(losses, str | Loss) or callable(losses) else losses)]
    found = tuple(_regret(each, p, labels, rows, parts, len(used), dual, (swap_error, error)) for each in asked)
    return Omniprediction(found, swap_error, error, n, len(values))


def _supremum(rows: Rows, v: Float64Array, n: int, dual: str) -> float:
    sums = _summed(rows.indices, rows.values * np.repeat(v, np.diff(rows.indptr)), n)
    return float(np.sqrt(sums @ sums) if dual == "euclidean" else np.abs(sums).max(initial=0.0))


def _regret(
    loss: Loss,
    p: Float64Array,
    y: Float64Array,
    rows: Rows,
    parts: Iterable[IntArray],
    n: int,
    dual: str,
    errors: tuple[float, float],
) -> LossRegret:
    actions = loss.best(p)
    best, _ = best_function(loss, rows, y, n, dual)
    cells = [best_function(loss, taken(rows, part), y[part], n, dual) for part in parts]
    by_value, gap = (float(sum(each)) for each in zip(*cells, strict=True)) if cells else (0.0, 0.0)
    # A function for all rows is one for each value, so it bounds what those lose.
    by_value = min(by_value, best)
    ours, at_most = float(loss.mean(actions, y).sum()), loss.bound(errors[0], errors[1], actions)
    return LossRegret(loss.name, ours, best, by_value, at_most, gap)

"""The monitor: anytime-valid alarms for every group of a stream, in the order of its forecasts, in bounded memory."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from swapcal import inputs
from swapcal.audits.audit import RoundReader, functions_of, property_of
from swapcal.audits.sums import Constant
from swapcal.errors import InvalidInput, StateFileError
from swapcal.hypotheses.groups import for_whom
from swapcal.lifecycle import Order
from swapcal.protocols import Elicitable, Hypotheses, Rows
from swapcal.sparse import sliced
from swapcal.state import Packed, Saved, Shape, Stateful
from swapcal.typing import Float64Array, IntArray

# --------
# What a batch of rows wins or loses for those who bet on bias: sums that add up over machines.

# Rates lambda of the bets. The best one is near the bias over the mean square of V.
RATES = 0.9 * 2.0 ** -np.arange(10)

# Sides: forecasts too high, forecasts too low.
SIGNS = np.array([1.0, -1.0])


@dataclass(frozen=True, eq=False)
class Wagers:
    """Log gains of a batch, per group, side and rate; and its rows.

    Parameters
    ----------
    gains : array, shape (groups, 2, 10)
        l = sum over rows of log(1 + s lambda f V) - log(1 + lambda eps |f|).
    rows : array, shape (groups,)
        Rows of each group.
    parts : array, shape (groups,)
        Each row counts as 1, in equal parts for all its groups: the sum over groups is at most the number of rows.
    n_rows : int
        Rows of the batch.

    Examples
    --------
    >>> one = Wagers(np.zeros((1, 2, 10)), np.ones(1), np.ones(1), 1)
    >>> (one + one).n_rows
    2
    """

    gains: Float64Array
    rows: Float64Array
    parts: Float64Array
    n_rows: int

    def __add__(self, other: "Wagers") -> "Wagers":
        """The batch of both: rows of one period that were looked at on two machines."""
        return Wagers(
            self.gains + other.gains, self.rows + other.rows, self.parts + other.parts, self.n_rows + other.n_rows
        )


def wagers_of_rows(v: Float64Array, rows: Rows, n: int, tolerance: float) -> Wagers:
    """Bets on every row.

    Notes
    -----
    If s E[V | before] <= eps, then E[1 + s lambda f V | before] <= 1 + lambda eps |f| for a group's f >= 0 (and for f
    of either sign, if the bias that is not tolerated is that of f V). So e^l has a conditional mean of at most 1:
    nobody gets rich by betting on a bias that is not there.
    """
    lengths = np.diff(rows.indptr)
    entry_row = np.repeat(np.arange(len(v)), lengths)
    gains = np.zeros((2, len(RATES), n))
    ones = bool((rows.values == 1.0).all())
    terms = v if ones else rows.values * v[entry_row]
    size = np.ones(1) if ones else np.abs(rows.values)
    for s, sign in enumerate(SIGNS):
        for j, rate in enumerate(RATES):
            log_gains = np.log1p(sign * rate * terms) - np.log1p(rate * tolerance * size)
            gains[s, j] = np.bincount(rows.indices, log_gains[entry_row] if ones else log_gains, n)
    with np.errstate(divide="ignore"):
        shares = 1.0 / lengths
    count = np.bincount(rows.indices, minlength=n).astype(np.float64)
    parts: Float64Array = np.bincount(rows.indices, shares[entry_row], n).astype(np.float64)
    return Wagers(np.moveaxis(gains, 2, 0), count, parts, len(v))


def wagers_of_means(
    total: Float64Array, size: Float64Array, rows: Float64Array, parts: Float64Array, n_rows: int, tolerance: float
) -> Wagers:
    """One bet for each group on its mean of V in a cluster, `total` / `size`, however its rows depend on each other."""
    mean = np.divide(total, size, out=np.zeros_like(total), where=size > 0)[:, None, None]
    gains = np.log1p(SIGNS[:, None] * RATES * mean) - np.log1p(RATES * tolerance)
    return Wagers(np.where(rows[:, None, None] > 0, gains, 0.0), rows, parts, n_rows)


# --------
# The wealth of those who bet on bias, in two currencies: one that keeps a promise forever, one that starts over.

# Twice the sum over k >= 1 of 1 / ((k + 1) ln^2 (k + 1)), 2.1098, rounded up.
NORM = 4.22


class Wealth:
    """Log wealth per group, side and rate, from `start` on; `levels` are those at which its mean is an alarm."""

    def __init__(self, n: int, start: float, levels: Float64Array) -> None:
        self.log_wealth = np.full((n, 2, len(RATES)), start)
        # What stakes depend on.
        self.turn = np.zeros(n)
        self.levels = levels

    def step(self, wagers: Wagers, present: IntArray) -> None:
        """Take a batch in; `present` are the groups that have rows in it."""
        stake = self.stake(wagers, present)[:, None, None]
        self.log_wealth[present] = np.logaddexp(self.log_wealth[present], stake) + wagers.gains[present]

    def stake(self, wagers: Wagers, present: IntArray) -> Float64Array:
        """The logarithm of what is staked on each of these groups, known before the batch."""
        raise NotImplementedError


class Ever(Wealth):
    r"""A false alarm ever, for any group and side, with probability at most alpha.

    .. math:: R_j \leftarrow e^{l_j} (R_j + \gamma_k), \quad R_j = 1/2 \text{ at first}, \quad
              \gamma_k = \frac{1}{4.22 (k + 1) \ln^2 (k + 1)}

    in the k-th batch that has rows of the group; an alarm where the mean of R_j over rates reaches 2 / (alpha share).

    Proof. Where there is no bias beyond the tolerance, E[e^l | before] <= 1, also if whether the group has rows in the
    batch depends on the batch: without rows, l = 0. So the mean of the R_j, plus the gammas still to come, is a
    nonnegative supermartingale; the gammas add up to less than 1/2, so that it starts at 1 or below. By Ville's
    inequality it reaches 2 / (alpha share) with probability at most alpha share / 2. There are two sides, and the
    shares of the groups add up to at most 1.

    New stakes keep coming because a bias may begin late: what was lost in the good times before does not matter then.
    """

    def __init__(self, n: int, alpha: float, n_known: int) -> None:
        late = np.arange(1.0, n - n_known + 1)
        half = 0.5 if len(late) else 1.0
        shares = np.concatenate([np.full(n_known, half / max(n_known, 1)), (1.0 - half) / (late * (late + 1.0))])
        super().__init__(n, math.log(0.5), np.log(2.0 / alpha) - np.log(shares))

    def stake(self, wagers: Wagers, present: IntArray) -> Float64Array:
        """The logarithm of gamma; `turn` counts the group's batches."""
        self.turn[present] += 1.0
        k = self.turn[present] + 1.0
        gamma: Float64Array = -np.log(NORM * k) - 2.0 * np.log(np.log(k))
        return gamma


class Every(Wealth):
    r"""False alarms at most once in N rows on average.

    .. math:: R_j \leftarrow e^{l_j} (R_j + u), \quad R_j = 0 \text{ at first}

    with u what the group's rows of earlier batches counted for, each row 1 in all for its groups; an alarm where the
    mean of R_j over rates reaches 2 N, upon which R_j = 0 again.

    Proof. Let A be the number of false alarms so far, of groups and sides without bias beyond the tolerance, W the sum
    of their mean wealths, and T the number of rows. A batch raises the conditional mean of W by at most the stakes u of
    both sides, which are known before the batch and add up to at most 2 T; an alarm lowers W by 2 N at least. So
    W + 2 N A - (stakes so far) is a supermartingale that starts at 0, and E[A] <= E[T] / N at every stopping time. In
    particular the first false alarm comes after N rows on average, or later. No union over groups is needed.

    References
    ----------
    Shin, Ramdas, Rinaldo (2024), E-detectors: a nonparametric framework for sequential change detection, NEJSDS 2(2).
    """

    def __init__(self, n: int, every: float) -> None:
        super().__init__(n, -np.inf, np.full(n, math.log(2.0 * every)))

    def stake(self, wagers: Wagers, present: IntArray) -> Float64Array:
        """The logarithm of u; `turn` is what the rows of earlier batches counted for that were not staked yet."""
        with np.errstate(divide="ignore"):
            u: Float64Array = np.log(self.turn[present])
        self.turn[present] = wagers.parts[present]
        return u


# Rows that `update_many` takes together; an alarm comes at the end of such a batch.
BATCH = 512

SIDES = ("too high", "too low")


class Alarm(NamedTuple):
    """A group whose forecasts are biased beyond the tolerance.

    Parameters
    ----------
    group : str
        Its name.
    side : str
        "too high" or "too low", of the forecasts.
    rows, group_rows : int
        Rows of the stream, and of the group, by the time of the alarm.
    log_e : float
        Logarithm of the evidence, at or above the level of an alarm.

    Examples
    --------
    >>> Alarm("sex=f", "too low", 1200, 480, 5.3).side
    'too low'
    """

    group: str
    side: str
    rows: int
    group_rows: int
    log_e: float


class Monitor(Stateful):
    """Watches forecasts of a property for bias in every group, and says which group is off as soon as that is sure.

    Parameters
    ----------
    property : Elicitable
        What is forecast; gives V.
    groups : Hypotheses, optional
        The groups, such as `Groups([...])` or `Finite(n)`. None: all rows.
    tolerance : float
        Bias to ignore, in units of the outcome; for quantiles, in shares of rows. Default 0.
    alpha : float, optional
        The probability that there is a false alarm, over the whole run. Give this or `every`.
    every : float, optional
        The number of rows in which there is one false alarm on average, at most.
    cluster : str, optional
        Column of x whose rows with the same value, one after the other, depend on each other, such as the day. Bets are
        then on the means of clusters, when they close. Where x has no names, give the ids to `update` as `clusters`.
    settle : int, optional
        Where rows have `rounds`: after so many further forecasts nobody waits for an outcome. None: always.
    first : int
        Where rows have `rounds`: the first that is judged; earlier ones are passed over.

    Notes
    -----
    A false alarm is one for a group and side that never had a bias beyond the tolerance in any row: s E[V | before] <=
    eps. "Before" is all that was judged before, so rows must come in the order of their forecasts. Outcomes that come
    in another order are not fair that way: where events are known sooner than their absence, all early outcomes are
    events, and a right model looks far too low. Give such rows the numbers of their forecasts as `rounds`: an outcome
    is then held until those of all earlier forecasts have come, were passed over by `skip`, or have had `settle`
    forecasts to come. Whether an outcome never comes may not depend on what it is. For clusters, "before" is before the
    cluster, and which rows are in a cluster may not depend on its outcomes. Proofs are in `Ever` and `Every`; nothing
    else is assumed. `alpha` reports every group and side once;
    with `every`, evidence starts over after an alarm, which comes again while the bias lasts.

    With `alpha`, groups that are known when the monitor is made share the promise evenly; where the class can grow,
    they get half of it, and the k-th new one gets 1 / (k (k + 1)) of the other half. So `fit` groups first.

    Memory: 176 bytes a group, whatever the number of rows. A row costs 20 logarithms and 20 additions per group that it
    is in; a row by itself costs some hundred microseconds, so give many at a time where speed counts.

    Examples
    --------
    >>> from swapcal.hypotheses import Finite
    >>> from swapcal.properties import Probability
    >>> rng = np.random.default_rng(0)
    >>> x = np.stack([np.ones(4000), rng.random(4000) < 0.5], axis=1)
    >>> y = rng.random(4000) < 0.3 - 0.2 * x[:, 1]
    >>> monitor = Monitor(Probability(), Finite(2, names=["all", "new"]), tolerance=0.02, alpha=0.01)
    >>> [(alarm.group, alarm.side, alarm.rows) for alarm in monitor.update_many(y, np.full(4000, 0.3), x)]
    [('new', 'too high', 512), ('all', 'too high', 1024)]
    """

    kind = "monitor"

    def __init__(
        self,
        property: Elicitable,
        groups: Hypotheses | str | Sequence[Any] | None = None,
        *,
        tolerance: float = 0.0,
        alpha: float | None = None,
        every: float | None = None,
        cluster: str | None = None,
        settle: int | None = None,
        first: int = 0,
    ) -> None:
        self.property = property
        self.groups: Hypotheses = Constant() if groups is None else for_whom(groups)
        self.tolerance, self.cluster = inputs.real(tolerance, "tolerance"), cluster
        self.alpha = None if alpha is None else inputs.real(alpha, "alpha")
        self.every = None if every is None else inputs.real(every, "every")
        # V of a continuous property is in units of the label range; that of a quantile, in shares of rows.
        self._eps = self.tolerance / (property.high - property.low if property.continuous else 1.0)
        if not 0 <= self._eps < 1:
            raise InvalidInput(f"tolerance must be 0 or more, and less than all there is; got {self.tolerance!r}")
        self._reader = RoundReader(property, self.groups, None)
        names = getattr(self.groups, "names", None)
        self._wealth = self._start(self.groups.n if names is None else len(names))
        self._rows = np.zeros(self.groups.n)
        self._n_rows = 0
        self._sounded = np.zeros((self.groups.n, 2), dtype=np.bool_)
        # Of the open cluster: sums of f V, of |f|, rows, and parts of rows.
        self._open = np.zeros((4, self.groups.n))
        self._open_rows = 0
        self._id: Any = None
        # Outcomes that wait for those of earlier forecasts, and how many forecasts there are as far as is known.
        self._order, self._first, self._issued = Order("forecast", settle, first), first, first

    @property
    def n_held(self) -> int:
        """Outcomes that wait for those of earlier forecasts."""
        return len(self._order)

    @property
    def n_rows(self) -> int:
        """Rows so far."""
        return self._n_rows + self._open_rows

    def update(
        self, y: float, p: float, x: Any = None, *, clusters: Any = None, round: int | None = None
    ) -> list[Alarm]:
        """Take in one row, and return the alarms that it gives.

        Parameters
        ----------
        y : float
            Outcome.
        p : float
            Forecast.
        x : mapping or array_like, optional
            The case.
        clusters : optional
            Id of the row's cluster, if it is not in x.
        round : int, optional
            The number of the row's forecast, where outcomes come in another order than forecasts.

        Returns
        -------
        list of Alarm
            Empty as a rule.
        """
        functions, _, v, row, _ = self._reader.one(y, p, x)
        rows = Rows(np.array([0, len(row.indices)]), row.indices, row.values)
        if round is not None:
            return self._in_turn(np.array([v]), rows, [round])
        if self.cluster is None:
            return self.step(wagers_of_rows(np.array([v]), rows, functions.n, self._eps))
        return self._clustered(np.array([v]), rows, [self._cluster_of(x) if clusters is None else clusters])

    def update_many(self, y: Any, p: Any, x: Any = None, *, clusters: Any = None, rounds: Any = None) -> list[Alarm]:
        """Take in many rows, in their order or in that of their `rounds`, and return the alarms.

        Parameters
        ----------
        y, p : array_like, shape (rows,)
            Outcomes and forecasts.
        x : optional
            The cases.
        clusters : sequence, optional
            Ids of clusters, if they are not in x.
        rounds : sequence of int, optional
            The numbers of the rows' forecasts, where outcomes come in another order than forecasts.

        Returns
        -------
        list of Alarm
            In the order in which they came.
        """
        v, rows = self._read(y, p, x)
        if rounds is not None:
            return self._in_turn(v, rows, [int(number) for number in rounds])
        if self.cluster is not None:
            return self._clustered(v, rows, list(self._cluster_of(x) if clusters is None else clusters))
        return self._judged(v, rows)

    def skip(self, round: int) -> list[Alarm]:
        """The outcome of this forecast will not come, which does not depend on what it is; alarms as of `update`."""
        self._order.skip(round)
        self._issued = max(self._issued, round + 1)
        return self._due()

    def _in_turn(self, v: Float64Array, rows: Rows, rounds: list[int]) -> list[Alarm]:
        """Hold rows until those of earlier forecasts have come, and judge those whose turn it is."""
        if self.cluster is not None:
            raise InvalidInput("a monitor with clusters takes rows in their order, without rounds")
        if len(rounds) != len(v):
            raise InvalidInput(f"rounds must name the forecast of each of {len(v)} rows; got {len(rounds)}")
        for t, number in enumerate(rounds):
            part = slice(int(rows.indptr[t]), int(rows.indptr[t + 1]))
            if number >= max(self._first, self._order.front):
                self._order.add(number, float(v[t]), ticket=(rows.indices[part], rows.values[part]))
        self._issued = max([self._issued, *(number + 1 for number in rounds)])
        return self._due()

    def _due(self) -> list[Alarm]:
        due = self._order.due(self._issued)
        if not due:
            return []
        indices, values = (np.concatenate([one.ticket[k] for one in due]) for k in (0, 1))
        indptr = np.cumsum([0, *(len(one.ticket[0]) for one in due)])
        return self._judged(np.array([one.y for one in due]), Rows(indptr, indices, values))

    def _judged(self, v: Float64Array, rows: Rows) -> list[Alarm]:
        alarms = []
        for start in range(0, len(v), BATCH):
            stop = min(start + BATCH, len(v))
            alarms += self.step(wagers_of_rows(v[start:stop], sliced(rows, start, stop), self.groups.n, self._eps))
        return alarms

    def measure(self, y: Any, p: Any, x: Any = None) -> Wagers:
        """The sums of a batch, which changes nothing here: to be added to those of other machines, and given to `step`.

        Groups must have the same positions on all machines: fit them once and copy them.

        Parameters
        ----------
        y, p : array_like, shape (rows,)
            Outcomes and forecasts.
        x : optional
            The cases.

        Returns
        -------
        Wagers
            Wagers of several machines add up.
        """
        if self.cluster is not None:
            raise InvalidInput("a monitor with clusters takes rows in their order; use update or update_many")
        return wagers_of_rows(*self._read(y, p, x), self.groups.n, self._eps)

    def _read(self, y: Any, p: Any, x: Any) -> tuple[Float64Array, Rows]:
        """V and the groups of many rows."""
        _, _, v, contexts, _ = self._reader.many(y, p, x)
        return v, contexts if isinstance(contexts, Rows) else self.groups.rows(contexts, len(v))

    def step(self, wagers: Wagers) -> list[Alarm]:
        """Take in the sums of a batch, and return the alarms; batches may not be cut by what their outcomes are.

        Parameters
        ----------
        wagers : Wagers
            Of all machines.

        Returns
        -------
        list of Alarm
            Empty as a rule.
        """
        present = np.flatnonzero(wagers.rows > 0)
        self._wealth.step(wagers, present)
        self._rows += wagers.rows
        self._n_rows += wagers.n_rows
        log_e = _log_mean(self._wealth.log_wealth[present])
        alarmed = (log_e >= self._wealth.levels[present, None]) & ~self._sounded[present]
        alarms = []
        for i, side in np.argwhere(alarmed).tolist():
            group = int(present[i])
            at = Alarm(self._name(group), SIDES[side], self._n_rows, int(self._rows[group]), float(log_e[i, side]))
            alarms.append(at)
            if self.every is None:
                self._sounded[group, side] = True
            else:
                self._wealth.log_wealth[group, side] = -np.inf
        return alarms

    def close(self) -> list[Alarm]:
        """Close the cluster that is open, as at the end of the stream, and return the alarms."""
        if self._id is None:
            return []
        total, size, rows, parts = self._open
        alarms = self.step(wagers_of_means(total, size, rows, parts, self._open_rows, self._eps))
        self._open, self._open_rows, self._id = np.zeros_like(self._open), 0, None
        return alarms

    def evidence(self) -> dict[str, Float64Array]:
        """For each group, how near it is to an alarm: log wealth of both sides minus the level of an alarm."""
        distance = _log_mean(self._wealth.log_wealth) - self._wealth.levels[:, None]
        return {side: distance[:, s] for s, side in enumerate(SIDES)}

    def to_state(self) -> Saved:
        """What it is made of."""
        plain = {
            "property": dict(self.property.spec()),
            "groups": dict(self.groups.spec()),
            **{name: getattr(self, name) for name in ("tolerance", "alpha", "every", "cluster")},
            "n": len(self._rows),
            "n_known": self._n_known,
            "rows": [self._n_rows, self._open_rows],
            "cluster_id": self._id,
            "order": [self._first, self._issued, self._order.front, sorted(self._order.gone), self._order.settle],
        }
        held = [one for _, one in sorted(self._order.known.items())]
        plain["held"] = [[one.round, one.y, one.ticket[0].tolist(), one.ticket[1].tolist()] for one in held]
        return Saved(plain, {name: array.astype(np.float64, copy=False) for name, array in self._arrays().items()})

    @classmethod
    def from_state(
        cls, packed: Packed, *, property: Elicitable | None = None, groups: Hypotheses | None = None
    ) -> "Monitor":
        """Make it again; see `from_bytes`."""
        plain, n = packed.plain, packed.plain["n"]
        shapes = {"turn": Shape((n,), low=0), "rows": Shape((n,), low=0), "sounded": Shape((n, 2), low=0, high=1)}
        wealth = Shape((n, 2, len(RATES)), finite=False)
        arrays = packed.arrays({**shapes, "log_wealth": wealth, "open": Shape((4, n))})
        functions = functions_of(plain["groups"], groups)
        settings = {name: plain[name] for name in ("tolerance", "alpha", "every", "cluster")}
        first, issued, front, gone, settle = plain["order"]
        settings |= {"first": first, "settle": settle}
        monitor = cls(property_of(plain["property"], property), functions, **settings)
        n_known, counts, cluster_id = plain["n_known"], plain["rows"], plain["cluster_id"]
        whole = all(type(each) is int and 0 <= each < 1 << 62 for each in (n_known, *counts)) and len(counts) == 2
        if functions.n != n or not whole or n_known > n or not isinstance(cluster_id, (str, type(None))):
            raise StateFileError("this saved state is damaged: its counters contradict each other")
        # The groups may have grown since the promise was shared out.
        monitor._wealth = monitor._start(n_known)
        for name, array in monitor._arrays().items():
            array[...] = arrays[name]
        (monitor._n_rows, monitor._open_rows), monitor._id = counts, cluster_id
        monitor._issued, monitor._order.front, monitor._order.gone = issued, front, set(gone)
        for number, v, indices, values in plain["held"]:
            if not all(0 <= j < n for j in indices) or len(indices) != len(values):
                raise StateFileError(
                    "this saved state is damaged: an outcome that is held has groups that are not there"
                )
            monitor._order.add(
                number, v, ticket=(np.array(indices, dtype=np.int64), np.array(values, dtype=np.float64))
            )
        return monitor

    def _arrays(self) -> dict[str, Any]:
        return {
            "log_wealth": self._wealth.log_wealth,
            "turn": self._wealth.turn,
            "rows": self._rows,
            "sounded": self._sounded,
            "open": self._open,
        }

    def _start(self, n_known: int) -> Wealth:
        """No evidence; `n_known` groups share the promise evenly."""
        self._n_known = n_known
        if (self.alpha is None) == (self.every is None):
            raise InvalidInput(
                "give one of alpha= (probability of a false alarm ever) and every= (rows per false alarm)"
            )
        if self.every is not None:
            if self.every < 1:
                raise InvalidInput(f"every is a number of rows, 1 or more; got {self.every!r}")
            return Every(self.groups.n, self.every)
        if self.alpha is None or not 0 < self.alpha < 1:
            raise InvalidInput(f"alpha must be between 0 and 1, both left out; got {self.alpha!r}")
        return Ever(self.groups.n, self.alpha, n_known)

    def _name(self, group: int) -> str:
        names = getattr(self.groups, "names", None)
        if names is None:
            return "all" if isinstance(self.groups, Constant) else f"group {group}"
        return str(names[group])

    def _cluster_of(self, x: Any) -> Any:
        if not (isinstance(x, Mapping) and self.cluster in x):
            raise InvalidInput(f"x has no column {self.cluster!r} that names the cluster; give the ids as clusters=")
        return x[self.cluster]

    def _clustered(self, v: Float64Array, rows: Rows, clusters: list[Any]) -> list[Alarm]:
        if len(clusters) != len(v):
            raise InvalidInput(f"clusters must name the cluster of each of {len(v)} rows; got {len(clusters)}")
        ids = [str(one) for one in clusters]
        starts = [t for t in range(len(ids)) if t == 0 or ids[t] != ids[t - 1]]
        alarms = []
        for start, stop in zip(starts, [*starts[1:], len(ids)], strict=True):
            if self._id is not None and ids[start] != self._id:
                alarms += self.close()
            self._id = ids[start]
            part, n = sliced(rows, start, stop), self.groups.n
            lengths = np.diff(part.indptr)
            xv = part.values * np.repeat(v[start:stop], lengths)
            shares = np.repeat(1.0 / np.maximum(lengths, 1), lengths)
            for i, terms in enumerate((xv, np.abs(part.values), None, shares)):
                self._open[i] += np.bincount(part.indices, terms, n)
            self._open_rows += stop - start
        return alarms


def _log_mean(log_wealth: Float64Array) -> Float64Array:
    """Logarithm of the mean over the last axis; that of nothing is -inf."""
    largest = log_wealth.max(axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.log(np.exp(log_wealth - largest).mean(axis=-1)) + largest[..., 0]
    return np.where(np.isneginf(largest[..., 0]), -np.inf, mean)

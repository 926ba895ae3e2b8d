"""The monitor: anytime-valid alarms for every group of a stream, in bounded memory."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from swapcal import checked
from swapcal.audit.functions import Constant, Functions
from swapcal.audit.rounds import RoundReader
from swapcal.errors import InvalidInput
from swapcal.monitor import stored_monitor
from swapcal.monitor.wagers import Wagers, wagers_of_means, wagers_of_rows
from swapcal.monitor.wealth import Ever, Every, Wealth
from swapcal.roles import Elicitable, Rows
from swapcal.typing import Float64Array, IntArray

__all__ = ["Alarm", "Monitor"]

BATCH = 512
"""Rows that `update_many` takes together; an alarm comes at the end of such a batch."""

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


class Monitor:
    """Watches forecasts of a property for bias in every group, and says which group is off as soon as that is sure.

    Parameters
    ----------
    property : Elicitable
        What is forecast; gives V.
    groups : Functions, optional
        The groups, such as `Groups([...])` or `Finite(n)`. None: everybody.
    tolerance : float
        Bias that is no matter, in units of the outcome; for quantiles, in shares of rows. Default 0.
    alpha : float, optional
        The probability with which there is ever a false alarm. Give this or `every`.
    every : float, optional
        The number of rows in which there is one false alarm on average, at most.
    cluster : str, optional
        Column of x whose rows with the same value, one after the other, depend on each other, such as the day. Bets are
        then on the means of clusters, when they close. Where x has no names, give the ids to `update` as `clusters`.

    Notes
    -----
    A false alarm is one for a group and side that never had a bias beyond the tolerance in any row: s E[V | before] <=
    eps. For clusters, "before" is before the cluster, and which rows are in a cluster may not depend on its outcomes.
    Proofs are in `wealth.Ever` and `wealth.Every`; nothing else is assumed. `alpha` reports every group and side once;
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

    def __init__(
        self,
        property: Elicitable,
        groups: Functions | None = None,
        *,
        tolerance: float = 0.0,
        alpha: float | None = None,
        every: float | None = None,
        cluster: str | None = None,
    ) -> None:
        self.property = property
        self.groups: Functions = Constant() if groups is None else groups
        self.tolerance, self.cluster = checked.real(tolerance, "tolerance"), cluster
        self.alpha = None if alpha is None else checked.real(alpha, "alpha")
        self.every = None if every is None else checked.real(every, "every")
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
        self._open = np.zeros((4, self.groups.n))
        """Of the open cluster: sums of f V, of |f|, rows, and parts of rows."""
        self._open_rows = 0
        self._id: Any = None

    @property
    def n_rows(self) -> int:
        """Rows so far."""
        return self._n_rows + self._open_rows

    def update(self, y: float, p: float, x: Any = None, *, clusters: Any = None) -> list[Alarm]:
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

        Returns
        -------
        list of Alarm
            Empty as a rule.
        """
        functions, _, v, row, _ = self._reader.one(y, p, x)
        rows = Rows(np.array([0, len(row.indices)]), row.indices, row.values)
        if self.cluster is None:
            return self.step(wagers_of_rows(np.array([v]), rows, functions.n, self._eps))
        return self._clustered(np.array([v]), rows, [self._cluster_of(x) if clusters is None else clusters])

    def update_many(self, y: Any, p: Any, x: Any = None, *, clusters: Any = None) -> list[Alarm]:
        """Take in many rows, in their order, and return the alarms; `clusters` are ids, one a row.

        Parameters
        ----------
        y, p : array_like, shape (rows,)
            Outcomes and forecasts.
        x : optional
            The cases.
        clusters : sequence, optional
            Ids of clusters, if they are not in x.

        Returns
        -------
        list of Alarm
            In the order in which they came.
        """
        _, _, v, contexts, _ = self._reader.many(y, p, x)
        rows = contexts if isinstance(contexts, Rows) else self.groups.rows(contexts, len(v))
        if self.cluster is not None:
            return self._clustered(v, rows, list(self._cluster_of(x) if clusters is None else clusters))
        alarms = []
        for start in range(0, len(v), BATCH):
            part = slice(start, start + BATCH)
            alarms += self.step(wagers_of_rows(v[part], _cut(rows, start, BATCH), self.groups.n, self._eps))
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
        _, _, v, contexts, _ = self._reader.many(y, p, x)
        rows = contexts if isinstance(contexts, Rows) else self.groups.rows(contexts, len(v))
        return wagers_of_rows(v, rows, self.groups.n, self._eps)

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
        alarmed = (log_e >= self._wealth.levels()[present, None]) & ~self._sounded[present]
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
        distance = _log_mean(self._wealth.log_wealth) - self._wealth.levels()[:, None]
        return {side: distance[:, s] for s, side in enumerate(SIDES)}

    def to_dict(self) -> dict[str, Any]:
        """Plain data, fit for JSON."""
        return stored_monitor.dump(self, self._arrays(), n_known=self._n_known, cluster_id=self._id)

    @classmethod
    def from_dict(cls, data: Any, property: Elicitable, groups: Functions | None = None) -> "Monitor":
        """Rebuild what `to_dict` wrote; `property` and `groups` must be what it had, with all they have learned.

        Parameters
        ----------
        data : dict
            What `to_dict` returned.
        property : Elicitable
            What is forecast.
        groups : Functions, optional
            The groups.

        Returns
        -------
        Monitor
            It goes on where the stored one stopped.
        """
        stored = stored_monitor.undump(data, property, Constant() if groups is None else groups)
        return cls._from(stored, property, groups)

    def to_bytes(self) -> bytes:
        """The same, compact: versioned, with a checksum, no pickle.

        Returns
        -------
        bytes
            For `from_bytes`, here or on any other machine.
        """
        return stored_monitor.pack(self, self._arrays(), n_known=self._n_known, cluster_id=self._id)

    @classmethod
    def from_bytes(cls, data: bytes, property: Elicitable | None = None, groups: Functions | None = None) -> "Monitor":
        """Rebuild what `to_bytes` wrote; a property or groups of your own making must be given again.

        Parameters
        ----------
        data : bytes
            What `to_bytes` returned.
        property : Elicitable, optional
            What is forecast, if it is of your own making.
        groups : Functions, optional
            The groups, if they are of your own making.

        Returns
        -------
        Monitor
            It goes on where the stored one stopped.
        """
        stored, made, functions = stored_monitor.unpack(data, property, groups)
        return cls._from(stored, made, functions)

    @classmethod
    def _from(cls, stored: stored_monitor.Stored, property: Elicitable, groups: Functions | None) -> "Monitor":
        settings, arrays, n_known, cluster_id = stored
        monitor = cls(property, groups, **settings)
        # The groups may have grown since the promise was shared out.
        monitor._wealth = monitor._start(n_known)
        for name, array in monitor._arrays().items():
            array[...] = arrays[name]
        monitor._n_rows, monitor._open_rows, monitor._id = *(int(n) for n in arrays["counts"]), cluster_id
        return monitor

    def _arrays(self) -> dict[str, Any]:
        return {
            "log_wealth": self._wealth.log_wealth,
            "turn": self._wealth.turn,
            "rows": self._rows,
            "sounded": self._sounded,
            "open": self._open,
            "counts": np.array([self._n_rows, self._open_rows]),
        }

    def _start(self, n_known: int) -> Wealth:
        """No evidence; `n_known` groups share the promise evenly."""
        self._n_known = n_known
        if (self.alpha is None) == (self.every is None):
            raise InvalidInput(
                "give alpha (probability of a false alarm ever) or every (rows per false alarm), not both"
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
            part, n = _cut(rows, start, stop - start), self.groups.n
            lengths = np.diff(part.indptr)
            xv = part.values * np.repeat(v[start:stop], lengths)
            shares = np.repeat(1.0 / np.maximum(lengths, 1), lengths)
            for i, terms in enumerate((xv, np.abs(part.values), None, shares)):
                self._open[i] += np.bincount(part.indices, terms, n)
            self._open_rows += stop - start
        return alarms


def _cut(rows: Rows, start: int, length: int) -> Rows:
    ends: IntArray = rows.indptr[start : start + length + 1]
    inside = slice(int(ends[0]), int(ends[-1]))
    return Rows(ends - ends[0], rows.indices[inside], rows.values[inside])


def _log_mean(log_wealth: Float64Array) -> Float64Array:
    """Logarithm of the mean over the last axis; that of nothing is -inf."""
    largest = log_wealth.max(axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.log(np.exp(log_wealth - largest).mean(axis=-1)) + largest[..., 0]
    return np.where(np.isneginf(largest[..., 0]), -np.inf, mean)

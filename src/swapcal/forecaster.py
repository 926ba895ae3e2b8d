"""The public face: forecasts out, outcomes in. The round itself is `engine.round`, beside the paper's Algorithm 1."""

import copy
import os
import secrets
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any
from weakref import WeakSet

import numpy as np

from swapcal import inputs
from swapcal.engine import kernels, schedule, state, theorems
from swapcal.engine.lateness import Lateness, lateness_report
from swapcal.engine.pending import Asked, HeldRounds, OpenRounds
from swapcal.engine.round import Engine, Round
from swapcal.engine.share import MOST_BLOCKS
from swapcal.engine.state import Rules, State
from swapcal.engine.theorems import Guarantee
from swapcal.errors import InvalidInput, SwapcalError
from swapcal.forecast import SHORTEST, Forecast, Identity
from swapcal.hypotheses.groups import for_whom
from swapcal.properties import from_text
from swapcal.protocols import Elicitable, Hypotheses, LearningHint
from swapcal.sparse import cases, how_many, weighted
from swapcal.state import Packed, Saved, Stateful
from swapcal.typing import Float64Array, IntArray

# --------
# One call at a time: threads that share a forecaster wait for each other, and none sees a round half done.


class CallLock:
    """Whoever is inside of `with turns:` has the state to itself.

    Compiled calls need no lock of their own: they hold the interpreter from their first look at the state to their last
    change, and while somebody has the turn they leave every call to Python, which waits here. So an event costs what it
    would cost without threads, and a round, a cut of the grid or a copy for `save` is never seen from within.

    A call from within the same thread, by a signal handler or by a part of the user's own that calls the forecaster it
    is part of, cannot wait for itself: it is an error.

    A fork waits for a call of another thread to end, so that the child finds every lock free and no round half done.
    """

    __slots__ = ("__weakref__", "_engine", "_lock", "_owner")

    def __init__(self, engine: Engine) -> None:
        self._engine, self._lock, self._owner = engine, threading.Lock(), 0
        with _registry:
            _locks.add(self)

    def __enter__(self) -> None:
        me = threading.get_ident()
        if self._owner == me:
            raise SwapcalError(
                "a forecaster was called while one of its own calls was under way in the same thread, by a signal "
                "handler or by a part of yours; make that call after the first one has returned"
            )
        self._lock.acquire()
        self._owner = me
        self._engine.pause(True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._engine.pause(False)
        self._owner = 0
        self._lock.release()


_registry, _locks = threading.RLock(), WeakSet[CallLock]()
_taken = list[threading.Lock]()


def _before_fork() -> None:
    """Take all locks but the calling thread's own; one that is busy is waited for with no other in hand."""
    _registry.acquire()
    others = [each._lock for each in _locks if each._owner != threading.get_ident()]
    while len(_taken) < len(others):
        k = len(_taken)
        if others[k].acquire(blocking=k == 0):
            _taken.append(others[k])
        else:
            _give_back()
            others.insert(0, others.pop(k))


def _give_back() -> None:
    while _taken:
        _taken.pop().release()


def _after_fork() -> None:
    _give_back()
    _registry.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


class Forecaster(Stateful):
    """Forecasts of a property, calibrated given the forecast itself and given every function of a class.

    Guarantee: whatever the stream does, the swap multicalibration error of the forecasts stays below
    `guarantee(delta)` with probability 1 - delta, a number of order T^(1/(r+1)) with logarithms. The proofs are in
    docs/guarantees.md.

    Parameters
    ----------
    property : Elicitable or str
        What is forecast: `Mean()`, `Quantile(0.9)`, `Expectile(0.8)`, `Probability()`, ...;
        or a text such as "quantile:0.9", on [0, 1].
    hypotheses : Hypotheses, optional
        For whom: `Finite(n)`, `Linear(n)`, `Trees([...])`, ...
    groups : str or sequence, optional
        Instead of hypotheses: what `Groups` takes, such as "carrier,origin,carrier*origin".
    horizon : int, optional
        Number of rounds T, for `guarantee()` ahead of them. It is no need: values are added where forecasts are, as
        rounds go by.
    r : float
        Exponent of the error, 1 or more.
    bins : int, optional
        Forecast the mid-points of so many equal bins and nothing else, instead of values that follow the forecasts.
    seed : int, optional
        Of the draws. None: one from the system, which nobody knows; it is kept in the state, and `rules.seed` tells it.
        Whoever knows the seed knows the draws: give none, or one of 64 random bits, where somebody plays against you.
    hint : LearningHint, optional
        A model that learns beside the engine, such as `OnlineRegression()`; it takes `predict`'s hint as an input.
    levels : int
        How many level sets of the hint join a finite class; 0 for none.
    trust : float
        How far a hint with a clean record is played at its word: while the potential of every active function at its
        value is at most (e n)^trust. With 0 it must lie at a zero or a sign change of the evidence, like any forecast.
    outside : {"error", "clip", "follow"}
        What to do with a label or hint outside its range. "clip": the engine takes the end of the range; what is shown
        is judged by the label, and may be the hint, as they are. "follow": likewise, and a label that was learned so
        doubles the range, towards it (docs/guarantees.md, section 4).
    jitter : float
        Labels are spread uniformly over an interval of this width around them before they count as evidence.
    max_pending : int
        How many rounds a forecast can wait for its outcome before it expires; costs four times as many bytes at most,
        and only while forecasts wait that long.
    protect : {"loss", "calibration", "nothing"}
        How much of the correction of a hint is shown. "loss": the share that the outcomes so far speak for
        (`engine/share.py` has the rule, and what it promises); learning goes on whatever is shown. "calibration": a
        correction that surely repairs the mean of V, over all rounds or in a group, too. "nothing": always all of it.
    budget : float, optional
        The share of the loss of the hints that corrections may cost; 0.002, or 0.01 to protect calibration.
    blocks : int
        How many blocks of rounds the record of corrections keeps, 8 to 512; each takes 208 bytes.
    identity : str, optional
        The name that its forecasts carry. None: a random one, with a random key. A name of your own gets a key that is
        a hash of the seed and the name, so that whoever has both, on another machine or in a replay, makes the same
        forecasts and takes those that were stored. Give a secret `seed` with it.

    Notes
    -----
    Cost per round: O(active entries) for each evaluation of the evidence, one or two next to the start of the search,
    and for one update. Memory: O(values) times the length of the context; there are at most order T^(1/3) values, and
    far fewer where forecasts keep to a small part of the range.

    Examples
    --------
    >>> import swapcal as sc
    >>> forecaster = sc.Forecaster(sc.Mean(), sc.Finite(2), horizon=1000, seed=1)
    >>> for t in range(1000):
    ...     forecast = forecaster.predict([1.0, t % 2])
    ...     forecaster.update(forecast, 0.9 if t % 2 else 0.2)
    >>> bool(forecaster.error() < forecaster.guarantee(0.05) < 1000)
    True
    """

    kind = "forecaster"

    def __init__(
        self,
        property: Elicitable | str,
        hypotheses: Hypotheses | str | Sequence[Any] | None = None,
        *,
        groups: Any = None,
        horizon: int | None = None,
        r: float = 2.0,
        bins: int | None = None,
        seed: int | None = None,
        hint: LearningHint | None = None,
        levels: int = 10,
        trust: float = 0.25,
        outside: str = "error",
        jitter: float = 0.0,
        max_pending: int = 1 << 20,
        protect: str = "loss",
        budget: float | None = None,
        blocks: int = MOST_BLOCKS,
        identity: str | None = None,
    ) -> None:
        if (hypotheses is None) == (groups is None):
            raise InvalidInput("say for whom: groups=['carrier', 'origin'], or a class such as sc.Finite(3); not both")
        rules = Rules(
            from_text(property, 0.0, 1.0) if isinstance(property, str) else property,
            for_whom(groups if hypotheses is None else hypotheses),
            hint,
            horizon=horizon,
            r=r,
            bins=bins,
            seed=kernels.fresh_seed() if seed is None else seed,
            levels=levels,
            trust=trust,
            outside=outside,
            jitter=jitter,
            max_pending=max_pending,
            protect=protect,
            budget=budget,
            blocks=blocks,
        )
        if identity is not None and (not isinstance(identity, str) or not identity):
            raise InvalidInput(f"identity is a name, such as 'store 7', or None; got {inputs.short_repr(identity)}")
        who = None if identity is None else Identity.derived(identity, rules.seed)
        self._assemble(rules, State(rules, identity=who))
        kernels.remind()

    @classmethod
    def by_rules(cls, rules: Rules, identity: str) -> "Forecaster":
        """A fresh one by rules that were checked before, with the identity that follows from this name."""
        made = cls.__new__(cls)
        made._assemble(rules, State(rules, identity=Identity.derived(identity, rules.seed)))
        return made

    def _assemble(self, rules: Rules, state: State) -> None:
        self.hypotheses, self.hint, self.state = rules.hypotheses, rules.hint, state
        self._round = Round(rules, state, native=kernels.native)
        self._engine = self._round.engine
        self._turns = CallLock(self._engine)
        self._remembered = getattr(rules.hypotheses, "remembered", None)

    @property
    def rules(self) -> Rules:
        """Its arguments, checked; the property on the range as it is now."""
        return self._round.rules

    def __getstate__(self) -> dict[str, Any]:
        """For `copy` and `pickle`: the bytes, and parts of the user's own making, which they do not hold."""
        with self._turns:
            parts = {"property": self.property, "hypotheses": self.hypotheses, "hint": self.hint}
            own = {name: part for name, part in parts.items() if not state.in_bytes(name, part)}
            return {"state": super().to_bytes(), "parts": copy.deepcopy(own)}

    def __setstate__(self, stored: dict[str, Any]) -> None:
        self.__dict__.update(type(self).from_bytes(stored["state"], **stored["parts"]).__dict__)

    def __repr__(self) -> str:
        rules = self.rules
        return (
            f"Forecaster({rules.property!r}, {rules.hypotheses!r}, horizon={rules.horizon}): "
            f"{self.n_rounds} rounds, {self.state.values.n} values"
        )

    def predict(self, x: Any, hint: float | None = None, *, features: Any = None) -> Forecast:
        """The forecast for context `x`, near `hint` where that keeps the guarantee; opens a round, learns nothing.

        Parameters
        ----------
        x : array, sequence, mapping or record
            The context, as the class of functions takes it.
        hint : float, optional
            Your own model's forecast, in the property's units.
        features : array, optional
            Extra features of the learning hint.

        Returns
        -------
        Forecast
            A value; `float(forecast)` is the number to act on.
        """
        forecast = self._engine.predict(x, hint, features)
        if forecast is None and self._remembered is not None:
            row = self._remembered(x)
            forecast = None if row is None else self._engine.predict(row, hint, features)
        if forecast is None:
            with self._turns:
                return self._round.predict(x, hint, features)
        return forecast

    def predict_many(self, X: Any, hints: Any = None, *, features: Any = None) -> list[Forecast]:
        """The forecasts for many contexts, with what is known now; opens their rounds, learns nothing.

        Everything is checked before the first round is opened. Outcomes go to `update` or `update_many`, in any order
        and at any time; they come after later forecasts, so they are late ones.

        Parameters
        ----------
        X : array, sparse rows, frame or list of records
            One context for each forecast.
        hints : array, optional
            Your own model's forecasts.
        features : array, optional
            Extra features of the learning hint, one row for each.

        Returns
        -------
        list of Forecast
            What `predict` would have given for each.

        Examples
        --------
        >>> import swapcal as sc
        >>> forecaster = sc.Forecaster(sc.Mean(), sc.Finite(2), seed=1)
        >>> forecasts = forecaster.predict_many([[1, 0], [1, 1]], hints=[0.2, 0.4])
        >>> forecaster.update_many(forecasts, [0.0, 1.0])
        >>> forecaster.n_rounds
        2
        """
        n = how_many(X)
        guides = None if hints is None else self.rules.hint_values(inputs.vector(hints, "hints", n))
        hint_list = [None] * n if guides is None else guides.tolist()
        extras = inputs.feature_rows(features, n, self.rules.n_features)
        feature_list = [None] * n if extras is None else list(extras)
        with self._turns:
            contexts = X if self._engine.accepts(X, n) else list(cases(self.hypotheses, X, n))
        opened: list[Forecast] = []
        while len(opened) < n:
            self._engine.predict_many(contexts, hint_list, feature_list, opened)
            if len(opened) < n:
                k = len(opened)
                with self._turns:
                    opened.append(self._round.predict(contexts[k], hint_list[k], feature_list[k]))
        return opened

    def distribution(self, x: Any, hint: float | None = None, *, features: Any = None) -> dict[float, float]:
        """The forecasts that `predict` would draw from, with their probabilities. Changes nothing.

        Parameters
        ----------
        x, hint, features
            As for `predict`.

        Returns
        -------
        dict
            One value, or two neighbors, with their probabilities.
        """
        with self._turns:
            return self._round.distribution(x, hint, features)

    def expected(self, X: Any, hints: Any = None) -> Float64Array:
        """The means of what `predict` would draw from, with what is known now. Opens no round and changes nothing.

        Parameters
        ----------
        X : array, sparse rows, frame or list of records
            One context for each number.
        hints : array, optional
            Your own model's forecasts.

        Returns
        -------
        array
            The mean of `distribution` for each context; docs/deterministic.md has what it keeps.

        Examples
        --------
        >>> import swapcal as sc
        >>> forecaster = sc.Forecaster(sc.Mean(), sc.Finite(2), seed=1)
        >>> forecaster.expected([[1, 0], [1, 1]], hints=[0.2, 0.4])
        array([0.2, 0.4])
        """
        n = how_many(X)
        guides = None if hints is None else self.rules.hint_values(inputs.vector(hints, "hints", n))
        with self._turns:
            # A class that reads records would learn its groups from them.
            return self._round.expected(copy.deepcopy(self.hypotheses).rows(X, n), guides)

    def update(self, forecast: Forecast, y: float) -> None:
        """Learn the outcome `y` of a forecast: in any order, once each.

        Parameters
        ----------
        forecast : Forecast
            What `predict` returned, or what was stored of it.
        y : float
            The outcome, in [low, high] of the property.
        """
        if not self._engine.update(forecast, y):
            with self._turns:
                self._round.update(forecast, y)
        elif self._engine.due():
            with self._turns:
                self._round.after_update(forecast.hint)
                self._round.check_ties(float(y))

    def forget(self, forecast: Forecast) -> None:
        """Say that the outcome of a forecast will not come: it is closed, and nothing is learned from it.

        Outcomes that never come count as the worst they could be (`engine/share.py`); forecasts that wait for nothing
        keep a forecaster from showing its corrections.

        Parameters
        ----------
        forecast : Forecast
            What `predict` returned, or what was stored of it.

        Examples
        --------
        >>> import swapcal as sc
        >>> forecaster = sc.Forecaster(sc.Mean(), sc.Finite(1), seed=1)
        >>> forecaster.forget(forecaster.predict([1.0]))
        >>> forecaster.n_pending, forecaster.n_rounds
        (0, 0)
        """
        with self._turns:
            case, played = self._round.reopen(forecast)
            self._round.forget(case, played, forecast.round)

    def update_many(self, forecasts: Sequence[Forecast], y: Any) -> None:
        """Learn the outcomes of many forecasts, one after the other.

        Labels are checked before the first is learned; a forecast that cannot be learned ends it there, with its error.

        Parameters
        ----------
        forecasts : sequence of Forecast
            What `predict_many` or `predict` returned.
        y : array
            Their outcomes.
        """
        labels = self.rules.labels(inputs.vector(y, "y", len(forecasts)))
        tickets, outcomes, done = list(forecasts), labels.tolist(), 0
        while done < len(outcomes):
            first, done = done, self._engine.update_many(tickets, outcomes, done)
            if done > first and self._engine.due():
                with self._turns:
                    self._round.after_update(tickets[done - 1].hint)
                    self._round.check_ties_many(labels[first:done])
            if done < len(outcomes):
                self.update(tickets[done], outcomes[done])
                done += 1

    def run(
        self,
        X: Any,
        y: Any,
        hints: Any = None,
        *,
        features: Any = None,
        weights: Any = None,
        missing: str = "error",
        known: Any = None,
        times: Any = None,
        order: str = "arrival",
        settle: int | None = None,
        waits: Any = None,
    ) -> Float64Array:
        """Forecast and update a whole recorded stream: the loop's numbers, and all of them or, on an error, none.

        Parameters
        ----------
        X : array, sparse rows, frame or list of records
            One context for each round.
        y : array
            Outcomes.
        hints : array, optional
            Your own model's forecasts.
        features : array, optional
            Extra features of the learning hint, one row for each round.
        weights : array, optional
            The share in [0, 1] for which each round counts, for finite classes and groups: every function of its
            context is multiplied by it, in the errors that are guaranteed, too.
        missing : {"error", "skip"}
            With "skip", rounds whose outcome is NaN are forecast and not learned from, and a hint that is NaN means
            that there is none.
        known : array, optional
            When each outcome is known: times, or row numbers from 0 on where there are no `times`; NaN or NaT: not yet.
            An outcome is learned before the first row at or after that moment, and not before the row behind its own;
            what is known only after the last row waits, and is learned by a later `run`. None: every outcome is known
            before the next row.
        times : array, optional
            The time of each row, not falling: numbers or datetimes.
        order : {"arrival", "forecast"}
            "forecast": an outcome is learned only when those of all earlier forecasts are known or have waited for
            `settle` rounds; for delays that depend on the outcome, where what is known first is a biased sample.
        settle : int, optional
            Rounds after which nobody waits for an outcome any more.
        waits : array of bool, optional
            With `missing="skip"`: which of the rounds without an outcome will have one later, for `fill_in`. The others
            will not, and are closed.

        Returns
        -------
        array
            The forecasts.

        Examples
        --------
        >>> import swapcal as sc
        >>> forecaster = sc.Forecaster(sc.Mean(), sc.Finite(1), seed=1)
        >>> forecasts = forecaster.run([[1.0]] * 9, [0.2] * 9, known=[t + 4 for t in range(9)])
        >>> forecaster.n_rounds, forecaster.n_pending
        (5, 4)
        """
        late = schedule.delay_rule(known, times, order, settle)
        with self._turns:
            if weights is not None:
                X = weighted(self.hypotheses, X, weights, how_many(y))
            return schedule.run(self._round, X, y, hints, features, missing, late, waits)

    def fill_in(self, rounds: Any, y: Any, *, known: Any = None) -> Float64Array:
        """Learn outcomes that were missing when `run` played their rounds, with `waits`: in this order, once each.

        All of them are learned or, on an error, none: of rounds that are unknown, expired, or have had their outcome.

        Parameters
        ----------
        rounds : array of int
            Numbers of rounds, from 0, each once.
        y : array
            Their outcomes.
        known : array, optional
            When each outcome is known, as for `run`, which then learns it when that is due. NaN, or None: now.

        Returns
        -------
        array
            The forecasts of these rounds.

        Examples
        --------
        >>> import numpy as np
        >>> import swapcal as sc
        >>> forecaster = sc.Forecaster(sc.Mean(), sc.Finite(1), seed=1)
        >>> y = np.array([0.2, np.nan, 0.4])
        >>> forecasts = forecaster.run([[1.0]] * 3, y, missing="skip", waits=np.isnan(y))
        >>> forecaster.n_pending, bool(forecaster.fill_in([1], [0.3])[0] == forecasts[1]), forecaster.n_pending
        (1, True, 0)
        """
        with self._turns:
            return schedule.fill_in(self._round, rounds, y, known)

    @property
    def rounds(self) -> OpenRounds:
        """Which rounds wait for their outcome."""
        return self.state.pending

    @property
    def held(self) -> HeldRounds:
        """Rounds that wait here, and not as a `Forecast` in the hands of the caller."""
        return self.state.waiting

    # Numbers that a forecast consists of.
    n_outputs = 1

    def read(self, X: Any, n: int, hints: Any = None, features: Any = None, weights: Any = None) -> Asked:
        """What `n` cases bring, checked; for `swapcal.cases.Cases`, like the next five."""
        rules = self.rules
        guides = None if hints is None else rules.hint_values(inputs.vector(hints, "hints", n, missing=True))
        contexts = X if weights is None else weighted(self.hypotheses, X, weights, n)
        return Asked(rules.hypotheses.rows(contexts, n), guides, inputs.feature_rows(features, n, rules.n_features))

    def allowed(self, y: Float64Array) -> Float64Array:
        """Outcomes as the property allows them, infinite where it does not; NaN stays."""
        target, known = self.property, ~np.isnan(y)
        labels = y.copy()
        inside = np.clip(y, target.low, target.high) if self.rules.clips else y
        if target.invalid_labels(inside[known]) is not None:
            for i in np.flatnonzero(known).tolist():
                if target.invalid_labels(inside[i : i + 1]) is not None:
                    labels[i] = np.inf
        return labels

    def play(self, asked: Asked, y: Float64Array, plan: schedule.Schedule) -> Float64Array:
        """Forecast cases and learn outcomes as the plan says; nothing is undone on an error."""
        with self._turns:
            return schedule.play_events(self._round, asked, y, plan)

    def set_outcomes(self, lines: IntArray, y: Float64Array, due: Float64Array) -> None:
        """The outcomes of rounds that are held, which the next plan says when to learn."""
        self.held.fill(lines, y, due)
        self._round.check_ties_many(y)

    def held_outputs(self, lines: IntArray) -> Float64Array:
        """The forecasts of rounds that are held, a row each."""
        return self.held.forecasts_of(lines)[:, None]

    def forget_held(self, line: int) -> None:
        """Forget a round that is held."""
        with self._turns:
            case, played, t, _ = self.held.take(line)
            if self.rounds.is_open(t):
                self._round.forget(case, played, t)

    @property
    def values(self) -> Float64Array:
        """The values that can be forecast now, in increasing order."""
        return self.state.values.sorted

    @property
    def n_rounds(self) -> int:
        """Rounds that have had their outcome."""
        return self.state.ledger.n_rounds

    @property
    def n_pending(self) -> int:
        """Forecasts that wait for their outcome."""
        return self.state.pending.open

    def lateness(self) -> Lateness:
        """How late outcomes come, and what follows from it.

        Returns
        -------
        Lateness
            Counters, the e-value against delays that do not depend on outcomes, and sentences.

        Examples
        --------
        >>> import swapcal as sc
        >>> forecaster = sc.Forecaster(sc.Mean(), sc.Finite(1), seed=1)
        >>> forecasts = forecaster.run([[1.0]] * 9, [0.2] * 9, [0.4] * 9, known=[t + 4 for t in range(9)])
        >>> late = forecaster.lateness()
        >>> late.n_late, late.n_pending, late.mean_delay, late.share
        (5, 4, 3.0, 0.0)
        """
        with self._turns:
            return lateness_report(self.rules, self.state)

    def error(self, r: float | None = None, *, said: bool = False) -> theorems.Error:
        """The swap multicalibration error so far, over the class and the hint's levels (and jittered labels).

        What was shown counts in the cell of the value nearest to it.

        Parameters
        ----------
        r : float, optional
            Its exponent; that of the forecaster by default.
        said : bool
            Of what the engine said, of which shares were shown.

        Returns
        -------
        Error
            A total over the rounds, not divided by their number. Its `kind` is "exact", but for a class that is known
            through its learner alone: "at most", or "answers".
        """
        exponent = self.rules.r if r is None else inputs.number(r, "r", 1.0, 100.0)
        with self._turns:
            return theorems.observed(self.rules, self.state, exponent, said=said)

    def guarantee(self, delta: float = 0.05, *, n_rounds: int | None = None, said: bool = False) -> Guarantee:
        """What the theorem in force promises of `error()`, or `error(said=True)`, with probability 1 - delta.

        Once outcomes have come, for the rounds so far: with the visits, spread and rounding they had, and without an
        assumption on the labels. Before that, or with `n_rounds`, ahead of the run: for the horizon or for that many
        rounds, from the property's Lipschitz constant.

        Parameters
        ----------
        delta : float
            Probability with which it may fail.
        n_rounds : int, optional
            For so many rounds, ahead of them.
        said : bool
            Of what the engine said, of which shares were shown; ahead of rounds it always is.

        Returns
        -------
        Guarantee
            A number that knows its theorem and what it assumes.
        """
        delta = inputs.number(delta, "delta", 1e-300, 1.0)
        with self._turns:
            if n_rounds is None and self.n_rounds:
                return theorems.so_far(self.rules, self.state, delta, said=said)
            total = self.rules.horizon if n_rounds is None else inputs.integer(n_rounds, "n_rounds", 1)
            if total is None:
                raise InvalidInput(
                    "without a horizon, say for how many rounds: guarantee(n_rounds=...), or ask after some"
                )
            return theorems.ahead(self.rules, self.state, total, delta)

    def rotate_key(self, key: bytes | None = None) -> None:
        """Seal what leaves the process with another key from now on; seals of former keys stay good.

        Call `forget_keys` once the forecasts that were sealed before have had their outcomes, or at once where a key
        has become known to somebody else.

        Parameters
        ----------
        key : bytes, optional
            At least 16 random bytes; the same for copies that are to accept each other's seals. None: 32 from the
            system. It is kept in the state, which is as secret as the key.

        Examples
        --------
        >>> import swapcal as sc
        >>> forecaster = sc.Forecaster(sc.Mean(), sc.Finite(1), seed=1)
        >>> stored = forecaster.predict([1.0]).to_json()
        >>> forecaster.rotate_key()
        >>> forecaster.update(sc.Forecast.from_json(stored), 0.5)
        """
        fresh = secrets.token_bytes(32) if key is None else key
        if not isinstance(fresh, bytes) or len(fresh) < SHORTEST:
            raise InvalidInput(f"a key is at least {SHORTEST} random bytes, such as secrets.token_bytes(32)")
        with self._turns:
            old = self.state.identity
            former = tuple(each for each in (old.key, *old.former) if each != fresh)
            self.state.identity = Identity(old, fresh, former)
            self._engine.assemble()

    def forget_keys(self) -> None:
        """Accept only what was sealed with the present key; forecasts that were made before it are refused."""
        with self._turns:
            self.state.identity = Identity(self.state.identity, self.state.identity.key)
            self._engine.assemble()

    def to_state(self) -> Saved:
        """What it is made of; see `to_bytes`."""
        return state.saved(self.rules, self.state)

    @classmethod
    def from_state(
        cls,
        packed: Packed,
        *,
        property: Elicitable | None = None,
        hypotheses: Hypotheses | None = None,
        hint: LearningHint | None = None,
    ) -> "Forecaster":
        """Make it again; see `from_bytes`."""
        forecaster = cls.__new__(cls)
        forecaster._assemble(*state.read(packed, property, hypotheses, hint))
        return forecaster

    def to_bytes(self) -> bytes:
        """The whole state as bytes: versioned, with a checksum, no pickle; a kilobyte for a fresh one.

        Returns
        -------
        bytes
            For `from_bytes`, here or on any other machine; `save` writes the same to a file.

        Examples
        --------
        >>> import swapcal as sc
        >>> forecaster = sc.Forecaster(sc.Probability(), sc.Finite(20), seed=1, identity="store 7")
        >>> again = sc.Forecaster.from_bytes(forecaster.to_bytes())
        >>> forecast = again.predict([1.0] * 20, hint=0.3)
        >>> forecaster.predict([1.0] * 20, hint=0.3) == forecast
        True
        """
        with self._turns:
            return super().to_bytes()

    # Last, as the decorator of the others has the same name.
    @property
    def property(self) -> Elicitable:
        """What is forecast, on the range as it is now."""
        return self._round.rules.property

"""The public face: forecasts out, outcomes in. The round itself is `engine.round`, beside the paper's Algorithm 1."""

import copy
import threading
from os import PathLike
from typing import Any, BinaryIO

from swapcal import checked
from swapcal.engine import kernels, ledger, persistence, schedule, stream
from swapcal.engine.bounds import Guarantee
from swapcal.engine.grid import Grid
from swapcal.engine.round import Round
from swapcal.engine.rules import Rules
from swapcal.engine.state import State
from swapcal.engine.trust import ALLOWANCE
from swapcal.errors import InvalidInput, SwapcalError
from swapcal.forecast import Forecast
from swapcal.roles import Elicitable, Hypotheses, LearningHint
from swapcal.typing import Float64Array

__all__ = ["Forecaster"]


class Forecaster:
    """Forecasts of a property, calibrated given the forecast itself and given every function of a class.

    Guarantee: whatever the stream does, the swap multicalibration error of the forecasts stays below
    `guarantee(delta)` with probability 1 - delta, a number of order T^(1/(r+1)) with logarithms. The proofs are in
    docs/guarantees.md.

    Parameters
    ----------
    property : Elicitable
        What is forecast: `Mean()`, `Quantile(0.9)`, `Expectile(0.8)`, `Probability()`, ...
    hypotheses : Hypotheses
        For whom: `Finite(n)` or `Linear(n)`.
    horizon : int, optional
        Number of rounds T, which sets the number of bins. None: anytime; the grid is refined as rounds go by and keeps
        its evidence.
    r : float
        Exponent of the error, 1 or more.
    bins : int, optional
        Number of bins, instead of about T^(1/(r+1)), odd and at least 11; the factor depends on the property and on the
        hint.
    seed : int
        Of the draws. Whoever knows it knows the draws: keep it to yourself where somebody plays against you.
    hint : LearningHint, optional
        A model that learns beside the engine, such as `OnlineRegression()`; it takes `predict`'s hint as an input.
    levels : int
        How many level sets of the hint join a finite class; 0 for none.
    trust : float
        How long a hint is played at its word: while its own record, in its bin and for every active function, has a
        potential of at most (e n)^trust. With 0 it must lie at a zero or a sign change of the evidence, like any
        forecast.
    outside : {"error", "clip"}
        What to do with a label or hint outside its range.
    jitter : float
        Labels are spread uniformly over an interval of this width around them before they count as evidence.
    max_pending : int
        How many rounds a forecast can wait for its outcome before it expires; costs as many bytes.

    Notes
    -----
    Cost per round: O(active entries) for each of O(log N) evaluations of the evidence and for one update. Memory: O(N)
    times the length of the context.

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

    def __init__(
        self,
        property: Elicitable,
        hypotheses: Hypotheses,
        *,
        horizon: int | None = None,
        r: float = 2.0,
        bins: int | None = None,
        seed: int = 0,
        hint: LearningHint | None = None,
        levels: int = 10,
        trust: float = 1.0 / 3.0,
        outside: str = "error",
        jitter: float = 0.0,
        max_pending: int = 65_536,
    ) -> None:
        rules = Rules(
            property,
            hypotheses,
            hint,
            horizon=horizon,
            r=r,
            bins=bins,
            seed=seed,
            levels=levels,
            trust=trust,
            outside=outside,
            jitter=jitter,
            max_pending=max_pending,
        )
        self._assemble(rules, State(rules, rules.first_bins))
        kernels.remind()

    def _assemble(self, rules: Rules, state: State) -> None:
        self.property, self.hypotheses, self.hint = rules.property, rules.hypotheses, rules.hint
        self.rules, self.state = rules, state
        self._round = Round(rules, state, native=kernels.native)
        self._engine = self._round.engine
        self._running = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """For `copy` and `pickle`: without the lock and the kernels, which own nothing."""
        return {"rules": self.rules, "state": self.state}

    def __setstate__(self, parts: dict[str, Any]) -> None:
        # A copy: joblib hands over arrays that are mapped from a file and cannot be written to.
        self._assemble(parts["rules"], copy.deepcopy(parts["state"]))

    def __repr__(self) -> str:
        rules = self.rules
        return (
            f"Forecaster({rules.property!r}, {rules.hypotheses!r}, horizon={rules.horizon}, seed={rules.seed}): "
            f"{self.n_rounds} rounds, {self.grid.n} bins"
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
        return self._round.predict(x, hint, features) if forecast is None else forecast

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
        return self._round.distribution(x, hint, features)

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
            self._round.update(forecast, y)
        elif self._engine.due():
            self._round.follow(forecast.hint)
            self._round.notice(float(y))

    def run(self, X: Any, y: Any, hints: Any = None, *, features: Any = None, missing: str = "error") -> Float64Array:
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
        missing : {"error", "skip"}
            With "skip", rounds whose outcome is NaN are forecast and not learned from, and a hint that is NaN means
            that there is none.

        Returns
        -------
        array
            The forecasts.
        """
        if not self._running.acquire(blocking=False):
            raise SwapcalError("this forecaster runs in another thread; wait for it, or make one per thread")
        try:
            return stream.run(self._round, X, y, hints, features, missing)
        finally:
            self._running.release()

    @property
    def grid(self) -> Grid:
        """The values that can be forecast now."""
        return self.state.grid

    @property
    def n_rounds(self) -> int:
        """Rounds that have had their outcome."""
        return self.state.ledger.n_rounds

    @property
    def n_pending(self) -> int:
        """Forecasts that wait for their outcome."""
        return self.state.pending.open

    def error(self, r: float | None = None) -> float:
        """The swap multicalibration error so far, over the class and the hint's levels (and jittered labels).

        Parameters
        ----------
        r : float, optional
            Its exponent; that of the forecaster by default.

        Returns
        -------
        float
            A total over the rounds, not divided by their number.
        """
        exponent = self.rules.r if r is None else checked.number(r, "r", 1.0, 100.0)
        return self.state.ledger.error(self.rules.functions, self.state.evidence.counts, exponent)

    def guarantee(self, delta: float = 0.05, *, n_rounds: int | None = None) -> Guarantee:
        """What the theorem in force promises of `error()`, with probability 1 - delta.

        Once outcomes have come, for the rounds so far: with the visits, spread and rounding they had, and without an
        assumption on the labels. Before that, or with `n_rounds`, ahead of the run: for the horizon or for that many
        rounds, from the property's Lipschitz constant.

        Parameters
        ----------
        delta : float
            Probability with which it may fail.
        n_rounds : int, optional
            For so many rounds, ahead of them.

        Returns
        -------
        Guarantee
            A number that knows its theorem and what it assumes.
        """
        delta = checked.number(delta, "delta", 1e-300, 1.0)
        rules, state = self.rules, self.state
        functions, trust = (rules.functions.n, ALLOWANCE * rules.trust) if state.hinted else (rules.hypotheses.n, 0.0)
        if n_rounds is None and self.n_rounds:
            return state.ledger.guarantee(state.evidence, functions, trust, rules.r, delta)
        total = rules.horizon if n_rounds is None else checked.whole(n_rounds, "n_rounds", 1)
        if total is None:
            raise InvalidInput("without a horizon, say for how many rounds: guarantee(n_rounds=...), or ask after some")
        grids = schedule.stages(total, rules.r, rules.share) if rules.refines else [(self.grid.n, total)]
        return ledger.ahead(
            state.evidence, rules.property, grids, functions, trust, rules.r, delta, hinted=state.hinted
        )

    def save(self, path: str | PathLike[str] | BinaryIO) -> None:
        """Write the whole state to a file (or a binary stream): plain data, no pickle.

        Parameters
        ----------
        path : path or binary stream
            Where to; a file appears whole or not at all.
        """
        persistence.save(self.rules, self.state, path)

    @classmethod
    def load(
        cls,
        path: str | PathLike[str] | BinaryIO,
        *,
        property: Elicitable | None = None,
        hypotheses: Hypotheses | None = None,
        hint: LearningHint | None = None,
    ) -> "Forecaster":
        """The forecaster that `save` wrote; it continues bit for bit.

        Parameters
        ----------
        path : path or binary stream
            What `save` wrote.
        property, hypotheses, hint : optional
            Parts of your own making, which no file holds, are passed in again.

        Returns
        -------
        Forecaster
            One that gives the forecasts that the saved one would have given.
        """
        forecaster = cls.__new__(cls)
        forecaster._assemble(*persistence.load(path, property=property, hypotheses=hypotheses, hint=hint))
        return forecaster

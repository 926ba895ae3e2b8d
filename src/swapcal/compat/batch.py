r"""From an online run to one fixed predictor, for a population that does not change (online-to-batch).

Let (x_t, y_t), t = 1..T, be drawn independently from a population D, let P_t(z|x) be the probability with which the
forecaster of round t would forecast z for x, and p_t its forecast. The *mixture* of the n rounds after the first m
forecasts z with the mean probability P(z|x) of P_{m+1}, ..., P_T, n = T - m.

**Proposition.** With at most N values, a finite class F and L = ln(2 N |F| / delta), if N L <= 0.18 n then with
probability at least 1 - delta the population error of the mixture is

.. math:: \sum_z \sup_f \big|E_D[P(z|x) f(x) V(z, y)]\big| \le \frac{\sqrt{T S_T} + \sqrt{m S_m}}n + 1.7 \sqrt{N L / n},

S_t the error SMCal_2 of the online run after t rounds, which `Forecaster.guarantee` bounds for all t at once.

*Proof.* Number values in the order of their birth; each is known before it is first played. Fix a number, f and a sign,
and let X_t be the sign times 1{p_t = z} f(x_t) V(z, y_t) minus its mean given the rounds before, which is E_D[P_t(z|x)
f(x) V(z, y)] as (x_t, y_t) is new. |X_t| <= 2, and E X_t^2 <= v_t(z) = E_D[P_t(z|x)]. For 0 < c <= 1/2, exp(c X) <= 1 +
c X + (e - 2) c^2 X^2, so exp(sum of c X_t - (e - 2) c^2 v_t(z)) is a supermartingale and by Ville's inequality, for all
z, f and signs at once, -sum X_t <= (e - 2) c sum v_t(z) + L / c. Add up over z, for each with its worst f: as the
v_t(z) of a round add up to 1, n times the population error is at most that of the run, sum over z of sup_f |sum 1{p_t =
z} f V| over the last n rounds, plus (e - 2) c n + N L / c; at c = sqrt(N L / ((e - 2) n)) these two are 2 sqrt((e - 2)
N L n) <= 1.7 sqrt(N L n). The run's sum over the last n rounds is at most that over all plus that over the first m; by
the inequality of Cauchy and Schwarz they are at most sqrt(T S_T) and sqrt(m S_m). QED.

m = 0 has the smallest bound, and forecasts of a state that has learned little in it. So `fitted` takes the second half
of the run, m = T/2, at about twice the bound and, on every stream measured, less error. Keeping all n states is too
much; `FixedPredictor` keeps K, one drawn from each of K equal parts of that half. That is an unbiased estimate of the
mixture, within 1.7 sqrt(N L / K) of it by the same argument, which says little for small K: an audit on rows that were
not used says more.

Two deterministic predictors come from it. *hash*: the value is drawn from P(.|x) by a number that is a hash of x, so
the same case always gets the same answer; on average over the hash's key its population error is the mixture's, and its
variance is small where no single x has much mass. It keeps calibration given the forecast. *mean*: the mean of P(.|x)
is smooth in x and has a loss that is no higher where the loss is convex. For the mean and the probability its bias in
every group is the mixture's, so at most the right side above; given its own value it is calibrated only approximately.

Hints count with their first 30 bits: a model's last bits differ from batch to batch, and the answer should not.
"""

import copy
import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from swapcal.errors import InvalidInput
from swapcal.forecaster import Forecaster
from swapcal.inputs import other_units
from swapcal.protocols import Row, Rows
from swapcal.sparse import CompressedRows, each, sliced
from swapcal.typing import Float64Array


class FixedPredictor:
    """The mean of what several states of a forecaster would forecast; see the module for what is guaranteed.

    Parameters
    ----------
    states : sequence of Forecaster
        Copies, which play no further round.
    key : int
        Key of the hash.
    """

    def __init__(self, states: Sequence[Forecaster], key: int = 0) -> None:
        self.states, self.key = list(states), key

    def distribution(self, x: Any, hint: float | None = None) -> dict[float, float]:
        """The values that can be forecast for `x`, in increasing order, with their probabilities."""
        share, total = 1.0 / len(self.states), dict[float, float]()
        for state in self.states:
            for value, p in state.distribution(x, hint=hint).items():
                total[value] = total.get(value, 0.0) + share * p
        return dict(sorted(total.items()))

    def mean(self, x: Any, hint: float | None = None) -> float:
        """The mean of the distribution."""
        return float(sum(value * p for value, p in self.distribution(x, hint).items()))

    def hashed(self, x: Row, hint: float | None = None) -> float:
        """A value drawn from the distribution by a hash of the case."""
        entries = np.asarray(x.indices, np.int64).tobytes() + np.asarray(x.values, np.float64).tobytes()
        case = entries + repr(None if hint is None else float(hint)).encode()
        digest = hashlib.blake2b(case, digest_size=8, key=self.key.to_bytes(8, "big")).digest()
        left = int.from_bytes(digest, "big") / 2.0**64
        for value, p in self.distribution(x, hint).items():
            left -= p
            if left < 0.0:
                return value
        return value

    def predict(self, X: Rows, hints: Float64Array | None = None, *, how: str = "mean") -> Float64Array:
        """One number for each row, by "mean" or "hash"."""
        call = self.mean if how == "mean" else self.hashed
        guides = [None] * (len(X.indptr) - 1) if hints is None else steady(hints).tolist()
        return np.array([call(row, hint) for row, hint in zip(each(X), guides, strict=True)], dtype=np.float64)


def fitted(
    forecaster: Forecaster, X: Rows, y: Float64Array, hints: Float64Array | None, *, states: int, seed: int
) -> FixedPredictor:
    """Run a forecaster over rows, in order, and keep its state at `states` random rounds of the second half.

    With 0 of them, or no rows, it is the last state that is kept.
    """
    if hints is not None and (problem := other_units(hints, *forecaster.property.domain, "of the model", "y")):
        raise InvalidInput(problem)
    n = len(y)
    copies, start = [], 0
    for stop in (*chosen(n, states, seed), n):
        if stop > start:
            play(forecaster, sliced(X, start, stop), y[start:stop], None if hints is None else hints[start:stop])
        if stop < n:
            copies.append(copy.deepcopy(forecaster))
        start = stop
    return FixedPredictor(copies or [copy.deepcopy(forecaster)], seed)


def chosen(n: int, states: int, seed: int) -> list[int]:
    """Random rounds, one in each of `states` equal parts of the second half of `n` rounds."""
    parts = np.linspace(n // 2, n, min(states, n - n // 2) + 1)
    rounds: list[int] = np.random.default_rng(seed).uniform(parts[:-1], parts[1:]).astype(int).tolist()
    return rounds if n else []


def play(forecaster: Forecaster, X: Rows, y: Float64Array, hints: Float64Array | None) -> Float64Array:
    """`Forecaster.run` on rows."""
    shape = len(X.indptr) - 1, forecaster.hypotheses.n
    return forecaster.run(
        CompressedRows(X.indptr, X.indices, X.values, shape), y, None if hints is None else steady(hints)
    )


def steady(hints: Float64Array) -> Float64Array:
    """The hints without their last bits.

    Examples
    --------
    >>> float(steady(np.array([0.1 + 0.2]))[0]) == float(steady(np.array([0.3]))[0])
    True
    """
    fractions, exponents = np.frexp(hints)
    rounded: Float64Array = np.ldexp(np.round(fractions * 2.0**30) / 2.0**30, exponents)
    return rounded

"""The wealth of those who bet on bias, in two currencies: one that keeps a promise forever, one that starts over."""

import math
from typing import Protocol

import numpy as np

from swapcal.monitor.wagers import RATES, Wagers
from swapcal.typing import Float64Array, IntArray

__all__ = ["Ever", "Every", "Wealth"]

NORM = 4.22
"""Twice the sum over k >= 1 of 1 / ((k + 1) ln^2 (k + 1)), 2.1098, rounded up."""


class Wealth(Protocol):
    """Log wealth per group and side, and the level at which it is an alarm."""

    log_wealth: Float64Array
    turn: Float64Array

    def step(self, wagers: Wagers, present: IntArray) -> None:
        """Take a batch in; `present` are the groups that have rows in it."""

    def levels(self) -> Float64Array:
        """Log wealth that is an alarm, for each group."""


class Ever:
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
        self.log_wealth = np.full((n, 2, len(RATES)), math.log(0.5))
        self.turn = np.zeros(n)
        late = np.arange(1.0, n - n_known + 1)
        half = 0.5 if len(late) else 1.0
        shares = np.concatenate([np.full(n_known, half / max(n_known, 1)), (1.0 - half) / (late * (late + 1.0))])
        self._levels: Float64Array = np.log(2.0 / alpha) - np.log(shares)

    def step(self, wagers: Wagers, present: IntArray) -> None:
        """Take a batch in."""
        self.turn[present] += 1.0
        k = self.turn[present, None, None] + 1.0
        stake = -np.log(NORM * k) - 2.0 * np.log(np.log(k))
        self.log_wealth[present] = np.logaddexp(self.log_wealth[present], stake) + wagers.gains[present]

    def levels(self) -> Float64Array:
        """The logarithm of 2 / (alpha share)."""
        return self._levels


class Every:
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
        self.log_wealth = np.full((n, 2, len(RATES)), -np.inf)
        self.turn = np.zeros(n)
        """What the rows of earlier batches counted for that were not staked yet."""
        self._level = math.log(2.0 * every)

    def step(self, wagers: Wagers, present: IntArray) -> None:
        """Take a batch in."""
        with np.errstate(divide="ignore"):
            stake = np.log(self.turn[present, None, None])
        self.log_wealth[present] = np.logaddexp(self.log_wealth[present], stake) + wagers.gains[present]
        self.turn[present] = wagers.parts[present]

    def levels(self) -> Float64Array:
        """The logarithm of 2 N."""
        return np.full(len(self.turn), self._level)

"""Gupta, Jung, Noarov, Pai, Roth (2022): online multicalibration of means by exponential weights."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from swapcal import inputs
from swapcal.paper.method import Plan
from swapcal.protocols import Row
from swapcal.rivals.card import Card
from swapcal.rivals.games import BorderRival, sinh_sums


@dataclass(eq=False, repr=False, kw_only=True)
class Gupta2022(BorderRival):
    r"""The first online multicalibration algorithm: a sum of exponentials, kept small by two-point forecasts.

    Guarantee, with S_{f,i} the sum of f(x_t) (p_t - y_t) over the rounds with p_t in bin i, for any labels in [0, 1]:

        E max_{f,i} |S_{f,i}| <= T / (r n) + 4 sqrt(T ln(2 |F| n)).

    It bounds the largest cell in absolute terms, however seldom the cell is visited.

    Parameters
    ----------
    property : Elicitable
        A mean.
    hypotheses : Hypotheses
        A finite class; the source has groups, f(x) in {0, 1}.
    horizon : int
        T.
    bins : int, optional
        n, at most T. The bound leaves it open; T^(1/4), the default, makes the l1 error that follows from it smallest.
    rate : float, optional
        eta; sqrt(ln(2 |F| n) / (4 T)) by default.
    fineness : int
        r: the two forecasts lie 1/(r n) apart.
    forecasts : {"point", "middle"}
        The point itself, as in the source, or its bin's mid-point, for audits that tell forecasts apart by value.
    seed : int
        Of the draws.

    Notes
    -----
    C_i = sum_f f(x) (exp(eta S_{f,i}) - exp(-eta S_{f,i})), and the two-point rule at the first change of sign of C.
    Time O(n active functions) a round, memory O(n |F|).

    Examples
    --------
    >>> from swapcal import Finite, Mean
    >>> method = Gupta2022(Mean(), Finite(2), horizon=400, bins=4, seed=1)
    >>> for t in range(400):
    ...     method.update(method.predict([1.0, t % 2]), 0.8 if t % 2 else 0.4)
    >>> bool(np.abs(method.sums).max() < 0.1 * 400)
    True

    References
    ----------
    Gupta, Jung, Noarov, Pai, Roth (2022), Online multivalid learning: means, moments, and prediction intervals, ITCS;
    constants from Lee, Noarov, Pai, Roth (2022), Online minimax multiobjective optimization, theorem 3.1.
    """

    card: ClassVar[Card] = Card(
        name="Gupta et al. 2022",
        reference="Gupta, Jung, Noarov, Pai, Roth (2022), Online multivalid learning; Lee et al. (2022), theorem 3.1",
        assumes="group indicators (other values in [-1, 1] weigh the sums); horizon known",
        exponent=0.5,
        error="max over (f, bin) of |sum|",
        cost="O(bins * active functions)",
        reconstructed="the number of bins (T^(1/4)) and r (1000), which the bound leaves open; 0/0 takes the lower bin",
    )

    rate: float | None = None

    def start(self) -> None:
        """Check the options, and start with nothing learned."""
        super().start()
        theory = math.sqrt(math.log(2 * self.hypotheses.n * self.bins) / (4 * self.horizon))
        self.eta = theory if self.rate is None else inputs.number(self.rate, "rate", 0.0, 1e3)
        self.sums = np.zeros((self.hypotheses.n, self.bins))

    def plan(self, row: Row, hint: float | None) -> Plan:
        """Two points around a border; hints are not used."""
        return self.play_borders(*sinh_sums(self.eta * self.sums[row.indices], row.values[:, None]))

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """Add the error to the sums of the bin that was played."""
        i, point = plan.notes[drawn]
        self.sums[row.indices, i] += row.values * inputs.identified(self.property, point, y)

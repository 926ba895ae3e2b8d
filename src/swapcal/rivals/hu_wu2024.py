"""Hu and Wu (2024): forecasts without contexts that give every decision maker small swap regret."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from swapcal.protocols import Row
from swapcal.rivals.card import Card
from swapcal.rivals.games import ExpertsRival


@dataclass(eq=False, repr=False, kw_only=True)
class HuWu2024(ExpertsRival):
    r"""The algorithm that the paper starts from: calibrated bins, and no groups.

    Guarantee: whoever best-responds to the forecasts has expected swap regret O(sqrt(T) ln T), at once for all payoffs
    in [0, 1] (the calibration decision loss). It follows from, in expectation for every bin i of N ~ sqrt(T),

        |sum over p_t = z_i of (y_t - p_t)| = O~(sqrt(n_i) + n_i / N).

    Parameters
    ----------
    property : Elicitable
        A mean.
    hypotheses : Hypotheses
        Any class: contexts are checked and ignored.
    horizon : int
        T.
    bins : int, optional
        N, default ceil(sqrt(T)).
    forecasts : {"right", "middle"}
        Where in its bin the forecast z_i lies: at i/N, as the paper reports it, or in the middle.
    seed : int
        Of the draws.

    Notes
    -----
    MsMwC over the 2 N experts (i, sigma) is fed what was realized, sigma 1{p~ in bin i} (p~ - y), p~ drawn from the
    two points that the paper puts in the place of the source's simulated game. Time O(N) a round for each of the
    projection's iterations, memory O(N).

    Examples
    --------
    >>> from swapcal import Finite, Mean
    >>> method = HuWu2024(Mean(), Finite(3), horizon=100, seed=1)
    >>> method.bins, method.predict([1.0, 0.0, 0.5]).value
    (10, 1.0)

    References
    ----------
    Hu, Wu (2024), Predict to minimize swap regret for all payoff-bounded tasks, FOCS; as told in section 2.1 of Hu,
    Luo, Senapati, Sharan, Efficient Swap Multicalibration of Elicitable Properties.
    """

    card: ClassVar[Card] = Card(
        name="Hu-Wu 2024",
        reference="Hu, Wu (2024), Predict to minimize swap regret for all payoff-bounded tasks",
        assumes="no contexts; horizon known",
        classes=("none",),
        exponent=0.5,
        error="swap regret of every bounded payoff (CDL)",
        cost="O(bins) times the projection's iterations",
        reconstructed="the number of bins; the simulated game is replaced by its closed form; from the "
        "account in the paper",
    )

    exponent_of_bins: ClassVar[float] = 0.5
    places: ClassVar[dict[str, float | None]] = {"right": 1.0, "middle": 0.5}

    forecasts: str = "right"

    def n_tests(self) -> int:
        """One: there are no functions."""
        return 1

    def tests(self, row: Row) -> Row:
        """Always 1; the context is not used."""
        return Row(np.zeros(1, dtype=np.int64), np.ones(1))

"""What a decision maker who acts on forecasts loses: the use of calibration, in the units of the decision."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from swapcal import inputs
from swapcal.errors import InvalidInput
from swapcal.state import Packed, Saved, Shape, Stateful
from swapcal.typing import Float64Array


class Decisions(Stateful):
    """Sums over decisions that were taken on forecasts of an event, each the best one if the forecast were true.

    Guarantee: the swap regret, what could have been gained by replacing each action by the best other one in hindsight,
    is at most `sensitivity` times the swap error of the forecasts of power 1 (over one function, the constant), and at
    most `sensitivity` times the root of T times that of power 2. The proof is in docs/guarantees.md; the same holds
    within every group, with the errors of that group. So whoever gets calibrated forecasts can follow them, whatever
    is at stake for them.

    Parameters
    ----------
    utility : array, shape (actions, 2)
        What each action is worth where the event does not happen, and where it does.

    Notes
    -----
    Cost: O(actions) a round; memory is two sums for each action, and two objects of the same utility can be added.

    Examples
    --------
    A false alarm costs 1, a miss 5: acting pays from a probability of 1/6 on.

    >>> decisions = Decisions.from_costs(1.0, 5.0)
    >>> decisions.update_many([0, 1, 0, 1], [0.1, 0.1, 0.5, 0.5])
    >>> decisions.thresholds, decisions.mean_loss, decisions.swap_regret
    ((0.16666666666666666,), 1.5, 4.0)
    """

    kind = "decisions"

    def __init__(self, utility: Any) -> None:
        table: Float64Array = np.array(utility, dtype=np.float64)
        if table.ndim != 2 or table.shape[1] != 2 or len(table) < 1 or not np.isfinite(table).all():
            raise InvalidInput(
                "a utility has a row of two finite numbers for each action: what it is worth without the event and "
                f"with it; got {inputs.short_repr(utility)}"
            )
        self.utility = table
        # Weights of rounds by action and outcome.
        self.sums = np.zeros_like(table)

    @classmethod
    def from_costs(cls, false_alarm: float, miss: float) -> "Decisions":
        """Two actions, to leave it and to act, where acting for nothing and leaving an event cost something."""
        costs = [inputs.number(each, name, 0.0, 1e12) for each, name in ((false_alarm, "false_alarm"), (miss, "miss"))]
        if not min(costs) > 0.0:
            raise InvalidInput(f"both costs must be above 0; got {false_alarm:g} for a false alarm and {miss:g} a miss")
        return cls([[0.0, -costs[1]], [-costs[0], 0.0]])

    @classmethod
    def parsed(cls, text: str) -> "Decisions":
        """`from_costs` of "1:5", a false alarm before the colon and a miss behind it."""
        parts = text.split(":")
        try:
            first, second = (float(part) for part in parts)
        except ValueError:
            raise InvalidInput(
                f"costs are given as 1:5, of a false alarm and of an event that was missed; got {text!r}"
            ) from None
        return cls.from_costs(first, second)

    def actions(self, p: Any) -> npt.NDArray[np.intp]:
        """The best action for each forecast; of equal ones the first."""
        forecasts = np.asarray(p, dtype=np.float64)
        worth = (1.0 - forecasts)[..., None] * self.utility[:, 0] + forecasts[..., None] * self.utility[:, 1]
        best: npt.NDArray[np.intp] = np.argmax(worth, axis=-1)
        return best

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The forecasts at which the best action changes."""
        crossings: list[float] = []
        p, action = 0.0, int(self.actions(0.0))
        while p < 1.0:
            gains = self.utility - self.utility[action]
            slope = gains[:, 1] - gains[:, 0]
            with np.errstate(divide="ignore", invalid="ignore"):
                crossing = np.where(slope > 0.0, -gains[:, 0] / slope, math.inf)
            crossing[(crossing < p) | (np.arange(len(crossing)) == action)] = math.inf
            p = float(crossing.min())
            if p >= 1.0:
                break
            # Of those that cross here, the steepest is best behind it.
            action = int(np.argmax(np.where(crossing == p, slope, -math.inf)))
            crossings.append(p)
        return tuple(crossings)

    @property
    def sensitivity(self) -> float:
        """By how much the difference of two actions can depend on the event: the largest over all pairs."""
        worth = self.utility[:, 1] - self.utility[:, 0]
        return float(worth.max() - worth.min())

    def update_many(self, y: Any, p: Any, weights: Any = None) -> None:
        """Add rounds: outcomes 0 or 1, or between them for a share of an event, the forecasts acted on, and weights."""
        labels, forecasts = np.asarray(y, dtype=np.float64), np.asarray(p, dtype=np.float64)
        if labels.shape != forecasts.shape or labels.ndim != 1:
            raise InvalidInput(f"one forecast for each outcome; got {forecasts.shape} and {labels.shape}")
        if not all(((each >= 0.0) & (each <= 1.0)).all() for each in (labels, forecasts)):
            raise InvalidInput("decisions are about events: outcomes and forecasts lie in [0, 1]")
        w = np.ones(len(labels)) if weights is None else np.asarray(weights, dtype=np.float64)
        np.add.at(self.sums, self.actions(forecasts), w[:, None] * np.column_stack([1.0 - labels, labels]))

    @property
    def weight(self) -> float:
        """Rounds so far, or the sum of their weights."""
        return float(self.sums.sum())

    @property
    def mean_loss(self) -> float:
        """What a round has lost against the best action for its outcome, on average; NaN before the first."""
        if not self.weight > 0.0:
            return math.nan
        return float(np.sum(self.sums * (self.utility.max(axis=0) - self.utility))) / self.weight

    @property
    def swap_regret(self) -> float:
        """The sum over actions of what the best other one would have gained in the rounds that took it."""
        worth = self.sums @ self.utility.T
        return float(np.sum(worth.max(axis=1) - np.diagonal(worth)))

    def regret_bound(self, swap_error: float, r: float = 1.0) -> float:
        """What the swap regret is at most, by the swap error of power `r` of the forecasts that were acted on."""
        power = inputs.number(r, "r", 1.0, 100.0)
        return float(self.sensitivity * self.weight ** (1.0 - 1.0 / power) * float(swap_error) ** (1.0 / power))

    def __add__(self, other: "Decisions") -> "Decisions":
        """Both together; of the same utility."""
        if not isinstance(other, Decisions) or not np.array_equal(self.utility, other.utility):
            raise InvalidInput("only decisions of the same utility can be added")
        both = Decisions(self.utility)
        both.sums = self.sums + other.sums
        return both

    def arrays(self) -> dict[str, Float64Array]:
        """The sums, as arrays that may be saved."""
        return {"sums": self.sums}

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Take the sums of `arrays` over, which are of the same utility."""
        self.sums = arrays["sums"].copy()

    def to_state(self) -> Saved:
        """The utility and the sums."""
        return Saved({"utility": self.utility.tolist()}, self.arrays())

    @classmethod
    def from_state(cls, packed: Packed) -> "Decisions":
        """The decisions again."""
        decisions = cls(packed.plain["utility"])
        decisions.restore(packed.arrays({"sums": Shape(decisions.sums.shape, low=0.0)}))
        return decisions


def lost(decisions: Decisions, costs: str) -> str:
    """What acting on forecasts has lost, as a sentence."""
    regret = decisions.swap_regret / decisions.weight
    return (
        f"with costs of {costs} (acting from {decisions.thresholds[0]:.3g} on), acting on these forecasts loses "
        f"{decisions.mean_loss:.4g} a row, of which {regret:.2g} is swap regret: what the other action would have "
        "saved where one was taken"
    )


def saved(before: Decisions, after: Decisions, costs: str) -> str:
    """What acting on the second forecasts instead of the first would have saved, as a sentence."""
    if not before.mean_loss > 0.0:
        return f"with costs of {costs}, acting on the model lost nothing"
    change = 1.0 - after.mean_loss / before.mean_loss
    verb = "saved" if change >= 0.0 else "cost"
    more = "" if change >= 0.0 else " more"
    return (
        f"with costs of {costs} (acting from {before.thresholds[0]:.3g} on), acting on the new forecasts would have "
        f"{verb} {100.0 * abs(change):.1f} %{more}: {after.mean_loss:.4g} a row instead of {before.mean_loss:.4g}"
    )

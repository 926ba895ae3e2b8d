"""The roles that parts play for each other. Parts meet only here: nothing inherits, and each can be replaced."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from swapcal.typing import Float64Array, FloatLike, IntArray, Spec

if TYPE_CHECKING:
    from swapcal.properties.base import Wording


@runtime_checkable
class Elicitable(Protocol):
    """A property of a distribution that some loss elicits: mean, quantile, expectile, ...

    The identification function V(p, y) has mean zero exactly at the property's value, is scaled into [-1, 1], and obeys
    the sign conditions V(domain[0], y) <= 0 <= V(domain[1], y) for every label y in [low, high].
    """

    @property
    def low(self) -> float:
        """Smallest label."""

    @property
    def high(self) -> float:
        """Largest label."""

    @property
    def domain(self) -> tuple[float, float]:
        """Interval of the property's values, so of forecasts and hints."""

    @property
    def lipschitz(self) -> float | None:
        """Lipschitz constant of p -> V(p, y) with p measured in widths of the domain; None where there is none."""

    @property
    def monotone(self) -> bool:
        """Whether V(., y) is nondecreasing for every label."""

    @property
    def continuous(self) -> bool:
        """Whether V(., y) is continuous for every label; where it is not, labels that heap on a value do harm."""

    @property
    def assumption(self) -> str:
        """What the guarantee assumes of the labels, in words."""

    def identification(self, p: FloatLike, y: FloatLike) -> FloatLike:
        """V(p, y) in [-1, 1]; numbers or arrays that broadcast."""

    def loss(self, p: FloatLike, y: FloatLike) -> FloatLike:
        """The consistent loss, in the form in which people report it."""

    def loss_weight(self, p: FloatLike) -> FloatLike:
        """The h(p) >= 0 of Osband's principle: the derivative of the loss in p is h(p) V(p, y)."""

    def value(self, y: Float64Array) -> float:
        """The property of the empirical distribution of `y`."""

    def invalid_labels(self, y: Float64Array) -> str | None:
        """Why some label in `y` is not allowed (a clause for an error message), or None."""

    def spec(self) -> Spec:
        """Plain data from which `properties.from_spec` rebuilds the object."""

    @property
    def wording(self) -> "Wording":
        """How to speak of it, and in which units."""

    @property
    def kernel(self) -> Mapping[str, float | int | str]:
        """What compiled code needs to know of V; its `property` is empty where V has no compiled twin."""

    @property
    def is_conditional_mean(self) -> bool:
        """Whether it is the mean under the squared error, which a regressor forecasts by itself."""

    def binary_p(self, p: FloatLike) -> FloatLike | None:
        """The p' of V = p' - y', where V has two values for every label; None where it has more."""

    def outcome(self, p: FloatLike, v: FloatLike) -> FloatLike | None:
        """The label y for which V(p, y) is `v`, where that is linear in v; else None."""


class Row(NamedTuple):
    """The non-zero entries of one context: positions in increasing order, and their values."""

    indices: IntArray
    values: Float64Array


class Rows(NamedTuple):
    """Many contexts in compressed sparse rows: row t holds entries indptr[t] to indptr[t + 1]."""

    indptr: IntArray
    indices: IntArray
    values: Float64Array

    @property
    def numbers(self) -> IntArray:
        """The row of each entry."""
        return np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))


@dataclass(frozen=True, slots=True)
class Tally:
    """What a theorem needs to know of a run; `counts` and what follows are None for a bound ahead of it.

    `rounding` is sup_f of the signed rounding of each value. `drift` is by how much the potential may have risen beyond
    the draws, with what is reserved for pending outcomes; `peak` the largest that it was before a draw. `luck` is
    how much more the draws could have added to the potential than they have, and `reserved` the part of the drift that
    is. Where something else was shown, `shown` are the visits of what was shown, and `rounding` leads from the evidence
    to it. Ahead of a run `sizes` are the largest |V| that evidence of each value can have; 1 where they are None.
    Where learners answer, `reach` makes of the deviations of some values what their error is at most.
    `scale` is what no |V| of the evidence has exceeded, and `doublings` how often that was doubled.
    """

    n_values: int
    n_functions: int
    n_rounds: int
    counts: Float64Array | None = None
    spread: Float64Array | None = None
    rounding: Float64Array | None = None
    drift: float = 0.0
    peak: float = 0.0
    shown: Float64Array | None = None
    luck: float | None = None
    reserved: float = 0.0
    sizes: Float64Array | None = None
    reach: Callable[[Float64Array, Any], Float64Array] | None = None
    scale: float = 1.0
    doublings: float = 0.0


class Evidence(Protocol):
    """What the bins of a grid have gathered: the state of a hypothesis class inside a forecaster."""

    def phi(self, bin: int, row: Row) -> float:
        """Phi_i(x): the evidence of bin `bin` in the direction of this context; positive: forecasts were too high."""

    def record(self, bin: int, row: Row, v: float) -> None:
        """Add one round: the context `row` was seen with identification `v` while bin `bin` was played."""

    def level(self, bin: int, row: Row) -> float:
        """Logarithm of the largest potential of an active function in the bin; infinite if no hint is trusted."""

    def grow(self, capacity: int) -> None:
        """Make room for the evidence of `capacity` values; new ones have none."""

    def drift(self, bin: int, row: Row, phi: float, v: float) -> float:
        """By how much a round may raise the potential beyond its draw: it had evidence `phi` then, and has more now."""

    def reserve(self, phi: float) -> float:
        """What a draw at evidence `phi` may still take away from the potential while its outcome is pending."""

    @property
    def theorem(self) -> str:
        """Name of the theorem that bounds the evidence."""

    def bound(self, tally: Tally, r: float, delta: float) -> float:
        """What the theorem promises of the evidence, with probability 1 - delta."""

    @property
    def counts(self) -> Float64Array:
        """Visits of each bin."""

    def spread(self) -> Float64Array:
        """The spread that the theorem needs, per bin."""

    def arrays(self) -> dict[str, Float64Array]:
        """The whole state, as arrays that may be saved."""

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Continue from the state in `arrays`."""


class Hypotheses(Protocol):
    """A class of functions of the context, given through a vector x: f_j(x) = x_j, or f_theta(x) = <theta, x>."""

    @property
    def n(self) -> int:
        """Length of the context vector."""

    def row(self, x: Any) -> Row:
        """One context, checked and in the class's own scale."""

    def rows(self, X: Any, n_rows: int) -> Rows:
        """Many contexts at once, checked; the same numbers as `row` for each."""

    def supremum(self, sums: Float64Array) -> Float64Array:
        """The largest |sum_t f(x_t) v_t| over f, from vectors `sums[..., :] = sum_t x_t v_t`; exact."""

    @property
    def dual(self) -> str:
        """The norm of `sums` that the supremum is: "max" or "euclidean"."""

    def start(self, capacity: int) -> Evidence:
        """No evidence, and room for that of `capacity` values."""

    def spec(self) -> Spec:
        """Plain data from which the object can be rebuilt."""


class HintState(Protocol):
    """What a learning hint has learned."""

    def said(self, row: Row, features: Float64Array | None, base: float | None) -> tuple[float, bytes]:
        """The hint for this round, in the property's domain, and whatever the update will need of it; changes nothing.

        The bytes travel with the forecast, so that a late outcome is scored by what was said.
        """

    def update(
        self,
        row: Row,
        features: Float64Array | None,
        base: float | None,
        y: float,
        said: float | None = None,
        scores: bytes | None = None,
    ) -> None:
        """Learn from a round whose outcome is `y`: the arguments and the answer of `said`.

        Without an answer, what would be said now counts as said.
        """

    def arrays(self) -> dict[str, Float64Array]:
        """The whole state, as arrays that may be saved."""

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Continue from the state in `arrays`."""


class LearningHint(Protocol):
    """A model that learns beside the engine and gives it a forecast to start from."""

    @property
    def n_features(self) -> int:
        """Length of the extra feature vector that it takes each round."""

    def start(self, property: Elicitable, n_inputs: int) -> HintState:
        """A state that has learned nothing, for contexts of length `n_inputs`."""

    def spec(self) -> Spec:
        """Plain data from which the object can be rebuilt."""

"""What the paper asks of an expert algorithm, and the checks that its implementations share."""

import math
from typing import Any, Protocol, runtime_checkable

import numpy as np

from swapcal import inputs
from swapcal.errors import InvalidInput
from swapcal.typing import Float64Array, FloatLike

# Expected gains are sums of products: they may leave [-1, 1] by a few units in the last place, and are cut back.
_ROUNDING = 1e-12
_LARGEST = 10**15


@runtime_checkable
class Experts(Protocol):
    """The subroutine ALG of Algorithms 1 and 2: weights out, gains in, and a promise about their difference."""

    @property
    def weights(self) -> Float64Array:
        """A probability vector over the experts, for the coming round."""

    def update(self, gains: Float64Array) -> None:
        """End a round; `gains` lie in [-1, 1], and larger is better."""

    def regret_bound(self, squares: FloatLike) -> Float64Array:
        """For each expert i, a bound on sum_t (gain_i - <weights, gains>) if sum_t gain_i^2 is at most `squares`."""


def checked_whole(value: Any, name: str) -> int:
    """A whole number from 1 to 10^15."""
    if inputs.integer(value, name, 1) > _LARGEST:
        raise InvalidInput(f"{name} must be a whole number from 1 to 10^15; got {inputs.short_repr(value)}")
    return int(value)


def checked_prior(prior: Any, n_experts: int) -> Float64Array:
    """A positive probability vector; None stands for the uniform one."""
    if prior is None:
        return _frozen(np.full(n_experts, 1.0 / n_experts))
    array = inputs.vector(prior, "prior", n_experts)
    if not (array > 0.0).all() or not math.isclose(float(array.sum()), 1.0, abs_tol=1e-9):
        raise InvalidInput(
            f"prior must be positive and sum to 1; its least entry is {array.min()}, its sum {array.sum()}"
        )
    scaled: Float64Array = array / array.sum()
    return _frozen(scaled)


def checked_squares(squares: Any, n_experts: int) -> Float64Array:
    """Sums of squares: one number for all experts, or one for each."""
    sums = inputs.floats(squares, "squares", "a flat sequence of numbers")
    array = inputs.vector(np.broadcast_to(sums, n_experts) if sums.ndim == 0 else sums, "squares", n_experts)
    if not (array >= 0.0).all():
        raise InvalidInput(f"squares are sums of squared gains and cannot be negative; got {array.min()}")
    return array


def checked_gains(gains: Any, indices: Any, n_experts: int) -> Float64Array:
    """All gains of a round in a new array; with `indices`, `gains` are those of these experts and the rest are 0."""
    if indices is None:
        result = inputs.vector(gains, "gains", n_experts).copy()
    else:
        inputs.vector(indices, "indices")
        where = np.asarray(indices)
        if where.size and where.dtype.kind not in "iu":
            raise InvalidInput(f"indices must be a flat sequence of whole numbers; got {where.dtype}")
        if where.size and not 0 <= where.min() <= where.max() < n_experts:
            raise InvalidInput(f"indices must lie in 0 to {n_experts - 1}; got {where.min()} to {where.max()}")
        if len(np.unique(where)) != len(where):
            raise InvalidInput("indices name an expert twice; add its gains up, and name it once")
        result = np.zeros(n_experts)
        result[where.astype(np.intp)] = inputs.vector(gains, "gains", len(where))
    size = np.abs(result)
    at = int(size.argmax())
    if size[at] <= 1.0:
        return result
    if size[at] > 1.0 + _ROUNDING:
        raise InvalidInput(
            f"gains must lie in [-1, 1]; expert {at} has {result[at]}: divide by the largest gain possible"
        )
    clipped: Float64Array = np.clip(result, -1.0, 1.0)
    return clipped


def _frozen(array: Float64Array) -> Float64Array:
    """`array`, which nobody may change from now on."""
    array.flags.writeable = False
    return array

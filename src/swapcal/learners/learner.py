"""The role of an online agnostic learner (Definition 1 of the paper), and how one is rebuilt from plain data."""

from typing import Protocol

from swapcal.errors import StateFileError
from swapcal.roles import Row
from swapcal.typing import Float64Array, Spec

__all__ = ["Learner", "from_spec"]


class Learner(Protocol):
    """Predicts numbers kappa_1, kappa_2, ... in [-1, 1] from contexts, as well as the best function of a class F.

    In each round it sees a context x_t, answers q_t(x_t) in [-1, 1], and is then told kappa_t. Whatever the contexts
    and numbers are, and however they depend on its answers, after every number n of rounds

        sup over f in F of sum_t f(x_t) kappa_t  <=  sum_t q_t(x_t) kappa_t + Reg(n),   Reg(n) = `regret(n)`.

    `Oracle` keeps one or two copies per bin, so a learner describes and its state remembers: a state is a flat array of
    finite numbers, always of the same length, from which `predict` reads and into which `update` writes. The learner
    itself holds nothing that changes. `swapcal.checks.check_learner` tests all of this on your own.

    Examples
    --------
    A learner of your own takes ten lines. This one follows the regularized leader in the unit ball, theta = S /
    max(||S||, sqrt(t)) for the sum S of kappa x in t rounds; its regret is at most (1 / 2 eta_n) + sum_t eta_t / 2
    with the rates eta_t = 1 / sqrt(t), that is 1.5 sqrt(n).

    >>> import numpy as np
    >>> class Leader:
    ...     n, odd, dual = 2, True, "euclidean"
    ...     def start(self):
    ...         return np.zeros(self.n + 1)
    ...     def predict(self, state, row):
    ...         length = max(np.linalg.norm(state[:-1]), np.sqrt(state[-1]), 1.0)
    ...         return float(state[row.indices] @ row.values) / length
    ...     def update(self, state, row, kappa):
    ...         state[row.indices] += kappa * row.values
    ...         state[-1] += 1.0
    ...     def regret(self, n_rounds):
    ...         return 1.5 * np.sqrt(n_rounds)
    ...     def spec(self):
    ...         return {"kind": "Leader"}

    >>> import swapcal as sc
    >>> from swapcal.hypotheses import Oracle
    >>> forecaster = sc.Forecaster(sc.Mean(), Oracle(Leader()), horizon=500, seed=1)
    >>> for t in range(500):
    ...     forecaster.update(forecaster.predict([0.6, 0.8 * (t % 2)]), 0.9 if t % 2 else 0.2)
    >>> bool(forecaster.error() < forecaster.guarantee(0.05) < 500)
    True

    References
    ----------
    Ben-David, Pal, Shalev-Shwartz (2009), Agnostic online learning; Beygelzimer, Kale, Luo (2015), Optimal and adaptive
    algorithms for online boosting; Definition 1 of Hu, Luo, Senapati, Sharan, Efficient Swap Multicalibration of
    Elicitable Properties.
    """

    @property
    def n(self) -> int:
        """Length of the context vector."""

    @property
    def odd(self) -> bool:
        """Whether -kappa in every round gives exactly -q in every round; then one copy per bin is enough."""

    @property
    def dual(self) -> str:
        """The class F, by the norm of sum_t x_t kappa_t that is its supremum.

        "max": the n entries of the context, |x_j| <= 1. "euclidean": all <theta, x> with ||theta|| <= 1, ||x|| <= 1.
        """

    def start(self) -> Float64Array:
        """The state of a copy that has seen nothing: a new flat array."""

    def predict(self, state: Float64Array, row: Row) -> float:
        """q(x) in [-1, 1], but for rounding; changes nothing."""

    def update(self, state: Float64Array, row: Row, kappa: float) -> None:
        """Learn in place that `kappa` in [-1, 1] came with this context."""

    def regret(self, n_rounds: Float64Array) -> Float64Array:
        """The bound Reg(n) for each entry n of `n_rounds`: not negative, and nondecreasing in n."""

    def spec(self) -> Spec:
        """Plain data that tells learners apart."""


def from_spec(spec: Spec) -> Learner:
    """Rebuild a learner of this package from its `spec()`; code of your own is never in a state file.

    Parameters
    ----------
    spec : dict
        What `learner.spec()` gave.

    Returns
    -------
    Learner
        Equal to the one that was described.

    Examples
    --------
    >>> from swapcal.learners import GradientDescent
    >>> from_spec(GradientDescent(3).spec())
    GradientDescent(n=3)
    """
    from swapcal import learners

    kinds = {kind.__name__: kind for kind in (learners.GradientDescent, learners.MultiplicativeWeights)}
    arguments = dict(spec)
    name = arguments.pop("kind", None)
    if name not in kinds:
        raise StateFileError(
            f"the learner {name!r} is not one of this package ({', '.join(sorted(kinds))}); "
            "if it is your own, pass hypotheses=Oracle(your learner) when loading"
        )
    try:
        learner: Learner = kinds[name](**arguments)
    except (TypeError, ValueError) as error:
        raise StateFileError(f"the learner {name!r} cannot be rebuilt from {arguments!r}: {error}") from error
    return learner

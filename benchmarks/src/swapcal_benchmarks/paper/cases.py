"""What is measured: the paper's two algorithms, its two learners, three properties."""

from collections.abc import Callable
from dataclasses import dataclass

from swapcal.hypotheses import Finite, Linear
from swapcal.learners import GradientDescent, MultiplicativeWeights
from swapcal.paper.algorithms import Algorithm1, Algorithm2
from swapcal.properties import Expectile, Mean, Quantile
from swapcal.protocols import Elicitable, Hypotheses
from swapcal_benchmarks.paper.known_laws import KnownLaws, binary_scene, narrow_scene, wide_scene

__all__ = [
    "ALGORITHMS",
    "LEVEL",
    "PROPERTIES",
    "Maker",
    "PaperAlgorithm",
    "PaperCase",
    "all_cases",
    "finite",
    "functions_of",
    "gradient",
    "narrow_cases",
    "weights",
]

PaperAlgorithm = Algorithm1 | Algorithm2
Maker = Callable[[Elicitable, int, int, float, int], PaperAlgorithm]

LEVEL = 0.7
"""Of the quantile; the expectile's is 0.8, on the same labels."""


def finite(property: Elicitable, n: int, horizon: int, r: float, seed: int) -> PaperAlgorithm:
    """Algorithm 1."""
    return Algorithm1(property, n, horizon=horizon, r=r, seed=seed)


def weights(property: Elicitable, n: int, horizon: int, r: float, seed: int) -> PaperAlgorithm:
    """Algorithm 2 with Algorithm 3 for its learner."""
    return Algorithm2(property, MultiplicativeWeights(n), horizon=horizon, r=r, seed=seed)


def gradient(property: Elicitable, n: int, horizon: int, r: float, seed: int) -> PaperAlgorithm:
    """Algorithm 2 with Algorithm 4 for its learner."""
    return Algorithm2(property, GradientDescent(n), horizon=horizon, r=r, seed=seed)


ALGORITHMS: dict[str, Maker] = {"Alg. 1, finite": finite, "Alg. 2, finite": weights, "Alg. 2, linear": gradient}
PROPERTIES: dict[str, Elicitable] = {
    "mean": Mean(),
    f"quantile {LEVEL}": Quantile(LEVEL),
    "expectile 0.8": Expectile(0.8),
}


def functions_of(method: PaperAlgorithm) -> Hypotheses:
    """The class that the errors are over; a learner's own is known through its learner alone."""
    if isinstance(method, Algorithm1):
        return method.hypotheses
    return (Linear if isinstance(method.learner, GradientDescent) else Finite)(method.hypotheses.n)


@dataclass(frozen=True, slots=True)
class PaperCase:
    """One algorithm, one class, one property, by names that a table can show."""

    algorithm: str
    property_name: str
    make: Maker
    elicitable: Elicitable
    n: int = 4
    density: float | None = None

    @property
    def linear(self) -> bool:
        """Whether the class is the linear one."""
        return self.algorithm.endswith("linear")

    def scene(self, n_rounds: int, seed: int) -> KnownLaws:
        """Binary labels for the mean, labels with a density for the others: narrow ones if `density` is given."""
        if self.density is not None:
            return narrow_scene(n_rounds, n=self.n, seed=seed, level=LEVEL, density=self.density, linear=self.linear)
        if self.property_name == "mean":
            return binary_scene(n_rounds, n=self.n, seed=seed, linear=self.linear)
        return wide_scene(n_rounds, n=self.n, seed=seed, level=LEVEL, linear=self.linear)

    def method(self, n_rounds: int, r: float, seed: int) -> PaperAlgorithm:
        """The algorithm, before its first round."""
        return self.make(self.elicitable, self.n, n_rounds, r, seed)


def narrow_cases() -> tuple[PaperCase, ...]:
    """The quantile, with labels of density 4, so narrow that few bins are narrower."""
    name = f"quantile {LEVEL}"
    return tuple(PaperCase(a, name, make, PROPERTIES[name], density=4.0) for a, make in ALGORITHMS.items())


def all_cases() -> tuple[PaperCase, ...]:
    """Three algorithms on three properties."""
    return tuple(PaperCase(a, p, make, prop) for a, make in ALGORITHMS.items() for p, prop in PROPERTIES.items())

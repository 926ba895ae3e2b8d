"""Online agnostic learners: what `Oracle` asks for a function that correlates with the errors of a bin."""

from swapcal.learners.gradient_descent import GradientDescent
from swapcal.learners.learner import Learner, from_spec
from swapcal.learners.multiplicative_weights import MultiplicativeWeights

__all__ = ["GradientDescent", "Learner", "MultiplicativeWeights", "from_spec"]

"""The paper to the letter: its two algorithms and the experts they stand on. Slow, and the measure of the rest."""

from swapcal.paper.algorithms import Algorithm1, Algorithm2
from swapcal.paper.msmwc import Experts, MsMwC, MsMwCMaster

__all__ = ["Algorithm1", "Algorithm2", "Experts", "MsMwC", "MsMwCMaster"]

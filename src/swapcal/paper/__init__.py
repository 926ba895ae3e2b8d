"""The paper to the letter: its two algorithms and the experts they stand on. Slow, and the measure of the rest."""

from swapcal.paper.algorithm1 import Algorithm1
from swapcal.paper.algorithm2 import Algorithm2
from swapcal.paper.experts import Experts
from swapcal.paper.msmwc import MsMwC, MsMwCMaster

__all__ = ["Algorithm1", "Algorithm2", "Experts", "MsMwC", "MsMwCMaster"]

"""The paper to the letter: its expert algorithm, and what is built on it."""

from swapcal.paper.experts import Experts
from swapcal.paper.master import MsMwCMaster
from swapcal.paper.msmwc import MsMwC

__all__ = ["Experts", "MsMwC", "MsMwCMaster"]

"""How a finite class weighs its evidence: potentials whose expected change is never positive."""

from swapcal.potentials.adanormalhedge import AdaNormalHedge
from swapcal.potentials.exponential import Exponential
from swapcal.potentials.pnorm import PNorm
from swapcal.potentials.potential import Potential, from_spec
from swapcal.potentials.squint import Squint

__all__ = ["AdaNormalHedge", "Exponential", "PNorm", "Potential", "Squint", "from_spec"]

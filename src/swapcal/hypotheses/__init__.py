"""Classes of functions against which forecasts are calibrated, and the evidence they gather."""

from swapcal.hypotheses.finite import Finite
from swapcal.hypotheses.groups import Groups
from swapcal.hypotheses.linear import Linear
from swapcal.hypotheses.numeric import Numeric
from swapcal.hypotheses.oracle import Oracle
from swapcal.hypotheses.spec import from_spec, unlearned

__all__ = ["Finite", "Groups", "Linear", "Numeric", "Oracle", "from_spec", "unlearned"]

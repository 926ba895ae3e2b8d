"""Classes of functions against which forecasts are calibrated, and the evidence they gather."""

from swapcal.hypotheses.finite import Finite
from swapcal.hypotheses.linear import Linear
from swapcal.hypotheses.oracle import Oracle
from swapcal.hypotheses.spec import from_spec

__all__ = ["Finite", "Linear", "Oracle", "from_spec"]

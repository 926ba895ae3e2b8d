"""Rules that every part must obey: run them on your own parts, as this package does on its own.

>>> from swapcal import Linear
>>> check(Linear(3))
"""

from swapcal.checks.check_rules import CheckFailed
from swapcal.checks.choice import check
from swapcal.checks.forecasters import check_forecaster
from swapcal.checks.hints import check_hint
from swapcal.checks.hypotheses import check_hypotheses
from swapcal.checks.learners import check_learner
from swapcal.checks.potentials import check_potential
from swapcal.checks.properties import check_property
from swapcal.checks.trial import Trial

__all__ = [
    "CheckFailed",
    "Trial",
    "check",
    "check_forecaster",
    "check_hint",
    "check_hypotheses",
    "check_learner",
    "check_potential",
    "check_property",
]

"""Rules that every part must obey: run them on your own parts, as this package does on its own.

>>> from swapcal import Linear
>>> check(Linear(3))
"""

from collections.abc import Callable
from typing import Any

from swapcal.checks.forecasters import check_forecaster
from swapcal.checks.hints import check_hint, check_learner
from swapcal.checks.hypotheses import check_hypotheses
from swapcal.checks.properties import check_potential, check_property
from swapcal.checks.rules import CheckFailed, Trial, members, missing
from swapcal.errors import InvalidInput
from swapcal.learners import Learner
from swapcal.potentials import Potential
from swapcal.protocols import Elicitable, Hypotheses, LearningHint

_ROLES: tuple[tuple[type, Callable[[Any], None]], ...] = (
    (Elicitable, check_property),
    (Potential, check_potential),
    (Hypotheses, check_hypotheses),
    (LearningHint, check_hint),
    (Learner, check_learner),
)


def check(part: Any) -> None:
    """Run every check of the role that `part` plays; `CheckFailed` names the rule that it breaks, and why it exists.

    A role is recognized by its members, not by inheritance: property, potential, class of functions, learning hint,
    learner. A function without arguments, or a class with `predict` and `update`, is taken for a factory of
    forecasters.

    Parameters
    ----------
    part : object
        What is checked: a part, or a factory of forecasters.

    Raises
    ------
    CheckFailed
        At the first rule that is broken.
    InvalidInput
        If the object plays none of the roles.

    Examples
    --------
    >>> from swapcal import Finite, Forecaster, Quantile
    >>> check(Quantile(0.9))
    >>> check(Finite(4))
    >>> check(lambda: Forecaster(Quantile(0.9), Finite(4), seed=3))
    """
    is_class = isinstance(part, type)
    for role, checks in _ROLES:
        if not is_class and not missing(part, role):
            checks(part)
            return
    forecasts = hasattr(part, "predict") and hasattr(part, "update")
    if forecasts and not is_class:
        raise InvalidInput("checks need many forecasters; pass a function that makes one, without arguments")
    if forecasts or (callable(part) and not is_class):
        check_forecaster(part)
        return
    nearest = min((role for role, _ in _ROLES), key=lambda role: len(missing(part, role)) / len(members(role)))
    raise InvalidInput(
        f"{part!r} plays none of the roles that can be checked; pass an object, not its class. It is nearest to "
        f"{nearest.__name__}, for which it lacks {', '.join(missing(part, nearest)) or 'nothing but being made'}"
    )


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

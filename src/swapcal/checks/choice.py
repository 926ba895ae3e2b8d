"""Which checks an object gets: those of the role that it plays."""

from collections.abc import Callable
from typing import Any

from swapcal.checks.check_rules import members, missing
from swapcal.checks.forecasters import check_forecaster
from swapcal.checks.hints import check_hint
from swapcal.checks.hypotheses import check_hypotheses
from swapcal.checks.learners import check_learner
from swapcal.checks.potentials import check_potential
from swapcal.checks.properties import check_property
from swapcal.errors import InvalidInput
from swapcal.learners import Learner
from swapcal.potentials import Potential
from swapcal.roles import Elicitable, Hypotheses, LearningHint

__all__ = ["check"]

_ROLES: tuple[tuple[type, Callable[[Any], None]], ...] = (
    (Elicitable, check_property),
    (Potential, check_potential),
    (Hypotheses, check_hypotheses),
    (LearningHint, check_hint),
    (Learner, check_learner),
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
    made = isinstance(part, type)
    for role, checks in _ROLES:
        if not made and not missing(part, role):
            checks(part)
            return
    forecasts = hasattr(part, "predict") and hasattr(part, "update")
    if forecasts and not made:
        raise InvalidInput("checks need many forecasters; pass a function that makes one, without arguments")
    if forecasts or (callable(part) and not made):
        check_forecaster(part)
        return
    nearest = min((role for role, _ in _ROLES), key=lambda role: len(missing(part, role)) / len(members(role)))
    raise InvalidInput(
        f"{part!r} plays none of the roles that can be checked; pass an object, not its class. It is nearest to "
        f"{nearest.__name__}, for which it lacks {', '.join(missing(part, nearest)) or 'nothing but being made'}"
    )

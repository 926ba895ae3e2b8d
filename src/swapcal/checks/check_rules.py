"""What a rule is, and how a broken one is reported."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn, TypeVar

from swapcal.errors import InvalidInput

__all__ = ["CheckFailed", "apply", "expect", "members", "missing"]

S = TypeVar("S")


class CheckFailed(AssertionError):
    """A part breaks a rule. The message says which rule, how it was broken, and why the rule exists.

    Attributes
    ----------
    rule : str
        Name of the rule, as `check_exceptions` would name it.
    """

    def __init__(self, message: str, *, rule: str) -> None:
        super().__init__(message)
        self.rule = rule


class _Broken(Exception):
    """How a rule was broken, on its way to the report."""


def expect(condition: Any, how: str) -> None:
    """Go on if `condition` holds; otherwise the rule is broken in the way that `how` tells."""
    if not condition:
        raise _Broken(how)


def apply(rules: Iterable[Callable[[S], None]], subject: S, part: object) -> None:
    """Apply rules to a subject made from `part`, and raise `CheckFailed` at the first one that is broken.

    A rule is a function whose docstring says it in one sentence and then why it exists. A part excuses itself from a
    rule with an attribute `check_exceptions`, a mapping from the rule's name to the reason.
    """
    chosen = list(rules)
    excused = _excused(part, {rule.__name__ for rule in chosen})
    for rule in chosen:
        if rule.__name__ in excused:
            continue
        try:
            rule(subject)
        except _Broken as broken:
            _fail(rule, part, str(broken), None)
        except Exception as error:
            # Whatever a part raises where it should have worked is the part's failure, not the checker's.
            _fail(rule, part, f"it raised {type(error).__name__}: {error}", error)


def _fail(rule: Callable[..., None], part: object, how: str, cause: Exception | None) -> NoReturn:
    says, _, because = (inspect.getdoc(rule) or rule.__name__).partition("\n")
    reason = " ".join(because.split())
    raise CheckFailed(
        f"{part!r} breaks the rule {rule.__name__} ({says}): {how}. Why the rule exists: {reason}", rule=rule.__name__
    ) from cause


def _excused(part: object, known: set[str]) -> Mapping[str, str]:
    excused = getattr(part, "check_exceptions", {})
    if not isinstance(excused, Mapping):
        raise InvalidInput(f"check_exceptions must map names of rules to reasons; got {excused!r}")
    for name, reason in excused.items():
        if name not in known:
            raise InvalidInput(f"check_exceptions names {name!r}; the rules are {', '.join(sorted(known))}")
        if not isinstance(reason, str) or not reason.strip():
            raise InvalidInput(f"check_exceptions must give a reason, in words, for {name!r}; got {reason!r}")
    return excused


def members(role: type) -> tuple[str, ...]:
    """The names that a role of `swapcal.roles` asks for."""
    return tuple(name for name in vars(role) if not name.startswith("_"))


def missing(part: object, role: type) -> list[str]:
    """Those of them that `part` has not."""
    return [name for name in members(role) if not hasattr(part, name)]

"""Text from files and names, made safe for a terminal: what would steer it is written out instead."""

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar
from unicodedata import category

__all__ = ["cleaned", "printable"]

T = TypeVar("T")

_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that change the direction of the text behind them, so that it reads as something else."""


def printable(text: str) -> str:
    r"""`text` with control characters, lone halves of surrogate pairs and changes of direction written out.

    Examples
    --------
    >>> print(printable("caf\u00e9\x1b[2J"))
    café\x1b[2J
    """
    if text.isprintable():
        return text
    return "".join(
        one.encode("unicode_escape").decode() if one in _TURNING or category(one) in ("Cc", "Cs") else one
        for one in text
    )


def cleaned(value: T) -> T:
    """Plain data and dataclasses with every text in them `printable`."""
    made: Any = value
    if isinstance(value, str):
        made = printable(value)
    elif isinstance(value, dict):
        made = {cleaned(key): cleaned(each) for key, each in value.items()}
    elif type(value) is list:
        made = [cleaned(each) for each in made]
    elif type(value) is tuple:
        made = tuple(cleaned(each) for each in made)
    elif is_dataclass(value) and not isinstance(value, type):
        texts = {one.name: getattr(value, one.name) for one in fields(value) if one.init}
        changed = {name: cleaned(each) for name, each in texts.items() if isinstance(each, (str, dict, list, tuple))}
        inner = {name: cleaned(each) for name, each in texts.items() if is_dataclass(each) and _ours(each)}
        made = replace(made, **changed, **inner) if changed or inner else value
    result: T = made
    return result


def _ours(value: Any) -> bool:
    """Whether it is a part of a result; properties and losses keep their own words."""
    return type(value).__module__.startswith(("swapcal.audit", "swapcal.jobs", "swapcal.words"))

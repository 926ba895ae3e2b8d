"""Constructor arguments of dataclasses: how they are printed, and how they are saved."""

import dataclasses
from typing import Any

from swapcal.typing import Spec

__all__ = ["call", "data"]


def _arguments(obj: Any) -> list[tuple[dataclasses.Field[Any], Any]]:
    return [(field, getattr(obj, field.name)) for field in dataclasses.fields(obj) if field.init]


def call(obj: Any) -> str:
    """The constructor call that makes the dataclass `obj`, without arguments that have their default value."""
    given = [(field, value) for field, value in _arguments(obj) if value != field.default]
    return f"{type(obj).__name__}({', '.join(f'{f.name}={v!r}' if f.kw_only else repr(v) for f, v in given)})"


def data(obj: Any) -> Spec:
    """The arguments of the dataclass `obj` as plain data, with its class under "kind"."""
    return {"kind": type(obj).__name__} | {field.name: value for field, value in _arguments(obj)}

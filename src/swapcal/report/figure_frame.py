"""The numbers behind a figure as a data frame of whichever library is there."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Literal, cast

from swapcal.errors import InvalidInput, MissingExtra

__all__ = ["BACKENDS", "frame"]

BACKENDS = ("pandas", "polars", "pyarrow")
"""Libraries that can hold a frame, in the order in which they are looked for."""


def frame(columns: Mapping[str, Sequence[Any]], backend: str | None = None) -> Any:
    """`columns` as a frame of `backend`: "pandas", "polars" or "pyarrow"; None takes the first that is installed."""
    if backend is not None and backend not in BACKENDS:
        raise InvalidInput(
            f"backend must be one of {', '.join(BACKENDS)}, or None for whichever is there; got {backend!r}"
        )
    if find_spec("narwhals") is None:
        raise MissingExtra("frames need narwhals: install with  pip install 'swapcal[report]'")
    installed = [name for name in BACKENDS if find_spec(name) is not None]
    chosen = backend if backend is not None else next(iter(installed), None)
    if chosen is None:
        raise MissingExtra(f"frames need one of {', '.join(BACKENDS)}: install with  pip install pandas")
    if chosen not in installed:
        raise MissingExtra(f"{chosen} is not installed: install with  pip install {chosen}, or give another backend")
    import narwhals as nw

    return nw.from_dict(dict(columns), backend=cast(Literal["pandas", "polars", "pyarrow"], chosen)).to_native()

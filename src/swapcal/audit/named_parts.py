"""The state of something that is made of parts, as arrays under the names of the parts."""

from collections.abc import Mapping
from typing import Protocol

from swapcal.typing import Float64Array

__all__ = ["joined", "part_of", "take_over"]


class _NamedPart(Protocol):
    def arrays(self) -> dict[str, Float64Array]:
        """The whole state."""

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Go on from what `arrays` held."""


def joined(parts: Mapping[str, _NamedPart]) -> dict[str, Float64Array]:
    """The arrays of all parts, each under its part's name, a point and its own."""
    return {f"{name}.{key}": array for name, part in parts.items() for key, array in part.arrays().items()}


def take_over(parts: Mapping[str, _NamedPart], arrays: Mapping[str, Float64Array]) -> None:
    """Let every part go on from its arrays, as `joined` has named them."""
    for name, part in parts.items():
        part.restore(part_of(arrays, f"{name}."))


def part_of(arrays: Mapping[str, Float64Array], prefix: str) -> dict[str, Float64Array]:
    """The arrays whose names begin with `prefix`, under the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}

"""Every published method that the paper compares with, and what practitioners use, on one outer protocol.

A file in this folder with a class that has a `card` is a rival, and every table lists it; `__init__.pyi` has its line.
"""

from swapcal._exports import Exports

_names = Exports(__name__, __file__)

__all__ = sorted(_names.home)


def __getattr__(name: str) -> object:
    return _names.load(name)


def __dir__() -> list[str]:
    return __all__

"""Online forecasts that are calibrated for every group: swap multicalibration of any elicitable property."""

from swapcal._exports import Exports

_names = Exports(__name__, __file__)

__all__ = sorted(_names.home)


def __getattr__(name: str) -> object:
    return _names.load(name)


def __dir__() -> list[str]:
    return __all__

"""Online forecasts that are calibrated for everybody: swap multicalibration of any elicitable property."""

from swapcal.exports import Exports

_exports = Exports(__name__, __file__)

__all__ = sorted(_exports.home)


def __getattr__(name: str) -> object:
    return _exports.load(name)


def __dir__() -> list[str]:
    return __all__

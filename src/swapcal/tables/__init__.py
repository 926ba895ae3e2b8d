"""Tables in: files, frames and lists of records, read in batches; and columns that become codes, bands and rows."""

from swapcal.exports import Exports

_exports = Exports(__name__, __file__)

__all__ = sorted(_exports.home)


def __getattr__(name: str) -> object:
    return _exports.load(name)


def __dir__() -> list[str]:
    return __all__

"""What the compiled kernels need to know of a property."""

from typing import Any

from swapcal.properties.expectile import Expectile
from swapcal.properties.mean import Mean
from swapcal.properties.moment import Moment
from swapcal.properties.probability import Probability
from swapcal.properties.quantile import Quantile

_COMPILED = (Mean, Moment, Quantile, Expectile, Probability)


def has_kernel(property: Any) -> bool:
    """Whether V has a compiled twin; a user's own property has none."""
    return type(property) in _COMPILED


def constants(property: Any) -> dict[str, Any]:
    """The kind of V and its numbers, under the names that the kernels use."""
    low, high = property.domain if isinstance(property, Moment) else (property.low, property.high)
    return {
        "property": type(property).__name__ if has_kernel(property) else "",
        "label_low": property.low,
        "label_high": property.high,
        "width": high - low,
        "level": property.level if isinstance(property, (Quantile, Expectile)) else 0.0,
        "power": property.k if isinstance(property, Moment) else 1,
        "monotone": property.monotone,
        "domain_low": property.domain[0],
        "domain_high": property.domain[1],
    }

"""The parts that a stream's spec describes: property, groups, forecaster; and whether it makes sense as a whole."""

from hashlib import sha256
from typing import Any

import swapcal as sc
from swapcal.service.group_watch import GroupWatch
from swapcal.service.spec import StreamSpec

__all__ = ["check", "forecaster_of", "groups_of", "property_of"]

MOST_CELLS = 2_000_000
FIRST_BINS = 100


def property_of(spec: StreamSpec) -> Any:
    """The property; an `InvalidInput` where the spec makes no sense."""
    if not spec.low < spec.high:
        raise sc.InvalidInput(f"low must be below high; got {spec.low:g} and {spec.high:g}")
    for name, wanted in (("level", spec.property in ("quantile", "expectile")), ("order", spec.property == "moment")):
        given = getattr(spec, name) is not None
        if given != wanted:
            verb = "needs a" if wanted else "has no"
            raise sc.InvalidInput(f"property {spec.property!r} {verb} {name}; {'give' if wanted else 'leave out'} it")
    scale = {"low": spec.low, "high": spec.high}
    if spec.property == "probability":
        if (spec.low, spec.high) != (0.0, 1.0):
            raise sc.InvalidInput("a probability is of outcomes 0 and 1; leave out low and high, or take the mean")
        return sc.Probability()
    if spec.property == "moment":
        return sc.Moment(spec.order or 1, **scale)
    if spec.property in ("quantile", "expectile"):
        kind = sc.Quantile if spec.property == "quantile" else sc.Expectile
        return kind(spec.level or 0.5, **scale)
    return (sc.Mean if spec.property == "mean" else sc.Median)(**scale)


def groups_of(spec: StreamSpec) -> sc.Groups:
    """The groups, before any value was seen; an `InvalidInput` where the spec makes no sense."""
    groups = [one if isinstance(one, str) else tuple(one) for one in spec.groups]
    return sc.Groups(groups, limit=spec.group_limit, rare=spec.rare)


def forecaster_of(spec: StreamSpec, name: str) -> sc.Forecaster:
    """A forecaster that has seen nothing, over the positions of the groups.

    It takes vectors and not records: the stream places records itself, many at once, and vectors go to the kernels.
    Its identity, and the key of the seals on its forecasts, follow from the stream's name and seed: whoever builds it
    anew from the log gets a forecaster that knows the forecasts there as its own.
    """
    if spec.features and spec.hint != "learn":
        raise sc.InvalidInput("features are for a hint that learns; give hint = 'learn', or leave them out")
    if spec.jitter > spec.high - spec.low:
        raise sc.InvalidInput(f"jitter must be at most the width of the range, {spec.high - spec.low:g}")
    if spec.settle is not None and (spec.outcome_order == "arrival" or spec.settle > spec.room()):
        raise sc.InvalidInput(
            f"settle goes with outcome_order = 'forecast' and is at most `pending`, {spec.room()}; got {spec.settle}"
        )
    made = sc.Forecaster(
        property_of(spec),
        sc.Finite(1 + spec.group_limit),
        horizon=spec.horizon,
        bins=spec.bins,
        seed=0 if spec.seed is None else spec.seed,
        hint=sc.OnlineRegression(n_features=len(spec.features)) if spec.hint == "learn" else None,
        outside=spec.outside,
        jitter=spec.jitter,
        max_pending=spec.room(),
        stand_back=spec.stand_back,
    )
    parts = made.__getstate__()
    counters, _ = parts["snapshot"]
    key = sha256(f"swapcal stream {name} {spec.seed}".encode())
    counters["identity"], counters["key"] = sha256(key.digest()).hexdigest()[:16], key.hexdigest()
    made.__setstate__(parts)
    return made


def check(spec: StreamSpec) -> None:
    """An `InvalidInput` where the spec makes no sense, or would take more memory than a stream may."""
    bins = spec.bins or (FIRST_BINS if spec.horizon is None else 3.0 * spec.horizon ** (1.0 / 3.0))
    if bins * spec.group_limit > MOST_CELLS:
        raise sc.InvalidInput(
            f"{spec.group_limit} groups with about {bins:.0f} bins are more than {MOST_CELLS} cells; lower "
            "group_limit, bins or horizon"
        )
    groups = groups_of(spec)
    forecaster_of(spec, "")
    watching = spec.watching()
    if watching is not None:
        GroupWatch(watching, property_of(spec), groups)

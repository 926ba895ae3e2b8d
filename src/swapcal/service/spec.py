"""What a stream is: plain data from the configuration or from `PUT`, and the parts that it describes."""

import re
import secrets
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

import swapcal as sc
from swapcal.service.schemas import Scalar, StreamStatus

__all__ = ["MonitorSpec", "StreamAnswer", "StreamSpec", "check", "forecaster_of", "groups_of", "property_of", "seconds"]

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
DEFAULT_PENDING = 1_000_000
MOST_CELLS = 2_000_000
FIRST_BINS = 100
Span = Annotated[str, Meta(pattern=r"^[0-9]{1,6}[smhd]$", description="A time: 90s, 15m, 12h, 30d.")]
Column = Annotated[str, Meta(min_length=1, max_length=200)]


class MonitorSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """When to raise an alarm: a group's bias beyond `tolerance`, wrongly with probability at most `alpha`."""

    tolerance: Annotated[float, Meta(ge=0.0, le=1.0)] = 0.02
    alpha: Annotated[float, Meta(gt=0.0, lt=1.0)] = 0.05


class StreamSpec(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A stream: what is forecast, for whom, on top of what, and how late outcomes may come."""

    property: Annotated[
        Literal["probability", "mean", "median", "quantile", "expectile", "moment"],
        Meta(description="What is forecast."),
    ] = "probability"
    level: Annotated[float, Meta(gt=0.0, lt=1.0, description="Of a quantile or expectile.")] | None = None
    order: Annotated[int, Meta(ge=1, le=20, description="Of a moment.")] | None = None
    low: Annotated[float, Meta(ge=-1e12, le=1e12, description="Smallest outcome.")] = 0.0
    high: Annotated[float, Meta(ge=-1e12, le=1e12, description="Largest outcome.")] = 1.0
    groups: Annotated[
        list[Column | Annotated[list[Column], Meta(min_length=1, max_length=5)]],
        Meta(
            max_length=50, description="Columns, lists of columns for intersections, comparisons such as 'age >= 60'."
        ),
    ] = []
    group_limit: Annotated[int, Meta(ge=1, le=10_000, description="How many groups there can be.")] = 200
    rare: Annotated[int, Meta(ge=1, le=1_000_000, description="A value is a group once it is seen so often.")] = 1
    hint: Annotated[Literal["given", "learn"], Meta(description="'learn': a regression learns beside.")] = "given"
    features: Annotated[list[Column], Meta(max_length=100, description="Columns of numbers for the regression.")] = []
    horizon: Annotated[int, Meta(ge=1, le=10**9)] | None = None
    bins: Annotated[int, Meta(ge=11, le=1001)] | None = None
    outside: Annotated[Literal["error", "clip"], Meta(description="For outcomes and hints outside the range.")] = (
        "error"
    )
    jitter: Annotated[float, Meta(ge=0.0, le=1e12)] = 0.0
    pending: (
        Annotated[int, Meta(ge=1, le=100_000_000, description="How many cases can wait; one byte each.")] | None
    ) = None
    delay: Annotated[Span, Meta(description="Outcomes may come so late; then the case has expired.")] = "30d"
    cases_per_day: Annotated[int, Meta(ge=1, le=10**9, description="With `delay`, gives `pending`.")] | None = None
    keep: Annotated[Span, Meta(description="Cases are deleted when they are older.")] = "90d"
    monitor: MonitorSpec | None = None
    seed: Annotated[int, Meta(ge=0, le=2**53, description="Of the draws; secret, if not given.")] | None = None

    def room(self) -> int:
        """How many cases can wait: given, or twice what comes within `delay`, or a million."""
        if self.pending is not None:
            return self.pending
        if self.cases_per_day is None:
            return DEFAULT_PENDING
        return min(100_000_000, max(1000, int(2 * self.cases_per_day * seconds(self.delay) / 86_400.0)))

    def seeded(self) -> "StreamSpec":
        """The same with a seed that nobody knows, if it has none."""
        return self if self.seed is not None else msgspec.structs.replace(self, seed=secrets.randbelow(2**53))

    def asks_for(self, other: "StreamSpec") -> bool:
        """Whether both describe the same stream; a seed that is not given agrees with any."""
        seed = other.seed if self.seed is None else self.seed
        return msgspec.structs.replace(self, seed=seed) == other

    def inputs(self, context: dict[str, Scalar]) -> list[float] | None:
        """The features of a case, or None where the stream has none."""
        if not self.features:
            return None
        missing = [name for name in self.features if not _is_number(context.get(name))]
        if missing:
            raise sc.InvalidInput(f"the features {', '.join(map(repr, missing))} must be numbers in the context")
        return [float(context[name]) for name in self.features]  # type: ignore[arg-type]


class StreamAnswer(Struct, frozen=True):
    """What a stream is and where it stands; the seed of its draws stays a secret."""

    spec: StreamSpec
    status: StreamStatus


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


def forecaster_of(spec: StreamSpec) -> sc.Forecaster:
    """A forecaster that has seen nothing, over the positions of the groups.

    It takes vectors and not records: the stream places records itself, many at once, and vectors go to the kernels.
    """
    if spec.features and spec.hint != "learn":
        raise sc.InvalidInput("features are for a hint that learns; give hint = 'learn', or leave them out")
    if spec.jitter > spec.high - spec.low:
        raise sc.InvalidInput(f"jitter must be at most the width of the range, {spec.high - spec.low:g}")
    return sc.Forecaster(
        property_of(spec),
        sc.Finite(1 + spec.group_limit),
        horizon=spec.horizon,
        bins=spec.bins,
        seed=0 if spec.seed is None else spec.seed,
        hint=sc.OnlineRegression(n_features=len(spec.features)) if spec.hint == "learn" else None,
        outside=spec.outside,
        jitter=spec.jitter,
        max_pending=spec.room(),
    )


def check(spec: StreamSpec) -> None:
    """An `InvalidInput` where the spec makes no sense, or would take more memory than a stream may."""
    bins = spec.bins or (FIRST_BINS if spec.horizon is None else 3.0 * spec.horizon ** (1.0 / 3.0))
    if bins * spec.group_limit > MOST_CELLS:
        raise sc.InvalidInput(
            f"{spec.group_limit} groups with about {bins:.0f} bins are more than {MOST_CELLS} cells; lower "
            "group_limit, bins or horizon"
        )
    groups_of(spec)
    forecaster_of(spec)


def seconds(span: str) -> float:
    """`"90s"`, `"15m"`, `"12h"`, `"30d"` in seconds.

    Examples
    --------
    >>> seconds("15m")
    900.0
    """
    if re.fullmatch(r"[0-9]{1,6}[smhd]", span) is None:
        raise sc.InvalidInput(f"a time is a number and s, m, h or d, such as 30d; got {span!r}")
    return float(span[:-1]) * _UNITS[span[-1]]


def _is_number(value: Scalar) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)

"""What a stream is: plain data from the configuration or from `PUT`, and the `TaskConfig` that it stands for."""

import secrets
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

import swapcal as sc
from swapcal import properties
from swapcal.engine.state import can_follow
from swapcal.service.schemas import Scalar, StreamStatus
from swapcal.tables.vocabulary import complete
from swapcal.tasks.config import TaskConfig, parse_delay

DEFAULT_PENDING = 1_000_000
Span = Annotated[str, Meta(pattern=r"^[0-9]{1,6}[smhd]$", description="A time: 90s, 15m, 12h, 30d.")]
Column = Annotated[str, Meta(min_length=1, max_length=200)]


_TOLERANCE = (
    "Bias to ignore, in units of the outcome; for quantiles, in shares of outcomes. 2 % of the range if not given."
)
_ALPHA = "Probability of a false alarm ever; 0.05 if not given."
_EVERY = (
    "Instead of alpha: at most one false alarm in so many outcomes on average; an alarm then comes again for as long "
    "as the bias lasts."
)
_PROTECT = (
    "How much of a correction of the hint is shown: the share that the outcomes so far speak for (loss), one that "
    "surely repairs the mean too (calibration), or all (nothing)."
)
_BUDGET = "The share of the loss of the hints that corrections may cost; 0.002, or 0.01 to protect calibration."
_CORRECTIONS = "With outcome_order = 'forecast': an outcome may be replaced by another one until it is learned."
_OUTCOME_ORDER = (
    "'forecast': an outcome is learned once those of all earlier cases have come or `settle` is over; for delays that "
    "depend on the outcome."
)
_OUTSIDE = "For outcomes and hints outside the range; if neither low nor high is given, the range follows outcomes."
_ABSENT = (
    "What a case is whose context has no entry for a column of the groups: an error, or one whose value is missing, as "
    "with null."
)
_SETTLE = (
    "With outcome_order = 'forecast': after so many further cases nobody waits for an outcome. As many as can wait, if "
    "not given."
)


class MonitorSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """When to raise an alarm: where a group's bias is beyond `tolerance`, at whatever moment one looks."""

    tolerance: Annotated[float, Meta(description=_TOLERANCE, ge=0.0, le=1e12)] | None = None
    alpha: Annotated[float, Meta(description=_ALPHA, gt=0.0, lt=1.0)] | None = None
    every: Annotated[float, Meta(description=_EVERY, ge=1.0, le=1e15)] | None = None


class StreamSpec(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A stream: what is forecast, for whom, on top of what, and how late outcomes may come."""

    property: Annotated[
        str,
        Meta(max_length=100, description="What is forecast: probability, mean, median, quantile, expectile or moment."),
    ] = "probability"
    level: Annotated[float, Meta(gt=0.0, lt=1.0, description="Of a quantile or expectile.")] | None = None
    order: Annotated[int, Meta(ge=1, le=20, description="Of a moment.")] | None = None
    low: Annotated[float, Meta(ge=-1e12, le=1e12, description="Smallest outcome; 0 if not given.")] | None = None
    high: Annotated[float, Meta(ge=-1e12, le=1e12, description="Largest outcome; 1 if not given.")] | None = None
    groups: (
        Annotated[str, Meta(max_length=2_000)]
        | Annotated[
            list[Column | Annotated[list[Column], Meta(min_length=1, max_length=5)]],
            Meta(
                max_length=50, description="Columns, combinations, comparisons: 'sex,race,sex*race,age>=60', or a list."
            ),
        ]
    ) = []
    group_limit: Annotated[int, Meta(ge=1, le=10_000, description="How many groups there can be.")] = 200
    rare: Annotated[int, Meta(ge=1, le=1_000_000, description="A value is a group once it is seen so often.")] = 1
    hint: Annotated[Literal["given", "learn"], Meta(description="'learn': a regression learns beside.")] = "given"
    features: Annotated[list[Column], Meta(max_length=100, description="Columns of numbers for the regression.")] = []
    horizon: Annotated[int, Meta(ge=1, le=10**9)] | None = None
    bins: Annotated[int, Meta(ge=11, le=1001)] | None = None
    outside: Annotated[Literal["error", "clip", "follow"], Meta(description=_OUTSIDE)] | None = None
    jitter: Annotated[float, Meta(ge=0.0, le=1e12)] = 0.0
    pending: (
        Annotated[int, Meta(ge=1, le=100_000_000, description="How many cases can wait; one byte each.")] | None
    ) = None
    delay: Annotated[Span, Meta(description="Outcomes may come so late; then the case has expired.")] = "30d"
    cases_per_day: Annotated[int, Meta(ge=1, le=10**9, description="With `delay`, gives `pending`.")] | None = None
    keep: Annotated[Span, Meta(description="Cases are deleted when they are older.")] = "90d"
    protect: Annotated[Literal["loss", "calibration", "nothing"], Meta(description=_PROTECT)] = "loss"
    budget: Annotated[float, Meta(description=_BUDGET, ge=0.0, le=1.0)] | None = None
    outcome_order: Annotated[Literal["arrival", "forecast"], Meta(description=_OUTCOME_ORDER)] = "arrival"
    settle: Annotated[int, Meta(description=_SETTLE, ge=1, le=100_000_000)] | None = None
    absent: Annotated[Literal["error", "missing"], Meta(description=_ABSENT)] = "error"
    corrections: Annotated[bool, Meta(description=_CORRECTIONS)] = False
    monitor: Annotated[
        MonitorSpec | bool, Meta(description="Watches every group for bias; false: nothing raises alarms.")
    ] = True
    seed: Annotated[int, Meta(ge=0, le=2**53, description="Of the draws; secret, if not given.")] | None = None

    def config(self) -> TaskConfig:
        """The stream as a task: of a table whose rows are its cases; an `InvalidInput` where it makes no sense."""
        _, argument = properties.by_name().get(self.property, (None, None))
        text = self.property
        for name in ("level", "order"):
            value = getattr(self, name)
            if (value is not None) != (name == argument):
                verb, what = ("needs a", "give") if name == argument else ("has no", "leave out")
                raise sc.InvalidInput(f"property {self.property!r} {verb} {name}; {what} it")
            text += "" if value is None else f":{value!r}"
        most = self.max_pending()
        if self.features and self.hint != "learn":
            raise sc.InvalidInput("features are for a hint that learns; give hint = 'learn', or leave them out")
        delay, keep = (parse_delay(one)[0] for one in (self.delay, self.keep))
        if keep < delay:
            raise sc.InvalidInput(
                f"keep = {self.keep!r} is shorter than delay = {self.delay!r}: cases would be deleted before their "
                "outcomes may come; raise keep, or lower delay"
            )
        if self.settle is not None and (self.outcome_order == "arrival" or self.settle > most):
            raise sc.InvalidInput(
                f"settle goes with outcome_order = 'forecast' and is at most `pending`, {most}; got {self.settle}"
            )
        if self.corrections and self.outcome_order == "arrival":
            raise sc.InvalidInput(
                "corrections go with outcome_order = 'forecast': else outcomes are learned as they come"
            )
        return TaskConfig(
            "y",
            "hint",
            self.groups
            if isinstance(self.groups, str)
            else tuple(one if isinstance(one, str) else tuple(one) for one in self.groups),
            linear=self.features,
            property=text,
            low=self.low or 0.0,
            high=1.0 if self.high is None else self.high,
            learn=self.hint == "learn",
            horizon=self.horizon,
            time="created",
            delay=self.delay,
            order=self.outcome_order,
            seed=self.seed,
            jitter=self.jitter,
            bins=self.bins,
            limit=self.group_limit,
            max_pending=most,
            protect=self.protect,
            budget=self.budget,
        )

    def forecast_property(self) -> Any:
        """What is forecast, on the range with which the stream starts."""
        config = self.config()
        low, high = (0.0, 1.0) if config.low is None or config.high is None else (config.low, config.high)
        return config.property_on(low, high)

    def beyond(self) -> str:
        """What becomes of outcomes beyond the range: where none is given it follows them, if there can be any."""
        found = self.low is None and self.high is None and self.bins is None and self.property != "probability"
        return self.outside or ("follow" if found and can_follow(self.forecast_property()) else "error")

    def max_pending(self) -> int:
        """How many cases can wait: given, or twice what comes within `delay`, or a million."""
        if self.pending is not None:
            return self.pending
        if self.cases_per_day is None:
            return DEFAULT_PENDING
        return min(100_000_000, max(1000, int(2 * self.cases_per_day * parse_delay(self.delay)[0] / 86_400.0)))

    def seeded(self) -> "StreamSpec":
        """The same with a seed that nobody knows, if it has none."""
        return self if self.seed is not None else msgspec.structs.replace(self, seed=secrets.randbelow(2**53))

    def asks_for(self, other: "StreamSpec") -> bool:
        """Whether both describe the same stream; a seed that is not given agrees with any."""
        seed = other.seed if self.seed is None else self.seed
        return msgspec.structs.replace(self, seed=seed) == other

    def watching(self) -> MonitorSpec | None:
        """How groups are watched; None where nobody wants that."""
        return (MonitorSpec() if self.monitor else None) if isinstance(self.monitor, bool) else self.monitor

    def settles(self) -> int | None:
        """After how many cases an outcome is waited for no more; None where outcomes are learned as they come."""
        if self.outcome_order == "arrival":
            return None
        return self.max_pending() if self.settle is None else self.settle

    def inputs(self, context: dict[str, Scalar]) -> list[float] | None:
        """The features of a case, or None where the stream has none."""
        if not self.features:
            return None
        complete(context, self.features)
        missing = [name for name in self.features if type(context[name]) not in (int, float)]
        if missing:
            raise sc.InvalidInput(f"the features {', '.join(map(repr, missing))} must be numbers in the context")
        return [float(context[name]) for name in self.features]  # type: ignore[arg-type]


class StreamAnswer(Struct, frozen=True):
    """What a stream is and where it stands; the seed of its draws stays a secret."""

    spec: StreamSpec
    status: StreamStatus

"""What goes over the wire: requests and answers, checked while they are decoded."""

import math
import re
from http import HTTPStatus
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from swapcal.errors import InvalidInput

ID = r"^[A-Za-z0-9_~@+=:-][A-Za-z0-9._~@+=:-]{0,199}$"
NAME = r"^[a-z][a-z0-9_-]{0,62}$"
LARGEST_INTEGER = 2**53

Id = Annotated[
    str,
    Meta(pattern=ID, min_length=1, max_length=200, description="Your name for the case, the same for its outcome."),
]
Whole = Annotated[int, Meta(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)]
Text = Annotated[str, Meta(max_length=500)]
Scalar = Text | Whole | float | bool | None
Context = Annotated[
    dict[Annotated[str, Meta(max_length=100)], Scalar],
    Meta(max_length=200, description="The case's columns; groups and features are made from them."),
]


Weight = Annotated[
    float,
    Meta(ge=0.0, le=1.0, description="The share for which the case counts; one of 0 is forecast, and forgotten."),
]
CaseState = Literal["pending", "held", "learned", "forgotten", "expired"]


class Case(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A case to be forecast: your id, its columns, what your model says, and how much it counts."""

    id: Id
    context: Context = {}
    hint: Annotated[float | None, Meta(description="Your model's own forecast.")] = None
    weight: Weight = 1.0

    def __post_init__(self) -> None:
        _one_line(self.id)


class Cases(Struct, frozen=True, forbid_unknown_fields=True):
    """Several cases at once, forecast in this order."""

    cases: Annotated[list[Case], Meta(min_length=1)]


class Outcome(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """What came of a case; or, with `y` null, that nothing will come: the customer has left, the sensor has failed."""

    id: Id
    y: Annotated[
        float | None, Meta(description="The outcome, in the property's units; null says that it will never come.")
    ]

    def __post_init__(self) -> None:
        _one_line(self.id)
        # JSON has no such numbers and would write null, which says something else.
        if self.y is not None and not math.isfinite(self.y):
            raise InvalidInput(
                f"an outcome is a finite number; got {self.y!r}. Send nothing while it is not known, and None (null) "
                "once it is sure that it will never come"
            )


class Outcomes(Struct, frozen=True, forbid_unknown_fields=True):
    """Several outcomes at once, learned in this order."""

    outcomes: Annotated[list[Outcome], Meta(min_length=1)]


class Several(Struct, frozen=True):
    """Whether a body holds several of something: what is in its entries is not looked at yet."""

    cases: msgspec.Raw = msgspec.Raw(b"")
    outcomes: msgspec.Raw = msgspec.Raw(b"")


Prediction = float | Annotated[list[float], Meta(min_length=1, max_length=1)]


class Predicted(Struct, frozen=True):
    """What MLflow's model server answers."""

    predictions: list[Prediction]


class PredictedRecords(Struct, frozen=True):
    """The same where a prediction has columns."""

    predictions: list[dict[str, Any]]


class Tensor(Struct, frozen=True):
    """One of the outputs of a server of the Open Inference Protocol."""

    name: str
    data: list[Prediction]


class Inferred(Struct, frozen=True):
    """All of them."""

    outputs: list[Tensor]


class Forecasted(Struct, frozen=True, gc=False, tag_field="result", tag="forecast"):
    """A forecast, stored before it is answered."""

    id: str
    forecast: Annotated[float, Meta(description="The number to act on.")]
    hint: Annotated[float | None, Meta(description="What the model said.")]
    other: Annotated[float | None, Meta(description="The forecast was drawn from this value and itself.")] = None
    probability: Annotated[float, Meta(description="With this probability it is `forecast`, else `other`.")] = 1.0
    round: Annotated[int, Meta(description="Its number in the stream, from 0; -1 where nothing was stored.")] = -1
    calibrated: Annotated[
        bool, Meta(description="False: nothing had been learned yet; or the raw hint, as the store is down.")
    ] = True
    replayed: Annotated[bool, Meta(description="True: this id was asked before, and this is what it was told.")] = False


class Learned(Struct, frozen=True, gc=False, tag_field="result", tag="learned"):
    """An outcome that has been learned, now or before."""

    id: str
    y: float
    replayed: bool = False


class Forgotten(Struct, frozen=True, gc=False, tag_field="result", tag="forgotten"):
    """A case that waits for no outcome any more, now or before: it was said that none will come."""

    id: str
    replayed: bool = False


class Refused(Struct, frozen=True, omit_defaults=True, tag_field="result", tag="refused"):
    """Why something was refused: a problem of RFC 9457, in sentences."""

    title: str
    status: int
    detail: str
    type: str = "about:blank"
    id: str | UnsetType = UNSET


class Answers(Struct, frozen=True):
    """One entry for each case, in the order of the request."""

    forecasts: list[Forecasted | Refused]


class Results(Struct, frozen=True):
    """One entry for each outcome, in the order of the request."""

    outcomes: list[Learned | Forgotten | Refused]


class StoredCase(Struct, frozen=True):
    """A case as it is stored."""

    id: str
    context: Context
    hint: float | None
    forecast: float
    round: int
    y: float | None
    state: Annotated[
        CaseState,
        Meta(
            description="held: the outcome has come, and is learned after those of earlier cases. forgotten: it was "
            "said that none will come."
        ),
    ]
    created: Annotated[float, Meta(description="Seconds since 1970.")]
    learned: Annotated[
        float | None, Meta(description="When the outcome, or the word that none will come, came; seconds since 1970.")
    ]
    weight: Weight = 1.0


class StreamStatus(Struct, frozen=True):
    """Where a stream stands."""

    name: str
    property: str
    forecasts: Annotated[int, Meta(description="Forecasts so far.")]
    outcomes: Annotated[int, Meta(description="Outcomes learned so far.")]
    pending: Annotated[int, Meta(description="Cases that wait for their outcome, or whose outcome is held.")]
    held: Annotated[int, Meta(description="Outcomes that have come and wait for those of earlier cases.")]
    expired: Annotated[int, Meta(description="Cases that had no outcome before their room was needed.")]
    forgotten: Annotated[int, Meta(description="Cases of which it was said that no outcome will come.")]
    late: Annotated[int, Meta(description="Outcomes that came after a later case was forecast.")]
    share: Annotated[float, Meta(description="How much of a correction of the hint is shown now, from 0 to 1.")]
    mean_share: Annotated[float, Meta(description="The same on average over all cases.")]
    lateness: Annotated[list[str], Meta(description="What somebody should know of late outcomes, in sentences.")]
    room: Annotated[int, Meta(description="The last so many cases can wait; older ones expire.")]
    groups: Annotated[int, Meta(description="Groups found so far.")]
    loss_before: Annotated[float | None, Meta(description="Mean loss of the hints.")]
    loss_after: Annotated[float | None, Meta(description="Mean loss of the forecasts, over the same cases.")]
    alarms: Annotated[int, Meta(description="Alarms raised so far.")]
    watched: Annotated[bool, Meta(description="Whether a monitor watches the groups.")]
    groups_alarmed: Annotated[int, Meta(description="Groups in the alarms that are kept.")]
    model_alarms: Annotated[int, Meta(description="Alarms that the model's own numbers would have raised.")]
    model_groups_alarmed: Annotated[int, Meta(description="Groups in those that are kept.")]


class RaisedAlarm(Struct, frozen=True):
    """A group whose forecasts are biased beyond the tolerance: which, how, at which event and when."""

    seq: Annotated[int, Meta(description="The last event, of forecasts and outcomes together, when it was raised.")]
    at: Annotated[float, Meta(description="Seconds since 1970.")]
    group: str
    side: Annotated[str, Meta(description="The forecasts are 'too high' or 'too low'.")]
    outcomes: Annotated[int, Meta(description="Outcomes of the stream by then.")]
    group_outcomes: Annotated[int, Meta(description="Outcomes of the group by then.")]
    log_evidence: Annotated[float, Meta(description="Logarithm of the evidence against a bias within the tolerance.")]
    alarm: Annotated[str, Meta(description="All of it in a sentence.")]


class Alarms(Struct, frozen=True):
    """The latest alarms of a stream, oldest first."""

    alarms: Annotated[list[RaisedAlarm], Meta(description="Of the forecasts.")]
    model: Annotated[list[RaisedAlarm], Meta(description="Of the model's own numbers, the hints.")]
    note: str


class SideErrors(Struct, frozen=True):
    """The errors of one side, as totals over its rounds; see `Audit`."""

    rounds: int
    calibration: float
    multicalibration: float
    swap_multicalibration: float
    groups_off: Annotated[
        int, Meta(description="Groups that are biased over all their rounds: the interval leaves out 0.")
    ]
    witness: str | None


class SideBias(Struct, frozen=True):
    """One group on one side: its mean identification, where positive says that forecasts are too high."""

    bias: float
    low: Annotated[float, Meta(description="Of an interval; those of all groups hold together with 97 %.")]
    high: float
    off: Annotated[bool, Meta(description="Biased: the interval leaves out 0.")]


class GroupView(Struct, frozen=True):
    """One group: the hints (`before`) and the forecasts (`after`); "all" is all rows."""

    name: str
    rounds: int
    before: SideBias | None
    after: SideBias | None


class AuditView(Struct, frozen=True):
    """The model's hints (`before`) and the forecasts (`after`), over the same groups and bins."""

    stream: str
    property: str
    before: SideErrors
    after: SideErrors
    groups: list[GroupView]


class Health(Struct, frozen=True):
    """Whether the service is there."""

    live: bool
    ready: bool


class StreamList(Struct, frozen=True):
    """The streams that the token may see."""

    streams: list[str]


def check_name(name: str) -> str:
    """The same name, if a stream can have it; an `InvalidInput` otherwise. The one check, wherever names come in."""
    if re.fullmatch(NAME, name) is None or name.endswith("\n"):
        raise InvalidInput(
            f"a stream's name is a small letter and up to 62 small letters, digits, '_' and '-'; got {name[:80]!r}"
        )
    return name


def is_id(text: str) -> bool:
    """Whether a case can have this id."""
    return re.fullmatch(ID, text) is not None and not text.endswith("\n")


def _one_line(id: str) -> None:
    # Python's `$` also matches before a final line end, which JSON Schema's does not.
    if id.endswith("\n"):
        raise ValueError("an id holds no line end")


# --------
# What is refused, and why: every error leaves as problem+json (RFC 9457), with a sentence that says what to do.

MEDIA_TYPE = "application/problem+json"


class Problem(Exception):
    """A refusal: a status, a sentence, and for what is safe to send again later, after how many seconds."""

    def __init__(self, status: int, detail: str, *, retry_after: int | None = None, store_down: bool = False) -> None:
        super().__init__(detail)
        self.status, self.detail, self.retry_after, self.store_down = status, detail, retry_after, store_down

    def refused(self, id: str | None = None) -> Refused:
        """The same as an entry of an answer."""
        return Refused(HTTPStatus(self.status).phrase, self.status, self.detail, id=msgspec.UNSET if id is None else id)


class StoreDown(Exception):
    """The store cannot be reached or cannot write; nothing that was not answered has been stored."""

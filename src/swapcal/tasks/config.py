"""What is asked of a table: which column holds what, for whom forecasts should be right, of which property, and how.

One `TaskConfig` is what the command, Python, a TOML file and the service fill in. It says all that a command needs but
the files; its fields carry the help of the options that are made from them. Nothing here takes time to import, so that
`--help` answers at once.
"""

import builtins
import math
import re
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import reduce
from operator import or_
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args, get_origin

from swapcal.errors import InvalidInput

if TYPE_CHECKING:
    from swapcal.forecaster import Forecaster
    from swapcal.protocols import Elicitable, Hypotheses

MOST_BINS, MOST_LEVELS = 100_000, 10_000


def option(help: str, default: Any = None, **limits: Any) -> Any:
    """A field that the command has as an option, with its help and what else typer is told of it."""
    return field(default=default, metadata={"help": help, **limits})


@dataclass(frozen=True, slots=True)
class TaskConfig:
    """What is asked of a table: the options of the commands, under their names.

    Parameters
    ----------
    y : str
        Column of outcomes; rows without one are forecast but not scored.
    p : str or sequence of str, optional
        Column of a model's forecasts, or those of its intervals or classes.
    groups : str or sequence
        For whom: what `Groups` takes. "sex,race,sex*race,age >= 60", or a list of such.
    categories : sequence of str
        Columns of `groups` whose numbers are names (stores, postcodes), so that there are no bands of them.
    linear : sequence of str
        Columns of numbers: all linear functions of them; with `learn`, features.
    hypotheses : str, optional
        Whom instead of `groups`, as text: "trees(age,income,depth=2,bins=8)" are all boxes of these columns.
    property : str or Elicitable
        What is forecast, by name ("mean", "quantile:0.9") or as an object, whose own range then holds.
    interval : float, optional
        Intervals that cover this share of outcomes in every group.
    classes : bool
        The outcome names a class.
    low, high : float, optional
        Where not given: (0, 1) if all outcomes are 0 or 1, else their smallest and largest. An audit looks at all rows
        for it; a run, which may not know what comes, at the first `prefix` rows. Later outcomes and forecasts outside
        are counted, and warned about once: they are scored and shown as they are, and biases take the end of the range.
    positive : str, optional
        The outcome is 1 where the column equals this text.
    weight : str, optional
        Weights are divided by the largest; in a run by that of the first `prefix` rows, and later ones that are larger
        count as much as that one.
    learn : bool, optional
        None: with groups, intervals and classes, and not with keys. Columns in `linear` are then features.
    horizon : int, optional
        Rows that will come; else what the file says, or any number.
    time : str, optional
        Column of the rows' times, not falling.
    known, delay : str, optional
        When outcomes were known: a column of time stamps or numbers, as in `time` (without `time`, row numbers from 1
        on); or after how long, "2d", or after how many rows, "500".
    order : str
        "arrival": late outcomes are learned as they come. "forecast": when all earlier ones are known.
    later : bool
        For runs with a state file: outcomes that are blank come later, and are learned from when they are there.
    id, corrections : str, bool
        Column by which a second file of outcomes names the rows; whether the last of several outcomes counts.
    seed : int, optional
        Of the draws between two neighboring forecasts.
    trust, levels : float, int
        How clean a model's forecasts must be to be kept, and how many level sets of them join the groups.
    jitter : float, optional
        For quantiles: what to spread equal outcomes over; else the gap where they heap up.
    bins : int, optional
        Of an audit: take forecasts together in so many equal bins. Of a run: values to forecast.
    r : float
        Power of the error, 1 or more.
    costs : str, optional
        What a false alarm and a missed event cost who acts on the forecasts, "1:5".
    limit : int
        Largest number of groups.
    anytime : bool
        Intervals that hold at any time, for a file that grows and is looked at again.
    by : str, optional
        Column of keys; a row without one is an error.
    cluster : str, optional
        "" takes every row by itself, also where there is a time.
    prefix : int
        How many rows at the start of a run settle what is not given: range, bands of numbers, bins.
    max_pending : int, optional
        How many rows can wait for their outcomes. None: what the model takes; of a key 64, or 4,096 where they are
        known late.
    protect, budget
        As for `Forecaster`.
    learner : str, optional
        A learner of your own beside the groups, "module:Class".
    keep : str or sequence of str
        Columns of the file that the output has as well; "all" for all of them.
    bad_rows : str
        "stop" at a cell that is no number, or "skip": it counts as missing, and the row is counted.
    against : sequence of str, optional
        What a run is compared with: "refit", "isotonic", "platt", or "none".

    Examples
    --------
    >>> TaskConfig("income", "score", "sex,race,sex*race").columns
    ('income', 'score', 'sex', 'race')
    >>> TaskConfig("size", interval=0.9, costs="1:5")
    Traceback (most recent call last):
        ...
    swapcal.errors.InvalidInput: --interval cannot be combined with --costs: nobody acts on one number
    """

    y: str = option("Column of outcomes.", MISSING)
    p: Any = option(  # noqa: RUF009
        "Column of a model's forecasts, to start from. With --interval also lower,upper or lower,forecast,upper; with "
        "--classes one column for each class.",
        flags=("--p", "--hint"),
    )
    groups: Any = option("Columns, combinations, comparisons: sex,race,sex*race,age>=60.", ())  # noqa: RUF009
    categories: Sequence[str] = option(
        "Columns of --groups whose numbers are names (stores, postcodes): no bands of them.", ()
    )
    linear: Sequence[str] = option("Columns of numbers: all linear functions of them; with --learn, features.", ())
    hypotheses: str | None = option(
        "Whom instead of --groups: 'trees(age,income,depth=2,bins=8)' are all boxes of these columns.",
        flags=("--class",),
    )
    learner: Any = option("A learner of your own beside the groups, as module:Class; it sees whole rows.", None)  # noqa: RUF009
    property: "str | Elicitable" = option("", "mean")  # noqa: RUF009
    interval: float | None = option("Intervals that cover this share of outcomes, such as 0.9, in every group.")
    classes: bool = option("The outcome names a class: probabilities of all classes.", False)
    low: float | None = option("Smallest outcome; else that of the file (run: of 10,000 rows).")
    high: float | None = option("Largest outcome; else that of the file (run: of 10,000 rows).")
    positive: str | None = option("The outcome is 1 where the column equals this text.")
    weight: str | None = option("Column of weights.")
    learn: bool | None = option(
        "A model learns between hint and engine; usual with groups.", flags=("--learn/--no-learn",)
    )
    horizon: int | None = option("Rows that will come; else what the file says, or any number.", min=1)
    time: str | None = option("Column of the rows' times, not falling.")
    known: str | None = option("Column of when each outcome was known; else at once.")
    delay: str | None = option("Outcomes are known after so long (2d, 6h; needs --time) or so many rows (500).")
    order: str = option(
        "Late outcomes are learned by arrival, or by forecast: when all earlier ones are known.", "arrival"
    )
    later: bool = option("Blank outcomes come later: learn them when the file has them; with --state.", False)
    id: str | None = option("Column by which --outcomes names the rows; blank outcomes come later then.")
    corrections: bool = option("Of a row that --outcomes has several times the last outcome counts.", False)
    seed: int | None = option("Of the draws between two neighboring forecasts; else drawn, and printed.", min=0)
    trust: float | None = option("How clean a hint must be to be kept: 0 to 1.", min=0.0)
    levels: int = option("Level sets of the hint that join the groups.", 10, min=0)
    jitter: float | None = option(
        "For quantiles: what to spread equal outcomes over; else the gap where they heap up.", min=0.0
    )
    bins: int | None = option("Values to forecast; else what rows and hint suggest.", min=1)
    r: float = option("Power of the error, 1 or more.", 2.0)
    costs: str | None = option("What a false alarm and a missed event cost who acts on the forecasts, as 1:5.")
    limit: int = option("Largest number of groups.", 2_500, min=1)
    anytime: bool = option("Intervals that hold at any time, for a file that grows and is looked at again.", False)
    by: str | None = option("Column of keys: one forecaster for each, on all cores. A page: --report.")
    cluster: str | None = option(
        "Column whose values make clusters of rows (a day, a person); else the day of --time; '' for none."
    )
    prefix: int = option("Rows at the start that settle range and groups.", 10_000, min=1)
    max_pending: int | None = option("Rows that can wait for their outcomes.", min=1)
    protect: str | None = option(
        "How much of a correction is shown: what outcomes speak for (loss; usual), also what surely repairs the mean "
        "or coverage (calibration; usual with --interval), or all of it (nothing)."
    )
    keep: Sequence[str] = option("Columns of the file that --out has as well: all, or names.", ())
    bad_rows: str = option(
        "What becomes of a cell that is no number, and of an outcome known before its row: stop, or skip: it counts as "
        "missing, and the row is counted.",
        "stop",
        flags=("--bad-rows",),
    )
    against: Sequence[str] | None = option(
        "Also compare with these: refit, isotonic, platt, or platt:COLUMN for one fit a segment; else the refit, up to "
        "200,000 rows. none: nothing."
    )
    budget: float | None = option(
        "Share of the model's loss that corrections may cost; 0.002, or 0.01 with --protect calibration.", min=0.0
    )

    def __post_init__(self) -> None:
        from swapcal.inputs import column_names, short_repr
        from swapcal.tables.grouping import listed_groups

        self._check_kinds()
        listed = ("linear", "categories", "keep")
        changed: dict[str, Any] = {name: column_names(getattr(self, name), name) for name in listed}
        if self.against is not None:
            changed["against"] = column_names(self.against, "against")
        if not isinstance(self.groups, Mapping):
            changed["groups"] = listed_groups(self.groups)
        if self.p is not None and not isinstance(self.p, str):
            if not isinstance(self.p, Sequence) or not all(isinstance(name, str) for name in self.p):
                raise InvalidInput(f"p must be the name of a column, or names; got {short_repr(self.p)}")
            names = tuple(self.p)
            changed["p"] = names if self.task != "scalar" or len(names) > 1 else (*names, None)[0]
        for name, value in {**changed, "later": self.later or self.id is not None}.items():
            object.__setattr__(self, name, value)
        self.check()

    @classmethod
    def from_mapping(cls, options: Mapping[str, Any]) -> "TaskConfig":
        """From options by their names, as the command line or a TOML file has them: columns as one text, or as a list.

        Examples
        --------
        >>> TaskConfig.from_mapping({"y": "late", "groups": "sex,sex*race", "interval": 0.9, "p": "lo,hi"}).groups
        ('sex', ('sex', 'race'))
        """
        from swapcal.tables.grouping import parse_columns, parse_groups

        names = {each.name for each in fields(cls)}
        values = {name.replace("-", "_"): value for name, value in options.items()}
        values |= {own: values.pop(name) for name, own in (("hint", "p"), ("class", "hypotheses")) if name in values}
        if unknown := [name for name in values if name not in names]:
            raise InvalidInput(f"there is no setting {unknown[0]!r}; there are {', '.join(sorted(names))}")
        if not values.get("y"):
            raise InvalidInput("the column of outcomes is missing: give y= (--y)")
        for name, parse in (
            ("groups", parse_groups),
            ("linear", parse_columns),
            ("categories", parse_columns),
            ("against", parse_columns),
            ("keep", parse_columns),
        ):
            if isinstance(values.get(name), str):
                values[name] = parse(values[name])
            elif isinstance(values.get(name), list):
                values[name] = tuple(tuple(each) if isinstance(each, list) else each for each in values[name])
        if isinstance(values.get("p"), str) and (values.get("interval") is not None or values.get("classes")):
            values["p"] = parse_columns(values["p"])
        return cls(**{name: value for name, value in values.items() if value is not None})

    @builtins.property  # `property` is a field here
    def task(self) -> Literal["scalar", "interval", "classes"]:
        """What a row gets: one number, an interval, or probabilities of classes."""
        return "classes" if self.classes else "scalar" if self.interval is None else "interval"

    @builtins.property
    def model(self) -> tuple[str, ...]:
        """The columns of the model."""
        return () if self.p is None else (self.p,) if isinstance(self.p, str) else self.p

    @builtins.property
    def learns(self) -> bool:
        """Whether a model learns between hint and engine."""
        if self.learn is not None:
            return self.learn
        return self.task != "scalar" or (bool(self.groups or self.hypotheses) and self.by is None)

    @builtins.property
    def timed(self) -> bool:
        """Whether there is a moment for each outcome."""
        return self.known is not None or self.delay is not None

    @builtins.property
    def late(self) -> bool:
        """Whether anything is said of when outcomes are known."""
        return self.timed or self.later

    @builtins.property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the columns that are needed, each once; None if functions, a learner or `keep` may take any."""
        groups = () if isinstance(self.groups, Mapping) else self.groups
        functions = (callable(part) for each in groups for part in _parts(each))
        whole = self.learner is not None or self.keep == ("all",) or isinstance(self.groups, Mapping)
        if whole or any(functions):
            return None
        model = [name.split("=", 1)[-1].strip() if self.classes else name for name in self.model]
        segments = [column or None for _, column in parse_against(self.against or ()).values()]
        named = [self.y, *model, *segments, self.weight, self.time, self.known, self.cluster or None, self.id, self.by]
        used = [*named, *self.keep, *self.group_columns, *self.linear]
        return tuple(dict.fromkeys(name for name in used if name is not None))

    def _check_kinds(self) -> None:
        """Refuse what is of the wrong type or too small, by the name of the option."""
        from swapcal.inputs import flag, integer, real, short_repr

        for each in fields(self):
            value, kind = getattr(self, each.name), kind_of(each)
            if kind is None or (value is None and each.default is None):
                continue
            least = each.metadata.get("min", -math.inf)
            if kind is bool:
                flag(value, each.name)
            elif kind is int:
                integer(value, each.name, least)
            elif kind is float:
                object.__setattr__(self, each.name, real(value, each.name))
                if value < least:
                    raise InvalidInput(f"{each.name} must be {least:g} or more; got {value:g}")
            elif not isinstance(value, str):
                what = "the name of a column" if each.metadata["help"].startswith("Column") else "text"
                raise InvalidInput(f"{each.name} must be {what}; got {short_repr(value)}")

    def check(self) -> None:
        """Refuse all that needs no file: said now, not after one was opened."""
        from swapcal.decisions import Decisions
        from swapcal.hypotheses.finite import Finite
        from swapcal.inputs import level, number, one_of, role, short_repr
        from swapcal.properties import from_text
        from swapcal.tables.grouping import parse_class

        if not all(isinstance(name, str) for name in self.linear):
            raise InvalidInput(f"linear must be names of columns of numbers; got {short_repr(self.linear)}")
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise InvalidInput(f"low must be smaller than high; got low={self.low:g} and high={self.high:g}")
        if not 1.0 <= self.r <= 100.0:
            raise InvalidInput(f"r must be a number from 1 to 100; got {self.r!r}")
        if self.bins is not None and self.bins > MOST_BINS:
            raise InvalidInput(f"bins must be {MOST_BINS:,} at most, more than any page can show; got {self.bins:,}")
        if self.levels > MOST_LEVELS:
            raise InvalidInput(f"levels must be {MOST_LEVELS:,} at most; got {self.levels:,}")
        if self.interval is not None:
            level(self.interval, "interval")
            if len(self.model) > 3:
                names = "--p names a forecast, or lower,upper, or lower,forecast,upper"
                raise InvalidInput(f"with --interval, {names}; got {', '.join(self.model)}")
        self.grouping()
        parse_against(self.against or ())
        if (
            self.hypotheses is not None
            and self.groups
            and all(kind != "groups" or names is not None for kind, names, _ in parse_class(self.hypotheses))
        ):
            raise InvalidInput("--class leaves --groups out: write --class 'groups|trees(...)' to have both")
        if self.hypotheses is not None and self.by is not None:
            raise InvalidInput("--by cannot be combined with --class: a key has groups")
        if isinstance(self.learner, str):
            raise InvalidInput(f"options in a file load no code: give --learner {self.learner} on the command line")
        self.with_learner(Finite(1))
        if self.costs is not None:
            Decisions.parsed(self.costs)
        if isinstance(self.property, str):
            from_text(self.property, 0.0, 1.0)
        else:
            role(self.property, ("identification", "domain"), "property", "sc.Quantile(0.9)")
        for one, other, sentence in CONFLICTS:
            if self.has(one) and self.has(other):
                raise InvalidInput(f"--{one} cannot be combined with --{other}: {sentence}")
        one_of(self.order, "order", ("arrival", "forecast"))
        one_of(self.bad_rows, "bad_rows", ("stop", "skip"))
        if self.protect is not None:
            one_of(self.protect, "protect", ("loss", "calibration", "nothing"))
        if self.budget is not None:
            number(self.budget, "budget", 0.0, 1.0)
        if self.interval is not None and len(self.model) < 2 and self.given("protect", "budget"):
            raise InvalidInput("--protect and --budget are about intervals of the model's own: --p lower,upper")
        if self.order == "forecast" and not self.timed:
            raise InvalidInput("--order forecast is about late outcomes: add --known or --delay")
        if self.corrections and self.id is None:
            raise InvalidInput("--corrections is about a second file of outcomes: add --id and --outcomes")
        if self.delay is not None and parse_delay(self.delay)[1] and self.time is None:
            raise InvalidInput(f"a delay of {self.delay} needs the column of the rows' times: add --time COLUMN")
        if self.task == "scalar" and self.groups and self.linear and self.learn is False:
            raise InvalidInput("groups and linear columns together need learn=True (--learn); or leave one of them out")

    def has(self, name: str) -> bool:
        """Whether something was given that is not there by default."""
        value = getattr(self, name)
        return value is not None and value is not False and value != () and value != _DEFAULTS[name]

    def grouping(self, rare: int = 1, absent: str = "error") -> Any:
        """The groups that are asked about, or another class of functions; it has seen nothing yet."""
        parts = self._classes(rare, absent)
        if len(parts) > 1 and not all(hasattr(part, "__or__") for part in parts):
            raise InvalidInput(
                f"these classes cannot stand side by side: --class {self.hypotheses!r}; give one of them"
            )
        return reduce(or_, parts)

    def with_learner(self, groups: Any) -> Any:
        """The class of the forecaster: these groups, and what the learner can learn beside them."""
        from swapcal.hypotheses.oracle import Oracle

        return groups if self.learner is None else groups | Oracle(self.learner)

    @builtins.property
    def group_columns(self) -> tuple[str, ...]:
        """The columns that it is made from."""
        return tuple(dict.fromkeys(name for each in self._classes() for name in each.columns))

    def _classes(self, rare: int = 1, absent: str = "error") -> list[Any]:
        from swapcal.hypotheses.groups import Groups
        from swapcal.hypotheses.trees import Trees
        from swapcal.tables.grouping import parse_class, parse_columns, parse_groups

        made: list[Any] = []
        for kind, names, numbers in parse_class("groups" if self.hypotheses is None else self.hypotheses):
            if kind == "groups":
                groups = self.groups if names is None else parse_groups(names)
                more: dict[str, Any] = {"limit": self.limit, "rare": rare, "absent": absent}
                made.append(Groups(groups, categories=self.categories, **more))
            else:
                columns = parse_columns(names or "")
                categories = tuple(name for name in self.categories if name in columns)
                settings: dict[str, Any] = {**numbers, "categories": categories}
                made.append(Trees(columns, **settings))
        return made

    def property_on(self, low: float, high: float) -> "Elicitable":
        """The property that is asked about, for outcomes in [low, high]."""
        from swapcal.properties import from_text

        return from_text(self.property, low, high) if isinstance(self.property, str) else self.property

    def forecaster(
        self,
        property: "Elicitable",
        hypotheses: "Hypotheses",
        n_features: int = 0,
        found: bool = False,
        **own: Any,
    ) -> "Forecaster":
        """The forecaster of one number that is asked for; what is given as `own` goes before what is said here.

        Where the range was `found` and not given, it follows the outcomes.
        """
        from swapcal.engine.state import can_follow
        from swapcal.forecaster import Forecaster
        from swapcal.hints import OnlineRegression

        names = ("horizon", "r", "bins", "seed", "trust", "jitter", "max_pending", "protect", "budget")
        follows = found and self.bins is None and can_follow(property)
        settings = {"outside": "follow" if follows else "clip"} | {name: getattr(self, name) for name in names}
        settings["levels"] = self.levels if self.p is not None or self.learns else 0
        settings["hint"] = OnlineRegression(n_features=n_features) if self.learns else None
        settings = {name: value for name, value in {**settings, **own}.items() if value is not None}
        return Forecaster(property, hypotheses, **settings)

    def given(self, *names: str) -> dict[str, Any]:
        """Those of these settings that are not None, for a model whose own defaults are to hold."""
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def settings(self) -> dict[str, Any]:
        """Plain data: what it takes to ask again."""
        groups = self.groups if not isinstance(self.groups, Mapping) else tuple(self.groups)
        plain = {each.name: getattr(self, each.name) for each in fields(self)}
        plain |= {
            "p": self.p if self.p is None or isinstance(self.p, str) else list(self.p),
            "groups": [_group_name(group) for group in groups],
            "linear": list(self.linear),
            "categories": list(self.categories),
            "keep": list(self.keep),
            "property": self.property if isinstance(self.property, str) else repr(self.property),
            "learner": None if self.learner is None else dict(self.learner.spec()),
            "learn": self.learns,
        }
        rare = (
            "interval",
            "classes",
            "by",
            "anytime",
            "cluster",
            "max_pending",
            "order",
            "protect",
            "budget",
            "against",
            "corrections",
            "keep",
            "bad_rows",
            "later",
            "learner",
        )
        return {name: value for name, value in plain.items() if name not in rare or self.has(name)}

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> "TaskConfig":
        """What `settings` gave, in a result that was kept: it is not asked again, so nothing is checked."""
        config = object.__new__(cls)
        for name, usual in _DEFAULTS.items():
            object.__setattr__(config, name, settings.get(name, usual))
        return config


def kind_of(each: "Field[Any]") -> type | None:
    """What a field holds, None aside: bool, int, float or str; None where it may be several things.

    Examples
    --------
    >>> {each.name: kind_of(each) for each in fields(TaskConfig) if each.name in ("bins", "y", "groups")}
    {'y': <class 'str'>, 'groups': None, 'bins': <class 'int'>}
    """
    kinds = [kind for kind in get_args(each.type) or (each.type,) if kind in (bool, int, float, str)]
    return kinds[0] if kinds and get_origin(each.type) is not Sequence else None


class Conflict(NamedTuple):
    """Two options that do not go together, and why."""

    option: str
    other: str
    sentence: str


_NUMBER = {
    "property": "what a row gets is settled by it",
    "linear": "it is about groups; cut the columns into bands, as --groups does",
    "positive": "its outcomes are as they are in the file",
    "costs": "nobody acts on one number",
    "jitter": "it is for one quantile",
    "bins": "each of its forecasters has its own values",
    "trust": "each of its forecasters has a hint of its own",
    "levels": "each of its forecasters has a hint of its own",
    "r": "its errors are of the power 2",
    "against": "it is about one number beside the model's own",
    "learner": "it learns the errors of one number",
}
_LEARNS = "a learner is taught whole rows, beside groups"
_STREAM = "it would be of one stream, and keys have one each"
# Every pair of options that is refused; `check` says the sentence of the first that was given.
CONFLICTS: tuple[Conflict, ...] = (
    Conflict("known", "delay", "outcomes are known by a column or after a delay, not both"),
    Conflict("classes", "interval", "a row gets an interval or probabilities of classes"),
    Conflict("classes", "low", "classes have no range"),
    Conflict("classes", "high", "classes have no range"),
    *(Conflict(task, name, sentence) for task in ("interval", "classes") for name, sentence in _NUMBER.items()),
    *(Conflict("learner", name, _LEARNS) for name in ("weight", "linear")),
    *(
        Conflict("by", name, _STREAM)
        for name in ("learner", "horizon", "bins", "jitter", "costs", "id", "later", "against")
    ),
    Conflict("later", "against", "it keeps the rows of one run, and outcomes that come later are of several"),
    Conflict("by", "linear", "a few rows of each key give no scales; cut the columns into bands, as --groups does"),
)

_DEFAULTS = {each.name: None if each.default is MISSING else each.default for each in fields(TaskConfig)}


def read_toml(path: str | PathLike[str] | None) -> dict[str, Any]:
    """The settings in a file: names of options with their values; none without a file."""
    if path is None:
        return {}
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f'{path} is not TOML ({error}); give lines such as  y = "late"') from None


# --------
# What options say as text.

_UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_DELAY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(s|min|m|h|d|w)?\s*", re.ASCII)


def parse_delay(text: str) -> tuple[float, bool]:
    """A delay as a number, and whether it is one of seconds (else of rows).

    Examples
    --------
    >>> parse_delay("2d"), parse_delay("6 h"), parse_delay("500")
    ((172800.0, True), (21600.0, True), (500.0, False))
    """
    match = _DELAY.fullmatch(text)
    if match is None:
        raise InvalidInput(f"a delay is a number of rows such as 500, or a time such as 2d, 6h or 30min; got {text!r}")
    number, unit = float(match.group(1)), match.group(2)
    if unit is None and not number.is_integer():
        raise InvalidInput(f"a delay in rows is a whole number; got {text!r}, so add a unit: {text}d, {text}h")
    return number * (1.0 if unit is None else _UNITS[unit]), unit is not None


AGAINST = ("refit", "isotonic", "platt")


def parse_against(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Of each name, the method and its column of segments, empty where there is one fit for all rows.

    Examples
    --------
    >>> parse_against(("refit", "platt:channel")), parse_against(("none",))
    ({'refit': ('refit', ''), 'platt:channel': ('platt', 'channel')}, {})
    """
    if not all(isinstance(name, str) for name in names):
        raise InvalidInput(f"against must be names such as refit or platt:COLUMN; got {names!r}")
    methods = {name: (name.partition(":")[0], name.partition(":")[2]) for name in names if name != "none"}
    for name, (method, _) in methods.items():
        if method not in AGAINST:
            known = ", ".join(AGAINST)
            raise InvalidInput(f"--against takes {known}, by segment as platt:COLUMN, or none; got {name!r}")
    return methods


def _parts(group: Any) -> tuple[Any, ...]:
    return group if isinstance(group, tuple) else (group,)


def _group_name(group: Any) -> str:
    if isinstance(group, tuple) and all(isinstance(part, str) for part in group):
        from swapcal.tables.grouping import quoted

        return "*".join(map(quoted, group))
    return group if isinstance(group, str) else str(group[0]) if isinstance(group, tuple) else str(group)


def next_command(source: str, question: TaskConfig, what: str) -> str:
    """The command `swapcal run` (or another one) on the same file with the same columns.

    Examples
    --------
    >>> next_command("scores.csv", TaskConfig("late", "score", ["sex", "age >= 60"]), "run")
    "swapcal run scores.csv --y late --p score --groups 'sex,age >= 60' --out better.csv"
    """
    settings = question.settings()
    parts = ["swapcal", what, source if source != "standard input" else "-"]
    named = ("y", "p", "groups", "categories", "linear", "property", "low", "high", "positive", "weight", "time")
    for name in (*named, "cluster", "bad_rows"):
        value = settings.get(name)
        if value in (None, [], "mean"):
            continue
        written = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        if name in ("low", "high"):
            written = f"{value:g}"
        parts += [f"--{name.replace('_', '-')}", written]
    if what == "run":
        parts += ["--out", "better.csv"]
    return shlex.join(parts)

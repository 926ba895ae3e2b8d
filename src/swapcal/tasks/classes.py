"""Probabilities of classes: each row's from the rows before it, audited class by class."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from swapcal.audits.column import Column
from swapcal.audits.scores import Paired
from swapcal.classes import Classes
from swapcal.errors import DataError, InvalidInput, StateFileError
from swapcal.hints import OnlineRegression
from swapcal.properties import Probability
from swapcal.tables.batch import Batch, by_value, text
from swapcal.tasks.checkpoint import START_OVER, Checkpoint
from swapcal.tasks.columns import ColumnReader, wrong_row
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.evaluation import DELTA, Binning, ContextColumns, ContextRows, Evaluation, binning
from swapcal.tasks.result import Guarantee, Section
from swapcal.tasks.task import Inputs, Task, weighted
from swapcal.text.verdict import BRIER, TOP, Verdict, class_verdict
from swapcal.typing import Float64Array

# --------
# The columns of a run of classes: outcomes that name a class, and a model's probability of each.

# Classes; each has a forecaster and audits of its own.
MOST = 50
N_SHOWN_CLASSES = 6
MISSING, STRANGE = -1, -2


class ClassColumns(ColumnReader):
    """Reads the columns that a run of classes uses. `settle` comes first, with the first rows.

    Parameters
    ----------
    question : TaskConfig
        The column of outcomes.
    model : sequence of str
        A column of probabilities for each class, "late" or "p_late" for the class late, all written alike; or pairs
        "late=score2". Empty: there is no model.

    Attributes
    ----------
    classes : tuple of str
        The classes, in the order of the columns; without a model in that of their names.
    n_strange, n_rescaled : int
        Outcomes so far that are none of the classes, and rows whose probabilities did not add up to 1.

    Examples
    --------
    >>> rows = Batch("a list", 0, 3, {"y": ["a", "b", None], "p_a": [0.5, 0.1, 0.3], "p_b": [0.5, 0.9, 0.7]})
    >>> columns = ClassColumns(TaskConfig("y", ["p_a", "p_b"], classes=True), [rows], "a list")
    >>> columns.classes
    ('a', 'b')
    """

    def __init__(self, config: TaskConfig, first: Sequence[Batch], source: str) -> None:
        super().__init__(config, source, first)
        model = config.model
        pairs = [each.split("=", 1) for each in model]
        named = [len(pair) == 2 for pair in pairs]
        if any(named) and not all(named):
            forms = "columns (p_a,p_b,p_c) or pairs (a=score1,b=score2), not both"
            raise InvalidInput(f"with --classes, --p names {forms}; got {model!r}")
        self.model = tuple(pair[-1].strip() for pair in pairs)
        self.classes: tuple[str, ...] = tuple(pair[0].strip() for pair in pairs) if all(named) else ()
        for what, names in (("column", self.model), ("class", self.classes)):
            twice = [name for name, count in Counter(names).items() if count > 1]
            if twice:
                raise InvalidInput(f"--p names the {what} {twice[0]!r} twice; each class has a column of its own")
        if len(self.model) == 1:
            way = "name the others too, or leave out --classes and give --positive"
            raise InvalidInput(f"--classes needs a column for each class, and there is only {self.model[0]!r}; {way}")
        if len(self.model) > MOST:
            raise InvalidInput(f"--classes takes {MOST} classes at most; got {len(self.model)} columns")
        self.n_strange = self.n_rescaled = 0
        self._settle(first)

    def _settle(self, first: Sequence[Batch]) -> None:
        """Find out what the classes are, from the first rows."""
        seen: Counter[str] = Counter()
        source, n_rows = self.source, min(sum(batch.n for batch in first), self.config.prefix)
        left = n_rows
        for batch in first:
            seen.update(self._counts(batch if batch.n <= left else batch.cut(0, left)))
            left -= min(batch.n, left)
        y = self.config.y
        if not seen:
            raise DataError(f"column {y!r} has no outcome in the first {n_rows:,} rows of {source}; check the column")
        if not self.model:
            self.classes = _all_of(seen, y, source)
        elif not self.classes:
            self.classes = _named_by(self.model, seen, y, source)
        strange = [value for value in seen if value not in self.classes]
        if 2 * sum(seen[value] for value in strange) > sum(seen.values()):
            most = f"most outcomes {y!r} of {source} ({_listed(strange)}) are none of the classes"
            pair = f"give pairs in --p, such as {strange[0]}={self.model[0]}"
            raise DataError(f"{most} {_listed(self.classes)}; {pair}")

    def labels(self, batch: Batch) -> Float64Array:
        """The number of each row's class; NaN where the outcome is missing, or none of the classes."""
        return self.learned(self.raw(batch))

    def learned(self, raw: Float64Array) -> Float64Array:
        """Outcomes with NaN for those that are no class."""
        return np.where(raw == STRANGE, np.nan, raw)

    def raw(self, batch: Batch) -> Float64Array:
        """The number of each row's class: NaN where the outcome is missing, -2 where it is none of the classes."""
        place = {name: k for k, name in enumerate(self.classes)}
        column = by_value(batch.column(self.config.y))
        texts = [text(value) for value in column.values]
        codes = [np.nan if each is None else float(place.get(each, STRANGE)) for each in texts]
        labels: Float64Array = np.array([*codes, np.nan])[column.codes]
        strange = labels == STRANGE
        if strange.any():
            if not self.n_strange:
                outcome = texts[column.codes[int(np.argmax(strange))]]
                none = f"which is none of the classes {_listed(self.classes)}"
                what = f"has the outcome {outcome!r}, {none}; such rows are forecast, and not learned from"
                self.warn(batch, strange, what)
            self.n_strange += int(np.count_nonzero(strange))
        return labels

    def probabilities(self, batch: Batch) -> Float64Array | None:
        """The model's probabilities, rows by classes, NaN where one is missing; None without a model."""
        if not self.model:
            return None
        forecasts = np.column_stack([batch.numbers(name) for name in self.model])
        below = np.asarray((forecasts < 0).any(axis=1))
        if below.any():
            row = forecasts[int(np.argmax(below))]
            what = f"has {np.nanmin(row):g} in column {self.model[int(np.argmax(row < 0))]!r}"
            raise wrong_row(batch, below, f"{what}, where probabilities must be 0 or more; correct it")
        total = forecasts.sum(axis=1)
        total[total <= 0] = np.nan
        # Numbers that were rounded to hundredths add up to 1 within this.
        rescaled = np.abs(total - 1.0) > 0.006 * len(self.model)
        if rescaled.any():
            if not self.n_rescaled:
                sums = f"has probabilities that add up to {total[rescaled][0]:g}"
                self.warn(batch, rescaled, f"{sums}; such rows are divided by their sum")
            self.n_rescaled += int(np.count_nonzero(rescaled))
        shares: Float64Array = forecasts / np.where(rescaled | np.isnan(total), total, 1.0)[:, None]
        return shares

    def _counts(self, batch: Batch) -> Counter[str]:
        column = by_value(batch.column(self.config.y))
        counts = np.bincount(column.codes[column.codes >= 0], minlength=len(column.values)).tolist()
        seen: Counter[str] = Counter()
        for value, count in zip(column.values, counts, strict=True):
            name = text(value)
            if name is not None and count:
                seen[name] += count
        return seen


def _all_of(seen: Counter[str], y: str, source: str) -> tuple[str, ...]:
    """The outcomes there are, as classes."""
    if len(seen) > MOST:
        many = f"column {y!r} of {source} has {len(seen):,} different outcomes ({_listed(list(seen))})"
        raise DataError(f"{many}, and --classes takes {MOST} at most; leave out --classes if they are numbers")
    if len(seen) < 2:
        raise DataError(f"all outcomes {y!r} of {source} so far are {next(iter(seen))!r}; classes need two or more")
    try:
        return tuple(sorted(seen, key=float))
    except ValueError:
        return tuple(sorted(seen))


def _named_by(columns: tuple[str, ...], seen: Counter[str], y: str, source: str) -> tuple[str, ...]:
    """The classes that columns are named after: what stands before and behind the class is the same in all of them."""
    best: tuple[int, tuple[str, ...]] = (0, ())
    for value in seen:
        for column in columns:
            at = column.find(value)
            while at >= 0:
                front, back = column[:at], column[at + len(value) :]
                alike = all(
                    each.startswith(front) and each.endswith(back) and len(each) > len(front) + len(back)
                    for each in columns
                )
                if alike:
                    names = tuple(each[len(front) : len(each) - len(back)] for each in columns)
                    best = max(best, (sum(seen[name] for name in names), names))
                at = column.find(value, at + 1)
    if not best[0]:
        shown = ",".join(f"{value}={column}" for value, column in zip(sorted(seen), columns, strict=False))
        outcomes = f"the outcomes {y!r} of {source} are {_listed(sorted(seen))}"
        what = f"the columns {_listed(columns)} do not say which class they are about: {outcomes}"
        raise DataError(f"{what}; give pairs, such as --p {shown}")
    return best[1]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:N_SHOWN_CLASSES])) + (", ..." if len(names) > N_SHOWN_CLASSES else "")


# --------
# The run.

N_FINE = 500
# A class that came up is taken to have had at least this probability, so that the log loss is a number.
_TINY = 1e-12
# Of the likeliest class, in every group.
_MEANS = ("right", "confidence", "brier", "log_loss")


class ClassesTask(Task):
    """A run of probabilities of classes, with the likeliest class and how sure that is."""

    doing = "forecasting classes"
    columns: ClassColumns
    model: Classes
    evaluation: "ClassesEvaluation"

    @property
    def outputs(self) -> tuple[str, ...]:
        """A probability for each class, the likeliest class, and how sure that is."""
        return ("row", *(f"p_{name}" for name in self.columns.classes), "top", "confidence")

    def _reader(self, first: Sequence[Batch]) -> ClassColumns:
        return ClassColumns(self.config, first, self.source)

    def _settle(self, first: Sequence[Batch], saved: Checkpoint | None) -> None:
        config, classes = self.config, self.columns.classes
        if saved is None:
            settings: dict[str, Any] = {"horizon": config.horizon, "seed": config.seed}
            settings |= config.given("max_pending", "protect", "budget")
            hint = OnlineRegression() if config.learns else None
            self.model = Classes(len(classes), self.contexts.groups, hint=hint, **settings)
        else:
            self.model = Classes.from_bytes(saved.forecaster)
            if self.model.n_classes != len(classes) or saved.plain["classes"] != list(classes):
                others = f"the classes {saved.plain['classes']}, and those of {self.source} are {list(classes)}"
                raise StateFileError(f"the state file is about {others}; {START_OVER}")
        self.evaluation = ClassesEvaluation(self.contexts, self._binnings(first), hinted=bool(self.columns.model))

    def _read(self, batch: Batch) -> Inputs:
        return Inputs(batch.rows, self.columns.labels(batch), self.columns.probabilities(batch))

    def play(self, inputs: Inputs) -> Float64Array:
        """Forecast rows, learn from them, and score them."""
        rows = weighted(inputs.rows.groups, inputs.weights)
        settings: dict[str, Any] = {"waits": inputs.waits, "order": self.config.order, **inputs.more}
        return self.scored(inputs, self.model.run_in_full(rows, inputs.y, inputs.hints, **settings))

    def own(self, inputs: Inputs) -> Float64Array | None:
        """The model's probabilities, its likeliest class, and how sure that is."""
        if inputs.hints is None:
            return None
        return np.column_stack([inputs.hints, np.argmax(inputs.hints, axis=1), inputs.hints.max(axis=1)])

    def output(self, inputs: Inputs, forecasts: Float64Array) -> dict[str, Any]:
        """The columns of the output but the first."""
        columns = {f"p_{name}": forecasts[:, k] for k, name in enumerate(self.columns.classes)}
        top = np.array(self.columns.classes, dtype=object)[forecasts[:, -2].astype(np.int64)]
        return {**columns, "top": top, "confidence": forecasts[:, -1]}

    @property
    def target(self) -> Probability:
        """Every class is an event."""
        return Probability()

    def _sections(self) -> tuple[Section, ...]:
        each_class = (self.evaluation.section(f"class{k}", name) for k, name in enumerate(self.columns.classes))
        return (self.evaluation.section(TOP, TOP), *each_class)

    def _counts(self) -> dict[str, int]:
        strange, rescaled = self.columns.n_strange, self.columns.n_rescaled
        return {"without_outcome": self.n_missing - strange, "of_no_class": strange, "rescaled": rescaled}

    def _verdict(self, sections: tuple[Section, ...], paired: dict[str, Paired]) -> Verdict:
        return class_verdict(sections, paired, self.evaluation.n_changed)

    def _guarantee(self) -> Guarantee | None:
        return None if self.config.by else Guarantee(self.model.guarantee(DELTA)[-1])

    def _facts(self) -> dict[str, Any]:
        return {"details": {"class_names": list(self.columns.classes)}}

    def _plain(self) -> dict[str, Any]:
        return {"classes": list(self.columns.classes)}

    def _binnings(self, first: Sequence[Batch]) -> list[Binning]:
        """Of each class, and last of the likeliest: after the model's first probabilities, or even ones."""
        samples = [np.linspace(0.0, 1.0, 1001)] * (len(self.columns.classes) + 1)
        if self.columns.model:
            hints = self._first(first, "probabilities")
            hints = hints[~np.isnan(hints).any(axis=1)]
            if len(hints):
                samples = [*hints.T, hints.max(axis=1)]
        return [binning(Probability(), np.clip(each, 0.0, 1.0), None) for each in samples]


class ClassesEvaluation(Evaluation):
    """Probabilities of the model and of swapcal: a column for each class and for the likeliest, and losses in pairs.

    Parameters
    ----------
    audience : ContextColumns
        For whom.
    binnings : sequence of Binning
        How the probabilities of each class are taken together, and last those of the likeliest.
    hinted : bool
        Whether there is a model.
    """

    def __init__(self, audience: ContextColumns, binnings: list[Binning], *, hinted: bool) -> None:
        fine = np.linspace(0.0, 1.0, N_FINE + 1)[1:-1]
        options: dict[str, Any] = {"first": np.array([0.0, 1.0]), "fine": fine}
        *each_class, likeliest = binnings

        def columns(label: str) -> dict[str, Column]:
            options["adaptive"] = label != "the model"
            top = audience.column(Probability(), likeliest, label, likeliest.shown, means=_MEANS, **options)
            each = [audience.column(Probability(), bins, label, bins.shown, **options) for bins in each_class]
            return {TOP: top, **{f"class{k}": column for k, column in enumerate(each)}}

        labels = {**({"before": "the model"} if hinted else {}), "after": "swapcal"}
        super().__init__({which: columns(label) for which, label in labels.items()}, (BRIER, "log loss"))

    def score(
        self, columns: Mapping[str, Column], y: Any, p: Any, rows: ContextRows, weights: Any, **more: Any
    ) -> tuple[Float64Array, ...]:
        """Add rows, nothing missing: the Brier score over all classes, and the log loss."""
        labels, came = y.astype(np.int64), np.zeros((len(y), p.shape[1] - 2))
        probabilities, top, sure = p[:, :-2], p[:, -2].astype(np.int64), p[:, -1]
        came[np.arange(len(labels)), labels] = 1.0
        for k in range(came.shape[1]):
            column = columns[f"class{k}"]
            column.add(came[:, k], np.clip(probabilities[:, k], 0.0, 1.0), rows.groups, weights=weights, **more)
        right = (labels == top).astype(np.float64)
        probability = probabilities[np.arange(len(labels)), labels]
        losses = ((probabilities - came) ** 2).sum(axis=1), -np.log(np.maximum(probability, _TINY))
        numbers = (right, sure, *losses)
        columns[TOP].add(right, np.clip(sure, 0.0, 1.0), rows.groups, weights=weights, numbers=numbers, **more)
        return losses

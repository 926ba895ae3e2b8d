"""What a row of a table goes through, whatever it gets: it is read, forecast, learned from, scored and written.

`Task` has all that one number, an interval and probabilities of classes share: which rows are done, those whose
outcomes come later, and the state from which a run goes on. What they are in the three cases is in `scalar`,
`interval` and `classes`.
"""

import copy
import hashlib
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from swapcal.audits.column import USUAL
from swapcal.audits.scores import Paired
from swapcal.engine.pending import OpenRounds
from swapcal.errors import DataError, StateFileError
from swapcal.protocols import Elicitable, Rows
from swapcal.state import joined, part_of
from swapcal.tables.batch import Batch, Fingerprint, entries
from swapcal.tasks.against import Against
from swapcal.tasks.checkpoint import START_OVER, Checkpoint
from swapcal.tasks.columns import ColumnReader, clusters_of
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.evaluation import ContextColumns, ContextRows, Evaluation, missing, told_clusters
from swapcal.tasks.outcomes import OutcomeTable, WaitingRows
from swapcal.tasks.outputs import kinds_of
from swapcal.tasks.result import Counts, Guarantee, Result, Section
from swapcal.text.sentences import late_sentences
from swapcal.text.verdict import Verdict
from swapcal.typing import Float64Array, IntArray

LATER = " (where blank outcomes are to be filled in later, begin with --later)"

_NOTHING: Mapping[str, Any] = {}


class Inputs(NamedTuple):
    """Some rows as numbers, NaN where something is missing.

    numbers: of the rows, from 0. hints: the model's forecasts. own: what else it says. contexts: None while nobody
    needs them. clusters: by number. waits: which of the rows without an outcome will have one later. more: what else
    `run` takes by name.
    """

    numbers: IntArray
    y: Float64Array
    hints: Float64Array | None
    own: Mapping[str, Any] = _NOTHING
    contexts: ContextRows | None = None
    weights: Float64Array | None = None
    clusters: IntArray | None = None
    waits: npt.NDArray[np.bool_] | None = None
    more: Mapping[str, Any] = _NOTHING

    @property
    def rows(self) -> ContextRows:
        """The contexts, which are there."""
        assert self.contexts is not None
        return self.contexts

    def part(self, rows: slice) -> "Inputs":
        """A run of these rows."""
        return self._some(rows, None if self.contexts is None else self.contexts.part(rows))

    def taken(self, rows: IntArray) -> "Inputs":
        """The rows with these numbers among them."""
        return self._some(rows, None if self.contexts is None else self.contexts.taken(rows))

    def _some(self, rows: Any, contexts: ContextRows | None) -> "Inputs":
        each = (self.hints, self.weights, self.clusters, self.waits)
        hints, weights, clusters, waits = (None if a is None else a[rows] for a in each)
        more, own = ({name: each[rows] for name, each in some.items()} for some in (self.more, self.own))
        return Inputs(self.numbers[rows], self.y[rows], hints, own, contexts, weights, clusters, waits, more)

    @classmethod
    def joined(cls, parts: Sequence["Inputs"]) -> "Inputs":
        """Several in one."""

        def joined(columns: list[Any]) -> Any:
            if isinstance(columns[0], Mapping):
                return {name: np.concatenate([each[name] for each in columns]) for name in columns[0]}
            if isinstance(columns[0], ContextRows):
                return ContextRows.joined(columns)
            return None if columns[0] is None else np.concatenate(columns)

        return cls(*(joined(list(column)) for column in zip(*parts, strict=True)))


class Task(ABC):
    """A run between two batches; it can be saved, and resumed later.

    Parameters
    ----------
    config : TaskConfig
        What is asked; its `horizon` None means anytime.
    first : sequence of Batch
        The first rows of the source, from which the rest of the settings is read off.
    source : str
        What messages call the records.
    saved : Checkpoint, optional
        Go on from there. The first rows must be the same as then, and all rows that are done come by `pass_over`.
    outcomes : optional
        A second table of outcomes that were blank.
    """

    # What a bar of progress says, and what is to be said where nothing was scored.
    doing: ClassVar[str]
    needs: ClassVar[str] = "forecasts can be made, but nothing can be learned"
    columns: ColumnReader
    model: Any
    evaluation: Evaluation
    against: Against | None = None

    def __init__(
        self,
        config: TaskConfig,
        first: Sequence[Batch],
        source: str,
        saved: Checkpoint | None = None,
        outcomes: Any = None,
    ) -> None:
        self.source = source
        self.settled = int(saved.plain["settled"]) if saved else min(sum(batch.n for batch in first), config.prefix)
        # Only the rows that settled things then may settle them now, also if there are more by now.
        self.config = config = replace(config, prefix=self.settled)
        self.waiting = WaitingRows(config.y) if config.later else None
        if self.waiting is not None:
            if saved is not None:
                self.waiting.restore(part_of(saved.arrays, "later."))
            first = [self.waiting.settling(batch) for batch in first]
        without = None if self.waiting is None else config.y
        self._head = Fingerprint.of(first, self.settled, config.columns, without)
        if self.waiting is None:
            self._check_head(saved)
        self.columns = self._reader(first)
        # What the output has, and what its columns hold.
        self.written = kinds_of(self.outputs, first[0] if first else None, config.keep)
        if self.waiting is not None:
            labels = self._first(first, "labels")
            self._head += hashlib.blake2b(labels.tobytes(), digest_size=16).hexdigest()
            self._check_head(saved)
            if saved is None:
                self.waiting.early = np.flatnonzero(np.isnan(labels))
        if self.waiting is not None and outcomes is not None:
            self.waiting.table = OutcomeTable(outcomes, config, self.columns)
        self._come: list[Inputs] = []
        self.fingerprint = Fingerprint(config.columns, without)
        self.n_rows = self.n_missing = self.n_unhinted = self.n_bad = 0
        self.contexts = self._contexts(first, saved)
        self.clusters = clusters_of(config, lambda name: entries(first[0].column(name)) if first else [])
        kept = USUAL if self.clusters is None else (*USUAL, "clusters")
        self.contexts.options = {"parts": kept, "anytime": config.anytime}
        self._settle(first, saved)
        if saved is not None:
            self._resume(saved)

    @property
    @abstractmethod
    def outputs(self) -> tuple[str, ...]:
        """Names of the columns of the output."""

    @abstractmethod
    def _reader(self, first: Sequence[Batch]) -> Any:
        """What reads the columns."""

    @abstractmethod
    def _settle(self, first: Sequence[Batch], saved: Checkpoint | None) -> None:
        """Make the model, new or as it was saved, and what is counted."""

    @abstractmethod
    def _read(self, batch: Batch) -> Inputs:
        """The outcomes of a batch, and what the model says of its rows."""

    @abstractmethod
    def play(self, inputs: Inputs) -> Float64Array:
        """Forecast rows, learn from them, and score them."""

    def score(self, inputs: Inputs, forecasts: Float64Array) -> None:
        """Count rows that have an outcome."""
        self.evaluation.add(
            inputs.y, self.own(inputs), forecasts, inputs.rows, inputs.weights, clusters=inputs.clusters
        )

    def own(self, inputs: Inputs) -> Float64Array | None:
        """What the model itself says of the rows, in the form of the forecasts; None without a model."""
        return inputs.hints

    def scored(self, inputs: Inputs, forecasts: Float64Array) -> Float64Array:
        """Count rows that were played elsewhere or before; the forecasts as the output has them."""
        self.score(inputs, forecasts)
        return forecasts

    @abstractmethod
    def output(self, inputs: Inputs, forecasts: Float64Array) -> dict[str, Any]:
        """The columns of the output but the first."""

    # --------
    # What the run has found.

    @property
    @abstractmethod
    def target(self) -> Elicitable:
        """What is asked about."""

    @property
    def seed(self) -> int:
        """Of the draws."""
        return int(self.model.seed)

    @abstractmethod
    def _sections(self) -> tuple[Section, ...]:
        """What is told of the columns, in their order."""

    @abstractmethod
    def _counts(self) -> dict[str, int]:
        """Rows that were left out or changed in a way that only this kind of task has."""

    @abstractmethod
    def _verdict(self, sections: tuple[Section, ...], paired: dict[str, Paired]) -> Verdict:
        """What to make of it."""

    @abstractmethod
    def _guarantee(self) -> Guarantee | None:
        """What is promised."""

    def _settings(self) -> dict[str, Any]:
        """What was settled of the settings."""
        return {"seed": self.seed}

    def _facts(self) -> dict[str, Any]:
        """Further fields of the result."""
        return {}

    def result(self, asked: TaskConfig, time: str | None) -> Result:
        """What the run has found; `time` is a column that looks like one."""
        found = self.evaluation
        if not found.leading.weight > 0:
            weighed = "" if asked.weight is None else f" and a weight above 0 in {asked.weight!r}"
            rows = f"row with an outcome in {asked.y!r}{weighed} that can be scored"
            raise DataError(f"{self.source} has no {rows}; {self.needs}")
        sections, paired = self._sections(), found.paired()
        told, late = self._verdict(sections, paired), {}
        if not self.config.by:
            late["lateness"] = self.model.lateness()
            told = replace(told, sentences=(*told.sentences, *late_sentences(asked.late, late["lateness"], time)))
        own = {"without_outcome": self.n_missing, "without_hint": self.n_unhinted, "bad_rows": self.n_bad}
        own |= self._counts()
        return Result.of(
            replace(asked, **self._settings()),
            self.source,
            self.target,
            counts=Counts(scored=found.leading.n_rounds, rows=self.n_rows, **own),
            verdict=told,
            sections=sections,
            bands={name: tuple(edges) for name, edges in self.contexts.edges.items()},
            guarantee=self._guarantee(),
            seed=self.seed,
            paired=paired,
            clusters=told_clusters(self.clusters, found.leading),
            **late,
            **self._facts(),
        )

    @property
    def rounds(self) -> OpenRounds:
        """The rounds of the model, one for each row, and which of them wait for their outcomes."""
        rounds: OpenRounds = self.model.rounds
        return rounds

    @property
    def window(self) -> int:
        """How many rows can wait for their outcomes."""
        return self.rounds.window

    def more(self, batch: Batch, inputs: Inputs) -> dict[str, Float64Array]:
        """What else the model's `run` takes of the rows of a batch, by name."""
        return {}

    def _plain(self) -> dict[str, Any]:
        """What else is saved, as plain data."""
        return {}

    def advance(self, batch: Batch) -> dict[str, Any]:
        """Forecast the rows of a batch and learn from them; the columns of the output."""
        inputs = self.count(batch)
        more = {**inputs.more, **self.more(batch, inputs)}
        inputs = inputs._replace(contexts=self.contexts.rows(batch), more=more)
        if self.waiting is not None:
            raw = self._outcomes(batch, inputs.weights)
            waits = np.isnan(raw) & (True if inputs.weights is None else inputs.weights > 0.0)
            inputs = inputs._replace(waits=waits)
        if inputs.weights is not None:  # rows of no weight are forecast, and not learned from
            inputs = inputs._replace(y=np.where(inputs.weights > 0.0, inputs.y, np.nan))
        forecasts = self.play(inputs)
        if self.against is not None:
            self.against.add(batch, inputs, forecasts)
        if self.waiting is not None:
            self.waiting.add(raw, waits, self.window)
        return self.lines(batch, inputs, forecasts)

    def lines(self, batch: Batch, inputs: Inputs, forecasts: Float64Array) -> dict[str, Any]:
        """The columns of the output: the numbers of rows, what is kept of the file, forecasts."""
        own = self.output(inputs, forecasts)
        kept = {name: batch.stored(name) for name in self.written if name != "row" and name not in own}
        return {"row": inputs.numbers + 1, **kept, **own}

    def keep_rows(self) -> None:  # noqa: B027 - one number a row alone has rivals
        """Remember the rows, which are all of the run, for what practitioners do instead."""

    def pass_over(self, batch: Batch) -> None:
        """Count rows that are done, and look which outcomes have come since."""
        inputs = self.count(batch if self.waiting is None else self.waiting.without(batch))
        if self.waiting is None:
            return
        raw = self._outcomes(batch, inputs.weights)
        rows = self.waiting.passed(batch, raw, lambda y: np.isnan(self.columns.learned(y)))
        if len(rows):
            groups = ContextRows(self.contexts.groups.rows(batch, batch.n), None)
            y = np.array([self.waiting.new[row] for row in batch.rows[rows].tolist()])
            self._come.append(inputs._replace(contexts=groups).taken(rows)._replace(y=y))

    def fill_in(self) -> tuple[int, tuple[str, ...]]:
        """Learn and score the outcomes that have come since: how many, and what there is to say about others."""
        if self.waiting is None:
            return 0, ()
        n = len(self.waiting.new)
        if n:
            inputs = Inputs.joined(self._come)
            inputs = inputs.taken(self.waiting.order(inputs.numbers))
            rows, raw, here = inputs.numbers, inputs.y, slice(0, n - len(self.waiting.named))
            inputs = self._as_held(inputs._replace(y=self.columns.learned(raw)))
            self.scored(inputs, self.model.fill_in(rows, inputs.y, known=inputs.more.get("known")))
            self.n_missing -= here.stop
            self.columns.look_outside(rows[here], raw[here])
            self.n_unhinted += self._unhinted_late(inputs.part(here))
        self.waiting.learned()
        return n, self.waiting.sentences(self.window, self.source)

    def _as_held(self, inputs: Inputs) -> Inputs:
        """Rows that wait, with their contexts as they were when they were forecast."""
        return inputs

    def _unhinted(self, inputs: Inputs) -> int:
        """How many of the rows have no forecast of the model, where it has any."""
        return 0 if inputs.hints is None else int(np.count_nonzero(missing(inputs.hints)))

    def _unhinted_late(self, inputs: Inputs) -> int:
        """How many of them were not counted as such before their outcomes came."""
        return 0

    def digest(self, *, then: bool = False) -> str:
        """Of all cells so far that are used; `then`: as they were when they were seen first."""
        return self.fingerprint.value() + ("" if self.waiting is None else self.waiting.digest(then=then))

    def save(
        self, asked: dict[str, Any], out: str | None, output: dict[str, Any] | None, *, finished: bool
    ) -> Checkpoint:
        """All that it takes to go on."""
        plain = {"settled": self.settled, "head": self._head, "audience": self.contexts.spec()}
        plain |= {"early": self.evaluation.n_early, "changed": self.evaluation.n_changed, **self._plain()}
        return Checkpoint(
            asked=asked,
            rows=self.n_rows,
            digest=self.digest(),
            out=out,
            output=output,
            finished=finished,
            plain=plain,
            forecaster=self.model.to_bytes(),
            arrays=joined({"evaluation": self.evaluation} | ({} if self.waiting is None else {"later": self.waiting})),
        )

    def _resume(self, saved: Checkpoint) -> None:
        """Let what is counted go on from what was kept; a ValueError where that cannot be."""
        if self.config.by is None and self.rounds.issued != saved.rows:
            raise ValueError(f"the model has forecast {self.rounds.issued} rows, and {saved.rows} are done")
        self.evaluation.restore(part_of(saved.arrays, "evaluation."))
        self.evaluation.n_early, self.evaluation.n_changed = (int(saved.plain[name]) for name in ("early", "changed"))

    def _check_head(self, saved: Checkpoint | None) -> None:
        if saved is not None and saved.plain["head"] != self._head:
            hint = LATER if self.waiting is None else ""
            rows = f"{self.source} does not begin with the rows that the state file has seen"
            raise StateFileError(f"{rows}; {START_OVER}{hint}")

    def _contexts(self, first: Sequence[Batch], saved: Checkpoint | None) -> ContextColumns:
        """For whom. The fewer positions there are, the smaller the guarantee."""
        if saved is not None:
            return ContextColumns.resumed(self.config, saved.plain["audience"])
        return ContextColumns.fitted(self.config, first).with_room(self.config)

    def _first(self, first: Sequence[Batch], name: str) -> Any:
        """What the reader makes of the rows that settle things, which are counted later, with all others."""
        reader = copy.copy(self.columns)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return np.concatenate([getattr(reader, name)(batch) for batch in first])[: self.settled]

    def count(self, batch: Batch) -> Inputs:
        """The rows of a batch, whose cells go into the fingerprint."""
        inputs = self._read(batch)
        self.fingerprint.add(batch)
        self.n_rows += batch.n
        self.n_unhinted += self._unhinted(inputs)
        clusters = None if self.clusters is None else self.clusters.numbers(batch)
        more, weights = self.columns.moments(batch), self.columns.weights(batch)
        y = batch.believed(inputs.y)
        self.n_bad += len(batch.wrong or ())
        self.n_missing += int(np.count_nonzero(np.isnan(y)))
        return inputs._replace(y=y, weights=weights, clusters=clusters, more=more)

    def _outcomes(self, batch: Batch, weights: Float64Array | None) -> Float64Array:
        """Outcomes as the file has them; those of rows without weight do not matter."""
        raw = self.columns.raw(batch)
        return raw if weights is None else np.where(weights > 0.0, raw, np.nan)


def weighted(rows: Rows, weights: Float64Array | None) -> Rows:
    """Rows whose values are multiplied by the weight of their round; with no weight they stay as they are."""
    if weights is None:
        return rows
    factors = np.where(weights > 0.0, weights, 1.0)
    return Rows(rows.indptr, rows.indices, rows.values * np.repeat(factors, np.diff(rows.indptr)))

"""What becomes of each case and each outcome: the rules of once and only once, before anything is stored."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

import swapcal as sc
from swapcal.lifecycle import Event, answer
from swapcal.service.registry import Registry
from swapcal.service.schemas import Case, Forecasted, Forgotten, Learned, Outcome, Problem, Refused
from swapcal.service.store import CaseRow, Commit, NotOwner, Request, pack
from swapcal.service.stream import Stream, ValidCase


class ForecastJob(NamedTuple):
    """Cases of one request; `fetched` are hints from the model server, for those that brought none."""

    stream: str
    items: Sequence[Case]
    fetched: Sequence[float | None] | None = None


class OutcomeJob(NamedTuple):
    """Outcomes of one request, and cases whose outcome will not come."""

    stream: str
    items: Sequence[Outcome]


Answer = list[Forecasted | Refused] | list[Learned | Forgotten | Refused] | Problem | NotOwner


class PlayedJobs(NamedTuple):
    """One answer for each job, and what must be stored before any of them is given."""

    answers: list[Answer]
    commits: list[Commit]


_json = msgspec.json.Encoder().encode


def play(jobs: Sequence[ForecastJob | OutcomeJob], registry: Registry, now: float, snapshot_every: int) -> PlayedJobs:
    """Play jobs in order, in memory. Whoever cannot store the commits must forget the streams."""
    answers: list[Answer] = [[] for _ in jobs]
    commits: list[Commit] = []
    places: dict[str, list[int]] = {}
    for place, job in enumerate(jobs):
        places.setdefault(job.stream, []).append(place)
    for name, here in places.items():
        try:
            stream = registry.get(name)
        except (Problem, NotOwner) as refusal:
            for place in here:
                answers[place] = refusal
            continue
        known = registry.store.find(name, list({item.id for place in here for item in jobs[place].items}))
        turn = _Turn(stream, known, stream.fresh_time(now))
        for place in here:
            answers[place] = turn.job(jobs[place])
        turn.settle()
        stream.end()
        if turn.cases or turn.outcomes:
            # The log has one line for the outcome of a case: where one was replaced, it begins behind that.
            due = turn.corrected or stream.seq - stream.snapshot_seq >= snapshot_every
            snapshot = stream.to_bytes() if due else None
            commits.append(Commit(name, stream.epoch, stream.seq, turn.cases, turn.outcomes, snapshot))
    return PlayedJobs(answers, commits)


class _Fresh(NamedTuple):
    """A case that waits for its forecast, and the place in an answer where that goes."""

    case: Case
    asked: ValidCase
    fetched: float | None
    answers: list[Any]
    place: int


class _Turn:
    """One stream's part of a transaction. New cases are gathered and forecast together, in the order they came."""

    def __init__(self, stream: Stream, known: dict[str, CaseRow], now: float) -> None:
        self.stream, self.known, self.now = stream, known, now
        self.oldest = now - stream.delay
        stream.begin(now)
        self.cases: list[CaseRow] = []
        self.outcomes: list[CaseRow] = []
        self.corrected = False
        self._fresh: dict[str, _Fresh] = {}

    def job(self, job: ForecastJob | OutcomeJob) -> Answer:
        """The answers to one request; those to new cases are filled in by `settle`."""
        if isinstance(job, OutcomeJob):
            self.settle()
            return [self.learn(item) for item in job.items]
        answers: list[Any] = [None] * len(job.items)
        for place, case in enumerate(job.items):
            fetched = None if job.fetched is None or case.hint is not None else job.fetched[place]
            if case.id in self._fresh:
                self.settle()
            row = self.known.get(case.id)
            if row is not None:
                answers[place] = self.again(case, row)
                continue
            hint = fetched if case.hint is None else case.hint
            try:
                valid = self.stream.validate(case.context, hint, case.weight)
            except sc.SwapcalError as error:
                answers[place] = _refused("invalid", case.id, str(error))
                continue
            self._fresh[case.id] = _Fresh(case, valid, fetched, answers, place)
            if not case.weight:
                self.settle()
                self._close(self.known[case.id], None)
        return answers

    def again(self, case: Case, row: CaseRow) -> Forecasted | Refused:
        """The answer to a case that was asked before."""
        asked = row.inputs()
        status, _ = answer(row.entry, Event("predict", asked=None if asked.same_as(case) else b"other"))
        if status == "conflict":
            return _refused(status, case.id, "this id was forecast with another context, hint or weight; take a new id")
        return self.answer(row, asked.used(), replayed=True)

    def answer(self, row: CaseRow, hint: float | None, *, replayed: bool) -> Forecasted:
        """What is told of a case that has been forecast."""
        made, calibrated = row.forecast(self.stream.identity), self.stream.is_calibrated(row.seq)
        drawn = made.other, made.probability, made.round
        return Forecasted(row.id, made.value, hint, *drawn, calibrated=calibrated, replayed=replayed)

    def settle(self) -> None:
        """Forecast the new cases that wait."""
        fresh, self._fresh = self._fresh, {}
        if not fresh:
            return
        seq, identity = self.stream.seq, self.stream.identity
        forecasts = self.stream.predict([one.asked for one in fresh.values()])
        for one, forecast in zip(fresh.values(), forecasts, strict=True):
            seq += 1
            request = _json(Request(one.case.context, one.case.hint, one.fetched, one.case.weight))
            row = CaseRow(one.case.id, seq, request, pack(forecast, identity), self.now, made=forecast)
            self.known[row.id] = row
            self.cases.append(row)
            one.answers[one.place] = self.answer(row, one.asked.hint, replayed=False)

    def learn(self, outcome: Outcome) -> Learned | Forgotten | Refused:
        """An outcome: learned now, learned before, or refused; and so for the word that none will come."""
        row, wanted = self.known.get(outcome.id), outcome.id
        event = Event("forget") if outcome.y is None else Event("learn", outcome.y)
        if row is None:
            status, _ = answer(None, event)
            return _refused(
                status, wanted, "no such case was forecast in this stream, or it was too long ago to be kept"
            )
        entry, corrections = row.entry, self.stream.spec.corrections
        try:
            forecast = row.forecast(self.stream.identity) if row.y_seq is None or corrections else None
        except sc.SwapcalError as error:
            return _refused("invalid", wanted, str(error))
        # Often it is the end of `delay` that tells somebody that no outcome will come.
        too_old = row.created < self.oldest and outcome.y is not None
        expired = forecast is not None and row.y_seq is None and (too_old or self.stream.is_expired(forecast))
        if corrections and forecast is not None and self.stream.is_held(forecast):
            entry = entry._replace(state="known")
        status, _ = answer(entry, event, expired=expired, corrections=corrections)
        if status == "expired":
            return _refused(status, wanted, "this case has waited too long; raise `delay` or `pending` of the stream")
        if status == "contradicted":
            return _refused(status, wanted, _contradiction(row, outcome))
        if status != "repeated":
            try:
                self._close(row, outcome.y)
                self.corrected |= status == "corrected"
            except sc.SwapcalError as error:
                status, _ = answer(row.entry, event._replace(invalid=True))
                return _refused(status, wanted, str(error))
        replayed = status == "repeated"
        return Forgotten(row.id, replayed) if row.y is None else Learned(row.id, row.y, replayed)

    def _close(self, row: CaseRow, y: float | None) -> None:
        self.stream.close(row.forecast(self.stream.identity), row.inputs().used(), y)
        row.y, row.y_seq, row.learned = y, self.stream.seq, self.now
        self.outcomes.append(row)


def _contradiction(row: CaseRow, outcome: Outcome) -> str:
    if row.y is None:
        return "this case is forgotten: it was said that its outcome would not come, and nothing is learned from it now"
    if outcome.y is None:
        return "the outcome of this case has come, for good; it cannot be forgotten"
    return "the outcome of this case is known and another; it was learned for good"


# The codes of what is refused.
HTTP = {"unknown": 404, "conflict": 409, "contradicted": 409, "expired": 410, "invalid": 422}


def _refused(status: str, id: str, detail: str) -> Refused:
    return Problem(HTTP[status], detail).refused(id)

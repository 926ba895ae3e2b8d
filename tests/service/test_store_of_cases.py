"""The life of a case, cell by cell, where cases are in the service's store: `lifecycle.TABLE` is what it answers."""

from pathlib import Path
from typing import Any

import pytest

import swapcal as sc
from swapcal.lifecycle import EVENTS, STATES, TABLE
from swapcal.service.idempotency import ForecastJob, OutcomeJob, play
from swapcal.service.registry import Registry
from swapcal.service.schemas import Case, Forecasted, Learned, Outcome, Refused
from swapcal.service.spec import StreamSpec
from swapcal.service.store import open_store

WINDOW = 5
REFUSED = {404: "unknown", 409: "contradicted", 410: "expired", 422: "invalid"}


class Desk:
    """Jobs on a store, one at a time."""

    def __init__(self, address: str) -> None:
        self.store = open_store(address)
        self.store.open()
        self.registry, self.now = Registry(self.store, 100), 0.0

    def ask(self, job: ForecastJob | OutcomeJob) -> str:
        """One event: committed, and what became of it in a word of the table."""
        self.now += 1.0
        played = play([job], self.registry, self.now, 1000)
        self.store.commit(played.commits)
        answers: Any = played.answers[0]
        answer = answers[0]
        if isinstance(answer, Refused):
            status = REFUSED[answer.status]
            return "conflict" if status == "contradicted" and isinstance(job, ForecastJob) else status
        if isinstance(answer, Forecasted):
            return "same forecast" if answer.replayed else "forecast"
        return "repeated" if answer.replayed else "learned" if isinstance(answer, Learned) else "forgotten"

    def case(self, stream: str, name: str, hint: float = 0.3) -> str:
        return self.ask(ForecastJob(stream, [Case(name, {}, hint)]))

    def outcome(self, stream: str, name: str, y: float | None) -> str:
        return self.ask(OutcomeJob(stream, [Outcome(name, y)]))

    def bring(self, stream: str, state: str) -> None:
        """Case "a" of a new stream is in this state."""
        order: Any = "forecast" if state == "known" else "arrival"
        self.registry.create(stream, StreamSpec(seed=1, pending=WINDOW, outcome_order=order))
        if state == "known":  # it waits for the outcome of an earlier forecast
            self.case(stream, "first")
        if state != "unknown":
            assert self.case(stream, "a") == "forecast"
        if state in ("known", "learned"):
            assert self.outcome(stream, "a", 1.0) == "learned"
        elif state == "forgotten":
            assert self.outcome(stream, "a", None) == "forgotten"
        elif state == "expired":
            for k in range(WINDOW + 1):
                self.case(stream, f"b{k}")

    def event(self, stream: str, kind: str) -> str:
        if kind.startswith("predict"):
            return self.case(stream, "a", 0.3 if kind == "predict" else 0.7)
        return self.outcome(stream, "a", {"learn": 1.0, "learn other": 0.0, "learn invalid": 7.0}.get(kind))


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    return str(tmp_path / "swapcal.db")


@pytest.mark.parametrize("store", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
@pytest.mark.parametrize("reloaded", [False, True])
def test_each_cell_of_the_store(store: str, reloaded: bool, request: pytest.FixtureRequest) -> None:
    desk = Desk(request.getfixturevalue(store))
    try:
        statuses = {}
        for state in STATES:
            for kind in EVENTS:
                stream = f"{state}-{kind}".replace(" ", "-")
                desk.bring(stream, state)
                if reloaded:
                    desk.registry.forget(stream)
                statuses[state, kind] = desk.event(stream, kind)
        assert statuses == {(state, kind): TABLE[state][k] for state in STATES for k, kind in enumerate(EVENTS)}
    finally:
        desk.store.close()


@pytest.mark.parametrize("reloaded", [False, True])
def test_a_held_outcome_is_corrected_until_it_is_learned(sqlite: str, reloaded: bool) -> None:
    desk = Desk(sqlite)
    try:
        states = {}
        for stream, told in (("told", [0.0]), ("corrected", [1.0, 1.0, 0.0]), ("for-good", [1.0, 0.0])):
            spec = StreamSpec(seed=1, outcome_order="forecast", corrections=stream == "corrected")
            desk.registry.create(stream, spec)
            for name in "abc":
                desk.case(stream, name)
            answers = [desk.outcome(stream, "b", y) for y in told]
            if reloaded:
                desk.registry.forget(stream)
            assert desk.outcome(stream, "a", 1.0) == "learned"
            assert desk.outcome(stream, "b", 1.0 - told[-1]) == ("repeated" if stream == "for-good" else "contradicted")
            if reloaded:  # the log behind the snapshot that the correction has made
                desk.registry.forget(stream)
            desk.case(stream, "d")
            states[stream] = (answers, desk.registry.get(stream).forecaster.error(), desk.registry.get(stream).seq)
        assert states["told"][0] == ["learned"]
        assert states["corrected"][0] == ["learned", "repeated", "learned"]
        assert states["for-good"][0] == ["learned", "contradicted"]
        assert states["corrected"][1] == states["told"][1] != states["for-good"][1]
        assert states["corrected"][2] == states["told"][2] + 1
    finally:
        desk.store.close()
    with pytest.raises(sc.InvalidInput, match="outcome_order"):
        StreamSpec(corrections=True).config()

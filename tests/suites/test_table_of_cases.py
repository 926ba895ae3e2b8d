"""The life of a case, cell by cell: the same table whatever book the cases are in."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import swapcal as sc
from swapcal.cases import Cases, Events
from swapcal.lifecycle import EVENTS, NEXT, STATES, STATUSES, TABLE, Entry, Event, answer

Y, OTHER = 0.25, 0.75
KINDS: dict[str, Event] = {
    "predict": Event("predict", asked=b"x"),
    "predict other": Event("predict", asked=b"z"),
    "learn": Event("learn", Y),
    "learn other": Event("learn", OTHER),
    "learn invalid": Event("learn", math.inf, invalid=True),
    "forget": Event("forget"),
}
AGAIN = "same forecast", "conflict"
CLOSED = "repeated", "contradicted", "contradicted", "contradicted"
ROWS = {
    "unknown": ("forecast", "forecast", "unknown", "unknown", "unknown", "unknown"),
    "waiting": (*AGAIN, "learned", "learned", "invalid", "forgotten"),
    "known": (*AGAIN, *CLOSED),
    "learned": (*AGAIN, *CLOSED),
    "expired": (*AGAIN, "expired", "expired", "expired", "expired"),
    "forgotten": (*AGAIN, *reversed(CLOSED)),
}
AFTER = {"forecast": "waiting", "learned": "learned", "forgotten": "forgotten"}
CELLS = {(state, kind): status for state, row in ROWS.items() for kind, status in zip(KINDS, row, strict=True)}
WANTED = {cell: (status, AFTER.get(status, cell[0])) for cell, status in CELLS.items()}


def entry(state: str) -> Entry | None:
    y = Y if state in ("known", "learned") else None
    return None if state == "unknown" else Entry(state, y, b"x")


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", EVENTS)
def test_each_cell(state: str, kind: str) -> None:
    assert answer(entry(state), KINDS[kind]) == WANTED[state, kind]


def test_the_table_is_whole() -> None:
    assert set(TABLE) == set(STATES)
    assert (set(ROWS), tuple(KINDS)) == (set(STATES), EVENTS)
    assert {status for row in TABLE.values() for status in row} | {"held", "corrected"} == set(STATUSES)
    assert set(NEXT.values()) < set(STATES)


@pytest.mark.parametrize("state", ["waiting", "known"])
def test_too_late(state: str) -> None:
    for kind in ("learn", "learn other", "learn invalid", "forget"):
        assert answer(entry(state), KINDS[kind], expired=True) == ("expired", "expired")


def test_held_and_corrected() -> None:
    assert answer(entry("waiting"), KINDS["learn"], held=True) == ("held", "known")
    assert answer(entry("known"), KINDS["learn other"], corrections=True) == ("corrected", "known")
    assert answer(entry("known"), KINDS["learn"], corrections=True) == ("repeated", "known")
    for state in ("learned", "forgotten"):
        assert answer(entry(state), KINDS["learn other"], corrections=True) == ("contradicted", state)


# The same of events that are played: a case is brought into a state, and then one more event comes.

WINDOW = 4


def forecaster() -> sc.Forecaster:
    return sc.Forecaster(sc.Mean(), sc.Finite(1), seed=1, max_pending=WINDOW)


def case(name: Any) -> Events:
    return Events([name], [math.nan], [[1.0]], [0.5])


def bring(cases: Cases, name: Any, state: str, later: Callable[[int], Any]) -> None:
    if state == "unknown":
        return
    assert cases.play(case(name)).status == ["forecast"]
    if state == "known":
        assert cases.learn([name], [Y], known=[100.0]).status == ["held"]
    elif state == "learned":
        assert cases.learn([name], [Y]).status == ["learned"]
    elif state == "forgotten":
        assert cases.forget([name]).status == ["forgotten"]
    elif state == "expired":
        for k in range(WINDOW + 1):
            cases.play(case(later(k)))


def event(kind: str, name: Any) -> Events:
    if kind == "predict":
        return case(name)
    if kind == "forget":
        return Events([name], [math.nan], (), never=np.array([True]))
    return Events([name], [{"learn": Y, "learn other": OTHER, "learn invalid": 7.0}[kind]], ())


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", [kind for kind in EVENTS if kind != "predict other"])
def test_each_cell_of_cases(saved: bool, state: str, kind: str) -> None:
    cases = Cases(forecaster())
    bring(cases, "a", state, lambda k: f"b{k}")
    if saved:
        cases = Cases.from_bytes(cases.to_bytes())
    assert cases.state("a") == state
    status, after = WANTED[state, kind]
    assert cases.play(event(kind, "a")).status == [status]
    assert cases.state("a") == after

"""One process: it plays its keys, and keeps as many of them in memory as it may."""

import contextlib
import threading
import time
from collections import OrderedDict
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np

from swapcal.audit import Audit
from swapcal.forecaster import Forecaster
from swapcal.keyed.siblings import key_text, sibling
from swapcal.keyed.store import Store
from swapcal.tables.coded import Coded
from swapcal.typing import Float64Array, IntArray

__all__ = ["Part", "Player", "serve", "taken"]


class Part(NamedTuple):
    """Rows of some keys: the key of each by its code, outcomes, hints, and the columns of the groups.

    `more` is what else `Forecaster.run` takes by name: weights, times, and when outcomes are known.
    """

    keys: Coded
    y: Float64Array
    hints: Float64Array | None
    columns: dict[str, Coded | Float64Array]
    more: dict[str, Any]

    def taken(self, rows: IntArray) -> "Part":
        """Some of the rows."""
        columns = {name: taken(column, rows) for name, column in self.columns.items()}
        hints = None if self.hints is None else self.hints[rows]
        more = {name: each[rows] for name, each in self.more.items()}
        return Part(Coded(self.keys.codes[rows], self.keys.values), self.y[rows], hints, columns, more)


class Player:
    """Forecasters by key, the ones used longest ago as bytes on disk; and the audits of what was played.

    Parameters
    ----------
    template : bytes
        The configuration of every key.
    folder : path
        For states that do not stay in memory; what is in it ends with the process.
    number : int
        Which process this is.
    resident : int
        How many keys stay in memory.
    n_bins : int
        Bins of the audits.
    """

    def __init__(self, template: bytes, folder: Path, number: int, resident: int, n_bins: int) -> None:
        self._template, self._resident, self._n_bins = Forecaster.from_bytes(template), resident, n_bins
        self._entries: OrderedDict[str, Forecaster] = OrderedDict()
        self._store, self._dirty = Store(folder / f"{number}.db"), dict[str, None]()
        self._new_audits()

    def play(self, part: Part, states: list[tuple[str, bytes]]) -> Float64Array:
        """The forecasts of some rows, in their order; keys that come for the first time may have states from before."""
        if states:
            self._store.put([(key, 0.0, state) for key, state in states])
        out = np.empty(len(part.y))
        order = np.argsort(part.keys.codes, kind="stable")
        codes = part.keys.codes[order]
        starts = np.flatnonzero(np.diff(codes, prepend=-2))
        for rows in np.split(order, starts[1:]):
            key = str(part.keys.values[part.keys.codes[rows[0]]])
            own = part.taken(rows)
            x: Any = own.columns if own.columns else np.ones((len(rows), 1))
            out[rows] = self._forecaster(key).run(x, own.y, own.hints, missing="skip", **own.more)
            self._dirty[key] = None
        known = np.flatnonzero(~np.isnan(part.y))
        if len(known):
            whole = part.taken(known)
            x = whole.columns if whole.columns else np.ones((len(known), 1))
            self._after.update_many(whole.y, out[known], x, weights=whole.more.get("weights"))
            if whole.hints is not None and self._before is not None:
                hinted = np.flatnonzero(~np.isnan(whole.hints))
                own = whole.taken(hinted)
                given = np.zeros(0) if own.hints is None else own.hints
                x = own.columns if own.columns else np.ones((len(hinted), 1))
                self._before.update_many(own.y, given, x, weights=own.more.get("weights"))
        return out

    def commit(self) -> tuple[list[tuple[str, bytes]], bytes, bytes, float]:
        """The states that have changed since the last commit, the audits of the rows since, and processor seconds."""
        states = []
        for key in self._dirty:
            own = self._entries.get(key)
            found = self._store.get(key) if own is None else None
            states.append((key, own.to_bytes() if own is not None else b"" if found is None else found[1]))
        self._dirty = {}
        audits = self._before.to_bytes(), self._after.to_bytes()
        self._new_audits()
        return states, *audits, time.process_time()

    def _new_audits(self) -> None:
        spec, functions = self._template.property, sibling(self._template, "audit").hypotheses
        self._before, self._after = (Audit(spec, functions, bins=self._n_bins) for _ in range(2))

    def _forecaster(self, key: str) -> Forecaster:
        found = self._entries.pop(key, None)
        if found is None:
            stored = self._store.get(key)
            if stored is None:
                found = sibling(self._template, "key", key_text(key))
            else:
                found = Forecaster.from_bytes(stored[1])
        self._entries[key] = found
        while len(self._entries) > self._resident:
            oldest, left = self._entries.popitem(last=False)
            self._store.put([(oldest, 0.0, left.to_bytes())])
        return found


def serve(pipe: Connection) -> None:
    """What the process does: told what to play, it answers ("play" | "commit", argument) until the pipe is closed."""
    # Questions are taken from the pipe as they come, also while one is answered: who asks never waits for who answers.
    waiting: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_listen, args=(pipe, waiting), daemon=True).start()
    try:
        settings = waiting.get()
        player = None if settings is None else Player(*settings)
        while player is not None and (question := waiting.get()) is not None:
            what, argument = question
            pipe.send(player.play(*argument) if what == "play" else player.commit())
    except KeyboardInterrupt:
        return
    except Exception as error:
        with contextlib.suppress(OSError):
            pipe.send(error)


def _listen(pipe: Connection, waiting: "SimpleQueue[Any]") -> None:
    """Put what comes into the queue; None at the end."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            waiting.put(pipe.recv())
    waiting.put(None)


def taken(column: Coded | Float64Array, rows: IntArray) -> Coded | Float64Array:
    """Some rows of a column."""
    return Coded(column.codes[rows], column.values) if isinstance(column, Coded) else column[rows]

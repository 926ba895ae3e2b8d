"""Cost and memory of a key and of a row, at any number of keys."""

import time
import tracemalloc
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from swapcal.cases import Cases, Events, step
from swapcal.forecaster import Forecaster
from swapcal.hypotheses import Finite
from swapcal.keyed import forecaster_for_key, key_text
from swapcal.properties import Probability
from swapcal.typing import Float64Array

__all__ = ["GROUPS", "KeyCost", "key_cost", "rows_of", "template"]

GROUPS = 20


class KeyCost(NamedTuple):
    """Processor microseconds a row of `run`, of the step with state as bytes, and of a loop; bytes of a key."""

    keys: int
    rows: int
    run: float
    step: float
    loop: float
    state: float
    resident: float
    write: float
    read: float


def template() -> Forecaster:
    """Of every key: a probability for 20 groups, with a hint."""
    return Forecaster(Probability(), Finite(GROUPS), seed=1, max_pending=64)


def rows_of(rng: np.random.Generator, n: int) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Contexts, outcomes and hints of a key: everybody, and each group with probability a fifth."""
    x = (rng.random((n, GROUPS)) < 0.2).astype(np.float64)
    x[:, 0] = 1.0
    hints = rng.beta(2.0, 3.0, n)
    return x, (rng.random(n) < 0.8 * hints + 0.1 * x[:, 1]).astype(np.float64), hints


def key_cost(n_keys: int, n_rows: int, *, sampled: int = 200) -> KeyCost:
    """Measured on a sample of the keys, which are all alike and independent; the number of keys only fills memory.

    Parameters
    ----------
    n_keys, n_rows : int
        Keys, and rows of each.
    sampled : int
        How many keys are played for the times; the states of all are kept.

    Returns
    -------
    KeyCost
        Means over the sample.
    """
    rng, made = np.random.default_rng(0), template()
    n = min(n_keys, sampled)
    data = [rows_of(rng, n_rows) for _ in range(n)]
    names = [key_text(k) for k in range(n)]
    run = _seconds(lambda: [forecaster_for_key(made, "key", k).run(*some) for k, some in zip(names, data, strict=True)])
    stepped = _seconds(
        lambda: [_stepped(forecaster_for_key(made, "key", k), some) for k, some in zip(names, data, strict=True)]
    )
    looped = _seconds(
        lambda: [_looped(forecaster_for_key(made, "key", k), some) for k, some in zip(names, data, strict=True)]
    )
    played = [forecaster_for_key(made, "key", k) for k in names]
    for forecaster, some in zip(played, data, strict=True):
        forecaster.run(*some)
    states = [forecaster.to_bytes() for forecaster in played]
    # The best of nine for each key, as others may be at work on the machine.
    write = sum(min(_seconds(each.to_bytes) for _ in range(9)) for each in played)
    read = sum(min(_seconds(partial(Forecaster.from_bytes, each)) for _ in range(9)) for each in states)
    tracemalloc.start()
    # All keys at once, as bytes: what a store in memory takes.
    kept = {k: bytes(bytearray(states[k % n])) for k in range(n_keys)}
    in_store, _ = tracemalloc.get_traced_memory()
    del kept
    before, _ = tracemalloc.get_traced_memory()
    live = [Forecaster.from_bytes(state) for state in states]
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    total = n * n_rows
    return KeyCost(
        n_keys,
        n_rows,
        run / total * 1e6,
        stepped / total * 1e6,
        looped / total * 1e6,
        in_store / n_keys,
        (after - before) / len(live),
        write / n * 1e6,
        read / n * 1e6,
    )


def _seconds(call: Any) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def _stepped(forecaster: Forecaster, some: tuple[Float64Array, ...]) -> bytes:
    """Ten batches of events, the outcome of a case after the next case, the state as bytes between batches."""
    x, y, hints = some
    state, n = Cases(forecaster).to_bytes(), len(y)
    for start in range(0, n, max(n // 10, 1)):
        stop = min(start + max(n // 10, 1), n)
        size = stop - start
        ids = np.repeat(np.arange(start, stop), 2)
        outcomes = np.full(2 * size, np.nan)
        outcomes[1::2] = y[start:stop]
        state, _ = step(state, Events(ids.tolist(), outcomes, x[start:stop], hints[start:stop]))
    return state


def _looped(forecaster: Forecaster, some: tuple[Float64Array, ...]) -> Forecaster:
    """The same with `predict` and `update` for each event, and the state as bytes ten times."""
    x, y, hints = some
    for t, label in enumerate(y.tolist()):
        forecaster.update(forecaster.predict(x[t], hint=hints[t]), label)
        if (t + 1) % max(len(y) // 10, 1) == 0:
            forecaster = Forecaster.from_bytes(forecaster.to_bytes())
    return forecaster

"""How odd inputs are thrown, and what is written down when one is not caught."""

import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import swapcal as sc
from effort import ALL
from odd_inputs import Meaning, scalar, vector
from swapcal.inputs import short_repr
from swapcal.protocols import Elicitable
from swapcal.typing import Float64Array

Rng = np.random.Generator

FULL = {"predict": 32_000, "update": 28_000, "run": 9_000, "errors": 21_000, "audit": 12_000}
PLAN = {name: n if ALL else n // 10 for name, n in FULL.items()}
"""How many inputs each test throws in all, and in this lane; each counts its own and compares."""

N = 4


def finite() -> sc.Forecaster:
    return sc.Forecaster(sc.Mean(), sc.Finite(N), horizon=200, levels=3, max_pending=64, seed=1)


def linear() -> sc.Forecaster:
    return sc.Forecaster(sc.Expectile(0.3, low=-5.0, high=5.0), sc.Linear(N, radius=0.5), max_pending=64, seed=2)


def learning() -> sc.Forecaster:
    hint = sc.OnlineRegression(n_features=3)
    potential = sc.potentials.Squint()
    hypotheses = sc.Finite(N, potential=potential)
    return sc.Forecaster(sc.Quantile(0.7), hypotheses, bins=5, jitter=0.1, hint=hint, max_pending=64, levels=2, seed=3)


def polynomial() -> sc.Forecaster:
    return sc.Forecaster(sc.Probability(), sc.Finite(N, potential=sc.potentials.PNorm()), max_pending=64, seed=4)


MAKERS = (finite, linear, learning, polynomial)


class Faults:
    """What went wrong, with the input that did it."""

    def __init__(self) -> None:
        self.n, self.accepted, self.found = 0, 0, list[str]()

    def note(self, seed: int, given: Any, what: str) -> None:
        if len(self.found) < 20:
            self.found.append(f"seed {seed}: {what} for {short_repr(given)}")

    def verdict(self, planned: int) -> None:
        assert not self.found, "\n".join(self.found)
        assert self.n == planned
        # Neither everything nor nothing passed: the test would be blind.
        assert 0.02 < self.accepted / self.n < 0.9, self.accepted / self.n


def digest(forecaster: sc.Forecaster) -> Any:
    counters, arrays = forecaster.state.snapshot()
    return counters, {name: (array.shape, array.dtype.str, array.tobytes()) for name, array in arrays.items()}


def is_sound(forecaster: sc.Forecaster) -> bool:
    return all(np.isfinite(array).all() for array in forecaster.state.snapshot()[1].values())


def attempt(
    faults: Faults, seed: int, given: Any, state: Callable[[], Any], call: Callable[[], Any], *, meant: bool | None
) -> Any:
    """The call's result, or None if it was refused; `meant` says whether it should be taken, None that it may be."""
    faults.n += 1
    before = state()
    try:
        result = call()
    except sc.SwapcalError as error:
        if state() != before:
            faults.note(seed, given, f"{type(error).__name__} changed the state")
        if not str(error):
            faults.note(seed, given, "an error without a message")
        if meant is True:
            faults.note(seed, given, f"refused though it is right ({error})")
        return None
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        faults.note(seed, given, f"{type(error).__name__}: {error} (in {where.name}, line {where.lineno})")
        return None
    faults.accepted += 1
    if meant is False:
        faults.note(seed, given, f"taken, with the result {short_repr(result)},")
    return result


def all_mean(*parts: Meaning | None) -> bool | None:
    """Whether a call with these arguments should be taken; None if either will do."""
    given = [part for part in parts if part is not None]
    if any(part.means is None and not part.doubtful for part in given):
        return False
    return None if any(part.doubtful for part in given) else True


def in_domain(property: Elicitable, value: float) -> bool:
    low, high = property.domain
    return isinstance(value, float) and low <= value <= high


def good_context(rng: Rng) -> Float64Array:
    return rng.uniform(-0.5, 0.5, N)


def good_label(forecaster: sc.Forecaster, rng: Rng) -> float:
    low, high = forecaster.property.low, forecaster.property.high
    return float(rng.choice([low, high])) if isinstance(forecaster.property, sc.Probability) else rng.uniform(low, high)


def options(forecaster: sc.Forecaster, rng: Rng) -> dict[str, Any]:
    return {"features": rng.normal(size=3)} if forecaster.hint is not None else {}


def cases(name: str) -> Iterator[tuple[int, Rng]]:
    for seed in range(PLAN[name]):
        yield seed, np.random.default_rng((len(name), seed))


def odd_features(forecaster: sc.Forecaster, rng: Rng) -> Meaning:
    if forecaster.hint is None:
        return Meaning(None, ()) if rng.random() < 0.95 else Meaning([0.5], None)
    return Meaning(rng.normal(size=3), ()) if rng.random() < 0.7 else vector(rng, rng.normal(size=3))


def odd_hint(forecaster: sc.Forecaster, rng: Rng) -> Meaning:
    hint = Meaning(None, None) if rng.random() < 0.6 else scalar(rng, *forecaster.property.domain)
    return Meaning(None, ()) if hint.given is None else hint


def shape_of(given: Any) -> Any:
    return given.shape if isinstance(given, np.ndarray) else None

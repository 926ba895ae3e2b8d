"""The rivals that hedge between two neighbors, ready to be made and played against."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import swapcal as sc
from swapcal.paper.method import Plan, PublishedMethod
from swapcal.protocols import Elicitable
from swapcal.rivals.conformal import MVP
from swapcal.rivals.garg2024 import Garg2024Finite
from swapcal.rivals.ghuge2025 import Ghuge2025
from swapcal.rivals.gupta2022 import Gupta2022
from swapcal.rivals.haghtalab2023 import Haghtalab2023
from swapcal.rivals.hu_wu2024 import HuWu2024
from swapcal.rivals.noarov import Noarov2025, NoarovRoth2023, Roth2022
from swapcal.rivals.okoroafor2025 import Okoroafor2025
from swapcal.typing import Float64Array

CASES: dict[str, tuple[type[PublishedMethod], Elicitable, dict[str, Any]]] = {
    "gupta": (Gupta2022, sc.Mean(), {}),
    "gupta middle": (Gupta2022, sc.Mean(), {"forecasts": "middle", "bins": 7}),
    "mvp": (MVP, sc.Quantile(0.8), {}),
    "mvp theory": (MVP, sc.Quantile(0.8), {"rate": "theory", "bins": 5}),
    "noarov-roth": (NoarovRoth2023, sc.Expectile(0.7), {}),
    "roth": (Roth2022, sc.Quantile(0.3), {}),
    "garg": (Garg2024Finite, sc.Mean(), {}),
    "haghtalab": (Haghtalab2023, sc.Mean(), {}),
    "haghtalab prod": (Haghtalab2023, sc.Mean(), {"adversary": "prod"}),
    "ghuge": (Ghuge2025, sc.Mean(), {}),
    "ghuge averaged": (Ghuge2025, sc.Mean(), {"halfspace": "averaged"}),
    "noarov": (Noarov2025, sc.Mean(), {}),
    "noarov simulated": (Noarov2025, sc.Mean(), {"inner": "simulated", "max_steps": 30, "forecasts": "middle"}),
    "hu-wu": (HuWu2024, sc.Mean(), {}),
    "hu-wu simulated": (HuWu2024, sc.Mean(), {"inner": "simulated", "max_steps": 30, "forecasts": "middle"}),
    "okoroafor": (Okoroafor2025, sc.Mean(), {}),
}
T, N_FUNCTIONS = 150, 4

every_rival = pytest.mark.parametrize("name", CASES)


def make(name: str, *, seed: int = 3, property: Elicitable | None = None) -> Any:
    kind, default, options = CASES[name]
    make_any: Callable[..., Any] = kind
    return make_any(property or default, sc.Finite(N_FUNCTIONS), horizon=T, seed=seed, **options)


def stream(n_rounds: int, n_functions: int = N_FUNCTIONS, seed: int = 0) -> tuple[Float64Array, Float64Array]:
    """Groups that overlap, now and then none of them, and labels that depend on them and on time."""
    rng = np.random.default_rng(seed)
    x = (rng.random((n_rounds, n_functions)) < 0.5).astype(float)
    center = 0.3 + 0.3 * x[:, 0] + 0.15 * np.sin(np.arange(n_rounds) / 40.0)
    return x, np.clip(center + 0.25 * (rng.random(n_rounds) - 0.5), 0.0, 1.0)


def state(method: PublishedMethod) -> dict[str, Any]:
    """What a method has learned: all but the book of open rounds."""
    return {k: v for k, v in copy.deepcopy(method.__dict__).items() if k not in ("_open", "_issued", "_identity")}


def alike(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return bool(np.array_equal(a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(alike(v, b[k]) for k, v in a.items())
    if type(a).__module__.startswith("swapcal.") and hasattr(a, "__dict__"):
        return alike(a.__dict__, b.__dict__)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(alike, a, b))
    return bool(a == b)


def far_label(plan: Plan) -> float:
    """The end of [0, 1] that is further from the forecast's mean: the adversary sees all but the draw."""
    mean = sum(p * v for p, v in zip(plan.probabilities, plan.values, strict=True))
    return 1.0 if mean < 0.5 else 0.0


def play(method: Any, x: Float64Array, answer: Callable[[Plan], float]) -> Float64Array:
    """Run a game against an adversary that answers the plan; the labels."""
    labels = []
    for row in x:
        labels.append(answer(method.plan(method.hypotheses.row(row), None)))
        method.update(method.predict(row), labels[-1])
    return np.array(labels)

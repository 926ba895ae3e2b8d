"""The rivals that hedge between two neighbors, ready to be made and played against."""

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

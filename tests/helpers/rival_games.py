"""One of every rival, in every variant, and what the tests play against them."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

import swapcal as sc
from swapcal.paper.method import Plan, PublishedMethod
from swapcal.protocols import Elicitable
from swapcal.rivals import all_rivals
from swapcal.typing import Float64Array

N_ROUNDS, N_GROUPS = 250, 4
Data = tuple[Float64Array, Float64Array, Float64Array]

HEDGING: dict[str, tuple[str, Elicitable, dict[str, Any]]] = {
    "gupta": ("Gupta2022", sc.Mean(), {}),
    "gupta middle": ("Gupta2022", sc.Mean(), {"forecasts": "middle", "bins": 7}),
    "mvp": ("MVP", sc.Quantile(0.8), {}),
    "mvp theory": ("MVP", sc.Quantile(0.8), {"rate": "theory", "bins": 5}),
    "noarov-roth": ("NoarovRoth2023", sc.Expectile(0.7), {}),
    "roth": ("Roth2022", sc.Quantile(0.3), {}),
    "garg finite": ("Garg2024Finite", sc.Mean(), {}),
    "haghtalab": ("Haghtalab2023", sc.Mean(), {}),
    "ghuge": ("Ghuge2025", sc.Mean(), {}),
    "ghuge averaged": ("Ghuge2025", sc.Mean(), {"halfspace": "averaged"}),
    "noarov": ("Noarov2025", sc.Mean(), {}),
    "noarov middle": ("Noarov2025", sc.Mean(), {"forecasts": "middle"}),
    "hu-wu": ("HuWu2024", sc.Mean(), {}),
    "hu-wu middle": ("HuWu2024", sc.Mean(), {"forecasts": "middle"}),
    "okoroafor": ("Okoroafor2025", sc.Mean(), {}),
}
RIVALS = HEDGING | {
    "garg": ("Garg2024", sc.Mean(), {}),
    "garg linear": ("Garg2024", sc.Moment(2), {"linear": True}),
    "garg quantile": ("Garg2024Quantile", sc.Quantile(0.8), {}),
    "luo": ("Luo2025", sc.Mean(), {"linear": True, "bins": 6}),
    "foster-hart": ("FosterHart2023", sc.Mean(), {}),
    "calibeating": ("FosterHart2023", sc.Mean(), {"linear": True, "calibrated": False}),
    "ghuge oracle": ("Ghuge2025Oracle", sc.Mean(), {}),
    "raw": ("RawModel", sc.Expectile(0.7), {}),
    "logistic": ("LogisticRecalibration", sc.Mean(), {}),
    "logistic moment": ("LogisticRecalibration", sc.Moment(2), {"linear": True}),
    "isotonic": ("RollingIsotonic", sc.Mean(), {"window": 60, "every": 7}),
    "aci": ("AdaptiveConformal", sc.Quantile(0.8), {}),
    "group aci": ("GroupConformal", sc.Quantile(0.8), {}),
    "rolling expectile": ("RollingProperty", sc.Expectile(0.7), {"window": 20}),
    "rolling quantile": ("RollingProperty", sc.Quantile(0.9), {}),
    "clairvoyant": ("Clairvoyant", sc.Quantile(0.3), {}),
}


def make(name: str, *, property: Elicitable | None = None, n: int = N_GROUPS, **settings: Any) -> Any:
    """A rival; `settings` go before those of its variant."""
    kind, default, options = RIVALS[name]
    options = {"horizon": N_ROUNDS, "seed": 3, **options, **settings}
    hypotheses = sc.Linear(n) if options.pop("linear", False) else sc.Finite(n)
    make_any: Callable[..., Any] = all_rivals()[kind]
    return make_any(property or default, hypotheses, **options)


def stream(n_rounds: int = N_ROUNDS, seed: int = 0) -> Data:
    """Overlapping groups, some rounds without any; labels that depend on them; a hint that is off."""
    rng = np.random.default_rng(seed)
    x = (rng.random((n_rounds, N_GROUPS)) < 0.5).astype(np.float64)
    x[::10] = 0.0
    mean = 0.15 + 0.15 * x.sum(axis=1)
    return x, np.clip(mean + rng.uniform(-0.15, 0.15, n_rounds), 0.0, 1.0), np.clip(mean**2 + 0.1, 0.0, 1.0)


def drifting(n_rounds: int, n_functions: int = N_GROUPS, seed: int = 0) -> tuple[Float64Array, Float64Array]:
    """Groups that overlap, now and then none of them, and labels that depend on them and on time."""
    rng = np.random.default_rng(seed)
    x = (rng.random((n_rounds, n_functions)) < 0.5).astype(float)
    center = 0.3 + 0.3 * x[:, 0] + 0.15 * np.sin(np.arange(n_rounds) / 40.0)
    return x, np.clip(center + 0.25 * (rng.random(n_rounds) - 0.5), 0.0, 1.0)


def learned(method: PublishedMethod) -> bytes:
    """All that a method has learned: its state without the book of open rounds."""
    return pickle.dumps({k: v for k, v in vars(method).items() if k not in ("_issued", "_open", "_identity")})


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

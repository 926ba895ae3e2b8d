"""Assembles the compiled engine of a forecaster: which kernels, over which arrays. Kernels own nothing."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from swapcal.engine.randomness import GOLDEN, mix64
from swapcal.engine.trust import ALLOWANCE, NOISE
from swapcal.forecast import Forecast
from swapcal.hints import RegressionState
from swapcal.hypotheses import Finite, Linear, Oracle
from swapcal.hypotheses.finite import FiniteEvidence
from swapcal.hypotheses.linear import LinearEvidence
from swapcal.hypotheses.oracle import OracleEvidence
from swapcal.learners import GradientDescent, MultiplicativeWeights
from swapcal.potentials import AdaNormalHedge, Exponential, PNorm, Squint
from swapcal.potentials.squint import NODES, SQRT_PI
from swapcal.properties.kernel import constants

if TYPE_CHECKING:
    from swapcal.forecaster import Forecaster

__all__ = ["assemble"]

_KINDS = {AdaNormalHedge: 0, Exponential: 1, Squint: 2, PNorm: 3, LinearEvidence: 4}
_LEARNERS = {GradientDescent: 5, MultiplicativeWeights: 6}


def assemble(forecaster: "Forecaster") -> Any:
    """The engine over the forecaster's arrays as they are now; None for parts that have no kernel, or no kernels.

    It must be made anew whenever an array is replaced: after a refinement, and when a state is restored.
    """
    f, native = forecaster, forecaster._kernels
    if native is None:
        return None
    part = _evidence(f._evidence)
    if part is None:
        return None
    if not native.has_forecast_type():
        native.set_forecast_type(Forecast)
    settings, arrays = part
    settings |= constants(f.property)
    model = _hint_model(f._hint_state)
    settings |= {
        "low": f.grid.low,
        "high": f.grid.high,
        "n_bins": f.grid.n,
        "n": f._class.n,
        "n_own": f.hypotheses.n,
        "n_levels": 0 if f._levels is None else f._levels.n,
        "radius": _radius(f.hypotheses),
        # A class that makes its row of something else than numbers has no vector for the kernel to read.
        "reads_dense": type(f.hypotheses) in (Finite, Linear, Oracle),
        "runs_alone": f._hint_state is None or model is not None,
        "notices": not f.property.continuous and f.jitter == 0.0,
        "hinted": f._hinted,
        "refine_at": f._ledger.n_rounds + f._rounds_to_refinement(),
        "draw_seed": mix64(f.seed + GOLDEN),
        "jitter_seed": mix64(mix64(f.seed) + GOLDEN),
        "jitter": f.jitter,
        "trust": f.trust,
        "allowance": ALLOWANCE,
        "noise": NOISE,
        "window": f.max_pending,
    }
    arrays |= {f"evidence.{name}": array for name, array in f._evidence.arrays().items()}
    if f._record is not None:
        arrays |= {f"record.{name}": array for name, array in f._record.arrays().items()}
    arrays |= {
        "ledger.sums": f._ledger.sums,
        "ledger.rounding": f._ledger.rounding,
        "ledger.rounds": f._ledger.rounds,
        "pending.flags": f._pending.flags,
        "pending.numbers": f._pending.numbers,
    }
    return native.Engine(settings, arrays, f._identity, model)


def _hint_model(state: Any) -> Any:
    """The compiled twin of a learning hint, over the hint's own arrays; None for a hint of somebody's own making."""
    return state.kernel() if isinstance(state, RegressionState) else None


def _evidence(evidence: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Which kernel weighs the evidence, with its constants."""
    if type(evidence) is LinearEvidence:
        return {"kind": _KINDS[LinearEvidence]}, {}
    if type(evidence) is OracleEvidence and type(evidence.learner) in _LEARNERS:
        learner = evidence.learner
        sizes = {"copies": evidence.states.shape[1], "state": evidence.states.shape[2], "log_n": math.log(learner.n)}
        return {"kind": _LEARNERS[type(learner)], **sizes}, {}
    if type(evidence) is not FiniteEvidence or type(evidence.potential) not in _KINDS:
        return None
    potential = evidence.potential
    settings: dict[str, Any] = {"kind": _KINDS[type(potential)], "sqrt_pi": SQRT_PI}
    arrays: dict[str, Any] = {"evidence.weights": evidence.weights}
    if isinstance(potential, PNorm):
        settings["exponent"] = potential.exponent
    elif isinstance(potential, (Exponential, Squint)):
        pairs = np.array(potential.rates if isinstance(potential, Exponential) else NODES, dtype=np.float64)
        settings["n_table"], arrays["table"] = len(pairs), pairs
    return settings, arrays


def _radius(hypotheses: Any) -> float:
    """The radius of a linear class, 0 where entries have values in [-1, 1]."""
    if isinstance(hypotheses, Linear):
        return hypotheses.radius
    return 1.0 if hypotheses.dual == "euclidean" else 0.0

"""The compiled engine: which kernels, over which arrays of the state. Kernels own nothing."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from swapcal.engine import pending
from swapcal.engine.kernels import GOLDEN, mix64
from swapcal.engine.ledger import Ledger, Scale
from swapcal.engine.pending import Chunk, Errors, HeldRounds, Played, RoundInputs
from swapcal.engine.state import Rules, State
from swapcal.engine.values import (
    CLEAN,
    DEAR,
    END,
    FIRST,
    FLOOR,
    HINTED,
    NEAR,
    NEAR_START,
    NOISE,
    PAIR,
    SOONEST,
    SPEND,
    WIDE,
    Play,
)
from swapcal.forecast import KINDS, Forecast
from swapcal.hints import RegressionState
from swapcal.hints.regression import LARGEST
from swapcal.hypotheses import Finite, Linear
from swapcal.hypotheses.blocks import BlocksEvidence
from swapcal.hypotheses.finite import FiniteEvidence
from swapcal.hypotheses.linear import LinearEvidence
from swapcal.potentials import NODES, SQRT_PI, AdaNormalHedge, Exponential, PNorm, Squint
from swapcal.protocols import Rows
from swapcal.sparse import ABSENT
from swapcal.typing import Float64Array

if TYPE_CHECKING:
    from swapcal import _native

_WEIGHED = (AdaNormalHedge, Exponential, Squint, PNorm)
# Arrays that every state has: their names, and where they are.
_ARRAYS = tuple(
    (f"{part}.{key}", part, key)
    for part, keys in (
        ("record", ("sums", "squares", "totals")),
        ("values", ("by_slot", "order", "ranked", "numbers", "gaps")),
        ("ledger", Ledger.__slots__),
        ("scale", Scale.__slots__),
        ("pending", ("flags", "numbers")),
        ("waiting", HeldRounds.__slots__),
    )
    for key in keys
)


def has_kernel(state: State) -> bool:
    """Whether the evidence in `state` has a compiled twin; parts of a user's own making have none."""
    evidence = state.evidence
    if isinstance(evidence, (FiniteEvidence, BlocksEvidence)):
        return type(evidence.potential) in _WEIGHED
    return type(evidence) is LinearEvidence


class NativeEngine:
    """The kernels of `native`, the compiled module, over the arrays of a state.

    `predict`, `update` and `due` are the kernel's own functions, so that an event costs no Python frame more.
    """

    __slots__ = ("_kernel", "_native", "_paused", "due", "predict", "rules", "state", "update")

    def __init__(self, rules: Rules, state: State, native: Any) -> None:
        self.rules, self.state, self._native, self._paused = rules, state, native, False
        if not native.has_forecast_type():
            native.set_forecast_type(Forecast, KINDS)
        self.assemble()

    def assemble(self) -> None:
        """A kernel over the arrays as they are now; needed whenever one was replaced."""
        rules, state = self.rules, self.state
        kind, own, arrays = _evidence(state.evidence)
        blocks = state.record.blocks
        if blocks is not None:
            arrays |= {"blocks": blocks, "edges": np.flatnonzero(np.diff(blocks, prepend=-1, append=-1))}
        model = _hint_model(state.hint)
        memory, settled = getattr(rules.hypotheses, "memory", None), rules.settled.get("native")
        if settled is None:
            settled = rules.settled["native"] = _settled(rules)
        settings = {
            **own,
            **settled,
            "kind": kind,
            "memory": None if memory is None else (memory, memory.cells.columns, ABSENT),
            "n_blocks": 0 if blocks is None else int(blocks[-1]) + 1,
            "capacity": state.values.capacity,
            "n_scores": state.waiting.scores.shape[1],
            "runs_alone": state.hint is None or model is not None,
            "hinted": state.hinted,
            "draw_seed": mix64(rules.seed + GOLDEN),
            "jitter_seed": mix64(mix64(rules.seed) + GOLDEN),
            "flags": len(state.pending.flags),
            "window": state.pending.window,
        }
        arrays |= {f"evidence.{name}": array for name, array in state.evidence.arrays().items()}
        for k, share in enumerate(state.shares):
            arrays |= {
                f"share{k}.{name}": getattr(share, name) for name in ("totals", "blocks", "bins", "likely", "groups")
            }
            settings |= {f"share{k}.{name}": getattr(share, name) for name in ("caution", "budget", "tolerance")}
        for name, part, key in _ARRAYS:
            arrays[name] = getattr(getattr(state, part), key)
        kernel: _native.Engine = self._native.Engine(settings, arrays, state.identity, model)
        kernel.hold(self._paused)
        self._kernel = kernel
        self.predict, self.update, self.due = kernel.predict, kernel.update, kernel.due

    def pause(self, paused: bool) -> None:
        """While it is paused, `predict` and `update` answer that Python must look."""
        self._paused = paused
        self._kernel.hold(paused)

    def predict_many(self, X: Any, hints: list[Any], features: list[Any], forecasts: list[Forecast]) -> None:
        """One loop, up to what the twin in Python must look at."""
        self._kernel.predict_many(X, hints, features, forecasts)

    def update_many(self, forecasts: list[Any], y: list[float], begin: int) -> int:
        """One loop, up to what the twin in Python must look at."""
        return self._kernel.update_many(forecasts, y, begin)

    def round_tag(self, forecast: Forecast) -> int:
        """As the twin in Python."""
        return self._kernel.mark(forecast) if type(forecast) is Forecast else pending.round_tag(forecast)

    def play(self, case: RoundInputs) -> Play:
        """As the twin in Python."""
        return Play(*self._kernel.play(case.row.indices, case.row.values, case.hint))

    def look(self, rows: Rows, hints: Float64Array | None, guides: Float64Array, means: Float64Array) -> bool:
        """As the twin in Python, for all rows at once; False where a hint of one's own must be asked."""
        optional = None if hints is None else _plain(hints)
        indptr, indices, values = (_plain(each) for each in rows)
        return self._kernel.look(indptr, indices, values, optional, guides, means)

    def learn(self, case: RoundInputs, played: Played, errors: Errors, t: int) -> None:
        """As the twin in Python; it adds a value by itself, for which there is room."""
        learn: Callable[..., None] = self._kernel.learn
        learn(case.row.indices, case.row.values, *played[:5], *errors[:5], t, case.hint)

    @property
    def alone(self) -> bool:
        """Whether V and the learning hint are compiled, too."""
        return self._kernel.runs_alone

    @property
    def beyond(self) -> float:
        """The label beyond the range at which `run` stopped; NaN if there was none."""
        return self._kernel.beyond

    def accepts(self, X: Any, n_rounds: int) -> bool:
        """Whether `X` is a plain table whose entries are all allowed."""
        plain = type(X) is np.ndarray and X.dtype == np.float64 and X.flags.c_contiguous and X.flags.aligned
        if not plain or not self._kernel.reads_dense or X.shape != (n_rounds, self.rules.hypotheses.n):
            return False
        limit = 1.0 if self.rules.hypotheses.dual == "max" else float(np.finfo(np.float64).max)
        # One pass without an array of the same size, which NumPy's isfinite would make.
        return bool(self._native.first_bad(X, limit) < 0)

    def accepts_features(self, features: Any) -> bool:
        """Whether all features are allowed; the twin in Python says what is wrong with one."""
        return features is None or bool(self._native.first_bad(_plain(features), LARGEST) < 0)

    def run(self, part: Chunk, progress: Any) -> None:
        """Play rounds; stops where more room is needed."""
        sparse = isinstance(part.contexts, Rows)
        contexts = [_plain(each) for each in (part.contexts if sparse else [part.contexts])]
        optional = (None if each is None else _plain(each) for each in (part.hints, part.features))
        play: Callable[..., None] = self._kernel.run_sparse if sparse else self._kernel.run_dense
        late = None if part.schedule is None else tuple(_plain(each) for each in part.schedule)
        play(*contexts, _plain(part.labels), *optional, part.out, progress, late)


def _settled(rules: Rules) -> dict[str, Any]:
    """What a kernel needs to know of the rules, but for the seed."""
    low, high = rules.property.domain
    return {
        **rules.property.kernel,
        "low": low,
        "high": high,
        "fixed": rules.fixed,
        "first": float(FIRST),
        "spend": SPEND,
        "near": NEAR,
        "near_start": NEAR_START,
        "hinted_cut": HINTED,
        "pair_cut": PAIR,
        "floor": FLOOR,
        "end": END,
        "dear": DEAR,
        "soonest": SOONEST,
        "wide": WIDE,
        "clean": CLEAN,
        "n": rules.functions.n,
        "n_own": rules.hypotheses.n,
        "n_inputs": rules.n_inputs,
        "n_features": rules.n_features,
        "n_levels": 0 if rules.level_grid is None else rules.level_grid.n,
        "radius": _radius(rules.hypotheses),
        # A class that makes its row of something else than numbers has no vector for the kernel to read.
        "reads_dense": type(rules.hypotheses) in (Finite, Linear),
        "notices": rules.checks_ties,
        "jitter": rules.jitter,
        "trust": rules.trust,
        "follows": rules.follows,
        "noise": NOISE,
        "protects": rules.protect != "nothing",
    }


def _plain(array: Any) -> Any:
    plain = array.flags.c_contiguous and array.flags.aligned
    return array if plain else np.require(array, requirements=["C", "A"])


def _hint_model(state: Any) -> Any:
    """The compiled twin of a learning hint, over the hint's own arrays; None for a hint of somebody's own making."""
    return state.kernel() if isinstance(state, RegressionState) else None


def _evidence(evidence: Any) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Which kernel weighs the evidence, by name, with its constants and its own arrays."""
    if isinstance(evidence, LinearEvidence):
        return "Linear", {}, {}
    potential = evidence.potential
    if isinstance(evidence, BlocksEvidence):
        more = {"evidence.norms": evidence.norms, "evidence.factors": evidence.factors}
    else:
        more = {"evidence.weights": evidence.weights, "evidence.unit": evidence.unit}
    radius = potential.radius(evidence.sums.shape[1]) if isinstance(potential, PNorm) else 0.0
    settings: dict[str, Any] = {"sqrt_pi": SQRT_PI, "norm_radius": radius}
    arrays: dict[str, Any] = more
    if isinstance(potential, PNorm):
        settings["exponent"] = potential.exponent
    elif isinstance(potential, (Exponential, Squint)):
        pairs = np.array(potential.rates if isinstance(potential, Exponential) else NODES, dtype=np.float64)
        settings["n_table"], arrays["table"] = len(pairs), pairs
    return type(potential).__name__, settings, arrays


def _radius(hypotheses: Any) -> float:
    """The radius of a linear class, 0 where entries have values in [-1, 1]."""
    if isinstance(hypotheses, Linear):
        return hypotheses.radius
    return 1.0 if hypotheses.dual == "euclidean" else 0.0

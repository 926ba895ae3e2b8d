"""The compiled kernels, as Python sees them. They own nothing: state is in the arrays that are passed in."""

from typing import Any

import numpy as np
import numpy.typing as npt

from swapcal.forecast import Forecast
from swapcal.typing import Float64Array, IntArray

class Engine:
    """The round over the arrays of a state; `engine.native` says what the settings and arrays are."""

    def __init__(
        self, settings: dict[str, Any], arrays: dict[str, Any], identity: str, model: Regression | None
    ) -> None: ...
    @property
    def reads_dense(self) -> bool: ...
    @property
    def runs_alone(self) -> bool: ...
    @property
    def beyond(self) -> float: ...
    def predict(self, x: Any, hint: Any, features: Any, /) -> Forecast | None: ...
    def update(self, forecast: Any, y: Any, /) -> bool: ...
    def due(self) -> bool: ...
    def predict_many(
        self, x: Float64Array | list[Any], hints: list[Any], features: list[Any], made: list[Forecast]
    ) -> None: ...
    def update_many(self, forecasts: list[Any], y: list[float], begin: int) -> int: ...
    def mark(self, forecast: Forecast) -> int: ...
    def hold(self, held: bool) -> None: ...
    def play(
        self, indices: IntArray, values: Float64Array, hint: float | None
    ) -> tuple[int, int, float, float | None, str, float, float]: ...
    def look(
        self,
        indptr: IntArray,
        indices: IntArray,
        values: Float64Array,
        hints: Float64Array | None,
        guides: Float64Array,
        means: Float64Array,
    ) -> bool: ...
    def learn(
        self,
        indices: IntArray,
        values: Float64Array,
        slot: int,
        other: float,
        evidence_at: float,
        kind: str,
        phi: float,
        v: float,
        v_evidence: float,
        v_hint: float,
        v_nearest: float,
        t: int,
        hint: float | None,
    ) -> None: ...
    def run_dense(
        self,
        x: Float64Array,
        y: Float64Array,
        hints: Float64Array | None,
        features: Float64Array | None,
        out: Float64Array,
        progress: IntArray,
        late: tuple[Any, ...] | None,
    ) -> None: ...
    def run_sparse(
        self,
        indptr: IntArray,
        indices: IntArray,
        values: Float64Array,
        y: Float64Array,
        hints: Float64Array | None,
        features: Float64Array | None,
        out: Float64Array,
        progress: IntArray,
        late: tuple[Any, ...] | None,
    ) -> None: ...

class Regression:
    """The learning hint over the arrays of a `RegressionState`."""

    def __init__(self, settings: dict[str, Any], arrays: dict[str, Float64Array]) -> None: ...
    def forecast(
        self, indices: IntArray, values: Float64Array, features: Float64Array | None, base: float | None
    ) -> float: ...
    def update(
        self, indices: IntArray, values: Float64Array, features: Float64Array | None, base: float | None, y: float
    ) -> None: ...
    def run(
        self,
        indptr: IntArray,
        indices: IntArray,
        values: Float64Array,
        features: Float64Array | None,
        bases: Float64Array | None,
        y: Float64Array,
        out: Float64Array,
    ) -> None: ...

def has_forecast_type() -> bool: ...
def set_forecast_type(cls: type[Forecast], kinds: tuple[str, ...]) -> None: ...
def audit_distinct(values: Float64Array) -> tuple[Float64Array, IntArray]: ...
def audit_bins(edges: Float64Array, values: Float64Array, equal: bool) -> IntArray: ...
def audit_add_sparse(
    arrays: dict[str, Float64Array],
    slots: IntArray,
    errors: Float64Array,
    forecasts: Float64Array,
    weights: Float64Array | None,
    indptr: IntArray,
    indices: IntArray,
    values: Float64Array,
) -> None: ...
def audit_add_dense(
    arrays: dict[str, Float64Array],
    slots: IntArray,
    errors: Float64Array,
    forecasts: Float64Array,
    weights: Float64Array | None,
    x: Float64Array,
) -> None: ...
def scale_rows(indptr: IntArray, values: Float64Array, radius: float) -> None: ...
def weigh_adanormalhedge(sums: Float64Array, spreads: Float64Array, weights: Float64Array) -> None: ...
def planned(arrive: IntArray, lines: IntArray) -> tuple[IntArray, IntArray, npt.NDArray[np.uint8]]: ...
def first_bad(x: Float64Array, limit: float) -> int: ...

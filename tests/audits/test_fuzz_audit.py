"""Odd inputs for the error functions: refused by name, or the error that loops give."""

import math
from typing import Any

import naive_audit
import swapcal as sc
from fuzzing import Meaning, Rng, Throw, all_mean, pick, play, scalar, table, vector
from swapcal.typing import Float64Array

MEASURES = ("calibration_error", "multicalibration_error", "swap_multicalibration_error")


def naive_error(name: str, y: Float64Array, p: Float64Array, x: Float64Array, r: float, linear: bool) -> float:
    labels, forecasts = y.tolist(), p.tolist()

    def v(forecast: float, label: float) -> float:
        return forecast - label

    if name == "calibration_error":
        return naive_audit.calibration(labels, forecasts, v, r)
    if linear:
        return naive_audit.linear_swap_multicalibration(labels, forecasts, x.tolist(), v, r)
    measure = getattr(naive_audit, name.removesuffix("_error"))
    return float(measure(labels, forecasts, naive_audit.columns(x.tolist()), v, r))


def throw(_: Any, rng: Rng) -> Throw:
    n_rows, n = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    x = rng.uniform(-0.5, 0.5, (n_rows, n)) * (rng.random((n_rows, n)) < 0.7)
    labels, forecasts = rng.random(n_rows), rng.choice([0.0, 0.25, 0.5, 1.0], n_rows)
    y = vector(rng, labels) if rng.random() < 0.3 else Meaning(labels, labels)
    p = vector(rng, forecasts) if rng.random() < 0.3 else Meaning(forecasts, forecasts)
    r = scalar(rng, 1.0, 4.0) if rng.random() < 0.3 else Meaning(2.0, 2.0)
    if r.means is None and isinstance(r.given, float) and math.isfinite(r.given) and r.given >= 1.0:
        r = Meaning(r.given, r.given, doubtful=True)
    name, hypotheses = pick(rng, MEASURES), pick(rng, [None, sc.Finite(n), sc.Linear(n)])
    X, arguments = Meaning(x, x), dict[str, Any]()
    if name != "calibration_error":
        X = table(rng, x, fakes=False) if rng.random() < 0.6 else X
        arguments = {"x": X.given, "hypotheses": hypotheses}
    linear = hypotheses is not None and hypotheses.dual == "euclidean"
    # Another number of columns is another class; long contexts are cut to length 1.
    if X.means is None and (hypotheses is None or (linear and getattr(X.given, "shape", None) == x.shape)):
        X = X._replace(doubtful=True)
    meant = all_mean(y, p, X, r)

    def wrong(found: float) -> str | None:
        if not (isinstance(found, float) and math.isfinite(found) and found >= 0.0):
            return f"the error {found!r}"
        if meant and not (linear and name == "multicalibration_error"):
            expected = naive_error(name, labels, forecasts, x, r.means, linear)
            if not math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-12):
                return f"the error {found!r} and not {expected!r}"
        return None

    given = (name, y.given, p.given, r.given, arguments)
    return Throw(given, lambda: getattr(sc, name)(y.given, p.given, r=r.given, **arguments), meant, wrong)


def test_errors() -> None:
    play("errors", throw, [None], id)


def test_a_radius_over_a_tiny_weight_is_finite() -> None:
    audit = sc.Audit(n=1)
    audit.update(0.5, 0.25, [1e-310])
    assert len(audit.cells()) == 1

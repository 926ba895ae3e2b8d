"""Odd inputs for the error functions: refused by name, or the error that loops give."""

import functools
import math
from typing import Any

import naive_audit
import swapcal as sc
from fuzzing import PLAN, Faults, Meaning, all_mean, attempt, cases, scalar, shape_of, table, vector
from swapcal.typing import Float64Array


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


MEASURES = ("calibration_error", "multicalibration_error", "swap_multicalibration_error")


def test_errors() -> None:
    faults = Faults()
    for seed, rng in cases("errors"):
        n_rows, n = int(rng.integers(1, 6)), int(rng.integers(1, 4))
        x = rng.uniform(-0.5, 0.5, (n_rows, n)) * (rng.random((n_rows, n)) < 0.7)
        labels, forecasts = rng.random(n_rows), rng.choice([0.0, 0.25, 0.5, 1.0], n_rows)
        y = vector(rng, labels) if rng.random() < 0.3 else Meaning(labels, labels)
        p = vector(rng, forecasts) if rng.random() < 0.3 else Meaning(forecasts, forecasts)
        X = table(rng, x, fakes=False) if rng.random() < 0.6 else Meaning(x, x)
        r = scalar(rng, 1.0, 4.0) if rng.random() < 0.3 else Meaning(2.0, 2.0)
        if r.means is None and isinstance(r.given, float) and math.isfinite(r.given) and r.given >= 1.0:
            r = Meaning(r.given, r.given, doubtful=True)
        name = MEASURES[int(rng.integers(3))]
        classes: list[Any] = [None, sc.Finite(n), sc.Linear(n)]
        hypotheses = classes[int(rng.integers(3))]
        arguments: dict[str, Any] = {"r": r.given}
        if name != "calibration_error":
            arguments |= {"x": X.given, "hypotheses": hypotheses}
        else:
            X = Meaning(x, x)
        meant = all_mean(y, p, X, r)
        if (
            hypotheses is not None
            and hypotheses.dual == "euclidean"
            and shape_of(X.given) == x.shape
            and X.means is None
        ):
            meant = None  # long contexts are cut to length 1
        if hypotheses is None and X.means is None and name != "calibration_error":
            meant = meant if all_mean(y, p, r) is False else None  # another number of columns is another class
        call = functools.partial(getattr(sc, name), y.given, p.given, **arguments)
        found = attempt(faults, seed, (name, y.given, p.given, arguments), tuple, call, meant=meant)
        if found is None:
            continue
        if not (isinstance(found, float) and math.isfinite(found) and found >= 0.0):
            faults.note(seed, (y.given, p.given, arguments), f"the error {found!r}")
        exact = hypotheses is None or hypotheses.dual == "max" or name != "multicalibration_error"
        if meant and exact:
            expected = naive_error(
                name, labels, forecasts, x, r.means, hypotheses is not None and hypotheses.dual != "max"
            )
            if not math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-12):
                faults.note(seed, (name, y.given, p.given, arguments), f"the error {found!r} and not {expected!r}")
    faults.verdict(PLAN["errors"])


def test_a_radius_over_a_tiny_weight_is_finite() -> None:
    audit = sc.Audit(n=1)
    audit.update(0.5, 0.25, [1e-310])
    assert len(audit.cells()) == 1

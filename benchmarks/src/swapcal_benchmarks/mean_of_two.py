"""What the mean of the two points loses: `python -m swapcal_benchmarks.mean_of_two` prints the table of the docs."""

import numpy as np

import swapcal as sc
from swapcal.deterministic import mean_of, smooth_error
from swapcal.typing import Float64Array
from swapcal_benchmarks.report import Table

__all__ = ["main", "measured"]

STREAMS = ("independent", "drifting", "against the mean")


def measured(stream: str, n: int = 20_000, n_groups: int = 20, seed: int = 1) -> dict[str, float]:
    """Errors of the draws and of the means on one stream."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n, n_groups)) < 0.3).astype(float)
    X[:, 0] = 1.0
    slope, chances = rng.normal(0, 0.6, n_groups), rng.random(n)
    forecaster = sc.Forecaster(sc.Probability(), sc.Finite(n_groups), horizon=n, seed=seed)
    drawn, means, labels = np.empty(n), np.empty(n), np.empty(n)
    for t in range(n):
        forecast = forecaster.predict(X[t])
        drawn[t], means[t] = float(forecast), mean_of(forecast)
        if stream == "against the mean":
            labels[t] = float(means[t] < 0.5)
        else:
            shift = 0.0 if stream == "independent" else 2.0 * np.sin(12.0 * t / n)
            labels[t] = float(chances[t] < 1.0 / (1.0 + np.exp(-X[t, 1:] @ slope[1:] - shift)))
        forecaster.update(forecast, labels[t])
    values = forecaster.values
    return {
        "drawn": _swap(labels, drawn, X, values),
        "mean": _swap(labels, means, X, values),
        "smooth": smooth_error(means, labels, X, values, sc.Probability()),
        "worst bias, drawn": _bias(labels, drawn, X),
        "worst bias, mean": _bias(labels, means, X),
        "bias below 1/2, drawn": _below(labels, drawn),
        "bias below 1/2, mean": _below(labels, means),
        "Brier, drawn": float(np.mean((drawn - labels) ** 2)),
        "Brier, mean": float(np.mean((means - labels) ** 2)),
    }


def _swap(y: Float64Array, p: Float64Array, X: Float64Array, values: Float64Array) -> float:
    """The swap error of the forecasts, each rounded to the nearest of the values that the run has ended with."""
    nearest = np.searchsorted(0.5 * (values[1:] + values[:-1]), p)
    return sc.swap_multicalibration_error(y, values[nearest], X, property=sc.Probability())


def _bias(y: Float64Array, p: Float64Array, X: Float64Array) -> float:
    return float(np.max(np.abs(X.T @ (p - y)) / X.sum(axis=0)))


def _below(y: Float64Array, p: Float64Array) -> float:
    """Errors of the forecasts below 1/2, added up, per round: what whoever acts at this threshold is wrong by."""
    below = p < 0.5
    return float(np.abs(np.sum(p[below] - y[below])) / len(p))


def main() -> None:
    """Print one row for each stream."""
    rows = {stream: measured(stream) for stream in STREAMS}
    names = list(next(iter(rows.values())))
    cells = tuple((stream, *(f"{row[name]:.4g}" for name in names)) for stream, row in rows.items())
    print(Table("", ("outcomes", *names), cells).markdown())  # noqa: T201


if __name__ == "__main__":
    main()

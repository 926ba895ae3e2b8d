"""The command `swapcal bench wrapper`: the scikit-learn classifier, fitted once, against the model it is around."""

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from swapcal.compat.sklearn import MulticalibratedClassifier
from swapcal.tables.batch import Coded
from swapcal.tables.sources import package
from swapcal.typing import Float64Array, IntArray
from swapcal_benchmarks.late.late_files import FILES
from swapcal_benchmarks.report import Report, Table, Target, document, progress, targets_table
from swapcal_benchmarks.streams.recorded import RecordedStream, whole_file

__all__ = ["WrapperRow", "measured", "splits", "wrapper_report"]

NAMES = ("adult", "elec2", "searches", "no_shows")
ROWS = 24_000
"""Of each split, two thirds to fit and one to judge."""
MICROSECONDS = 20.0


@dataclass(frozen=True, slots=True)
class WrapperRow:
    """Log losses of a split: the model's, and by how much more the wrapper's is, with its standard error."""

    stream: str
    model: str
    split: str
    loss: float
    difference: float
    error: float
    microseconds: float

    @property
    def worse(self) -> bool:
        """Beyond its standard error, and beyond the rounding of the model's probabilities to 30 bits."""
        return self.difference > max(self.error, 1e-9)


def models(categorical: Any) -> dict[str, Any]:
    """A logistic regression and boosted trees, of rows whose first columns are features; the others make groups."""
    compose, ensemble, linear, pipeline, preprocessing = (
        package(f"sklearn.{part}", "training the models", extra="bench")
        for part in ("compose", "ensemble", "linear_model", "pipeline", "preprocessing")
    )
    codes, numbers = np.flatnonzero(categorical).tolist(), np.flatnonzero(~categorical).tolist()
    one_hot = preprocessing.OneHotEncoder(handle_unknown="ignore", min_frequency=20)
    columns = compose.make_column_transformer((preprocessing.StandardScaler(), numbers), (one_hot, codes))
    seen = compose.make_column_transformer(("passthrough", list(range(len(categorical)))))
    return {
        "logistic regression": pipeline.make_pipeline(columns, linear.LogisticRegression(max_iter=500)),
        "boosted trees": pipeline.make_pipeline(seen, ensemble.HistGradientBoostingClassifier(random_state=0)),
    }


def splits(n: int) -> Iterator[tuple[str, IntArray, IntArray]]:
    """Three random ones and three in time: rows to fit, in order, and rows to judge."""
    size = min(n, ROWS)
    for seed in range(3):
        rows = np.random.default_rng(seed).permutation(n)[:size]
        yield f"random {seed}", rows[: 2 * size // 3], rows[2 * size // 3 :]
    for k, start in enumerate(np.linspace(0, n - size, 3).astype(int).tolist()):
        rows = np.arange(start, start + size)
        yield f"time {k}", rows[: 2 * size // 3], rows[2 * size // 3 :]


def measured(stream: str, what: str, split: str, model: Any, wrapper: Any, X: Any, y: Any) -> WrapperRow:
    """A wrapper that is fitted beside its own model, on rows that neither has seen."""
    begun = time.process_time()
    before = model.predict_proba(X)[:, 1]
    between = time.process_time()
    after = wrapper.predict_proba(X)[:, 1]
    spent = (time.process_time() - between) - (between - begun)
    old, new = (_log_losses(p, np.asarray(y)) for p in (before, after))
    more, error = float(np.mean(new - old)), float(np.std(new - old) / np.sqrt(len(old)))
    return WrapperRow(stream, what, split, float(np.mean(old)), more, error, 1e6 * spent / len(old))


def wrapper_report(directory: Path, names: tuple[str, ...] = NAMES) -> Report:
    """All files, models and splits."""
    limits: Callable[..., Any] = package("threadpoolctl", "training the models", extra="bench").threadpool_limits
    rows = []
    with progress("fitting") as done, limits(1):
        for name in names:
            stream = next(iter(FILES[name](whole_file(directory, name)))).stream
            X, categorical = _table(stream)
            groups = [f"x{j}" for j in range(len(stream.categorical), X.shape[1])]
            for what, model in models(categorical).items():
                for split, fit, judge in splits(len(stream.y)):
                    wrapper = MulticalibratedClassifier(model, groups=groups, random_state=1)
                    fresh = X[judge], stream.y[judge]
                    wrapper.fit(X[fit], stream.y[fit])
                    rows.append(measured(name, what, split, wrapper.estimator_, wrapper, *fresh))
                    done(1, what=f"{name}, {what}, {split}")
    worse = tuple(f"{row.stream}, {row.model}, {row.split}" for row in rows if row.worse)
    slowest = max(row.microseconds for row in rows)
    targets = [
        Target(
            "worse than without calibration beyond a standard error: none", f"{len(worse)} of {len(rows)}", not worse
        ),
        Target("to predict a row: at most 20 microseconds", f"{slowest:.1f}", slowest <= MICROSECONDS),
    ]
    lines = tuple(
        (
            row.stream,
            row.model,
            row.split,
            f"{row.loss:.4f}",
            f"{100 * row.difference / row.loss:+.2f} ± {100 * row.error / row.loss:.2f}",
            f"{row.microseconds:.1f}",
        )
        for row in rows
    )
    head = ("stream", "model", "split", "log loss", "wrapper, %", "µs a row")
    note = "Log loss of the model, that of the wrapper against it, and what a row takes beyond the model's own time."
    tables = [targets_table(targets), Table("Splits", head, lines, note, align="lllrrr")]
    page = document(
        "The scikit-learn wrapper, fitted once", "Made by `swapcal bench wrapper DIR --docs docs`.", *tables
    )
    return Report(
        "\n\n".join(each.text() for each in tables),
        [asdict(row) for row in rows],
        {"wrapper.md": page},
        met=all(target.met for target in targets),
    )


def _table(stream: RecordedStream) -> tuple[Float64Array, Any]:
    """Features, then columns of groups as codes: numbers in bands. The median stands for what is missing."""
    features = np.where(np.isnan(stream.features), np.nanmedian(stream.features, axis=0), stream.features)
    columns = [features]
    for column in stream.table.values():
        if isinstance(column, Coded):
            columns.append(column.codes.astype(np.float64))
        else:
            edges = np.nanquantile(column, np.linspace(0.0, 1.0, stream.bands + 1)[1:-1])
            columns.append(np.searchsorted(edges, column).astype(np.float64))
    return np.column_stack(columns), np.array(stream.categorical)


def _log_losses(p: Float64Array, y: Float64Array) -> Float64Array:
    inside = np.clip(p, 1e-15, 1.0 - 1e-15)
    losses: Float64Array = -np.log(np.where(y == 1.0, inside, 1.0 - inside))
    return losses

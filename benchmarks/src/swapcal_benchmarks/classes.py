"""The command `swapcal bench classes`: classes of functions against each other, on files and on streams of our own."""

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import swapcal as sc
from swapcal.learners import GradientDescent, MultiplicativeWeights
from swapcal.tables.batch import Coded
from swapcal.tables.sources import package
from swapcal.text.numbers import number
from swapcal.typing import Float64Array
from swapcal_benchmarks.late.late_files import FILES
from swapcal_benchmarks.report import Report, Table, Target, document, progress, targets_table
from swapcal_benchmarks.streams.recorded import RecordedStream, whole_file

__all__ = [
    "CORNERS",
    "FileRow",
    "classes_report",
    "corner_bias",
    "cost_table",
    "costs",
    "omniprediction_table",
    "tails",
]

NAMES = ("bike_hour", "adult", "no_shows", "searches")
ROWS, SEEDS = 20_000, 3
# Of each file, three numbers of which the frozen model is made.
SEEN = {"bike_hour": (7, 9, 10), "adult": (0, 1, 2), "no_shows": (0, 1, 2), "searches": (0, 1, 2)}
CORNERS = 60_000
"""Rows of the stream with a bias in opposite corners."""


@dataclass(frozen=True, slots=True)
class FileRow:
    """Mean squared errors on a file: of the frozen model, and of forecasts over each class, from that model's."""

    file: str
    rows: int
    model: float
    losses: Mapping[str, float]

    def against_groups(self, name: str) -> float:
        """By how much the loss of a class is above that of groups, in percent."""
        return 100.0 * (self.losses[name] / self.losses["groups"] - 1.0)


# --------
# Files: a model that is frozen after the first fifth, and what groups and boxes make of it.


def _frozen(stream: RecordedStream, y: Float64Array, columns: tuple[int, ...]) -> Float64Array:
    """A linear or logistic model of three columns of numbers, fitted on the first fifth."""
    start, chosen = stream.start, np.nan_to_num(stream.features[:, columns])
    scaled = (chosen - chosen[:start].mean(axis=0)) / (chosen[:start].std(axis=0) + 1e-9)
    if stream.real:
        design = np.column_stack([np.ones(len(scaled)), scaled])
        weights = np.linalg.lstsq(design[:start], y[:start], rcond=None)[0]
        return np.asarray(np.clip(design @ weights, 0.0, 1.0))
    linear = package("sklearn.linear_model", "training the models", extra="bench")
    fitted = linear.LogisticRegression(max_iter=300).fit(scaled[:start], y[:start])
    return np.asarray(fitted.predict_proba(scaled)[:, 1])


def _river_tree() -> Any:
    return sc.hint(package("river.tree", "a hint of river", extra="river").HoeffdingTreeRegressor())


CLASSES: dict[str, tuple[type[Any], Callable[[], Any]]] = {
    "groups": (sc.Groups, lambda: None),
    "trees": (sc.Trees, lambda: None),
}
HINTS: dict[str, tuple[type[Any], Callable[[], Any]]] = {
    "groups": CLASSES["groups"],
    "with a regression": (sc.Groups, sc.OnlineRegression),
    "with a river tree": (sc.Groups, _river_tree),
}
"""Of each method its class, and its learning hint."""


def file_row(
    directory: Path, name: str, rows: int = ROWS, seeds: int = SEEDS, methods: Mapping[str, Any] = CLASSES
) -> FileRow:
    """One file. The hour of bike rentals and all its other columns are names."""
    stream = next(iter(FILES[name](whole_file(directory, name)))).stream
    y = stream.y / 1000.0 if stream.real else stream.y
    start, stop = stream.start, min(len(y), stream.start + rows)
    hint, later, first = _frozen(stream, y, SEEN[name])[start:stop], slice(start, stop), slice(0, start)
    columns, outcomes = list(stream.table), y[start:stop]
    named = tuple(k for k, one in stream.table.items() if name == "bike_hour" or isinstance(one, Coded))
    losses = {}
    for what, (kind, learning) in methods.items():
        errors = []
        for seed in range(seeds):
            hypotheses = kind(columns, categories=named)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", sc.GroupsWarning)
                hypotheses.fit(stream.groups(first))
            target = sc.Mean() if stream.real else sc.Probability()
            forecaster = sc.Forecaster(target, hypotheses, seed=seed, outside="clip", hint=learning())
            p = forecaster.run(stream.groups(later), outcomes, hint)
            errors.append(np.mean((p - outcomes) ** 2))
        losses[what] = float(np.mean(errors))
    return FileRow(name, stop - start, float(np.mean((hint - outcomes) ** 2)), losses)


# --------
# A bias that only two columns together reveal.


def corner_bias(n: int = CORNERS, seed: int = 0) -> dict[str, float]:
    """The bias of the worst corner in the later half, of the model, of groups and of boxes.

    The model is right on average of every value of every column; in opposite corners of two of five it is off by 0.2.
    """
    rng = np.random.default_rng(seed)
    X = {f"x{j}": rng.random(n) for j in range(5)}
    corner = 2 * (X["x0"] > 0.5) + (X["x1"] > 0.5)
    model = 0.3 + 0.4 * X["x2"]
    y = (rng.random(n) < model + np.where((corner == 1) | (corner == 2), 0.2, -0.2)).astype(float)
    found = {"model": model}
    for name, hypotheses in (("groups", sc.Groups(list(X))), ("trees", sc.Trees(list(X)))):
        hypotheses.fit({column: values[: n // 30] for column, values in X.items()})
        found[name] = sc.Forecaster(sc.Probability(), hypotheses, seed=seed).run(X, y, model)
    late = np.arange(n) >= n // 2
    return {
        name: max(abs(float(np.mean((p - y)[late & (corner == k)]))) for k in range(4)) for name, p in found.items()
    }


# --------
# What a round costs.


def costs(n: int = 20_000) -> list[tuple[str, int, float]]:
    """Of each class: its functions, and microseconds of processor a round of `run`, with a hint, outcomes at once."""
    rng = np.random.default_rng(1)
    X = {f"c{j}": rng.random(n) for j in range(10)}
    dense, member = np.column_stack([*X.values()]), (rng.random((n, 20)) < 0.25).astype(float)
    hint = 0.2 + 0.6 * dense[:, 0]
    y = (rng.random(n) < hint).astype(float)
    head = {name: values[:2000] for name, values in X.items()}
    groups, trees, deep = sc.Groups(list(X)), sc.Trees(list(X)), sc.Trees(list(X)[:5], depth=3)
    for one in (groups, trees, deep):
        one.fit(head)
    rows: list[tuple[str, Any, Any, int]] = [
        ("Finite(20)", sc.Finite(20), member, 20),
        ("Linear(10)", sc.Linear(10, radius=2.0), dense, 10),
        ("Groups, 10 columns in 5 bands", groups, X, len(groups.names)),
        ("Trees, 10 columns, depth 2", trees, X, len(trees.names)),
        ("Trees, 5 columns, depth 3", deep, X, len(deep.names)),
    ]
    found = []
    numeric = sc.Numeric(list(X)[:5])
    rows += [
        ("the same groups | 5 columns of numbers", groups | numeric, X, len(groups.names) + numeric.n),
        ("the same groups * 5 columns of numbers", groups * numeric, X, len(groups.names) * numeric.n),
    ]
    for name, hypotheses, contexts, functions in rows:
        forecaster, begun = sc.Forecaster(sc.Probability(), hypotheses, seed=1), time.process_time()
        forecaster.run(contexts, y, hint)
        found.append((name, functions, 1e6 * (time.process_time() - begun) / n))
    short = n // 10
    learned: list[tuple[str, Any, Any]] = [
        ("Oracle(GradientDescent(10))", sc.Oracle(GradientDescent(10)), None),
        ("Oracle(MultiplicativeWeights(10))", sc.Oracle(MultiplicativeWeights(10)), None),
        ("Linear(10), a river tree as hint", sc.Linear(10, radius=2.0), _river_tree()),
    ]
    for name, hypotheses, learning in learned:
        forecaster, begun = sc.Forecaster(sc.Probability(), hypotheses, seed=1, hint=learning), time.process_time()
        forecaster.run(dense[:short], y[:short], hint[:short])
        found.append((name, 10, 1e6 * (time.process_time() - begun) / short))
    models: list[tuple[str, Any]] = [
        ("TailMean over Finite(20)", sc.TailMean(0.9, sc.Finite(20), seed=1)),
        ("MeanVariance over Finite(20)", sc.MeanVariance(sc.Finite(20), seed=1)),
    ]
    for name, model in models:
        begun = time.process_time()
        model.run(member[:short], 0.5 * hint[:short] + 0.5 * rng.random(short))
        found.append((name, 20, 1e6 * (time.process_time() - begun) / short))
    return found


def cost_table(spent: list[tuple[str, int, float]] | None = None) -> Table:
    """The costs as a table; measured now where they are not given."""
    return Table(
        "Cost of a class",
        ("class", "functions", "µs a round"),
        tuple((name, f"{n:,}", f"{cost:.1f}") for name, n, cost in (costs() if spent is None else spent)),
        "Processor time of `run` with a hint, outcomes at once; noisy on a busy machine. Learners, models and joint "
        "forecasts are in Python.",
    )


# --------
# A tail mean and a variance, against constants.


def tails(n: int = 12_000, seed: int = 0) -> list[tuple[str, float, float]]:
    """Mean distances from the truth in the later half: of a joint forecaster, and of the best constant."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 6, n)
    x = np.zeros((n, 7))
    x[:, 0], x[np.arange(n), 1 + group] = 1.0, 1.0

    def drawn(k: Any, size: int) -> Float64Array:
        raw = rng.gamma(1.0 + k, 0.05 + 0.01 * k, size)
        return np.asarray(raw / (1.0 + raw))

    y, many = drawn(group, n), [drawn(k, 200_000) for k in range(6)]
    quantiles = [np.quantile(each, 0.8) for each in many]
    beyond = np.array([each[each > q].mean() for each, q in zip(many, quantiles, strict=True)])
    truths = {"expected shortfall at 0.8": beyond, "standard deviation": np.array([each.std() for each in many])}
    models: tuple[Any, ...] = (sc.TailMean(0.8, sc.Finite(7), seed=1), sc.MeanVariance(sc.Finite(7), seed=1))
    found, late = [], np.arange(n) >= n // 2
    for (name, truth), model in zip(truths.items(), models, strict=True):
        p = model.run(x, y)[:, 1]
        p = np.sqrt(p) if isinstance(model, sc.MeanVariance) else p
        target = truth[group][late]
        off = float(np.mean(np.abs(p[late] - target)))
        found.append((name, off, float(np.mean(np.abs(target - np.median(target))))))
    return found


# --------
# Every loss at once.


def omniprediction_table(n: int = 6000, seed: int = 0) -> Table:
    """Swap regret and its bound over a linear class: a biased model, ours from it, and the truth on a grid."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.full(n, 0.7), 0.3 * rng.choice([-1.0, 1.0], (n, 5))])
    truth = x @ np.array([0.7, 0.5, -0.4, 0.3, 0.0, 0.0])
    y, biased = (rng.random(n) < truth).astype(float), 0.5 * truth + 0.4
    linear = partial(sc.Linear, 6)
    ours = sc.Forecaster(sc.Probability(), linear(), bins=20, seed=seed, protect="nothing").run(x, y, biased)
    columns = {"a biased model": np.round(biased, 1), "ours from it": ours, "the truth on a grid": np.round(truth, 1)}
    losses: list[Any] = ["squared", "log", sc.Cost(4, 1), _absolute]
    rows = []
    for name, p in columns.items():
        found = sc.omniprediction(p, y, x, linear(), losses)
        rows.append((name, *(f"{number(each.swap_regret)} / {number(each.at_most)}" for each in found.losses)))
    head = ("forecasts", "squared", "log", "cost 4:1", "absolute")
    note = (
        f"Swap regret and the most that the theorem allows, totals over {n:,} rows; linear functions of six features."
    )
    return Table("Regret of every loss", head, tuple(rows), note)


def _absolute(a: Any, y: float) -> Any:
    return np.abs(a - (2.0 * y - 1.0))


# --------
# The report.


def classes_report(directory: Path, names: tuple[str, ...] = NAMES) -> Report:
    """All of it."""
    with progress("classes") as done:
        files = []
        for name in names:
            files.append(file_row(directory, name))
            done(1, what=name)
        corners, spent, distances, regret = corner_bias(), costs(), tails(), omniprediction_table()
    change = {row.file: row.against_groups("trees") for row in files}
    hinted = [file_row(directory, name, seeds=1, methods=HINTS) for name in names if name in ("bike_hour", "adult")]
    lower = {row.file: row.against_groups("with a river tree") for row in hinted}
    trees_cost = next(cost for name, _, cost in spent if name.startswith("Trees, 10"))
    targets = [
        Target("bias of the worst corner: at most 0.04", f"{corners['trees']:.3f}", corners["trees"] <= 0.04),
        *(
            Target("bike rentals: 12 % below groups", f"{more:+.1f} %", more <= -12.0)
            if name == "bike_hour"
            else Target(f"{name}: at most 0.5 % above groups", f"{more:+.1f} %", more <= 0.5)
            for name, more in change.items()
        ),
        *(
            Target(f"{file}, a river tree as hint: below groups", f"{more:+.1f} %", more < 0.0)
            for file, more in lower.items()
        ),
        Target("boxes of ten columns: at most 8 µs a round", f"{trees_cost:.1f}", trees_cost <= 8.0),
    ]
    tables = [
        targets_table(targets),
        Table(
            "Files",
            ("file", "rows", "model", "groups", "trees", "trees over groups"),
            tuple(
                (
                    r.file,
                    f"{r.rows:,}",
                    *(f"{each:.5f}" for each in (r.model, *r.losses.values())),
                    f"{change[r.file]:+.1f} %",
                )
                for r in files
            ),
            f"Squared errors, means of {SEEDS} seeds. The model sees three columns of numbers and is frozen after the "
            "first fifth; groups are single columns, trees boxes of one or two of them, in 8 bins. No learning hint.",
        ),
        Table(
            "A model as hint",
            ("file", *HINTS, "river tree over groups"),
            tuple((r.file, *(f"{each:.5f}" for each in r.losses.values()), f"{lower[r.file]:+.1f} %") for r in hinted),
            "Squared errors of the same rows and model, one seed: groups alone, with `OnlineRegression()`, and with "
            "`sc.hint(HoeffdingTreeRegressor())` beside its experts.",
        ),
        Table(
            "A bias in opposite corners",
            ("forecasts", "worst corner"),
            tuple((name, f"{bias:.3f}") for name, bias in corners.items()),
            f"{CORNERS:,} rows; a model that is off by 0.2 in opposite corners of two of five columns, and right for "
            "every single column. The bias of the worst corner in the later half.",
        ),
        Table(
            "A second number given the first",
            ("what", "off by", "the best constant"),
            tuple((name, f"{off:.4f}", f"{constant:.4f}") for name, off, constant in distances),
            "12,000 rows in six groups with gamma tails; mean distance from the truth in the later half.",
        ),
        regret,
        cost_table(spent),
    ]
    page = document("Classes of functions", "Made by `swapcal bench classes DIR --docs docs`.", *tables)
    data = {"files": [asdict(row) for row in (*files, *hinted)], "corners": corners, "costs": spent, "tails": distances}
    return Report(
        "\n\n".join(each.text() for each in tables),
        data,
        {"classes.md": page},
        met=all(target.met for target in targets),
    )

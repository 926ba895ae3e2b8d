"""The tables of docs/audits.md, as Markdown: `python -m swapcal_benchmarks.audits [section ...] [--runs N]`.

Sections: widths, worst, limits, groups, chance, monitor, discovery. Seeds are fixed; figures repeat.
"""

import argparse
import contextlib
import importlib
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from scipy import stats

from swapcal.audits.cells import adaptive_radius, independent_radius
from swapcal.audits.chance import StratifiedSample, null_level
from swapcal.audits.discovery import banded, discover, valued
from swapcal.audits.intervals import TILTS, Bets, Terms, cell_bias, forecast_bins, group_bias
from swapcal.audits.sums import Scored
from swapcal.hypotheses import Finite
from swapcal.monitor import Monitor
from swapcal.properties import Probability
from swapcal.protocols import Rows
from swapcal.typing import Float64Array, IntArray
from swapcal_benchmarks.independent_intervals import independent_bias
from swapcal_benchmarks.report import Table


def write(text: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def table(title: str, head: Iterable[object], rows: Iterable[Iterable[object]]) -> None:
    """Print a table."""
    header = tuple(map(str, head))
    cells = tuple(tuple(f"{one:.3g}" if isinstance(one, float) else str(one) for one in row) for row in rows)
    write(f"\n**{title}**\n\n{Table(title, header, cells, align='l' * len(header)).markdown()}")


def clopper_pearson(n: Float64Array, ones: Float64Array, delta: float) -> tuple[Float64Array, Float64Array]:
    """Ends for the share, by SciPy's beta quantiles."""
    low = np.nan_to_num(stats.beta.ppf(delta / 2, ones, n - ones + 1), nan=0.0)
    high = np.nan_to_num(stats.beta.isf(delta / 2, ones + 1, n - ones), nan=1.0)
    return low, high


def widths(runs: int) -> None:
    """Widths over Clopper and Pearson's, share of ones 1/4, 1,000 cells together at 5 %."""
    delta, rows = 0.05 / 1000, []
    sizes = np.array([30.0, 200.0, 2000.0, 20_000.0, 2_000_000.0])
    ones = np.round(sizes / 4)
    low, high = clopper_pearson(sizes, ones, delta)
    exact = high - low
    squares = ones * 0.75**2 + (sizes - ones) * 0.25**2
    rows.append(
        ("one look, Maurer and Pontil", *(2 * independent_radius(sizes, 0 * sizes, squares, delta) / sizes / exact))
    )
    rows.append(("any time, from sums of squares", *(2 * adaptive_radius(squares, delta) / sizes / exact)))
    for name, found in (
        ("any time, F1", cell_bias(sizes, ones, ones, delta)),
        ("one look, independent", independent_bias(sizes, ones, ones, delta)),
    ):
        rows.append((name, *((found.high - found.low) / exact)))
    even = np.full((len(TILTS), 1), -np.log(len(TILTS)))
    low, high = (
        Bets(sizes, TILTS[:, None] * k, np.expm1(TILTS)[:, None], 0 * even, even).smallest_mean(np.log(2 / delta))
        for k in (ones, sizes - ones)
    )
    rows.append(("any time, F1 with equal weights", *((1 - np.maximum(high, 0) - np.maximum(low, 0)) / exact)))
    table(
        "Width over Clopper and Pearson's at delta = 0.05 / 1,000",
        ("rows", 30, 200, "2,000", "20,000", "2,000,000"),
        rows,
    )
    rng, rows = np.random.default_rng(0), []
    for name, a, b in (
        ("all near 0.25", 50, 150),
        ("Beta(2, 6)", 2, 6),
        ("Beta(0.5, 1.5)", 0.5, 1.5),
        ("rare, Beta(0.5, 100)", 0.5, 100),
    ):
        ratios = []
        for n in (200, 2000, 20_000):
            p = rng.beta(a, b, n)
            y = (rng.random(n) < p).astype(float)
            bins = forecast_bins(p)
            counts, hits = (np.bincount(bins, w, 26).astype(float)[:, None] for w in (np.ones(n), y))
            one, P = np.array([float(n)]), np.array([p.sum()])
            f1, f2 = cell_bias(one, np.array([y.sum()]), P, delta), group_bias(counts, hits, P, delta)
            normal = 2 * stats.norm.isf(delta / 2) * np.sqrt(np.sum(p * (1 - p))) / n
            ratios += [float((f1.high - f1.low)[0] / normal), float((f2.high - f2.low)[0] / normal)]
        rows.append((name, *ratios))
    head = ("forecasts", *(f"{f}, {n} rows" for n in ("200", "2,000", "20,000") for f in ("F1", "F2")))
    table("Width over the normal one with the true variance, groups over all their rows", head, rows)


def worst(runs: int) -> None:
    """Familywise error over 1,000 cells, each left when it looks worst."""
    names = ("Clopper and Pearson", "normal", "F3", "F3 with 20 usual terms", "any time, from sums of squares", "F1")
    wrong = dict.fromkeys(names, 0)
    n = np.arange(1.0, 2001.0)[:, None] + np.zeros(1000)
    delta = 0.05 / 1000
    for run in range(runs):
        y = np.random.default_rng(run).random((2000, 1000)) < 0.3
        Y = np.cumsum(y, axis=0)
        score = np.abs(Y - 0.3 * n) / np.sqrt(n)
        score[:29] = 0.0
        at = np.argmax(score, axis=0), np.arange(1000)
        m, ones = n[at], Y[at].astype(float)
        total, squares = 0.3 * m - ones, ones * 0.49 + (m - ones) * 0.09
        low, high = clopper_pearson(m, ones, delta)
        f1 = cell_bias(m, ones, 0.3 * m, delta)
        share = ones / m
        out = (
            (low > 0.3) | (high < 0.3),
            np.abs(share - 0.3) > stats.norm.isf(delta / 2) * np.sqrt(share * (1 - share) / m),
            np.abs(total) > Terms(m, total, squares, m).radius(delta),
            np.abs(total) > Terms(m, total, squares, m, 0.21).radius(delta),
            np.abs(total) > adaptive_radius(squares, delta),
            (f1.low > 0) | (f1.high < 0),
        )
        for name, one in zip(names, out, strict=True):
            wrong[name] += bool(one.any())
    rows = [(name, f"{count / runs:.3f}") for name, count in wrong.items()]
    table(
        f"Any of 1,000 cells wrong, each left when it looks worst in 2,000 rows ({runs} runs, nominal 0.05)",
        ("interval", "share of runs"),
        rows,
    )


def limits(runs: int) -> None:
    """F3 on outcomes of several shapes: cells that miss when they are left at their worst."""
    rng = np.random.default_rng(0)
    shapes: dict[str, Callable[[tuple[int, int]], Float64Array]] = {
        "normal": lambda s: rng.normal(size=s),
        "exponential": lambda s: rng.exponential(size=s) - 1,
        "log-normal, sigma 1": lambda s: (np.exp(rng.normal(size=s)) - np.exp(0.5)) / np.sqrt((np.e - 1) * np.e),
        "Bernoulli 0.02": lambda s: np.where(rng.random(s) < 0.02, -7.0, 1 / 7),
    }
    rows = []
    for name, draw in shapes.items():
        line: list[object] = [name]
        for first, last, clusters in ((100, 2000, False), (30, 400, True)):
            missed, n_cells = np.zeros((2, 2)), 0
            for _ in range(max(runs // 5, 1)):
                x = draw((500, last))
                s, q = x.cumsum(axis=1)[:, first - 1 :], (x**2).cumsum(axis=1)[:, first - 1 :]
                m = np.arange(first, last + 1.0) + np.zeros_like(s)
                n_cells += 500
                for i, delta in enumerate((0.05, 0.001)):
                    for j, usual in enumerate((0.0, 1.0)):
                        radius = Terms(m, s, q, m, usual, clusters).radius(delta)
                        missed[i, j] += np.count_nonzero((np.abs(s) > radius).any(axis=1))
            line += [f"{missed[i, 0] / n_cells:.4f}, {missed[i, 1] / n_cells:.4f}" for i in range(2)]
        rows.append(line)
    head = ("terms", "rows, 0.05", "rows, 0.001", "clusters, 0.05", "clusters, 0.001")
    table(
        "F3: cells that miss, left at their worst in 100 to 2,000 rows or 30 to 400 clusters: alone, with usual terms",
        head,
        rows,
    )


def groups(runs: int) -> None:
    """500 groups of 2,000 rows, base rate 25 %: verdicts on calibrated files, and a planted bias named."""
    n_rows, n_columns, per_column = 100_000, 10, 50
    n_groups = n_columns * per_column
    rows = []
    for bias in (0.0, 0.04, 0.05, 0.06, 0.08):
        named = {"sums of squares": 0, "F1": 0, "F2": 0}
        wrong = dict.fromkeys(named, 0)
        for run in range(runs):
            rng = np.random.default_rng(run)
            p = rng.beta(2, 6, n_rows)
            codes = rng.integers(0, per_column, (n_rows, n_columns)) + per_column * np.arange(n_columns)
            y = (rng.random(n_rows) < np.clip(p - bias * (codes[:, 0] == 7), 0, 1)).astype(float)
            flat, entry = codes.ravel(), np.repeat(np.arange(n_rows), n_columns)
            keys = forecast_bins(p)[entry] * n_groups + flat
            counts, hits = (
                np.bincount(keys, w, 26 * n_groups).reshape(26, -1).astype(float)
                for w in (np.ones(len(flat)), y[entry])
            )
            P, q = (np.bincount(flat, w[entry], n_groups).astype(float) for w in (p, (p - y) ** 2))
            n, Y, delta = counts.sum(axis=0), hits.sum(axis=0), 0.05 * 0.6 / n_groups
            f1, f2 = cell_bias(n, Y, P, delta), group_bias(counts, hits, P, delta)
            for name, off in (
                ("sums of squares", np.abs(P - Y) > adaptive_radius(q, delta)),
                ("F1", (f1.low > 0) | (f1.high < 0)),
                ("F2", (f2.low > 0) | (f2.high < 0)),
            ):
                named[name] += bool(off[7])
                wrong[name] += bool(np.delete(off, 7).any())
        rows.append((f"{100 * bias:g} points", *(f"{named[k] / runs:.2f} ({wrong[k] / runs:.2f})" for k in named)))
    table(
        f"One of 500 groups biased: share of files in which it is named (and another one, wrongly); {runs} files",
        ("bias", "sums of squares", "F1", "F2"),
        rows,
    )


def chance(runs: int) -> None:
    """The chance level beside what calibrated streams show."""
    rows = []
    for n_rows, n_columns, n_levels, n_places, weighted in (
        (2000, 5, 6, 10, False),
        (20_000, 10, 20, 20, False),
        (20_000, 10, 20, 20, True),
        (100_000, 13, 50, 20, False),
    ):
        seen, now, new, high = [], [], [], []
        F, rng = 1 + n_columns * n_levels, np.random.default_rng(0)
        place = rng.integers(0, n_places, n_rows)
        p = (place + 0.5) / n_places
        levels = (rng.random((n_rows, n_columns)) ** 2 * n_levels).astype(np.int64)
        # A column that says the same as another one, and one that follows from the forecast, as real tables have them.
        levels[:, 1] = levels[:, 0]
        levels[:, 2] = np.minimum((p * n_levels).astype(np.int64), n_levels - 1)
        everybody = np.zeros((n_rows, 1), dtype=np.int64)
        codes = np.concatenate([everybody, 1 + levels + n_levels * np.arange(n_columns)], axis=1)
        w = rng.random(n_rows) ** 4 if weighted else np.ones(n_rows)
        n = np.bincount(place, w, n_places).astype(float)
        keys, k = (place[:, None] * F + codes).ravel(), codes.shape[1]
        for run in range(5 * runs):
            wv = w * (p - (rng.random(n_rows) < p))
            S = np.bincount(keys, np.repeat(wv, k), n_places * F).reshape(n_places, F)
            seen.append(float(np.sum(np.abs(S).max(axis=1) ** 2 / n)))
            if run < 5:
                Q = np.bincount(keys, np.repeat(wv**2, k), n_places * F).reshape(n_places, F).astype(float)
                sample = StratifiedSample()
                members = Rows(k * np.arange(n_rows + 1), codes.ravel(), np.ones(k * n_rows))
                sample.add(Scored(p, p, wv, place, members))
                level = null_level(sample, n, Q)
                new.append(level.mean)
                high.append(level.high)
                alone = np.abs(rng.standard_normal((300, n_places, F)) * np.sqrt(Q)).max(axis=2)
                now.append(float(np.mean(np.sum(alone**2 / n, axis=1))))
        kept = sum(array.nbytes for array in sample.arrays().values()) / 1e6
        above = np.mean(np.array(seen) > np.mean(high))
        rows.append(
            (
                f"{n_rows:,}",
                F,
                n_places,
                "yes" if weighted else "no",
                float(np.mean(seen)),
                float(np.mean(new)),
                float(np.mean(now)),
                f"{above:.2f}",
                f"{kept:.1f} MB",
            )
        )
    head = (
        "rows",
        "groups",
        "places",
        "weights",
        "swap error seen",
        "foretold",
        "groups drawn apart",
        "above the 95 % level",
        "sample",
    )
    table("Chance level on calibrated streams, means", head, rows)


def monitored(seed: int, bias: float, start: int, n_rows: int) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Forty groups of four columns; group 3 is biased from row `start` on."""
    rng = np.random.default_rng(seed)
    x = np.zeros((n_rows, 40))
    for column in range(4):
        x[np.arange(n_rows), 10 * column + rng.integers(0, 10, n_rows)] = 1.0
    p = rng.uniform(0.2, 0.8, n_rows)
    hit = (x[:, 3] > 0) & (np.arange(n_rows) >= start)
    return (rng.random(n_rows) < p - bias * hit).astype(float), p, x


def monitor(runs: int) -> None:
    """Delay and false alarms of the monitor, and of ADWIN on V where river is installed."""
    adwin: Any = None
    with contextlib.suppress(ImportError):
        adwin = importlib.import_module("river.drift").ADWIN
    rows = []
    for start in (60_000, 0):
        delays: dict[str, list[float]] = {}
        false: dict[str, int] = {}
        for run in range(runs):
            y, p, x = monitored(run, 0.1, start, 100_000)
            before = x[:start, 3].sum()
            for name, alpha, every in (("alpha = 0.01", 0.01, None), ("every = 1,000,000", None, 1e6)):
                watch = Monitor(Probability(), Finite(40), tolerance=0.02, alpha=alpha, every=every)
                alarms = watch.update_many(y, p, x)
                hits = [a for a in alarms if a.group == "group 3" and a.rows > start]
                false[name] = false.get(name, 0) + sum(a.group != "group 3" or a.rows <= start for a in alarms)
                delays.setdefault(name, []).append(hits[0].group_rows - before if hits else np.inf)
            if adwin is not None:
                found, wrong = np.inf, 0
                for group in range(40):
                    members = np.flatnonzero(x[:, group])
                    detector = adwin(delta=0.01 / 40)
                    for i, t in enumerate(members.tolist()):
                        detector.update(p[t] - y[t])
                        if detector.drift_detected:
                            if group == 3 and t >= start:
                                found = min(found, i + 1 - before)
                            else:
                                wrong += 1
                false["ADWIN, 0.01 / 40"] = false.get("ADWIN, 0.01 / 40", 0) + wrong
                delays.setdefault("ADWIN, 0.01 / 40", []).append(float(found))
        rows += [
            (f"row {start:,}", name, f"{np.median(d):,.0f}", f"{np.mean(np.isfinite(d)):.2f}", false[name])
            for name, d in delays.items()
        ]
    head = ("bias of 0.1 from", "detector", "median rows of the group until found", "found", "false alarms")
    table(f"Forty groups, 100,000 rows, tolerance 0.02 ({runs} runs)", head, rows)


def discovery(runs: int) -> None:
    """Subgroups nobody listed: calibrated rows, and a planted one."""
    rows = []
    for planted in (0.0, 0.04, 0.08):
        confirmed = named = 0
        seconds = 0.0
        for run in range(runs):
            rng = np.random.default_rng(run)
            n = 60_000
            p = rng.beta(2, 4, n)
            columns = [valued(f"c{k}", rng.integers(-1, 8, n), [f"v{i}" for i in range(8)]) for k in range(8)]
            columns += [banded(name, rng.normal(size=n)) for name in ("age", "income", "distance", "score")]
            columns.append(banded("forecast", p))
            members: IntArray = np.flatnonzero((columns[2].codes == 1) & (columns[8].codes <= 3))
            pi = p.copy()
            pi[members] -= planted
            v = p - (rng.random(n) < np.clip(pi, 0, 1))
            begin = time.process_time()
            names = [one.name for one in discover(columns, v, seed=run).confirmed]
            seconds += time.process_time() - begin
            confirmed += bool(names)
            named += any(columns[2].labels[1] in name for name in names)
        rows.append(
            (
                f"{100 * planted:g} points on {len(members):,} rows",
                f"{confirmed / runs:.2f}",
                f"{named / runs:.2f}" if planted else "",
                f"{seconds / runs:.1f} s",
            )
        )
    table(
        f"Discovery, 60,000 rows, 13 columns ({runs} runs)",
        ("planted", "anything confirmed", "planted one named", "time"),
        rows,
    )


SECTIONS = {f.__name__: f for f in (widths, worst, limits, groups, chance, monitor, discovery)}


def main() -> None:
    """Print the sections asked for."""
    parser = argparse.ArgumentParser(description="Tables of docs/audits.md")
    parser.add_argument("sections", nargs="*", metavar="section")
    parser.add_argument("--runs", type=int, default=30)
    arguments = parser.parse_args()
    for name in arguments.sections or SECTIONS:
        SECTIONS[name](arguments.runs)


if __name__ == "__main__":
    main()

"""The rule of verdicts again, from all rows at once: intervals of one look, the global test, clusters, findings.

Written from `docs/audits.md`, with SciPy: tails are summed up from whole distributions, Student's and beta quantiles
are SciPy's, and nothing is kept in sums.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import beta, chi2
from scipy.stats import t as student

Numbers = npt.NDArray[np.float64]

# The 5 %, and who gets which part of it.
ALPHA, OVERALL, GROUPS, RANGES, CELLS, TOGETHER = 0.05, 0.1, 0.6, 0.1, 0.1, 0.1
FEWEST_ROWS, FEWEST_CLUSTERS = 100, 20


class Span(NamedTuple):
    """An interval of a mean of V."""

    low: float
    high: float

    @property
    def biased(self) -> bool:
        """Whether it leaves out 0."""
        return self.low > 0 or self.high < 0

    @property
    def clear(self) -> bool:
        """Whether an error of 2 % in an end would change nothing."""
        return min(abs(self.low), abs(self.high)) > 0.02 * (self.high - self.low)


def strata(p: pd.Series, edges: Numbers) -> npt.NDArray[np.int64]:
    """The stratum of each forecast: of the centre of its bin, on 26 steps of half a unit of log odds."""
    centre = (edges[1:] + edges[:-1]) / 2
    steps = np.searchsorted(1.0 / (1.0 + np.exp(-np.arange(-6.0, 6.25, 0.5))), centre, side="right")
    return steps.astype(np.int64)[places(p, edges)]


def places(p: pd.Series, edges: Numbers) -> npt.NDArray[np.int64]:
    """The number of the bin of each forecast."""
    return np.searchsorted(edges[1:-1], np.asarray(p, dtype=np.float64), side="right").astype(np.int64)


def events_in_strata(p: pd.Series, ones: pd.Series, stratum: npt.NDArray[np.int64], delta: float) -> Span:
    """V = p - y with y 0 or 1, in strata of like forecasts: where the count of ones has a tail of delta / 2."""
    counts, hits = (np.bincount(stratum, each, 26).astype(np.float64) for each in (None, ones))
    centre = expit(np.arange(-6.25, 6.5, 0.5))
    mean = float(p.mean())
    most = _least_mean(counts, hits, (hits + 20 * centre) / (counts + 20), delta / 2)
    least = _least_mean(counts, counts - hits, (counts - hits + 20 * (1 - centre)) / (counts + 20), delta / 2)
    return Span(max(mean - 1.0 + least, mean - 1.0), min(mean - most, mean))


def _least_mean(counts: Numbers, ones: Numbers, shares: Numbers, level: float) -> float:
    """The mean at which so many ones or more have the probability `level`, by the whole distribution of their sum."""
    n, total, used = int(counts.sum()), round(float(ones.sum())), counts > 0
    if total == 0:
        return 0.0
    turns = np.exp(2j * np.pi * np.arange(n + 1) / (n + 1))[:, None]

    def means(shift: float) -> Numbers:
        return expit(logit(shares[used]) + shift)

    def excess(shift: float) -> float:
        q = means(shift)
        probability = np.fft.fft(((1 - q + q * turns) ** counts[used]).prod(axis=1)).real / (n + 1)
        return math.log(max(float(probability[total:].sum()), 1e-30)) - math.log(level)

    return float(counts[used] @ means(brentq(excess, -40.0, 40.0, xtol=1e-8))) / n


def events(n: float, ones: float, forecasts: float, delta: float) -> Span:
    """The same of a single stratum: Clopper and Pearson's interval."""
    low = 0.0 if ones == 0 else float(beta.ppf(delta / 2, ones, n - ones + 1))
    high = 1.0 if ones == n else float(beta.ppf(1 - delta / 2, ones + 1, n - ones))
    return Span(forecasts / n - high, forecasts / n - low)


def terms(v: pd.Series, size: float, usual: float, delta: float) -> Span:
    """V of any kind, a term each row: Student's interval, with twenty usual terms in its variance."""
    m, total = len(v), float(v.sum())
    if m < FEWEST_ROWS:
        return Span(-1.0, 1.0)
    variance = (float((v**2).sum()) - total**2 / m + 20 * usual) / (m - 1)
    radius = float(student.ppf(1 - delta / 2, m - 1)) * math.sqrt(m * variance)
    return Span((total - radius) / size, (total + radius) / size)


def clustered(v: pd.Series, w: pd.Series, clusters: pd.Series, delta: float) -> Span:
    """A term each cluster: that of a cluster-robust regression on a constant."""
    sums, sizes = (w * v).groupby(clusters).sum(), w.groupby(clusters).sum()
    m, size = len(sums), float(w.sum())
    mean = float(sums.sum()) / size
    if m < FEWEST_CLUSTERS:
        return Span(min(-1.0, mean), max(1.0, mean))
    spread = math.sqrt(m / (m - 1) * float(((sums - mean * sizes) ** 2).sum()))
    radius = float(student.ppf(1 - delta / 2, m - 1)) * spread / size
    return Span(mean - radius, mean + radius)


def at_any_time(n: float, ones: float, forecasts: float, delta: float) -> Span:
    """F1: the interval of ranges of forecasts that react to outcomes."""
    theta = 8.0 * 2.0 ** (-np.arange(29) / 2)
    weights = 1.0 / (1.0 + (np.log2(theta / 0.3) / 3.0) ** 2)
    weights /= weights.sum()

    def least(count: float) -> float:
        def excess(m: float) -> float:
            exponents = np.log(weights) + theta * count - n * np.log1p(np.expm1(theta) * m)
            return float(np.logaddexp.reduce(exponents)) - math.log(2 / delta)

        return 0.0 if excess(0.0) < 0 else float(brentq(excess, 0.0, 1.0, xtol=1e-12))

    return Span(forecasts / n - 1.0 + least(n - ones), forecasts / n - least(ones))


# --------
# The global test.


def of_events(p: Sequence[float], n: Sequence[float]) -> Numbers:
    """Cumulants 2 to 6 of a sum of events: n of each probability p, summed up from those of one event."""
    q = np.clip(np.asarray(p, dtype=float), 1e-9, 1 - 1e-9)
    v, d = q * (1 - q), 1 - 2 * q
    one = np.array([v, v * d, v * (1 - 6 * v), v * d * (1 - 12 * v), v * (1 - 30 * v + 120 * v**2)])
    return np.asarray(one @ np.asarray(n, dtype=float))


def p_value(totals: Sequence[float], cumulants: Sequence[Numbers]) -> float:
    """Of the weighted sum of squares of cells without common rows: a gamma distribution with its three moments."""
    s, k = np.asarray(totals), np.array(cumulants).T
    s, k = s[k[0] > 1e-12], k[:, k[0] > 1e-12]
    if not len(s):
        return 1.0
    scaled = {order: k[order - 2] / k[0] ** (order / 2) for order in (3, 4, 6)}
    variance = np.maximum(2 + scaled[4], 0.5)
    weight = 2 / variance
    spread = float((weight**2 * variance).sum())
    third = float((weight**3 * np.maximum(8 + 12 * scaled[4] + 10 * scaled[3] ** 2 + scaled[6], 1e-3)).sum())
    x = (float((weight * s**2 / k[0]).sum()) - float(weight.sum())) / math.sqrt(spread)
    degrees = 8 * spread**3 / third**2
    return float(chi2.sf(degrees + x * math.sqrt(2 * degrees), degrees))


def global_test(rows: pd.DataFrame, columns: Sequence[str], *, binary: bool) -> float:
    """Over the ranges of forecasts, each column's values, and these crossed; `rows` have v, w, q, place and shown."""
    values = []
    for by in ([], *([column] for column in columns)):
        for names in (by, [*by, "shown"]):
            cells = [cell for _, cell in rows.groupby(names, dropna=False)] if names else [rows]
            cells = [cell for cell in cells if binary or len(cell) >= FEWEST_ROWS]
            if len(cells) < 2:
                continue
            if binary:
                inner = "shown" if "shown" in names else "place"
                parts = [cell.groupby(inner)["q"].agg(["mean", "size"]) for cell in cells]
                found = [of_events(part["mean"], part["size"]) for part in parts]
            else:
                squares = [float(((cell["w"] * cell["v"]) ** 2).sum()) for cell in cells]
                found = [np.array([square, 0.0, 0.0, 0.0, 0.0]) for square in squares]
            values.append(p_value([float((cell["w"] * cell["v"]).sum()) for cell in cells], found))
    return min(1.0, len(values) * min(values)) if values else 1.0


def signs_test(rows: pd.DataFrame, columns: Sequence[str], cluster: str) -> float:
    """Where rows hang together: one sum over all groups, and one over all ranges, against random signs of clusters."""
    wv, parts = rows["w"] * rows["v"], [pd.Series(0, index=rows.index), *(rows[column] for column in columns)]
    tables = [wv.groupby([rows[cluster], part]).sum().unstack(fill_value=0.0) for part in parts]
    families = [pd.concat(tables, axis=1), wv.groupby([rows[cluster], rows["shown"]]).sum().unstack(fill_value=0.0)]
    # Of events that happen as forecast: a cell in which none has happened shows no spread.
    sure = (rows["q"] * (1 - rows["q"])).where(rows["binary"], 0.0)
    variances = [pd.concat([sure.groupby(part).sum() for part in parts]), sure.groupby(rows["shown"]).sum()]
    signs = np.where(np.random.default_rng(1).random((20_000, rows[cluster].nunique())) < 0.5, -1.0, 1.0)
    seen, drawn = 0.0, np.zeros(len(signs))
    for family, variance in zip(families, variances, strict=True):
        sums = family.to_numpy()
        enough = (sums != 0).sum(axis=0) >= 10
        sums, scale = sums[:, enough], (sums[:, enough] ** 2).sum(axis=0)
        seen += float((sums.sum(axis=0) ** 2 / np.maximum(scale, variance.to_numpy()[enough])).mean())
        drawn += ((signs @ sums) ** 2 / scale).mean(axis=1)
    return float((1 + (drawn >= seen).sum()) / (1 + len(signs)))


# --------
# What it comes to.


def findings(spans: dict[str, Span], typical: float, *, ranges: int, together: bool) -> dict[str, Any]:
    """What a verdict is made from; `spans` has "all" first."""
    half = {name: (span.high - span.low) / 2 for name, span in spans.items()}
    groups = [name for name in spans if name != "all"]
    middle = float(np.median([half[name] for name in groups])) if groups else None
    named = {name for name in groups if spans[name].biased}
    return {
        "overall": spans["all"].biased,
        "groups": named,
        "n_groups": len(groups),
        "ranges": ranges,
        "together": together,
        "detectable": half["all"],
        "detectable_in_groups": middle,
        "few_rows": half["all"] > 0.1 * typical or (middle is not None and middle > 0.2 * typical),
        "biased": spans["all"].biased or bool(named) or ranges > 0 or together,
    }

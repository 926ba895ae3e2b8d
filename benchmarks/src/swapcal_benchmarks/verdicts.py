"""Whether the first line is right: files without bias, files with a planted one, and alarms on right models.

Every file is made in memory and goes through what `swapcal audit` does with one, but for pictures.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from swapcal.audits.decision import Findings
from swapcal.monitor import Monitor
from swapcal.properties import Probability
from swapcal.tasks.audit import audit
from swapcal.tasks.config import TaskConfig
from swapcal.typing import Float64Array, IntArray
from swapcal_benchmarks.report import Table

File = tuple[dict[str, Any], TaskConfig]
Generator = np.random.Generator


def _named(prefix: str, codes: IntArray) -> list[str]:
    return [f"{prefix}{code}" for code in codes.tolist()]


def _events(rng: Generator, p: Float64Array) -> Float64Array:
    return (rng.random(len(p)) < np.clip(p, 0.0, 1.0)).astype(np.float64)


# --------
# Files without bias.


def independent(rng: Generator) -> File:
    """4,000 rows, two columns of groups and their combinations: 368 groups."""
    p, g, h = rng.beta(2, 4, 4000), rng.integers(0, 40, 4000), rng.integers(0, 8, 4000)
    table = {"y": _events(rng, p), "p": p, "g": _named("g", g), "h": _named("h", h)}
    return table, TaskConfig("y", "p", ["g", "h", ("g", "h")])


def weekly(rng: Generator) -> File:
    """6,000 rows in 60 weeks, each with a shock of 8 points that its rows share; 50 groups."""
    week, p, g = np.sort(rng.integers(0, 60, 6000)), rng.uniform(0.2, 0.8, 6000), rng.integers(0, 50, 6000)
    y = _events(rng, p + rng.normal(0.0, 0.08, 60)[week])
    return {"y": y, "p": p, "g": _named("g", g), "week": week}, TaskConfig("y", "p", ["g"], cluster="week")


def small_groups(rng: Generator) -> File:
    """20,000 rows in 800 groups, events of 11 %."""
    p, g = rng.beta(1, 8, 20_000), rng.integers(0, 800, 20_000)
    return {"y": _events(rng, p), "p": p, "g": _named("g", g)}, TaskConfig("y", "p", ["g"])


def rare(rng: Generator) -> File:
    """20,000 rows, events of 0.4 %, 60 groups."""
    p, g = np.clip(rng.gamma(0.5, 0.008, 20_000), 0.0, 0.5), rng.integers(0, 60, 20_000)
    return {"y": _events(rng, p), "p": p, "g": _named("g", g)}, TaskConfig("y", "p", ["g"])


def quantile(rng: Generator) -> File:
    """6,000 rows with their 0.9 quantiles, 40 groups."""
    base, g = rng.uniform(0, 40, 6000), rng.integers(0, 40, 6000)
    table = {"y": base + rng.exponential(5.0, 6000), "p": base + 5.0 * np.log(10.0), "g": _named("g", g)}
    return table, TaskConfig("y", "p", ["g"], property="quantile:0.9")


# --------
# Files with a bias that an exact test at 5 % over the number of claims would find in 95 of 100.


def sure_effect(variance: float, n_rows: float, n_claims: int) -> float:
    """The bias that a normal test of so many rows, at 5 % shared by so many claims, finds in 95 files of 100."""
    normal = NormalDist()
    return (normal.inv_cdf(1 - 0.025 / n_claims) + normal.inv_cdf(0.95)) * float(np.sqrt(variance / n_rows))


def one_group(rng: Generator) -> File:
    """One of 40 groups."""
    p, g = rng.beta(2, 4, 8000), rng.integers(0, 40, 8000)
    hit = g == 7
    size = sure_effect(float(np.mean(p * (1 - p))), float(hit.sum()), 41)
    return {"y": _events(rng, p + size * hit), "p": p, "g": _named("g", g)}, TaskConfig("y", "p", ["g"])


def twenty_of_800(rng: Generator) -> File:
    """20 of 800 groups at twice the rate."""
    p, g = rng.beta(2, 18, 60_000), rng.integers(0, 800, 60_000)
    return {"y": _events(rng, p * np.where(g < 20, 2.0, 1.0)), "p": p, "g": _named("g", g)}, TaskConfig("y", "p", ["g"])


def one_range(rng: Generator) -> File:
    """Forecasts from 0.4 to 0.5, of 20 equal ranges two."""
    p, g = rng.beta(2, 3, 8000), rng.integers(0, 10, 8000)
    hit = (p >= 0.4) & (p < 0.5)
    size = sure_effect(0.25, float(hit.sum()) / 2, 20)
    return {"y": _events(rng, p + size * hit), "p": p, "g": _named("g", g)}, TaskConfig("y", "p", ["g"])


def drift(rng: Generator) -> File:
    """A bias of all rows from the middle of the file on."""
    p, g = rng.beta(2, 4, 8000), rng.integers(0, 10, 8000)
    late = np.arange(8000) >= 4000
    size = 2 * sure_effect(float(np.mean(p * (1 - p))), 8000, 11)
    return {"y": _events(rng, p + size * late), "p": p, "g": _named("g", g)}, TaskConfig("y", "p", ["g"])


def slope(rng: Generator) -> File:
    """Forecasts too far from the middle: log odds times 1.35."""
    truth, g = rng.beta(2, 2, 8000), rng.integers(0, 10, 8000)
    p = 1 / (1 + np.exp(-1.35 * np.log(truth / (1 - truth))))
    return {"y": _events(rng, truth), "p": p, "g": _named("g", g)}, TaskConfig("y", "p", ["g"])


def _names(what: str) -> Callable[[Findings], bool]:
    named: dict[str, Callable[[Findings], bool]] = {
        "anything": lambda found: found.biased,
        "the group": lambda found: "g=g7" in found.groups,
        "all rows": lambda found: found.overall,
        "a range, or ranges together": lambda found: found.ranges > 0 or found.together,
    }
    return named[what]


class Kind(NamedTuple):
    """A kind of file: how it is made, what is to be said of it, and in what part of the files, at least or at most."""

    make: Callable[[Generator], File]
    what: str
    limit: float
    planted: bool


KINDS = (
    *(Kind(make, "anything", 0.08, planted=False) for make in (independent, weekly, small_groups, rare, quantile)),
    Kind(one_group, "the group", 0.9, planted=True),
    Kind(twenty_of_800, "anything", 0.9, planted=True),
    Kind(one_range, "a range, or ranges together", 0.9, planted=True),
    Kind(drift, "all rows", 0.9, planted=True),
    Kind(slope, "a range, or ranges together", 0.9, planted=True),
)


def said_of(job: tuple[int, int]) -> bool:
    """Whether the audit of a file of this kind and seed names what is to be named."""
    kind, seed = KINDS[job[0]], job[1]
    table, question = kind.make(np.random.default_rng([job[0], seed]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        decision = audit(table, question, brief=True).verdict.decision
    assert decision is not None
    assert decision.before is not None
    return _names(kind.what)(decision.before)


# --------
# Alarms on right models whose events are known before their absence.


def arrivals(
    seed: int, bias: float = 0.0, start: int = 0, n: int = 4000
) -> tuple[Float64Array, Float64Array, IntArray]:
    """Outcomes, forecasts and the order in which outcomes come: events at once, their absence 300 rows later."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.1, 0.5, n)
    y = _events(rng, p + bias * (np.arange(n) >= start))
    return y, p, np.argsort(np.arange(n) + np.where(y > 0, 1.0, 300.5), kind="stable")


def alarm_at(seed: int, bias: float, *, in_turn: bool) -> float:
    """After how many arrivals a monitor at 5 % gives an alarm: infinite if never."""
    y, p, order = arrivals(seed, bias, 2000 if bias else 0)
    monitor = Monitor(Probability(), alpha=0.05, tolerance=0.02)
    for done in range(0, len(order), 50):
        at = order[done : done + 50]
        if monitor.update_many(y[at], p[at], rounds=at if in_turn else None):
            return done + 50.0
    return float("inf")


def alarms(job: tuple[int, float, bool]) -> float:
    """As `alarm_at`, of one job."""
    return alarm_at(job[0], job[1], in_turn=job[2])


def tables(runs: int, workers: int, done: Callable[[float], None] = lambda _: None) -> Iterator[Table]:
    """Files of each kind, and right and drifting models, by so many processes."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        rows = []
        for k, kind in enumerate(KINDS):
            said = sum(pool.map(said_of, [(k, seed) for seed in range(runs)], chunksize=4))
            held = said >= kind.limit * runs if kind.planted else said <= kind.limit * runs
            limit = f"{'at least' if kind.planted else 'at most'} {kind.limit * runs:.0f}"
            rows.append(
                (kind.make.__name__.replace("_", " "), kind.what, f"{said} of {runs}", limit, "yes" if held else "no")
            )
            done(1.0)
        yield Table("Files", ("file", "named", "files", "limit", "held"), tuple(rows), align="llrrl")
        told = []
        for in_turn in (False, True):
            right, wrong = ([*pool.map(alarms, [(s, bias, in_turn) for s in range(runs)])] for bias in (0.0, 0.15))
            found = np.array(wrong)
            late = found[np.isfinite(found) & (found > 2000)] - 2000
            delay = f"{np.median(late):.0f}" if len(late) else "-"
            name = "in order of forecasts" if in_turn else "in order of arrival"
            told.append((name, f"{np.isfinite(right).sum()} of {runs}", f"{np.isfinite(found).sum()} of {runs}", delay))
            done(1.0)
        head = ("outcomes judged", "alarms on a right model", "on one that drifts", "median arrivals until then")
        yield Table("Alarms where events are known first, alpha 0.05", head, tuple(told), align="lrrr")


PAGE = """# Is the first line right?

People act on the first line of an audit. `swapcal bench verdicts` makes files of each kind in memory, sends them down
the road of `swapcal audit`, and counts the first lines that are wrong. This page is what it wrote with `--docs docs`.
What the intervals and the global test are is in [audits.md](audits.md).

The first five kinds have no bias: at 5 %, shared by all claims, ten files of 200 would show something. In the others
a bias is planted. That of one group, of a range and of the drift is of the size that a normal test, at the level that
Bonferroni leaves each claim, finds in 95 files of 100.

{}

The alarms are those of `Monitor` at 5 %, over 4,000 cases: events are known at once, their absence after 300 cases.
In order of arrival the early outcomes are all events, so every right model looks wrong. In order of forecasts, as the
service judges, none does; of the cases until an alarm 300 are the wait.

The same verdict on every road, with the same clusters, is held by `tests/suites/test_roads.py`; true losses of
numbers that move from 50 to 300 by the same file.
"""


def page(tables: Iterable[Table]) -> str:
    """The page of the tables."""
    return PAGE.format("\n\n".join(f"**{table.title}**\n\n{table.markdown()}" for table in tables))

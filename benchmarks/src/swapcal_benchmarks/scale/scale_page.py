"""docs/scale.md: what was measured, and what it means on paper for ten billion rows a day."""

import platform
from collections.abc import Sequence
from textwrap import fill

from swapcal_benchmarks.report import Table, document
from swapcal_benchmarks.scale.cold_keys import ColdKeys
from swapcal_benchmarks.scale.key_costs import GROUPS, KeyCost
from swapcal_benchmarks.scale.spark_costs import SparkCost
from swapcal_benchmarks.scale.two_cores import ManyKeys, TwoCores

__all__ = ["scale_page"]

_DAY = 86_400.0
_ROWS = 10e9
_READING = 1.0
"""Processor microseconds a row for reading, shuffling and writing, on top of what is measured here; an assumption."""


def scale_page(
    costs: Sequence[KeyCost],
    cold: Sequence[ColdKeys],
    cores: TwoCores,
    many: Sequence[ManyKeys],
    spark: Sequence[SparkCost],
    command: str,
) -> str:
    """The whole page."""
    about = _INTRODUCTION.format(command=command, python=platform.python_version(), load=cores.load)
    parts = [_cost_table(costs), _on_paper(costs, spark), _cores(cores), _many(many), _spark(spark), _cold(cold), _HOW]
    return document("Past one machine: what keys and rows cost", about.strip(), *(part.strip() for part in parts))


def _wrapped(*sentences: str) -> str:
    return fill(" ".join(sentences), 118)


def _cost_table(costs: Sequence[KeyCost]) -> str:
    heads = ["keys", "rows a key", "`run`, us a row", "step, us a row", "loop, us a row", "state, bytes a key"]
    heads += ["live, bytes a key", "to_bytes, us", "from_bytes, us"]
    lines = [
        "## A key and a row\n",
        _wrapped(
            f"One forecaster a key, for {GROUPS} groups, with a hint. Times are processor microseconds, means over up",
            "to 50 keys that are played, of bytes each the best of nine; memory is that of all keys as",
            "bytes, which beyond those are copies of them.",
        ),
        "",
        Table("", tuple(heads), tuple(_cost_cells(each) for each in costs), align="r" * len(heads)).markdown(),
        "",
        _wrapped(
            "*run* is `Forecaster.run` over all rows of a key; *step* plays two events a row, case and outcome, in ten",
            "batches with the state as bytes between them; *loop* is `predict` and `update` for each row, with the",
            "state as bytes as often. A row costs about the same whatever the number of keys: keys share nothing.",
            "What grows is the number of states.",
        ),
    ]
    return "\n".join(lines)


def _cost_cells(c: KeyCost) -> tuple[str, ...]:
    times = f"{c.run:.2f}", f"{c.step:.1f}", f"{c.loop:.1f}"
    sizes = f"{c.state:,.0f}", f"{c.resident:,.0f}"
    return f"{c.keys:,}", f"{c.rows:,}", *times, *sizes, f"{c.write:.0f}", f"{c.read:.0f}"


def _on_paper(costs: Sequence[KeyCost], spark: Sequence[SparkCost]) -> str:
    largest = costs[-1]
    factor = next((s.spark / s.alone for s in spark if s.what == "batch"), 8.0)
    ways = {
        "`run` by key, files": largest.run + _READING,
        "Spark, batch": (largest.run + _READING) * factor,
        "events, state as bytes": largest.step + _READING,
    }
    header = ("way", "us a row", "cores that are busy all day", "10 workers of 16 cores", "100 workers of 16 cores")
    rows = []
    for way, micros in ways.items():
        cores = _ROWS * micros / 1e6 / _DAY
        rows.append((way, f"{micros:.1f}", f"{cores:,.1f}", _within(cores, 160), _within(cores, 1600)))
    both = largest.write + largest.read
    lines = [
        "## Ten billion rows a day, on paper\n",
        _wrapped(
            f"Ten billion rows a day are {_ROWS / _DAY:,.0f} rows a second. With {_READING:g} us a row assumed for",
            f"reading and writing, and for Spark in batch {factor:.1f} times the processor time of the core alone",
            f"({'as measured below' if spark else 'the limit that is asked for, not measured here'}):",
        ),
        "",
        Table("", header, tuple(rows), align="lrrll").markdown(),
        "",
        _wrapped(
            f"States are {largest.state:,.0f} bytes a key: a million are {1e6 * largest.state / 1e9:,.1f} GB, which",
            "a cluster holds easily. The bottleneck is not the forecaster: in batch it is moving rows to their key (a",
            "shuffle), in streams it is unpacking and packing a state for each key that a micro-batch touches,",
            f"{both / 1e3:.2f} ms together: with b events of a key in a micro-batch, {both:,.0f}/b us an event, so",
            f"longer micro-batches cost less. One key is one sequence: at {largest.run:.2f} us a row one core plays",
            f"{3600e6 / largest.run / 1e9:.1f} billion rows of one key in an hour, and no further worker helps it.",
        ),
    ]
    return "\n".join(lines)


def _within(cores: float, n: int) -> str:
    share = cores / n
    if share <= 0.7:
        return f"{1440 * share:,.1f} minutes of the day"
    return "too few" if share > 1 else "just enough"


def _cores(cores: TwoCores) -> str:
    ratio, by_processor = cores.one / cores.two, cores.one_cpu / (0.5 * cores.two_cpu)
    reached = "1.7 is asked for" if ratio >= 1.7 else "1.7 is asked for, and was NOT reached in this run"
    text = _wrapped(
        f"`swapcal run --by` on a CSV of {cores.rows:,} rows of {cores.keys:,} keys: {cores.one:.1f} s on one core,",
        f"{cores.two:.1f} s with two processes on two, {ratio:.2f} times as fast; {reached}. In processor time it is",
        f"{cores.one_cpu:.1f} and {cores.two_cpu:.1f} s, so two cores with nothing else to do could be",
        f"{by_processor:.2f} times as fast at most. The load of the machine was {cores.load:.1f} meanwhile: where that",
        "is above the number of cores, others were at work on it and the first ratio says little.",
    )
    return f"## One machine, all cores\n\n{text}"


def _many(many: Sequence[ManyKeys]) -> str:
    few, more = many[:2]
    ratio, by_processor = more.seconds / few.seconds, more.cpu / few.cpu
    reached = "3 is allowed" if ratio <= 3.0 else "3 is allowed, and was NOT kept in this run"
    cells = [(f"{m.keys:,}", f"{m.rows:,}", f"{m.seconds:.1f}", f"{m.cpu:.1f}", f"{m.memory:,.0f}") for m in many]
    lines = [
        "## Many keys",
        "",
        _wrapped(
            f"`swapcal run --by` with two processes on rows of keys in any order. {more.keys:,} keys take {ratio:.1f}",
            f"times as long as {few.keys:,} with as many rows, and {by_processor:.1f} times the processor time;",
            f"{reached}. Memory is the most that all processes had together.",
        ),
        "",
        Table("", ("keys", "rows a key", "seconds", "processor seconds", "memory, MB"), tuple(cells)).markdown(),
    ]
    return "\n".join(lines)


def _spark(spark: Sequence[SparkCost]) -> str:
    if not spark:
        return "## Spark\n\nNot measured in this run: it was left out, or pyspark or Java is missing."
    rows = []
    for s in spark:
        times = f"{s.spark / s.alone:.1f}" + ("" if s.spark <= s.target * s.alone else " (missed)")
        rows.append((s.what, f"{s.rows:,}", f"{s.alone:.1f}", f"{s.spark:.1f}", times, f"{s.target:g}"))
    lines = [
        "## Spark\n",
        _wrapped(
            "Processor seconds of all of Spark's processes, once a job of 100 rows has started them, beside those of",
            "the same core alone. *batch*: `run` for each key of a sorted table. *stream*: `predict` and `update` for",
            "each event, with states and waiting forecasts as bytes.",
        ),
        "",
        Table("", ("way", "rows", "core alone", "Spark", "times", "at most"), tuple(rows)).markdown(),
    ]
    return "\n".join(lines)


def _cold(cold: Sequence[ColdKeys]) -> str:
    header = ("rows a key", "learning hint", "from nothing", "pooled hint and state", "the true rates", "gap closed")
    rows = []
    for c in cold:
        gap = f"{100 * (c.nothing - c.pooled) / (c.nothing - c.truth):.0f} %"
        errors = f"{c.nothing:.4f}", f"{c.pooled:.4f}", f"{c.truth:.4f}"
        rows.append((str(c.rows), "yes" if c.learning else "no", *errors, gap))
    lines = [
        "## Cold keys",
        "",
        "Keys of two groups whose rates differ by 5 points between keys; mean squared error of keys from the 51st on.",
        "",
        Table("", header, tuple(rows), align="rlrrrr").markdown(),
    ]
    return "\n".join(lines)


_INTRODUCTION = """
Made by `{command}` (Python {python}, load of the machine {load:.1f}); every number below is measured by it,
but for what stands under "on paper". How to use it: `swapcal.compat.spark`, `swapcal run --by`,
`swapcal audit --merge`.
"""

_HOW = """
## What is promised

- The forecasts of a key are those of a `Forecaster` alone with its rows (`swapcal.keyed.forecaster_for_key`), bit
  for bit, whatever the number of processes or workers. Its seed is a hash of one secret seed and the key.
- An audit that is merged from parts has the counts of a single pass, and the sums: to the last bit where they are exact
  (outcomes 0 and 1, forecasts that are multiples of a power of two), and to 1e-9 elsewhere, in any order of merging.
- A stream that is killed goes on from its checkpoint with the same forecasts. With another property, seed, groups or
  settings it is refused.
- A repeated, unknown or expired outcome changes nothing and is told in the column `status`; so is a bad event of a
  stream, with its `reason`.
"""

"""Results made from synthetic streams, for tests of what draws them: every shape that an audit or a run can have."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from swapcal.audits import Cell
from swapcal.audits.cells import adaptive_radius
from swapcal.audits.groups import GroupBias
from swapcal.audits.histograms import Curve
from swapcal.audits.scores import Paired
from swapcal.audits.summary import ColumnSummary
from swapcal.audits.timeline import GroupHistory
from swapcal.properties import Expectile, Mean, Quantile
from swapcal.protocols import Elicitable
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.result import Counts, Guarantee, History, Range, Result, Section
from swapcal.text.verdict import Verdict
from swapcal.typing import Float64Array

__all__ = [
    "HOSTILE",
    "after_only_example",
    "audit_example",
    "constant_example",
    "hostile_example",
    "many_groups_example",
    "run_example",
    "with_section",
]

MEAN = Mean()
HOSTILE = (
    "all",
    "<script>window.pwned=1</script>",
    "\"><img src=x onerror='window.pwned=2'>",
    "city=القدس & sex=ذكر",
    "mood=😀🏳️‍🌈",
    "cost=$5 or $x^$",
    "a very long group name " * 8,
    "]]></svg></script><script>window.pwned=3</script>",
    "{{ 7 * 7 }} {% raw %} &amp; 'quotes' \"more\"",
    "tab\tand\nnewline\x00null",
    "名前=東京",
)
"""Names that break out of HTML, scripts, drawings or templates, or that fonts lack."""


def run_example(
    property: Elicitable = MEAN, n_groups: int = 12, n: int = 20_000, names: tuple[str, ...] | None = None
) -> Result:
    """A run on top of a biased model."""
    names = names if names is not None else _names(n_groups)
    y, p, q, x = _stream(property, len(names), n)
    before, after = _side("hint", property, p, y, x, names), _side("swapcal", property, q, y, x, names)
    rounds = np.unique(np.geomspace(100, n, 40).astype(int)).astype(float)
    history = History(
        rounds,
        before.swap_error * rounds / n,
        after.swap_error * (rounds / n) ** 0.4,
        8.0 * np.cbrt(rounds) * math.log(1 + len(names)),
    )
    first, second = (float(np.mean(property.loss(v, y))) for v in (p, q))
    difference, reach = second - first, 0.003 * first
    paired = Paired(first, second, difference, difference - reach, difference + reach, 0.95)
    said = Verdict(
        "recalibrate",
        "The model can be trusted for most, and recalibration makes it right for the others",
        ("The model's forecasts are biased for some groups.", "Use the corrected forecasts in the output file."),
    )
    wording = replace(property.wording, loss="pinball loss" if isinstance(property, Quantile) else "squared error")
    assert history.guarantee is not None
    return Result(
        kind="run",
        task="scalar",
        source="flights.csv",
        y="late",
        property=repr(property),
        wording=wording,
        counts=Counts(scored=n, rows=n + 17, without_outcome=17),
        verdict=said,
        sections=(Section("", before, after, names, history=history),),
        config=TaskConfig("late", "model", ("carrier", "origin"), seed=0),
        versions={"swapcal": "0.1.0", "numpy": np.__version__, "python": "3.11"},
        range=Range(property.low, property.high, "as given"),
        guarantee=Guarantee(float(history.guarantee[-1]), "holds"),
        paired={wording.loss: paired},
    )


def with_section(result: Result, **parts: Any) -> Result:
    """The result with other parts of its only section."""
    return replace(result, sections=(replace(result.first, **parts),))


def audit_example(property: Elicitable = MEAN, n_groups: int = 12, n: int = 20_000) -> Result:
    """An audit: before only, no history, no guarantee."""
    result = run_example(property, n_groups, n)
    said = Verdict("refit", "The model itself is off", ("Its forecasts miss what the groups show.",))
    one = with_section(result, after=None, history=None)
    return replace(one, kind="audit", paired={}, guarantee=None, verdict=said)


def after_only_example(n_groups: int = 3) -> Result:
    """A run without a hint."""
    result = run_example(n_groups=n_groups)
    assert result.first.history is not None
    history = replace(result.first.history, before=None)
    said = Verdict("fine", "Nothing to correct", ("Every group is within chance.",))
    return replace(with_section(result, before=None, history=history), paired={}, verdict=said)


def constant_example() -> Result:
    """One constant forecast, for one group."""
    rng = np.random.default_rng(3)
    y = (rng.random(500) < 0.3).astype(float)
    side = _side("p", Mean(), np.full(500, 0.5), y, np.ones((500, 1), dtype=bool), ("all",))
    return replace(with_section(audit_example(), groups=("all",), before=side), counts=Counts(scored=500, rows=500))


def hostile_example() -> Result:
    """Names that nobody should give to groups, columns and files."""
    result = run_example(names=HOSTILE)
    script = "</script><script>window.pwned=4</script>"
    assert result.before is not None
    assert result.after is not None
    sides = with_section(
        result,
        before=replace(result.before, label=script, witness=script),
        after=replace(result.after, label="😀 model", worst=result.after.worst[:2]),
    )
    return replace(
        sides,
        source=f"{script}.csv",
        verdict=Verdict("recalibrate", f"Bad {script}", (script, "<b>bold</b>")),
        details={script: script, "<i>": ["<b>", None, 3.5]},
        versions={"<u>": script},
        wording=replace(result.wording, loss="<loss>"),
        paired={"<loss>": next(iter(result.paired.values()))},
    )


def many_groups_example(n_groups: int = 2_000) -> Result:
    """As many groups as a column of identifiers makes."""
    return run_example(n_groups=n_groups, n=3_000)


def _names(n_groups: int) -> tuple[str, ...]:
    columns = ("carrier", "origin", "hour", "dest")
    return ("all", *(f"{columns[j % 4]}={chr(65 + j % 26)}{j}" for j in range(n_groups - 1)))


def _stream(
    property: Elicitable, n_groups: int, n: int
) -> tuple[Float64Array, Float64Array, Float64Array, Float64Array]:
    """Labels, the model's forecasts, better ones, and membership in groups of very different sizes."""
    rng = np.random.default_rng(7)
    shares = np.concatenate([[1.0], 0.4 * np.arange(1, n_groups, dtype=np.float64) ** -0.8])
    x = rng.random((n, n_groups)) < shares
    width = property.high - property.low
    truth = 0.1 + 0.7 * rng.beta(2.0, 3.0, n)
    shift = 0.12 * x[:, 1 % n_groups] - 0.1 * x[:, 2 % n_groups] * truth
    model = np.clip(truth + shift, 0.0, 1.0)
    if isinstance(property, Quantile):
        y = np.clip(truth + 0.15 * rng.standard_normal(n) - 0.19, 0.0, 1.0)
    elif isinstance(property, Expectile):
        y = np.clip(truth + 0.1 * rng.standard_normal(n), 0.0, 1.0)
    else:
        y = (rng.random(n) < truth).astype(float)
    better = np.clip(np.round(truth * 25) / 25, 0.0, 1.0)
    return property.low + width * y, property.low + width * model, property.low + width * better, x.astype(np.float64)


def _side(
    label: str,
    property: Elicitable,
    p: Float64Array,
    y: Float64Array,
    x: Float64Array,
    names: tuple[str, ...],
    bins: int = 20,
) -> ColumnSummary:
    edges = np.linspace(property.low, property.high, bins + 1)
    at = np.clip(np.searchsorted(edges, p, side="right") - 1, 0, bins - 1)
    v = np.asarray(property.identification(p, y), dtype=np.float64)
    counts, sums = np.zeros((bins, len(names))), np.zeros((bins, len(names)))
    np.add.at(counts, at, x)
    np.add.at(sums, at, x * v[:, None])
    bias = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
    histogram = np.bincount(at, minlength=bins).astype(float)
    radius = adaptive_radius(0.25 * counts, 0.05 / counts.size)
    curves = {name: _curve(property, p, y, at, x[:, j] > 0, radius[:, j]) for j, name in enumerate(names)}
    played = np.maximum(histogram, 1.0)[:, None]
    share = sums**2 / played
    cells = sorted(np.ndindex(*share.shape), key=lambda cell: -share[cell])[:10]
    reach = np.divide(radius, counts, out=np.ones_like(radius), where=counts > 0)
    low, high = np.maximum(bias - reach, -1.0), np.minimum(bias + reach, 1.0)
    worst = tuple(
        Cell(
            float(0.5 * (edges[i] + edges[i + 1])),
            int(j),
            names[j],
            int(counts[i, j]),
            float(counts[i, j]),
            float(bias[i, j]),
            float(low[i, j]),
            float(high[i, j]),
            float(share[i, j]),
        )
        for i, j in cells
        if counts[i, j] > 0
    )
    return ColumnSummary(
        label,
        float(share.max(axis=1).sum()),
        float(share.sum(axis=0).max()),
        float(share[:, 0].sum()),
        float(np.mean(property.loss(p, y))),
        curves,
        edges,
        bias,
        counts,
        histogram,
        worst,
        f"forecasts near {worst[0].value:.3g} are off for {worst[0].name}",
        chance_mean=0.1 * bins,
        chance_high=0.15 * bins,
        weight=float(len(p)),
        groups=_groups(names, x, v, share.sum(axis=0)),
        histories={name: _history(x[:, j], v) for j, name in list(enumerate(names))[:3]},
    )


def _groups(names: tuple[str, ...], x: Float64Array, v: Float64Array, error: Float64Array) -> GroupBias:
    """Every group over all its rows, with the interval that its squares give."""
    rows = x.sum(axis=0)
    mean = np.divide(x.T @ v, rows, out=np.full(len(names), np.nan), where=rows > 0)
    radius = adaptive_radius(x.T @ v**2, 0.05 / len(names)) / np.maximum(rows, 1.0)
    low, high = np.maximum(mean - radius, -1.0), np.minimum(mean + radius, 1.0)
    off = ((low > 0) | (high < 0)).astype(float)
    return GroupBias(names, rows, rows.copy(), mean, low, high, np.nan_to_num(np.abs(mean) / radius), off, error)


def _history(member: Float64Array, v: Float64Array) -> GroupHistory:
    starts = np.arange(0, len(v), max(1, len(v) // 20))
    sums = [np.add.reduceat(each, starts) for each in (member, member * v)]
    return GroupHistory(starts.astype(np.float64), *sums)


def _curve(property: Elicitable, p: Float64Array, y: Float64Array, at: Any, member: Any, radius: Float64Array) -> Curve:
    bins = np.unique(at[member])
    rows = [member & (at == b) for b in bins]
    count = np.array([float(r.sum()) for r in rows])
    outcome = np.array([property.value(y[r]) for r in rows])
    width = property.high - property.low
    reach = width * radius[bins] / np.maximum(count, 1.0)
    low, high = np.maximum(outcome - reach, property.low), np.minimum(outcome + reach, property.high)
    return Curve(np.array([float(p[r].mean()) for r in rows]), outcome, low, high, count)

"""Results of real runs and audits of small tables, for tests of what draws them: every shape that a result can have."""

from dataclasses import replace
from typing import Any

import numpy as np

from commands import run
from swapcal.properties import Expectile, Mean, Quantile
from swapcal.protocols import Elicitable
from swapcal.tasks.audit import audit
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.result import Result
from swapcal.text.verdict import Verdict

HOSTILE = (
    "<script>window.pwned=1</script>",
    "\"><img src=x onerror='window.pwned=2'>",
    "القدس & sex=ذكر",
    "😀🏳️‍🌈",
    "$5 or $x^$",
    "a very long group name " * 8,
    "]]></svg></script><script>window.pwned=3</script>",
    "{{ 7 * 7 }} {% raw %} &amp; 'quotes' \"more\"",
    "tab\tand\nnewline\x00null",
    "名前=東京",
)
"""Names that break out of HTML, scripts, drawings or templates, or that fonts lack."""
MEAN = Mean()


def _table(property: Elicitable, names: tuple[str, ...], n: int) -> dict[str, Any]:
    """Outcomes, and a model that is too high for one group and too low for another; groups of very different sizes."""
    rng = np.random.default_rng(7)
    shares = np.arange(1, len(names) + 1, dtype=np.float64) ** -0.8
    carrier = rng.choice(len(names), n, p=shares / shares.sum())
    truth = 0.1 + 0.7 * rng.beta(2.0, 3.0, n)
    model = np.clip(truth + 0.15 * (carrier == 0) - 0.2 * (carrier == 1) * truth, 0.0, 1.0)
    if isinstance(property, Quantile):
        y = truth + 0.15 * rng.standard_normal(n) - 0.19
    elif isinstance(property, Expectile):
        y = truth + 0.1 * rng.standard_normal(n)
    else:
        y = (rng.random(n) < truth).astype(float)
    low, width = property.low, property.high - property.low
    columns = {"late": low + width * np.clip(y, 0.0, 1.0), "model": low + width * model}
    return {**columns, "carrier": [names[k] for k in carrier]}


def _names(n_groups: int) -> tuple[str, ...]:
    return tuple(f"{chr(65 + j % 26)}{j}" for j in range(n_groups - 1))


def _config(property: Elicitable, names: tuple[str, ...], **settings: Any) -> TaskConfig:
    groups = ["carrier"] if names else []
    return TaskConfig("late", **{"p": "model", "groups": groups, "property": property, **settings})


def run_example(
    property: Elicitable = MEAN, n_groups: int = 12, n: int = 4_000, names: tuple[str, ...] | None = None
) -> Result:
    """A run on top of a biased model."""
    names = _names(n_groups) if names is None else names
    table = _table(property, names or ("A0",), n)
    return replace(run(table, _config(property, names, seed=0)), source="flights.csv")


def audit_example(property: Elicitable = MEAN, n_groups: int = 12, n: int = 4_000) -> Result:
    """An audit: before only, no guarantee."""
    names = _names(n_groups)
    return replace(audit(_table(property, names, n), _config(property, names)), source="flights.csv")


def after_only_example(n_groups: int = 3) -> Result:
    """A run without a hint."""
    names = _names(n_groups)
    return run(_table(MEAN, names, 2_000), _config(MEAN, names, p=None, seed=0))


def constant_example() -> Result:
    """One constant forecast, for one group."""
    table = _table(MEAN, ("A0",), 500)
    return audit(table | {"model": np.full(500, 0.5)}, _config(MEAN, ()))


def with_section(result: Result, **parts: Any) -> Result:
    """The result with other parts of its only section."""
    return replace(result, sections=(replace(result.first, **parts),))


def hostile_example() -> Result:
    """Names that nobody should give to groups, columns and files."""
    result, script = run_example(names=HOSTILE), "</script><script>window.pwned=4</script>"
    before, after = result.before, result.after
    assert before is not None
    assert after is not None
    sides = {"before": replace(before, label=script, witness=script), "after": replace(after, label="😀 model")}
    return replace(
        with_section(result, **sides),
        source=f"{script}.csv",
        verdict=Verdict("BIASED", f"Bad {script}", (script, "<b>bold</b>")),
        details={script: script, "<i>": ["<b>", None, 3.5]},
        versions={"<u>": script},
        wording=replace(result.wording, loss="<loss>"),
        paired={"<loss>": next(iter(result.paired.values()))},
    )

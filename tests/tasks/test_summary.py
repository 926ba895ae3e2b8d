"""A result in at most 20 lines: what is printed is what pandas says of the rows, and Python prints it as well."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from swapcal.tasks.audit import audit
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.result import from_json, to_json
from swapcal.tasks.runner import run
from swapcal.text.numbers import number, precise
from swapcal.text.summary import behind, summary

SEGMENTS = [f"segment number {k}" for k in range(30)]


def frame(kind: str, n: int = 4000) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    p, g = rng.beta(2, 5, n), rng.integers(0, 30, n)
    mean = np.clip(p + 0.2 * (g == 3), 0.0, 1.0) * (0.02 if kind == "rare" else 1.0)
    y = (rng.random(n) < mean).astype(float)
    if kind in ("real", "quantile"):
        y, p = 1000.0 * mean + rng.normal(0.0, 50.0, n), 1000.0 * p
    p = 0.02 * p if kind == "rare" else p
    w = rng.integers(1, 4, n) / 3.0
    return pd.DataFrame({"y": y, "p": p, "g": np.array(SEGMENTS)[g], "w": w})


@pytest.mark.parametrize("kind", ["events", "rare", "real", "quantile", "weights"])
@pytest.mark.parametrize("task", [audit, run])
def test_every_printed_number_of_a_group_is_that_of_pandas(kind: str, task: Any) -> None:
    rows = frame(kind)
    more: dict[str, Any] = {"property": "quantile:0.7"} if kind == "quantile" else {}
    more |= {"weight": "w"} if kind == "weights" else {}
    more |= {} if task is audit else {"against": ("none",), "seed": 1}
    lines = summary(task(rows, TaskConfig("y", "p", ("g",), **more)))
    assert len(lines) <= 20
    assert max(map(len, lines)) <= 80
    assert "\n".join(lines).isascii()
    assert "-0.0" not in "\n".join(lines).split(), lines
    first = lines.index("")
    seen = 0
    for line in lines[first + 2 : lines.index("", first + 1)]:
        name = next((one for one in SEGMENTS if f"g={one}  " in line), None)
        if name is None and "all rows" not in line:
            continue
        own = rows if name is None else rows[rows["g"] == name]
        w = own["w"] if kind == "weights" else pd.Series(1.0, own.index)
        numbers = line.split("all rows" if name is None else f"g={name}")[1]
        assert numbers.split()[0] == f"{len(own):,}"
        if kind == "quantile":
            assert f"{100 * (own['y'] <= own['p']).mean():.1f} %" in numbers
        else:
            predicted, observed = ((w * own[column]).sum() / w.sum() for column in ("p", "y"))
            form = {"real": "{:,.1f}", "rare": "{:.2f} %"}.get(kind, "{:.1f} %")
            scale = 100.0 if kind != "real" else 1.0
            assert form.format(scale * predicted) in numbers
            assert form.format(scale * observed) in numbers
        seen += 1
    assert seen >= 3


@pytest.mark.parametrize("kind", ["events", "real", "quantile"])
def test_what_is_behind_a_verdict_is_plain_and_of_80_columns(kind: str) -> None:
    """Scores and errors before and after; of ranges only those whose interval leaves out 0."""
    more: dict[str, Any] = {"property": "quantile:0.7"} if kind == "quantile" else {}
    result = run(frame(kind), TaskConfig("y", "p", ("g",), against=("none",), seed=1, **more))
    lines = behind(result)
    text = "\n".join(lines)
    assert max(map(len, lines)) <= 80
    assert text.isascii()
    for side in (result.before, result.after):
        assert number(side.swap_error) in text
        assert precise(side.loss) in text
    assert lines[0].startswith("the mapping") or " frame: " in lines[0]
    shown = [line for line in lines if line.startswith("* ")]
    cells = [cell for cell in (*result.after.ranges, *result.after.worst) if cell.low > 0 or cell.high < 0]
    assert len(shown) == min(5, len(cells))


def test_losses_and_auc_are_those_of_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    rows = frame("events")
    text = " ".join(summary(audit(rows, TaskConfig("y", "p", ("g",)))))
    assert f"Brier score {np.mean((rows['p'] - rows['y']) ** 2):.4f}" in text
    assert f"log loss {metrics.log_loss(rows['y'], rows['p']):.4f}".rstrip("0") in text
    assert f"AUC {metrics.roc_auc_score(rows['y'], rows['p']):.3f}" in text


def test_results_print_and_give_a_frame() -> None:
    result = audit(frame("events"), TaskConfig("y", "p", ("g",)))
    assert str(result) == repr(result) == "\n".join(summary(result, fresh=False))
    assert str(result).splitlines()[0].startswith("BIASED  ")
    assert result._repr_html_().startswith("<pre>BIASED  ")
    table = result.frame
    assert list(table.columns[:2]) == ["group", "rows"]
    assert len(table) == 31
    told = table.set_index("group").loc["g=segment number 3"]
    own = frame("events").query("g == 'segment number 3'")
    assert told["predicted"] == pytest.approx(own["p"].mean())
    assert told["observed"] == pytest.approx(own["y"].mean())
    assert told["bias"] == pytest.approx(100 * (own["p"] - own["y"]).mean(), abs=1e-9)
    assert bool(told["off"])


@pytest.mark.parametrize("task", [audit, run])
def test_a_result_that_was_read_again_prints_the_same(task: Any) -> None:
    result = task(frame("events"), TaskConfig("y", "p", ("g",)))
    assert str(from_json(to_json(result))) == str(result)


def test_what_has_been_corrected_is_not_to_be_corrected_again() -> None:
    rows = frame("real").assign(g=lambda f: np.where(f.index > 3900, "new", "old"))
    rows.loc[rows["g"] == "new", "y"] *= 1.2 ** np.arange(99)
    result = run(rows, TaskConfig("y", "p", ("g",), interval=0.9, seed=1))
    assert result.verdict.kind == "BIASED"
    assert "swapcal run" not in "\n".join(summary(result))
    assert "corrected already" in " ".join(summary(result))

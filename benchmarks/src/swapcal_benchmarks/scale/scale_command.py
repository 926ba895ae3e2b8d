"""The command `swapcal bench scale`: measure, tell, and write docs/scale.md."""

import json
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from swapcal_benchmarks.report import Report
from swapcal_benchmarks.scale.cold_keys import ColdKeys, cold_keys
from swapcal_benchmarks.scale.key_costs import KeyCost, key_cost
from swapcal_benchmarks.scale.scale_page import scale_page
from swapcal_benchmarks.scale.spark_costs import SparkCost, spark_cost
from swapcal_benchmarks.scale.two_cores import ManyKeys, TwoCores, many_keys, two_cores

__all__ = ["measured", "scale_report"]

SIZES = ((10, 1000), (1000, 1000), (100_000, 1000))


def scale_report(*, quick: bool, spark: bool, out: Path | None) -> Report:
    """Measure everything; `quick` takes fewer keys and rows. What is in `out` is not measured again."""
    able = spark and find_spec("pyspark") is not None and shutil.which("java") is not None
    parts = measured(quick=quick)
    kept = {name: _kept(out, name, call) for name, call in parts.items() if able or not name.startswith("spark")}
    command = "swapcal bench scale" + (" --quick" if quick else "") + ("" if spark else " --no-spark") + " --docs docs"
    text = scale_page(
        [KeyCost(*kept[name]) for name in kept if name.startswith("keys")],
        [ColdKeys(*kept[name]) for name in kept if name.startswith("cold")],
        TwoCores(*kept["cores"]),
        [ManyKeys(*kept[name]) for name in kept if name.startswith("many")],
        [SparkCost(*kept[name]) for name in kept if name.startswith("spark")],
        command,
    )
    return Report(text, pages={"scale.md": text})


def measured(*, quick: bool) -> dict[str, Callable[[], Sequence[Any]]]:
    """What is measured, by name: about a minute of a processor each."""
    parts: dict[str, Callable[[], Sequence[Any]]] = {}
    for n, rows in SIZES:
        parts[f"keys {n}"] = partial(key_cost, n, rows, sampled=20 if quick else 50)
    for learning in (False, True):
        parts[f"cold {learning}"] = partial(cold_keys, 100, learning=learning, n_keys=70 if quick else 150)
    parts["cores"] = partial(two_cores, *((200, 500) if quick else (1000, 1000)), repetitions=1)
    for n, rows in ((100, 2000), (10_000, 20)) if quick else ((1000, 2000), (100_000, 20), (200_000, 20)):
        parts[f"many {n}"] = partial(many_keys, n, rows)
    parts["spark batch"] = partial(spark_cost, "batch", *((100, 100) if quick else (500, 1000)))
    # A loop over events takes long, so there are fewer of them.
    parts["spark stream"] = partial(spark_cost, "stream", *((100, 100) if quick else (200, 300)))
    return parts


def _kept(folder: Path | None, name: str, measure: Callable[[], Sequence[Any]]) -> Sequence[Any]:
    """What a measurement gave, now or before."""
    path = None if folder is None else folder / f"{name}.json"
    if path is not None and path.exists():
        found: Sequence[Any] = json.loads(path.read_text(encoding="utf-8"))
        return found
    found = measure()
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(list(found)), encoding="utf-8")
    return found

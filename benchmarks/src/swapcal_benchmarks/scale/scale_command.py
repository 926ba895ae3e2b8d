"""The command `swapcal bench scale`: measure, tell, and write docs/scale.md."""

import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from swapcal_benchmarks.scale.cold_keys import cold_keys
from swapcal_benchmarks.scale.key_costs import key_cost
from swapcal_benchmarks.scale.scale_page import scale_page
from swapcal_benchmarks.scale.spark_costs import spark_costs
from swapcal_benchmarks.scale.two_cores import two_cores

__all__ = ["show"]


def show(*, quick: bool, spark: bool, docs: Path | None, echo: Callable[[str], None]) -> None:
    """Measure everything and tell it; `quick` takes fewer keys and rows."""
    sizes = [(10, 1000), (1000, 1000), (100_000, 1000)]
    costs = [key_cost(n, rows, sampled=20 if quick else 100) for n, rows in sizes]
    cold = [cold_keys(100, learning=learning, n_keys=70 if quick else 150) for learning in (False, True)]
    cores = two_cores(200 if quick else 1000, 500 if quick else 1000, repetitions=1 if quick else 2)
    able = spark and find_spec("pyspark") is not None and shutil.which("java") is not None
    found = spark_costs(*((100, 100) if quick else (1000, 1000)), streamed=None if quick else 100) if able else []
    command = "swapcal bench scale" + (" --quick" if quick else "") + ("" if spark else " --no-spark") + " --docs docs"
    text = scale_page(costs, cold, cores, found, command)
    if docs is not None:
        docs.mkdir(parents=True, exist_ok=True)
        (docs / "scale.md").write_text(text, encoding="utf-8")
    echo(text)

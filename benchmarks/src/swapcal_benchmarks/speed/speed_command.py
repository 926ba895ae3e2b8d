"""The command `swapcal bench speed`: measure, show, write."""

import json as plain
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from swapcal.engine import kernels
from swapcal.errors import InvalidInput
from swapcal.version import __version__
from swapcal_benchmarks.speed import instructions, speed_tables
from swapcal_benchmarks.speed.sections import Section, chosen
from swapcal_benchmarks.speed.speed_page import page
from swapcal_benchmarks.speed.speed_sizes import FULL, QUICK
from swapcal_benchmarks.speed.target_row import TargetRow
from swapcal_benchmarks.speed.yardsticks import compiled

__all__ = ["speed"]


def speed(
    out: Path,
    *,
    only: str | None = None,
    quick: bool = False,
    docs: Path | None = None,
    json: bool = False,
    echo: Callable[[str], None],
) -> int:
    """Measure and write what came out; the exit code.

    0: every target that could be measured is met. 1: one is missed. 130: interrupted.
    """
    sections = chosen(only)
    if docs is not None and (only is not None or quick):
        raise InvalidInput("--docs needs all sections at full size; leave --only and --quick out")
    if kernels.native is None:
        raise InvalidInput("there is nothing to measure without the compiled kernels; see `swapcal.backend()`")
    if compiled is None:
        raise InvalidInput("the yardsticks are not compiled; reinstall the benchmarks where there is a C++ compiler")
    # Peers may hand small matrix products to threads; that would slow them down.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    sizes = QUICK if quick else FULL
    try:
        rows = _measured(sections, lambda section: section.measure(sizes))
    except KeyboardInterrupt:
        echo("interrupted; nothing was written")
        return 130
    about = _about(quick=quick)
    text = speed_tables.to_json(rows, about)
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / "speed.json").write_text(text, encoding="utf-8")
        if docs is not None:
            docs.mkdir(parents=True, exist_ok=True)
            (docs / "performance.md").write_text(page(rows, about), encoding="utf-8")
            if any(row.section == "instructions" and row.measured is not None for row in rows):
                counts = plain.dumps(instructions.counted(), indent=2)
                (docs / instructions.FILE).write_text(counts + "\n", encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"the results cannot be written: {error}") from error
    if json:
        echo(text.rstrip())
    else:
        console = Console()
        console.print(speed_tables.tables(rows))
        if quick:
            console.print("Targets are meant for the full size; leave --quick out before you judge.")
        console.print(f"Written to {out}: speed.json", highlight=False)
    return 1 if any(row.met is False for row in rows) else 0


def _measured(sections: tuple[Section, ...], answer: Callable[[Section], list[TargetRow]]) -> list[TargetRow]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    rows: list[TargetRow] = []
    with Progress(*columns, console=Console(stderr=True), transient=True, refresh_per_second=1) as progress:
        bar = progress.add_task("", total=sum(section.cost for section in sections))
        for section in sections:
            progress.update(bar, description=section.name)
            rows += answer(section)
            progress.advance(bar, section.cost)
    return rows


def _about(*, quick: bool) -> dict[str, Any]:
    """What a reader needs to judge the numbers."""
    return {
        "swapcal": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": platform.machine(),
        "system": sys.platform,
        "cores": os.cpu_count(),
        "quick": quick,
    }

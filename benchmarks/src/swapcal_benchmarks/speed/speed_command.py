"""The command `swapcal bench speed`: measure, show, write."""

import json as plain
import os
import platform
import sys
from typing import Any

import numpy as np

from swapcal.engine import kernels
from swapcal.errors import InvalidInput
from swapcal.version import __version__
from swapcal_benchmarks.report import Report, progress
from swapcal_benchmarks.speed import instructions, speed_tables
from swapcal_benchmarks.speed.sections import chosen
from swapcal_benchmarks.speed.speed_page import page
from swapcal_benchmarks.speed.speed_sizes import FULL, QUICK
from swapcal_benchmarks.speed.target_row import TargetRow
from swapcal_benchmarks.speed.yardsticks import compiled

__all__ = ["speed_report"]


def speed_report(*, only: str | None = None, quick: bool = False, pages: bool = False) -> Report:
    """Measure; with `pages`, make the page and count instructions for the file beside it."""
    sections = chosen(only)
    if pages and (only is not None or quick):
        raise InvalidInput("--docs needs all sections at full size; leave --only and --quick out")
    if kernels.native is None:
        raise InvalidInput("there is nothing to measure without the compiled kernels; see `swapcal.backend()`")
    if compiled is None:
        raise InvalidInput("the yardsticks are not compiled; reinstall the benchmarks where there is a C++ compiler")
    # Peers may hand small matrix products to threads; that would slow them down.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    rows: list[TargetRow] = []
    with progress("", sum(section.cost for section in sections)) as done:
        for section in sections:
            done(what=section.name)
            rows += section.measure(QUICK if quick else FULL)
            done(section.cost)
    about, met = _about(quick=quick), all(row.met is not False for row in rows)
    data = {"about": about, "met": met, "rows": [row.to_dict() for row in rows]}
    shown = [speed_tables.text(rows)]
    shown += ["Targets are meant for the full size; leave --quick out before you judge."] if quick else []
    written = {"performance.md": page(rows, about)} if pages else {}
    if pages and any(row.section == "instructions" and row.measured is not None for row in rows):
        written[instructions.FILE] = plain.dumps(instructions.counted(), indent=2) + "\n"
    return Report("\n\n".join(shown), data, written, {"speed.json": plain.dumps(data, indent=2) + "\n"}, met)


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

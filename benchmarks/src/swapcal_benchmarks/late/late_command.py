"""The command `swapcal bench delay`: replay streams with their delays, score, show."""

import time
from itertools import chain
from pathlib import Path

import numpy as np

from swapcal import simulate
from swapcal.forecaster import Forecaster
from swapcal.hints import OnlineRegression
from swapcal.hypotheses import Finite
from swapcal.properties import Mean
from swapcal.simulate import streams
from swapcal_benchmarks.delay.delay_page import late_page, late_tables, targets
from swapcal_benchmarks.delay.late_cases import recorded_cases, simulated_cases
from swapcal_benchmarks.delay.late_scores import measure_late
from swapcal_benchmarks.report import Report, progress

__all__ = ["delay_report", "slower"]

_TIMED = 50_000


def delay_report(directory: Path | None, *, seeds: int = 3, n_rounds: int = 20_000) -> Report:
    """Measure all cases."""
    recorded = iter(()) if directory is None else recorded_cases(directory)
    with progress("replaying") as done:
        rows = measure_late(
            chain(recorded, simulated_cases(n_rounds)),
            seeds=seeds,
            done=lambda case: done(1, what=f"{case.stream}, {case.delay}"),
        )
    ratios = slower(min(_TIMED, 5 * n_rounds))
    return Report(
        "\n\n".join(each.text() for each in (targets(rows, ratios), *late_tables(rows))),
        {"rows": [row.data() for row in rows], "ratios": ratios},
        {"delay.md": late_page(rows, ratios, "swapcal bench delay DIR --docs docs")},
    )


def slower(n_rounds: int, repeats: int = 5) -> dict[str, float]:
    """Processor time of `run(known=)` over that of `run` at once: the least of some turns each, taken in turn."""
    stream = simulate.miscalibrated(n_rounds, 1)
    known = {"at once": None, "100 rows": streams.fixed(n_rounds, 100), "1,000 rows": streams.fixed(n_rounds, 1000)}
    ratios: dict[str, float] = {}
    for name, learn in (("model as hint", False), ("learning", True)):
        best = dict.fromkeys(known, np.inf)
        for _ in range(repeats):
            for delay, each in known.items():
                hint = OnlineRegression() if learn else None
                forecaster = Forecaster(Mean(), Finite(stream.x.shape[1]), seed=1, hint=hint)
                begun = time.process_time()
                forecaster.run(stream.x, stream.y, stream.hint, known=each)
                best[delay] = min(best[delay], time.process_time() - begun)
        ratios |= {f"{name}, {delay}": best[delay] / best["at once"] for delay in known if delay != "at once"}
    return ratios

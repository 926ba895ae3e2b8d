"""The command `swapcal bench late`: replay streams with their delays, score, show."""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from swapcal import simulate
from swapcal.errors import InvalidInput
from swapcal.forecaster import Forecaster
from swapcal.hints import OnlineRegression
from swapcal.hypotheses import Finite
from swapcal.properties import Mean
from swapcal.simulate import streams as simulated
from swapcal_benchmarks.late.late_cache import LateCache
from swapcal_benchmarks.late.late_page import late_page, late_tables
from swapcal_benchmarks.late.late_rows import OURS, measure_rows
from swapcal_benchmarks.late.late_simulations import N_ROUNDS
from swapcal_benchmarks.late.late_streams import streams
from swapcal_benchmarks.late.late_targets import late_targets
from swapcal_benchmarks.report import Report, progress

__all__ = ["late_report", "slower"]

_TIMED = 50_000


def late_report(
    directory: Path | None,
    rows: Sequence[str] = (),
    *,
    before: Path | None = None,
    cache: Path | None = None,
    n_rounds: int = N_ROUNDS,
) -> Report:
    """Measure all streams whose label contains one of `rows`."""
    earlier = {} if before is None else _losses_of(before)
    with progress("replaying") as done:
        measured = measure_rows(
            streams(directory, rows, cache=cache, n_rounds=n_rounds),
            LateCache(cache),
            done=lambda stream: done(1, what=stream.label),
        )
        if not measured:
            raise InvalidInput(f"no stream has a label that contains {' or '.join(rows)}")
        done(what="timing")
        ratios = {} if rows else slower(min(_TIMED, 5 * n_rounds))
    targets = late_targets(measured, ratios)
    tables = late_tables(measured, targets, earlier)
    return Report(
        "\n\n".join(each.text() for each in tables),
        {"rows": [row.data() for row in measured], "ratios": ratios},
        {"late.md": late_page(measured, targets, earlier, "swapcal bench late DIR --docs docs")},
        met=all(target.met is not False for target in targets),
    )


def _losses_of(path: Path) -> Mapping[str, float]:
    """What an earlier run printed with --json: our loss by label."""
    try:
        data = json.loads(path.read_text())
        return {f"{row['stream']}, {row['delay']}": float(row["scores"][OURS]["loss"]) for row in data["rows"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"{path} must be what `swapcal bench late --json` printed: {error}") from error


def slower(n_rounds: int, repeats: int = 5) -> dict[str, float]:
    """Processor time of `run(known=)` over that of `run` at once: the least of some turns each, taken in turn."""
    stream = simulate.miscalibrated(n_rounds, 1)
    known = {"at once": None, "100 rows": simulated.fixed(n_rounds, 100), "1,000 rows": simulated.fixed(n_rounds, 1000)}
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

"""Runs whose forecasts are remembered to the last bit, and their figures: the command that plays and compares them.

`make bits` plays every run, those of the engine on both backends, and names those whose forecasts differ from
`digests.json` or whose figures differ from `figures.json`. After a change that is meant to move them,
`python tests/bits/runs.py --write` makes the files anew; the commit says why.
"""

import argparse
import hashlib
import json
import math
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import audit_runs
import command_runs
import compat_runs
import event_runs
import forecaster_runs
import late_runs
import model_runs
import service_runs
from plays import Played, Run, difference, rounded

DIGESTS, FIGURES = (Path(__file__).with_name(name) for name in ("digests.json", "figures.json"))
SUBJECTS = (
    forecaster_runs, late_runs, model_runs, event_runs, audit_runs, compat_runs, command_runs, service_runs,
)  # fmt: skip


def chosen(only: str, sample: int) -> list[Run]:
    """Every `sample`-th run of those with this text in their name."""
    every = [run for subject in SUBJECTS for run in subject.runs()]
    assert len({run.name for run in every}) == len(every)
    return [run for run in every if only in run.name][::sample]


def played(runs: list[Run], backend: str, slow: float | None) -> tuple[dict[str, str], dict[str, Any]]:
    """Digest of the forecasts of every run, and figures, by name; a run that fails is an error without `slow`."""
    from swapcal.engine import kernels

    digests, figures = {}, {}
    with kernels.using(backend):
        for run in runs:
            start = time.perf_counter()
            try:
                outcome = run.play()
            except Exception as error:
                if slow is None:
                    error.add_note(f"in the run {run.name!r}")
                    raise
                outcome = Played(figures=f"failed with {type(error).__name__}: {error}")
            if outcome.data:
                digests[run.name] = hashlib.sha256(outcome.data).hexdigest()[:16]
            if outcome.figures is not None:
                figures[run.name] = rounded(outcome.figures)
            taken = time.perf_counter() - start
            if slow is not None and taken > slow:
                sys.stdout.write(f"  {taken:.2f} s: {run.name}\n")
    return digests, figures


def write(path: Path, fresh: dict[str, Any], names: set[str], complete: bool) -> None:
    """Remember what came of these runs; of the others too, unless all were played."""
    kept = {} if complete else {name: each for name, each in json.loads(path.read_text()).items() if name not in names}
    path.write_text(spread({**kept, **fresh}, 3) + "\n")


def spread(data: Any, depth: int) -> str:
    """JSON text with a line for each entry of the uppermost tables."""
    if depth == 0 or not isinstance(data, dict) or not data:
        return json.dumps(data, sort_keys=True)
    return "{\n" + ",\n".join(f"{json.dumps(key)}: {spread(data[key], depth - 1)}" for key in sorted(data)) + "\n}"


def main() -> int:
    """Compare, or write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="remember what comes out today")
    parser.add_argument("--backend", choices=("native", "python"), help="only this one")
    parser.add_argument("--only", default="", help="runs with this text in their name")
    parser.add_argument("--sample", type=int, default=1, help="every so many-th run")
    parser.add_argument("--slow", type=float, default=math.inf, help="name runs that take more than so many seconds")
    asked = parser.parse_args()
    runs = chosen(asked.only, asked.sample)
    complete = not asked.only and asked.sample == 1
    if asked.write:
        for path, fresh in zip((DIGESTS, FIGURES), played(runs, "native", None), strict=True):
            write(path, fresh, {run.name for run in runs}, complete)
    digests, figures = (json.loads(path.read_text()) for path in (DIGESTS, FIGURES))
    n_wrong = 0
    for backend in ("native", "python") if asked.backend is None else (asked.backend,):
        here = [run for run in runs if run.both or backend == "native"]
        fresh_digests, fresh_figures = played(here, backend, asked.slow)
        names = {run.name for run in here} | (digests.keys() | figures.keys() if complete else set())
        names -= set() if backend == "native" else {run.name for run in runs if not run.both}
        different = {name: "" for name in names if fresh_digests.get(name) != digests.get(name)}
        for name in names:
            if (place := difference(fresh_figures.get(name), figures.get(name))) is not None:
                different[name] = f" ({place})"
        n_wrong += len(different)
        sys.stdout.write(f"{backend}: {len(names) - len(different)} of {len(names)} runs are as remembered\n")
        sys.stdout.writelines(f"  differs: {name}{different[name]}\n" for name in sorted(different)[:40])
    return int(n_wrong > 0)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    raise SystemExit(main())

"""Runs that are killed at every commit and resumed lose no row and repeat none: every task, in every format.

As a script (`python test_killed.py DIRECTORY TASK ENDING MODE`) it plays the kills and prints JSON: the exit codes of
all runs, and which cases ended with other files than a run that was left alone. Runs are forked from the script, so
that they start at once.
"""

import functools
import json
import os
import random
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from effort import ALL, crossed, part

KILLED = int(signal.SIGKILL)
N = 250
NUMBER = 'y = "y"\np = "p"\ngroups = "g"\nweight = "w"\nprefix = 80\nseed = 3\n'
CLASS = 'y = "c"\np = "a=pa,b=pb"\ngroups = "g"\nprefix = 80\nseed = 3\nclasses = true\n'
KNOWN = 'time = "t"\nknown = "k"\n'
TASKS = {
    "scalar": NUMBER + "learn = false\n",
    "scalar, known": NUMBER + KNOWN,
    "scalar, later": NUMBER + "later = true\n",
    "interval": NUMBER + "interval = 0.8\n",
    "interval, known": NUMBER + KNOWN + 'interval = 0.8\norder = "forecast"\n',
    "interval, later": NUMBER + "interval = 0.8\nlater = true\n",
    "classes": CLASS,
    "classes, known": CLASS + KNOWN + 'weight = "w"\n',
    "classes, later": CLASS + "later = true\n",
}
# At the pace of the command itself, by `make kills`.
LONG = {"scalar, learning": NUMBER, "scalar, by": NUMBER + 'by = "s"\n'}
QUICK = [("scalar", "csv", "steps"), ("scalar, known", "jsonl", "often"), ("scalar, later", "csv", "often")]
QUICK += [("interval, later", "jsonl", "often"), ("classes", "parquet", "often")]
SLOW = [("scalar", "csv", "random"), ("interval, known", "csv", "often"), ("classes, later", "csv", "often")]
SLOW += [(*case, "steps") for case in crossed(TASKS, ("csv", "jsonl", "parquet"))]


@pytest.mark.parametrize(
    ("task", "ending", "mode"), [*QUICK, *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)]
)
def test_a_run_that_is_killed_goes_on_bit_for_bit(tmp_path: Path, task: str, ending: str, mode: str) -> None:
    command = [sys.executable, __file__, str(tmp_path), task, ending, mode]
    places = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=places)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert not report["different"], done.stderr
    assert sum(codes.count(KILLED) for codes in report["codes"]) >= part(3, 2), report


def write_tables(root: Path, n: int = N) -> None:
    """A table with missing cells, values that come late and outcomes outside the first range; and it with more blanks.

    The second is the first three fifths, blank in every third outcome and in the last ones.
    """
    rng, late = random.Random(1), random.Random(2)
    lines = ["y,c,p,pa,pb,g,s,w,t,k"]
    for t in range(n):
        p, blank = rng.random(), rng.random() < 0.05
        y = "" if blank else f"{(1 if t < n // 2 else 2) * p * rng.random():.6f}"
        name = "" if blank else "a" if rng.random() < p else "b"
        hint = "" if rng.random() < 0.05 else f"{p:.6f}"
        group = f"late {t % 3}" if t > n // 2 else "ab"[t % 2]
        cells = (y, name, hint, f"{p:.4f}", f"{1 - p:.4f}", group, f"s{rng.randint(0, n // 80)}", rng.randint(0, 3))
        lines.append(",".join(map(str, (*cells, 10 * t, 10 * (t + late.randint(1, 60))))))
    (root / "in.csv").write_text("\n".join(lines) + "\n")
    head, *rows = lines
    rows = rows[: 3 * len(rows) // 5]
    blank_rows = [row if t % 3 and t < len(rows) - 20 else ",," + row.split(",", 2)[2] for t, row in enumerate(rows)]
    (root / "blanks.csv").write_text("\n".join([head, *blank_rows]) + "\n")


def whole_run(folder: Path, task: str, ending: str) -> None:
    """One run to its end, which leaves its result as JSON; or two, on a file with blanks and on what became of it."""
    mark = folder.parent / f"{folder.name}.first"
    if "later" in task and not mark.exists():
        one_run(folder, ending, "blanks.csv")
        mark.touch()
    one_run(folder, ending, "in.csv")


def one_run(folder: Path, ending: str, name: str) -> None:
    """The command on one file, of which every hundred rows are a batch and every batch is committed."""
    from typer.testing import CliRunner

    from swapcal.cli import app

    files = ["--out", str(folder / f"out.{ending}"), "--state", str(folder / "run.state")]
    asked = ["run", str(folder.parent / name), "--config", str(folder.parent / "run.toml"), *files, "--json"]
    outcome = CliRunner().invoke(app, asked)
    if outcome.exit_code:
        raise RuntimeError(outcome.output) from outcome.exception
    (folder / "result.json").write_text(outcome.stdout)


def forked(work: Callable[[], None], kill_after: float | None = None) -> int:
    """Do the work in a process of its own, perhaps killed after some seconds; its exit code, or `KILLED`."""
    child = os.fork()
    if not child:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else os.WTERMSIG(status)


def dying(work: Callable[[], None], step: int) -> Callable[[], None]:
    """The work, ended on the spot instead of the `step`-th call that changes names or makes bytes last."""
    left = [step]

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **named: Any) -> Any:
            left[0] -= 1
            if not left[0]:
                os._exit(KILLED)
            return call(*arguments, **named)

        return called

    def deadly() -> None:
        for name in ("fsync", "replace", "unlink", "rmdir", "mkdir"):
            setattr(os, name, counted(getattr(os, name)))
        work()

    return deadly


def leavings(folder: Path, ending: str) -> tuple[list[str], bytes, str]:
    """What a finished run leaves: names of files, forecasts, result."""
    names = sorted(item.name for item in folder.iterdir())
    told = (folder / "result.json").read_text().replace(str(folder), "")
    return names, (folder / f"out.{ending}").read_bytes(), told


def hurry() -> None:
    """Batches of a hundred rows, and a commit after each."""
    from swapcal.tables import records
    from swapcal.tasks import checkpoint

    checkpoint.COMMIT_SECONDS = checkpoint.COMMIT_SHARE = 0.0
    setattr(records, "read", functools.partial(records.read, batch_rows=100))  # noqa: B010


def play(root: Path, task: str, ending: str, mode: str) -> dict[str, Any]:
    """All runs of one mode: "steps" (killed once, at a step: each, or each fifth in `make test`), "often", "random".

    "often" is killed at each step of about twenty, "random" by SIGKILL at any moment.
    """
    hurry()
    write_tables(root)
    (root / "run.toml").write_text(TASKS[task])
    (root / "alone").mkdir()
    whole_run(root / "alone", task, ending)  # here, so that what is imported is there before the first fork
    started = time.monotonic()
    (root / "again").mkdir()
    assert forked(functools.partial(whole_run, root / "again", task, ending)) == 0
    seconds, expected = time.monotonic() - started, leavings(root / "alone", ending)
    report: dict[str, Any] = {"codes": [], "different": []}
    rng = random.Random(2)
    stride = 5 if mode == "steps" and not ALL else 1
    for case in range(1, {"steps": 100, "often": part(4, 3), "random": 20}[mode], stride):
        folder = root / f"case{case}"
        folder.mkdir()
        codes: list[int] = []
        while len(codes) < 40 and (not codes or codes[-1] == KILLED):
            if mode == "random":
                work = functools.partial(whole_run, folder, task, ending)
                codes.append(forked(work, 0.9 * rng.random() * seconds if len(codes) < 8 else None))
                continue
            work = functools.partial(whole_run, folder, task, ending)
            # More than the steps of one commit, or of putting parts together, so that every run gets further.
            step = case if mode == "steps" else (24 if ending == "parquet" else 17) + case
            codes.append(forked(work if mode == "steps" and codes else dying(work, step)))
        report["codes"].append(codes)
        if codes[-1] or leavings(folder, ending) != expected:
            report["different"].append(case)
        enough = mode == "random" and sum(map(len, report["codes"])) >= case + 4
        if enough or (mode == "steps" and codes == [0]):
            break
    return report


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.stdout.write(json.dumps(play(Path(sys.argv[1]), *sys.argv[2:])))

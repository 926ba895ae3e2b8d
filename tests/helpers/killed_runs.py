"""Runs that are killed and resumed, each in a process of its own; forked from this one, so that they start at once.

`python killed_runs.py DIRECTORY ENDING MODE [late | later]` prints JSON: the exit codes of all runs, and which cases
ended with other files than a run that was left alone. With "late", outcomes are known some rows later, by a column;
with "later", a first file has fewer rows and more blanks, and its outcomes are learned from the second.
"""

import json
import os
import random
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from effort import ALL
from swapcal.tables.records import read
from swapcal.tasks import checkpoint, scalar
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.result import to_json

KILLED = int(signal.SIGKILL)
QUESTION = TaskConfig("y", "p", groups=["g"], weight="w", prefix=80)
LATE = TaskConfig("y", "p", groups=["g"], weight="w", prefix=80, time="t", known="k")
LATER = TaskConfig("y", "p", groups=["g"], weight="w", prefix=80, later=True)


def write_table(path: Path, n: int) -> None:
    """A CSV with missing outcomes and hints, values that come late, and labels outside the range of the first ones."""
    rng, late = random.Random(1), random.Random(2)
    lines = ["y,p,g,w,t,k"]
    for t in range(n):
        p = rng.random()
        y = "" if rng.random() < 0.05 else f"{(1 if t < n // 2 else 2) * p * rng.random():.6f}"
        hint = "" if rng.random() < 0.05 else f"{p:.6f}"
        group = f"late {t % 3}" if t > n // 2 else "ab"[t % 2]
        lines.append(f"{y},{hint},{group},{rng.randint(0, 3)},{10 * t},{10 * (t + late.randint(1, 60))}")
    path.write_text("\n".join(lines) + "\n")


def write_blanks(path: Path, refilled: Path) -> None:
    """The first three fifths of a table, with more blanks in the outcome: every third row, and the last ones."""
    head, *lines = refilled.read_text().splitlines()
    kept = lines[: 3 * len(lines) // 5]
    blank = [line if t % 3 and t < len(kept) - 20 else "," + line.partition(",")[2] for t, line in enumerate(kept)]
    path.write_text("\n".join([head, *blank]) + "\n")


def whole_run(folder: Path, ending: str, question: TaskConfig = QUESTION) -> None:
    """One run to its end, which leaves its result as JSON; or two, on a file with blanks and on what became of it."""
    mark = folder.parent / f"{folder.name}.first"
    if question is LATER and not mark.exists():
        one_run(folder, ending, question, "blanks.csv")
        mark.touch()
    one_run(folder, ending, question, "in.csv")


def one_run(folder: Path, ending: str, question: TaskConfig, name: str) -> None:
    """A run on one file."""
    records = read(folder.parent / name, columns=question.columns, batch_rows=100)
    learn = question is not QUESTION
    result = scalar.run(
        records, question, learn=learn, out=folder / f"out.{ending}", state=folder / "run.state", seed=3
    )
    (folder / "result.json").write_text(to_json(result))


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
    calls = ("fsync", "replace", "unlink", "rmdir", "mkdir")

    def counted(call: Callable[..., Any], left: list[int]) -> Callable[..., Any]:
        def called(*arguments: Any, **named: Any) -> Any:
            left[0] -= 1
            if not left[0]:
                os._exit(KILLED)
            return call(*arguments, **named)

        return called

    def deadly() -> None:
        left = [step]
        for name in calls:
            setattr(os, name, counted(getattr(os, name), left))
        work()

    return deadly


def leavings(folder: Path, ending: str) -> tuple[list[str], bytes, str]:
    """What a finished run leaves: names of files, forecasts, result."""
    names = sorted(item.name for item in folder.iterdir())
    return names, (folder / f"out.{ending}").read_bytes(), (folder / "result.json").read_text()


def play(root: Path, ending: str, mode: str, question: TaskConfig = QUESTION) -> dict[str, Any]:
    """All runs of one mode: "steps" (killed once, at a step: each, or each fifth in `make test`), "often", "random".

    "often" is killed at each tenth step, "random" by SIGKILL at any moment.
    """
    # Every batch is committed, however short the run is.
    checkpoint.COMMIT_SECONDS = checkpoint.COMMIT_SHARE = 0.0
    write_table(root / "in.csv", 250)
    write_blanks(root / "blanks.csv", root / "in.csv")
    (root / "alone").mkdir()
    whole_run(root / "alone", ending, question)  # here, so that what is imported is there before the first fork
    started = time.monotonic()
    (root / "again").mkdir()
    assert forked(lambda: whole_run(root / "again", ending, question)) == 0
    seconds, expected = time.monotonic() - started, leavings(root / "alone", ending)
    report: dict[str, Any] = {"codes": [], "different": []}
    rng = random.Random(2)
    stride = 5 if mode == "steps" and not ALL else 1
    for case in range(1, {"steps": 100, "often": 4, "random": 20}[mode], stride):
        folder = root / f"case{case}"
        folder.mkdir()
        codes: list[int] = []
        while len(codes) < 40 and (not codes or codes[-1] == KILLED):
            work = lambda: whole_run(folder, ending, question)  # noqa: B023, E731 - called before the next case
            if mode == "random":
                codes.append(forked(work, 0.9 * rng.random() * seconds if len(codes) < 8 else None))
                continue
            steps = case if mode == "steps" else 9 + case
            codes.append(forked(work if mode == "steps" and codes else dying(work, steps)))
        report["codes"].append(codes)
        if codes[-1] or leavings(folder, ending) != expected:
            report["different"].append(case)
        enough = mode == "random" and sum(map(len, report["codes"])) >= case + 4
        if enough or (mode == "steps" and codes == [0]):
            break
    return report


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    asked = {"late": LATE, "later": LATER}.get("".join(sys.argv[4:]), QUESTION)
    sys.stdout.write(json.dumps(play(Path(sys.argv[1]), sys.argv[2], sys.argv[3], asked)))

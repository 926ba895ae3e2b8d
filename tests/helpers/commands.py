"""The command `swapcal` as people call it: in this process, or in one of its own."""

import os
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner
from typer.testing import Result as Outcome

from swapcal.cli import app
from swapcal.tasks import runner
from swapcal.tasks.config import TaskConfig

ASKED = ("--y", "y", "--hint", "p", "--groups", "g")


FIELDS = {each.name for each in fields(TaskConfig)}


def run(source: Any, config: TaskConfig, **options: Any) -> Any:
    """`runner.run` of a config in which some fields are other; of one number without a learning hint unless asked."""
    chosen = replace(config, **{name: options.pop(name) for name in list(options) if name in FIELDS})
    if chosen.learn is None and chosen.task == "scalar":
        chosen = replace(chosen, learn=False)
    return runner.run(source, chosen, **options)


def swapcal(*arguments: str | os.PathLike[str], stdin: bytes | None = None) -> Outcome:
    """The command in this process."""
    return CliRunner().invoke(app, [os.fspath(each) for each in arguments], input=stdin)


def refused(*arguments: str | os.PathLike[str], stdin: bytes | None = None, code: int = 2) -> str:
    """What the command says that ends with this code: one sentence, with a name for what is wrong."""
    outcome = swapcal(*arguments, stdin=stdin)
    assert outcome.exit_code == code, outcome.output
    assert "unforeseen" not in outcome.stderr
    assert "Traceback" not in outcome.output
    return str(outcome.stderr.strip().splitlines()[-1])


def process(*arguments: str | os.PathLike[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
    """The command in a process of its own."""
    command = [sys.executable, "-m", "swapcal.cli", *(os.fspath(each) for each in arguments)]
    return subprocess.run(command, capture_output=True, check=False, **options)


def lines_of(n: int, seed: int = 0) -> list[str]:
    """A table as lines of CSV, the names of the columns first; a longer one begins with the same lines."""
    p, g, w, u = (np.random.default_rng((seed, k)).random(n) for k in range(4))
    p, g, w = p.round(3), (3 * g).astype(int), 1 + (3 * w).astype(int)
    y = (u < np.clip(0.6 * p + 0.1 * (g == 1), 0, 1)).astype(int)
    rows = zip(y.tolist(), p.tolist(), (f"g{each}" for each in g), w.tolist(), strict=True)
    return ["y,p,g,w\n", *(",".join(map(str, row)) + "\n" for row in rows)]


def table(path: Path, n: int = 600, seed: int = 0) -> Path:
    """The same as a file."""
    path.write_text("".join(lines_of(n, seed)))
    return path

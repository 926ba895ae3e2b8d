"""Runs by key: every key is a forecaster alone with its rows, whatever the number of processes, also after a stop."""

import contextlib
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands import swapcal
from effort import ALL
from swapcal.errors import DataError, StateFileError
from swapcal.forecaster import Forecaster
from swapcal.keyed import forecaster_for_key, key_text
from swapcal.keyed.store import StateStore
from swapcal.tables.batch import Coded
from swapcal.tasks import by_key
from swapcal.tasks.by_key import KeyAssignment, run_by_key
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.runner import Stopped

N = 3000


def written(path: Path, n: int = N) -> dict[str, list[Any]]:
    rng = np.random.default_rng(0)
    table: dict[str, list[Any]] = {
        "store": [f"s{k}" for k in rng.zipf(1.5, n).clip(0, 15).tolist()],
        "late": (rng.random(n) < 0.4).astype(int).tolist(),
        "score": rng.random(n).round(3).tolist(),
        "sex": rng.choice(["f", "m"], n).tolist(),
        "w": rng.integers(0, 3, n).tolist(),
        "known": (np.arange(n) + rng.integers(1, 90, n)).tolist(),
    }
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))
    return table


QUESTION = TaskConfig("late", "score", ["sex"], low=0.0, high=1.0, by="store", seed=5, learn=False)


def read(path: Path) -> list[float]:
    with path.open() as file:
        return [float(row["forecast"]) for row in csv.DictReader(file)]


@pytest.mark.parametrize("late", [False, True])
def test_it_is_the_loop_over_keys_whatever_the_number_of_processes(tmp_path: Path, late: bool) -> None:
    """Also with weights, outcomes that are known late, and a learning hint."""
    n = 1200
    table = written(tmp_path / "rows.csv", n)
    question = replace(QUESTION, weight="w", known="known", learn=True) if late else QUESTION
    scored, outputs = sum(w > 0 for w in table["w"]) if late else n, []
    for processes in (1, 2):
        out, state = tmp_path / f"{processes}.csv", tmp_path / f"{processes}.db"
        result = run_by_key(tmp_path / "rows.csv", question, out=out, state=state, processes=processes, resident=3)
        outputs.append(read(out))
        assert (result.rows, result.keys, result.seed) == (n, len(set(table["store"])), 5)
        assert result.after.n_rounds == result.before.n_rounds == scored
    assert outputs[0] == outputs[1]
    begun = StateStore(tmp_path / "1.db").begun()
    template = Forecaster.from_bytes(bytes.fromhex(begun["models"]["template"]))  # type: ignore[index]
    assert (template.hint is not None, template.rules.max_pending) == (late, 4096 if late else 64)
    for key in ("s1", "s3"):
        rows = [t for t, store in enumerate(table["store"]) if store == key]
        y, hints = (np.array([table[name][t] for t in rows], dtype=float) for name in ("late", "score"))
        weights, known = (np.array([table[name][t] for t in rows], dtype=float) for name in ("w", "known"))
        more: dict[str, Any] = {"weights": weights / 2.0, "times": np.array(rows, dtype=float), "known": known - 1.0}
        own = forecaster_for_key(template, "key", key_text(key))
        x = {"sex": [table["sex"][t] for t in rows]}
        y = np.where(weights > 0, y, np.nan) if late else y
        alone = own.run(x, y, hints, **more, missing="skip") if late else own.run(x, y, hints)
        assert alone.tolist() == [outputs[0][t] for t in rows]


def test_it_goes_on_after_a_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "rows.csv")
    run_by_key(tmp_path / "rows.csv", QUESTION, out=tmp_path / "whole.csv", processes=2)
    monkeypatch.setattr(by_key, "TOGETHER", 500)
    out, state = tmp_path / "parts.csv", tmp_path / "run.db"
    asked = {"n": 0}

    def stop() -> bool:
        asked["n"] += 1
        return asked["n"] % 2 == 0

    settings: dict[str, Any] = {"out": out, "state": state, "stop": stop}
    result = None
    while result is None:
        with contextlib.suppress(Stopped):
            result = run_by_key(tmp_path / "rows.csv", QUESTION, processes=1 + asked["n"] // 2 % 2, **settings)
    assert asked["n"] > 2
    assert result.rows == N
    assert result.after.n_rounds == N
    assert read(out) == read(tmp_path / "whole.csv")
    with pytest.raises(StateFileError, match="other settings"):
        run_by_key(tmp_path / "rows.csv", TaskConfig("late", None, ["sex"], by="store"), state=state)


def test_keys_are_spread_evenly_in_every_part() -> None:
    owners = KeyAssignment(3)
    rng = np.random.default_rng(1)
    for start in (0, 20):
        names = tuple(str(k) for k in range(start, start + 40))
        codes = rng.choice(40, 10_000, p=rng.dirichlet(np.full(40, 2.0)))
        owner, fresh = owners.deal(Coded(codes, names))
        loads = np.bincount(owner[codes], minlength=3)
        assert loads.max() < 1.06 * loads.mean()
        assert len(fresh) == (40 if start == 0 else 20)
    assert len(owners) == 60


@pytest.mark.usefixtures("few_diagrams")
def test_the_page_and_the_json_of_all_keys(tmp_path: Path) -> None:
    written(tmp_path / "rows.csv")
    asked = ("run", tmp_path / "rows.csv", "--y", "late", "--p", "score", "--groups", "sex", "--by", "store")
    told = swapcal(*asked, "--processes", "1", "--seed", "1", "--json", "--report", tmp_path / "page.html")
    assert told.exit_code == 0, told.output
    result = json.loads(told.stdout)["result"]
    assert (result["kind"], result["counts"]["scored"], result["counts"]["keys"]) == ("run", N, 15)
    [section] = result["sections"]
    assert section["after"]["swap_error"] < section["before"]["swap_error"]
    assert "sex=f" in (tmp_path / "page.html").read_text()
    (tmp_path / "gap.csv").write_text("store,late\na,1\n,0\n")
    with pytest.raises(DataError, match=r"row 2 of .* has no key: 'store' is empty"):
        run_by_key(tmp_path / "gap.csv", TaskConfig("late", by="store"))


KILLED = """
import sys
from pathlib import Path
from swapcal.tasks import by_key
from test_by_key import QUESTION
by_key.TOGETHER = 200
if __name__ == "__main__":
    say = lambda rows: print(rows, flush=True)
    rows, out, state = map(Path, sys.argv[1:])
    by_key.run_by_key(rows, QUESTION, out=out, state=state, processes=2, pause=0.0, progress=say)
"""


def test_a_run_that_is_killed_goes_on_where_it_was_committed(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """In a process of its own, which commits whenever it can, and is killed at two places, or at four."""
    rows, script = tmp_path / "rows.csv", tmp_path / "killed.py"
    written(rows)
    script.write_text(KILLED)
    whole, out, state = tmp_path / "whole.csv", tmp_path / "out.csv", tmp_path / "state.db"
    run_by_key(rows, QUESTION, out=whole, processes=2)
    places = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    # Names of sockets are short, and pytest's folders are deep.
    scratch = Path(tempfile.mkdtemp())
    request.addfinalizer(lambda: shutil.rmtree(scratch))
    for stop in (*((400, 1200, 1800, 2400) if ALL else (800, 1800)), None):
        command = [sys.executable, str(script), str(rows), str(out), str(state)]
        around = {**os.environ, "PYTHONPATH": places, "TMPDIR": str(scratch)}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=around) as run:
            assert run.stdout is not None
            for line in run.stdout:
                if stop is not None and int(line) >= stop:
                    run.kill()
            assert (run.wait() == 0) == (stop is None)
    assert out.read_bytes() == whole.read_bytes()
    assert not [path for path in scratch.rglob("*") if path.suffix == ".db" or path.name.startswith("swapcal-")]


def test_many_keys_with_few_rows_are_visited_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that is not in memory costs as much as many rows: rows are gathered until keys have enough of them."""
    rng, asked, ask = np.random.default_rng(1), list[str](), by_key.WorkerPool.ask
    keys = rng.permutation(np.repeat(np.arange(300), 4)).tolist()
    lines = [f"u{k},{int(y)},{p:.2f}" for k, y, p in zip(keys, rng.random(1200) < 0.4, rng.random(1200), strict=True)]
    (tmp_path / "rows.csv").write_text("\n".join(["store,late,score", *lines]) + "\n")

    def counted(team: by_key.WorkerPool, what: str, arguments: Any) -> None:
        asked.append(what)
        ask(team, what, arguments)

    monkeypatch.setattr(by_key.WorkerPool, "ask", counted)
    monkeypatch.setattr(by_key, "TOGETHER", 100)
    question, outputs = replace(QUESTION, groups=(), protect="nothing"), []
    for most, visits in ((1 << 21, 1), (400, 3), (1, 12)):
        monkeypatch.setattr(by_key, "MOST", most)
        asked.clear()
        run_by_key(tmp_path / "rows.csv", question, out=tmp_path / f"{most}.csv", processes=1, resident=7)
        outputs.append(read(tmp_path / f"{most}.csv"))
        assert asked.count("play") == visits
    assert outputs[0] == outputs[1] == outputs[2]

"""`python kill_many.py SUBJECT N [SEED]`: N kills at random moments, at the default pace of commits.

SUBJECT csv, jsonl or parquet is `swapcal run` with such an output: the command itself in a process of its own, ended
with SIGKILL and started again until it is done; then its output must have the bytes of a run that was left alone, and
nothing else may be left over.

SUBJECT sqlite or postgres is `swapcal serve` on such a store, under load by four clients, ended with SIGKILL and
started again 20 times for each store; then every answer must be in the store, once, and a twin that plays the log
without a kill must come to the same forecasts and the same state, bit for bit.

Prints the counts after each that came to its end, and ends with 1 if anything was lost.
"""

import contextlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ASKED = ("--y", "y", "--hint", "p", "--groups", "g", "--weight", "w", "--seed", "3")
N_ROWS = 400_000
# Kills of a service on one store.
SERIES = 20


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


def start(folder: Path, ending: str) -> subprocess.Popen[bytes]:
    """The run, with its state and output in `folder`."""
    files = ("--out", str(folder / f"out.{ending}"), "--state", str(folder / "run.state"))
    command = [sys.executable, "-m", "swapcal.cli", "run", str(folder.parent / "in.csv"), *ASKED, *files]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def kill_services(where: str, wanted: int, seed: str) -> int:
    """Kill until there were enough; 0 if all was well."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))
    from postgres_running import database, postgres_running
    from service_killing import ORDERED, SPEC, check_store, killed

    kills = events = 0
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(postgres_running()) if where == "postgres" else ""
        for number in range(-(-wanted // SERIES)):
            folder, n = Path(stack.enter_context(tempfile.TemporaryDirectory())), min(SERIES, wanted - kills)
            store = database(server) if server else str(folder / "swapcal.db")
            spec = (SPEC, ORDERED)[number % 2]
            load = killed(folder, store, n, seed=random.Random(f"{where}{seed}{number}").randrange(2**32), spec=spec)
            try:
                events += check_store(store, load, spec)
            except AssertionError as lost:
                sys.stdout.write(f"{where}: after {kills + n} kills: {lost}\n")
                return 1
            kills += n
            sys.stdout.write(f"{where}: {kills} kills in {number + 1} stores, {events:,} events, all as their twins\n")
            sys.stdout.flush()
    return 0


def kill_runs(ending: str, wanted: int, seed: str) -> int:
    """Kill until there were enough; 0 if all was well."""
    rng = random.Random(ending + seed)
    with tempfile.TemporaryDirectory() as made:
        root = Path(made)
        write_table(root / "in.csv", N_ROWS)
        (root / "alone").mkdir()
        began = time.monotonic()
        assert start(root / "alone", ending).wait() == 0
        seconds, expected = time.monotonic() - began, (root / "alone" / f"out.{ending}").read_bytes()
        kills = cases = wrong = 0
        while kills < wanted:
            folder = root / f"case{cases}"
            folder.mkdir()
            code, patience_grows = -signal.SIGKILL, 1.0
            while code:
                running = start(folder, ending)
                # Around the first two commits of a start, which come a second apart; later ones get longer, so that
                # every case comes to its end on a busy machine too.
                patience = rng.uniform(0.3, 1.1) * min(seconds, 3.0) * patience_grows
                patience_grows *= 1.03
                try:
                    code = running.wait(patience)
                except subprocess.TimeoutExpired:
                    running.kill()
                    running.wait()
                    kills += 1
                    continue
                if code < 0:
                    kills += 1  # somebody else's kill is as good
                    continue
                if code:
                    assert running.stderr is not None
                    sys.stderr.write(running.stderr.read().decode())
                    break
            names = sorted(each.name for each in folder.iterdir())
            same = not code and (folder / f"out.{ending}").read_bytes() == expected
            wrong += not same or names != sorted([f"out.{ending}", "run.state"])
            cases += 1
            sys.stdout.write(f"{ending}: {kills} kills in {cases} runs of {N_ROWS:,} rows, {wrong} with a difference\n")
            sys.stdout.flush()
    return 1 if wrong else 0


def main(subject: str, wanted: str, seed: str = "") -> int:
    """What the command line says."""
    return (kill_services if subject in ("sqlite", "postgres") else kill_runs)(subject, int(wanted), seed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""`python kill_many.py SUBJECT N [SEED]`: N kills at random moments, at the default pace of commits.

SUBJECT csv, jsonl or parquet is `swapcal run` with such an output, and late, later, interval, classes and by are its
other forms: the command itself in a process of its own, ended with SIGKILL and started again until it is done; then its
output must have the bytes of a run that was left alone, and nothing else may be left over.

SUBJECT sqlite or postgres is `swapcal serve` on such a store, under load by four clients, ended with SIGKILL and
started again 20 times for each store; then every answer must be in the store, once, and a twin that plays the log
without a kill must come to the same forecasts and the same state, bit for bit.

SUBJECT spark is a stream of events over files, whose driver, JVM and workers are killed and started again on their
checkpoint until all is played; then every event must have its one row, with the forecast of a plain loop.

Prints the counts after each that came to its end, and ends with 1 if anything was lost.
"""

import contextlib
import importlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from swapcal.tasks.by_key import PAUSE

TESTS = Path(__file__).parent.parent / "tests"
sys.path[:0] = [str(TESTS / folder) for folder in ("helpers", "suites", "compat")]
# What is asked, by `TASKS` and `LONG` of test_killed.py, and the form of the output.
FORMS = {
    "csv": ("scalar, learning", "csv"),
    "jsonl": ("scalar, learning", "jsonl"),
    "parquet": ("scalar, learning", "parquet"),
    "late": ("scalar, known", "csv"),
    "later": ("scalar, later", "csv"),
    "interval": ("interval, known", "jsonl"),
    "classes": ("classes", "parquet"),
    "by": ("scalar, by", "csv"),
}
N_ROWS = 200_000
# Seconds between commits, where they are more than one.
PAUSES = {"by": PAUSE}
# Kills of a service on one store, and most kills of a stream.
SERIES, OF_A_STREAM = 20, 8


def kill_services(where: str, wanted: int, seed: str) -> int:
    """Kill until there were enough; 0 if all was well."""
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


def start(folder: Path, ending: str, name: str) -> subprocess.Popen[bytes]:
    """The run, with its state and output in `folder`."""
    files = ("--out", str(folder / f"out.{ending}"), "--state", str(folder / "run.state"))
    asked = (str(folder.parent / name), "--config", str(folder.parent / "run.toml"))
    command = [sys.executable, "-m", "swapcal.cli", "run", *asked, *files]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def kill_runs(form: str, wanted: int, seed: str) -> int:
    """Kill until there were enough; 0 if all was well."""
    known = importlib.import_module("test_killed")
    (task, ending), rng = FORMS[form], random.Random(form + seed)
    names = ("blanks.csv", "in.csv") if form == "later" else ("in.csv",)
    with tempfile.TemporaryDirectory() as made:
        root = Path(made)
        known.write_tables(root, N_ROWS)
        (root / "run.toml").write_text((known.TASKS | known.LONG)[task])
        (root / "alone").mkdir()
        began = time.monotonic()
        for name in names:
            assert start(root / "alone", ending, name).wait() == 0
        seconds = (time.monotonic() - began) / len(names)
        expected = (root / "alone" / f"out.{ending}").read_bytes()
        kills = cases = wrong = 0
        while kills < wanted:
            folder = root / f"case{cases}"
            folder.mkdir()
            # Around the first commits of a start; later ones get longer, so that every case comes to its end on a busy
            # machine too.
            patience_grows, left = 1.0, list(names)
            while left:
                running = start(folder, ending, left[0])
                patience = rng.uniform(0.3, 1.1) * min(seconds, 4.0 * PAUSES.get(form, 1.0)) * patience_grows
                patience_grows *= 1.05
                try:
                    code = running.wait(patience)
                except subprocess.TimeoutExpired:
                    running.kill()
                    code = running.wait()
                kills += code == -signal.SIGKILL
                if code > 0:
                    assert running.stderr is not None
                    sys.stderr.write(running.stderr.read().decode())
                    break
                del left[: code == 0]
            same = not left and (folder / f"out.{ending}").read_bytes() == expected
            wrong += not same or {each.name for each in folder.iterdir()} != {f"out.{ending}", "run.state"}
            cases += 1
            sys.stdout.write(f"{form}: {kills} kills in {cases} runs of {N_ROWS:,} rows, {wrong} with a difference\n")
            sys.stdout.flush()
    return 1 if wrong else 0


def kill_streams(wanted: int, seed: str) -> int:
    """Kill until there were enough; 0 if all was well."""
    test_spark = importlib.import_module("test_spark")
    rng, kills, streams = random.Random(seed), 0, 0
    while kills < wanted:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "events"
            test_spark.events(source, 12, seed=streams)
            own, done = 0, False
            while not done:
                commits = len(list((Path(folder) / "wild check" / "commits").glob("[0-9]*")))
                more = commits + rng.randint(1, 4) if own < OF_A_STREAM else 10**9
                done = not test_spark.killed(Path(folder), more, wait=rng.random() * 0.3)
                own += not done
            rows = test_spark.played(Path(folder) / "wild")
            forecasts = {row[1]: row[4] for row in rows if row[3] == "forecast"}
            n_events = sum(len(path.read_text().splitlines()) for path in source.iterdir())
            if len(rows) != n_events or forecasts != test_spark.expected(source):
                sys.stdout.write(f"spark: after {kills + own} kills: {len(rows)} rows of {n_events} events\n")
                return 1
        kills, streams = kills + own, streams + 1
        sys.stdout.write(f"spark: {kills} kills in {streams} streams, every event once, all as the loop\n")
        sys.stdout.flush()
    return 0


def main(subject: str, wanted: str, seed: str = "") -> int:
    """What the command line says."""
    if subject == "spark":
        return kill_streams(int(wanted), seed)
    return (kill_runs if subject in FORMS else kill_services)(subject, int(wanted), seed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

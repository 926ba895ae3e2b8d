"""A PostgreSQL of our own on the loopback, for as long as somebody needs it."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["MISSING", "database", "postgres_programs", "postgres_running"]

MISSING = "PostgreSQL is not installed: apt-get install postgresql"


def postgres_programs() -> Path | None:
    """The folder of its programs; None where it is not installed."""
    on_path = shutil.which("initdb")
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin")) or ([Path(on_path).parent] if on_path else [])
    return found[-1] if found else None


@contextmanager
def postgres_running() -> Iterator[str]:
    """The address of its first database."""
    programs = postgres_programs()
    assert programs is not None, MISSING
    # The server refuses to run as root, and its user may not enter pytest's folders.
    user = [] if os.geteuid() else ["runuser", "-u", "postgres", "--"]
    folder = Path(tempfile.mkdtemp(prefix="swapcal-postgres-"))
    if user:
        shutil.chown(folder, "postgres", "postgres")

    def run(*command: str) -> None:
        subprocess.run([*user, *command], check=True, capture_output=True, cwd="/")

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = folder / "data"
    try:
        run(str(programs / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C")
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=on"
        run(str(programs / "pg_ctl"), "-D", str(data), "-o", options, "-l", str(folder / "log"), "-w", "start")
        yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
        run(str(programs / "pg_ctl"), "-D", str(data), "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def database(server: str) -> str:
    """The address of a fresh database of the server."""
    import psycopg

    name = f"t{time.time_ns()}"
    with psycopg.connect(server, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}")
    return server.rsplit("/", 1)[0] + f"/{name}"

"""`python bad_requests.py N [SEED]`: N requests that are wrong in their bytes, paths, methods or bodies.

They go to a service as they are, one after the other. Each must be refused with a sentence, or be right after all; what
is refused must have changed nothing, in the store and in memory. Prints how many were answered how.
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))

from request_attack import attack


def main(n: str, seed: str = "1") -> None:
    """Attack in parts, each on a fresh store; an AssertionError shows the request that did harm."""
    left, done = int(n), 0
    total: dict[str, int] = {}
    while left:
        part = min(left, 10_000)
        with tempfile.TemporaryDirectory() as folder:
            for status, count in attack(Path(folder), part, int(seed) + done).items():
                total[status] = total.get(status, 0) + count
        left, done = left - part, done + part
        counted = ", ".join(f"{status}: {count:,}" for status, count in sorted(total.items()))
        sys.stdout.write(f"{done:,} requests: {counted}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])

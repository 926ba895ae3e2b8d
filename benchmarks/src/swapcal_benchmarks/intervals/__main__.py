"""The table: worst-group gap of coverage, width and interval score."""

import argparse
import sys
from pathlib import Path

import numpy as np

from swapcal.errors import MissingExtra
from swapcal.intervals import group_coverage, interval_score
from swapcal_benchmarks.intervals.interval_streams import STREAMS, recorded
from swapcal_benchmarks.intervals.methods import METHODS

_SMALLEST = 500


def main() -> None:
    """Print one row for each stream and method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--coverage", type=float, default=0.9)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--streams", default=",".join(STREAMS))
    parser.add_argument("--methods", default=",".join(METHODS), help="separated by ;")
    given = parser.parse_args()
    chosen = [name for name in METHODS if name in given.methods]
    print("| stream | method | coverage | worst gap | in group | width | interval score |")  # noqa: T201
    print("| --- | --- | ---: | ---: | --- | ---: | ---: |")  # noqa: T201
    for name in given.streams.split(","):
        stream = recorded(given.directory, name)
        for method in chosen:
            try:
                lower, upper = METHODS[method](stream, given.coverage, given.seed)
            except MissingExtra as error:
                print(error, file=sys.stderr)  # noqa: T201
                continue
            covered = (lower <= stream.y) & (stream.y <= upper)
            found = group_coverage(covered, stream.members, _SMALLEST)
            worst = max(found, key=lambda j: abs(found[j] - given.coverage))
            score = float(np.mean(interval_score(stream.y, lower, upper, given.coverage)))
            gap = abs(found[worst] - given.coverage)
            row = f"{name} | {method} | {covered.mean():.3f} | {gap:.3f} | {stream.names[worst]}"
            print(f"| {row} | {np.mean(upper - lower):.4g} | {score:.4g} |", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()

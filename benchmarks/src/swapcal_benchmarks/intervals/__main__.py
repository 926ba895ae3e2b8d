"""The table: worst-group gap of coverage, width and interval score."""

import argparse
import sys
from pathlib import Path

import numpy as np

from swapcal.errors import MissingExtra
from swapcal.intervals import group_coverage, interval_score
from swapcal_benchmarks.intervals.interval_streams import STREAMS, recorded
from swapcal_benchmarks.intervals.methods import METHODS
from swapcal_benchmarks.report import Table

_SMALLEST = 500


def main() -> None:
    """Print one row for each stream and method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--coverage", type=float, default=0.9)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--streams", default=",".join(STREAMS))
    parser.add_argument("--methods", default=",".join(METHODS), help="separated by ;")
    arguments = parser.parse_args()
    chosen = [name for name in METHODS if name in arguments.methods]
    rows = []
    for name in arguments.streams.split(","):
        stream = recorded(arguments.directory, name)
        for method in chosen:
            try:
                lower, upper = METHODS[method](stream, arguments.coverage, arguments.seed)
            except MissingExtra as error:
                print(error, file=sys.stderr)  # noqa: T201
                continue
            covered = (lower <= stream.y) & (stream.y <= upper)
            shares = group_coverage(covered, stream.members, _SMALLEST)
            worst = max(shares, key=lambda j: abs(shares[j] - arguments.coverage))
            score = float(np.mean(interval_score(stream.y, lower, upper, arguments.coverage)))
            gap = abs(shares[worst] - arguments.coverage)
            shown = f"{covered.mean():.3f}", f"{gap:.3f}", stream.names[worst], f"{np.mean(upper - lower):.4g}"
            rows.append((name, method, *shown, f"{score:.4g}"))
    header = ("stream", "method", "coverage", "worst gap", "in group", "width", "interval score")
    print(Table("", header, tuple(rows), align="llrrlrr").markdown())  # noqa: T201


if __name__ == "__main__":
    main()

"""`python -m swapcal_benchmarks.paper.against_far`: exponents of the error against an adversary."""

import sys

import numpy as np

import swapcal as sc
from swapcal.paper import Algorithm1
from swapcal.simulate.adversaries import Arena, Far, groups, play

__all__ = ["main", "measured"]

ROOTS = {1.0: (12, 17, 24, 34), 1.5: (7, 10, 13, 17), 2.0: (6, 8, 10, 12)}
"""T = n^(r+1), where the paper's number of bins needs no rounding."""

N_GROUPS, N_SEEDS = 5, 3


def measured(r: float, *, engine: bool) -> tuple[float, float]:
    """Slope of log SMCal_r against log T over all seeds, and the half-width of its 95 % interval (normal)."""
    logs = []
    for n in ROOTS[r]:
        horizon = round(n ** (r + 1.0))
        for seed in range(N_SEEDS):
            forecaster = (
                sc.Forecaster(sc.Mean(), sc.Finite(N_GROUPS), horizon=horizon, r=r, seed=seed)
                if engine
                else Algorithm1(sc.Mean(), N_GROUPS, horizon=horizon, r=r, seed=seed)
            )
            played = play(forecaster, Far(Arena(groups(N_GROUPS, seed=seed), seed=seed)), horizon)
            error = sc.swap_multicalibration_error(played.y, played.p, played.x, property=sc.Mean(), r=r)
            logs.append((np.log(horizon), np.log(max(error, 1e-9))))
    x, y = np.array(logs).T
    slope, level = np.polyfit(x, y, 1)
    rest = y - slope * x - level
    half = 1.96 * np.sqrt(rest @ rest / (len(x) - 2) / np.sum((x - x.mean()) ** 2))
    return float(slope), float(half)


def main() -> None:
    """Print a table."""
    lines = ["| r | paper | Algorithm 1 | engine |", "| --- | --- | --- | --- |"]
    for r in ROOTS:
        found = [measured(r, engine=engine) for engine in (False, True)]
        claim = 1.0 - r / 3.0 if r < 2.0 else 1.0 / (r + 1.0)
        lines.append(f"| {r:g} | {claim:.2f} | " + " | ".join(f"{a:.2f} ±{b:.2f}" for a, b in found) + " |")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

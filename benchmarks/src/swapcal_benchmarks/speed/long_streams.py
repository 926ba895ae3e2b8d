"""What a round costs in a long stream beside a short one."""

import math
from collections.abc import Callable

from swapcal.forecaster import Forecaster
from swapcal.hypotheses import Finite, Linear
from swapcal.properties import Mean
from swapcal.typing import Float64Array
from swapcal_benchmarks.speed import timed_streams
from swapcal_benchmarks.speed.ratio import Side, compare
from swapcal_benchmarks.speed.speed_sizes import SpeedSizes
from swapcal_benchmarks.speed.target_row import TargetRow

__all__ = ["measure"]

_SHORT_RUNS = 20
"""A short run is over at once; as many are timed together."""

_LONG_REPEATS = 3


def measure(sizes: SpeedSizes) -> list[TargetRow]:
    """Rounds of the long stream over rounds of the short one, with the horizon given and without."""
    rows = []
    for name, hypotheses, anytime in (
        ("Finite(20)", Finite(20), False),
        ("Linear(10)", Linear(10), False),
        ("Linear(10), without a horizon", Linear(10), True),
    ):
        X, y = timed_streams.dense(sizes.long, hypotheses.n)
        short = X[: sizes.short], y[: sizes.short]
        ratio = compare(
            _runs(hypotheses, X, y, 1, anytime=anytime),
            _runs(hypotheses, *short, _SHORT_RUNS, anytime=anytime),
            min(sizes.repeats, _LONG_REPEATS),
            scale=_SHORT_RUNS * sizes.short / sizes.long,
        )
        what = f"{name}, a round at T = {_power(sizes.long)}"
        against = f"a round at T = {_power(sizes.short)}"
        rows.append(ratio.row("growth", what, against, 1.1))
    return rows


def _runs(hypotheses: Finite | Linear, X: Float64Array, y: Float64Array, count: int, *, anytime: bool) -> Side:
    horizon = None if anytime else len(y)

    def ready() -> Callable[[], None]:
        forecasters = [Forecaster(Mean(), hypotheses, horizon=horizon, seed=k) for k in range(count)]

        def work() -> None:
            for forecaster in forecasters:
                forecaster.run(X, y)

        return work

    return ready


def _power(n: int) -> str:
    """The number, as a power of ten where it is one.

    Examples
    --------
    >>> _power(10_000_000), _power(500_000)
    ('10^7', '500,000')
    """
    exponent = round(math.log10(n))
    return f"10^{exponent}" if n == 10**exponent else f"{n:,}"

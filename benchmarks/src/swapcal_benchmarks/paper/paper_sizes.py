"""How much is measured: what fits into minutes, and what takes a night."""

from dataclasses import dataclass
from types import MappingProxyType

from swapcal.errors import InvalidInput

__all__ = ["DEFAULT", "FULL", "PaperSizes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperSizes:
    """The sizes of all measurements.

    Parameters
    ----------
    roots : mapping
        For r = 2, 3, 4 the whole numbers n whose horizons T = n^(r+1) are played; the runs of r = 2 also score r < 2.
    n_seeds : int
        Repetitions, 2 or more, as intervals come from them.
    watch_rounds : int
        T for Proposition 1.
    class_sizes : tuple of int
        |F|.
    class_rounds : int
        T for the growth with |F|; small, as there are 2 N |F| experts.
    densities : tuple of float
        rho.
    density_rounds : int
        T for the growth with rho.
    looks : tuple of int
        Numbers of rounds at which a learner's regret is looked at.
    """

    roots: MappingProxyType[float, tuple[int, ...]]
    n_seeds: int
    watch_rounds: int
    class_sizes: tuple[int, ...]
    class_rounds: int
    densities: tuple[float, ...]
    density_rounds: int
    looks: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.n_seeds < 2:
            raise InvalidInput(f"intervals come from seeds, so there must be 2 or more; got {self.n_seeds}")


DEFAULT = PaperSizes(
    roots=MappingProxyType({2.0: (5, 6, 8, 10, 13, 16), 3.0: (3, 4, 5, 6, 7, 8), 4.0: (3, 4, 5, 6)}),
    n_seeds=5,
    watch_rounds=512,
    class_sizes=(2, 8, 32, 128, 512, 4096),
    class_rounds=343,
    densities=(1.0, 2.0, 4.0, 8.0, 16.0),
    density_rounds=1000,
    looks=(64, 128, 256, 512, 1024, 2048),
)
"""T up to 7,776: minutes."""

FULL = PaperSizes(
    roots=MappingProxyType({2.0: (10, 16, 25, 40, 63, 100), 3.0: (6, 8, 11, 16, 22, 32), 4.0: (4, 5, 7, 9, 12, 16)}),
    n_seeds=3,
    watch_rounds=8000,
    class_sizes=(2, 8, 32, 128, 512, 4096),
    class_rounds=1000,
    densities=(1.0, 2.0, 4.0, 8.0, 16.0, 32.0),
    density_rounds=64_000,
    looks=(64, 256, 1024, 4096, 16_384, 65_536),
)
"""T up to a million: hours."""

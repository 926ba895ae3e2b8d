"""Whether the arrays in a state file can be the sums behind a report: checked before anything is built on them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from swapcal.audits.audit import check_possible
from swapcal.audits.sums import PER_CELL, PER_VALUE
from swapcal.errors import StateFileError, SwapcalError
from swapcal.state import part_of
from swapcal.tasks.kept_details import check_details
from swapcal.typing import Float64Array

Arrays = Mapping[str, Float64Array]


@contextmanager
def understood(state: object) -> Iterator[None]:
    """What goes wrong in here means that the state file holds something else than a run can have kept."""
    try:
        yield
    except SwapcalError:
        raise
    except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError) as error:
        raise StateFileError(
            f"the state file {state} is damaged: its parts do not fit together ({type(error).__name__}: {error}); "
            "give another --state, or --fresh to start over"
        ) from error


def check_kept(arrays: Arrays, fresh: Arrays, n_functions: int) -> None:
    """Raise a ValueError unless `arrays` can be what `fresh`, of a run that begins, has become.

    Parameters
    ----------
    arrays, fresh : mapping
        By name; a name's last part says what it is.
    n_functions : int
        No array of functions has more columns.
    """
    if arrays.keys() != {name for name in fresh if not _dropped(name, arrays)}:
        raise ValueError("arrays are missing, or there are others")
    for name, array in arrays.items():
        if array.ndim != fresh[name].ndim and not name.endswith(".noted"):
            raise ValueError(f"{name} has shape {array.shape}")
        if not name.endswith((".least", ".most", "clusters.id")) and not np.isfinite(array).all():
            raise ValueError(f"{name} is not finite")
    for name in arrays:
        if name.endswith(".binary"):
            side = name.removesuffix("binary")
            check_details(part_of(arrays, side), part_of(fresh, side), n_functions)
        elif name.endswith(".rounds"):
            _check_audit(part_of(arrays, name.removesuffix("rounds")), n_functions)
        elif name.endswith(".by_slot"):
            prefix = name.removesuffix("by_slot")
            _check_histograms(part_of(arrays, prefix), part_of(fresh, prefix), n_functions)
        elif name.endswith(".totals") or name.startswith("acted_"):
            if arrays[name].shape != fresh[name].shape or (arrays[name] < 0).any():
                raise ValueError(f"{name} holds {arrays[name]}")
        elif name.endswith("losses.sums"):
            _check_losses(arrays[name], arrays[name.removesuffix("sums") + "length"])
        elif name.endswith("history.noted"):
            _check_history(arrays[name], arrays[name.removesuffix("noted") + "due"])


def _dropped(name: str, arrays: Arrays) -> bool:
    """Whether a name is one of scores of 0/1 outcomes that a column no longer has, as it has seen another outcome."""
    side, _, rest = name.partition(".scores.")
    flags = arrays.get(f"{side}.binary", np.zeros(0))
    return bool(rest) and flags.shape == (2,) and not flags[1]


def _check_audit(sums: Arrays, n_functions: int) -> None:
    n_slots, width = sums["xv"].shape
    for name, array in sums.items():
        if array.shape != ((n_slots, width) if name in PER_CELL else (n_slots,)) or width > n_functions:
            raise ValueError(f"the sums {name} have shape {array.shape}")
    if "value" in sums and len(np.unique(sums["value"])) < n_slots:
        raise ValueError("a forecast value is repeated")
    check_possible({name: sums[name] for name in (*PER_VALUE, *PER_CELL)})


def _check_histograms(kept: Arrays, fresh: Arrays, n_functions: int) -> None:
    outcomes = {name: kept[f"outcomes.{name}"] for name in ("edges", "count", "total", "least", "most")}
    n = len(outcomes["edges"]) + 1
    n_bins, n_tracks, n_labels = kept["by_group"].shape
    shapes = [
        all(len(array) == n for name, array in outcomes.items() if name != "edges"),
        np.array_equal(outcomes["edges"], fresh["outcomes.edges"]),
        kept["forecasts"].shape == fresh["forecasts"].shape == (n_bins,),
        n_labels in (0, n) and kept["by_slot"].shape[1] in (0, n),
        len(kept["tracks"]) == len(kept["members"]) <= n_functions,
    ]
    tracks = kept["tracks"]
    given = tracks[tracks >= 0]
    sound = [
        all((kept[name] >= 0).all() for name in ("by_slot", "by_group", "forecasts", "members")),
        (tracks == np.floor(tracks)).all() and tracks.min(initial=0) >= -1,
        sorted(given.tolist()) == list(range(n_tracks)),
        (outcomes["count"] >= 0).all() and not np.isnan(outcomes["least"]).any(),
    ]
    if not all(shapes) or not all(sound):
        raise ValueError("the histograms contradict each other")


def _check_losses(sums: Float64Array, length: Float64Array) -> None:
    whole = length.shape == (1,) and 1 <= length[0] < 2**53 and float(length[0]).is_integer()
    if not whole or sums.shape[0] != 4 or sums.shape[1] > 1024 or (sums[:2] < 0).any() or (sums[0] > length[0]).any():
        raise ValueError("the blocks of losses contradict each other")


def _check_history(noted: Float64Array, due: Float64Array) -> None:
    shaped = len(noted) == 0 or (noted.ndim == 2 and noted.shape[1] == 4 and len(noted) < 10_000)
    if not shaped or due.shape != (1,) or not 1 <= due[0] < 2**63 or not float(due[0]).is_integer():
        raise ValueError("the history of errors contradicts itself")

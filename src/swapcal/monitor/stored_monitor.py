"""Monitors as plain data: written and read back with nothing but JSON types."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from swapcal.audit.functions import Functions
from swapcal.audit.stored import same, same_class
from swapcal.errors import InvalidInput, StateFileError
from swapcal.monitor.wagers import RATES
from swapcal.roles import Elicitable
from swapcal.typing import Float64Array

if TYPE_CHECKING:
    from swapcal.monitor.monitor import Monitor

__all__ = ["SCHEMA_VERSION", "dump", "undump"]

SCHEMA_VERSION = 1
KIND = "swapcal.monitor"
SETTINGS = ("tolerance", "alpha", "every", "cluster")
NOTHING = -1e300
"""Stands for the logarithm of 0, which JSON does not have."""


def dump(monitor: "Monitor", arrays: Mapping[str, Any], *, n_known: int, cluster_id: str | None) -> dict[str, Any]:
    """Plain data from which `undump` rebuilds a monitor."""
    return {
        "kind": KIND,
        "schema_version": SCHEMA_VERSION,
        "property": dict(monitor.property.spec()),
        "groups": dict(monitor.groups.spec()),
        **{name: getattr(monitor, name) for name in SETTINGS},
        "n_known": n_known,
        "cluster_id": cluster_id,
        "arrays": {name: np.maximum(array.astype(np.float64), NOTHING).tolist() for name, array in arrays.items()},
    }


def undump(
    data: Any, property: Elicitable, groups: Functions
) -> tuple[dict[str, Any], dict[str, Float64Array], int, str | None]:
    """Check stored data against the parts it is to be used with; settings, arrays, known groups, open cluster."""
    if not isinstance(data, Mapping) or data.get("kind") != KIND:
        raise StateFileError("this is not a stored monitor; give what Monitor.to_dict returned")
    if data.get("schema_version") != SCHEMA_VERSION:
        given = data.get("schema_version")
        raise StateFileError(f"stored monitors of version {SCHEMA_VERSION} can be read; this one has version {given!r}")
    if not same(data.get("property"), property.spec()):
        raise InvalidInput(f"the monitor was made for {data.get('property')!r}; got {dict(property.spec())!r}")
    if not same_class(data.get("groups") or {}, groups.spec()):
        raise InvalidInput(f"the monitor was made for other groups than {groups!r}; give those it had, as they were")
    n = groups.n
    shapes = {"log_wealth": (n, 2, len(RATES)), "turn": (n,), "rows": (n,), "sounded": (n, 2), "open": (4, n)}
    try:
        arrays = {name: np.asarray(data["arrays"][name], dtype=np.float64) for name in (*shapes, "counts")}
        for name, shape in {**shapes, "counts": (2,)}.items():
            if arrays[name].shape != shape or not np.isfinite(arrays[name]).all():
                raise ValueError(f"{name} is not {shape} finite numbers")
        if min(arrays[name].min() for name in ("turn", "rows", "counts")) < 0:
            raise ValueError("a count is negative")
        _check_possible(arrays)
        n_known = data["n_known"]
        if type(n_known) is not int or not 0 <= n_known <= n:
            raise ValueError(f"{n_known!r} of {n} groups were known")
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise StateFileError(f"this stored monitor is incomplete or damaged ({error}); store it again") from None
    arrays["log_wealth"] = np.where(arrays["log_wealth"] <= NOTHING, -np.inf, arrays["log_wealth"])
    cluster_id = data.get("cluster_id")
    settings = {name: data.get(name) for name in SETTINGS}
    return settings, arrays, n_known, None if cluster_id is None else str(cluster_id)


def _check_possible(arrays: Mapping[str, Float64Array]) -> None:
    """Refuse what no rows can have left: a bet wins 0.9 of its stake at most, and stakes are rows."""
    (n_rows, n_open), (total, size, rows, parts) = arrays["counts"], arrays["open"]
    largest = np.log1p(RATES.max()) * arrays["rows"] + np.log(n_rows + 2.0)
    for what, possible in (
        ("counts are whole numbers", np.equal(np.floor(arrays["counts"]), arrays["counts"])),
        ("counts can be counted", arrays["counts"] < 2.0**53),
        ("groups have rows of the stream", (np.floor(arrays["rows"]) == arrays["rows"]) & (arrays["rows"] <= n_rows)),
        ("an alarm has sounded or not", np.isin(arrays["sounded"], (0.0, 1.0))),
        ("bets win what they can", arrays["log_wealth"] <= largest[:, None, None] + 1e-6),
        ("stakes are rows", arrays["turn"] <= n_rows),
        ("the open cluster has its rows", (np.floor(rows) == rows) & (rows >= 0) & (rows <= n_open)),
        (
            "its sums fit its rows",
            (np.abs(total) <= size * (1 + 1e-9)) & (size >= 0) & (parts >= 0) & (parts <= n_open),
        ),
    ):
        if not np.all(possible):
            raise ValueError(f"it is not true of it that {what}")

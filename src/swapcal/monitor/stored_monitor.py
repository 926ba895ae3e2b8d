"""Monitors as plain data, with nothing but JSON types, and as bytes."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from swapcal import hypotheses, properties
from swapcal.audit.functions import Constant, Functions
from swapcal.audit.stored import same, same_class
from swapcal.errors import InvalidInput, StateFileError
from swapcal.monitor.wagers import RATES
from swapcal.packing import Layout, Shape, packed, unpacked
from swapcal.roles import Elicitable
from swapcal.typing import Float64Array

if TYPE_CHECKING:
    from swapcal.monitor.monitor import Monitor

__all__ = ["SCHEMA_VERSION", "Stored", "dump", "pack", "undump", "unpack"]

SCHEMA_VERSION = 1
KIND = "swapcal.monitor"
SETTINGS = ("tolerance", "alpha", "every", "cluster")
NOTHING = -1e300
"""Stands for the logarithm of 0, which JSON does not have."""


Stored = tuple[dict[str, Any], dict[str, Float64Array], int, str | None]
"""Settings, arrays, known groups, open cluster."""


def dump(monitor: "Monitor", arrays: Mapping[str, Any], *, n_known: int, cluster_id: str | None) -> dict[str, Any]:
    """Plain data from which `undump` rebuilds a monitor."""
    stored = {name: np.maximum(array.astype(np.float64), NOTHING).tolist() for name, array in arrays.items()}
    return {**_header(monitor, n_known, cluster_id), "arrays": stored}


def _header(monitor: "Monitor", n_known: int, cluster_id: str | None) -> dict[str, Any]:
    return {
        "kind": KIND,
        "schema_version": SCHEMA_VERSION,
        "property": dict(monitor.property.spec()),
        "groups": dict(monitor.groups.spec()),
        **{name: getattr(monitor, name) for name in SETTINGS},
        "n_known": n_known,
        "cluster_id": cluster_id,
    }


def pack(monitor: "Monitor", arrays: Mapping[str, Any], *, n_known: int, cluster_id: str | None) -> bytes:
    """Bytes from which `unpack` rebuilds a monitor."""
    stored = {name: np.maximum(array.astype(np.float64), NOTHING) for name, array in arrays.items()}
    header = _header(monitor, n_known, cluster_id) | {"n": int(arrays["rows"].shape[0])}
    return packed("monitor", json.dumps(header).encode(), [stored[name] for name in sorted(stored)])


def unpack(
    data: bytes, property: Elicitable | None, groups: Functions | None
) -> tuple[Stored, Elicitable, Functions | None]:
    """What `undump` gives, and the parts, as they were given or as they can be rebuilt."""
    header, words = unpacked("monitor", data)
    try:
        found = json.loads(header)
        n = found["n"]
        if type(n) is not int or not 0 <= n <= words.n:
            raise StateFileError(f"these bytes of a monitor are damaged: it has {n!r} groups")
        shapes = {name: Shape(shape) for name, shape in _shapes(n).items()}
        arrays = words.arrays(Layout.of({name: shapes[name] for name in sorted(shapes)}))
        made = properties.from_spec(found["property"]) if property is None else property
        spec = found["groups"]
        if groups is None and spec["kind"] != "constant":
            groups = hypotheses.from_spec(spec)
        elif groups is not None and hasattr(groups, "resumed"):
            groups = groups.resumed(spec)
    except StateFileError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise StateFileError(f"these bytes hold no monitor ({type(error).__name__}: {error})") from error
    return undump({**found, "arrays": arrays}, made, Constant() if groups is None else groups), made, groups


def _shapes(n: int) -> dict[str, tuple[int, ...]]:
    own: dict[str, tuple[int, ...]] = {"turn": (n,), "rows": (n,), "sounded": (n, 2), "open": (4, n), "counts": (2,)}
    return {"log_wealth": (n, 2, len(RATES)), **own}


def undump(data: Any, property: Elicitable, groups: Functions) -> Stored:
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
    shapes = _shapes(n)
    try:
        arrays = {name: np.asarray(data["arrays"][name], dtype=np.float64) for name in shapes}
        for name, shape in shapes.items():
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

"""Audits as plain data: written, compared and read back with nothing but JSON types."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from swapcal.audit.functions import Constant, Functions
from swapcal.audit.sums import PER_CELL, PER_VALUE, Sums
from swapcal.checked import shown
from swapcal.errors import InvalidInput, StateFileError
from swapcal.hypotheses import from_spec
from swapcal.roles import Elicitable
from swapcal.typing import Float64Array, Spec

__all__ = [
    "SCHEMA_VERSION",
    "Stored",
    "check_possible",
    "check_property",
    "chosen",
    "dump",
    "filled",
    "plain_bins",
    "same",
    "same_class",
    "undump",
]

SCHEMA_VERSION = 1
KIND = "swapcal.audit"


class Stored(NamedTuple):
    """What a stored audit holds."""

    functions: Functions | None
    sums: Sums
    bins: int | list[float] | None
    names: tuple[str, ...] | None


def same(one: Spec | None, two: Spec | None) -> bool:
    """Whether two specs are the same data; what JSON does to tuples makes no difference."""
    return _text(one) == _text(two)


def same_class(one: Spec, two: Spec, *, learned: bool = True) -> bool:
    """Whether two specs name the same functions; how a forecaster weighs them, and their names, make no difference.

    Without `learned`, groups may have found different values so far, and have room for more or fewer of them.
    """
    left_out = ("potential", "names") if learned else ("potential", "names", "vocabulary", "n", "limit")

    def functions(spec: Spec) -> Spec:
        return {key: value for key, value in spec.items() if key not in left_out}

    return isinstance(one, Mapping) and isinstance(two, Mapping) and same(functions(one), functions(two))


def plain_bins(bins: Any) -> Any:
    """A number of bins, or a list of their edges."""
    return bins.tolist() if isinstance(bins, np.ndarray) else bins


def dump(
    sums: Sums,
    property: Elicitable,
    functions: Functions | None,
    *,
    bins: Any,
    names: tuple[str, ...] | None,
) -> dict[str, Any]:
    """Plain data from which `undump` rebuilds the sums; distinct forecasts in increasing order."""
    arrays = sums.arrays()
    order = np.argsort(arrays["value"]) if "value" in arrays else slice(None)
    filled = {name: each if each.ndim == 1 else _filled(each, sums.n) for name, each in arrays.items()}
    return {
        "kind": KIND,
        "schema_version": SCHEMA_VERSION,
        "property": dict(property.spec()),
        "hypotheses": None if functions is None else dict(functions.spec()),
        "bins": plain_bins(bins),
        "names": None if names is None else list(names),
        "sums": {name: array[order].tolist() for name, array in filled.items()},
    }


def undump(data: Any, property: Elicitable, hypotheses: Functions | None) -> Stored:
    """Check stored data against the parts it is to be used with, and rebuild the sums."""
    if not isinstance(data, Mapping) or data.get("kind") != KIND:
        raise StateFileError("this is not a stored audit; give what Audit.to_dict returned")
    if data.get("schema_version") != SCHEMA_VERSION:
        given = data.get("schema_version")
        raise StateFileError(f"stored audits of version {SCHEMA_VERSION} can be read; this one has version {given!r}")
    check_property(data.get("property"), property)
    return filled(data, chosen(data.get("hypotheses"), hypotheses))


def check_property(spec: Any, property: Elicitable) -> None:
    """The property that was passed in is the one that was stored."""
    if not same(spec, property.spec()):
        raise InvalidInput(f"the audit was made for the property {spec!r}; got {dict(property.spec())!r}")


def filled(data: Mapping[str, Any], functions: Functions | None) -> Stored:
    """The sums, names and bins of stored data, checked against a class of functions."""
    names = data.get("names")
    n = 1 if functions is None else functions.n
    if names is not None and not (
        isinstance(names, list) and len(names) == n and all(isinstance(name, str) for name in names)
    ):
        raise StateFileError(f"this stored audit is damaged: its names are {shown(names)}, not {n} strings")
    try:
        sums = _sums(data["sums"], n, data.get("bins"))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise StateFileError(
            f"the sums of this stored audit are incomplete or damaged ({error}); store it again"
        ) from None
    return Stored(functions, sums, data.get("bins"), None if names is None else tuple(names))


def _text(spec: Spec | None) -> str:
    return json.dumps(dict(spec) if isinstance(spec, Mapping) else spec, sort_keys=True, default=repr)


def chosen(spec: Any, hypotheses: Functions | None) -> Functions | None:
    """The class that was passed in, if it is the one that was stored; or the stored one, if it can be rebuilt."""
    if hypotheses is not None:
        if spec is not None and not same_class(spec, hypotheses.spec()):
            raise InvalidInput(f"the audit was made with the hypotheses {spec!r}; got {dict(hypotheses.spec())!r}")
        return hypotheses
    if spec is None:
        return None
    if isinstance(spec, Mapping) and spec.get("kind") == "constant":
        return Constant()
    if not isinstance(spec, Mapping) or spec.get("kind") not in ("Finite", "Linear"):
        raise InvalidInput(f"the audit was made with the hypotheses {spec!r}; give them again as `hypotheses`")
    return from_spec(spec)


def _filled(array: Float64Array, n: int) -> Float64Array:
    """`array` with columns of zeros behind it, up to `n`."""
    filled = np.zeros((len(array), n))
    filled[:, : array.shape[1]] = array
    return filled


def _sums(stored: Any, n: int, bins: Any) -> Sums:
    edges = np.array(bins, dtype=np.float64) if isinstance(bins, list) else None
    sums = Sums(n, edges=edges)
    names = ("value", *PER_VALUE, *PER_CELL) if edges is None else (*PER_VALUE, "forecast", *PER_CELL)
    # Before there were weights, the rounds of a value were its weight.
    stored = {"rounds": stored["count"], **stored}
    n_slots = len(stored["value"]) if edges is None else len(edges) - 1
    arrays = {}
    for name in names:
        array = np.asarray(stored[name], dtype=np.float64)
        # JSON keeps no shape of a matrix without rows; columns behind the last one that is used may be left out.
        narrow = array.ndim == 2 and len(array) == n_slots and array.shape[1] <= n
        arrays[name] = array if narrow else array.reshape((n_slots, n) if name in PER_CELL else (n_slots,))
    _check_finite(arrays)
    if edges is None and (len(set(arrays["value"].tolist())) != n_slots or (arrays["rounds"] < 1).any()):
        raise ValueError("a forecast value is repeated or has no rounds")
    if (arrays["count"] < 0).any() or (arrays["count"] > arrays["rounds"]).any():
        raise ValueError("the weights of a forecast value are not those of its rounds")
    check_possible(arrays)
    sums.restore(arrays)
    return sums


def _check_finite(arrays: dict[str, Float64Array]) -> None:
    # NaN and infinities of either sign stay what they are in a sum, or become NaN: one look at all of them.
    with np.errstate(over="ignore", invalid="ignore"):
        total = sum(float(np.sum(array)) for array in arrays.values())
    if np.isfinite(total):
        return
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise ValueError(f"{name} is not finite")


def check_possible(arrays: dict[str, Float64Array]) -> None:
    """Refuse sums that no rounds can have: |V| and weights are at most 1, and a sum's square at most n sums of squares.

    All of it holds for functions with any values, as `weight` sums up |x|.
    """
    most, tiny = 1.0 + 1e-9, 1e-9
    with np.errstate(over="ignore", invalid="ignore"):
        rounds, count, v, vv = (arrays[name] for name in PER_VALUE)
        xv, active, weight, xvxv = (arrays[name] for name in PER_CELL)
        for what, possible in (
            ("rounds are whole numbers", (rounds == np.floor(rounds)) & (rounds >= 0) & (rounds < 2.0**53)),
            ("V is in [-1, 1]", (np.abs(v) <= most * count + tiny) & (vv >= 0) & (vv <= most * count + tiny)),
            ("sums fit their squares", v * v <= most * rounds * vv + tiny),
            (
                "functions are active in rounds",
                (active == np.floor(active)) & (active >= 0) & (active <= rounds[:, None]),
            ),
            ("functions fit their weight", (weight >= 0) & (np.abs(xv) <= most * weight + tiny) & (xvxv >= 0)),
            ("sums of functions fit their squares", xv * xv <= most * active * xvxv + tiny),
            ("nothing is where nothing was", (active > 0) | ((weight == 0) & (xv == 0) & (xvxv == 0))),
        ):
            if not possible.all():
                raise ValueError(f"it is not true of them that {what}")

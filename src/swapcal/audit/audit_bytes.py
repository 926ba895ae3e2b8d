"""Audits as bytes: the sums and what they are sums of, to be sent, added up and kept."""

import json
from typing import Any

import numpy as np

from swapcal import properties
from swapcal.audit.functions import Functions
from swapcal.audit.stored import Stored, check_property, chosen, filled, plain_bins
from swapcal.audit.sums import PER_CELL, PER_VALUE, Sums
from swapcal.errors import StateFileError
from swapcal.hypotheses import from_spec
from swapcal.packing import Layout, Shape, packed, unpacked
from swapcal.roles import Elicitable

__all__ = ["pack", "unpack"]


def pack(
    sums: Sums, property: Elicitable, functions: Functions | None, *, bins: Any, names: tuple[str, ...] | None
) -> bytes:
    """What `unpack` reads; distinct forecasts in increasing order, and no column behind the last that is used."""
    arrays = sums.arrays()
    order = np.argsort(arrays["value"]) if "value" in arrays else slice(None)
    n_used = sums.n_used
    header = {
        "property": dict(property.spec()),
        "hypotheses": None if functions is None else dict(functions.spec()),
        "bins": plain_bins(bins),
        "names": None if names is None else list(names),
        "size": [sums.n_slots, n_used],
    }
    stored = [
        arrays[name][order] if arrays[name].ndim == 1 else arrays[name][order, :n_used] for name in sorted(arrays)
    ]
    return packed("audit", json.dumps(header, separators=(",", ":")).encode(), stored)


def unpack(
    data: bytes, property: Elicitable | None, hypotheses: Functions | None
) -> tuple[Elicitable, Functions | None, Stored]:
    """The property, the class as it was given or as it can be rebuilt, and all else that an audit is."""
    header, words = unpacked("audit", data)
    try:
        found = json.loads(header)
        m, used = found["size"]
        if type(m) is not int or type(used) is not int or m < 0 or used < 0 or m * max(used, 1) > words.n:
            raise StateFileError(f"these bytes of an audit are damaged: it has {m!r} values and {used!r} functions")
        per_value = (*PER_VALUE, "forecast" if isinstance(found["bins"], list) else "value")
        shapes = {name: Shape((m,)) for name in per_value} | {name: Shape((m, used)) for name in PER_CELL}
        arrays = words.arrays(Layout.of({name: shapes[name] for name in sorted(shapes)}))
        spec = found["hypotheses"]
        if hypotheses is not None and hasattr(hypotheses, "resumed") and spec is not None:
            hypotheses = hypotheses.resumed(spec)
        # What is rebuilt from the bytes themselves is what they say, without a comparison.
        made = properties.from_spec(found["property"]) if property is None else property
        if property is not None:
            check_property(found["property"], property)
        if hypotheses is None and spec is not None and spec.get("kind") in ("Finite", "Groups", "Linear", "Numeric"):
            functions: Functions | None = from_spec(spec)
            hypotheses = functions if spec["kind"] in ("Groups", "Numeric") else None
        else:
            functions = chosen(spec, hypotheses)
        stored = filled({**found, "sums": arrays}, functions)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        if isinstance(error, ValueError) and type(error).__module__ == "swapcal.errors":
            raise
        raise StateFileError(f"these bytes hold no audit ({type(error).__name__}: {error})") from error
    return made, hypotheses, stored

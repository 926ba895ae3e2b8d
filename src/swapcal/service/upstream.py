"""Hints from a model server, where the client sends none. Its address comes from the configuration and nowhere else."""

from collections.abc import Collection, Sequence
from typing import Any

import httpx

from swapcal.service.config import Upstream
from swapcal.service.problems import Problem
from swapcal.service.schemas import Case

__all__ = ["fetch_hints"]


async def fetch_hints(
    http: httpx.AsyncClient, upstream: Upstream, cases: Sequence[Case], known: Collection[str]
) -> list[float | None]:
    """A hint for each new case that has none, in one call; None for the others and for those whose id is `known`.

    A `Problem` if the server gives none.
    """
    asked = [case for case in cases if case.hint is None and case.id not in known]
    if not asked:
        return [None] * len(cases)
    records = [_record(case, upstream.columns) for case in asked]
    body = {"dataframe_records": records} if upstream.kind == "mlflow" else _tensors(records)
    try:
        response = await http.post(upstream.url, json=body, timeout=upstream.timeout)
        response.raise_for_status()
        hints = _hints(response.json(), upstream)
    except (httpx.HTTPError, ValueError, KeyError, TypeError, IndexError) as error:
        raise Problem(
            502, f"the model server gave no hint ({type(error).__name__}); nothing was stored", retry_after=1
        ) from error
    if len(hints) != len(asked):
        raise Problem(502, f"the model server gave {len(hints)} hints for {len(asked)} cases; nothing was stored")
    rest = iter(hints)
    return [next(rest) if case.hint is None and case.id not in known else None for case in cases]


def _record(case: Case, columns: list[str] | None) -> dict[str, Any]:
    return dict(case.context) if columns is None else {name: case.context.get(name) for name in columns}


def _tensors(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Columns as the tensors of the Open Inference Protocol."""
    inputs = []
    for name in dict.fromkeys(name for record in records for name in record):
        data = [record.get(name) for record in records]
        numbers = [float(value) for value in data if isinstance(value, (int, float))]
        whole = len(numbers) == len(data)
        kind, column = (
            ("FP64", numbers) if whole else ("BYTES", ["" if value is None else str(value) for value in data])
        )
        inputs.append({"name": name, "shape": [len(data)], "datatype": kind, "data": column})
    return {"inputs": inputs}


def _hints(answer: Any, upstream: Upstream) -> list[float]:
    if upstream.kind == "mlflow":
        found = answer["predictions"]
        if upstream.output is not None:
            found = [one[upstream.output] for one in found]
    else:
        [found, *_] = [one["data"] for one in answer["outputs"] if upstream.output in (None, one["name"])]
    return [float(one[0] if isinstance(one, list) else one) for one in found]

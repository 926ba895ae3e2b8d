"""Faults that odd inputs once found, each kept as a test."""

import dataclasses
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import swapcal as sc
from fuzzing import N, finite, learning
from swapcal.state import pack


def update_with(**changes: Any) -> None:
    forecaster = finite()
    forecast = forecaster.predict([0.5] * N, 0.4)
    with pytest.raises(sc.SwapcalError):
        forecaster.update(sc.Forecast.from_dict({**forecast.to_dict(), **changes}), 0.5)


def forecast_by_hand() -> None:
    forecaster = finite()
    forecast = forecaster.predict([0.5] * N)
    entries: Any = ("x",) * N
    with pytest.raises(sc.SwapcalError):
        dataclasses.replace(forecast, context=entries)
    with pytest.raises(sc.SwapcalError):
        forecaster.update(dataclasses.replace(forecast, context=bytes(15) + b"x" * 17), 0.5)


def number_too_long_to_print() -> None:
    with pytest.raises(sc.SwapcalError):
        finite().update(10**5000, 0.5)  # type: ignore[arg-type]


def stored_audit(**changes: Any) -> None:
    audit = sc.Audit(n=2)
    audit.update(0.5, 0.5, [1.0, 0.0])
    saved = audit.to_state()
    with pytest.raises(sc.SwapcalError):
        sc.Audit.from_bytes(pack("audit", saved._replace(plain={**saved.plain, **changes})))


def pretended_sparse_rows() -> None:
    pretended = SimpleNamespace(indptr=[0, 1], indices=[0], data=[0.5], shape=(1,))
    with pytest.raises(sc.SwapcalError):
        sc.multicalibration_error([0.5], [0.5], pretended)


def cells_of_tiny_functions() -> None:
    audit = sc.Audit(n=1)
    audit.update(0.5, 0.25, [1e-310])
    assert len(audit.cells()) == 1


def regression_from_a_forged_file() -> None:
    saved = learning().to_state()
    for name, array in saved.arrays.items():
        if name.startswith("hint."):
            forged = {**saved.arrays, name: np.full_like(array, 1e308)}
            with pytest.raises(sc.StateFileError):
                sc.Forecaster.from_bytes(pack("forecaster", saved._replace(arrays=forged)))


MENDED: dict[str, Callable[[], None]] = {
    "grid.bin: a stored value that overflows": lambda: update_with(value=1e308),
    "grid.bin: a stored hint that overflows": lambda: update_with(hint=1e308),
    "forecaster.update: entries of a forecast made by hand": forecast_by_hand,
    "forecaster.update: repr of what was given": number_too_long_to_print,
    "audit.state: names that are no list": lambda: stored_audit(names=7),
    "audit.state: names of another number of functions": lambda: stored_audit(names=["a"]),
    "audit.state: a property that is no mapping": lambda: stored_audit(property=7),
    "audit.state: numbers that overflow": lambda: stored_audit(size=[10**400, 1]),
    "audit.columns: something that looks like sparse rows": pretended_sparse_rows,
    "audit.cells: a radius over a tiny weight": cells_of_tiny_functions,
    "hints.regression: forged arrays": regression_from_a_forged_file,
}


@pytest.mark.parametrize("name", MENDED)
def test_mended_faults(name: str) -> None:
    MENDED[name]()

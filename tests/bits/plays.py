"""What runs share: what a run is, made-up streams in any property's units, numbers rounded for people to read."""

import io
import math
import reprlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any, NamedTuple

import numpy as np

import swapcal as sc

N = 5
"""Functions of the classes."""

PROPERTIES: dict[str, Callable[[], Any]] = {
    "mean": sc.Mean,
    "mean of a range": lambda: sc.Mean(low=-50.0, high=1234.5),
    "probability": sc.Probability,
    "quantile": lambda: sc.Quantile(0.9, low=-3.0, high=5.0),
    "dense quantile": lambda: sc.Quantile(0.3, density=12.0),
    "expectile": lambda: sc.Expectile(0.8),
    "moment": lambda: sc.Moment(2, low=-1.0, high=2.0),
}


@dataclass(frozen=True, slots=True)
class Played:
    """What came of a run: bytes, of which a digest is remembered, and figures, which are remembered as they are."""

    data: bytes = b""
    figures: Any = None


class Run(NamedTuple):
    """A run: its name, which does not change, how it is played, and whether on both backends."""

    name: str
    play: Callable[[], Played]
    both: bool = True


Runs = Iterator[Run]


def streams(property: Any, n_rounds: int, seed: int) -> dict[str, Any]:
    """Contexts, labels and a biased model's forecasts, in the property's units."""
    rng = np.random.default_rng(seed)
    x = np.where(rng.random((n_rounds, N)) < 0.5, rng.integers(-2, 3, (n_rounds, N)) / 2.0, 0.0)
    x[:, 0] = 1.0
    share = np.clip(0.45 + 0.2 * x[:, 1] - 0.15 * x[:, 2], 0.02, 0.98)
    noise = rng.random(n_rounds)
    binary = isinstance(property, sc.Probability)
    unit = (noise < share).astype(float) if binary else np.clip(share + 0.3 * (noise - 0.5), 0.0, 1.0)
    low, high = property.domain
    return {
        "x": x,
        "y": np.clip(property.low + (property.high - property.low) * unit, property.low, property.high),
        "model": np.clip(low + (high - low) * (0.1 + 0.8 * share), low, high),
    }


def numbers(*values: Any) -> bytes:
    """Arrays, lists of numbers and numbers as bytes, the lengths of the arrays included."""
    arrays = [np.atleast_1d(np.asarray(value, dtype=np.float64)) for value in values]
    return b"".join(np.int64(array.size).tobytes() + np.ascontiguousarray(array).tobytes() for array in arrays)


def words(*texts: str) -> bytes:
    """Texts as bytes."""
    return "\n".join(texts).encode()


def reloaded(model: Any) -> Any:
    """What a file of a model holds."""
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    return type(model).load(file)


def rounded(value: Any) -> Any:
    """Plain data with numbers of 12 significant digits; what is not a number is null."""
    if is_dataclass(value) and not isinstance(value, type):
        return rounded(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): rounded(each) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        return rounded(value.tolist())
    if isinstance(value, (list, tuple)):
        return [rounded(each) for each in value]
    if isinstance(value, np.generic):
        return rounded(value.item())
    if isinstance(value, float):
        return float(f"{value:.12g}") if math.isfinite(value) else None
    return value


def difference(found: Any, remembered: Any, place: str = "") -> str | None:
    """Where two sets of figures first differ by more than sums in another order do; None where they do not."""
    if isinstance(found, dict) and isinstance(remembered, dict):
        if found.keys() != remembered.keys():
            return f"{place or 'top'}: keys {sorted(found.keys() ^ remembered.keys())}"
        pairs = [(key, found[key], remembered[key]) for key in remembered]
    elif isinstance(found, list) and isinstance(remembered, list):
        if len(found) != len(remembered):
            return f"{place}: {len(found)} entries, and {len(remembered)} remembered"
        pairs = [(str(k), a, b) for k, (a, b) in enumerate(zip(found, remembered, strict=True))]
    else:
        plain = (int, float)
        if isinstance(found, plain) and isinstance(remembered, plain):
            same = math.isclose(found, remembered, rel_tol=2e-11, abs_tol=1e-12)
        else:
            same = found == remembered
        return None if same else f"{place}: {reprlib.repr(found)}, and {reprlib.repr(remembered)} remembered"
    parts = (difference(a, b, f"{place}/{key}") for key, a, b in pairs)
    return next((part for part in parts if part is not None), None)

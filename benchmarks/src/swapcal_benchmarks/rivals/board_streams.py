"""Recorded streams whose truth is known: each gives contexts, labels, a frozen and imperfect model, and the truth."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from swapcal.errors import InvalidInput
from swapcal.protocols import Elicitable
from swapcal.rivals.card import kind_of
from swapcal.simulate import streams
from swapcal.typing import Float64Array
from swapcal_benchmarks.rivals import noise

__all__ = ["BINARY", "REAL", "Recorded", "record"]

BINARY = ("iid", "drifting", "abrupt", "interacting", "overconfident", "sparse")
"""For labels 0 and 1."""

REAL = ("iid", "drifting", "abrupt", "group-noise", "heavy-tailed", "sparse")
"""For labels in [0, 1]."""

_N_SPARSE = 40
_SHARE_SPARSE = 0.025
_N_REGIMES = 4


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """A stream; row t of every array is round t. `hint` and `truth` are None where nobody knows them."""

    x: Float64Array
    y: Float64Array
    hint: Float64Array | None
    truth: Float64Array | None


def record(name: str, property: Elicitable, n_rounds: int, seed: int, n_groups: int) -> Recorded:
    """The stream called `name`, for labels that fit the property; the same for the same arguments.

    iid: nothing changes. drifting, interacting, overconfident and group-noise: `swapcal.simulate.streams` (drifting,
    interacting, miscalibrated, noisy). abrupt: the groups' effects are drawn anew after each quarter. heavy-tailed: as
    iid, with noise of infinite variance before it is cut to the range. sparse: 40 groups, of which all but the first
    hold one case in 40.

    Examples
    --------
    >>> import swapcal as sc
    >>> stream = record("sparse", sc.Quantile(0.9), 4000, seed=0, n_groups=12)
    >>> stream.x.shape, round(float(np.mean(stream.y <= stream.truth)), 1)
    ((4000, 40), 0.9)
    """
    binary = kind_of(property) == "mean"
    if name not in (BINARY if binary else REAL):
        raise InvalidInput(
            f"there is no stream {name!r} for {property!r}; there are {', '.join(BINARY if binary else REAL)}"
        )
    if name == "drifting":
        return _synthetic(streams.drifting(n_rounds, seed, n_groups, binary=binary), property)
    if name == "interacting":
        return _synthetic(streams.interacting(n_rounds, seed, max(n_groups, 7)), property)
    if name == "overconfident":
        return _synthetic(streams.miscalibrated(n_rounds, seed, n_groups), property)
    if name == "group-noise":
        return _synthetic(streams.noisy(n_rounds, seed, n_groups), property)
    rng = np.random.default_rng([seed, len(name)])
    n = _N_SPARSE if name == "sparse" else n_groups
    x = (rng.random((n_rounds, n)) < (_SHARE_SPARSE if name == "sparse" else rng.uniform(0.1, 0.7, n))).astype(float)
    x[:, 0] = 1.0
    return _world(rng, x, property, binary, name)


def _synthetic(stream: streams.Stream, property: Elicitable) -> Recorded:
    kind, level = kind_of(property), float(property.spec().get("level", 0.5))
    if kind == "quantile":
        truth = stream.truth_quantile(level)
    else:
        truth = stream.truth_expectile(level) if kind == "expectile" else stream.truth_mean
    return Recorded(stream.x, stream.y, stream.hint, truth)


def _world(rng: np.random.Generator, x: Float64Array, property: Elicitable, binary: bool, name: str) -> Recorded:
    """Effects of groups and of one feature that only the model sees; the model halves and blurs the first regime's."""
    n_rounds: int = x.shape[0]
    n: int = x.shape[1]
    feature = rng.standard_normal(n_rounds)
    n_regimes = _N_REGIMES if name == "abrupt" else 1
    tilts = rng.normal(0.0, 1.2 if name == "sparse" else 0.6, (n_regimes, n))
    tilts[:, 0] = rng.normal(0.0, 0.3)
    regime = np.arange(n_rounds) * n_regimes // n_rounds
    share = x.mean(axis=0)
    # Without the centers the sum of the group effects would make the label rare under some seeds.
    centers = tilts @ share
    odds = 0.8 * feature + np.einsum("tj,tj->t", x, tilts[regime]) - centers[regime]
    known = 0.5 * tilts[0] + rng.normal(0.0, 0.2, n)
    guess = _sigmoid(1.2 * feature + x @ known - share @ known)
    if binary:
        truth = _sigmoid(odds)
        return Recorded(x, (rng.random(n_rounds) < truth).astype(float), guess, truth)
    law: Callable[[Float64Array], Float64Array] = noise.heavy if name == "heavy-tailed" else noise.triangular
    width = rng.normal(0.0, 0.6, n)
    scale = 0.05 + 0.25 * _sigmoid(x @ width - share @ width)
    mean = scale + (1.0 - 2.0 * scale) * _sigmoid(odds)
    y = mean + scale * law(rng.random(n_rounds))
    shift, typical = noise.unit(property, law), 0.15
    hint = np.clip(typical + (1.0 - 2.0 * typical) * guess + shift * typical, 0.0, 1.0)
    return Recorded(x, np.clip(y, 0.0, 1.0), hint, mean + shift * scale)


def _sigmoid(z: Float64Array) -> Float64Array:
    half: Float64Array = np.tanh(0.5 * z)
    return 0.5 + 0.5 * half

"""Streams that two backends play side by side, told by short recipes that hypothesis can shrink."""

import io
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse

import swapcal as sc
from instances import huber
from swapcal.engine import kernels, state, values
from swapcal.engine.round import PythonEngine
from swapcal.learners import GradientDescent, MultiplicativeWeights
from swapcal.potentials import AdaNormalHedge, Exponential, PNorm, Squint
from swapcal.protocols import Elicitable, Hypotheses
from swapcal.typing import Float64Array

Rng = np.random.Generator

N = 5

OWN = sc.Property(huber, lipschitz=12.0)

PROPERTIES: list[Elicitable] = [
    sc.Mean(), sc.Mean(low=-50.0, high=1234.5), sc.Moment(2, low=-1.0, high=2.0), sc.Moment(3),
    sc.Quantile(0.9, density=12.0), sc.Quantile(0.3, low=-3.0, high=0.1, density=12.0), sc.Median(), sc.Expectile(0.8),
    sc.Expectile(0.05, low=1e-9, high=3e-9), sc.Probability(), OWN,
]  # fmt: skip

CLASSES: dict[str, Callable[[], Hypotheses]] = {
    "AdaNormalHedge": lambda: sc.Finite(N, potential=AdaNormalHedge()),
    "Exponential": lambda: sc.Finite(N, potential=Exponential(n_rates=6)),
    "Squint": lambda: sc.Finite(N, potential=Squint()),
    "PNorm": lambda: sc.Finite(N, potential=PNorm()),
    "Linear": lambda: sc.Linear(N),
    "Linear, large radius": lambda: sc.Linear(N, radius=1e3),
    "Linear, small radius": lambda: sc.Linear(N, radius=1e-160),
    "GradientDescent": lambda: sc.Oracle(GradientDescent(N)),
    "MultiplicativeWeights": lambda: sc.Oracle(MultiplicativeWeights(N)),
    "Union": lambda: sc.Linear(N, radius=3.0) | sc.Finite(N) | sc.Linear(N),
    "Product": lambda: sc.Finite(N, potential=Exponential()) * sc.Linear(N, potential=Exponential()),
    "Union with a learner": lambda: sc.Finite(N) | sc.Oracle(GradientDescent(N)),
    "Groups": lambda: sc.Groups(["color", ("color", "size"), "size >= 2"], limit=9, rare=2),
    "Numeric": lambda: sc.Numeric(["size", "weight"]),
}


def _short(x: Any) -> Any:
    return x.astype(np.float32) if np.abs(x).max(initial=0.0) < 1e30 else x


def _positions(x: Any) -> Any:
    return np.flatnonzero(x), x[np.flatnonzero(x)]


def _same(x: Any) -> Any:
    return x


FORMS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "array": (_same, _same),
    "list": (np.ndarray.tolist, np.ndarray.tolist),
    "mapping": (lambda x: {j: v for j, v in enumerate(x.tolist()) if v}, scipy.sparse.csc_array),
    "pair": (_positions, scipy.sparse.csr_array),
    "csr": (lambda x: scipy.sparse.csr_array(x[None, :]), scipy.sparse.csr_array),
    "reversed pair": (lambda x: tuple(each[::-1] for each in _positions(x)), scipy.sparse.csc_array),
    "strided": (lambda x: np.repeat(x, 3)[::3], np.asfortranarray),
    "float32": (_short, _short),
}
"""Other words for a dense context, and for many."""


class Step(NamedTuple):
    """One thing that happens to both twins; `seed` makes the numbers."""

    kind: str
    seed: int
    form: str = "array"
    hint: str = "none"
    n_rounds: int = 1


@dataclass
class Game:
    """Settings of a forecaster."""

    property: Elicitable
    name: str
    options: dict[str, Any] = field(default_factory=dict)

    def twins(self) -> "list[Twin]":
        """The same forecaster on both backends: one is made, and both are read from its file."""
        made = sc.Forecaster(self.property, CLASSES[self.name](), seed=7, **self.options)
        return [Twin(self, backend, saved(made)) for backend in ("python", "native")]

    def contexts(self, rng: Rng, n_rows: int) -> Any:
        """Dense contexts, or records for a class that reads records."""
        if self.name in ("Groups", "Numeric"):
            colors, sizes = ["red", "green", "blue", None], [0.0, 1.0, 2.0, 3.5, None, 1e200, -7.0]
            drawn = zip(rng.choice(len(colors), n_rows), rng.choice(len(sizes), n_rows), strict=True)
            return [{"color": colors[c], "size": sizes[s], "weight": float(rng.normal())} for c, s in drawn]
        x = rng.uniform(-1.0, 1.0, (n_rows, N))
        plain = np.array([0.0, 1.0, -1.0, 0.5, -0.0, 5e-324, 1e-300, -1.0 / 3.0])
        x = np.where(rng.random((n_rows, N)) < 0.7, rng.choice(plain, (n_rows, N)), x)
        if self.name.startswith("Linear") or self.name == "GradientDescent":
            x *= rng.choice([1.0, 0.1, 3.0, 1e-170, 1e170, 1e-322, 1e300], (n_rows, 1), p=[0.4, *[0.1] * 6])
        return x

    def labels(self, rng: Rng, n_rows: int) -> Float64Array:
        low, high = self.property.low, self.property.high
        share = rng.beta(0.6, 0.9, n_rows)
        share = np.round(share) if isinstance(self.property, sc.Probability) else share
        return np.clip(low + (high - low) * share, low, high)

    def hints(self, rng: Rng, n_rows: int) -> Float64Array:
        low, high = self.property.domain
        share = np.where(rng.random(n_rows) < 0.2, rng.integers(0, 5, n_rows) / 4.0, rng.random(n_rows))
        return np.clip(low + (high - low) * share, low, high)

    def features(self, rng: Rng, n_rows: int) -> Float64Array | None:
        hint = self.options.get("hint")
        return rng.normal(size=(n_rows, hint.n_features)) if hint is not None and hint.n_features else None


def one_form(x: Any, form: str) -> Any:
    """A context said in another way; records stay as they are."""
    return x if isinstance(x, dict) else FORMS[form][0](x)


def many_forms(X: Any, form: str) -> Any:
    """Many contexts at once, said in another way; records as a table."""
    if isinstance(X, list):
        return {name: [x[name] for x in X] for name in X[0]} if form == "mapping" and X else X
    return FORMS[form][1](X)


class Twin:
    """A forecaster that stays on its backend, and the forecasts that wait for their outcomes."""

    def __init__(self, game: Game, backend: str, file: bytes) -> None:
        self.game, self.backend = game, backend
        self.waiting: list[sc.Forecast] = []
        own = game.property if isinstance(game.property, sc.Property) else None
        with kernels.using(backend), pytest.MonkeyPatch.context() as patch:
            for module in (state, values):
                patch.setattr(module, "ROOM", 12)  # one more than a stream starts with, so that it grows soon
            self.forecaster = sc.Forecaster.load(io.BytesIO(file), property=own)
        # Learners are played in Python alone.
        alone = backend == "python" or game.name in ("GradientDescent", "MultiplicativeWeights", "Union with a learner")
        assert isinstance(self.forecaster._engine, PythonEngine) == alone

    def play(self, step: Step) -> Any:
        """What comes of a step: numbers, or the name and the words of an error."""
        # NumPy speaks up where the squares of a linear class's context overflow; the kernels do not.
        with kernels.using(self.backend), np.errstate(over="ignore"):
            try:
                return getattr(self, step.kind)(step, np.random.default_rng(step.seed))
            except (sc.SwapcalError, UserWarning) as error:
                return type(error).__name__, str(error)

    def rounds(self, step: Step, rng: Rng) -> Any:
        """Forecasts one by one; most have their outcome at once, some wait."""
        x, y, features, hints = self._drawn(step, rng)
        made = []
        for t in range(step.n_rounds):
            hint = None if hints is None or math.isnan(hints[t]) else float(hints[t])
            extra = None if features is None else features[t]
            forecast = self.forecaster.predict(one_form(x[t], step.form), hint, features=extra)
            made.append(forecast)
            if rng.random() < 0.75:
                self.forecaster.update(forecast, float(y[t]))
            else:
                self.waiting.append(forecast)
        return made

    def run(self, step: Step, rng: Rng) -> Any:
        x, y, features, hints = self._drawn(step, rng)
        skip = step.hint == "some"
        # The first label is always there, so that a hint of the first round counts on both backends.
        y[1:][rng.random(len(y) - 1) < (0.3 if skip else 0.0)] = np.nan
        out = self.forecaster.run(
            many_forms(x, step.form), y, hints, features=features, missing="skip" if skip else "error"
        )
        return out.tobytes()

    def late(self, step: Step, rng: Rng) -> Any:
        """An outcome for a forecast that waits, or has had its outcome, or has expired."""
        if self.waiting:
            forecast = self.waiting[int(rng.integers(len(self.waiting)))]
            self.forecaster.update(forecast, float(self.game.labels(rng, 1)[0]))

    def look(self, step: Step, rng: Rng) -> Any:
        x, _, features, hints = self._drawn(step, rng)
        hint = None if hints is None else float(hints[0])
        extra = None if features is None else features[0]
        return self.forecaster.distribution(one_form(x[0], step.form), hint, features=extra)

    def _drawn(self, step: Step, rng: Rng) -> tuple[Any, Float64Array, Float64Array | None, Float64Array | None]:
        n = step.n_rounds
        x, y, features = self.game.contexts(rng, n), self.game.labels(rng, n), self.game.features(rng, n)
        hints = self.game.hints(rng, n)
        if step.hint == "some":
            hints[1:][rng.random(n - 1) < 0.5] = np.nan
        return x, y, features, None if step.hint == "none" else hints


def saved(forecaster: sc.Forecaster) -> bytes:
    file = io.BytesIO()
    forecaster.save(file)
    return file.getvalue()


def digest(forecaster: sc.Forecaster) -> dict[str, Any]:
    """All that a forecaster knows and says, to the last bit."""
    counters, arrays = forecaster.state.snapshot()
    if hasattr(forecaster.state.evidence, "weights"):
        # Not saved, as they follow from the sums; but what is played depends on them.
        arrays["weights"] = forecaster.state.evidence.weights[: forecaster.state.values.n]
    bits = {name: (array.shape, array.dtype.str, array.tobytes()) for name, array in arrays.items()}
    said: dict[str, Any] = {"pending": forecaster.n_pending, "class": forecaster.hypotheses.spec()}
    if forecaster.n_rounds:
        said |= {"error": forecaster.error(), "guarantee": forecaster.guarantee(), "words": repr(forecaster)}
    return counters | bits | said


def assert_twins(twins: list[Twin]) -> None:
    one, two = (digest(twin.forecaster) for twin in twins)
    assert one == two, [name for name in one if one[name] != two.get(name)]


GAMES = {
    "plain": (Game(sc.Mean(), "AdaNormalHedge", {"bins": 5, "levels": 3}), None, None),
    "hinted": (Game(sc.Quantile(0.7), "Squint", {"bins": 5, "levels": 3}), 0.4, None),
    "linear": (Game(sc.Mean(), "Linear", {"bins": 5}), 0.4, None),
    "learning": (Game(sc.Expectile(0.7), "PNorm", {"bins": 5, "levels": 3, "hint": sc.OnlineRegression()}), 0.4, None),
    "featured": (
        Game(sc.Mean(), "Exponential", {"bins": 5, "levels": 3, "hint": sc.OnlineRegression(n_features=2)}),
        None,
        np.array([0.5, -3.0]),
    ),
}


def told(twin: Twin, call: Callable[[sc.Forecaster], Any]) -> Any:
    """What comes of a call on a twin's backend: its result, or the name and the words of the error."""
    with kernels.using(twin.backend):
        try:
            return call(twin.forecaster)
        except sc.SwapcalError as error:
            return type(error).__name__, str(error)

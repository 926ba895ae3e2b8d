"""The rules of a forecaster: everything that is settled before the first round and never changes."""

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np

from swapcal import inputs
from swapcal.engine.arithmetic import mix64, uniform
from swapcal.engine.values import Grid
from swapcal.errors import InvalidInput
from swapcal.hypotheses import rows as level_sets
from swapcal.protocols import Elicitable, Hypotheses, LearningHint
from swapcal.typing import Float64Array


@dataclass(frozen=True, eq=False)
class Rules:
    """The arguments of a `Forecaster`, checked, and what follows from them; its docstring says what they mean."""

    property: Elicitable
    hypotheses: Hypotheses
    hint: LearningHint | None = None
    horizon: int | None = None
    r: float = 2.0
    bins: int | None = None
    seed: int = 0
    levels: int = 10
    trust: float = 0.25
    outside: str = "error"
    jitter: float = 0.0
    max_pending: int = 1 << 20
    stand_back: bool = True
    functions: Hypotheses = field(init=False)
    """The class with the level sets of the hint behind its own functions."""
    settled: dict[str, Any] = field(init=False, repr=False, default_factory=dict)
    """What an engine has worked out from the rules, whatever their seed is; shared with those of another seed."""

    def __post_init__(self) -> None:
        inputs.role(self.property, ("identification", "domain"), "property", "sc.Quantile(0.9)")
        inputs.role(self.hypotheses, ("start", "row", "n"), "hypotheses", "sc.Finite(20)")
        if self.hint is not None:
            inputs.role(self.hint, ("start",), "hint", "sc.OnlineRegression()")
        settled: dict[str, Any] = {
            "horizon": None if self.horizon is None else inputs.integer(self.horizon, "horizon", 1),
            "r": inputs.number(self.r, "r", 1.0, 100.0),
            "bins": None if self.bins is None else inputs.integer(self.bins, "bins", 1),
            "seed": inputs.integer(self.seed, "seed", 0),
            "levels": inputs.integer(self.levels, "levels", 0),
            "trust": inputs.number(self.trust, "trust", 0.0, 1.0),
            "outside": inputs.one_of(self.outside, "outside", ("error", "clip")),
            "jitter": inputs.number(self.jitter, "jitter", 0.0, self.property.high - self.property.low),
            "max_pending": inputs.integer(self.max_pending, "max_pending", 1),
            "stand_back": inputs.flag(self.stand_back, "stand_back"),
        }
        settled["functions"] = level_sets.joined(self.hypotheses, settled["levels"])
        for name, value in settled.items():
            object.__setattr__(self, name, value)

    def reseeded(self, seed: Any, hypotheses: Hypotheses | None = None) -> "Rules":
        """The same rules with another seed; their parts, which never change, are shared and not checked again.

        A class that learns belongs to one forecaster: `hypotheses` is a twin of it, made alike.
        """
        twin = object.__new__(Rules)
        own = self.hypotheses if hypotheses is None else hypotheses
        twin.__dict__.update(self.__dict__, seed=inputs.integer(seed, "seed", 0), hypotheses=own)
        return twin

    def settings(self) -> dict[str, Any]:
        """The plain ones, by name."""
        parts = ("property", "hypotheses", "hint", "functions", "settled")
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name not in parts}

    @cached_property
    def level_grid(self) -> Grid | None:
        """Where the level sets of the hint lie; None if there are none."""
        n_levels = self.functions.n - self.hypotheses.n
        return Grid(*self.property.domain, n_levels) if n_levels else None

    @cached_property
    def fixed(self) -> bool:
        """Whether the values that can be forecast were given, as a number of bins."""
        return self.bins is not None

    @cached_property
    def n_features(self) -> int:
        """Length of the learning hint's extra feature vector."""
        return 0 if self.hint is None else self.hint.n_features

    @cached_property
    def checks_ties(self) -> bool:
        """Whether labels that heap on a value would do harm."""
        return not self.property.continuous and self.jitter == 0.0

    def given(self, hint: Any, features: Any) -> tuple[float | None, Float64Array | None]:
        """The user's own forecast and the extra features of a round, checked."""
        return None if hint is None else self.hint_value(hint), inputs.features(features, self.n_features)

    def hint_values(self, hints: Float64Array) -> Float64Array:
        """Hints that are all finite, in the property's domain; of others, the error of the first."""
        low, high = self.property.domain
        for hint in hints[(hints < low) | (hints > high)][:1].tolist():
            self.hint_value(hint)
        return hints

    def hint_value(self, hint: Any) -> float:
        """A hint in the property's domain."""
        value = inputs.real(hint, "hint")
        low, high = self.property.domain
        if self.outside == "clip":
            return min(max(value, low), high)
        if not low <= value <= high:
            raise InvalidInput(
                f"hint {value:g} is outside [{low:g}, {high:g}]; pass outside='clip' to move it to the end"
            )
        return value

    def label(self, y: Any) -> float:
        """A label that the property allows."""
        return float(self.labels(inputs.real(y, "label")))

    def labels(self, labels: Any) -> Any:
        """Labels that the property allows."""
        if self.outside == "clip":
            labels = np.clip(labels, self.property.low, self.property.high)
        why = self.property.invalid_labels(labels)
        if why is not None:
            raise InvalidInput(f"{why}; set low= and high= of the property, or pass outside='clip' to move such labels")
        return labels

    def jittered(self, label: float, t: int) -> float:
        """The label moved by at most half the jitter, reflected at the ends so that no atom forms there."""
        if self.jitter == 0.0:
            return label
        moved = label + self.jitter * (uniform(mix64(self.seed), t) - 0.5)
        moved = max(moved, 2.0 * self.property.low - moved)
        return min(moved, 2.0 * self.property.high - moved)

"""What a rule is, how a broken one is reported, and what rules are tried on."""

import inspect
import io
import json
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, NoReturn, TypeVar

import numpy as np

from swapcal.errors import InvalidInput, StateFileError, SwapcalError
from swapcal.protocols import Row
from swapcal.typing import Float64Array, Spec

P = TypeVar("P")


class CheckFailed(AssertionError):
    """A part breaks a rule. The message says which rule, how it was broken, and why the rule exists.

    Attributes
    ----------
    rule : str
        Name of the rule, as `check_exceptions` would name it.
    """

    def __init__(self, message: str, *, rule: str) -> None:
        super().__init__(message)
        self.rule = rule


class _Broken(Exception):
    """How a rule was broken, on its way to the report."""


def expect(condition: Any, how: str) -> None:
    """Go on if `condition` holds; otherwise the rule is broken in the way that `how` tells."""
    if not condition:
        raise _Broken(how)


@dataclass(frozen=True)
class Rules(Generic[P]):
    """The rules of a role: the public methods of a class, in their order, about the part that it is made with.

    A method's docstring says the rule in one sentence and then why it exists. A part excuses itself from a rule with an
    attribute `check_exceptions`, a mapping from the rule's name to the reason.
    """

    part: P

    @classmethod
    def rules(cls) -> dict[str, Callable[[Any], None]]:
        """The rules by their names."""
        return {name: rule for name, rule in vars(cls).items() if inspect.isfunction(rule) and name[0] != "_"}

    def apply(self) -> None:
        """Apply them, and raise `CheckFailed` at the first one that is broken."""
        rules = self.rules()
        excused = _excused(self.part, set(rules))
        for name, rule in rules.items():
            if name in excused:
                continue
            try:
                rule(self)
            except _Broken as broken:
                _fail(rule, self.part, str(broken), None)
            except Exception as error:
                # Whatever a part raises where it should have worked is the part's failure, not the checker's.
                _fail(rule, self.part, f"it raised {type(error).__name__}: {error}", error)


def _fail(rule: Callable[..., None], part: object, how: str, cause: Exception | None) -> NoReturn:
    says, _, because = (inspect.getdoc(rule) or rule.__name__).partition("\n")
    reason = " ".join(because.split())
    raise CheckFailed(
        f"{part!r} breaks the rule {rule.__name__} ({says}): {how}. Why the rule exists: {reason}", rule=rule.__name__
    ) from cause


def _excused(part: object, known: set[str]) -> Mapping[str, str]:
    excused = getattr(part, "check_exceptions", {})
    if not isinstance(excused, Mapping):
        raise InvalidInput(f"check_exceptions must map names of rules to reasons; got {excused!r}")
    for name, reason in excused.items():
        if name not in known:
            raise InvalidInput(f"check_exceptions names {name!r}; the rules are {', '.join(sorted(known))}")
        if not isinstance(reason, str) or not reason.strip():
            raise InvalidInput(f"check_exceptions must give a reason, in words, for {name!r}; got {reason!r}")
    return excused


def members(role: type) -> tuple[str, ...]:
    """The names that a role of `swapcal.protocols` asks for."""
    return tuple(name for name in vars(role) if not name.startswith("_"))


def missing(part: object, role: type) -> list[str]:
    """Those of them that `part` has not."""
    return [name for name in members(role) if not hasattr(part, name)]


def expect_role(part: object, role: type, who: str = "it") -> None:
    """A part has every member of its role."""
    lacking = missing(part, role)
    expect(not lacking, f"{who} has no {', '.join(lacking)}")


def refuses(call: Callable[..., object], *arguments: Any, **options: Any) -> bool:
    """Whether a call is refused with a `SwapcalError`."""
    try:
        call(*arguments, **options)
    except SwapcalError:
        return True
    return False


def refusal(part: Any) -> Callable[..., None]:
    """What expects that calls are refused, each said in words before it, and leave the part as it is now."""
    before = snapshot(part)

    def expect_refused(what: str, call: Callable[..., object], *arguments: Any, **options: Any) -> None:
        expect(refuses(call, *arguments, **options), f"{what} was taken")
        expect(snapshot(part) == before, f"{what} was refused, and changed the state")

    return expect_refused


def expect_plain(spec: Spec, from_spec: Callable[[Spec], P] | None = None) -> P | None:
    """A spec is a mapping of JSON types with the class under "kind", and JSON gives it back unchanged.

    What `from_spec` makes of it, if it knows it, has the same spec, and is returned.
    """
    expect(isinstance(spec, Mapping), f"spec() gave {type(spec).__name__}, not a mapping")
    expect(isinstance(spec.get("kind"), str), 'spec() has no string under "kind"')
    text = json.dumps(dict(spec), allow_nan=False)
    expect(json.loads(text) == dict(spec), f"JSON changes spec(): {text}")
    try:
        again = None if from_spec is None else from_spec(json.loads(text))
    except StateFileError:
        return None
    rebuilt: Any = again
    expect(rebuilt is None or rebuilt.spec() == spec, f"the rebuilt one is {again!r}")
    return again


def expect_saved(part: Any, again: Any, answers: Callable[[Any], list[float]], learn: Callable[[Any], None]) -> None:
    """`restore` makes a fresh part go on from `arrays` to the last bit, and shares nothing with them.

    They are a dictionary of finite float64 arrays, as a state file holds them.
    """
    arrays = part.arrays()
    expect(isinstance(arrays, dict) and arrays, f"arrays() gave {type(arrays).__name__}, or nothing in it")
    for name, array in arrays.items():
        expect(isinstance(array, np.ndarray) and array.dtype == np.float64, f"arrays()[{name!r}] is not float64")
        expect(np.isfinite(array).all(), f"arrays()[{name!r}] is not finite")
    handed, before = {name: array.copy() for name, array in arrays.items()}, snapshot(part)
    again.restore(handed)
    expect(answers(again) == answers(part), "answers differ after restore")
    for each in (part, again):
        learn(each)
    expect(answers(again) == answers(part), "answers differ some rounds after restore")
    expect(snapshot(again) == snapshot(part), "the same rounds lead to another state")
    unchanged = {name: array.tobytes() for name, array in handed.items()} == before
    expect(unchanged, "learning changed the arrays that were restored from")


def expect_bound(bound: Callable[[int, float], float], low: float) -> None:
    """A bound, of rounds and delta, is finite and at least `low`, and grows with rounds and as delta gets smaller."""
    by_rounds = [bound(t, 0.05) for t in (1, 10, 100, 10_000, 1_000_000)]
    by_delta = [bound(10_000, delta) for delta in (1.0, 0.5, 0.05, 1e-9, 1e-200)]
    for name, values in (("rounds", by_rounds), ("1 / delta", by_delta)):
        expect(np.isfinite(values).all() and min(values) >= low, f"it is {values}")
        expect(np.diff(values).min() >= 0.0, f"it falls with {name}: {values}")


def sample_rows(n: int, n_rows: int, seed: int) -> list[Row]:
    """Contexts inside the unit ball, as rows: of full length, sparse, and one empty."""
    rng = np.random.default_rng(seed)
    rows = [Row(np.zeros(0, dtype=np.int64), np.zeros(0))]
    while len(rows) < n_rows:
        size = int(rng.integers(1, min(n, 6) + 1))
        indices = np.sort(rng.choice(n, size, replace=False)).astype(np.int64)
        values = rng.uniform(0.1, 1.0, size) * rng.choice([-1.0, 1.0], size)
        rows.append(Row(indices, values / max(1.0, float(np.linalg.norm(values)))))
    return rows


def dense(row: Row, n: int) -> Float64Array:
    """A row as a vector with its zeros."""
    x = np.zeros(n)
    x[row.indices] = row.values
    return x


class Trial(NamedTuple):
    """Rounds for a forecaster: contexts, labels and, where it takes them, hints and features for a learning hint.

    Parameters
    ----------
    contexts : array of shape (T, n)
        What `predict` is given.
    labels : array of shape (T,)
        The outcomes.
    hints : array of shape (T,), optional
        Somebody's own forecasts.
    features : array of shape (T, d), optional
        Inputs of a learning hint.

    Examples
    --------
    >>> trial = Trial(np.ones((2, 3)), np.array([0.0, 1.0]), hints=np.array([0.2, 0.7]))
    >>> trial.options(1)
    {'hint': 0.7}
    """

    contexts: Float64Array
    labels: Float64Array
    hints: Float64Array | None = None
    features: Float64Array | None = None

    def options(self, t: int) -> dict[str, Any]:
        """The further arguments of `predict` in round `t`."""
        hint = {} if self.hints is None else {"hint": float(self.hints[t])}
        return hint if self.features is None else hint | {"features": self.features[t].copy()}

    def predict(self, forecaster: Any, t: int) -> Any:
        """The forecast of round `t`."""
        return forecaster.predict(self.contexts[t].copy(), **self.options(t))

    def distribution(self, forecaster: Any, t: int) -> Any:
        """What that forecast would be drawn from."""
        return forecaster.distribution(self.contexts[t].copy(), **self.options(t))

    def play(self, forecaster: Any, start: int, stop: int) -> list[float]:
        """The loop: predict and update, round by round."""
        values = []
        for t in range(start, stop):
            forecast = self.predict(forecaster, t)
            forecaster.update(forecast, float(self.labels[t]))
            values.append(float(forecast))
        return values

    def run(self, forecaster: Any, start: int, stop: int) -> list[float]:
        """The same rounds in one call."""
        x, y, more = self.arrays(start, stop)
        return [float(value) for value in forecaster.run(x, y, **more)]

    def arrays(self, start: int, stop: int) -> tuple[Float64Array, Float64Array, dict[str, Float64Array]]:
        """What `run` is given for these rounds: contexts, labels, and its further arguments."""
        contexts, labels, *more = (None if each is None else each[start:stop] for each in self)
        named = {name: each for name, each in zip(("hints", "features"), more, strict=True) if each is not None}
        return contexts, labels, named  # type: ignore[return-value]


def default_stream(forecaster: Any, n_rounds: int, *, hinted: bool) -> Trial:
    """Contexts that are sparse and inside the unit ball, labels that depend on them, and hints that are biased.

    Their sizes come from `forecaster.hypotheses.n` (or `n_functions`), `forecaster.property` and `forecaster.hint`.
    """
    rng = np.random.default_rng(7)
    target = forecaster.property
    n = forecaster.hypotheses.n if hasattr(forecaster, "hypotheses") else forecaster.n_functions
    contexts = rng.uniform(-1.0, 1.0, (n_rounds, n)) * (rng.random((n_rounds, n)) < 0.6)
    contexts /= np.maximum(np.linalg.norm(contexts, axis=1, keepdims=True), 1.0)
    unit = np.clip(0.5 + 0.4 * contexts[:, 0] + 0.1 * rng.normal(size=n_rounds), 0.0, 1.0)
    # Inside the ends, where labels that were clipped would heap.
    labels = target.low + (target.high - target.low) * (0.02 + 0.96 * (0.7 * unit + 0.3 * rng.random(n_rounds)))
    if target.invalid_labels(labels) is not None:
        labels = np.where(rng.random(n_rounds) < unit, target.high, target.low)
    (low, high), k = target.domain, int(getattr(getattr(forecaster, "hint", None), "n_features", 0))
    hints = low + (high - low) * np.clip(unit + 0.2, 0.0, 1.0) if hinted else None
    return Trial(contexts, labels, hints, rng.normal(size=(n_rounds, k)) if k else None)


def saved(forecaster: Any) -> bytes:
    """What `save` writes."""
    buffer = io.BytesIO()
    forecaster.save(buffer)
    return buffer.getvalue()


def snapshot(part: Any) -> dict[str, bytes]:
    """What a part holds, to be compared with what it holds at another moment: what `save` writes, or its `arrays`.

    Of one that has neither, the attributes are pickled instead: they are compared and never read.
    """
    if hasattr(part, "save"):
        return {"file": saved(part)}
    if hasattr(part, "arrays"):
        return {name: array.tobytes() for name, array in part.arrays().items()}
    return {name: pickle.dumps(value) for name, value in vars(part).items()}

"""One of every thing that is saved, with some rounds for it: what the suites are played over."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import swapcal as sc
from swapcal.audits.column import Column
from swapcal.cases import Cases, Events
from swapcal.classes import Classes, PredictionSet
from swapcal.intervals import Interval, Quantiles
from swapcal.keyed import KeyBucket
from swapcal.learners import GradientDescent, MultiplicativeWeights
from swapcal.potentials import PNorm
from swapcal.service.spec import StreamSpec
from swapcal.service.stream import Stream
from swapcal.tasks.audit import mergeable_column
from swapcal.tasks.checkpoint import Checkpoint

ROUNDS = 240
RNG = np.random.default_rng(5)
X = (RNG.random((ROUNDS, 4)) < 0.4).astype(float)
Y = (RNG.random(ROUNDS) < 0.2 + 0.4 * X[:, 0]).astype(float)
HINTS = np.clip(0.3 + 0.2 * RNG.standard_normal(ROUNDS), 0.0, 1.0)
LAGS = RNG.integers(1, 30, ROUNDS)
ROWS: list[dict[str, Any]] = [
    {"a": f"v{int(x[0] + 2 * x[1])}", "b": int(x[2]), "z": float(h)} for x, h in zip(X, HINTS, strict=True)
]
SHARES = RNG.dirichlet([2.0, 1.0, 1.0], ROUNDS)
KINDS = RNG.integers(0, 3, ROUNDS)
NAN = float("nan")


class Thing(NamedTuple):
    """make: a fresh one. play: rounds `start` to `stop`, and what came of them. own: what no file holds."""

    make: Callable[[], Any]
    play: Callable[[Any, int, int], Any]
    own: Mapping[str, Any] = {}


def forecaster(target: Any, functions: Callable[[], Any], contexts: Any = X, **settings: Any) -> Thing:
    """A forecaster whose outcomes come late, in part."""

    def play(thing: sc.Forecaster, start: int, stop: int) -> Any:
        part = slice(start, stop)
        late = np.arange(stop - start) + LAGS[part]
        values = thing.run(contexts[part], Y[part], HINTS[part], known=late).tolist()
        asked = [thing.predict(contexts[t], hint=HINTS[t]) for t in range(start, start + 5)]
        for t in (3, 1):
            thing.update(asked[t], Y[start + t])
        return [*values, *map(float, asked)]

    return Thing(lambda: sc.Forecaster(target, functions(), seed=1, **settings), play)


def composite(make: Callable[[], Any], labels: Any, hints: Any, contexts: Any = X) -> Thing:
    def play(thing: Any, start: int, stop: int) -> Any:
        part = slice(start, stop)
        return np.asarray(thing.run(contexts[part], labels[part], None if hints is None else hints[part])).tolist()

    return Thing(make, play)


def _events(ids: list[int]) -> Events:
    """Cases, and outcomes of those of which every second waits for the next call."""
    cases = Events(ids, [NAN] * len(ids), X[ids], HINTS[ids])
    outcomes = ids[: len(ids) // 2]
    y = [*cases.y, *Y[outcomes]]
    return Events([*ids, *outcomes], y, X[ids], HINTS[ids])


def _play_cases(thing: Cases, start: int, stop: int) -> Any:
    answers = thing.play(_events(list(range(start, stop))))
    return np.nan_to_num(answers.forecast, nan=-1.0).tolist(), answers.status


def _same(events: Any, _: Any) -> Any:
    return events


def _play_bucket(thing: KeyBucket, start: int, stop: int) -> Any:
    out = []
    for key in ("Paris", 7):
        events = _events(list(range(start, stop)))
        n = len(events.ids)
        answers = thing.play(key, np.full(n, float(stop)), n, partial(_same, events))
        out.append((np.nan_to_num(answers.forecast, nan=-1.0).tolist(), answers.status))
    return out


class Bucket(KeyBucket):
    """Keys with their template, so that it can be made again without one."""

    def __init__(self) -> None:
        super().__init__(sc.Forecaster(sc.Probability(), sc.Finite(4), seed=1, max_pending=500), remember=20)

    @classmethod
    def from_bytes(cls, data: bytes, **own: Any) -> "Bucket":
        """The keys that were saved."""
        return super().from_bytes(data, bucket=cls())


def _play_steps(thing: Any, start: int, stop: int) -> Any:
    """Two steps ahead; some outcomes are known later, or come later, or never."""
    out = []
    for t in range(start, stop - 2):
        out += [forecast.lower for forecast in thing.predict(X[t : t + 2], HINTS[t : t + 2], [1.0, 0.5])]
        y = float(Y[t] + HINTS[t])
        thing.update(None if t % 7 == 3 else NAN if t % 7 == 5 else y, known=thing.time + 4 if t % 7 == 1 else None)
        if t % 7 == 6:
            out.append(thing.learn(thing.time - 1, y))
    return out, thing.waiting


def _steps(step: int, turn: int) -> Interval:
    return Interval(0.8, sc.Finite(4), seed=10 * step + turn)


def audit(contexts: Any = X, **settings: Any) -> Thing:
    def play(thing: sc.Audit, start: int, stop: int) -> Any:
        thing.update_many(Y[start:stop], np.round(HINTS[start:stop], 1), contexts[start:stop])
        return thing.n_rounds, thing.calibration(), thing.swap_multicalibration()

    return Thing(lambda: sc.Audit(sc.Probability(), **settings), play)


def monitor(**settings: Any) -> Thing:
    def play(thing: sc.Monitor, start: int, stop: int) -> Any:
        part, clusters = slice(start, stop), [t // 3 for t in range(start, stop)]
        alarms = thing.update_many(Y[part], HINTS[part], X[part], clusters=clusters if thing.cluster else None)
        return alarms, thing.n_rows, {side: each.tolist() for side, each in thing.evidence().items()}

    return Thing(lambda: sc.Monitor(sc.Probability(), sc.Finite(4), **settings), play)


def _play_column(thing: Column, start: int, stop: int) -> Any:
    rows = thing.functions.rows(ROWS[start:stop], stop - start)
    losses = thing.add(Y[start:stop], thing.audit.rounded(HINTS[start:stop]), rows)
    return losses.tolist(), thing.n_rounds, thing.swap_error(), thing.group_error(), thing.overall_error()


def stream(**settings: Any) -> Thing:
    """A stream of the service; every second outcome is learned, in another order."""
    spec = StreamSpec(groups=["a", ["a", "b"]], seed=1, **settings)

    def play(thing: Stream, start: int, stop: int) -> Any:
        made = thing.predict([thing.validate(ROWS[t], float(HINTS[t])) for t in range(start, stop)])
        for k in reversed(range(0, stop - start, 2)):
            thing.learn(made[k], float(HINTS[start + k]), float(Y[start + k]))
        return [(one.value, one.other, one.probability, one.context) for one in made], thing.status()

    return Thing(lambda: Stream("s", spec), play, {"name": "s", "spec": spec})


def _play_checkpoint(thing: Checkpoint, start: int, stop: int) -> Any:
    thing.arrays["sums"][start % 7] += float(stop)
    return thing.rows, thing.arrays["sums"].tolist()


def _is_old(row: Mapping[str, Any]) -> bool:
    return bool(row["z"] > 0.4)


def _v(p: Any, y: Any) -> Any:
    return p - y


OWN_GROUPS = sc.Groups(["a", ("old", _is_old)], limit=12)
OWN_PROPERTY = sc.Property(_v, low=0.0, high=1.0, name="mine")
LATE = {"max_pending": 64}

FORECASTERS = {
    "finite": forecaster(sc.Probability(), lambda: sc.Finite(4), **LATE),
    "named": forecaster(sc.Mean(), lambda: sc.Finite(4), identity="store 7", protect="nothing"),
    "learning": forecaster(sc.Quantile(0.7), lambda: sc.Linear(4), hint=sc.OnlineRegression(), jitter=0.1),
    "bins": forecaster(sc.Mean(), lambda: sc.Finite(4, potential=PNorm()), bins=20),
    "groups": forecaster(sc.Expectile(0.8), lambda: sc.Groups(["a", ("a", "b"), "z > 0.5"], limit=30), ROWS),
    "numeric": forecaster(sc.Mean(), lambda: sc.Numeric(["z"]), ROWS),
    "gradients": forecaster(sc.Mean(), lambda: sc.Oracle(GradientDescent(4))),
    "weights": forecaster(sc.Mean(), lambda: sc.Oracle(MultiplicativeWeights(4))),
    "own groups": forecaster(sc.Mean(), lambda: OWN_GROUPS.resumed(OWN_GROUPS.spec()), ROWS)._replace(
        own={"hypotheses": OWN_GROUPS}
    ),
    "own property": forecaster(OWN_PROPERTY, lambda: sc.Finite(4))._replace(own={"property": OWN_PROPERTY}),
}
MODELS = FORECASTERS | {
    "quantiles": composite(lambda: Quantiles([0.1, 0.5, 0.8], sc.Finite(4), seed=1), Y + HINTS, HINTS),
    "interval": composite(lambda: Interval(0.9, sc.Groups(["a"]), seed=1), Y + HINTS, HINTS, ROWS),
    "classes": composite(lambda: Classes(3, sc.Finite(4), seed=1), KINDS, SHARES),
    "tail mean": composite(lambda: sc.TailMean(0.8, sc.Finite(4), seed=1, high=2.0), Y + HINTS, None),
    "mean and variance": composite(
        lambda: sc.MeanVariance(sc.Groups(["a"], limit=20), seed=1, high=2.0), np.clip(Y + HINTS, 0.0, 2.0), None, ROWS
    ),
    "prediction set": composite(lambda: PredictionSet(0.8, 3, sc.Finite(4), seed=1), KINDS, SHARES),
}
THINGS = MODELS | {
    "cases": Thing(lambda: Cases(MODELS["finite"].make(), remember=20), _play_cases),
    "keys": Thing(Bucket, _play_bucket),
    "steps ahead": Thing(lambda: sc.MultiHorizon(_steps, 2, exact=True, order="forecast", settle=9), _play_steps),
    "audit": audit(),
    "audit in bins": audit(bins=[0.0, 0.3, 0.6, 1.0], hypotheses=sc.Finite(4, names=list("abcd"))),
    "audit of groups": audit(ROWS, hypotheses=sc.Groups(["a", "b"], limit=20), bins=10),
    "monitor": monitor(alpha=0.05),
    "monitor of clusters": monitor(every=1000.0, cluster="day"),
    "column": Thing(lambda: mergeable_column(sc.Probability(), sc.Groups(["a", "b"], limit=20), 16, Y), _play_column),
    "stream": stream(),
    "stream, in order": stream(outcome_order="forecast", settle=20, monitor=False),
    "stream that learns": stream(property="expectile", level=0.7, hint="learn", features=["z"], outside="clip"),
    "run": Thing(
        lambda: Checkpoint({"y": "y"}, 7, "ab", None, {"bytes": 3}, False, {"head": "x"}, b"", {"sums": np.zeros(7)}),
        _play_checkpoint,
    ),
}


def played(name: str, stop: int = ROUNDS // 2) -> Any:
    """A thing after some rounds."""
    thing = THINGS[name].make()
    THINGS[name].play(thing, 0, stop)
    return thing

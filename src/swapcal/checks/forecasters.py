"""What every forecaster must be: pure in `predict`, exact in `save`, careful with what it is given."""

import inspect
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from swapcal.checks.rules import Rules, Trial, default_stream, expect, refusal, saved, snapshot

_ROUNDS = 60
# A stream of ten times this length must not make the state larger by a number for each round.
_LONG = 300


def check_forecaster(
    make: Callable[[], Any], *, load: Callable[[io.BytesIO], Any] | None = None, stream: Trial | None = None
) -> None:
    """Check that `make` makes good forecasters; `CheckFailed` says what is wrong with them.

    Parameters
    ----------
    make
        Returns a fresh forecaster, with the same settings and seed in every call. It has `predict`, `update`, `run`,
        `distribution`, `save`, `load`, `property` and `hypotheses` (or `n_functions`), or an attribute
        `check_exceptions` that says why it cannot obey a rule.
    load
        Reads what `save` wrote to a binary stream. Default: the `load` of its class. Give your own if a part of your
        making has to be passed in again.
    stream
        At least 3000 rounds to check on. Default: made up to fit property and class, once without and once with hints
        where `predict` takes them.

    Notes
    -----
    Takes a second or two, most of it for the stream of 3000 rounds.

    Examples
    --------
    >>> from swapcal import Finite, Forecaster, Mean
    >>> check_forecaster(lambda: Forecaster(Mean(), Finite(2), horizon=3000, seed=1))
    """
    first = make()
    reader = type(first).load if load is None and hasattr(type(first), "load") else load
    hinted = (False, True) if "hint" in inspect.signature(first.predict).parameters else (False,)
    for each in [default_stream(first, 10 * _LONG, hinted=h) for h in hinted] if stream is None else [stream]:
        ForecasterRules(first, make, reader if reader is not None else _unable, each).apply()


def _unable(file: io.BytesIO) -> Any:
    raise NotImplementedError("there is no load; give one, or say why not in check_exceptions")


def _first_difference(one: list[float], two: list[float]) -> int:
    return next((t for t, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))


@dataclass(frozen=True)
class ForecasterRules(Rules[Any]):
    """What every forecaster must be; with a factory of them, how to load one, and a stream."""

    make: Callable[[], Any]
    load: Callable[[io.BytesIO], Any]
    stream: Trial

    def predicts_before_learning(self) -> None:
        """The first forecast comes before any outcome, and is a number.

        A stream starts somewhere, and nobody should have to train before the first round.
        """
        value = float(self.stream.predict(self.make(), 0))
        expect(np.isfinite(value), f"it is {value!r}")

    def forecasts_stay_in_the_domain(self) -> None:
        """Every forecast is a finite number in the property's domain.

        A probability of 1.2 or a quantile beyond the largest label is wrong whatever happens.
        """
        forecaster = self.make()
        low, high = forecaster.property.domain
        for value in self.stream.play(forecaster, 0, _LONG):
            expect(low <= value <= high, f"it forecasts {value!r} outside [{low:g}, {high:g}]")

    def predict_learns_nothing(self) -> None:
        """Predicting again and again does not change what would be forecast.

        Forecasts whose outcome never comes must leave no trace in what is said next. Where shares of corrections are
        shown they do, as outcomes that are pending count there: then it is asked without a hint.
        """
        forecaster, stream = self.make(), self.stream
        rules = getattr(forecaster, "rules", None)
        shares = getattr(rules, "protect", "nothing") != "nothing"

        def chances(t: int) -> Any:
            options = {name: value for name, value in stream.options(t).items() if name != "hint" or not shares}
            return forecaster.distribution(stream.contexts[t].copy(), **options)

        stream.play(forecaster, 0, _ROUNDS)
        before = [chances(t) for t in range(10)]
        for t in range(20):
            stream.predict(forecaster, t)
        learns = shares and getattr(rules, "hint", None) is not None
        expect(learns or [chances(t) for t in range(10)] == before, "the distribution of forecasts changed")
        for each in before:
            expect(abs(sum(each.values()) - 1.0) < 1e-12, f"probabilities do not add up to 1: {each}")

    def same_seed_same_path(self) -> None:
        """Two forecasters with the same settings and seed give the same forecasts on the same stream.

        Otherwise nothing can be repeated, neither an experiment nor the search for a fault.
        """
        one, two = (self.stream.play(self.make(), 0, _ROUNDS) for _ in range(2))
        expect(one == two, f"they part in round {_first_difference(one, two)}")

    def forecasters_share_nothing(self) -> None:
        """What one forecaster learns stays unknown to another that was made from the same parts.

        Many run side by side, one for each product or place.
        """
        one, two = self.make(), self.make()
        before = snapshot(two)
        self.stream.play(one, 0, _ROUNDS)
        expect(snapshot(two) == before, "teaching one has changed another from the same factory")

    def arguments_are_copied(self) -> None:
        """Changing an array after it was passed to `predict` or `run` changes nothing, and no array is written to.

        Callers reuse their arrays, and an outcome may come long after its forecast.
        """
        one, two, stream = self.make(), self.make(), self.stream
        for t in range(20):
            x, options = stream.contexts[t].copy(), stream.options(t)
            forecast, other = one.predict(x, **options), stream.predict(two, t)
            expect(np.array_equal(x, stream.contexts[t]), "predict wrote to the context")
            x[:] = 0.123
            if "features" in options:
                options["features"][:] = 0.456
            one.update(forecast, float(stream.labels[t]))
            two.update(other, float(stream.labels[t]))
            expect(float(forecast) == float(other), f"round {t} differs where contexts were changed after predict")
        handed = Trial(*(None if part is None else part[:_ROUNDS].copy() for part in stream))  # type: ignore[arg-type]
        handed.run(one, 20, _ROUNDS)
        for array, original in zip(handed, stream, strict=True):
            expect(array is None or np.array_equal(array, original[:_ROUNDS]), "run wrote to an array")  # type: ignore[index]
        before = snapshot(one)
        for part in handed:
            if part is not None:
                part[:] = 0.123
        expect(snapshot(one) == before, "changing an array after run has changed the state")

    def run_is_the_loop(self) -> None:
        """`run` gives the forecasts of the loop, to the last bit, whole or in parts, and leaves the same state.

        What was tried on a recorded stream has to be what happens in production.
        """
        one, two, stream = self.make(), self.make(), self.stream
        looped = stream.play(one, 0, _LONG)
        ran = stream.run(two, 0, 40) + stream.run(two, 40, 40) + stream.run(two, 40, _LONG)
        expect(ran == looped, f"they part in round {_first_difference(looped, ran)}")
        after = [stream.play(each, _LONG, _LONG + 20) for each in (one, two)]
        expect(after[0] == after[1], "forecasts after the run differ from those after the loop")

    def saving_is_exact(self) -> None:
        """A loaded forecaster continues as the saved one does, to the last bit, at every round, with open forecasts.

        A service restarts at any time, and nothing may depend on when.
        """
        forecaster, stream = self.make(), self.stream
        for t in range(30):
            if t in (0, 1, 2, 3, 5, 8, 13, 21, 29):
                pending = stream.predict(forecaster, t + 100)
                again = self.load(io.BytesIO(saved(forecaster)))
                expect(snapshot(again) == snapshot(forecaster), f"the loaded state is another one after {t} rounds")
                for each in (forecaster, again):
                    each.update(pending, float(stream.labels[t + 100]))
                values = [stream.play(each, t + 200, t + 210) for each in (forecaster, again)]
                expect(values[0] == values[1], f"forecasts differ after saving in round {t}")
                expect(snapshot(again) == snapshot(forecaster), f"states differ ten rounds after saving in round {t}")
            stream.play(forecaster, t, t + 1)
        file = saved(forecaster)
        first, second = self.load(io.BytesIO(file)), self.load(io.BytesIO(file))
        before = snapshot(second)
        stream.play(first, 0, _ROUNDS)
        expect(snapshot(second) == before, "teaching one has changed another loaded from the same file")

    def outcomes_come_in_any_order(self) -> None:
        """Outcomes are taken in any order, and some may never come.

        Loans default years later; forecasts do not wait.
        """
        forecaster, stream = self.make(), self.stream
        stream.play(forecaster, 0, 5)
        forecasts = [stream.predict(forecaster, t) for t in range(20)]
        for t in [19, 0, 7, 12, 3, 18, 1, 2]:
            forecaster.update(forecasts[t], float(stream.labels[t]))
        low, high = forecaster.property.domain
        for value in stream.play(forecaster, 20, 40):
            expect(low <= value <= high, f"afterward it forecasts {value!r}")

    def forecasts_are_updated_once(self) -> None:
        """A second outcome for the same forecast is refused with a `SwapcalError`, and changes nothing.

        A message that is delivered twice must not count twice.
        """
        forecaster, stream = self.make(), self.stream
        forecasts = [stream.predict(forecaster, t) for t in range(3)]
        for t in (1, 0, 2):
            forecaster.update(forecasts[t], float(stream.labels[t]))
        refused = refusal(forecaster)
        for forecast in forecasts:
            refused("a second outcome", forecaster.update, forecast, float(stream.labels[0]))

    def foreign_forecasts_are_refused(self) -> None:
        """A forecast that another forecaster made is refused with a `SwapcalError`, and so is what is no forecast.

        The evidence of one forecaster in the bins of another makes both wrong, and nobody would notice.
        """
        forecaster, other, stream = self.make(), self.make(), self.stream
        stream.predict(forecaster, 0)
        strangers: list[Any] = [stream.predict(other, 0), None, 0.5, "forecast", {}]
        refused = refusal(forecaster)
        for what in strangers:
            refused(f"an outcome for {what!r}", forecaster.update, what, float(stream.labels[0]))

    def bad_input_changes_nothing(self) -> None:
        """NaN, infinities, wrong lengths and what is no number are refused with a `SwapcalError`; the state stays.

        One NaN in a sum spoils every forecast after it, and a half-taken round breaks the guarantee in silence.
        """
        forecaster, stream = self.make(), self.stream
        predict, update, run = forecaster.predict, forecaster.update, forecaster.run
        stream.play(forecaster, 0, 10)
        forecast = stream.predict(forecaster, 10)
        refused = refusal(forecaster)
        (x, y, more), options = stream.arrays(0, 12), stream.options(0)
        for wrong in (np.nan, np.inf, -np.inf):
            spoiled, labels = x.copy(), y.copy()
            spoiled[11, -1], labels[11] = wrong, wrong
            refused(f"a context with {wrong}", predict, spoiled[11], **options)
            refused(f"the label {wrong}", update, forecast, wrong)
            refused(f"a run with {wrong} in a context", run, spoiled, y, **more)
            refused(f"a run with {wrong} as a label", run, x, labels, **more)
            if stream.hints is not None:
                refused(f"the hint {wrong}", predict, x[0], **options | {"hint": wrong})
        strange: list[Any] = [None, "x", object()]
        for bad in [*strange, x[0][:-1], np.append(x[0], 0.0), x]:
            refused(f"the context {bad!r}", predict, bad, **options)
        for bad in [*strange, y]:
            refused(f"the label {bad!r}", update, forecast, bad)
        for bad in [*strange, y, x[:-1], np.zeros((len(y), x.shape[1] + 1))]:
            refused(f"a run with the contexts {bad!r}", run, bad, y, **more)
        for bad in [*strange, x, y[:-1]]:
            refused(f"a run with the labels {bad!r}", run, x, bad, **more)
        update(forecast, float(y[10]))

    def memory_is_bounded(self) -> None:
        """On a stream ten times as long the state grows by less than a number a round, or to less than four times.

        A forecaster runs for years; what it keeps is sums, not rounds, of values whose number grows like a cube root.
        """
        forecaster = self.make()
        sizes = []
        for start, stop in ((0, _LONG), (_LONG, 10 * _LONG)):
            self.stream.run(forecaster, start, stop)
            sizes.append(sum(map(len, snapshot(forecaster).values())))
        first, last = sizes
        bounded = last - first < 8 * 9 * _LONG or last < 4 * first
        expect(bounded, f"after {_LONG} rounds it takes {first} bytes, after {10 * _LONG} {last}")

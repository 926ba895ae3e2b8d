"""One forecaster for every key of a stream of many."""

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, NamedTuple

from swapcal import hypotheses as classes
from swapcal import inputs
from swapcal.audits import Audit
from swapcal.engine.kernels import seed_for
from swapcal.engine.state import Rules
from swapcal.errors import InvalidInput, StateFileError, UnknownForecast
from swapcal.forecast import Forecast, Number
from swapcal.forecaster import Forecaster
from swapcal.hints import OnlineRegression
from swapcal.hypotheses import Finite
from swapcal.keyed.store import Store
from swapcal.protocols import Hypotheses, Row

# --------
# Forecasters of one configuration and different seeds: what every key gets, on whatever machine.


def key_text(key: str | int) -> str:
    """A key as the text from which its seed follows: its JSON, so that 1 and "1" are two keys."""
    return json.dumps(key)


# Of a key, at most: blocks in the record of its corrections, and weights whose covariances its learning hint keeps. It
# has few rows, and there are many of them.
MOST_BLOCKS, MOST_FULL = 64, 32


def forecaster_for_key(template: Forecaster, *names: str, hypotheses: Hypotheses | None = None) -> Forecaster:
    """A forecaster with the template's configuration, and a seed and an identity that follow from its seed and `names`.

    Its state is smaller: the record of corrections keeps 64 blocks at most, an `OnlineRegression` the covariances of
    its first 32 weights.

    Parameters
    ----------
    template : Forecaster
        It plays no round.
    *names : str
        Whose it is; `("key", key_text(key))` for a key.
    hypotheses : Hypotheses, optional
        The class of functions. Default: the template's; one that learns, such as `Groups`, is copied as it is.

    Returns
    -------
    Forecaster
        A fresh one.

    Examples
    --------
    >>> import swapcal as sc
    >>> template = sc.Forecaster(sc.Probability(), sc.Finite(1), seed=1)
    >>> one, two = (forecaster_for_key(template, "key", key_text(key)) for key in ("Paris", "Rome"))
    >>> one.rules.seed == two.rules.seed, one.to_bytes() == forecaster_for_key(template, "key", '"Paris"').to_bytes()
    (False, True)
    """
    seed = seed_for(template.rules.seed, *names)
    if hypotheses is not None:
        return Forecaster.by_rules(_key_rules(template, hypotheses).reseeded(seed), json.dumps(names))
    twin: Any
    own = twin = template.hypotheses
    rules = template.rules.settled.get("keys") or _key_rules(template, own)
    if hasattr(own, "twin"):
        twin = own.twin()
    elif hasattr(own, "snapshot"):
        twin = own.resumed(own.spec()) if hasattr(own, "resumed") else classes.from_spec(own.spec())
    made = Forecaster.by_rules(rules.reseeded(seed, twin), json.dumps(names))
    # What is the same for all keys is checked once, and worked out once.
    template.rules.settled.setdefault("keys", made.rules)
    return made


def _key_rules(template: Forecaster, hypotheses: Hypotheses) -> Rules:
    """The rules of a template as a key has them, with the template's seed."""
    settings, hint = dict(template.rules.settings()), template.hint
    settings["blocks"] = min(settings["blocks"], MOST_BLOCKS)
    if type(hint) is OnlineRegression and hint.most_full > MOST_FULL:
        hint = replace(hint, most_full=MOST_FULL)
    return Rules(template.property, hypotheses, hint, **settings)


def configuration(template: Forecaster) -> dict[str, Any]:
    """What forecasters of a template have in common, as plain data; functions that are found on the way are apart."""
    rules = template.rules
    hint = None if rules.hint is None else dict(rules.hint.spec())
    plain: dict[str, Any] = json.loads(
        json.dumps({"property": dict(rules.property.spec()), "hint": hint, **rules.settings()})
    )
    return plain


def warm_start(forecaster: Forecaster, elder: Forecaster) -> Forecaster:
    """A fresh forecaster whose learning hint goes on from where that of another has come; the same without one.

    A hint is free to the theorem, so the fresh one keeps its guarantee. Evidence is not handed down: it is what the
    guarantee counts, and that of other rounds would be owed for.

    Parameters
    ----------
    forecaster, elder : Forecaster
        Of the same configuration; the first has played no round.

    Returns
    -------
    Forecaster
        To be used instead of the first.
    """
    own, learned = forecaster.state.hint, elder.state.hint
    if own is None or learned is None:
        return forecaster
    own.restore({name: array.copy() for name, array in learned.arrays().items()})
    target, functions, hint = forecaster.property, forecaster.hypotheses, forecaster.hint
    return Forecaster.from_bytes(forecaster.to_bytes(), property=target, hypotheses=functions, hint=hint)


Key = str | int


@dataclass(frozen=True, slots=True)
class KeyedForecast(Number):
    """A forecast for one key: a number, like `Forecast`, that knows its key and what the pooled forecaster played."""

    key: Key
    forecast: Forecast
    pooled: Forecast

    @property
    def value(self) -> float:  # type: ignore[override]
        """The number to act on."""
        return self.forecast.value

    def to_json(self) -> str:
        """One line of JSON."""
        parts = {"forecast": self.forecast.to_dict(), "pooled": self.pooled.to_dict()}
        return json.dumps({"key": self.key, **parts})

    @classmethod
    def from_json(cls, text: str | bytes) -> "KeyedForecast":
        """The forecast that `to_json` wrote down."""
        try:
            data = json.loads(text)
            return cls(data["key"], Forecast.from_dict(data["forecast"]), Forecast.from_dict(data["pooled"]))
        except (KeyError, TypeError, ValueError) as error:
            raise UnknownForecast(f"this is not a stored forecast of a key ({error})") from None


class _Entry(NamedTuple):
    forecaster: Forecaster
    used: float


class Keyed:
    """One forecaster per key, all with the configuration of a template; and one that learns from all keys together.

    A cold key starts from what the others have learned. Where the template has a learning hint, that of a new key goes
    on from the state of the pooled one; else, while the key has had fewer than `cold` outcomes, the forecast of the
    pooled forecaster for the same context is its hint, and afterwards the one that you give. A hint is free to the
    theorem, so every key keeps the template's guarantee for its own rounds, from its first.

    Parameters
    ----------
    template : Forecaster
        Property, class of functions and settings of every forecaster; it plays no round itself. Groups are found once,
        for all keys.
    resident : int
        How many keys' forecasters stay in memory; the one used longest ago goes to the store.
    spill : path, optional
        A SQLite file for the states, of this one alone until `close`. None: they are kept in memory as bytes, and end
        with the process.
    time_to_live : float, optional
        Seconds after which a key that was not used is forgotten; it starts anew, as a cold key, when it comes back.
    cold : int
        Outcomes after which a key no longer takes the pooled forecast as its hint; 0: keys start from nothing.
    clock : callable
        What time it is, in seconds.

    Notes
    -----
    The seed of a key is a hash of the template's seed and the key (`engine.randomness.seed_for`), and from it follows
    the secret that seals the key's forecasts (`Identity.derived`). So both are the same wherever and in whatever order
    keys are served, and draws are independent between keys; give the template a secret seed. A forecast that waits when
    its key expires can no longer be updated. Cost of an event: two rounds of a forecaster, and a state written and one
    read where the key is not resident. `max_pending` of the template costs 4 bytes for each key and pending forecast:
    make it small. Not for several threads.

    Examples
    --------
    >>> import swapcal as sc
    >>> from swapcal.keyed import Keyed
    >>> stores = Keyed(sc.Forecaster(sc.Probability(), sc.Finite(1), horizon=500, seed=1, max_pending=64), resident=2)
    >>> for t in range(300):
    ...     forecast = stores.predict(f"store {t % 5}", [1])
    ...     stores.update(forecast, t % 10 < 3)
    >>> len(stores), stores.resident_keys, stores.audit.n_rounds
    (5, ['store 3', 'store 4'], 300)
    >>> 0.1 < stores.predict("a new store", [1]) < 0.5    # not 0.5: it starts from the others
    True
    """

    def __init__(
        self,
        template: Forecaster,
        *,
        resident: int = 1000,
        spill: str | PathLike[str] | None = None,
        time_to_live: float | None = None,
        cold: int = 100,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.template = template
        self.resident, self.cold = inputs.integer(resident, "resident", 1), inputs.integer(cold, "cold", 0)
        self.time_to_live = None if time_to_live is None else inputs.number(time_to_live, "time_to_live", 0.0, 1e18)
        self._clock, self._entries = clock, OrderedDict[Key, _Entry]()
        self._known: set[str] = set()
        self._hypotheses: Hypotheses = template.hypotheses
        extended = getattr(template.hypotheses, "extended", None)
        self._functions: Hypotheses = template.hypotheses if extended is None else extended(0)
        self.pooled = self._sibling("pooled")
        self.audit = Audit(template.property, self._functions)
        self._store = Store(spill)
        try:
            self._resume()
        except BaseException:
            self._store.close()
            raise

    def __repr__(self) -> str:
        return f"Keyed({self.template!r}): {len(self)} keys, {len(self._entries)} of them in memory"

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, (str, int)) and _text(key) in self._known

    def __iter__(self) -> Iterator[Key]:
        return (_key(text) for text in sorted(self._known))

    @property
    def resident_keys(self) -> list[Key]:
        """The keys in memory, the one used longest ago first."""
        return list(self._entries)

    def forecaster(self, key: Key) -> Forecaster:
        """The forecaster of a key, from memory, from the store, or new."""
        text, now = _text(key), self._clock()
        entry = self._living(key)
        if entry is None:
            fresh = self._sibling("key", text)
            forecaster = warm_start(fresh, self.pooled) if self.cold else fresh
        else:
            forecaster = entry.forecaster
        self._entries[key] = _Entry(forecaster, now)
        self._entries.move_to_end(key)
        self._known.add(text)
        while len(self._entries) > self.resident:
            oldest, left = next(iter(self._entries.items()))
            self._store.put([(_text(oldest), left.used, left.forecaster.to_bytes())])
            del self._entries[oldest]
        return forecaster

    def _living(self, key: Key) -> _Entry | None:
        """The entry of a key, now in memory; None where it is new or its time to live is over: then it is forgotten."""
        text, entry = _text(key), self._entries.get(key)
        if entry is None and (stored := self._store.get(text)) is not None:
            entry = self._entries[key] = _Entry(Forecaster.from_bytes(stored[1]), stored[0])
        if entry is not None and self.time_to_live is not None and entry.used < self._clock() - self.time_to_live:
            self._store.forget(text)
            self._entries.pop(key, None)
            self._known.discard(text)
            entry = None
        return entry

    def predict(self, key: Key, x: Any, hint: float | None = None) -> KeyedForecast:
        """The forecast of a key for context `x`; opens a round of the key and of the pooled forecaster.

        Parameters
        ----------
        key : str or int
            Whose forecast.
        x : array, sequence, mapping or record
            The context.
        hint : float, optional
            Your own model's forecast.

        Returns
        -------
        KeyedForecast
            A value; `float(forecast)` is the number to act on.
        """
        context = self._read(x)
        own = self.forecaster(key)
        pooled = self.pooled.predict(context, hint=hint)
        # A learning hint that was handed down knows what the pooled forecast would tell it, and would add both up.
        if own.n_rounds < self.cold and own.hint is None:
            hint = pooled.probability * pooled.value + (1.0 - pooled.probability) * pooled.other
        return KeyedForecast(key, own.predict(context, hint=hint), pooled)

    def update(self, forecast: KeyedForecast, y: float) -> None:
        """Learn the outcome `y` of a forecast: in any order, once each.

        Parameters
        ----------
        forecast : KeyedForecast
            What `predict` returned, or what was stored of it.
        y : float
            The outcome.
        """
        if not isinstance(forecast, KeyedForecast):
            raise UnknownForecast(f"update takes what predict returned; got {inputs.short_repr(forecast)}")
        if forecast.key not in self or self._living(forecast.key) is None:
            raise UnknownForecast(f"there is no key {forecast.key!r}; it was never forecast, or has expired")
        self.forecaster(forecast.key).update(forecast.forecast, y)
        self.pooled.update(forecast.pooled, y)
        if isinstance(self._functions, Finite):
            own = Row(*_without_levels(forecast.forecast, self._functions.n))
            self.audit.update(*inputs.inside(self.template.property, float(y), forecast.value), own)

    def expire(self) -> list[Key]:
        """Forget the keys whose time to live is over, in memory and in the store; which ones."""
        if self.time_to_live is None:
            return []
        before = self._clock() - self.time_to_live
        gone = [key for key, entry in self._entries.items() if entry.used < before]
        for key in gone:
            del self._entries[key]
            self._store.forget(_text(key))
        stored = [text for text in self._store.drop(before) if _key(text) not in self._entries]
        self._known -= {*map(_text, gone), *stored}
        return [*gone, *(_key(text) for text in stored)]

    def flush(self) -> None:
        """Write everything to the store, so that a `Keyed` with the same file goes on from here, bit for bit."""
        self._store.put([(_text(k), e.used, e.forecaster.to_bytes()) for k, e in self._entries.items()])
        self._store.write("pooled", self.pooled.to_bytes())
        self._store.write("hypotheses", json.dumps(dict(self._hypotheses.spec())).encode())
        self._store.write("audit", self.audit.to_bytes())
        self._store.settle()

    def close(self) -> None:
        """Write everything and close the store."""
        self.flush()
        self._store.close()

    def __enter__(self) -> "Keyed":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _sibling(self, *names: str) -> Forecaster:
        """A forecaster with the template's configuration and a seed of its own."""
        return forecaster_for_key(self.template, *names, hypotheses=self._functions)

    def _read(self, x: Any) -> Any:
        return x if self._functions is self._hypotheses else self._hypotheses.row(x)

    def _resume(self) -> None:
        """Go on with what the store holds, if it was made with the same template."""
        here = configuration(self.template)
        there = json.loads(self._store.read("template") or json.dumps(here))
        for name in here:
            if here[name] != there.get(name):
                other = f"{name}={there.get(name)!r}, and this template has {name}={here[name]!r}"
                store = f"the store {self._store.path} was made with {other}"
                raise StateFileError(f"{store}: give the same template, or another file")
        self._store.write("template", json.dumps(here).encode())
        stored, spec, audit = (self._store.read(name) for name in ("pooled", "hypotheses", "audit"))
        self._known.update(self._store.keys())
        if stored is None or spec is None or audit is None:
            return
        learned = json.loads(spec)
        if hasattr(self._hypotheses, "resumed"):
            self._hypotheses = self._hypotheses.resumed(learned)
        elif learned != json.loads(json.dumps(dict(self._hypotheses.spec()))):
            raise StateFileError(f"the store {self._store.path} was made with another class of functions: {learned}")
        self.pooled = Forecaster.from_bytes(stored)
        self.audit = Audit.from_bytes(audit, property=self.template.property, hypotheses=self._functions)


def _text(key: Key) -> str:
    if isinstance(key, bool) or not isinstance(key, (str, int)):
        raise InvalidInput(f"a key is a string or a whole number; got {inputs.short_repr(key)}")
    return key_text(key)


def _key(text: str) -> Key:
    key: Key = json.loads(text)
    return key


def _without_levels(forecast: Forecast, n: int) -> tuple[Any, Any]:
    """The context that the user gave: the level sets of the hint lie behind its positions."""
    pairs = [(i, v) for i, v in zip(forecast.indices, forecast.values, strict=True) if i < n]
    return [i for i, _ in pairs], [v for _, v in pairs]

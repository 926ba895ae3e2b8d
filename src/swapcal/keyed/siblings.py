"""Forecasters of one configuration and different seeds: what every key gets, on whatever machine."""

import json
from typing import Any

from swapcal import hypotheses as classes
from swapcal.engine.randomness import seed_for
from swapcal.forecaster import Forecaster
from swapcal.roles import Hypotheses

__all__ = ["heir", "key_text", "sibling"]


def key_text(key: str | int) -> str:
    """A key as the text from which its seed follows: its JSON, so that 1 and "1" are two keys."""
    return json.dumps(key)


def sibling(template: Forecaster, *names: str, hypotheses: Hypotheses | None = None) -> Forecaster:
    """A forecaster with the template's configuration, and a seed and an identity that follow from its seed and `names`.

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
    >>> one, two = (sibling(template, "key", key_text(key)) for key in ("Paris", "Rome"))
    >>> one.rules.seed == two.rules.seed, one.to_bytes() == sibling(template, "key", '"Paris"').to_bytes()
    (False, True)
    """
    settings = dict(template.rules.settings())
    settings["seed"] = seed_for(settings["seed"], *names)
    if hypotheses is None:
        own: Any = template.hypotheses
        hypotheses = own
        if hasattr(own, "snapshot"):
            spec = own.spec()
            hypotheses = own.resumed(spec) if hasattr(own, "resumed") else classes.from_spec(spec)
    return Forecaster(template.property, hypotheses, hint=template.hint, identity=json.dumps(names), **settings)


def heir(forecaster: Forecaster, elder: Forecaster) -> Forecaster:
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

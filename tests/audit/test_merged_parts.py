"""Parts of a stream, audited apart, sent as bytes and added up: the audit of the whole, in any order."""

from typing import Any

import numpy as np
import pytest

import swapcal as sc
from swapcal.errors import InvalidInput, StateFileError
from swapcal.monitor import Monitor
from swapcal.stored_words import framed, unframed

N, PARTS = 6400, 64


def table(seed: int = 0) -> tuple[dict[str, list[Any]], Any, Any]:
    rng = np.random.default_rng(seed)
    city = [f"city {k}" if k < 30 else None for k in rng.zipf(1.3, N).clip(0, 31).tolist()]
    x = {"city": city, "sex": rng.choice(["f", "m"], N).tolist(), "age": rng.integers(18, 90, N).tolist()}
    p = rng.integers(0, 9, N) / 8.0
    return x, p, (rng.random(N) < 0.4).astype(float)


def groups() -> sc.Groups:
    return sc.Groups(["city", ("city", "sex"), "age >= 60"], limit=200)


def parts(x: dict[str, list[Any]], p: Any, y: Any) -> list[sc.Audit]:
    made = []
    for k in range(PARTS):
        audit = sc.Audit(sc.Probability(), groups())
        audit.update_many(y[k::PARTS], p[k::PARTS], {name: column[k::PARTS] for name, column in x.items()})
        made.append(audit)
    return made


def by_name(audit: sc.Audit) -> dict[str, Any]:
    table = audit.table()
    return {
        name: [table.value.tolist(), *(getattr(table, s)[:, j].tolist() for s in ("xv", "active", "weight", "xvxv"))]
        for j, name in enumerate(audit.function_names)
    }


@pytest.mark.parametrize("order", ["as they are", "backwards", "by tree", "shuffled"])
def test_sixty_four_parts_are_the_whole_to_the_last_bit(order: str) -> None:
    # Forecasts are multiples of 1/8 and outcomes 0 or 1, so all sums are exact.
    x, p, y = table()
    whole = sc.Audit(sc.Probability(), groups())
    whole.update_many(y, p, x)
    made = [sc.Audit.from_bytes(part.to_bytes()) for part in parts(x, p, y)]
    if order == "by tree":
        while len(made) > 1:
            made = [a + b for a, b in zip(made[::2], made[1::2], strict=True)]
    elif order == "backwards":
        made.reverse()
    elif order == "shuffled":
        made = [made[k] for k in np.random.default_rng(3).permutation(len(made))]
    total = made[0]
    for part in made[1:]:
        total.merge(part)
    assert by_name(total) == by_name(whole)
    assert total.n_rounds == N
    assert total.swap_multicalibration() == pytest.approx(whole.swap_multicalibration(), rel=1e-12)
    assert total.witness().name == whole.witness().name


def test_sums_that_are_not_exact_agree_to_nine_digits() -> None:
    x, _, y = table()
    p = np.random.default_rng(1).random(N)
    whole = sc.Audit(sc.Probability(), groups(), bins=[0.0, 0.2, 0.5, 1.0])
    whole.update_many(y, p, x)
    total = None
    for k in reversed(range(PARTS)):
        part = sc.Audit(sc.Probability(), groups(), bins=[0.0, 0.2, 0.5, 1.0])
        part.update_many(y[k::PARTS], p[k::PARTS], {name: column[k::PARTS] for name, column in x.items()})
        total = part if total is None else total + part
    assert total is not None
    mine, theirs = by_name(total), by_name(whole)
    assert mine.keys() == theirs.keys()
    for name, sums in mine.items():
        np.testing.assert_allclose(sums[1:], theirs[name][1:], rtol=1e-9, atol=1e-9)


def test_adding_changes_neither_part_and_room_is_made() -> None:
    def one(city: str) -> sc.Audit:
        audit = sc.Audit(sc.Probability(), sc.Groups(["city"], limit=4))
        audit.update_many([1.0, 0.0], [0.5, 0.5], {"city": [city, None]})
        return audit

    first, second = one("Paris"), one("Rome")
    both = first + second
    for k in range(5):
        both = both + one(f"town {k}")
    assert first.function_names == ("all", "city=Paris", "city=missing")
    assert second.function_names == ("all", "city=Rome", "city=missing")
    assert set(both.function_names) >= {"all", "city=Paris", "city=Rome", "city=missing", "city=town 4"}
    assert both.table().active.sum() == 4 * 7
    again = sc.Audit.from_bytes(both.to_bytes())
    assert by_name(again) == by_name(both)
    both.update(1.0, 0.5, {"city": "Rome"})
    assert both.table().active[0, both.function_names.index("city=Rome")] == 2


def test_bands_must_be_the_same() -> None:
    def one(shift: int) -> sc.Audit:
        found = sc.Groups(["age"])
        found.fit({"age": [float(k + shift) for k in range(100)]})
        audit = sc.Audit(sc.Probability(), found)
        audit.update_many([1.0], [0.5], {"age": [30.0]})
        return audit

    one(0).merge(one(0))
    with pytest.raises(InvalidInput, match="settings; theirs differ in hypotheses"):
        one(0).merge(one(7))


def test_bytes_of_an_audit_are_small_fast_to_refuse_and_checked() -> None:
    rng = np.random.default_rng(2)
    x = (rng.random((500, 20)) < 0.3).astype(float)
    audit = sc.Audit(sc.Probability(), sc.Finite(20))
    audit.update_many((rng.random(500) < 0.3).astype(float), rng.integers(0, 11, 500) / 10.0, x)
    data = audit.to_bytes()
    again = sc.Audit.from_bytes(data)
    assert again.to_dict() == audit.to_dict()
    assert len(data) < 8000
    payload = bytes(unframed("audit", data))
    refused = 0
    for _ in range(400):
        changed = bytearray(payload)
        changed[int(rng.integers(len(payload)))] = int(rng.integers(256))
        try:
            sc.Audit.from_bytes(framed("audit", bytes(changed)))
        except (StateFileError, InvalidInput):
            refused += 1
    assert refused
    with pytest.raises(StateFileError, match="checksum"):
        sc.Audit.from_bytes(data[:-1] + b"\0" if data[-1] else data[:-1] + b"\1")
    empty = sc.Audit(sc.Probability(), sc.Finite(3))
    assert sc.Audit.from_bytes(empty.to_bytes()).n_rounds == 0
    assert sc.Audit.from_bytes(sc.Audit().to_bytes()).n_rounds == 0


def test_a_monitor_as_bytes_goes_on() -> None:
    rng = np.random.default_rng(4)
    x, y = (rng.random((3000, 20)) < 0.3).astype(float), (rng.random(3000) < 0.3).astype(float)
    for alpha, every in ((0.05, None), (None, 10_000.0)):
        monitor = Monitor(sc.Probability(), sc.Finite(20), alpha=alpha, every=every)
        assert len(monitor.to_bytes()) < 4000
        monitor.update_many(y[:1000], np.full(1000, 0.2), x[:1000])
        again = Monitor.from_bytes(monitor.to_bytes())
        rest = y[1000:], np.full(2000, 0.2), x[1000:]
        assert monitor.update_many(*rest) == again.update_many(*rest)
        assert monitor.to_bytes() == again.to_bytes()
    data = monitor.to_bytes()
    with pytest.raises(StateFileError):
        Monitor.from_bytes(data[:-8])
    found = sc.Groups(["city"])
    watched = Monitor(sc.Probability(), found, alpha=0.1)
    watched.update(1.0, 0.5, {"city": "Paris"})
    assert Monitor.from_bytes(watched.to_bytes()).groups.n == found.n
